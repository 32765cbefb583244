//! Whole histories of queued jobs, step by step.

mod building;
mod chance;
mod driving;
mod ending;
mod evicting;
mod keeping;
mod managing;
mod readiness;
mod seams;
mod starting;
mod stopping;

use serde_json::{Value, json};

use super::world::{World, job_key, set_key};
use super::{JobKey, Kind, Settings};

/// A Job of this many pods at a time and in all, that waits in queue `lq`.
fn job_spec(parallelism: i32, completions: i32) -> Value {
    json!({
        "parallelism": parallelism, "completions": completions, "suspend": true,
        "template": {
            "metadata": {"labels": {"app": "train"}, "annotations": {"note": "mine"}},
            "spec": {
                "restartPolicy": "Never",
                "nodeSelector": {"disk": "ssd"},
                "tolerations": [{"key": "own", "operator": "Exists"}],
                "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
            },
        },
    })
}

fn queued() -> Value {
    json!({"labels": {"kueue.x-k8s.io/queue-name": "lq"}})
}

/// A world with a Job of two pods that waits in queue `lq`, and a flavor for it.
fn one_job() -> (World, JobKey) {
    job_with(Settings::default(), queued(), job_spec(2, 2))
}

fn job_with(settings: Settings, meta: Value, spec: Value) -> (World, JobKey) {
    let mut world = World::new(settings);
    world.flavor("spot", flavor());
    world.create(Kind::Job, "a", meta, spec);
    world.settle();
    (world, job_key("a"))
}

fn flavor() -> Value {
    json!({
        "nodeLabels": {"pool": "spot"},
        "tolerations": [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}],
    })
}

/// A replicated job of two pods each, with these members.
fn group(name: &str, replicas: i32, more: Value) -> Value {
    let mut group = json!({"name": name, "replicas": replicas, "template": {"spec": {
        "parallelism": 2, "completions": 2,
        "template": {"spec": {"restartPolicy": "Never",
                              "containers": [{"name": "c", "image": "i"}]}},
    }}});
    for (key, value) in more.as_object().unwrap() {
        group[key] = value.clone();
    }
    group
}

/// A world with a JobSet of one driver and two workers that waits in queue `lq`.
fn one_set(more: Value) -> (World, JobKey) {
    let mut spec = json!({"suspend": true, "replicatedJobs": [
        group("driver", 1, json!({})), group("workers", 2, json!({})),
    ]});
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    let mut world = World::new(Settings::default());
    world.flavor("spot", flavor());
    world.create(Kind::JobSet, "js", queued(), spec);
    world.settle();
    (world, set_key("js"))
}

/// Starts the only job with flavor `spot`.
fn start(world: &mut World) {
    world.admit(json!({"cpu": "spot"}));
    world.settle();
    world.asked();
    world.events();
}

/// Sets `ready/succeeded/failed/active` of the replicated jobs of a set.
fn counts(world: &mut World, key: &JobKey, entries: &[(&str, [i32; 4])]) {
    let entries = entries.iter().map(|(name, [ready, succeeded, failed, active])| {
        json!({"name": name, "ready": ready, "succeeded": succeeded, "failed": failed,
               "active": active, "suspended": 0})
    });
    let entries: Vec<Value> = entries.collect();
    world.edit_job(key, |set| set["status"]["replicatedJobsStatus"] = entries.into());
}
