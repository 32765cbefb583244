//! What a node writes into the status of a pod.

use jiff::Timestamp;
use lockstep_api::{json, strategy::Json};
use serde_json::{Value, json};

/// How a pod ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The exit code of its container.
    pub code: i32,
    /// Whether somebody else made it end.
    pub is_disrupted: bool,
}

/// Reports that the container runs, for the `restarts`-th time again.
pub(super) fn running(pod: &mut Json, now: Timestamp, is_ready: bool, restarts: i32) {
    let started = json::text(pod, &["status", "startTime"]).to_owned();
    let started = if started.is_empty() { moment(now) } else { started };
    let status = json::object_mut(pod, "status");
    status.insert("phase".to_owned(), json!("Running"));
    status.insert("startTime".to_owned(), json!(started));
    let state = json!({"running": {"startedAt": moment(now)}});
    containers(status, &state, is_ready, restarts);
    condition(status, "Initialized", true, now);
    condition(status, "ContainersReady", is_ready, now);
    condition(status, "Ready", is_ready, now);
}

/// Reports that the container has ended for good, and the pod with it.
pub(super) fn ended(pod: &mut Json, now: Timestamp, ending: Ending, restarts: i32) {
    let status = json::object_mut(pod, "status");
    let (phase, reason) =
        if ending.code == 0 { ("Succeeded", "Completed") } else { ("Failed", "Error") };
    status.insert("phase".to_owned(), json!(phase));
    let state = json!({"terminated": {
        "exitCode": ending.code,
        "reason": reason,
        "startedAt": moment(now),
        "finishedAt": moment(now),
    }});
    containers(status, &state, false, restarts);
    condition(status, "ContainersReady", false, now);
    condition(status, "Ready", false, now);
    if ending.is_disrupted {
        condition(status, "DisruptionTarget", true, now);
    }
}

/// Reports that the pod will never run: there is no node for it any more.
pub(super) fn lost(pod: &mut Json, now: Timestamp) {
    let status = json::object_mut(pod, "status");
    status.insert("phase".to_owned(), json!("Failed"));
    condition(status, "DisruptionTarget", true, now);
}

/// A moment as the API writes it: whole seconds.
fn moment(at: Timestamp) -> String {
    Timestamp::from_second(at.as_second()).unwrap_or(at).to_string()
}

fn containers(status: &mut Json, state: &Value, is_ready: bool, restarts: i32) {
    let main = json!({
        "name": "main",
        "image": "worker",
        "imageID": "",
        "ready": is_ready,
        "started": is_ready,
        "restartCount": restarts,
        "state": state,
    });
    status.insert("containerStatuses".to_owned(), json!([main]));
}

fn condition(status: &mut Json, kind: &str, is_true: bool, now: Timestamp) {
    json::set_default(status, "conditions", json!([]));
    let Some(list) = status.get_mut("conditions").and_then(Value::as_array_mut) else { return };
    let word = if is_true { "True" } else { "False" };
    let known = list.iter_mut().find(|condition| condition["type"] == kind);
    if known.as_ref().is_some_and(|known| known["status"] == word) {
        return;
    }
    let value = json!({
        "type": kind,
        "status": word,
        "lastProbeTime": null,
        "lastTransitionTime": moment(now),
    });
    match known {
        Some(known) => *known = value,
        None => list.push(value),
    }
}
