//! What a stock cluster's admission plugins do to every pod: service account, tolerations,
//! priority.

use serde_json::{Value, json};

use super::{defaults, object_mut};
use crate::{json, json::set_default, strategy::Json};

/// How long a pod stays on a node that is not ready or cannot be reached.
const TOLERATION_SECONDS: i64 = 300;

/// Does to a new pod what the service account, toleration and priority plugins do. A priority class
/// that is not built in must be looked up first, see [`set_priority`].
pub fn admit(pod: &mut Json) {
    let Some(spec) = object_mut(pod, "spec") else { return };
    if json::text(spec, &["serviceAccountName"]).is_empty() {
        spec.insert("serviceAccountName".to_owned(), json!("default"));
    }
    defaults::mirror_service_account(spec);
    add_tolerations(spec);
    let priority = match json::text(spec, &["priorityClassName"]) {
        "" => 0,
        "system-cluster-critical" => 2_000_000_000,
        "system-node-critical" => 2_000_001_000,
        _ => return,
    };
    set_default(spec, "priority", priority);
    set_default(spec, "preemptionPolicy", "PreemptLowerPriority");
}

/// Gives a new pod the priority of its class.
///
/// # Errors
/// When the pod names another priority or preemption policy than the class has; the text completes
/// `pods "x" is forbidden: `.
pub fn set_priority(pod: &mut Json, value: i64, preemption_policy: &str) -> Result<(), String> {
    let Some(spec) = object_mut(pod, "spec") else { return Ok(()) };
    if let Some(given) = json::integer(spec, &["priority"])
        && given != value
    {
        return Err(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority \
             admission controller computed {value} from the given PriorityClass name"
        ));
    }
    let given = json::text(spec, &["preemptionPolicy"]);
    if !given.is_empty() && given != preemption_policy {
        return Err(format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; \
             priority admission controller computed {preemption_policy} from the given \
             PriorityClass name"
        ));
    }
    spec.insert("priority".to_owned(), json!(value));
    spec.insert("preemptionPolicy".to_owned(), json!(preemption_policy));
    Ok(())
}

/// Lets a pod stay a while on a node in trouble, unless it says itself how long.
pub(super) fn add_tolerations(spec: &mut Json) {
    for taint in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let is_tolerated = json::list(spec, &["tolerations"]).iter().any(|toleration| {
            let text = |key: &str| toleration.get(key).and_then(Value::as_str).unwrap_or_default();
            matches!(text("effect"), "" | "NoExecute")
                && (text("key").is_empty() || text("key") == taint)
        });
        if is_tolerated {
            continue;
        }
        let toleration = json!({
            "key": taint,
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": TOLERATION_SECONDS,
        });
        set_default(spec, "tolerations", json!([]));
        if let Some(list) = spec.get_mut("tolerations").and_then(Value::as_array_mut) {
            list.push(toleration);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Json, admit, set_priority};

    fn pod(spec: Value) -> Json {
        json!({"spec": spec}).as_object().unwrap().clone()
    }

    #[test]
    fn a_pod_gets_what_a_stock_cluster_gives_it() {
        let mut it = pod(json!({}));
        admit(&mut it);
        assert_eq!(
            Value::Object(it.clone()),
            json!({"spec": {
                "serviceAccountName": "default",
                "serviceAccount": "default",
                "priority": 0,
                "preemptionPolicy": "PreemptLowerPriority",
                "tolerations": [
                    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
                    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
                ],
            }})
        );
        let once = it.clone();
        admit(&mut it);
        assert_eq!(it, once);
    }

    #[test]
    fn tolerations_of_the_user_stand() {
        let mut all = pod(json!({"tolerations": [{"operator": "Exists"}]}));
        admit(&mut all);
        assert_eq!(all["spec"]["tolerations"].as_array().unwrap().len(), 1);
        let mut one = pod(json!({"tolerations": [
            {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute", "tolerationSeconds": 1}
        ]}));
        admit(&mut one);
        assert_eq!(one["spec"]["tolerations"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn priority_comes_from_the_class() {
        let mut it = pod(json!({"priorityClassName": "gold"}));
        admit(&mut it);
        assert!(it["spec"].get("priority").is_none(), "the class must be looked up");
        assert_eq!(set_priority(&mut it, 7, "Never"), Ok(()));
        assert_eq!(it["spec"]["priority"], 7);
        assert_eq!(
            set_priority(&mut it, 8, "Never").unwrap_err(),
            "the integer value of priority (7) must not be provided in pod spec; priority admission controller computed 8 from the given PriorityClass name"
        );
        let mut node = pod(json!({"priorityClassName": "system-node-critical"}));
        admit(&mut node);
        assert_eq!(node["spec"]["priority"], 2_000_001_000);
    }
}
