//! The objects of a shape, named and labelled as Kueue's performance tests do.

use std::time::Duration;

use jiff::Timestamp;
use lockstep_api::kueue::{ClusterQueue, LocalQueue, ResourceFlavor, Workload, WorkloadStatus};
use lockstep_api::reasons::kueue::{admitted, workload as kinds};
use serde_json::json;

use super::shape::{BORROWING, Class, NOMINAL, Queue};

/// The one flavor.
const FLAVOR: &str = "rf";

const CLASS: &str = "kueue.x-k8s.io/performance-scheduler-class";
const CLEANUP: &str = "kueue.x-k8s.io/performance-scheduler-cleanup";
const RUNNING: &str = "kueue.x-k8s.io/performance-scheduler-running-ms";

pub(super) fn flavor() -> ResourceFlavor {
    let object = json!({"metadata": {"name": FLAVOR, "labels": {CLEANUP: "true"}}});
    serde_json::from_value(object).unwrap()
}

pub(super) fn cluster_queue(queue: &Queue) -> ClusterQueue {
    let quota = json!({"name": "cpu", "nominalQuota": NOMINAL.to_string(),
                       "borrowingLimit": BORROWING.to_string()});
    let object = json!({
        "metadata": {"name": queue.name, "labels": {CLASS: "cq", CLEANUP: "true"}},
        "spec": {
            "cohortName": format!("cohort-{}", queue.cohort),
            "namespaceSelector": {},
            "queueingStrategy": "BestEffortFIFO",
            "resourceGroups": [{"coveredResources": ["cpu"],
                                "flavors": [{"name": FLAVOR, "resources": [quota]}]}],
            "flavorFungibility": {"whenCanBorrow": "MayStopSearch",
                                  "whenCanPreempt": "TryNextFlavor"},
            "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
        },
    });
    serde_json::from_value(object).unwrap()
}

pub(super) fn local_queue(queue: &Queue) -> LocalQueue {
    let name = &queue.name;
    let object = json!({
        "metadata": {"name": name, "namespace": name, "labels": {CLEANUP: "true"}},
        "spec": {"clusterQueue": name},
    });
    serde_json::from_value(object).unwrap()
}

/// One of a class, of which there are several sets.
pub(super) fn workload(queue: &str, class: &Class, set: usize, nth: usize) -> Workload {
    let requests = json!({"requests": {"cpu": class.cpus.to_string()}});
    let containers = json!([{"name": "c", "image": "none", "resources": requests}]);
    let template = json!({"spec": {"containers": containers, "restartPolicy": "Never"}});
    let object = json!({
        "metadata": {
            "name": format!("{}-{set}-{nth}-0", class.name),
            "namespace": queue,
            "labels": {CLASS: class.name, CLEANUP: "true",
                       RUNNING: class.runs.as_millis().to_string()},
        },
        "spec": {"queueName": queue, "priority": class.priority,
                 "podSets": [{"name": "main", "count": 1, "template": template}]},
    });
    serde_json::from_value(object).unwrap()
}

pub(super) fn class_of(workload: &Workload) -> &str {
    label(workload, CLASS)
}

/// For how long a workload runs.
pub(super) fn runs_for(workload: &Workload) -> Duration {
    Duration::from_millis(label(workload, RUNNING).parse().unwrap())
}

fn label<'a>(workload: &'a Workload, name: &str) -> &'a str {
    &workload.metadata.labels.as_ref().unwrap()[name]
}

/// Namespace and name.
pub(super) fn key(workload: &Workload) -> String {
    let meta = &workload.metadata;
    format!("{}/{}", meta.namespace.as_deref().unwrap(), meta.name.as_deref().unwrap())
}

pub(super) fn version(workload: &Workload) -> u64 {
    workload.metadata.resource_version.as_deref().unwrap().parse().unwrap()
}

pub(super) fn is_true(workload: &Workload, kind: &str) -> bool {
    workload.status.as_ref().is_some_and(|status| status.is_true(kind))
}

/// What a workload holds, in cores.
pub(super) fn held(workload: &Workload) -> i64 {
    let is_held = is_true(workload, kinds::QUOTA_RESERVED) && !is_true(workload, kinds::FINISHED);
    let status = workload.status.as_ref().filter(|_| is_held);
    let admission = status.and_then(|status| status.admission.as_ref());
    let sets = admission.into_iter().flat_map(|it| &it.pod_set_assignments);
    sets.map(|set| set.resource_usage["cpu"].0.parse::<i64>().unwrap()).sum()
}

/// The status of a workload that has run.
pub(super) fn finished(workload: &Workload, now: Timestamp) -> WorkloadStatus {
    let mut status = workload.status.clone().unwrap_or_default();
    status.say((kinds::FINISHED, true), ("ByTest", "By test runner"), None, now);
    status
}

/// The status of a workload that was evicted and has stopped.
pub(super) fn released(workload: &Workload, now: Timestamp) -> WorkloadStatus {
    let mut status = workload.status.clone().unwrap_or_default();
    status.admission = None;
    let said = ("Pending", "Evicted by the test runner");
    status.say((kinds::QUOTA_RESERVED, false), said, None, now);
    let said = (admitted::NO_RESERVATION, "The workload has no reservation");
    status.say((kinds::ADMITTED, false), said, None, now);
    status
}
