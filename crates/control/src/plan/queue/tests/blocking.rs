//! `blockAdmission`: nobody is admitted while pods of others are not ready.

use lockstep_api::kueue::WaitForPodsReady;

use super::*;

const WAITS: &str = "WaitingForPodsReady";

fn blocking() -> Settings {
    let wait = WaitForPodsReady { block_admission: true, ..WaitForPodsReady::default() };
    Settings { wait: Some(wait), ..Settings::default() }
}

fn ready(world: &mut World, name: &str) {
    world.say(name, "PodsReady", "True", "Started");
}

// rule: queueing 1.3.6
// rule: queueing 2.10.1
// rule: queueing 2.10.2
// rule: queueing 2.10.3
#[test]
fn one_after_the_other_over_all_queues() {
    let queues = [("q", gpus(9, json!({}))), ("r", gpus(9, json!({})))];
    let mut world = World::with(blocking(), &queues);
    world.add("a", "q", 1, 0, 0);
    world.add("b", "q", 1, 0, 1);
    world.add("c", "r", 1, 0, 2);
    world.run();
    assert_eq!(world.holding(), BTreeSet::from(["a"]));
    let message = "waiting for all admitted workloads to be in PodsReady condition";
    let shown = ["b", "c"].into_iter().filter(|name| world.quota(name).0 == WAITS);
    assert_eq!(shown.collect::<Vec<_>>(), ["c"], "only one says so");
    assert_eq!(world.quota("c"), (WAITS.to_owned(), message.to_owned()));
    let (_, reason, text) = world.condition("b", "lockstep.dev/Waiting");
    assert_eq!(reason, WAITS);
    assert!(text.starts_with("waits until the pods of others are ready: ns/a"), "{text}");
    ready(&mut world, "a");
    world.run();
    assert_eq!(world.holding().len(), 2);
    let second = if world.holding().contains("b") { "b" } else { "c" };
    world.finish(second);
    world.run();
    let last = if second == "b" { "c" } else { "b" };
    assert!(world.holding().contains(last), "one that has ended blocks nobody");
}

// rule: queueing 2.10.3
#[test]
fn what_ends_a_wait() {
    type Event = fn(&mut World);
    let cases: [(&str, Event, bool); 5] = [
        ("ready", |world| ready(world, "a"), true),
        ("finished", |world| world.finish("a"), true),
        ("gone", |world| world.queues.workload_gone(&key("a"), "uid-a", world.now), true),
        ("evicted", |world| world.say("a", "Evicted", "True", "PodsReadyTimeout"), false),
        (
            "evicted and released",
            |world| {
                world.say("a", "Evicted", "True", "PodsReadyTimeout");
                world.release("a");
            },
            true,
        ),
    ];
    for (name, event, want) in cases {
        let mut world = World::with(blocking(), &[("q", gpus(9, json!({})))]);
        world.add("a", "q", 1, 0, 0);
        world.add("b", "q", 1, 0, 1);
        world.run();
        event(&mut world);
        world.run();
        assert_eq!(world.holding().contains("b"), want, "{name}");
    }
}

// rule: queueing 2.10.4
#[test]
fn readiness_that_is_lost_blocks_again() {
    let mut world = World::with(blocking(), &[("q", gpus(9, json!({})))]);
    world.add("a", "q", 1, 0, 0);
    world.run();
    ready(&mut world, "a");
    world.run();
    world.say("a", "PodsReady", "False", "WaitForRecovery");
    world.add("b", "q", 1, 0, 1);
    world.run();
    assert_eq!(world.quota("b").0, WAITS);
    world.say("a", "PodsReady", "True", "Recovered");
    world.run();
    assert_eq!(world.holding(), BTreeSet::from(["a", "b"]));
}

// rule: queueing 2.10.2
#[test]
fn preemptions_are_not_held_up() {
    let within = json!({"preemption": {"withinClusterQueue": "LowerPriority"}});
    let queues = [("q", gpus(4, within)), ("r", gpus(4, json!({})))];
    let mut world = World::with(blocking(), &queues);
    world.add("low", "q", 4, 0, 0);
    world.run();
    world.add("other", "r", 1, 0, 1);
    world.add("high", "q", 4, 9, 2);
    world.run();
    assert_eq!(world.condition("low", "Evicted").1, "Preempted");
    assert_eq!(world.quota("other").0, WAITS);
    world.release("low");
    world.run();
    assert_eq!(world.holding().len(), 1, "then one of the two goes first");
}

// rule: queueing 2.10.1
#[test]
fn annotations_say_among_whom() {
    let blocks = json!({"lockstep.dev/block-admission": "true"});
    let queues = [("q", gpus(9, json!({}))), ("r", gpus(9, json!({})))];
    // For a ClusterQueue: only those of that queue wait for each other.
    let mut world = World::new(&queues);
    world.cluster_with("q", gpus(9, json!({})), blocks.clone());
    for (at, (name, queue)) in
        [("a", "q"), ("b", "q"), ("c", "r"), ("d", "r")].into_iter().enumerate()
    {
        world.add(name, queue, 1, 0, i64::try_from(at).unwrap());
    }
    world.run();
    assert_eq!(world.holding(), BTreeSet::from(["a", "c", "d"]));
    // For a LocalQueue: another one of the same ClusterQueue does not count.
    let mut world = World::new(&queues);
    world.local_with("s", json!({"clusterQueue": "q"}), blocks.clone());
    for (at, (name, queue)) in [("a", "q"), ("b", "s"), ("c", "s")].into_iter().enumerate() {
        world.add(name, queue, 1, 0, i64::try_from(at).unwrap());
    }
    world.run();
    assert_eq!(world.holding(), BTreeSet::from(["a", "b"]));
    // For a workload: only it waits, for those of its ClusterQueue.
    let mut world = World::new(&queues);
    world.add("a", "q", 1, 0, 0);
    world.add("c", "r", 1, 0, 1);
    world.run();
    world.cluster("q", gpus(9, json!({"stopPolicy": "Hold"})));
    world.add("b", "q", 1, 5, 2);
    world.change("b", |workload| {
        let annotation = ("lockstep.dev/block-admission".to_owned(), "true".to_owned());
        workload.metadata.annotations = Some([annotation].into());
    });
    world.cluster("q", gpus(9, json!({})));
    world.run();
    assert_eq!(world.holding(), BTreeSet::from(["a", "c"]));
    // Nobody waits for those whose pods nobody waits for.
    let mut world = World::with(blocking(), &queues);
    let off = json!({"lockstep.dev/wait-for-pods-ready": "false"});
    world.cluster_with("r", gpus(9, json!({})), off);
    world.add("c", "r", 1, 0, 0);
    world.run();
    world.add("a", "q", 1, 0, 1);
    world.run();
    assert_eq!(world.holding(), BTreeSet::from(["a", "c"]));
}

// rule: queueing 2.10.3
#[test]
fn who_is_told_not_to_wait_any_more_goes_on() {
    type Event = fn(&mut World);
    let cases: [(&str, Event); 4] = [
        ("the one that waits need not", |world| annotate(world, "b", "block-admission", "false")),
        ("nor does it wait for pods", |world| annotate(world, "b", "wait-for-pods-ready", "false")),
        ("its LocalQueue need not", |world| {
            let annotations = json!({"lockstep.dev/block-admission": "false"});
            world.local_with("q", json!({"clusterQueue": "q"}), annotations);
        }),
        ("nobody waits for the pods of the other", |world| {
            annotate(world, "a", "wait-for-pods-ready", "false");
        }),
    ];
    for (name, event) in cases {
        let mut world = World::with(blocking(), &[("q", gpus(9, json!({})))]);
        world.add("a", "q", 1, 0, 0);
        world.add("b", "q", 1, 0, 1);
        world.run();
        assert_eq!(world.quota("b").0, WAITS);
        event(&mut world);
        world.run();
        assert_eq!(world.holding(), BTreeSet::from(["a", "b"]), "{name}");
    }
}

fn annotate(world: &mut World, name: &str, annotation: &str, value: &str) {
    world.change(name, |workload| {
        let annotation = (format!("lockstep.dev/{annotation}"), value.to_owned());
        workload.metadata.annotations = Some([annotation].into());
    });
}

// rule: queueing 2.10.1
#[test]
fn kep_349_integration_scenario_1_no_workload_before_the_first_is_ready() {
    let mut world = World::with(blocking(), &[("q", gpus(20, json!({})))]);
    world.add("one", "q", 6, 0, 0);
    world.add("two", "q", 6, 0, 1);
    world.run();
    assert_eq!(world.holding(), BTreeSet::from(["one"]));
    ready(&mut world, "one");
    world.run();
    assert_eq!(world.holding(), BTreeSet::from(["one", "two"]));
}

// rule: queueing 2.10.3
#[test]
fn kep_349_integration_scenario_2_the_next_goes_on_when_the_first_timed_out() {
    let mut world = World::with(blocking(), &[("q", gpus(20, json!({})))]);
    world.add("one", "q", 6, 0, 0);
    world.add("two", "q", 6, 0, 1);
    world.run();
    world.now = at(500);
    world.say("one", "Evicted", "True", "PodsReadyTimeout");
    world.run();
    assert_eq!(world.holding(), BTreeSet::from(["one"]), "its pods are not gone yet");
    world.release("one");
    world.run();
    assert_eq!(world.holding(), BTreeSet::from(["two"]));
    // Put back by the time of its eviction it stands behind, and waits for the other.
    world.say("one", "Requeued", "True", "BackoffFinished");
    world.run();
    assert_eq!(world.quota("one").0, WAITS);
    ready(&mut world, "two");
    world.run();
    assert_eq!(world.holding(), BTreeSet::from(["one", "two"]));
}

#[test]
fn an_admission_that_is_answered_lets_nobody_else_be_tried() {
    let names = ["q", "r", "s", "t"];
    let queues = names.map(|name| (name, gpus(9, json!({}))));
    let mut world = World::with(blocking(), &queues);
    for (second, name) in names.iter().enumerate() {
        world.add(&format!("of-{name}"), name, 1, 0, i64::try_from(second).unwrap());
    }
    let mut cycle = world.cycle();
    assert_eq!(cycle.visited, names.len());
    while !cycle.decisions.is_empty() {
        for decision in &cycle.decisions {
            world.carry_out(decision.write());
        }
        cycle = world.cycle();
        assert_eq!(cycle.visited, 0, "all wait for the pods of one");
    }
    assert_eq!(world.holding().len(), 1);
}
