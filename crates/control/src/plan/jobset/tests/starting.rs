use serde_json::json;

use super::{group, pair};
use crate::plan::jobset::{Waiting, world::World};

// rule: jobset 3.6, jobset 3.12, jobset 3.15
#[test]
fn in_order_each_group_waits_for_the_one_before() {
    let mut world = pair(json!({"startupPolicy": {"startupPolicyOrder": "InOrder"},
        "failurePolicy": {"maxRestarts": 1}}));
    world.settle();
    assert_eq!(world.asked(), ["service", "create js-driver-0", "status"]);
    let progress = "StartupPolicyInProgress=True InOrderStartupPolicyInProgress: in order startup \
                    policy is in progress";
    let starting = |name: &str| {
        format!(
            "JobSetStartupPolicyCompleted=False StartupPolicyInOrder: replicated job {name} \
                 is starting"
        )
    };
    assert_eq!(world.conditions(), [progress.to_owned(), starting("driver")]);
    let waiting = |name: &str, replicas| Waiting::Starting {
        replicated_job: name.to_owned(),
        started: 0,
        replicas,
    };
    assert_eq!(world.waiting, Some(waiting("driver", 1)));
    world.ready(&["js-driver-0"]);
    world.settle();
    assert_eq!(world.asked(), ["create js-workers-0", "create js-workers-1", "status"]);
    assert_eq!(world.conditions(), [progress.to_owned(), starting("workers")]);
    world.ready(&["js-workers-0", "js-workers-1"]);
    world.settle();
    assert_eq!(
        world.conditions(),
        [
            "StartupPolicyInProgress=False InOrderStartupPolicyInProgress: in order startup \
             policy is in progress",
            "JobSetStartupPolicyCompleted=True StartupPolicyInOrder: startup policy successful",
            "StartupPolicyCompleted=True InOrderStartupPolicyCompleted: in order startup policy \
             has completed",
        ]
    );
    assert_eq!(
        world.events(),
        [
            "InOrderStartupPolicyInProgress in order startup policy is in progress",
            "InOrderStartupPolicyCompleted in order startup policy has completed",
        ]
    );
    // A restart begins anew.
    world.asked();
    world.fail("js-workers-0", "BackoffLimitExceeded", "");
    world.settle();
    world.collect();
    world.asked();
    world.settle();
    assert_eq!(world.asked(), ["create js-driver-0"]);
    assert!(world.conditions().contains(&starting("driver")), "{:?}", world.conditions());
    assert!(world.conditions().contains(&progress.to_owned()));
}

// rule: jobset 3.15
#[test]
fn a_group_starts_when_those_it_depends_on_have_come_far_enough() {
    for (status, is_enough) in [("Ready", true), ("Complete", false)] {
        let waiting = json!({"dependsOn": [{"name": "driver", "status": status}]});
        let mut world = World::new(json!({"replicatedJobs": [
            group("driver", 1, json!({})),
            group("workers", 1, waiting),
            group("free", 1, json!({})),
        ]}));
        world.settle();
        assert_eq!(world.asked(), ["service", "create js-driver-0", "create js-free-0", "status"]);
        let depending =
            Waiting::Depending { replicated_job: "workers".into(), on: "driver".into() };
        assert_eq!(world.waiting, Some(depending));
        world.ready(&["js-driver-0"]);
        world.settle();
        let asked = world.asked();
        let is_made = asked.contains(&"create js-workers-0".to_owned());
        assert_eq!(is_made, is_enough, "{status}");
        world.complete("js-driver-0");
        world.settle();
        assert!(world.jobs.contains_key("js-workers-0"));
        assert_eq!(world.conditions(), Vec::<String>::new());
    }
}

// rule: jobset 3.15, jobset Q12
#[test]
fn a_group_of_none_holds_nothing_up() {
    let waiting = json!({"dependsOn": [{"name": "none", "status": "Complete"}]});
    let groups = json!([group("none", 0, json!({})), group("workers", 1, waiting)]);
    let mut world = World::new(json!({"replicatedJobs": groups}));
    world.settle();
    assert!(world.jobs.contains_key("js-workers-0"));
    let mut world = World::new(json!({"replicatedJobs": [group("none", 0, json!({}))]}));
    world.settle();
    assert_eq!(world.conditions(), Vec::<String>::new(), "a set of nothing never completes");
}
