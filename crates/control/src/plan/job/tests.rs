//! Whole histories of Jobs, step by step.

mod backing_off;
mod counting;
mod driving;
mod ending;
mod managing;
mod success_policy;
mod suspending;

use serde_json::{Value, json};

use crate::plan::job::{
    HoldingUp, Waiting,
    world::{World, is_tracked},
};

/// The spec of an Indexed Job with so many indexes, all at once, and more.
pub(crate) fn indexed(completions: i32, more: Value) -> Value {
    let mut spec = json!({"completionMode": "Indexed", "completions": completions,
        "parallelism": completions});
    let Value::Object(more) = more else { panic!("not an object") };
    for (field, value) in more {
        spec[field] = value;
    }
    spec
}

fn texts(world: &World) -> Vec<String> {
    world.events.iter().map(|event| format!("{} {}", event.reason, event.message)).collect()
}

// rule: job 3.3, job 3.3.15, job 3.5, job 4.2, job 6.1.1, job 6.1.2
#[test]
fn a_job_of_one_pod_runs_from_start_to_end() {
    let mut world = World::new(json!({}));
    world.settle();
    let status = world.status();
    assert_eq!((status.active, status.ready, status.terminating), (Some(1), Some(0), Some(0)));
    assert!(status.start_time.is_some() && status.uncounted_terminated_pods.is_some());
    assert_eq!(world.log.iter().filter(|what| *what == "status").count(), 1);
    let name = world.active().remove(0);
    assert!(name.starts_with("j-") && name.len() == 7, "{name}");
    world.run(&name);
    world.settle();
    assert_eq!(world.status().ready, Some(1));
    assert_eq!(world.waiting, Some(Waiting::Running { active: 1, ready: 1, deadline: None }));
    world.log.clear();
    world.tick(5);
    world.end(&name, 0);
    world.settle();
    assert_eq!(world.log, ["status", &format!("strip {name}"), "status"]);
    let status = world.status();
    assert_eq!(
        world.conditions(),
        ["SuccessCriteriaMet/CompletionsReached", "Complete/CompletionsReached"]
    );
    assert_eq!((status.active, status.ready, status.succeeded), (None, Some(0), Some(1)));
    assert_eq!(status.completion_time.unwrap().0, world.now);
    assert_eq!(
        texts(&world),
        [format!("SuccessfulCreate Created pod: {name}"), "Completed Job completed".into()]
    );
    assert_eq!(world.waiting, Some(Waiting::Finished { condition: "Complete" }));
    assert!(!is_tracked(world.pod(&name)));
}

// rule: job 3.6.4, job 3.7, job 6.1.7, job 6.1.9
#[test]
fn a_job_fails_with_one_failure_more_than_its_limit_and_all_its_pods_with_it() {
    let mut world = World::new(json!({"parallelism": 3, "completions": 3, "backoffLimit": 0}));
    world.settle();
    let pods = world.active();
    world.run(&pods[0]);
    world.run(&pods[1]);
    world.end(&pods[2], 1);
    world.settle();
    assert_eq!(world.conditions(), ["FailureTarget/BackoffLimitExceeded"]);
    let status = world.status();
    assert_eq!((status.failed, status.active, status.terminating), (Some(3), None, Some(2)));
    let names = [pods[0].clone(), pods[1].clone()];
    let Some(Waiting::PodsTerminating { holding_up, pods, total: 2 }) = &world.waiting else {
        panic!("{:?}", world.waiting);
    };
    assert_eq!((holding_up, pods.as_slice()), (&HoldingUp::Failed, names.as_slice()));
    world.end_terminating();
    world.settle();
    assert_eq!(
        world.conditions(),
        ["FailureTarget/BackoffLimitExceeded", "Failed/BackoffLimitExceeded"]
    );
    assert_eq!(world.status().failed, Some(3));
    assert_eq!(
        texts(&world).last().unwrap(),
        "BackoffLimitExceeded Job has reached the specified backoff limit"
    );
}
