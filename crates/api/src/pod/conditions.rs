//! Conditions of a pod's status.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{json::set_default, strategy::Json};

/// Sets the condition `kind` of a status. The time of transition changes only with the status.
pub(super) fn set(status: &mut Json, kind: &str, condition: &Value, now: Timestamp) {
    set_default(status, "conditions", json!([]));
    let Some(list) = status.get_mut("conditions").and_then(Value::as_array_mut) else { return };
    let old = list.iter().position(|old| old.get("type").and_then(Value::as_str) == Some(kind));
    let mut new = json!({"type": kind, "lastProbeTime": null});
    if let (Some(new), Some(given)) = (new.as_object_mut(), condition.as_object()) {
        new.extend(given.clone());
    }
    let kept = old.filter(|at| list[*at].get("status") == new.get("status"));
    new["lastTransitionTime"] = match kept.and_then(|at| list[at].get("lastTransitionTime")) {
        Some(time) => time.clone(),
        None => json!(seconds(now)),
    };
    match old {
        Some(at) => list[at] = new,
        None => list.push(new),
    }
}

/// A moment as Kubernetes writes it: whole seconds, UTC.
fn seconds(now: Timestamp) -> String {
    let whole = Timestamp::from_second(now.as_second()).unwrap_or(now);
    whole.to_string()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::{Value, json};

    use super::set;

    #[test]
    fn the_transition_time_follows_the_status() {
        let mut status = serde_json::Map::new();
        let at = |second: i64| Timestamp::from_millisecond(second * 1000 + 7).unwrap();
        set(&mut status, "Ready", &json!({"status": "False"}), at(0));
        set(&mut status, "Ready", &json!({"status": "False", "reason": "X"}), at(1));
        let first = "1970-01-01T00:00:00Z";
        assert_eq!(
            Value::Object(status.clone()),
            json!({"conditions": [{"type": "Ready", "status": "False", "reason": "X", "lastProbeTime": null, "lastTransitionTime": first}]})
        );
        set(&mut status, "Ready", &json!({"status": "True"}), at(2));
        assert_eq!(status["conditions"][0]["lastTransitionTime"], "1970-01-01T00:00:02Z");
        set(&mut status, "Initialized", &json!({"status": "True"}), at(3));
        assert_eq!(status["conditions"].as_array().unwrap().len(), 2);
    }
}
