use serde_json::{Value, json};

use super::{created_in, resource};
use crate::kueue::{CLUSTER_QUEUE, Kind, LOCAL_QUEUE, OLD_VERSION, RESOURCE_FLAVOR, WORKLOAD};

fn to_stored(kind: &Kind, object: &Value) -> Value {
    resource(kind, OLD_VERSION).strategy.to_stored(object.as_object().unwrap().clone()).into()
}

fn from_stored(kind: &Kind, object: &Value) -> Value {
    resource(kind, OLD_VERSION).strategy.from_stored(object.as_object().unwrap().clone()).into()
}

/// Objects of v1beta1, and the same of v1beta2, both ways.
fn both_ways() -> Vec<(&'static str, &'static Kind, Value, Value)> {
    vec![
        (
            "cohort",
            &CLUSTER_QUEUE,
            json!({"spec": {"cohort": "c"}}),
            json!({"spec": {"cohortName": "c"}}),
        ),
        (
            "checks by flavor",
            &CLUSTER_QUEUE,
            json!({"spec": {"admissionChecksStrategy": {"admissionChecks": [
                {"name": "a", "onFlavors": ["f"]}]}}}),
            json!({"spec": {"admissionChecksStrategy": {"admissionChecks": [
                {"name": "a", "onFlavors": ["f"]}]}}}),
        ),
        (
            "usage",
            &LOCAL_QUEUE,
            json!({"spec": {"clusterQueue": "q"}, "status": {"flavorUsage": [{"name": "f"}]}}),
            json!({"spec": {"clusterQueue": "q"}, "status": {"flavorsUsage": [{"name": "f"}]}}),
        ),
        (
            "class of workloads",
            &WORKLOAD,
            json!({"spec": {"priorityClassName": "high", "priority": 5,
                            "priorityClassSource": "kueue.x-k8s.io/workloadpriorityclass"}}),
            json!({"spec": {"priority": 5, "priorityClassRef": {
                "group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"}}}),
        ),
        (
            "class of pods",
            &WORKLOAD,
            json!({"spec": {"priorityClassName": "high", "priority": 5,
                            "priorityClassSource": "scheduling.k8s.io/priorityclass"}}),
            json!({"spec": {"priority": 5, "priorityClassRef": {
                "group": "scheduling.k8s.io", "kind": "PriorityClass", "name": "high"}}}),
        ),
        (
            "past time",
            &WORKLOAD,
            json!({"spec": {}, "status": {"accumulatedPastExexcutionTimeSeconds": 7}}),
            json!({"spec": {}, "status": {"accumulatedPastExecutionTimeSeconds": 7}}),
        ),
        (
            "domains",
            &WORKLOAD,
            json!({"status": {"admission": {"podSetAssignments": [{"topologyAssignment": {
                "levels": ["block", "rack"],
                "domains": [{"values": ["b", "r1"], "count": 4}, {"values": ["b", "r2"], "count": 2}],
            }}]}}}),
            json!({"status": {"admission": {"podSetAssignments": [{"topologyAssignment": {
                "levels": ["block", "rack"],
                "slices": [{
                    "domainCount": 2,
                    "valuesPerLevel":
                        [{"universal": "b"}, {"individual": {"roots": ["r1", "r2"]}}],
                    "podCounts": {"individual": [4, 2]},
                }],
            }}]}}}),
        ),
        (
            "flavors",
            &RESOURCE_FLAVOR,
            json!({"spec": {"nodeLabels": {"a": "b"}}}),
            json!({"spec": {"nodeLabels": {"a": "b"}}}),
        ),
    ]
}

// rule: queueing 1.1.1
#[test]
fn what_only_has_another_name_or_form_comes_back_as_it_went() {
    for (name, kind, old, new) in both_ways() {
        assert_eq!(to_stored(kind, &old), new, "{name}");
        assert_eq!(from_stored(kind, &new), old, "{name}");
    }
}

// rule: queueing 1.1.1
#[test]
fn what_v1beta1_says_in_two_ways_is_stored_in_one() {
    let cases = [
        (
            "a flat list of checks is rules for all flavors",
            json!({"spec": {"admissionChecks": ["a", "b"]}}),
            json!({"spec": {"admissionChecksStrategy":
                {"admissionChecks": [{"name": "a"}, {"name": "b"}]}}}),
        ),
        ("an empty one is none", json!({"spec": {"admissionChecks": []}}), json!({"spec": {}})),
        (
            "one that was applied before is found again",
            json!({"spec": {"admissionChecks": ["a", "b"],
                "admissionChecksStrategy": {"admissionChecks": [{"name": "a"}]}}}),
            json!({"spec": {"admissionChecksStrategy":
                {"admissionChecks": [{"name": "a"}, {"name": "b"}]}}}),
        ),
        (
            "aliases of MayStopSearch",
            json!({"spec": {"flavorFungibility":
                {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"}}}),
            json!({"spec": {"flavorFungibility":
                {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "MayStopSearch"}}}),
        ),
        (
            "names of pending workloads are not kept",
            json!({"spec": {}, "status": {"pendingWorkloadsStatus": {"lastChangeTime": "t"}}}),
            json!({"spec": {}, "status": {}}),
        ),
    ];
    for (name, old, new) in cases {
        assert_eq!(to_stored(&CLUSTER_QUEUE, &old), new, "{name}");
    }
    let queue = json!({"status": {"flavors": [{"name": "f"}], "flavorUsage": []}});
    assert_eq!(to_stored(&LOCAL_QUEUE, &queue), json!({"status": {"flavorsUsage": []}}));
    let nameless = json!({"spec": {"priorityClassName": "", "priorityClassSource": ""}});
    assert_eq!(to_stored(&WORKLOAD, &nameless), json!({"spec": {}}));
}

// rule: queueing 1.1.1
#[test]
fn what_v1beta1_has_no_field_for_is_not_shown_in_it() {
    let workload = json!({"spec": {"preemptionGates": [{"name": "g"}], "active": true}});
    assert_eq!(from_stored(&WORKLOAD, &workload), json!({"spec": {"active": true}}));
    let queue = json!({"spec": {"concurrentAdmissionPolicy": {}, "cohortName": "c"}});
    assert_eq!(from_stored(&CLUSTER_QUEUE, &queue), json!({"spec": {"cohort": "c"}}));
    let sliced = json!({"status": {"admission": {"podSetAssignments": [{"topologyAssignment": {
        "levels": ["host"],
        "slices": [
            {"domainCount": 2, "podCounts": {"universal": 1}, "valuesPerLevel":
                [{"individual": {"prefix": "n-", "roots": ["1", "2"], "suffix": "-x"}}]},
            {"domainCount": 1, "podCounts": {"individual": [3]},
                "valuesPerLevel": [{"universal": "m"}]},
        ],
    }}]}}});
    let shown = from_stored(&WORKLOAD, &sliced);
    assert_eq!(
        shown["status"]["admission"]["podSetAssignments"][0]["topologyAssignment"],
        json!({"levels": ["host"], "domains": [
            {"values": ["n-1-x"], "count": 1}, {"values": ["n-2-x"], "count": 1},
            {"values": ["m"], "count": 3},
        ]})
    );
}

// rule: queueing 1.1.1
#[test]
fn v1beta1_is_decoded_filled_in_and_answered_with_a_warning() {
    let queues = resource(&CLUSTER_QUEUE, OLD_VERSION);
    let warning = queues.strategy.deprecation();
    assert_eq!(warning, Some("This version is deprecated. Use v1beta2 instead."));
    assert_eq!(resource(&CLUSTER_QUEUE, "v1beta2").strategy.deprecation(), None);
    let group = json!({"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [
        {"name": "cpu", "nominalQuota": 5, "borrowingLimit": "1"}]}]});
    let queue = created_in(
        &queues,
        json!({"spec": {
            "cohort": "c", "admissionChecks": ["a"], "resourceGroups": [group],
            "flavorFungibility": {"whenCanBorrow": "Borrow"},
        }}),
    );
    assert_eq!(queue["spec"]["preemption"]["withinClusterQueue"], "Never");
    assert_eq!(queues.strategy.validate_create(&queue), []);
    let stored = queues.strategy.to_stored(queue.clone());
    assert_eq!(stored["spec"]["cohortName"], "c");
    let now = "2026-11-15T12:00:00Z".parse().unwrap();
    assert_eq!(queues.strategy.row(&queue, now)[1], "c", "columns are those of v1beta2");
    let alone = created_in(
        &resource(&WORKLOAD, OLD_VERSION),
        json!({"spec": {
            "podSets": [{"template": {"spec": {"containers": [{"name": "c"}]}}}],
            "priorityClassSource": "nobody",
        }}),
    );
    let errors = resource(&WORKLOAD, OLD_VERSION).strategy.validate_create(&alone);
    assert_eq!(
        errors[0].to_string(),
        "spec.priorityClassSource: Unsupported value: \"nobody\": supported values: \
         \"kueue.x-k8s.io/workloadpriorityclass\", \"scheduling.k8s.io/priorityclass\", \"\""
    );
    assert_eq!(errors.len(), 2, "and that rules were not looked at: {errors:?}");
}
