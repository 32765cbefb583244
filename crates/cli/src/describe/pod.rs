//! A pod in full.

use jiff::Timestamp;
use serde_json::Value;

use super::{
    moment, object_annotations, owner,
    template::{self, Inside, list},
    text::{Text, scalar},
};

/// Describes a pod, up to its events.
pub(super) fn describe(pod: &Value, now: Timestamp, text: &mut Text) {
    let (meta, spec, status) = (&pod["metadata"], &pod["spec"], &pod["status"]);
    text.field(0, "Name", scalar(&meta["name"]));
    text.field(0, "Namespace", scalar(&meta["namespace"]));
    if !spec["priority"].is_null() {
        text.field(0, "Priority", scalar(&spec["priority"]));
    }
    text.known(0, "Priority Class Name", &spec["priorityClassName"]);
    text.known(0, "Service Account", &spec["serviceAccountName"]);
    let node = match (scalar(&spec["nodeName"]), scalar(&status["hostIP"])) {
        (node, _) if node.is_empty() => "<none>".to_owned(),
        (node, address) => format!("{node}/{address}"),
    };
    text.field(0, "Node", node);
    if !status["startTime"].is_null() {
        text.field(0, "Start Time", moment(&status["startTime"]));
    }
    text.map(0, "Labels", &meta["labels"], "=");
    object_annotations(meta, text);
    let is_over = matches!(status["phase"].as_str(), Some("Succeeded" | "Failed"));
    if meta["deletionTimestamp"].is_null() || is_over {
        text.field(0, "Status", scalar(&status["phase"]));
    } else {
        let lasts = lockstep_api::duration::since(&scalar(&meta["deletionTimestamp"]), now);
        text.field(0, "Status", format!("Terminating (lasts {lasts})"));
        let grace = scalar(&meta["deletionGracePeriodSeconds"]);
        text.field(0, "Termination Grace Period", format!("{grace}s"));
    }
    text.known(0, "Reason", &status["reason"]);
    text.known(0, "Message", &status["message"]);
    text.field(0, "IP", scalar(&status["podIP"]));
    if list(&status["podIPs"]).is_empty() {
        text.field(0, "IPs", "<none>");
    } else {
        text.line(0, "IPs:");
    }
    for address in list(&status["podIPs"]) {
        text.field(1, "IP", scalar(&address["ip"]));
    }
    owner(meta, text);
    text.known(0, "NominatedNodeName", &status["nominatedNodeName"]);
    let inside = Inside::Pod(pod);
    for (title, field, statuses) in [
        ("Init Containers", "initContainers", "initContainerStatuses"),
        ("Containers", "containers", "containerStatuses"),
        ("Ephemeral Containers", "ephemeralContainers", "ephemeralContainerStatuses"),
    ] {
        if field == "containers" || !list(&spec[field]).is_empty() {
            template::containers(title, &spec[field], &status[statuses], inside, text);
        }
    }
    conditions(&status["conditions"], text);
    template::volumes(&spec["volumes"], inside, text);
    text.known(0, "QoS Class", &status["qosClass"]);
    text.map(0, "Node-Selectors", &spec["nodeSelector"], "=");
    text.list(0, "Tolerations", &template::tolerations(&spec["tolerations"]));
}

fn conditions(conditions: &Value, text: &mut Text) {
    if list(conditions).is_empty() {
        return;
    }
    text.line(0, "Conditions:");
    text.line(1, "Type\tStatus");
    for condition in list(conditions) {
        // The blank is kubectl's: it widens the column by one.
        text.line(1, &format!("{} \t{}", scalar(&condition["type"]), scalar(&condition["status"])));
    }
}
