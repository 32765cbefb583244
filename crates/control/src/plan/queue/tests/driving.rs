//! What the shell tells, what it is told, and what that costs.

use super::*;
use crate::plan::{
    Refusal, RefusalKind,
    queue::{LocalQueueAround, Owner, Stop},
};

fn refusal(kind: RefusalKind) -> Refusal {
    Refusal { kind, message: "no".to_owned() }
}

#[test]
fn nothing_is_decided_before_everything_is_known() {
    let mut queues = Queues::new(Settings::default());
    assert!(queues.cycle(at(0)).decisions.is_empty() && queues.next_due().is_none());
    queues.flavors_listed();
    queues.cluster_queues_listed();
    queues.local_queues_listed();
    queues.namespaces_listed();
    queues.limit_ranges_listed();
    queues.runtime_classes_listed();
    assert!(queues.take_statuses(at(0)).is_empty() && !queues.is_ready());
    queues.workloads_listed();
    assert!(queues.is_ready());
}

#[test]
fn a_carried_out_plan_leaves_nothing_to_do() {
    let within = json!({"preemption": {"withinClusterQueue": "LowerPriority"}});
    let strict = json!({"queueingStrategy": "StrictFIFO"});
    let mut world = World::new(&[("q", gpus(4, within)), ("r", gpus(4, strict))]);
    for (at, (queue, amount, priority)) in
        [("q", 3, 0), ("q", 2, 5), ("q", 9, 0), ("r", 2, 0), ("r", 4, 0), ("r", 1, 0), ("x", 1, 0)]
            .into_iter()
            .enumerate()
    {
        let created = i64::try_from(at).unwrap();
        world.add(&format!("w{at}"), queue, amount, priority, created);
    }
    world.run();
    while !world.write_statuses().is_empty() {
        world.now = world.now.checked_add(jiff::SignedDuration::from_secs(1)).unwrap();
    }
    let _ = world.queues.take_finalizers(world.now);
    assert_eq!(world.cycle().decisions, []);
    assert_eq!(world.queues.next_due(), None, "only news can change anything");
    // The same again, told anew as after a broken watch, is no news.
    for workload in world.workloads.values() {
        world.queues.workload_seen(workload, world.now);
    }
    let cycle = world.cycle();
    assert_eq!((cycle.decisions.len(), cycle.visited), (0, 0));
}

#[test]
fn what_was_decided_counts_before_it_is_written() {
    let mut world = World::new(&[("q", gpus(4, json!({})))]);
    world.add("a", "q", 3, 0, 0);
    let first = world.cycle();
    assert_eq!(first.decisions.len(), 1);
    world.add("b", "q", 3, 0, 1);
    let second = world.cycle();
    assert!(matches!(second.decisions[..], [Decision::Pend(_)]), "{second:?}");
    // An old version that comes late changes nothing.
    world.say("a", "PodsReady", "False", "WaitForStart");
    assert!(world.cycle().decisions.is_empty());
}

#[test]
fn an_admission_that_was_refused_is_given_back_and_tried_again() {
    for kind in [RefusalKind::Refused, RefusalKind::NotFound] {
        let mut world = World::new(&[("q", gpus(4, json!({})))]);
        world.add("a", "q", 3, 0, 0);
        world.add("b", "q", 3, 0, 1);
        let cycle = world.cycle();
        let write = cycle.decisions[0].write().clone();
        assert_eq!(write.key, key("a"));
        world.queues.refused(&write.key, write.id, &refusal(kind), world.now);
        let next = world.cycle();
        let admits: Vec<&Key> = next
            .decisions
            .iter()
            .filter(|it| matches!(it, Decision::Admit(_)))
            .map(|it| &it.write().key)
            .collect();
        assert_eq!(admits, [&key("b")], "it does not keep others from what it cannot have");
        let again = world.cycle();
        assert!(again.decisions.is_empty(), "{kind:?}: not at once: {again:?}");
    }
    let mut world = World::new(&[("q", gpus(4, json!({})))]);
    world.add("a", "q", 3, 0, 0);
    let write = world.cycle().decisions[0].write().clone();
    world.queues.refused(&write.key, write.id, &refusal(RefusalKind::Conflict), world.now);
    assert!(world.cycle().decisions.iter().all(|it| !matches!(it, Decision::Admit(_))));
    world.say("a", "PodsReady", "False", "WaitForStart");
    world.run();
    assert_eq!(world.holding(), BTreeSet::from(["a"]), "news make it worth trying");
    // Without news it is tried again after a while.
    let mut world = World::new(&[("q", gpus(4, json!({})))]);
    world.add("a", "q", 3, 0, 0);
    let write = world.cycle().decisions[0].write().clone();
    world.queues.refused(&write.key, write.id, &refusal(RefusalKind::Refused), world.now);
    world.now = at(101);
    world.run();
    assert_eq!(world.holding(), BTreeSet::from(["a"]));
}

#[test]
fn an_admission_in_doubt_counts_until_it_is_known() {
    let mut world = World::new(&[("q", gpus(4, json!({})))]);
    world.add("a", "q", 3, 0, 0);
    world.add("b", "q", 3, 0, 1);
    let cycle = world.cycle();
    let write = cycle.decisions[0].write().clone();
    world.queues.refused(&write.key, write.id, &refusal(RefusalKind::Other), world.now);
    let admitted = |cycle: &Cycle| {
        let admissions = cycle.decisions.iter().filter(|it| matches!(it, Decision::Admit(_)));
        admissions.map(|it| it.write().clone()).collect::<Vec<Write>>()
    };
    assert_eq!(admitted(&world.cycle()), [], "b could take what a may have");
    // It is said again of the same version: only one of the two can be carried out.
    world.now = at(101);
    let again = admitted(&world.cycle());
    assert_eq!((&*again[0].key.name, &again[0].version), ("a", &write.version), "{again:?}");
    assert_eq!(again.len(), 1, "{again:?}");
    // What is known not to have been carried out is given back.
    world.queues.refused(&again[0].key, again[0].id, &refusal(RefusalKind::Refused), world.now);
    let next = admitted(&world.cycle());
    assert_eq!(&*next[0].key.name, "b", "{next:?}");
}

#[test]
fn an_admission_in_doubt_is_not_said_again_of_what_others_were_given() {
    let mut world = World::new(&[("q", gpus(4, json!({})))]);
    world.add("a", "q", 3, 0, 0);
    let write = world.cycle().decisions[0].write().clone();
    world.queues.refused(&write.key, write.id, &refusal(RefusalKind::Other), world.now);
    // Another leader has admitted somebody.
    world.add("b", "q", 3, 0, 1);
    world.change("b", |b| b.status = Some(write.status.clone()));
    world.now = at(130);
    assert_eq!(world.cycle().decisions, []);
    // After so long a time without news it was not carried out.
    world.now = at(161);
    world.run();
    assert_eq!(world.quota("a").0, "WaitingForQuota");
    assert_eq!(world.holding(), BTreeSet::from(["b"]));
}

#[test]
fn an_admission_of_a_version_that_is_gone_was_never_carried_out() {
    let mut world = World::new(&[("q", gpus(4, json!({})))]);
    world.add("a", "q", 3, 0, 0);
    let write = world.cycle().decisions[0].write().clone();
    world.say("a", "PodsReady", "False", "WaitForStart");
    world.queues.refused(&write.key, write.id, &refusal(RefusalKind::Other), world.now);
    let next = world.cycle();
    let next: Vec<&Write> = next.decisions.iter().map(Decision::write).collect();
    assert_eq!(&*next[0].key.name, "a");
    assert_ne!(next[0].version, write.version);
}

#[test]
fn an_admission_that_met_another_version_counts_until_that_is_seen() {
    // It may have been this very admission that made it: a request can arrive twice.
    let mut world = World::new(&[("q", gpus(4, json!({})))]);
    world.add("a", "q", 3, 0, 0);
    world.add("b", "q", 3, 0, 1);
    let cycle = world.cycle();
    let write = cycle.decisions[0].write().clone();
    world.queues.refused(&write.key, write.id, &refusal(RefusalKind::Conflict), world.now);
    world.now = at(105);
    let next = world.cycle();
    assert!(!next.decisions.iter().any(|it| matches!(it, Decision::Admit(_))), "{next:?}");
    world.say("a", "PodsReady", "False", "WaitForStart");
    let later = world.cycle();
    assert!(later.decisions.iter().any(|it| matches!(it, Decision::Admit(_))), "{later:?}");
}

#[test]
fn words_that_were_refused_are_not_said_again_at_once() {
    let mut world = World::new(&[("q", gpus(4, json!({})))]);
    world.add("big", "q", 5, 0, 0);
    let write = world.cycle().decisions[0].write().clone();
    world.queues.refused(&write.key, write.id, &refusal(RefusalKind::Conflict), world.now);
    assert!(world.cycle().decisions.is_empty(), "nobody has heard anything new");
    world.now = at(105);
    assert_eq!(world.cycle().decisions.len(), 1, "but it is not forgotten");
}

#[test]
fn a_preemption_that_was_refused_is_thought_over() {
    let within = json!({"preemption": {"withinClusterQueue": "LowerPriority"}});
    let mut world = World::new(&[("q", gpus(4, within))]);
    world.add("low", "q", 4, 0, 0);
    world.run();
    world.add("high", "q", 4, 9, 1);
    let cycle = world.cycle();
    let preempt = cycle.decisions.iter().find(|it| matches!(it, Decision::Preempt(_))).unwrap();
    let write = preempt.write().clone();
    world.queues.refused(&write.key, write.id, &refusal(RefusalKind::Conflict), world.now);
    let again = world.cycle();
    assert!(!again.decisions.iter().any(|it| matches!(it, Decision::Preempt(_))), "no news yet");
    world.say("low", "PodsReady", "True", "Started");
    let again = world.cycle();
    assert!(again.decisions.iter().any(|it| matches!(it, Decision::Preempt(_))), "{again:?}");
}

// rule: queueing 4.1.2
#[test]
fn what_wakes_those_that_do_not_fit() {
    type Event = fn(&mut World);
    let cases: [(&str, Event); 9] = [
        ("finished", |world| world.finish("hog")),
        ("gone", |world| world.queues.workload_gone(&key("hog"), "uid-hog", world.now)),
        ("released", |world| {
            world.say("hog", "Evicted", "True", "Deactivated");
            world.release("hog");
        }),
        ("pods reclaimed", |world| {
            world.change("hog", |workload| {
                let pods = json!([{"name": "main", "count": 1}]);
                let status = workload.status.get_or_insert_default();
                status.reclaimable_pods = serde_json::from_value(pods).unwrap();
            });
        }),
        ("more quota", |world| world.cluster("q", gpus(9, json!({"cohortName": "c"})))),
        ("more quota in the cohort", |world| {
            world.cluster("r", gpus(9, json!({"cohortName": "c"})));
        }),
        ("another joins", |world| {
            world.cluster("new", gpus(9, json!({"cohortName": "c"})));
        }),
        ("smaller", |world| {
            world.change("w", |workload| {
                let smaller = workload.spec.pod_sets[0].template.spec.as_mut().unwrap();
                smaller.containers.clear();
            });
        }),
        ("a flavor for it", |world| {
            world.flavor("f", json!({"nodeLabels": {"a": "b"}}));
            world.finish("hog");
        }),
    ];
    for (name, event) in cases {
        let cohort = json!({"cohortName": "c"});
        let mut world = World::new(&[("q", gpus(4, cohort.clone())), ("r", gpus(0, cohort))]);
        world.add("hog", "q", 4, 9, 0);
        world.run();
        world.add("w", "q", 4, 0, 1);
        world.run();
        assert_eq!(world.quota("w").0, "WaitingForQuota");
        event(&mut world);
        world.run();
        assert!(world.holding().contains("w"), "{name}");
    }
    let mut world = World::new(&[]);
    world.cluster("q", gpus(4, json!({"namespaceSelector": {"matchLabels": {"a": "b"}}})));
    world.local("q", json!({"clusterQueue": "q"}));
    world.add("w", "q", 1, 0, 0);
    world.run();
    let labels = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
    world.queues.namespace_seen("ns", &labels, world.now);
    world.run();
    assert_eq!(world.holding(), BTreeSet::from(["w"]));
}

#[test]
fn what_a_cycle_costs_does_not_grow_with_those_that_wait() {
    let mut visits = Vec::new();
    for count in [10, 1_000] {
        let mut world = World::new(&[("q", gpus(4, json!({})))]);
        world.add("hog", "q", 4, 9, 0);
        world.run();
        for at in 0..count {
            world.add(&format!("w{at:05}"), "q", 2, 0, at);
        }
        world.run();
        let mut visited = 0;
        for round in 0..5 {
            // Something of another size comes, and something ends that frees too little.
            world.add(&format!("new{round}"), "q", 3, 0, 5_000 + round);
            visited += world.cycle().visited;
            world.change("hog", |workload| {
                workload.spec.priority = Some(9 + i32::try_from(round).unwrap())
            });
            visited += world.cycle().visited;
        }
        visits.push(visited);
    }
    assert_eq!(visits[0], visits[1], "{visits:?}");
    assert!(visits[0] <= 20, "{visits:?}");
}

#[test]
fn many_workloads_are_planned_quickly() {
    let cohorts: Vec<(String, Value)> = (0..30)
        .map(|at| {
            let more = json!({"cohortName": format!("c{}", at / 6), "preemption": {
                "reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}});
            (format!("q{at}"), gpus(20, more))
        })
        .collect();
    let queues: Vec<(&str, Value)> =
        cohorts.iter().map(|(name, spec)| (name.as_str(), spec.clone())).collect();
    let mut world = World::new(&queues);
    for at in 0..3_000_i64 {
        let (amount, priority) = [(1, 50), (5, 100), (20, 200)][usize::try_from(at % 3).unwrap()];
        world.add(&format!("w{at:05}"), &format!("q{}", at % 30), amount, priority, at);
    }
    let mut finished = 0;
    let mut visited = 0;
    while finished < 3_000 {
        for _ in 0..20 {
            let cycle = world.cycle();
            visited += cycle.visited;
            if cycle.decisions.is_empty() {
                break;
            }
            for decision in &cycle.decisions {
                world.carry_out(decision.write());
            }
        }
        let done: Vec<String> = world.holding().into_iter().map(str::to_owned).collect();
        assert!(!done.is_empty(), "stuck with {finished}");
        for name in done {
            if world.condition(&name, "Evicted").0 == "True" {
                world.release(&name);
            } else {
                world.finish(&name);
                finished += 1;
            }
        }
    }
    assert!(visited < 3_000 * 20, "{visited}");
}

// rule: queueing 1.4.2
// rule: queueing 1.5.1
#[test]
fn queues_tell_what_is_used_and_who_waits() {
    let cohort = json!({"cohortName": "c"});
    let mut world = World::new(&[("q", gpus(4, cohort.clone())), ("r", gpus(4, cohort))]);
    world.add("a", "q", 5, 0, 0);
    world.add("b", "q", 9, 0, 1);
    world.add("c", "q", 4, 0, 2);
    world.run();
    world.write_statuses();
    let usage = json!([{"name": "f", "resources": [
        {"name": "gpu", "total": "5", "borrowed": "1"}]}]);
    let status = &world.statuses["q"];
    assert_eq!(status["flavorsReservation"], usage);
    assert_eq!(status["flavorsUsage"], usage);
    assert_eq!(
        [&status["pendingWorkloads"], &status["reservingWorkloads"], &status["admittedWorkloads"]],
        [2, 1, 1]
    );
    assert_eq!(status["conditions"][0]["reason"], "Ready");
    assert_eq!(status["conditions"][0]["message"], "Can admit new workloads");
    let local = &world.statuses["local q"];
    let usage = json!([{"name": "f", "resources": [{"name": "gpu", "total": "5"}]}]);
    assert_eq!(local["flavorsReservation"], usage);
    assert_eq!([&local["pendingWorkloads"], &local["reservingWorkloads"]], [2, 1]);
    assert_eq!(local["conditions"][0]["message"], "Can submit new workloads to localQueue");
    world.finish("a");
    world.run();
    assert!(world.write_statuses().is_empty(), "not at once after another");
    world.now = at(101);
    assert!(!world.write_statuses().is_empty());
    assert_eq!(world.statuses["q"]["reservingWorkloads"], 1);
}

// rule: queueing 1.5.1
#[test]
fn local_queues_say_whether_they_work() {
    type Setup = fn(&mut World);
    let elsewhere = "Can't submit new workloads to clusterQueue";
    let cases: [(Setup, &str, &str); 3] = [
        (
            |world| world.local("x", json!({"clusterQueue": "q", "stopPolicy": "Hold"})),
            "Stopped",
            "LocalQueue is stopped",
        ),
        (
            |world| world.local("x", json!({"clusterQueue": "y"})),
            "ClusterQueueDoesNotExist",
            elsewhere,
        ),
        (
            |world| {
                world.local("x", json!({"clusterQueue": "q"}));
                world.cluster("q", gpus(4, json!({"stopPolicy": "Hold"})));
            },
            "ClusterQueueIsInactive",
            elsewhere,
        ),
    ];
    for (setup, reason, message) in cases {
        let mut world = World::new(&[("q", gpus(4, json!({})))]);
        setup(&mut world);
        world.write_statuses();
        let active = &world.statuses["local x"]["conditions"][0];
        assert_eq!(active["status"], "False");
        assert_eq!((&active["reason"], &active["message"]), (&json!(reason), &json!(message)));
    }
}

#[test]
fn a_status_that_was_refused_is_tried_again() {
    let mut world = World::new(&[("q", gpus(4, json!({})))]);
    assert_eq!(world.queues.take_statuses(world.now).len(), 2);
    assert_eq!(world.queues.take_statuses(at(200)).len(), 0);
    world.queues.cluster_queue_status_refused("q", at(200));
    world.queues.local_queue_status_refused(&key("q"), at(200));
    assert_eq!(world.queues.take_statuses(at(200)).len(), 0);
    assert_eq!(world.queues.take_statuses(at(201)).len(), 2);
}

#[test]
fn what_is_in_use_is_kept_and_let_go_when_it_is_not() {
    let mut world = World::new(&[("q", gpus(4, json!({})))]);
    let finalizer = "kueue.x-k8s.io/resource-in-use";
    let wanted = world.queues.take_finalizers(world.now);
    let owners: Vec<&Owner> = wanted.iter().map(|it| &it.of).collect();
    let queue = Owner::ClusterQueue("q".to_owned());
    let flavor = Owner::ResourceFlavor("f".to_owned());
    assert_eq!(owners, [&queue, &flavor]);
    assert_eq!(wanted[0].finalizers, [finalizer]);
    assert_eq!(world.queues.take_finalizers(world.now), []);
    world.queues.finalizers_refused(&queue, world.now);
    assert_eq!(world.queues.take_finalizers(at(101)).len(), 1);
    world.add("a", "q", 1, 0, 0);
    world.run();
    // Deleted while somebody holds quota: it stays until that is over.
    let object = json!({"metadata": {"name": "q", "uid": "uid-q", "resourceVersion": "900",
        "finalizers": [finalizer, "other"], "deletionTimestamp": at(1).to_string()},
        "spec": gpus(4, json!({}))});
    let deleted: ClusterQueue = serde_json::from_value(object).unwrap();
    world.queues.cluster_queue_seen(&Arc::new(deleted), world.now);
    let wanted = world.queues.take_finalizers(world.now);
    assert!(!wanted.iter().any(|it| it.of == queue), "{wanted:?}");
    world.finish("a");
    let wanted = world.queues.take_finalizers(world.now);
    assert_eq!((&wanted[0].of, &wanted[0].finalizers[..]), (&queue, &["other".to_owned()][..]));
    world.queues.cluster_queue_gone("q", "uid-q", world.now);
    let object = json!({"metadata": {"name": "f", "uid": "uid-f", "resourceVersion": "901",
        "finalizers": [finalizer], "deletionTimestamp": at(1).to_string()}});
    let deleted: ResourceFlavor = serde_json::from_value(object).unwrap();
    world.queues.flavor_seen(&Arc::new(deleted), world.now);
    let wanted = world.queues.take_finalizers(world.now);
    assert_eq!((&wanted[0].of, wanted[0].finalizers.len()), (&flavor, 0));
}

#[test]
fn a_queue_that_is_made_anew_works_on() {
    let mut world = World::new(&[("q", gpus(4, json!({})))]);
    world.add("a", "q", 3, 0, 0);
    world.run();
    world.queues.cluster_queue_gone("q", "another", world.now);
    world.queues.cluster_queue_gone("q", "uid-q", world.now);
    world.add("b", "q", 3, 0, 1);
    world.run();
    assert_eq!(world.condition("b", "lockstep.dev/Waiting").1, "QueueMissing");
    world.cluster("q", gpus(4, json!({})));
    world.run();
    assert_eq!(world.quota("b").0, "WaitingForQuota", "what the other holds is not forgotten");
    world.finish("a");
    world.run();
    assert_eq!(world.holding(), BTreeSet::from(["b"]));
}

#[test]
fn those_that_wait_in_a_queue_on_hold_are_counted() {
    let pending = |world: &World, name: &str| world.statuses[name]["pendingWorkloads"].clone();
    for (of_cluster, of_local) in [("None", "None"), ("Hold", "None"), ("None", "Hold")] {
        let mut world = World::new(&[("q", gpus(4, json!({"stopPolicy": of_cluster})))]);
        world.local("q", json!({"clusterQueue": "q", "stopPolicy": of_local}));
        for at in 0..3 {
            world.add(&format!("w{at}"), "q", 5, 0, at);
        }
        world.run();
        world.write_statuses();
        let stops = format!("{of_cluster} {of_local}");
        assert_eq!(pending(&world, "q"), 3, "{stops}");
        assert_eq!(pending(&world, "local q"), 3, "{stops}");
    }
}

#[test]
fn those_whose_queue_goes_are_told_that_it_is_gone() {
    // Whether what they were told before is still being written when it goes.
    for is_answered in [true, false] {
        let mut world = World::new(&[("q", gpus(1, json!({})))]);
        world.add("a", "q", 3, 0, 0);
        world.run();
        let object = json!({"metadata": {"name": "q", "uid": "uid-q", "resourceVersion": "900",
            "deletionTimestamp": at(1).to_string()}, "spec": gpus(1, json!({}))});
        let leaving: ClusterQueue = serde_json::from_value(object).unwrap();
        world.queues.cluster_queue_seen(&Arc::new(leaving), world.now);
        let decisions = world.cycle().decisions;
        if is_answered {
            decisions.iter().for_each(|it| world.carry_out(it.write()));
            assert_eq!(world.condition("a", "lockstep.dev/Waiting").1, "QueueInactive");
        }
        world.queues.cluster_queue_gone("q", "uid-q", world.now);
        if !is_answered {
            let _ = world.cycle();
            decisions.iter().for_each(|it| world.carry_out(it.write()));
        }
        world.run();
        let (_, reason, message) = world.condition("a", "lockstep.dev/Waiting");
        assert_eq!((&*reason, &*message), ("QueueMissing", "ClusterQueue q does not exist"));
    }
}

#[test]
fn a_broken_queue_blocks_nobody() {
    let broken = json!({"namespaceSelector": {}, "cohortName": "c", "resourceGroups": [{
        "coveredResources": ["gpu"], "flavors": [{"name": "f", "resources": [
            {"name": "gpu", "nominalQuota": "-7"}]}, {"name": "missing", "resources": []}]}]});
    let fine = gpus(4, json!({"cohortName": "c"}));
    let mut world = World::new(&[("broken", broken), ("fine", fine)]);
    world.add("a", "broken", 1, 9, 0);
    world.add("b", "fine", 4, 0, 1);
    world.put(json!({"metadata": {"name": "odd", "namespace": "ns", "uid": "u",
        "resourceVersion": "1"},
        "spec": {"queueName": "fine", "podSets": [{"count": -3}, {"count": i32::MAX, "template":
            {"spec": {"containers": [{"resources": {"requests": {"gpu": "9E"}}}]}}}]}}));
    world.run();
    assert_eq!(world.holding(), BTreeSet::from(["b"]));
    assert_eq!(world.condition("a", "lockstep.dev/Waiting").1, "QueueInactive");
    assert_eq!(world.quota("odd").0, "ExceedsMaxQuota");
}

#[test]
fn passes_are_told_what_the_queues_are_like() {
    let mut world = World::new(&[("q", gpus(4, json!({})))]);
    world.add("a", "q", 3, 0, 0);
    world.run();
    world.queues.take_touched();
    let around = world.queues.around(&world.workloads["a"]);
    let there = LocalQueueAround::There { stop: Stop::No, is_terminating: false, is_active: true };
    assert_eq!(around.local_queue, there);
    let queue = around.cluster_queue.unwrap();
    assert!(queue.is_active && !queue.is_missing && queue.stop == Stop::No);
    assert!(around.wait.is_some());
    world.cluster("q", gpus(4, json!({"stopPolicy": "HoldAndDrain"})));
    assert_eq!(world.queues.take_touched(), BTreeSet::from([key("a")]));
    let around = world.queues.around(&world.workloads["a"]);
    assert_eq!(around.cluster_queue.unwrap().stop, Stop::HoldAndDrain);
    world.queues.local_queue_gone(&key("q"), "uid-q", world.now);
    let around = world.queues.around(&world.workloads["a"]);
    assert_eq!(around.local_queue, LocalQueueAround::Missing);
    assert_eq!(around.cluster_queue.unwrap().name, "q", "it holds quota there");
}
