//! Giving a pod to a node through `/binding`.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::conditions;
use crate::{
    field::{ErrorList, FieldError, Path},
    json,
    status::Status,
    strategy::Json,
};

/// Assigns `pod` to the node that `binding` names, adds the binding's labels and annotations, and
/// notes that it was scheduled.
///
/// # Errors
/// 422 when the binding names no node, 409 when the pod has one, is being deleted or is held back
/// by scheduling gates. A precondition in the binding's metadata is the caller's to check.
pub fn bind(pod: &mut Json, binding: &Json, now: Timestamp) -> Result<(), Status> {
    let name = json::text(pod, &["metadata", "name"]).to_owned();
    let errors = validate_binding(binding);
    if !errors.is_empty() {
        return Err(Status::invalid_kind(("", "Binding"), &name, &errors));
    }
    if let Some(why) = refusal(pod, &name) {
        return Err(Status::conflict_on("pods/binding", &name, &why));
    }
    let node = json::text(binding, &["target", "name"]);
    json::object_mut(pod, "spec").insert("nodeName".to_owned(), json!(node));
    for field in ["annotations", "labels"] {
        let given = json::at(binding, &["metadata", field]).and_then(Value::as_object);
        for (key, value) in given.into_iter().flatten() {
            let meta = json::object_mut(pod, "metadata");
            json::object_mut(meta, field).insert(key.clone(), value.clone());
        }
    }
    let status = json::object_mut(pod, "status");
    status.remove("nominatedNodeName");
    conditions::set(status, "PodScheduled", &json!({"status": "True"}), now);
    Ok(())
}

fn validate_binding(binding: &Json) -> ErrorList {
    let target = Path::new("target");
    let mut errors = ErrorList::new();
    let kind = json::text(binding, &["target", "kind"]);
    if !matches!(kind, "" | "Node") {
        errors.push(FieldError::not_supported(&target.child("kind"), kind, &["Node", "<empty>"]));
    }
    if json::text(binding, &["target", "name"]).is_empty() {
        errors.push(FieldError::required(&target.child("name"), ""));
    }
    errors
}

fn refusal(pod: &Json, name: &str) -> Option<String> {
    let node = json::text(pod, &["spec", "nodeName"]);
    if !json::text(pod, &["metadata", "deletionTimestamp"]).is_empty() {
        Some(format!("pod {name} is being deleted, cannot be assigned to a host"))
    } else if !node.is_empty() {
        Some(format!("pod {name} is already assigned to node {node:?}"))
    } else if !json::list(pod, &["spec", "schedulingGates"]).is_empty() {
        Some(format!("pod {name} has non-empty .spec.schedulingGates"))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::{Value, json};

    use super::{Json, bind};

    fn object(value: Value) -> Json {
        value.as_object().unwrap().clone()
    }

    fn bound(pod: Value, binding: Value) -> Result<Value, String> {
        let mut pod = object(pod);
        bind(&mut pod, &object(binding), Timestamp::UNIX_EPOCH)
            .map(|()| Value::Object(pod))
            .map_err(|status| format!("{} {}", status.code, status.message))
    }

    #[test]
    fn a_pod_is_given_to_one_node_once() {
        let to = |node: &str| json!({"metadata": {"name": "p", "labels": {"zone": "a"}}, "target": {"kind": "Node", "name": node}});
        let fresh =
            json!({"metadata": {"name": "p"}, "spec": {}, "status": {"nominatedNodeName": "x"}});
        assert_eq!(
            bound(fresh, to("n")),
            Ok(json!({
                "metadata": {"name": "p", "labels": {"zone": "a"}},
                "spec": {"nodeName": "n"},
                "status": {"conditions": [{"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": "1970-01-01T00:00:00Z"}]},
            }))
        );
        let cases = [
            (
                json!({"metadata": {"name": "p"}, "spec": {"nodeName": "m"}}),
                to("n"),
                "409 Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node \"m\"",
            ),
            (
                json!({"metadata": {"name": "p", "deletionTimestamp": "2026-11-15T10:00:00Z"}, "spec": {}}),
                to("n"),
                "409 Operation cannot be fulfilled on pods/binding \"p\": pod p is being deleted, cannot be assigned to a host",
            ),
            (
                json!({"metadata": {"name": "p"}, "spec": {"schedulingGates": [{"name": "g"}]}}),
                to("n"),
                "409 Operation cannot be fulfilled on pods/binding \"p\": pod p has non-empty .spec.schedulingGates",
            ),
            (
                json!({"metadata": {"name": "p"}}),
                json!({"target": {"kind": "Pod"}}),
                "422 Binding \"p\" is invalid: [target.kind: Unsupported value: \"Pod\": supported values: \"Node\", \"<empty>\", target.name: Required value]",
            ),
        ];
        for (pod, binding, want) in cases {
            assert_eq!(bound(pod, binding), Err(want.to_owned()));
        }
    }
}
