//! A node in full.

use serde_json::Value;

use super::{
    moment, object_head,
    pod::list,
    text::{Text, scalar},
};

/// Describes a node; `pods` are the pods on it.
pub(super) fn describe(node: &Value, pods: &[Value], text: &mut Text) {
    let (spec, status) = (&node["spec"], &node["status"]);
    object_head(node, text);
    text.field(0, "CreationTimestamp", moment(&node["metadata"]["creationTimestamp"]));
    let taints: Vec<String> = list(&spec["taints"]).iter().map(taint).collect();
    text.list(0, "Taints", &taints);
    text.field(0, "Unschedulable", (spec["unschedulable"] == true).to_string());
    text.line(0, "Conditions:");
    text.line(1, "Type\tStatus\tLastTransitionTime\tReason\tMessage");
    text.line(1, "----\t------\t------------------\t------\t-------");
    for condition in list(&status["conditions"]) {
        let cells = [
            scalar(&condition["type"]),
            scalar(&condition["status"]),
            moment(&condition["lastTransitionTime"]),
            scalar(&condition["reason"]),
            scalar(&condition["message"]),
        ];
        text.line(1, &cells.join("\t"));
    }
    text.line(0, "Addresses:");
    for address in list(&status["addresses"]) {
        text.field(1, &scalar(&address["type"]), scalar(&address["address"]));
    }
    for (label, field) in [("Capacity", "capacity"), ("Allocatable", "allocatable")] {
        text.line(0, &format!("{label}:"));
        for (name, amount) in status[field].as_object().into_iter().flatten() {
            text.field(1, name, scalar(amount));
        }
    }
    text.line(0, "System Info:");
    for (label, field) in [
        ("Machine ID", "machineID"),
        ("Boot ID", "bootID"),
        ("Kernel Version", "kernelVersion"),
        ("OS Image", "osImage"),
        ("Operating System", "operatingSystem"),
        ("Architecture", "architecture"),
        ("Container Runtime Version", "containerRuntimeVersion"),
        ("Kubelet Version", "kubeletVersion"),
    ] {
        text.known(1, label, &status["nodeInfo"][field]);
    }
    let running: Vec<&Value> = pods
        .iter()
        .filter(|pod| !matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed")))
        .collect();
    text.line(0, &format!("Non-terminated Pods:\t({} in total)", running.len()));
    text.line(1, "Namespace\tName\tPhase");
    text.line(1, "---------\t----\t-----");
    for pod in running {
        let meta = &pod["metadata"];
        let cells = [&meta["namespace"], &meta["name"], &pod["status"]["phase"]].map(scalar);
        text.line(1, &cells.join("\t"));
    }
}

fn taint(taint: &Value) -> String {
    let (key, value) = (scalar(&taint["key"]), scalar(&taint["value"]));
    let between = if value.is_empty() { "" } else { "=" };
    format!("{key}{between}{value}:{}", scalar(&taint["effect"]))
}
