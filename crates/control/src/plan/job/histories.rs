//! Random histories: pods end as they like, users change their minds, watches lag, requests fail,
//! answers get lost, the controller crashes between any two steps. Every status written must be one
//! the API accepts, every pod must be counted once, and when the trouble is over the Job must end.

use jiff::SignedDuration;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::plan::job::{
    Waiting,
    world::{Luck, World, has_ended, is_active, is_tracked},
};

/// The kinds of Jobs there are.
fn specs() -> Vec<Value> {
    let ignore = json!({"rules": [
        {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [42]}},
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3]}},
    ]});
    let indexed = |more: Value| {
        let mut spec = json!({"completionMode": "Indexed", "completions": 4, "parallelism": 3});
        for (field, value) in more.as_object().unwrap() {
            spec[field] = value.clone();
        }
        spec
    };
    vec![
        json!({"parallelism": 2, "completions": 4}),
        json!({"parallelism": 3, "completions": 4, "backoffLimit": 2}),
        json!({"parallelism": 3}),
        json!({"parallelism": 2, "completions": 3, "podReplacementPolicy": "Failed"}),
        json!({"parallelism": 2, "completions": 3, "podFailurePolicy": ignore}),
        json!({"parallelism": 2, "completions": 3, "activeDeadlineSeconds": 100}),
        json!({"parallelism": 2, "completions": 3, "suspend": true}),
        indexed(json!({})),
        indexed(json!({"completions": 3, "suspend": true})),
        indexed(json!({"backoffLimitPerIndex": 1})),
        indexed(json!({"backoffLimitPerIndex": 1, "maxFailedIndexes": 1})),
        indexed(json!({"backoffLimitPerIndex": 2, "podFailurePolicy": {"rules": [
            {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [3]}},
            {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [42]}},
        ]}})),
        indexed(json!({"backoffLimitPerIndex": 1, "podReplacementPolicy": "Failed"})),
        indexed(json!({"podReplacementPolicy": "Failed", "completions": 6, "parallelism": 2,
            "successPolicy": {"rules": [{"succeededIndexes": "1-4"}]}})),
        indexed(json!({"backoffLimit": 3, "template": {"spec": {"restartPolicy": "OnFailure",
            "containers": [{"name": "c", "image": "i"}]}}})),
        indexed(json!({"successPolicy": {"rules": [{"succeededCount": 2}]}})),
        indexed(json!({"backoffLimit": 1,
            "successPolicy": {"rules": [{"succeededIndexes": "0,2-3", "succeededCount": 1}]}})),
    ]
}

fn act(world: &mut World, (what, which): (u8, u8)) {
    let which_of = |names: Vec<String>| {
        (!names.is_empty()).then(|| names[usize::from(which) % names.len()].clone())
    };
    let running: Vec<String> = world
        .pods
        .iter()
        .filter(|(_, pod)| !has_ended(pod))
        .map(|(name, _)| name.clone())
        .collect();
    match what {
        0..=3 => world.deliver(usize::from(which % 8)),
        4..=7 => {
            drop(world.pass());
        }
        8 => {
            world.lucks = (0..8)
                .map(|bit| match which >> bit & 1 {
                    1 if bit % 2 == 0 => Luck::Refused,
                    1 => Luck::Unanswered,
                    _ => Luck::Fine,
                })
                .collect();
            drop(world.pass());
            world.lucks.clear();
        }
        9 => {
            // A crash between two steps.
            if let Some((key, plan)) = world.driver.next(world.now) {
                world.carry_out(&key, &plan, usize::from(which % 5));
                world.restart();
            }
        }
        10 => which_of(running).into_iter().for_each(|name| world.run(&name)),
        11 | 12 => {
            let code = [0, 0, 0, 1, 1, 3, 42, 143][usize::from(which / 8) % 8];
            which_of(running).into_iter().for_each(|name| world.end(&name, code));
        }
        13 => drop(which_of(running).map(|name| world.delete_pod(&name))),
        14 => world.tick(i64::from(which)),
        15 => world.list(),
        16 => check_view(world),
        _ => change(world, which),
    }
}

/// What was kept up to date event by event is what a fresh look at everything shows: once there is
/// nothing to do, a controller that starts anew finds nothing to do either.
fn check_view(world: &mut World) {
    world.settle();
    let (before, waiting) = (world.log.len(), world.waiting.clone());
    world.restart();
    world.settle();
    // Pods that are gone take what they told of the back-off with them.
    if !matches!(waiting, Some(Waiting::BackOff { .. }) | None) {
        assert_eq!(world.log[before..], [""; 0], "{waiting:?}");
        assert_eq!(world.waiting, waiting);
    }
}

/// A user changes their mind.
fn change(world: &mut World, which: u8) {
    let Some(job) = world.job.clone() else { return };
    let spec = job.spec.unwrap();
    let is_indexed = spec.completion_mode.as_deref() == Some("Indexed");
    match which % 5 {
        0 => world.change(json!({"suspend": true})),
        1 => world.change(json!({"suspend": false})),
        2 => world.change(json!({"parallelism": which / 5 % 4})),
        3 if is_indexed && spec.success_policy.is_none() && spec.max_failed_indexes.is_none() => {
            let count = 1 + which / 5 % 5;
            world.change(json!({"parallelism": count, "completions": count}));
        }
        _ => world.change(json!({"backoffLimit": which / 5 % 8})),
    }
}

/// The trouble is over: the Job runs, all pods do what they should, and time passes.
fn recover(world: &mut World) {
    world.lucks.clear();
    world.list();
    world.change(json!({"suspend": false}));
    if world.job.as_ref().unwrap().spec.as_ref().unwrap().parallelism == Some(0) {
        world.change(json!({"parallelism": 1}));
    }
    for _ in 0..60 {
        world.settle();
        if world.is_finished() && world.driver.next_due().is_none_or(|due| due > world.now) {
            return;
        }
        world.end_terminating();
        world.succeed_all();
        let later = world.now + SignedDuration::from_secs(700);
        world.settle_until(later);
    }
    panic!("stuck: {:?} {:?} {:#?}", world.waiting, world.conditions(), world.status());
}

/// What must hold once a Job has ended.
fn check_end(world: &World) {
    let status = world.status();
    let spec = world.job.as_ref().unwrap().spec.clone().unwrap();
    assert!(matches!(world.waiting, Some(Waiting::Finished { .. })), "{:?}", world.waiting);
    assert!(!world.pods.values().any(|pod| is_tracked(pod) || is_active(pod)));
    let failed = world.listed.values().filter(|is_failure| **is_failure).count();
    assert_eq!(i64::from(status.failed.unwrap_or(0)), i64::try_from(failed).unwrap());
    if spec.completion_mode.as_deref() != Some("Indexed") {
        let succeeded = world.listed.values().filter(|is_failure| !**is_failure).count();
        assert_eq!(i64::from(status.succeeded.unwrap_or(0)), i64::try_from(succeeded).unwrap());
        // Each pod that ended under our eyes is in the books, unless a rule ignores it.
        for (uid, is_fine) in &world.ended {
            let is_ignored = spec.pod_failure_policy.is_some() && !is_fine;
            assert!(world.listed.contains_key(uid) || is_ignored, "{uid} was never counted");
        }
    }
    let conditions = world.conditions();
    let has = |kind: &str| conditions.iter().any(|one| one.starts_with(kind));
    assert!(has("Complete/") != has("Failed/"), "{conditions:?}");
    assert_eq!(has("Complete/"), has("SuccessCriteriaMet/"));
    assert_eq!(has("Failed/"), has("FailureTarget/"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    // rule: job 1.6, job 3.5, job 6.1.1, job 6.1.14
    #[test]
    fn every_history_ends_with_every_pod_counted_once(
        kind in 0..specs().len(),
        acts in proptest::collection::vec((0..19_u8, any::<u8>()), 0..120),
    ) {
        let mut world = World::new(specs()[kind].clone());
        let mut decided: Option<String> = None;
        for one in acts {
            act(&mut world, one);
            // What is decided stays.
            let now = world.conditions().into_iter().find(|one| {
                one.starts_with("SuccessCriteriaMet") || one.starts_with("FailureTarget")
            });
            if decided.is_some() {
                prop_assert_eq!(&now, &decided);
            }
            decided = now;
        }
        recover(&mut world);
        check_end(&world);
        let before = world.status();
        world.restart();
        world.settle();
        prop_assert_eq!(world.status(), before, "an ended Job is left alone");
    }

    // rule: job 3.15, job 3.2
    #[test]
    fn a_deleted_job_leaves_no_pod_behind_that_cannot_go(
        kind in 0..specs().len(),
        acts in proptest::collection::vec((0..19_u8, any::<u8>()), 0..60),
        late in proptest::collection::vec((0..14_u8, any::<u8>()), 0..30),
        is_patient: bool,
    ) {
        let mut world = World::new(specs()[kind].clone());
        for one in acts {
            act(&mut world, one);
        }
        if is_patient {
            world.delete_job();
            for one in late {
                act(&mut world, one);
            }
            world.list();
            world.settle_until(world.now + SignedDuration::from_secs(100));
            prop_assert!(!world.pods.values().any(is_tracked));
        }
        world.list();
        world.deliver(usize::MAX);
        world.remove_job();
        let later = world.now + SignedDuration::from_secs(100);
        world.settle_until(later);
        prop_assert!(!world.pods.values().any(is_tracked));
        prop_assert_eq!(world.driver.next_due(), None, "nothing is left to do");
    }
}
