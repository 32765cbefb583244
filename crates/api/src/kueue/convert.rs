//! v1beta1, which is served and not stored.
//!
//! Fields that only have another name, or another form with the same meaning, come back as they
//! went. What v1beta1 has no field for is not shown in it: preemption gates, what clusters share,
//! and what is written through v1beta1 afterwards loses it.

mod topology;

use serde_json::{Value, json};

use crate::{
    json::{object_mut, text},
    strategy::Json,
};

/// Where a priority comes from in v1beta1, and the group and the kind of that in v1beta2.
const SOURCES: [(&str, &str, &str); 2] = [
    ("kueue.x-k8s.io/workloadpriorityclass", "kueue.x-k8s.io", "WorkloadPriorityClass"),
    ("scheduling.k8s.io/priorityclass", "scheduling.k8s.io", "PriorityClass"),
];
const PAST_TIME: &str = "accumulatedPastExecutionTimeSeconds";
/// The name that v1beta1 has for it.
const PAST_TIME_MISSPELT: &str = "accumulatedPastExexcutionTimeSeconds";

/// Turns an object of v1beta1 into one of v1beta2.
pub(super) fn to_stored(kind: &str, mut object: Json) -> Json {
    match kind {
        "ClusterQueue" => {
            edit(&mut object, "spec", cluster_queue_to_stored);
            edit(&mut object, "status", |status| drop(status.remove("pendingWorkloadsStatus")));
        }
        "LocalQueue" => edit(&mut object, "status", |status| {
            rename(status, "flavorUsage", "flavorsUsage");
            status.remove("flavors");
        }),
        "Workload" => {
            edit(&mut object, "spec", priority_to_stored);
            edit(&mut object, "status", |status| {
                rename(status, PAST_TIME_MISSPELT, PAST_TIME);
                each_assignment(status, topology::to_stored);
            });
        }
        _ => {}
    }
    object
}

/// Turns an object of v1beta2 into one of v1beta1.
pub(super) fn from_stored(kind: &str, mut object: Json) -> Json {
    match kind {
        "ClusterQueue" => edit(&mut object, "spec", |spec| {
            rename(spec, "cohortName", "cohort");
            spec.remove("concurrentAdmissionPolicy");
        }),
        "LocalQueue" => {
            edit(&mut object, "status", |status| rename(status, "flavorsUsage", "flavorUsage"));
        }
        "Workload" => {
            edit(&mut object, "spec", priority_from_stored);
            edit(&mut object, "status", |status| {
                rename(status, PAST_TIME, PAST_TIME_MISSPELT);
                each_assignment(status, topology::from_stored);
            });
        }
        _ => {}
    }
    object
}

fn cluster_queue_to_stored(spec: &mut Json) {
    rename(spec, "cohort", "cohortName");
    edit(spec, "flavorFungibility", |policy| {
        for (field, alias) in [("whenCanBorrow", "Borrow"), ("whenCanPreempt", "Preempt")] {
            if text(policy, &[field]) == alias {
                policy.insert(field.to_owned(), "MayStopSearch".into());
            }
        }
    });
    let Some(Value::Array(listed)) = spec.remove("admissionChecks") else { return };
    if listed.is_empty() {
        return;
    }
    let strategy = object_mut(spec, "admissionChecksStrategy");
    let mut rules = match strategy.remove("admissionChecks") {
        Some(Value::Array(rules)) => rules,
        _ => Vec::new(),
    };
    // Who applies a manifest with a flat list again finds the rules it became.
    for name in listed {
        if !rules.iter().any(|rule| rule["name"] == name) {
            rules.push(json!({"name": name}));
        }
    }
    strategy.insert("admissionChecks".to_owned(), rules.into());
}

fn priority_to_stored(spec: &mut Json) {
    let name = spec.remove("priorityClassName").filter(|name| name != "");
    let source = spec.remove("priorityClassSource").unwrap_or_default();
    let known = SOURCES.into_iter().find(|(said, ..)| source == *said);
    if let (Some(name), Some((_, group, kind))) = (name, known) {
        let class = json!({"group": group, "kind": kind, "name": name});
        spec.insert("priorityClassRef".to_owned(), class);
    }
}

fn priority_from_stored(spec: &mut Json) {
    spec.remove("preemptionGates");
    let Some(Value::Object(mut class)) = spec.remove("priorityClassRef") else { return };
    let kind = text(&class, &["kind"]).to_owned();
    let known = SOURCES.into_iter().find(|(.., of)| kind == *of);
    if let (Some(name), Some((source, ..))) = (class.remove("name"), known) {
        spec.insert("priorityClassName".to_owned(), name);
        spec.insert("priorityClassSource".to_owned(), source.into());
    }
}

fn each_assignment(status: &mut Json, convert: fn(Value) -> Value) {
    edit(status, "admission", |admission| {
        let Some(Value::Array(assignments)) = admission.get_mut("podSetAssignments") else {
            return;
        };
        for assignment in assignments.iter_mut().filter_map(Value::as_object_mut) {
            if let Some(topology) = assignment.remove("topologyAssignment") {
                assignment.insert("topologyAssignment".to_owned(), convert(topology));
            }
        }
    });
}

fn rename(object: &mut Json, from: &str, to: &str) {
    if let Some(value) = object.remove(from) {
        object.insert(to.to_owned(), value);
    }
}

/// Changes a member that is an object.
fn edit(object: &mut Json, member: &str, change: impl FnOnce(&mut Json)) {
    if let Some(Value::Object(member)) = object.get_mut(member) {
        change(member);
    }
}
