use serde_json::{Value, json};

use super::{created, resource};
use crate::{
    kueue::{
        CLUSTER_QUEUE, KINDS, Kind, LOCAL_QUEUE, PRIORITY_CLASS, RESOURCE_FLAVOR, VERSION, WORKLOAD,
    },
    strategy::Json,
};

fn row(kind: &'static Kind, object: &Value) -> Value {
    let now = "2026-11-15T12:00:00Z".parse().unwrap();
    resource(kind, VERSION).strategy.row(object.as_object().unwrap(), now).into()
}

fn headers(kind: &'static Kind) -> Vec<(&'static str, i32)> {
    let columns = resource(kind, VERSION).strategy.columns();
    columns.iter().map(|column| (column.name, column.priority)).collect()
}

// rule: queueing 1.2.1
#[test]
fn workloads_are_called_and_shown_as_clients_know_them() {
    let workloads = resource(&WORKLOAD, VERSION);
    assert_eq!(workloads.short_names, ["kwl", "kueueworkload", "kueueworkloads"]);
    assert!(workloads.is_namespaced() && workloads.subresource("status").is_some());
    let want = [
        ("Name", 0),
        ("Queue", 0),
        ("Reserved in", 0),
        ("Admitted", 0),
        ("Finished", 0),
        ("Age", 0),
    ];
    assert_eq!(headers(&WORKLOAD), want);
    let object = json!({
        "metadata": {"name": "w", "creationTimestamp": "2026-11-15T11:59:00Z"},
        "spec": {"queueName": "q"},
        "status": {
            "admission": {"clusterQueue": "cq"},
            "conditions": [{"type": "Admitted", "status": "True"}],
        },
    });
    assert_eq!(row(&WORKLOAD, &object), json!(["w", "q", "cq", "True", null, "60s"]));
    let strategy = &workloads.strategy;
    assert_eq!(strategy.selectable_fields(), ["status.admission.clusterQueue"]);
    let value = |object: &Json| strategy.field_value(object, "status.admission.clusterQueue");
    assert_eq!(value(object.as_object().unwrap()), "cq");
    assert_eq!(value(&Json::new()), "");
}

// rule: queueing 1.4.1, queueing 1.5.1, queueing 1.6.1
#[test]
fn queues_flavors_and_classes_are_called_and_shown_as_clients_know_them() {
    let names: Vec<(&str, &[&str], bool, bool)> = KINDS
        .into_iter()
        .map(|kind| {
            let resource = resource(kind, VERSION);
            let has_status = resource.subresource("status").is_some();
            (kind.plural, kind.short_names, resource.is_namespaced(), has_status)
        })
        .collect();
    assert_eq!(
        names[..3],
        [
            ("clusterqueues", ["cq"].as_slice(), false, true),
            ("localqueues", ["queue", "queues", "lq"].as_slice(), true, true),
            ("resourceflavors", ["flavor", "flavors", "rf"].as_slice(), false, false),
        ]
    );
    assert_eq!(names[4], ("workloadpriorityclasses", ["wpc"].as_slice(), false, false));
    let want = [
        ("Name", 0),
        ("Cohort", 0),
        ("Strategy", 1),
        ("Pending Workloads", 0),
        ("Admitted Workloads", 1),
    ];
    assert_eq!(headers(&CLUSTER_QUEUE), want);
    let object = json!({
        "metadata": {"name": "cq"}, "spec": {"cohortName": "c", "queueingStrategy": "StrictFIFO"},
        "status": {"pendingWorkloads": 3, "admittedWorkloads": 0},
    });
    assert_eq!(row(&CLUSTER_QUEUE, &object), json!(["cq", "c", "StrictFIFO", 3, 0]));
    let want =
        [("Name", 0), ("ClusterQueue", 0), ("Pending Workloads", 0), ("Admitted Workloads", 0)];
    assert_eq!(headers(&LOCAL_QUEUE), want);
    assert_eq!(headers(&RESOURCE_FLAVOR), [("Name", 0), ("Age", 0)]);
    assert_eq!(headers(&PRIORITY_CLASS), [("Name", 0), ("Value", 0)]);
    let class = json!({"metadata": {"name": "high"}, "value": 100});
    assert_eq!(row(&PRIORITY_CLASS, &class), json!(["high", 100]));
}

// rule: queueing 1.4.1, queueing 1.5.1, queueing 1.2.2
#[test]
fn what_is_left_out_is_filled_in() {
    let queue = created(&CLUSTER_QUEUE, json!({"spec": {}}));
    assert_eq!(
        queue["spec"],
        json!({
            "queueingStrategy": "BestEffortFIFO",
            "stopPolicy": "None",
            "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"},
            "preemption": {
                "reclaimWithinCohort": "Never",
                "withinClusterQueue": "Never",
                "borrowWithinCohort": {"policy": "Never"},
            },
        })
    );
    let some = created(
        &CLUSTER_QUEUE,
        json!({"spec": {
            "preemption": {"withinClusterQueue": "LowerPriority"},
            "flavorFungibility": {"whenCanBorrow": "TryNextFlavor"},
        }}),
    );
    assert_eq!(
        some["spec"]["preemption"],
        json!({
            "reclaimWithinCohort": "Never",
            "withinClusterQueue": "LowerPriority",
            "borrowWithinCohort": {"policy": "Never"},
        })
    );
    assert_eq!(some["spec"]["flavorFungibility"]["whenCanPreempt"], "TryNextFlavor");
    let queue = created(&LOCAL_QUEUE, json!({"spec": {"clusterQueue": "cq"}}));
    assert_eq!(queue["spec"], json!({"clusterQueue": "cq", "stopPolicy": "None"}));
    let pods = json!({"spec": {"containers": [{"name": "c"}]}});
    let workload = created(
        &WORKLOAD,
        json!({
            "spec": {"podSets": [{"template": pods}]}, "status": {"conditions": []},
        }),
    );
    assert_eq!(workload["spec"]["active"], true);
    assert_eq!(workload["spec"]["podSets"][0]["name"], "main");
    assert_eq!(workload["spec"]["podSets"][0]["count"], 1);
    assert_eq!(workload.get("status"), None, "it is written through its own subresource");
}
