//! Who gives way to whom.

use super::*;

fn within(policy: &str) -> Value {
    json!({"preemption": {"withinClusterQueue": policy}})
}

fn evicted(world: &World) -> BTreeSet<&str> {
    let names = world.workloads.keys().map(String::as_str);
    names.filter(|name| world.condition(name, "Evicted").0 == "True").collect()
}

// rule: queueing 4.7.1
#[test]
fn lower_ones_of_the_queue_give_way_as_its_policy_says() {
    // (policy, priority and creation of the one that wants in, who gives way)
    let cases: [(&str, (i32, i64), &[&str]); 6] = [
        ("Never", (9, 50), &[]),
        ("LowerPriority", (9, 50), &["low"]),
        ("LowerPriority", (1, 50), &["low"]),
        ("LowerPriority", (0, 50), &[]),
        ("LowerOrNewerEqualPriority", (1, 5), &["low"]),
        ("LowerOrNewerEqualPriority", (0, -5), &["low"]),
    ];
    for (policy, (priority, created), want) in cases {
        let mut world = World::new(&[("q", gpus(4, within(policy)))]);
        world.add("low", "q", 2, 0, 0);
        world.add("mid", "q", 2, 1, 1);
        world.run();
        world.add("new", "q", 2, priority, created);
        world.run();
        assert_eq!(evicted(&world), want.iter().copied().collect(), "{policy} {priority}");
    }
}

// rule: queueing 1.3.5
// rule: queueing 1.3.18
// rule: queueing 4.7.4
#[test]
fn both_sides_are_told() {
    let mut world = World::new(&[("q", gpus(4, within("LowerPriority")))]);
    world.add("low", "q", 3, 0, 0);
    world.run();
    world.events.clear();
    world.add("high", "q", 2, 3, 1);
    world.change("high", |workload| {
        let labels = [("kueue.x-k8s.io/job-uid".to_owned(), "job-1".to_owned())];
        workload.metadata.labels = Some(labels.into());
    });
    world.run();
    let message = "Preempted to accommodate a workload (UID: uid-high, JobUID: job-1) due to \
                   prioritization in the ClusterQueue; preemptor path: /q; preemptee path: /q";
    let want = |reason: &str| ("True".to_owned(), reason.to_owned(), message.to_owned());
    assert_eq!(world.condition("low", "Evicted"), want("Preempted"));
    assert_eq!(world.condition("low", "Preempted"), want("InClusterQueue"));
    let status = world.workloads["low"].status.clone().unwrap();
    let evictions = &status.scheduling_stats.as_ref().unwrap().evictions;
    assert_eq!((evictions[0].reason.as_str(), evictions[0].count), ("Preempted", 1));
    assert!(status.admission.is_some(), "it holds its quota until its pods are gone");
    let pending = "couldn't assign flavors to pod set main: insufficient unused quota for gpu in \
                   flavor f, 1 more needed. Pending the preemption of 1 workload(s)";
    assert_eq!(world.quota("high"), ("WaitingForPreemptedWorkloads".into(), pending.into()));
    let priorities = "preemptor effective priority: 3 (base: 3, boost: 0); preemptee effective \
                      priority: 0 (base: 0, boost: 0)";
    let first = format!("EvictedDueToPreempted: {message}");
    assert_eq!(told(&world, "low"), [first, format!("Preempted: {message}; {priorities}")]);
    assert_eq!(
        told(&world, "high"),
        [
            format!(
                "PreemptedWorkload: Preempted workload ns/low (UID: uid-low) in ClusterQueue q; \
                 {priorities}"
            ),
            format!("WaitingForPreemptedWorkloads: {pending}"),
        ]
    );
}

// rule: queueing 1.3.17
#[test]
fn the_one_that_gave_way_comes_back_and_says_what_was() {
    let mut world = World::new(&[("q", gpus(4, within("LowerPriority")))]);
    world.add("low", "q", 3, 0, 0);
    world.run();
    world.add("high", "q", 4, 3, 1);
    world.run();
    assert_eq!(world.holding(), BTreeSet::from(["low"]), "not before it is gone");
    world.release("low");
    world.run();
    assert_eq!(world.holding(), BTreeSet::from(["high"]));
    assert_eq!(world.quota("low").0, "WaitingForQuota");
    let before = world.condition("low", "Evicted").2;
    world.finish("high");
    world.run();
    let want = ("False".into(), "QuotaReserved".into(), format!("Previously: {before}"));
    assert_eq!(world.condition("low", "Evicted"), want);
    assert_eq!(world.condition("low", "Preempted"), want);
    assert_eq!(world.condition("low", "lockstep.dev/Waiting").0, "", "it waits no more");
}

fn cohort(nominal: i64, reclaim: &str) -> Value {
    gpus(nominal, json!({"cohortName": "c", "preemption": {"reclaimWithinCohort": reclaim}}))
}

// rule: queueing 4.7.2
#[test]
fn what_was_lent_is_taken_back_as_the_policy_says() {
    // (policy, what the one asks for, its priority, who gives way)
    let cases: [(&str, i64, i32, &[&str]); 6] = [
        ("Never", 4, 9, &[]),
        ("Any", 4, 0, &["b3"]),
        ("LowerPriority", 4, 6, &["b3"]),
        ("LowerPriority", 4, 0, &[]),
        // More than its own is not taken from anybody.
        ("Any", 5, 9, &[]),
        ("Any", 2, 0, &["b3"]),
    ];
    for (policy, asked, priority, want) in cases {
        let mut world = World::new(&[("own", cohort(4, policy)), ("b", cohort(4, "Never"))]);
        for (at, name) in ["b1", "b2", "b3"].into_iter().enumerate() {
            world.now = at_time(at);
            world.add(name, "b", if at == 2 { 4 } else { 2 }, 5, 0);
            world.run();
        }
        world.add("mine", "own", asked, priority, 50);
        world.run();
        assert_eq!(evicted(&world), want.iter().copied().collect(), "{policy} {asked} {priority}");
        if !want.is_empty() {
            let (_, reason, message) = world.condition("b3", "Preempted");
            assert_eq!(reason, "InCohortReclamation");
            assert!(message.ends_with(
                "JobUID: UNKNOWN) due to reclamation within the cohort; preemptor path: /c/own; \
                 preemptee path: /c/b"
            ));
        }
    }
}

fn at_time(index: usize) -> Timestamp {
    at(100 + i64::try_from(index).unwrap())
}

// rule: queueing 4.7.2
#[test]
fn queues_within_their_quota_keep_what_they_have() {
    let mut world = World::new(&[
        ("own", cohort(4, "Any")),
        ("modest", cohort(4, "Never")),
        ("greedy", cohort(4, "Never")),
    ]);
    world.add("m", "modest", 4, 0, 0);
    world.add("g1", "greedy", 4, 9, 0);
    world.run();
    world.add("g2", "greedy", 4, 9, 1);
    world.run();
    world.add("mine", "own", 4, 0, 50);
    world.run();
    assert!(!evicted(&world).contains("m"));
    assert_eq!(evicted(&world).len(), 1, "one of the greedy ones is enough");
}

// rule: queueing 4.7.2
#[test]
fn nothing_is_taken_back_by_one_that_borrows_something_else() {
    // The second resource fits, as the queue's own or borrowed; how many give way for the first.
    for (asked, want) in [(1, 1), (2, 0)] {
        let spec = json!({"namespaceSelector": {}, "cohortName": "c",
            "preemption": {"reclaimWithinCohort": "Any"}, "resourceGroups": [{
                "coveredResources": ["gpu", "tpu"], "flavors": [{"name": "f", "resources": [
                    {"name": "gpu", "nominalQuota": "4"},
                    {"name": "tpu", "nominalQuota": "1"}]}]}]});
        let mut world = World::new(&[("own", spec.clone()), ("b", spec)]);
        world.add("b1", "b", 4, 0, 0);
        world.run();
        world.add("b2", "b", 4, 0, 1);
        world.run();
        let requests = json!({"gpu": "4", "tpu": asked.to_string()});
        let sets = json!([{"name": "main", "count": 1, "template": {"spec": {"containers": [
            {"resources": {"requests": requests}}]}}}]);
        world.add_with("mine", "own", 4, json!({"podSets": sets}), 50);
        world.run();
        assert_eq!(evicted(&world).len(), want, "{asked}: {:?}", evicted(&world));
    }
}

// rule: queueing 4.7.3
#[test]
fn as_few_as_possible_give_way_the_lowest_and_newest_first() {
    // Held by (name, gpus, priority, second of admission); asked for by one of priority 9.
    type Held = (&'static str, i64, i32, i64);
    let cases: [(&[Held], i64, &[&str]); 5] = [
        (&[("a", 2, 1, 0), ("b", 2, 0, 1)], 2, &["b"]),
        (&[("a", 2, 0, 0), ("b", 2, 0, 1)], 2, &["b"]),
        (&[("a", 2, 0, 0), ("b", 2, 0, 0)], 2, &["a"]),
        // The small one of lower priority is not needed once the big one goes.
        (&[("a", 1, 0, 0), ("b", 3, 1, 1)], 3, &["b"]),
        (&[("a", 1, 0, 0), ("b", 3, 1, 1)], 4, &["a", "b"]),
    ];
    for (held, asked, want) in cases {
        let mut world = World::new(&[("q", gpus(4, within("LowerPriority")))]);
        for (name, amount, priority, second) in held {
            world.now = at(100 + second);
            world.add(name, "q", *amount, *priority, 0);
            world.run();
        }
        world.now = at(200);
        world.add("high", "q", asked, 9, 0);
        world.run();
        assert_eq!(evicted(&world), want.iter().copied().collect(), "{held:?} {asked}");
    }
}

// rule: queueing 4.7.3
#[test]
fn those_that_are_leaving_anyway_are_counted_on_first() {
    let mut world = World::new(&[("q", gpus(4, within("LowerPriority")))]);
    world.add("a", "q", 2, 0, 0);
    world.add("b", "q", 2, 5, 0);
    world.run();
    world.say("b", "Evicted", "True", "PodsReadyTimeout");
    world.add("high", "q", 2, 9, 0);
    world.run();
    assert_eq!(world.condition("a", "Evicted").0, "", "the other one is leaving");
    assert_eq!(world.quota("high").0, "WaitingForPreemptedWorkloads");
}

// rule: queueing 4.6.1
#[test]
fn two_do_not_count_on_the_same_one_giving_way() {
    let mut world = World::new(&[
        ("a", cohort(4, "Any")),
        ("b", cohort(4, "Any")),
        ("hog", cohort(0, "Never")),
    ]);
    world.add("h", "hog", 8, 0, 0);
    world.run();
    world.add("a1", "a", 4, 0, 1);
    world.add("b1", "b", 4, 0, 2);
    world.run();
    assert_eq!(world.quota("a1").0, "WaitingForPreemptedWorkloads");
    let want = "Workload has overlapping preemption targets with another workload, but will fit \
                after these preemptions complete";
    assert_eq!(world.quota("b1"), ("WaitingForQuota".into(), want.into()));
    world.release("h");
    world.run();
    assert_eq!(world.holding(), BTreeSet::from(["a1", "b1"]));
}

// rule: queueing 4.6.1
#[test]
fn nobody_is_admitted_into_what_those_still_hold_that_give_way() {
    let mut world = World::new(&[
        ("a", gpus(4, json!({"cohortName": "c"}))),
        (
            "b",
            gpus(
                2,
                json!({"cohortName": "c", "preemption": {
            "withinClusterQueue": "LowerPriority"}}),
            ),
        ),
        ("c", gpus(6, json!({"cohortName": "c"}))),
    ]);
    world.add("b1", "b", 3, 0, 0);
    world.add("c1", "c", 5, 0, 1);
    world.run();
    world.cluster(
        "b",
        json!({"namespaceSelector": {}, "cohortName": "c",
            "preemption": {"withinClusterQueue": "LowerPriority"},
            "resourceGroups": [{"coveredResources": ["gpu"], "flavors": [{"name": "f",
                "resources": [{"name": "gpu", "nominalQuota": "2", "borrowingLimit": "2"}]}]}]}),
    );
    // Twelve in all, eight used: the first three fit, then two give way to two later.
    world.add("a1", "a", 3, 0, 2);
    world.add("b2", "b", 2, 1, 3);
    world.add("c2", "c", 2, 0, 4);
    world.run();
    assert_eq!(world.holding(), BTreeSet::from(["a1", "b1", "c1"]));
    assert_eq!(evicted(&world), BTreeSet::from(["b1"]));
    world.release("b1");
    world.run();
    assert_eq!(world.holding(), BTreeSet::from(["a1", "b2", "c1", "c2"]));
}

#[test]
fn nobody_is_told_twice_to_give_way() {
    let mut world = World::new(&[("q", gpus(4, within("LowerPriority")))]);
    world.add("low", "q", 4, 0, 0);
    world.run();
    world.add("high", "q", 4, 3, 1);
    world.run();
    for at in 0..5 {
        world.add(&format!("more{at}"), "q", 1, 0, 10);
        let decisions = world.run();
        assert!(!decisions.iter().any(|it| matches!(it, Decision::Preempt(_))));
    }
}

#[test]
fn one_whose_admission_is_still_being_written_gives_way_afterwards() {
    // Whether it had to give way once before, of which its conditions still speak.
    for was_evicted in [false, true] {
        let mut world = World::new(&[("q", gpus(4, within("LowerPriority")))]);
        world.add("low", "q", 4, 0, 0);
        if was_evicted {
            world.run();
            world.add("first", "q", 4, 9, 1);
            world.run();
            world.release("low");
            world.run();
            world.finish("first");
        }
        let cycle = world.cycle();
        assert!(matches!(&cycle.decisions[..], [Decision::Admit(_)]), "{was_evicted}");
        world.add("high", "q", 4, 3, 1);
        let next = world.cycle();
        assert!(!next.decisions.iter().any(|it| matches!(it, Decision::Preempt(_))));
        for decision in cycle.decisions.iter().chain(&next.decisions) {
            world.carry_out(decision.write());
        }
        assert_eq!(world.queues.next_due(), Some(Timestamp::MIN), "{was_evicted}");
        world.run();
        assert_eq!(evicted(&world), BTreeSet::from(["low"]), "{was_evicted}");
    }
}

#[test]
fn who_counted_on_one_that_stays_after_all_goes_on() {
    let borrower = json!({"cohortName": "c", "preemption": {"withinClusterQueue": "Never"}});
    let taker = json!({"cohortName": "c", "preemption": {"reclaimWithinCohort": "Any"}});
    let queues = [("a", taker.clone()), ("b", borrower), ("c", taker)];
    let queues = queues.map(|(name, more)| (name, gpus(2, more)));
    let mut world = World::new(&queues);
    world.add("victim", "b", 6, 0, 0);
    let admitting = world.cycle();
    assert!(matches!(&admitting.decisions[..], [Decision::Admit(_)]));
    // Both need what it has, the second one counts on its going for the first.
    world.add("first", "a", 2, 0, 1);
    let next = world.cycle();
    world.add("second", "c", 2, 0, 2);
    let last = world.cycle();
    // The first is gone before the victim can be told.
    let first = Arc::clone(&world.workloads["first"]);
    let uid = first.metadata.uid.clone().unwrap();
    world.queues.workload_gone(&key("first"), &uid, world.now);
    world.workloads.remove("first");
    let all = admitting.decisions.iter().chain(&next.decisions).chain(&last.decisions);
    for decision in all.filter(|it| it.write().key.name != "first") {
        world.carry_out(decision.write());
    }
    world.run();
    assert_eq!(evicted(&world), BTreeSet::from(["victim"]), "it goes for the second now");
}

// rule: queueing 4.5.1
#[test]
fn who_takes_back_its_own_goes_before_those_that_gave_way_to_it() {
    for strategy in ["BestEffortFIFO", "StrictFIFO"] {
        let policy = json!({"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"});
        let own = json!({"cohortName": "c", "preemption": policy, "queueingStrategy": strategy});
        let mut world = World::new(&[("own", gpus(3, own)), ("other", cohort(5, "Never"))]);
        world.add("low", "own", 1, 0, 0);
        world.add("keep", "other", 3, 9, 0);
        world.run();
        // Both fit and borrow; the older one is admitted, and gives way with the lower one.
        world.add("big", "other", 4, 1, 1);
        world.add("mine", "own", 3, 1, 2);
        world.run();
        assert_eq!(evicted(&world), BTreeSet::from(["big", "low"]), "{strategy}");
        // While the lower one is still there it would borrow too, and be the younger one.
        world.release("big");
        world.run();
        assert_eq!(world.holding(), BTreeSet::from(["keep", "low", "mine"]), "{strategy}");
    }
}

// rule: queueing 4.5.1
#[test]
fn nobody_takes_what_a_lower_one_has_left_to_a_higher_one() {
    let policy = json!({"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"});
    let mut world = World::new(&[
        ("own", gpus(4, json!({"cohortName": "c", "preemption": policy}))),
        ("poor", cohort(0, "Never")),
        ("lender", cohort(3, "Never")),
    ]);
    world.add("keep", "own", 1, 2, 0);
    world.add("small", "own", 2, 1, 0);
    world.add("filler", "lender", 2, 9, 0);
    world.run();
    world.add("older", "poor", 4, 2, 1);
    world.add("high", "own", 4, 2, 2);
    world.run();
    assert_eq!(evicted(&world), BTreeSet::from(["small"]));
    // If the older one had it, the small one would take it back as its queue's own, then give way
    // to the high one again.
    world.release("small");
    world.run();
    assert_eq!(world.holding(), BTreeSet::from(["filler", "high", "keep"]));
}
