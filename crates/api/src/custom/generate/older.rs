//! The schemas of v1beta1 of kueue.x-k8s.io, made of those of v1beta2: what is called otherwise
//! there, what it has more, and what it lacks. `kueue::convert` does the same to objects.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::package::{Older, Package};

/// The schemas of the older version of a package, made of those of the stored one.
pub(super) fn schemas(
    package: &Package,
    older: &Older,
    stored: &BTreeMap<String, Value>,
) -> BTreeMap<String, Value> {
    let text = json!(stored).to_string().replace(package.prefix, older.prefix);
    let mut schemas: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap_or_default();
    for schema in schemas.values_mut() {
        if let Some(mark) = schema.get_mut("x-kubernetes-group-version-kind") {
            mark[0]["version"] = older.version.into();
        }
        drop_rules(schema);
    }
    let mut properties = |name: &str, edit: fn(&mut Map<String, Value>)| {
        let schema = schemas.get_mut(&format!("{}{name}", older.prefix));
        if let Some(Value::Object(properties)) = schema.and_then(|it| it.get_mut("properties")) {
            edit(properties);
        }
    };
    properties("ClusterQueueSpec", cluster_queue);
    properties("ClusterQueueStatus", |status| {
        let what = "Not filled in any more.";
        status.insert("pendingWorkloadsStatus".to_owned(), anything(what));
    });
    properties("FlavorFungibility", |policy| {
        for (field, alias) in [("whenCanBorrow", "Borrow"), ("whenCanPreempt", "Preempt")] {
            policy[field]["enum"] = json!(["MayStopSearch", "TryNextFlavor", alias]);
        }
    });
    properties("LocalQueueStatus", |status| {
        rename(status, "flavorsUsage", "flavorUsage");
        let flavors = json!({"type": "array", "description": "Not filled in any more.",
                             "items": anything("A flavor.")});
        status.insert("flavors".to_owned(), flavors);
    });
    properties("WorkloadSpec", workload);
    properties("WorkloadStatus", |status| {
        let misspelt = "accumulatedPastExexcutionTimeSeconds";
        rename(status, "accumulatedPastExecutionTimeSeconds", misspelt);
    });
    for unused in ["PreemptionGate", "PriorityClassRef"] {
        schemas.remove(&format!("{}{unused}", older.prefix));
    }
    schemas
}

fn cluster_queue(spec: &mut Map<String, Value>) {
    rename(spec, "cohortName", "cohort");
    spec.remove("concurrentAdmissionPolicy");
    let checks = json!({
        "description": "Checks that admissions must pass, for all flavors.",
        "type": "array", "maxItems": 64, "items": {"type": "string", "maxLength": 316},
        "x-kubernetes-list-type": "set",
    });
    spec.insert("admissionChecks".to_owned(), checks);
}

fn workload(spec: &mut Map<String, Value>) {
    spec.remove("preemptionGates");
    spec.remove("priorityClassRef");
    let name = json!({"description": "The class the priority comes from.",
                      "type": "string", "maxLength": 253});
    spec.insert("priorityClassName".to_owned(), name);
    let source = json!({
        "description": "What kind of class that is.", "type": "string",
        "enum": ["kueue.x-k8s.io/workloadpriorityclass", "scheduling.k8s.io/priorityclass", ""],
    });
    spec.insert("priorityClassSource".to_owned(), source);
}

fn rename(properties: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(property) = properties.remove(from) {
        properties.insert(to.to_owned(), property);
    }
}

fn anything(description: &str) -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
           "description": description})
}

/// Takes away expressions: they are about fields of the stored version, and checked there.
fn drop_rules(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.remove("x-kubernetes-validations");
            members.values_mut().for_each(drop_rules);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_rules),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
