//! Why a workload waits, with numbers, and what would help.

use super::*;
use crate::plan::queue::Why;

fn why(world: &World, name: &str) -> (String, String, String) {
    let why = world.queues.why(&key(name)).cloned().unwrap();
    let change = why.smallest_change().unwrap_or_default();
    (why.reason().to_owned(), why.to_string(), change)
}

#[test]
fn numbers_and_holders_are_named() {
    let cohort = json!({"cohortName": "c"});
    let mut world = World::new(&[("q", gpus(4, cohort.clone())), ("r", gpus(2, cohort))]);
    world.add("a", "q", 3, 9, 0);
    world.add("b", "q", 1, 9, 1);
    world.run();
    world.add("w", "q", 4, 0, 2);
    world.run();
    let (reason, text, change) = why(&world, "w");
    assert_eq!(reason, "NotEnoughQuota");
    assert_eq!(
        text,
        "not enough quota in ClusterQueue q: asks for 4 gpu in flavor f, 2 free (2 of it \
         borrowed), held by ns/a (3), ns/b (1)"
    );
    assert_eq!(
        change,
        "raise nominalQuota of gpu in flavor f of ClusterQueue q by 2, or wait until ns/a ends"
    );
    let (_, reason, message) = world.condition("w", "lockstep.dev/Waiting");
    assert_eq!(reason, "NotEnoughQuota");
    assert_eq!(message, format!("{text}; position 1 of 1 in ClusterQueue q"));
}

#[test]
fn holders_beyond_five_are_counted() {
    let mut world = World::new(&[("q", gpus(7, json!({})))]);
    for at in 0..7 {
        world.add(&format!("h{at}"), "q", 1, 9, at);
    }
    world.run();
    world.add("w", "q", 1, 0, 20);
    world.run();
    let (_, text, change) = why(&world, "w");
    assert!(text.ends_with("ns/h3 (1), ns/h4 (1) and 2 more"), "{text}");
    assert!(change.ends_with("or wait until one of ns/h0, ns/h1, ns/h2, ns/h3, ns/h4 ends"));
}

#[test]
fn one_that_never_fits_is_told_by_how_much() {
    let mut world = World::new(&[("q", gpus(4, json!({})))]);
    world.add("w", "q", 9, 0, 0);
    world.run();
    let (reason, text, change) = why(&world, "w");
    assert_eq!(reason, "NeverFits");
    assert!(text.contains("current podset request (9) > maximum capacity (4)"), "{text}");
    assert_eq!(change, "raise nominalQuota of gpu in flavor f of ClusterQueue q by 5");
}

#[test]
fn every_why_has_words_and_most_a_remedy() {
    let until = at(5);
    let name = || "ClusterQueue q".to_owned();
    let cases = [
        Why::QueueMissing { queue: name() },
        Why::QueueStopped { queue: name() },
        Why::QueueInactive { queue: name(), message: "broken".to_owned() },
        Why::NamespaceMismatch { cluster_queue: "q".to_owned(), namespace: "ns".to_owned() },
        Why::BackOff { until },
        Why::Refused { until },
        Why::Deactivated,
        Why::Gated { by: "me".to_owned() },
        Why::InvalidRequests { message: "wrong".to_owned() },
        Why::BehindHead { cluster_queue: "q".to_owned(), head: key("h") },
        Why::WaitingForPreemptedWorkloads { victims: vec![key("v")] },
        Why::WaitingForPodsReady { unready: Default::default() },
    ];
    for why in cases {
        assert!(!why.to_string().is_empty() && why.smallest_change().is_some(), "{why:?}");
    }
    for why in [Why::OnHold, Why::FailedChecks, Why::NotRequeued { reason: "x".to_owned() }] {
        assert!(!why.to_string().is_empty() && why.smallest_change().is_none(), "{why:?}");
    }
}

#[test]
fn words_alone_are_written_late_and_once() {
    let mut world = World::new(&[("q", gpus(4, json!({})))]);
    world.add("a", "q", 2, 9, 0);
    world.add("b", "q", 2, 9, 1);
    world.run();
    world.add("w", "q", 4, 0, 2);
    world.run();
    assert!(world.quota("w").1.ends_with("4 more needed"));
    world.finish("a");
    assert_eq!(world.run(), [], "the reason is the same");
    let due = world.queues.next_due_after_statuses(world.now).unwrap();
    assert!(due > world.now);
    world.now = due;
    assert_eq!(world.run().len(), 1);
    assert!(world.quota("w").1.ends_with("2 more needed"));
    world.now = at(1000);
    assert_eq!(world.run(), []);
}
