//! How a pod looks in a table.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    duration,
    json::{at, flag, integer, list, text},
    strategy::{Column, Json},
};

const fn column(name: &'static str, description: &'static str, priority: i32) -> Column {
    Column { name, kind: "string", format: "", description, priority }
}

/// The columns of a table of pods.
pub(super) const COLUMNS: &[Column] = &[
    Column {
        name: "Name",
        kind: "string",
        format: "name",
        description: "Unique within a namespace.",
        priority: 0,
    },
    column("Ready", "The aggregate readiness state of this pod for accepting traffic.", 0),
    column("Status", "The aggregate status of the containers in this pod.", 0),
    column(
        "Restarts",
        "The number of times the containers in this pod have been restarted and when the last \
         container in this pod has restarted.",
        0,
    ),
    column("Age", "How long ago the pod was created.", 0),
    column("IP", "The address allocated to the pod.", 1),
    column("Node", "The node the pod was assigned to.", 1),
    column("Nominated Node", "The node where preemption is making room for the pod.", 1),
    column("Readiness Gates", "How many of the pod's readiness gates are true.", 1),
];

/// What the containers add up to.
#[derive(Default)]
struct Summary {
    reason: String,
    restarts: i64,
    restarted: Option<Timestamp>,
    ready: usize,
}

/// One row of a table of pods.
pub(super) fn row(pod: &Json, now: Timestamp) -> Vec<Value> {
    let summary = summarise(pod);
    let sidecars = list(pod, &["spec", "initContainers"]).iter().filter(|c| is_sidecar(c)).count();
    let total = list(pod, &["spec", "containers"]).len() + sidecars;
    let restarts = match summary.restarted {
        Some(when) if summary.restarts != 0 => {
            let ago = duration::human(now.duration_since(when).as_secs());
            format!("{} ({ago} ago)", summary.restarts)
        }
        _ => summary.restarts.to_string(),
    };
    let or_none = |text: &str| if text.is_empty() { json!("<none>") } else { json!(text) };
    let addresses = list(pod, &["status", "podIPs"]);
    let address = addresses.first().and_then(|ip| ip.get("ip")).and_then(Value::as_str);
    vec![
        json!(text(pod, &["metadata", "name"])),
        json!(format!("{}/{total}", summary.ready)),
        json!(summary.reason),
        json!(restarts),
        json!(duration::age(pod, now)),
        or_none(address.unwrap_or_default()),
        or_none(text(pod, &["spec", "nodeName"])),
        or_none(text(pod, &["status", "nominatedNodeName"])),
        json!(readiness_gates(pod)),
    ]
}

fn summarise(pod: &Json) -> Summary {
    let phase = text(pod, &["status", "phase"]);
    let mut summary = Summary { reason: initial_reason(pod, phase), ..Summary::default() };
    let is_initializing = add_init_containers(pod, &mut summary);
    if !is_initializing || has_condition(pod, "Initialized") {
        add_containers(pod, &mut summary);
    }
    let is_deleting = !text(pod, &["metadata", "deletionTimestamp"]).is_empty();
    if is_deleting && text(pod, &["status", "reason"]) == "NodeLost" {
        "Unknown".clone_into(&mut summary.reason);
    } else if is_deleting && !matches!(phase, "Succeeded" | "Failed") {
        "Terminating".clone_into(&mut summary.reason);
    }
    summary
}

fn initial_reason(pod: &Json, phase: &str) -> String {
    let is_gated = list(pod, &["status", "conditions"]).iter().any(|condition| {
        word(condition, "type") == "PodScheduled" && word(condition, "reason") == "SchedulingGated"
    });
    let reason = text(pod, &["status", "reason"]);
    match (is_gated, reason) {
        (true, _) => "SchedulingGated".to_owned(),
        (false, "") => phase.to_owned(),
        (false, reason) => reason.to_owned(),
    }
}

/// Adds the init containers up to the first that is not done, and says whether there is one.
fn add_init_containers(pod: &Json, summary: &mut Summary) -> bool {
    let containers = list(pod, &["spec", "initContainers"]);
    for (index, status) in objects(pod, "initContainerStatuses").enumerate() {
        count_restarts(status, summary);
        let name = text(status, &["name"]);
        let is_sidecar = containers.iter().any(|c| word(c, "name") == name && is_sidecar(c));
        let exit = at(status, &["state", "terminated"]).and_then(Value::as_object);
        let exit_code = exit.map(|exit| integer(exit, &["exitCode"]).unwrap_or_default());
        if exit_code == Some(0) {
            continue;
        }
        if is_sidecar && flag(status, &["started"]) {
            summary.ready += usize::from(flag(status, &["ready"]));
            continue;
        }
        let waiting = text(status, &["state", "waiting", "reason"]);
        summary.reason = if let Some(exit) = exit {
            format!("Init:{}", exit_reason(exit))
        } else if !matches!(waiting, "" | "PodInitializing") {
            format!("Init:{waiting}")
        } else {
            format!("Init:{index}/{}", containers.len())
        };
        return true;
    }
    false
}

fn add_containers(pod: &Json, summary: &mut Summary) {
    // From here on only sidecars count among the init containers.
    (summary.restarts, summary.restarted) = (0, None);
    let containers = list(pod, &["spec", "initContainers"]);
    let sidecars: Vec<&str> =
        containers.iter().filter(|c| is_sidecar(c)).map(|c| word(c, "name")).collect();
    for status in counted_init_statuses(pod, &sidecars) {
        if sidecars.contains(&text(status, &["name"])) {
            count_restarts(status, summary);
        }
    }
    let mut is_running = false;
    let mut error = None;
    for status in objects(pod, "containerStatuses").rev() {
        count_restarts(status, summary);
        let waiting = text(status, &["state", "waiting", "reason"]);
        let exit = at(status, &["state", "terminated"]).and_then(Value::as_object);
        if !waiting.is_empty() {
            waiting.clone_into(&mut summary.reason);
        } else if let Some(exit) = exit {
            summary.reason = exit_reason(exit);
            if integer(exit, &["exitCode"]).unwrap_or_default() != 0 {
                error = Some(summary.reason.clone());
            }
        } else if flag(status, &["ready"]) && present(status, &["state", "running"]) {
            is_running = true;
            summary.ready += 1;
        }
    }
    if summary.reason == "Completed" {
        if is_running && has_condition(pod, "Ready") {
            "Running".clone_into(&mut summary.reason);
        } else if let Some(error) = error {
            summary.reason = error;
        } else if is_running {
            "NotReady".clone_into(&mut summary.reason);
        }
    }
}

/// The init containers looked at before the first that is not done, and that one.
fn counted_init_statuses<'a>(pod: &'a Json, sidecars: &[&str]) -> Vec<&'a Json> {
    let mut counted = Vec::new();
    for status in objects(pod, "initContainerStatuses") {
        counted.push(status);
        let exit = at(status, &["state", "terminated"]).and_then(Value::as_object);
        let is_done = exit.is_some_and(|e| integer(e, &["exitCode"]).unwrap_or_default() == 0);
        let is_up = sidecars.contains(&text(status, &["name"])) && flag(status, &["started"]);
        if !is_done && !is_up {
            break;
        }
    }
    counted
}

fn count_restarts(status: &Json, summary: &mut Summary) {
    summary.restarts += integer(status, &["restartCount"]).unwrap_or_default();
    let ended = text(status, &["lastState", "terminated", "finishedAt"]).parse().ok();
    summary.restarted = summary.restarted.max(ended);
}

fn exit_reason(exit: &Json) -> String {
    let (reason, signal) =
        (text(exit, &["reason"]), integer(exit, &["signal"]).unwrap_or_default());
    if !reason.is_empty() {
        reason.to_owned()
    } else if signal != 0 {
        format!("Signal:{signal}")
    } else {
        format!("ExitCode:{}", integer(exit, &["exitCode"]).unwrap_or_default())
    }
}

fn readiness_gates(pod: &Json) -> String {
    let gates = list(pod, &["spec", "readinessGates"]);
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let open = gates.iter().filter(|gate| has_condition(pod, word(gate, "conditionType"))).count();
    format!("{open}/{}", gates.len())
}

fn has_condition(pod: &Json, kind: &str) -> bool {
    let conditions = list(pod, &["status", "conditions"]);
    let found = conditions.iter().find(|condition| word(condition, "type") == kind);
    found.is_some_and(|condition| word(condition, "status") == "True")
}

fn objects<'a>(pod: &'a Json, key: &str) -> impl DoubleEndedIterator<Item = &'a Json> + use<'a> {
    list(pod, &["status", key]).iter().filter_map(Value::as_object)
}

fn present(object: &Json, path: &[&str]) -> bool {
    at(object, path).is_some_and(|value| !value.is_null())
}

fn is_sidecar(container: &Value) -> bool {
    word(container, "restartPolicy") == "Always"
}

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
