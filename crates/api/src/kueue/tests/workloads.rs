use serde_json::{Value, json};

use super::{change_faults, faults, merge};
use crate::kueue::WORKLOAD;

/// A Workload with two pod sets, and these members over it.
fn workload(members: Value) -> Value {
    let set = |name: &str| json!({"name": name, "count": 3, "template": {"spec": {"containers": [{"name": "c"}]}}});
    let mut object = json!({"spec": {"queueName": "q", "podSets": [set("a"), set("b")]}});
    merge(&mut object, members);
    object
}

fn condition(kind: &str, status: &str) -> Value {
    json!({"type": kind, "status": status, "reason": "Because", "message": "m",
           "lastTransitionTime": "2026-11-15T12:00:00Z"})
}

/// The same with quota reserved, and admitted.
fn admitted(members: Value) -> Value {
    let mut object = workload(json!({"status": {
        "conditions": [condition("QuotaReserved", "True"), condition("Admitted", "True")],
        "admission": {"clusterQueue": "cq", "podSetAssignments": [
            {"name": "a", "flavors": {"cpu": "f"}, "count": 3}, {"name": "b", "count": 3}]},
    }}));
    merge(&mut object, members);
    object
}

fn pod_set(members: Value) -> Value {
    let mut set = json!({"template": {"spec": {"containers": [{"name": "c"}]}}});
    merge(&mut set, members);
    json!({"spec": {"podSets": [set]}})
}

// rule: queueing 1.2.2
#[test]
fn fields_have_their_bounds() {
    let class = |group: &str, kind: &str| json!({"priority": 1, "priorityClassRef": {"group": group, "kind": kind, "name": "high"}});
    let set = |n: i32| json!({"name": format!("s{n}"), "template": {"spec": {"containers": []}}});
    let many: Vec<Value> = (0..19).map(set).collect();
    let cases: [(Value, &[&str]); 11] = [
        (workload(json!({})), &[]),
        (
            json!({"spec": {"podSets": []}}),
            &["spec.podSets: Invalid value: 0: spec.podSets in body should have at least 1 items"],
        ),
        (
            json!({"spec": {"podSets": many}}),
            &["spec.podSets: Too many: 19: must have at most 18 items"],
        ),
        (
            pod_set(json!({"name": "Main"})),
            &[
                "spec.podSets[0].name: Invalid value: \"Main\": spec.podSets[0].name in body should \
               match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'",
            ],
        ),
        (
            pod_set(json!({"count": -1})),
            &["spec.podSets[0].count: Invalid value: -1: spec.podSets[0].count in body should be \
               greater than or equal to 0"],
        ),
        (
            pod_set(json!({"count": 3, "minCount": 4})),
            &["spec.podSets[0]: Invalid value: minCount should be positive and less or equal to \
               count"],
        ),
        (
            workload(json!({"spec": {"queueName": "Q"}})),
            &["spec.queueName: Invalid value: \"Q\": spec.queueName in body should match \
               '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'"],
        ),
        (
            workload(json!({"spec": {"maximumExecutionTimeSeconds": 0}})),
            &["spec.maximumExecutionTimeSeconds: Invalid value: 0: \
               spec.maximumExecutionTimeSeconds in body should be greater than or equal to 1"],
        ),
        (
            workload(json!({"spec": {"priorityClassRef":
                {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"}}})),
            &["spec: Invalid value: priority should not be nil when priorityClassRef is set"],
        ),
        (
            workload(json!({"spec": class("kueue.x-k8s.io", "PriorityClass")})),
            &["spec.priorityClassRef: Invalid value: only the WorkloadPriorityClass kind is \
               allowed for the kueue.x-k8s.io group"],
        ),
        (
            workload(json!({"spec": class("scheduling.k8s.io", "WorkloadPriorityClass")})),
            &["spec.priorityClassRef: Invalid value: only the PriorityClass kind is allowed for \
               the scheduling.k8s.io group"],
        ),
    ];
    for (members, want) in cases {
        // A list that is too long also keeps rules from being looked at.
        let got = faults(&WORKLOAD, members.clone());
        let got: Vec<&String> = got.iter().filter(|it| !it.starts_with("<nil>")).collect();
        assert_eq!(got, want, "{members}");
    }
}

// rule: queueing 1.2.3
#[test]
fn one_pod_set_may_be_smaller_and_pods_is_no_resource_to_ask_for() {
    let sets = json!([
        {"name": "a", "count": 3, "minCount": 1, "template": {"spec": {"containers": []}}},
        {"name": "b", "count": 3, "minCount": 1, "template": {"spec": {"containers": []}}},
    ]);
    assert_eq!(
        faults(&WORKLOAD, json!({"spec": {"podSets": sets}})),
        ["spec.podSets: Invalid value: 2: at most one podSet can use minCount"]
    );
    let asks = json!({"requests": {"pods": "1", "cpu": "1"}, "limits": {"pods": "1"}});
    let container = json!({"name": "c", "resources": asks});
    let pods = json!({"spec": {"containers": [container], "initContainers": [{"name": "i"}]}});
    let path = "spec.podSets[0].template.spec.containers[0].resources";
    let why = "Invalid value: \"pods\": the key is reserved for internal kueue use";
    assert_eq!(
        faults(&WORKLOAD, json!({"spec": {"podSets": [{"template": pods}]}})),
        [format!("{path}.requests[pods]: {why}"), format!("{path}.limits[pods]: {why}")]
    );
}

// rule: queueing 1.2.2
#[test]
fn little_may_change_while_quota_is_reserved() {
    let class = |group: &str, kind: &str, name: &str| {
        json!({"spec": {"priority": 1, "priorityClassRef":
            {"group": group, "kind": kind, "name": name}}})
    };
    let own = |name| class("kueue.x-k8s.io", "WorkloadPriorityClass", name);
    let pods = |name| class("scheduling.k8s.io", "PriorityClass", name);
    let root = "<nil>: Invalid value: ";
    let cases: [(&str, Value, Value, &[&str]); 8] = [
        ("nothing", json!({}), json!({}), &[]),
        (
            "the queue",
            json!({}),
            json!({"spec": {"queueName": "r"}}),
            &["queueName is immutable while workload quota reserved"],
        ),
        (
            "a class is added",
            json!({}),
            own("high"),
            &["priorityClassRef is immutable while workload quota reserved"],
        ),
        (
            "another kind of class",
            own("high"),
            pods("high"),
            &[
                "priorityClassRef.group is immutable while workload quota reserved",
                "priorityClassRef.kind is immutable while workload quota reserved",
            ],
        ),
        ("another class of workloads", own("high"), own("low"), &[]),
        (
            "another class of pods",
            pods("high"),
            pods("low"),
            &["priorityClassRef.name is immutable for scheduling.k8s.io/priorityclass while \
               workload quota reserved"],
        ),
        (
            "the time",
            json!({}),
            json!({"spec": {"maximumExecutionTimeSeconds": 5}}),
            &["maximumExecutionTimeSeconds is immutable while workload quota reserved"],
        ),
        ("whether it is active", json!({}), json!({"spec": {"active": false}}), &[]),
    ];
    for (name, old, new, want) in cases {
        let want: Vec<String> = want.iter().map(|why| format!("{root}{why}")).collect();
        let got = change_faults(&WORKLOAD, &admitted(old.clone()), &admitted(new.clone()));
        assert_eq!(got, want, "{name}");
        let free = change_faults(&WORKLOAD, &workload(old), &workload(new));
        assert_eq!(free, Vec::<String>::new(), "{name}: nothing is reserved");
    }
}

// rule: queueing 1.2.2
#[test]
fn pod_sets_stay_while_quota_is_reserved() {
    let mut smaller = admitted(json!({}));
    smaller["spec"]["podSets"][1]["count"] = 2.into();
    let got = change_faults(&WORKLOAD, &admitted(json!({})), &smaller);
    assert_eq!(got.len(), 1, "{got:?}");
    assert!(got[0].starts_with("spec.podSets.1: Invalid value: {"), "{got:?}");
    assert!(got[0].ends_with(": field is immutable"), "{got:?}");
    let elastic = json!({"metadata": {"annotations": {"kueue.x-k8s.io/elastic-job": "true"}}});
    merge(&mut smaller, elastic.clone());
    let got = change_faults(&WORKLOAD, &admitted(elastic), &smaller);
    assert_eq!(got, Vec::<String>::new(), "one that may shrink");
}

// rule: queueing 1.2.4
#[test]
fn an_admission_is_there_while_quota_is_reserved_and_does_not_change() {
    let gone = admitted(json!({"status": {"admission": null}}));
    assert_eq!(
        change_faults(&WORKLOAD, &workload(json!({})), &gone),
        ["status.admission: Required value: must be set while the QuotaReserved condition is true"]
    );
    let mut fewer = admitted(json!({}));
    fewer["status"]["admission"]["podSetAssignments"].as_array_mut().unwrap().pop();
    assert_eq!(
        change_faults(&WORKLOAD, &workload(json!({})), &fewer),
        [
            "<nil>: Invalid value: podSetAssignments must have the same number of podSets as the spec"
        ]
    );
    let mut other = admitted(json!({}));
    other["status"]["admission"]["podSetAssignments"][0]["name"] = "z".into();
    assert_eq!(
        change_faults(&WORKLOAD, &workload(json!({})), &other),
        ["status.admission.podSetAssignments[0].name: Not found: \"z\""]
    );
    let moved = admitted(json!({"status": {"admission": {"clusterQueue": "other"}}}));
    let got = change_faults(&WORKLOAD, &admitted(json!({})), &moved);
    assert!(got.len() == 1 && got[0].ends_with(": field is immutable"), "{got:?}");
    assert!(got[0].starts_with("status.admission: Invalid value: {"), "{got:?}");
    let mut placed = admitted(json!({}));
    placed["status"]["admission"]["podSetAssignments"][0]["topologyAssignment"] =
        json!({"levels": ["host"]});
    let none = Vec::<String>::new();
    assert_eq!(change_faults(&WORKLOAD, &admitted(json!({})), &placed), none);
    assert_eq!(change_faults(&WORKLOAD, &admitted(json!({})), &workload(json!({}))), none);
    assert_eq!(change_faults(&WORKLOAD, &workload(json!({})), &admitted(json!({}))), none);
}

// rule: queueing 1.2.5
#[test]
fn reclaimable_pods_are_known_and_do_not_shrink_while_quota_is_reserved() {
    let with = |count: i32| {
        admitted(json!({"status": {"reclaimablePods": [
        {"name": "a", "count": count}]}}))
    };
    let path = "status.reclaimablePods[a]";
    assert_eq!(
        change_faults(&WORKLOAD, &admitted(json!({})), &with(4)),
        [format!("{path}.count: Invalid value: 4: should be less or equal to 3")]
    );
    assert_eq!(
        change_faults(&WORKLOAD, &with(2), &with(1)),
        [format!("{path}.count: Invalid value: 1: cannot be less then 2")]
    );
    assert_eq!(
        change_faults(&WORKLOAD, &with(2), &admitted(json!({}))),
        [format!("{path}: Required value: cannot be removed")]
    );
    assert_eq!(change_faults(&WORKLOAD, &with(1), &with(2)), Vec::<String>::new());
    let released = workload(json!({"status": {"reclaimablePods": [{"name": "a", "count": 0}]}}));
    assert_eq!(change_faults(&WORKLOAD, &with(2), &released), Vec::<String>::new());
    let unknown = admitted(json!({"status": {"reclaimablePods": [{"name": "z", "count": 1}]}}));
    assert_eq!(
        change_faults(&WORKLOAD, &admitted(json!({})), &unknown),
        [
            "status.reclaimablePods[z].name: Unsupported value: \"z\": supported values: \"a\", \"b\""
        ]
    );
}

// rule: queueing 1.2.5
#[test]
fn a_status_has_its_bounds() {
    let many: Vec<Value> = (0..17).map(|n| condition(&format!("C{n}"), "True")).collect();
    let check = |n: usize| {
        json!({"name": format!("c{n}"), "state": "Pending", "message": "",
               "lastTransitionTime": "2026-11-15T12:00:00Z"})
    };
    let cases = [
        (
            json!({"conditions": many}),
            "status.conditions: Too many: 17: must have at most 16 items",
        ),
        (
            json!({"admissionChecks": (0..9).map(check).collect::<Vec<_>>()}),
            "status.admissionChecks: Too many: 9: must have at most 8 items",
        ),
        (
            json!({"requeueState": {"count": -1}}),
            "status.requeueState.count: Invalid value: -1: status.requeueState.count in body \
             should be greater than or equal to 0",
        ),
    ];
    for (status, want) in cases {
        let got =
            change_faults(&WORKLOAD, &workload(json!({})), &workload(json!({"status": status})));
        assert_eq!(got[0], want);
    }
    let mut asked = workload(json!({"status": {"admissionChecks": [check(0)]}}));
    asked["status"]["admissionChecks"][0]["podSetUpdates"] =
        json!([{"name": "z", "tolerations": [{"operator": "Equal"}]}]);
    let path = "status.admissionChecks[0].podSetUpdates[0]";
    assert_eq!(
        change_faults(&WORKLOAD, &workload(json!({})), &asked),
        [
            format!("{path}.name: Unsupported value: \"z\": supported values: \"a\", \"b\""),
            format!(
                "{path}.tolerations: Invalid value: operator must be Exists when 'key' is empty, \
                 which means 'match all values and all keys'"
            ),
        ]
    );
}

// rule: queueing 2.1.3
#[test]
fn times_that_cannot_be_read_are_refused_where_they_are_written() {
    let bad = json!({"metadata": {"annotations": {"lockstep.dev/pods-ready-timeout": "later"}}});
    assert_eq!(
        faults(&WORKLOAD, workload(bad)),
        [
            "metadata.annotations[lockstep.dev/pods-ready-timeout]: Invalid value: \"later\": must be \
          a duration above zero, such as 5m or 1h30m"
        ]
    );
}
