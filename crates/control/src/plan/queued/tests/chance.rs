//! What must never happen, whatever comes in whichever order, with crashes between any two writes.

use serde_json::json;

use super::super::world::World;
use super::super::{JobKey, Settings};
use super::{job_with, one_set, queued};

/// Numbers that look like chance.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

fn is_true(world: &World, kind: &str) -> bool {
    !world.workload_names().is_empty() && world.condition(kind).starts_with("True")
}

fn is_suspended(world: &World, key: &JobKey) -> bool {
    world.job(key)["spec"]["suspend"] == true
}

/// Whether pods run, as the status has it.
fn active(world: &World, key: &JobKey) -> i64 {
    let status = &world.job(key)["status"];
    let entry = &status["replicatedJobsStatus"][0]["active"];
    status["active"].as_i64().or_else(|| entry.as_i64()).unwrap_or(0)
}

/// The controller of the job does something, as far as it may.
fn control(world: &mut World, key: &JobKey, chance: &mut Chance) {
    let is_set = key.kind == super::Kind::JobSet;
    let active = if is_suspended(world, key) { 0 } else { 2 };
    let ready = if active == 0 { 0 } else { i32::try_from(chance.below(3)).unwrap() };
    let now = world.now.to_string();
    world.edit_job(key, |job| {
        if is_set {
            job["status"] = json!({"restarts": 0, "replicatedJobsStatus": [
                {"name": "driver", "ready": ready.min(1), "succeeded": 0, "failed": 0,
                 "active": active / 2, "suspended": 0},
                {"name": "workers", "ready": ready, "succeeded": 0, "failed": 0,
                 "active": active, "suspended": 0}]});
        } else {
            job["status"] = json!({"active": active, "ready": ready});
            if active > 0 {
                job["status"]["startTime"] = now.into();
            }
        }
    });
}

/// Something happens.
fn happen(world: &mut World, key: &JobKey, chance: &mut Chance) {
    let has_one = world.workload_names().len() == 1;
    match chance.below(12) {
        0..=3 => control(world, key, chance),
        4 | 5 if has_one && !is_true(world, "QuotaReserved") => world.admit(json!({"cpu": "spot"})),
        6 if is_true(world, "Admitted") => world.say("Evicted", true, "Preempted", "make room"),
        7 if has_one => {
            let name = world.workload_names().remove(0);
            world.delete_workload(&name);
        }
        8 => {
            let queue = if chance.below(2) == 0 { "lq" } else { "other" };
            world.edit_job(key, |job| {
                job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = queue.into();
            });
        }
        9 if key.kind == super::Kind::Job => {
            let size = chance.below(3) + 1;
            world.edit_job(key, |job| job["spec"]["parallelism"] = size.into());
        }
        10 => world.edit_job(key, |job| job["spec"]["suspend"] = true.into()),
        11 => world.crash(),
        // A set without Jobs is not believed for long, and this one has none.
        _ => world.tick(if key.kind == super::Kind::Job { 7 } else { 0 }),
    }
}

fn live(seed: u64, (mut world, key): (World, JobKey)) {
    let mut chance = Chance(seed);
    for _ in 0..60 {
        happen(&mut world, &key, &mut chance);
        for _ in 0..chance.below(4) {
            let held = is_true(&world, "QuotaReserved");
            let ran = !is_suspended(&world, &key);
            world.pass();
            let is_held = is_true(&world, "QuotaReserved");
            assert!(!held || is_held || active(&world, &key) == 0, "seed {seed}: given back early");
            let runs = !is_suspended(&world, &key);
            assert!(ran || !runs || is_true(&world, "Admitted"), "seed {seed}: started unasked");
        }
    }
    for _ in 0..8 {
        control(&mut world, &key, &mut chance);
        world.tick(40);
        world.settle();
    }
    assert_eq!(world.workload_names().len(), 1, "seed {seed}");
    let is_admitted = is_true(&world, "Admitted") && !is_true(&world, "Evicted");
    let waiting = world.waiting(&key);
    assert_eq!(is_suspended(&world, &key), !is_admitted, "seed {seed}: {waiting:?}");
    assert!(!(is_true(&world, "Evicted") && is_true(&world, "QuotaReserved")), "seed {seed}");
    let look = serde_json::to_string(&world.job(&key)["spec"]).unwrap();
    assert_eq!(look.contains("\"pool\":\"spot\""), is_admitted, "seed {seed}: {look}");
    assert!(!look.contains("kueue.x-k8s.io/podset") || is_admitted, "seed {seed}: {look}");
}

#[test]
fn quota_and_templates_are_whole_whatever_happens() {
    for seed in 0..30 {
        live(seed, job_with(Settings::default(), queued(), super::job_spec(2, 3)));
        live(seed, one_set(json!({})));
    }
}
