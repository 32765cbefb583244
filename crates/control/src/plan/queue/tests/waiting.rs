//! Who waits, in which words.

use super::*;

// rule: queueing 1.3.2
// rule: queueing 1.3.3
// rule: queueing 1.3.4
#[test]
fn the_words_of_those_that_do_not_fit() {
    let mut world = World::new(&[("q", gpus(4, json!({})))]);
    world.add("hog", "q", 3, 9, 0);
    world.run();
    world.add("later", "q", 2, 0, 1);
    world.add("never", "q", 5, 0, 2);
    world.add_with(
        "nowhere",
        "q",
        1,
        json!({"podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": [
            {"resources": {"requests": {"tpu": "1"}}}]}}}]}),
        3,
    );
    world.run();
    let set = "couldn't assign flavors to pod set main: ";
    let cases = [
        (
            "later",
            "WaitingForQuota",
            "insufficient unused quota for gpu in flavor f, 1 more needed",
        ),
        (
            "never",
            "ExceedsMaxQuota",
            "insufficient quota for gpu in flavor f, previously considered podsets requests (0) + \
             current podset request (5) > maximum capacity (4)",
        ),
        ("nowhere", "NoMatchingFlavor", "resource tpu unavailable in ClusterQueue"),
    ];
    for (name, reason, message) in cases {
        assert_eq!(world.quota(name), (reason.to_owned(), format!("{set}{message}")));
        let warned = format!("{reason}: {set}{message}");
        assert_eq!(told(&world, name), [warned]);
    }
    let status = world.workloads["later"].status.clone().unwrap();
    assert_eq!(
        serde_json::to_value(status.resource_requests).unwrap(),
        json!([{"name": "main", "resources": {"gpu": "2"}}])
    );
}

// rule: queueing 1.3.3
#[test]
fn earlier_pod_sets_count() {
    let mut world = World::new(&[("q", gpus(4, json!({})))]);
    let set = |name: &str, count: i32| {
        json!({"name": name, "count": count, "template": {"spec": {"containers": [
            {"resources": {"requests": {"gpu": "1"}}}]}}})
    };
    world.add_with("a", "q", 1, json!({"podSets": [set("one", 3), set("two", 2)]}), 0);
    world.run();
    let want = "couldn't assign flavors to pod set two: insufficient quota for gpu in flavor f, \
                previously considered podsets requests (3) + current podset request (2) > maximum \
                capacity (4)";
    assert_eq!(world.quota("a").1, want);
}

// rule: queueing 1.3.12
#[test]
fn of_flavors_the_least_severe_counts_and_of_groups_the_most() {
    let group = |resource: &str, flavors: &[(&str, i64)]| {
        let flavors: Vec<Value> = flavors
            .iter()
            .map(|(name, nominal)| {
                json!({"name": name, "resources": [
                    {"name": resource, "nominalQuota": nominal.to_string()}]})
            })
            .collect();
        json!({"coveredResources": [resource], "flavors": flavors})
    };
    let tainted = json!({"nodeTaints": [{"key": "t", "effect": "NoSchedule"}]});
    // Quota by group and flavor; the workload asks for 3 of each, and 2 of `f` are used.
    let cases = [
        (vec![group("gpu", &[("f", 4), ("tainted", 9)])], "WaitingForQuota"),
        (vec![group("gpu", &[("g", 2), ("tainted", 9)])], "ExceedsMaxQuota"),
        (vec![group("gpu", &[("tainted", 9)])], "NoMatchingFlavor"),
        (vec![group("gpu", &[("f", 4)]), group("tpu", &[("g", 2)])], "ExceedsMaxQuota"),
        (vec![group("gpu", &[("f", 4)]), group("tpu", &[("tainted", 9)])], "NoMatchingFlavor"),
    ];
    for (groups, want) in cases {
        let mut world = World::new(&[]);
        world.flavor("g", json!({}));
        world.flavor("tainted", tainted.clone());
        let has_f = groups[0]["flavors"][0]["name"] == "f";
        let has_tpu = groups.len() > 1;
        world.cluster("q", json!({"namespaceSelector": {}, "resourceGroups": groups}));
        world.local("q", json!({"clusterQueue": "q"}));
        if has_f {
            world.add("user", "q", 2, 9, 0);
            world.run();
        }
        let mut requests = json!({"gpu": "3"});
        if has_tpu {
            requests["tpu"] = json!("3");
        }
        let sets = json!([{"name": "main", "count": 1, "template": {"spec": {"containers": [
            {"resources": {"requests": requests}}]}}}]);
        world.add_with("a", "q", 3, json!({"podSets": sets}), 1);
        world.run();
        assert_eq!(world.quota("a").0, want);
    }
}

type Setup = fn(&mut World);

/// Checks the words of a workload `w` of LocalQueue `x`, for each setup: name, setup, reason and
/// message of `QuotaReserved`, none where that is for passes over the workload to say, and the
/// reason of our own condition.
fn check(cases: &[(&str, Setup, &str, &str, &str)]) {
    for (name, setup, reason, message, why) in cases {
        let mut world = World::new(&[("q", gpus(4, json!({})))]);
        world.add("w", "x", 1, 0, 0);
        setup(&mut world);
        world.run();
        assert_eq!(world.quota("w"), ((*reason).to_owned(), (*message).to_owned()), "{name}");
        let (status, ours, _) = world.condition("w", "lockstep.dev/Waiting");
        assert_eq!((status.as_str(), ours.as_str()), ("True", *why), "{name}");
        assert_eq!(world.queues.why(&key("w")).map(|why| why.reason()), Some(*why), "{name}");
        assert!(world.queues.why(&key("w")).unwrap().to_string().len() > 5, "{name}");
    }
}

// rule: queueing 1.3.7
// rule: queueing 1.3.8
// rule: queueing 4.2.1
#[test]
fn the_words_of_those_whose_queues_do_not_take_them() {
    let cases: [(&str, Setup, &str, &str, &str); 7] = [
        ("no local queue", |_| {}, "", "", "QueueMissing"),
        (
            "stopped local queue",
            |world| world.local("x", json!({"clusterQueue": "q", "stopPolicy": "Hold"})),
            "",
            "",
            "QueueStopped",
        ),
        (
            "no cluster queue",
            |world| world.local("x", json!({"clusterQueue": "y"})),
            "",
            "",
            "QueueMissing",
        ),
        (
            "stopped cluster queue",
            |world| {
                world.cluster("y", gpus(1, json!({"stopPolicy": "HoldAndDrain"})));
                world.local("x", json!({"clusterQueue": "y"}));
            },
            "",
            "",
            "QueueStopped",
        ),
        (
            "inactive cluster queue",
            |world| {
                let checks = json!({"admissionChecks": [{"name": "c"}]});
                world.cluster("y", gpus(1, json!({"admissionChecksStrategy": checks})));
                world.local("x", json!({"clusterQueue": "y"}));
            },
            "",
            "",
            "QueueInactive",
        ),
        (
            "another namespace",
            |world| {
                let selector = json!({"namespaceSelector": {"matchLabels": {"a": "b"}}});
                world.cluster("y", gpus(1, selector));
                world.local("x", json!({"clusterQueue": "y"}));
            },
            "Misconfigured",
            "Workload namespace doesn't match ClusterQueue selector",
            "NamespaceMismatch",
        ),
        (
            "no namespace selector",
            |world| {
                world.cluster("y", gpus(1, json!({"namespaceSelector": null})));
                world.local("x", json!({"clusterQueue": "y"}));
            },
            "Misconfigured",
            "Workload namespace doesn't match ClusterQueue selector",
            "NamespaceMismatch",
        ),
    ];
    check(&cases);
}

// rule: queueing 1.3.10
// rule: queueing 1.3.11
// rule: queueing 4.2.1
#[test]
fn the_words_of_those_that_may_not_be_tried() {
    let cases: [(&str, Setup, &str, &str, &str); 3] = [
        (
            "deactivated",
            |world| {
                world.local("x", json!({"clusterQueue": "q"}));
                world.change("w", |workload| workload.spec.active = Some(false));
            },
            "",
            "",
            "Deactivated",
        ),
        (
            "gated",
            |world| {
                world.local("x", json!({"clusterQueue": "q"}));
                world.change("w", |workload| {
                    let gate = ("kueue.x-k8s.io/admission-gated-by".to_owned(), "me".to_owned());
                    workload.metadata.annotations = Some([gate].into());
                });
            },
            "",
            "",
            "Gated",
        ),
        (
            "failed checks",
            |world| {
                world.local("x", json!({"clusterQueue": "q"}));
                world.change("w", |workload| {
                    let check = lockstep_api::kueue::AdmissionCheckState {
                        state: "Rejected".to_owned(),
                        ..Default::default()
                    };
                    workload.status.get_or_insert_default().admission_checks.push(check);
                });
            },
            "PendingEvaluation",
            "The workload has failed admission checks",
            "FailedChecks",
        ),
    ];
    check(&cases);
}

// rule: queueing 1.3.8
#[test]
fn what_was_said_when_quota_was_taken_away_stays() {
    let mut world = World::new(&[("q", gpus(4, json!({"stopPolicy": "Hold"})))]);
    world.add("w", "q", 1, 0, 0);
    world.change("w", |workload| {
        let said = json!({"type": "QuotaReserved", "status": "False", "reason": "Suspended",
            "message": "ClusterQueue q is stopped", "lastTransitionTime": at(1).to_string()});
        let conditions = &mut workload.status.get_or_insert_default().conditions;
        conditions.push(serde_json::from_value(said).unwrap());
    });
    world.run();
    assert_eq!(world.quota("w").1, "ClusterQueue q is stopped");
}

// rule: queueing 2.7.3
#[test]
fn nobody_is_tried_before_its_time_or_before_it_is_put_back() {
    let mut world = World::new(&[("q", gpus(4, json!({})))]);
    world.add("w", "q", 1, 0, 0);
    world.change("w", |workload| {
        let state = json!({"count": 1, "requeueAt": at(160).to_string()});
        let status = workload.status.get_or_insert_default();
        status.requeue_state = Some(serde_json::from_value(state).unwrap());
    });
    world.say("w", "Requeued", "False", "PodsReadyTimeout");
    world.run();
    assert_eq!(world.condition("w", "lockstep.dev/Waiting").1, "BackOff");
    assert_eq!(world.queues.next_due_after_statuses(world.now), Some(at(160)));
    world.now = at(160);
    world.run();
    assert_eq!(world.condition("w", "lockstep.dev/Waiting").1, "NotRequeued");
    assert!(world.holding().is_empty(), "the time alone is not enough");
    world.say("w", "Requeued", "True", "BackoffFinished");
    world.run();
    assert_eq!(world.holding(), BTreeSet::from(["w"]));
    let status = world.workloads["w"].status.clone().unwrap();
    assert_eq!(status.requeue_state.unwrap().count, Some(1), "the count stays");
}

// rule: queueing 1.3.9
#[test]
fn the_words_of_an_eviction_stay_until_it_is_tried() {
    let mut world = World::new(&[("q", gpus(4, json!({})))]);
    world.add("w", "q", 1, 0, 0);
    world.say("w", "QuotaReserved", "False", "PendingEvaluation");
    world.say("w", "Requeued", "False", "PodsReadyTimeout");
    world.run();
    assert_eq!(world.quota("w"), ("PendingEvaluation".into(), "said".into()));
}

// rule: queueing 1.3.9
// rule: queueing 1.3.13
#[test]
fn those_behind_the_head_have_no_word_of_quota_unless_an_old_one() {
    let mut world = World::new(&[("q", gpus(4, json!({"queueingStrategy": "StrictFIFO"})))]);
    world.add("hog", "q", 4, 9, 0);
    world.run();
    world.add("head", "q", 4, 0, 1);
    world.add("new", "q", 1, 0, 2);
    world.add("old", "q", 1, 0, 3);
    world.say("old", "QuotaReserved", "False", "Suspended");
    world.run();
    assert_eq!(world.quota("head").0, "WaitingForQuota");
    assert_eq!(world.quota("new"), Default::default(), "it was not tried");
    assert_eq!(world.quota("old"), ("Suspended".into(), "said".into()), "not for it to take back");
    let (_, reason, message) = world.condition("new", "lockstep.dev/Waiting");
    assert_eq!(reason, "BehindHead");
    assert_eq!(message, "ns/head goes first in ClusterQueue q; position 2 of 3 in ClusterQueue q");
}

// rule: queueing 1.3.14
#[test]
fn those_like_one_that_failed_are_told_so() {
    let mut world = World::new(&[("q", gpus(4, json!({})))]);
    world.add("hog", "q", 4, 9, 0);
    world.run();
    world.add("first", "q", 2, 0, 1);
    world.add("second", "q", 2, 0, 2);
    world.run();
    world.add("third", "q", 2, 0, 3);
    world.run();
    assert!(world.quota("first").1.starts_with("couldn't assign flavors"));
    let bypassed = "Bypassed scheduling evaluation because an equivalent workload recently failed";
    for name in ["second", "third"] {
        assert_eq!(world.quota(name), ("WaitingForQuota".into(), bypassed.into()));
        assert_eq!(world.condition(name, "lockstep.dev/Waiting").1, "NotEnoughQuota");
    }
    // One that was told in detail keeps that.
    world.add("fourth", "q", 2, 0, 4);
    world.say("fourth", "QuotaReserved", "False", "WaitingForQuota");
    world.run();
    assert_eq!(world.quota("fourth").1, "said");
}

// rule: queueing 1.3.15
#[test]
fn what_others_write_beside_it_is_kept() {
    let mut world = World::new(&[("q", gpus(4, json!({})))]);
    world.add("hog", "q", 4, 9, 0);
    world.run();
    world.add("w", "q", 2, 0, 1);
    world.run();
    world.say("w", "PodsReady", "False", "WaitForStart");
    assert_eq!(world.run(), [], "that is no reason to write");
    assert_eq!(world.quota("w").0, "WaitingForQuota");
    world.finish("hog");
    world.run();
    assert_eq!(world.condition("w", "PodsReady").1, "WaitForStart");
}

#[test]
fn one_that_is_like_another_is_told_again_what_somebody_else_has_overwritten() {
    let mut world = World::new(&[("q", gpus(4, json!({})))]);
    world.add("first", "q", 9, 0, 0);
    world.add("like", "q", 9, 0, 1);
    world.run();
    assert_eq!(world.quota("like").0, "ExceedsMaxQuota");
    // Its own words stay where they give the same reason.
    world.say("like", "QuotaReserved", "False", "ExceedsMaxQuota");
    world.run();
    assert_eq!(world.quota("like"), ("ExceedsMaxQuota".to_owned(), "said".to_owned()));
    world.say("like", "QuotaReserved", "False", "PendingEvaluation");
    world.run();
    assert_eq!(world.quota("like").0, "ExceedsMaxQuota");
}

// rule: queueing 2.8.2
#[test]
fn one_that_only_its_flavor_has_waited_for_comes_back_as_its_queue_says() {
    for (by, want) in [("Creation", "late"), ("Eviction", "new")] {
        let settings = Settings { wait: None, ..Settings::default() };
        let mut world = World::with(settings, &[("q", gpus(1, json!({})))]);
        let spec = gpus(1, json!({"queueingStrategy": "StrictFIFO"}));
        world.cluster_with("q", spec, json!({"lockstep.dev/requeuing-timestamp": by}));
        world.add("late", "q", 1, 0, 0);
        world.say("late", "Evicted", "True", "PodsReadyTimeout");
        world.add("new", "q", 1, 0, 1);
        world.run();
        assert_eq!(world.holding(), BTreeSet::from([want]), "{by}");
    }
}
