//! Who is admitted, and with what.

use super::*;

const SKIPPED: &str = "Workload no longer fits after processing another workload";

// rule: queueing 1.3.1
#[test]
fn one_that_was_drained_is_not_passed_when_its_queue_goes_on() {
    let strict =
        |stop: &str| gpus(2, json!({"queueingStrategy": "StrictFIFO", "stopPolicy": stop}));
    let mut world = World::new(&[("q", strict("None"))]);
    world.add("first", "q", 2, 0, 0);
    world.run();
    world.add("second", "q", 1, 0, 1);
    world.run();
    world.cluster("q", strict("HoldAndDrain"));
    world.say("first", "Evicted", "True", "ClusterQueueStopped");
    world.release("first");
    world.say("first", "Requeued", "False", "ClusterQueueStopped");
    world.run();
    assert!(world.holding().is_empty());
    world.cluster("q", strict("None"));
    world.run();
    assert_eq!(world.holding(), BTreeSet::from(["first"]));
    let words = "The ClusterQueue was restarted after being stopped";
    let want = ["True", "ClusterQueueRestarted", words].map(str::to_owned);
    assert_eq!(<[String; 3]>::from(world.condition("first", "Requeued")), want);
}

// rule: queueing 4.6.2
#[test]
fn a_workload_that_fits_is_admitted_and_told_so() {
    let mut world = World::new(&[("q", gpus(4, json!({})))]);
    world.add("a", "q", 3, 0, 90);
    let decisions = world.run();
    assert_eq!(decisions.len(), 1);
    let status = world.workloads["a"].status.clone().unwrap();
    let reserved = world.condition("a", "QuotaReserved");
    let want = ("True".into(), "QuotaReserved".into(), "Quota reserved in ClusterQueue q".into());
    assert_eq!(reserved, want);
    let admitted = world.condition("a", "Admitted");
    assert_eq!(admitted, ("True".into(), "Admitted".into(), "The workload is admitted".into()));
    assert_eq!(status.conditions[0].observed_generation, Some(1));
    assert_eq!(
        serde_json::to_value(status.admission).unwrap(),
        json!({"clusterQueue": "q", "podSetAssignments": [{"name": "main",
            "flavors": {"gpu": "f"}, "resourceUsage": {"gpu": "3"}, "count": 1}]})
    );
    assert_eq!(
        told(&world, "a"),
        [
            "QuotaReserved: Quota reserved in ClusterQueue q, wait time since queued was 10s",
            "Admitted: Admitted by ClusterQueue q, wait time since reservation was 0s",
        ]
    );
    assert_eq!(world.queues.why(&key("a")), None);
}

// rule: queueing 4.6.2
#[test]
fn the_time_waited_counts_from_when_it_was_put_back() {
    let mut world = World::new(&[("q", gpus(4, json!({})))]);
    world.cluster("q", gpus(4, json!({"stopPolicy": "Hold"})));
    world.add("a", "q", 3, 0, 0);
    world.say("a", "Requeued", "True", "BackoffFinished");
    world.now = at(107);
    world.cluster("q", gpus(4, json!({})));
    world.run();
    let told = told(&world, "a");
    assert!(told.iter().any(|it| it.ends_with("wait time since queued was 7s")), "{told:?}");
}

#[test]
fn a_cycle_admits_until_nothing_more_fits() {
    let mut world = World::new(&[("q", gpus(10, json!({}))), ("r", gpus(3, json!({})))]);
    for at in 0..20 {
        world.add(&format!("a{at:02}"), "q", 1, 0, at);
        world.add(&format!("b{at:02}"), "r", 1, 0, at);
    }
    let cycle = world.cycle();
    let admitted = cycle.decisions.iter().filter(|it| matches!(it, Decision::Admit(_))).count();
    assert_eq!(admitted, 13);
}

#[test]
fn a_cycle_makes_a_bounded_number_of_decisions() {
    let settings = Settings { decisions_max: 5, ..Settings::default() };
    let mut world = World::with(settings, &[("q", gpus(100, json!({})))]);
    for at in 0..12 {
        world.add(&format!("a{at:02}"), "q", 1, 0, at);
    }
    let cycle = world.cycle();
    assert_eq!(cycle.decisions.len(), 5);
    assert_eq!(world.queues.next_due(), Some(Timestamp::MIN), "there is more to do");
}

// rule: queueing 4.4.1
#[test]
fn pods_are_charged_where_a_queue_covers_them() {
    let spec = json!({"namespaceSelector": {}, "resourceGroups": [{
        "coveredResources": ["gpu", "pods"], "flavors": [{"name": "f", "resources": [
            {"name": "gpu", "nominalQuota": "100"}, {"name": "pods", "nominalQuota": "2"}]}]}]});
    let mut world = World::new(&[("q", spec)]);
    for name in ["a", "b", "c"] {
        world.add(name, "q", 1, 0, 0);
    }
    world.run();
    assert_eq!(world.holding(), BTreeSet::from(["a", "b"]));
    let status = world.workloads["a"].status.clone().unwrap();
    let usage = &status.admission.unwrap().pod_set_assignments[0].resource_usage;
    assert_eq!(usage["pods"].0, "1");
}

// rule: queueing 4.4.1
#[test]
fn resources_that_are_not_covered_are_refused_or_overlooked() {
    let spec = gpus(10, json!({}));
    let pod_sets = json!([{"name": "main", "count": 1, "template": {"spec": {"containers": [
        {"resources": {"requests": {"gpu": "1", "cpu": "1"}}}]}}}]);
    for ignores in [false, true] {
        let settings = Settings { ignore_undeclared: ignores, ..Settings::default() };
        let mut world = World::with(settings, &[("q", spec.clone())]);
        world.add_with("a", "q", 1, json!({"podSets": pod_sets}), 0);
        world.run();
        if ignores {
            assert_eq!(world.holding(), BTreeSet::from(["a"]));
        } else {
            let want = "couldn't assign flavors to pod set main: resource cpu unavailable in \
                        ClusterQueue";
            assert_eq!(world.quota("a"), ("NoMatchingFlavor".into(), want.into()));
        }
    }
}

fn two_flavors(first: i64, second: i64, more: Value) -> Value {
    let mut spec = json!({"namespaceSelector": {}, "resourceGroups": [{
        "coveredResources": ["gpu"], "flavors": [
            {"name": "f", "resources": [{"name": "gpu", "nominalQuota": first.to_string()}]},
            {"name": "g", "resources": [{"name": "gpu", "nominalQuota": second.to_string()}]}]}]});
    if let (Some(spec), Some(more)) = (spec.as_object_mut(), more.as_object()) {
        spec.extend(more.clone());
    }
    spec
}

fn flavor_of(world: &World, name: &str) -> String {
    let admission = world.workloads[name].status.clone().unwrap().admission.unwrap();
    admission.pod_set_assignments[0].flavors["gpu"].clone()
}

// rule: queueing 4.4.2
#[test]
fn the_first_flavor_that_fits_is_given() {
    let mut world = World::new(&[]);
    world.flavor("g", json!({}));
    world.cluster("q", two_flavors(2, 5, json!({})));
    world.local("q", json!({"clusterQueue": "q"}));
    world.add("a", "q", 2, 0, 0);
    world.add("b", "q", 2, 0, 1);
    world.add("c", "q", 9, 0, 2);
    world.run();
    assert_eq!(flavor_of(&world, "a"), "f");
    assert_eq!(flavor_of(&world, "b"), "g");
    let want = "couldn't assign flavors to pod set main: insufficient quota for gpu in flavor f, \
                previously considered podsets requests (0) + current podset request (9) > maximum \
                capacity (2), insufficient quota for gpu in flavor g, previously considered \
                podsets requests (0) + current podset request (9) > maximum capacity (5)";
    assert_eq!(world.quota("c"), ("ExceedsMaxQuota".into(), want.into()));
}

// rule: queueing 4.4.2
#[test]
fn whether_to_borrow_before_the_next_flavor_is_asked_for() {
    for (when, want) in [("MayStopSearch", "f"), ("TryNextFlavor", "g")] {
        let more = json!({"cohortName": "c", "flavorFungibility": {"whenCanBorrow": when}});
        let mut world = World::new(&[]);
        world.flavor("g", json!({}));
        world.cluster("q", two_flavors(0, 5, more));
        world.cluster("lender", gpus(5, json!({"cohortName": "c"})));
        world.local("q", json!({"clusterQueue": "q"}));
        world.add("a", "q", 2, 0, 0);
        world.run();
        assert_eq!(flavor_of(&world, "a"), want, "{when}");
    }
}

// rule: queueing 4.4.2
#[test]
fn whether_to_preempt_before_the_next_flavor_is_asked_for() {
    for (when, want) in [("MayStopSearch", None), ("TryNextFlavor", Some("g"))] {
        let more = json!({"preemption": {"withinClusterQueue": "LowerPriority"},
            "flavorFungibility": {"whenCanPreempt": when}});
        let mut world = World::new(&[]);
        world.flavor("g", json!({}));
        world.cluster("q", two_flavors(2, 5, more));
        world.local("q", json!({"clusterQueue": "q"}));
        world.add("low", "q", 2, 0, 0);
        world.run();
        world.add("high", "q", 2, 9, 1);
        world.run();
        let evicted = world.condition("low", "Evicted").0 == "True";
        assert_eq!(evicted, want.is_none(), "{when}");
        if let Some(want) = want {
            assert_eq!(flavor_of(&world, "high"), want);
        }
    }
}

// rule: queueing 4.5.1
#[test]
fn those_that_do_not_borrow_go_first_then_priority_then_time() {
    // (queue, priority, created) of two; who of them gets the 4 that are left
    let cases = [
        ([("own", 0, 5), ("borrower", 9, 0)], 0),
        ([("own", 1, 5), ("own2", 2, 6)], 1),
        ([("own", 1, 5), ("own2", 1, 4)], 1),
        ([("own", 1, 4), ("own2", 1, 4)], 0),
    ];
    for (both, want) in cases {
        let cohort = json!({"cohortName": "c"});
        let mut world = World::new(&[
            ("own", gpus(4, cohort.clone())),
            ("own2", gpus(4, cohort.clone())),
            ("borrower", gpus(0, cohort.clone())),
            ("hog", gpus(0, cohort)),
        ]);
        world.add("hog", "hog", 4, 0, 0);
        world.run();
        for (name, (queue, priority, created)) in ["a", "b"].into_iter().zip(both) {
            world.add(name, queue, 4, priority, created);
        }
        world.run();
        let winner = ["a", "b"][want];
        assert_eq!(world.holding(), BTreeSet::from([winner, "hog"]), "{both:?}");
    }
}

// rule: queueing 4.6.1
#[test]
fn one_that_lost_to_another_is_told_so_while_it_has_a_claim() {
    // Two heads of one cohort each fit alone. The first has a claim on what others still hold.
    let cohort = |more: Value| {
        let mut spec = gpus(4, more);
        spec["cohortName"] = json!("c");
        spec
    };
    let preempts = json!({"preemption": {"reclaimWithinCohort": "Any"}});
    let mut world = World::new(&[
        ("own", cohort(preempts)),
        ("other", cohort(json!({}))),
        ("hog", cohort(json!({}))),
    ]);
    world.add("h1", "hog", 2, 0, 0);
    world.add("h2", "hog", 8, 0, 1);
    world.run();
    world.add("mine", "own", 4, 5, 10);
    world.run();
    assert_eq!(world.quota("mine").0, "WaitingForPreemptedWorkloads");
    // Two are free, and the other counts on them.
    world.add("late", "other", 2, 0, 20);
    world.run();
    assert_eq!(world.quota("late"), ("WaitingForQuota".into(), SKIPPED.into()));
    assert_eq!(
        world.queues.next_due_after_statuses(world.now).filter(|due| *due <= world.now),
        None,
        "it is at rest"
    );
}

// rule: queueing 4.6.1
// rule: queueing 4.1.1
#[test]
fn a_claim_holds_up_others_for_good_only_in_a_strict_queue() {
    // Two are free. One asks for four, has no one to take them from, and claims what there is.
    for (strategy, is_held_up) in [("BestEffortFIFO", false), ("StrictFIFO", true)] {
        let cohort = json!({"cohortName": "c"});
        let claiming = json!({"cohortName": "c", "queueingStrategy": strategy});
        let mut world = World::new(&[
            ("a", gpus(4, claiming)),
            ("b", gpus(4, cohort.clone())),
            ("h", gpus(0, cohort)),
        ]);
        world.add("hog", "h", 5, 0, 0);
        world.add("small", "h", 1, 0, 1);
        world.run();
        world.add("claims", "a", 4, 5, 2);
        world.add("fits", "b", 2, 0, 3);
        world.run();
        assert_eq!(world.holding().contains("fits"), !is_held_up, "{strategy}");
        assert_eq!(world.quota("claims").0, "WaitingForQuota");
        // Another one that frees something makes no difference.
        world.finish("small");
        world.add("more", "b", 1, 0, 4);
        world.run();
        assert_eq!(world.holding().contains("more"), !is_held_up, "{strategy}");
        if is_held_up {
            let held = ("WaitingForQuota".into(), SKIPPED.into());
            assert_eq!(world.quota("fits"), held);
        }
    }
}

// rule: queueing 4.1.2
#[test]
fn when_the_one_with_a_claim_leaves_those_go_on_that_it_held_up() {
    type Leave = fn(&mut World);
    let cases: [(&str, Leave); 3] = [
        ("gone", |world| world.queues.workload_gone(&key("claims"), "uid-claims", world.now)),
        ("deactivated", |world| {
            world.change("claims", |workload| workload.spec.active = Some(false));
        }),
        ("its queue stops", |world| {
            world.local("a", json!({"clusterQueue": "a", "stopPolicy": "Hold"}));
        }),
    ];
    for (name, leave) in cases {
        let cohort = json!({"cohortName": "c"});
        let strict = json!({"cohortName": "c", "queueingStrategy": "StrictFIFO"});
        let mut world = World::new(&[
            ("a", gpus(4, strict)),
            ("b", gpus(4, cohort.clone())),
            ("h", gpus(0, cohort)),
        ]);
        world.add("hog", "h", 6, 0, 0);
        world.run();
        world.add("claims", "a", 4, 5, 2);
        world.add("fits", "b", 2, 0, 3);
        world.run();
        assert_eq!(world.quota("fits").1, SKIPPED);
        leave(&mut world);
        world.run();
        assert!(world.holding().contains("fits"), "{name}");
    }
}

#[test]
fn a_strict_queue_keeps_its_order_and_another_does_not() {
    for (strategy, want) in [("StrictFIFO", vec![]), ("BestEffortFIFO", vec!["small"])] {
        let mut world = World::new(&[("q", gpus(4, json!({"queueingStrategy": strategy})))]);
        world.add("hog", "q", 2, 9, 0);
        world.run();
        world.add("big", "q", 4, 0, 1);
        world.add("small", "q", 1, 0, 2);
        world.run();
        let got: Vec<&str> = world.holding().into_iter().filter(|it| *it != "hog").collect();
        assert_eq!(got, want, "{strategy}");
        world.finish("hog");
        if strategy == "BestEffortFIFO" {
            world.finish("small");
        }
        world.run();
        assert!(world.holding().contains("big"), "{strategy}");
    }
}

// rule: queueing 4.3.1
#[test]
fn a_queue_that_is_stopped_has_and_uses_what_it_had() {
    let spec = |stop: &str| gpus(10, json!({"cohortName": "c", "stopPolicy": stop}));
    // Five are borrowed from the other queue, which may not have them again meanwhile.
    let mut world = World::new(&[("a", spec("None")), ("b", spec("None"))]);
    world.add("big", "a", 15, 0, 0);
    world.run();
    world.cluster("a", spec("Hold"));
    world.add("ten", "b", 10, 0, 1);
    world.add("five", "b", 5, 0, 2);
    world.run();
    assert_eq!(world.holding(), BTreeSet::from(["big", "five"]));
    let why = world.queues.why(&key("ten")).unwrap().to_string();
    assert!(why.contains("held by ns/big (15)"), "{why}");
    // What it does not use is still there to be borrowed.
    let mut world = World::new(&[("a", spec("Hold")), ("b", spec("None"))]);
    world.add("big", "b", 15, 0, 0);
    world.add("never", "b", 21, 0, 1);
    world.run();
    assert_eq!(world.holding(), BTreeSet::from(["big"]));
    assert_eq!(world.quota("never").0, "ExceedsMaxQuota");
}

// rule: queueing 1.3.4
#[test]
fn debts_are_nobody_elses_and_nothing_always_fits() {
    let mut world = World::new(&[("q", gpus(4, json!({})))]);
    world.add("a", "q", 4, 9, 0);
    world.run();
    world.cluster("q", gpus(2, json!({})));
    world.add("w", "q", 1, 0, 1);
    let done = json!([{"name": "main", "count": 0, "template": {"spec": {"containers": [
        {"resources": {"requests": {"gpu": "1"}}}]}}}]);
    world.add_with("nothing", "q", 0, json!({"podSets": done}), 2);
    world.run();
    assert!(world.quota("w").1.ends_with("gpu in flavor f, 1 more needed"));
    assert_eq!(world.holding(), BTreeSet::from(["a", "nothing"]));
}

/// What the event of a reservation says of flavors.
fn considered(world: &World, name: &str) -> Option<String> {
    let told = told(world, name);
    let reserved = told.iter().find(|it| it.starts_with("QuotaReserved: ")).unwrap();
    let (_, flavors) = reserved.split_once("; ")?;
    Some(flavors.strip_prefix("Flavors considered: ").unwrap().to_owned())
}

// rule: queueing 4.6.2
#[test]
fn flavors_that_were_passed_over_are_told() {
    let within = json!({"preemption": {"withinClusterQueue": "LowerPriority"}});
    let mut world = World::new(&[]);
    world.flavor("g", json!({}));
    world.flavor("spot", json!({"nodeTaints": [{"key": "spot", "effect": "NoSchedule"}]}));
    let mut spec = two_flavors(2, 5, within);
    let flavors = spec["resourceGroups"][0]["flavors"].as_array_mut().unwrap();
    let quota = json!([{"name": "gpu", "nominalQuota": "9"}]);
    flavors.insert(0, json!({"name": "spot", "resources": quota}));
    world.cluster("q", spec);
    world.local("q", json!({"clusterQueue": "q"}));
    let spot = "spot(NoFit;untolerated taint {spot  NoSchedule <nil>} in flavor spot)";
    let short = "insufficient unused quota for gpu in flavor f, 2 more needed";
    world.add("first", "q", 2, 0, 0);
    world.run();
    assert_eq!(considered(&world, "first"), Some(format!("main: {spot}")));
    // Somebody could be preempted there, or could not.
    world.add("higher", "q", 2, 1, 1);
    world.run();
    let want = format!("main: f(preemptionMode=Preempt;{short}), {spot}");
    assert_eq!(considered(&world, "higher"), Some(want));
    world.add("lower", "q", 2, 0, 2);
    world.run();
    let want = format!("main: f(preemptionMode=NoCandidates;{short}), {spot}");
    assert_eq!(considered(&world, "lower"), Some(want));
    assert!(told(&world, "lower").iter().all(|it| it.len() <= 1024 + "QuotaReserved: ".len()));
}

// rule: queueing 4.6.2
#[test]
fn what_is_borrowed_is_told() {
    let cohort = json!({"cohortName": "c"});
    let mut world = World::new(&[("q", gpus(2, cohort.clone())), ("r", gpus(4, cohort))]);
    world.add("own", "q", 2, 0, 0);
    world.run();
    assert_eq!(considered(&world, "own"), None);
    let set = |name: &str| {
        json!({"name": name, "count": 1, "template": {"spec": {"containers": [
            {"resources": {"requests": {"gpu": "1"}}}]}}})
    };
    world.add_with("borrowed", "q", 1, json!({"podSets": [set("one"), set("two")]}), 1);
    world.run();
    let want = "one: f(Fit;borrow=1) | two: f(Fit;borrow=1)";
    assert_eq!(considered(&world, "borrowed").as_deref(), Some(want));
}
