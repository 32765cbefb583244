//! The patch that turns one status into another.

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use serde_json::{Map, Value, json};

/// A strategic merge patch that makes the status of `pod` the wanted one and touches nothing else:
/// conditions of others, in particular, stay as they are by then.
pub(super) fn status_patch(pod: &Pod, wanted: &PodStatus) -> serde_json::Result<Value> {
    let old = match &pod.status {
        Some(status) => serde_json::to_value(status)?,
        None => json!({}),
    };
    let new = serde_json::to_value(wanted)?;
    let (Value::Object(old), Value::Object(new)) = (old, new) else {
        unreachable!("a struct becomes an object");
    };
    let mut changes = Map::new();
    for (field, value) in &new {
        match (field.as_str(), old.get(field)) {
            (_, Some(before)) if before == value => {}
            ("conditions", before) => {
                changes.insert(field.clone(), changed_conditions(before, value));
            }
            _ => drop(changes.insert(field.clone(), value.clone())),
        }
    }
    for field in old.keys() {
        if !new.contains_key(field) {
            changes.insert(field.clone(), Value::Null);
        }
    }
    let mut meta = json!({"uid": pod.metadata.uid});
    if changes.contains_key("phase") {
        // A phase follows from the phase before: nobody may have changed it meanwhile, least of all
        // to a final one.
        meta["resourceVersion"] = json!(pod.metadata.resource_version);
    }
    Ok(json!({"metadata": meta, "status": changes}))
}

/// The conditions that are new or changed; what they no longer say is said to be gone.
fn changed_conditions(before: Option<&Value>, wanted: &Value) -> Value {
    let before = before.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let wanted = wanted.as_array().map(Vec::as_slice).unwrap_or_default();
    let changed = wanted.iter().filter(|condition| !before.contains(condition)).map(|condition| {
        let mut condition = condition.clone();
        let old = before.iter().find(|old| old["type"] == condition["type"]);
        if let (Some(Value::Object(old)), Value::Object(new)) = (old, &mut condition) {
            for field in old.keys() {
                new.entry(field.clone()).or_insert(Value::Null);
            }
        }
        condition
    });
    Value::Array(changed.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_holds_what_changed_and_nothing_else() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"uid": "u", "resourceVersion": "7"},
            "status": {
                "phase": "Running",
                "reason": "X",
                "podIP": "127.0.0.2",
                "conditions": [
                    {"type": "Theirs", "status": "True"},
                    {"type": "Ready", "status": "False", "reason": "R", "message": "m"},
                    {"type": "Initialized", "status": "True"},
                ],
            },
        }))
        .unwrap();
        let wanted: PodStatus = serde_json::from_value(json!({
            "phase": "Succeeded",
            "podIP": "127.0.0.2",
            "conditions": [
                {"type": "Theirs", "status": "True"},
                {"type": "Ready", "status": "True"},
                {"type": "Initialized", "status": "True"},
            ],
        }))
        .unwrap();
        assert_eq!(
            status_patch(&pod, &wanted).unwrap(),
            json!({
                "metadata": {"uid": "u", "resourceVersion": "7"},
                "status": {
                    "phase": "Succeeded",
                    "reason": null,
                    "conditions": [
                        {"type": "Ready", "status": "True", "reason": null, "message": null},
                    ],
                },
            })
        );
    }
}
