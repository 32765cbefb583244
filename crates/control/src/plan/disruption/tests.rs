use serde_json::{Value, json};

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_767_323_045 + seconds).unwrap()
}

fn budget(spec: &Value, status: Option<&PodDisruptionBudgetStatus>) -> PodDisruptionBudget {
    let metadata = json!({"name": "b", "namespace": "n", "generation": 3});
    let mut budget: PodDisruptionBudget =
        serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap();
    budget.status = status.cloned();
    budget
}

/// Pods of the owners `j` and `k`, of nobody with `-`; in capitals when they are not ready, with
/// `x` behind when they are leaving.
fn tally(pods: &[&str]) -> Tally {
    let mut tally = Tally::default();
    for (number, pod) in pods.iter().enumerate() {
        let owner = pod[..1].to_lowercase();
        let seen = Seen {
            uid: format!("uid-{number}"),
            is_ready: pod[..1] == owner,
            is_leaving: pod.ends_with('x'),
            owner: (owner != "-").then(|| Owner {
                uid: owner.clone(),
                api_version: "example.com/v1".to_owned(),
                kind: "Set".to_owned(),
                name: owner,
            }),
        };
        tally.put(&format!("p{number}"), seen);
    }
    tally
}

fn pass(spec: &Value, status: Option<&PodDisruptionBudgetStatus>, pods: &Tally) -> Plan {
    let scales = [("j".to_owned(), Scale::Of(4)), ("k".to_owned(), Scale::Of(3))].into();
    let budget = budget(spec, status);
    plan(View { budget: &budget, pods, scales: &scales }, at(0))
}

fn written(plan: &Plan) -> (i32, i32, i32, i32) {
    let status = plan.status.as_ref().expect("something is written");
    (
        status.expected_pods.unwrap(),
        status.desired_healthy.unwrap(),
        status.current_healthy.unwrap(),
        status.disruptions_allowed.unwrap(),
    )
}

#[test]
fn what_may_go_is_what_is_healthy_beyond_what_must_be() {
    let four = &["j", "j", "j", "J"][..];
    let cases = [
        ("nothing is there", json!({"minAvailable": 1}), &[][..], (0, 1, 0, 0)),
        ("a number that must be there", json!({"minAvailable": 2}), four, (4, 2, 3, 1)),
        ("more than there are", json!({"minAvailable": 9}), four, (4, 9, 3, 0)),
        ("those that leave do not count", json!({"minAvailable": 1}), &["j", "jx"], (2, 1, 1, 0)),
        ("a part that must be there", json!({"minAvailable": "50%"}), four, (4, 2, 3, 1)),
        ("parts are rounded up", json!({"minAvailable": "51%"}), four, (4, 3, 3, 0)),
        ("a number that may be missing", json!({"maxUnavailable": 2}), four, (4, 2, 3, 1)),
        ("a part that may be missing", json!({"maxUnavailable": "26%"}), four, (4, 2, 3, 1)),
        ("more than there are may be", json!({"maxUnavailable": 9}), four, (4, 0, 3, 3)),
        ("owners add up", json!({"maxUnavailable": 0}), &["j", "k", "k"], (7, 7, 3, 0)),
        ("all may go but nobody comes", json!({"minAvailable": 0}), &[], (0, 0, 0, 0)),
        ("nothing is asked for", json!({}), four, (0, 0, 3, 0)),
    ];
    for (name, spec, pods, want) in cases {
        let pods = tally(pods);
        let plan = pass(&spec, None, &pods);
        assert_eq!(written(&plan), want, "{name}");
        let status = plan.status.unwrap();
        assert_eq!(status.observed_generation, Some(3), "{name}");
        let condition = &status.conditions.as_ref().unwrap()[0];
        let spare =
            if want.3 > 0 { ("True", SUFFICIENT_PODS) } else { ("False", INSUFFICIENT_PODS) };
        assert_eq!((condition.status.as_str(), condition.reason.as_str()), spare, "{name}");
        // Carried out, it leaves nothing to do.
        assert_eq!(pass(&spec, Some(&status), &pods).status, None, "{name}");
    }
}

#[test]
fn owners_are_asked_for_parts_and_for_what_may_be_missing() {
    let cases = [
        (json!({"minAvailable": 2}), false),
        (json!({"minAvailable": "2%"}), true),
        (json!({"maxUnavailable": 2}), true),
        (json!({}), false),
    ];
    for (spec, want) in cases {
        assert_eq!(needs_scales(&budget(&spec, None)), want, "{spec}");
    }
}

#[test]
fn those_who_were_evicted_do_not_count_until_they_have_gone() {
    let spec = json!({"minAvailable": 1});
    let noted = |names: &[(&str, i64)]| PodDisruptionBudgetStatus {
        disrupted_pods: Some(
            names.iter().map(|(name, seconds)| ((*name).to_owned(), Time(at(*seconds)))).collect(),
        ),
        ..PodDisruptionBudgetStatus::default()
    };
    let pods = tally(&["j", "j", "jx"]);
    let before = noted(&[("p0", -5), ("p2", -5), ("gone", -5)]);
    let plan = pass(&spec, Some(&before), &pods);
    assert_eq!(written(&plan), (3, 1, 1, 0));
    let left = plan.status.unwrap().disrupted_pods.unwrap();
    assert_eq!(left.keys().collect::<Vec<_>>(), ["p0"]);
    let again = at(115).saturating_add(SignedDuration::from_nanos(1)).unwrap();
    assert_eq!(plan.wake_at, Some(again));
    // Whoever has not gone by then stays.
    let before = noted(&[("p0", -121), ("p1", -120)]);
    let plan = pass(&spec, Some(&before), &pods);
    assert_eq!(written(&plan), (3, 1, 1, 0));
    let told = "Pod was expected by PDB n/b to be deleted but it wasn't";
    let event = Event::warning("NotDeleted", told);
    assert_eq!(plan.stayed, [Stayed { pod: "p0".to_owned(), event }]);
}

#[test]
fn what_nobody_can_tell_is_said_and_nothing_may_go() {
    let spec = json!({"maxUnavailable": 1});
    let budget = budget(&spec, None);
    let pods = tally(&["j"]);
    let why = "jobs.batch does not implement the scale subresource";
    let cases = [
        (Some(Scale::Unknown(why.to_owned())), why),
        (Some(Scale::Gone), "found no controllers for pod \"p0\""),
        (None, "found no controllers for pod \"p0\""),
    ];
    for (scale, why) in cases {
        let scales = scale.map(|scale| ("j".to_owned(), scale)).into_iter().collect();
        let plan = plan(View { budget: &budget, pods: &pods, scales: &scales }, at(0));
        let told = format!("Failed to calculate the number of expected pods: {why}");
        assert_eq!(plan.events, [Event::warning("CalculateExpectedPodCountFailed", told)]);
        let status = plan.status.unwrap();
        assert_eq!((status.disruptions_allowed, status.observed_generation), (Some(0), None));
        let condition = &status.conditions.as_ref().unwrap()[0];
        assert_eq!((condition.reason.as_str(), condition.message.as_str()), (SYNC_FAILED, why));
        let mut after = budget.clone();
        after.status = Some(*status);
        let again = super::plan(View { budget: &after, pods: &pods, scales: &scales }, at(9));
        assert_eq!(again.status, None, "carried out, it leaves nothing to do");
    }
}

#[test]
fn pods_of_nobody_are_told_of_where_they_cannot_be_counted() {
    let reasons = |spec: &Value| -> Vec<String> {
        let plan = pass(spec, None, &tally(&["-", "j"]));
        plan.events.into_iter().map(|event| event.reason).collect()
    };
    assert_eq!(reasons(&json!({"maxUnavailable": 1})), ["UnmanagedPods"]);
    assert_eq!(reasons(&json!({"minAvailable": 1})), [""; 0]);
    let none = pass(&json!({"minAvailable": 1}), None, &tally(&[]));
    assert_eq!(none.events, [Event::normal("NoPods", "No matching pods found")]);
}

#[test]
fn a_condition_keeps_its_moment_while_it_stays_the_same() {
    let spec = json!({"minAvailable": 1});
    let mut status = *pass(&spec, None, &tally(&["j"])).status.unwrap();
    let set = |seconds| Time(at(seconds));
    status.conditions.as_mut().unwrap()[0].last_transition_time = set(-60);
    let more = *pass(&spec, Some(&status), &tally(&["j", "J"])).status.unwrap();
    assert_eq!(more.conditions.unwrap()[0].last_transition_time, set(-60));
    let enough = *pass(&spec, Some(&status), &tally(&["j", "j"])).status.unwrap();
    assert_eq!(enough.conditions.unwrap()[0].last_transition_time, set(0));
}

#[test]
fn a_tally_is_what_counting_again_comes_to() {
    let mut tally = tally(&["j", "J", "-", "kx", "k"]);
    let counts =
        |tally: &Tally| (tally.len(), tally.healthy(), tally.unmanaged(), tally.owners().count());
    assert_eq!(counts(&tally), (5, 3, 1, 2));
    let seen =
        |uid: &str| Seen { uid: uid.to_owned(), is_ready: true, is_leaving: false, owner: None };
    assert!(tally.put("p1", seen("new")));
    assert!(!tally.put("p1", seen("new")), "nothing has changed");
    assert_eq!(counts(&tally), (5, 4, 2, 2));
    assert!(!tally.remove("p1", "old"), "it is another one now");
    assert!(tally.remove("p1", "new"));
    for (name, uid) in [("p0", "uid-0"), ("p2", "uid-2"), ("p3", "uid-3"), ("p4", "uid-4")] {
        assert!(tally.remove(name, uid));
    }
    assert_eq!(counts(&tally), (0, 0, 0, 0));
}
