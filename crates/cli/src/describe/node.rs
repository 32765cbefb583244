//! A node in full.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use lockstep_api::quantity::Quantity;
use serde_json::Value;

use super::{
    moment, object_annotations,
    template::list,
    text::{Text, scalar},
};

/// Describes a node; `pods` are the pods on it, `lease` is how it says that it lives.
pub(super) fn describe(
    node: &Value,
    pods: &[Value],
    lease: Option<&Value>,
    now: Timestamp,
    text: &mut Text,
) {
    let (meta, spec, status) = (&node["metadata"], &node["spec"], &node["status"]);
    text.field(0, "Name", scalar(&meta["name"]));
    text.field(0, "Roles", roles(&meta["labels"]));
    text.map(0, "Labels", &meta["labels"], "=");
    object_annotations(meta, text);
    text.field(0, "CreationTimestamp", moment(&meta["creationTimestamp"]));
    let taints: Vec<String> = list(&spec["taints"]).iter().map(taint).collect();
    text.list(0, "Taints", &taints);
    text.field(0, "Unschedulable", (spec["unschedulable"] == true).to_string());
    if let Some(lease) = lease {
        text.line(0, "Lease:");
        text.field(1, "HolderIdentity", or_unset(scalar(&lease["spec"]["holderIdentity"])));
        for (label, field) in [("AcquireTime", "acquireTime"), ("RenewTime", "renewTime")] {
            let at = &lease["spec"][field];
            let shown = if at.is_null() { String::new() } else { moment(at) };
            text.field(1, label, or_unset(shown));
        }
    }
    conditions(&status["conditions"], text);
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
        ("System UUID", "systemUUID"),
        ("Boot ID", "bootID"),
        ("Kernel Version", "kernelVersion"),
        ("OS Image", "osImage"),
        ("Operating System", "operatingSystem"),
        ("Architecture", "architecture"),
        ("Container Runtime Version", "containerRuntimeVersion"),
        ("Kubelet Version", "kubeletVersion"),
    ] {
        text.field(1, label, scalar(&status["nodeInfo"][field]));
    }
    text.known(0, "PodCIDR", &spec["podCIDR"]);
    text.known(0, "ProviderID", &spec["providerID"]);
    usage(status, pods, now, text);
}

fn conditions(conditions: &Value, text: &mut Text) {
    if list(conditions).is_empty() {
        return;
    }
    text.line(0, "Conditions:");
    text.line(1, "Type\tStatus\tLastHeartbeatTime\tLastTransitionTime\tReason\tMessage");
    text.line(1, "----\t------\t-----------------\t------------------\t------\t-------");
    for condition in list(conditions) {
        let cells = [
            scalar(&condition["type"]),
            scalar(&condition["status"]),
            moment(&condition["lastHeartbeatTime"]),
            moment(&condition["lastTransitionTime"]),
            scalar(&condition["reason"]),
            scalar(&condition["message"]),
        ];
        // The blanks are kubectl's: they widen the columns by one.
        text.line(1, &cells.join(" \t"));
    }
}

type Amounts = BTreeMap<String, Quantity>;

/// What the pods that still run ask for, one by one and together.
fn usage(status: &Value, pods: &[Value], now: Timestamp, text: &mut Text) {
    let running: Vec<&Value> = pods
        .iter()
        .filter(|pod| !matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed")))
        .collect();
    let field = if status["allocatable"].is_object() { "allocatable" } else { "capacity" };
    let have = read(&status[field]);
    text.field(0, "Non-terminated Pods", format!("({} in total)", running.len()));
    text.line(
        1,
        "Namespace\tName\t\tCPU Requests\tCPU Limits\tMemory Requests\tMemory Limits\tAge",
    );
    text.line(
        1,
        "---------\t----\t\t------------\t----------\t---------------\t-------------\t---",
    );
    let (mut all_requests, mut all_limits) = (Amounts::new(), Amounts::new());
    for pod in running {
        let (requests, limits) = (of_pod(pod, "requests"), of_pod(pod, "limits"));
        let meta = &pod["metadata"];
        let mut cells = vec![scalar(&meta["namespace"]), scalar(&meta["name"]), String::new()];
        for resource in ["cpu", "memory"] {
            cells.push(share(&requests, resource, &have));
            cells.push(share(&limits, resource, &have));
        }
        cells.push(lockstep_api::duration::since(&scalar(&meta["creationTimestamp"]), now));
        text.line(1, &cells.join("\t"));
        add(&mut all_requests, &requests);
        add(&mut all_limits, &limits);
    }
    text.line(0, "Allocated resources:");
    text.line(1, "(Total limits may be over 100 percent, i.e., overcommitted.)");
    text.line(1, "Resource\tRequests\tLimits");
    text.line(1, "--------\t--------\t------");
    let always = ["cpu", "memory", "ephemeral-storage"];
    let extended = have.keys().map(String::as_str).filter(|&name| name != "pods");
    let extended: BTreeSet<&str> = extended.filter(|name| !always.contains(name)).collect();
    for resource in always {
        let cells = [share(&all_requests, resource, &have), share(&all_limits, resource, &have)];
        text.line(1, &format!("{resource}\t{}", cells.join("\t")));
    }
    for resource in extended {
        let total =
            |all: &Amounts| all.get(resource).copied().unwrap_or(Quantity::ZERO).to_string();
        text.line(1, &format!("{resource}\t{}\t{}", total(&all_requests), total(&all_limits)));
    }
}

/// `500m (25%)`.
fn share(amounts: &Amounts, resource: &str, have: &Amounts) -> String {
    let amount = amounts.get(resource).copied().unwrap_or(Quantity::ZERO);
    let count = |quantity: &Quantity| match resource {
        "cpu" => quantity.milli_value(),
        _ => quantity.value(),
    };
    let whole = have.get(resource).map(count).filter(|&whole| whole > 0);
    let percent = whole.map_or(0, |whole| i128::from(count(&amount)) * 100 / i128::from(whole));
    format!("{amount} ({percent}%)")
}

/// What a pod asks for: its containers together, or an init container that wants more, and its
/// overhead.
pub(crate) fn of_pod(pod: &Value, field: &str) -> Amounts {
    let spec = &pod["spec"];
    let mut total = Amounts::new();
    for container in list(&spec["containers"]) {
        add(&mut total, &read(&container["resources"][field]));
    }
    let mut sidecars = Amounts::new();
    let mut highest = Amounts::new();
    for container in list(&spec["initContainers"]) {
        let own = read(&container["resources"][field]);
        if container["restartPolicy"] == "Always" {
            add(&mut sidecars, &own);
            add(&mut total, &own);
        }
        let mut now = sidecars.clone();
        if container["restartPolicy"] != "Always" {
            add(&mut now, &own);
        }
        for (name, amount) in now {
            let known = highest.entry(name).or_insert(amount);
            *known = amount.max(*known);
        }
    }
    for (name, amount) in highest {
        let known = total.entry(name).or_insert(amount);
        *known = amount.max(*known);
    }
    add(&mut total, &read(&spec["overhead"]));
    total
}

fn read(amounts: &Value) -> Amounts {
    let given = amounts.as_object().into_iter().flatten();
    given
        .filter_map(|(name, amount)| Some((name.clone(), Quantity::parse(&scalar(amount)).ok()?)))
        .collect()
}

fn add(total: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let known = total.entry(name.clone()).or_insert(Quantity::ZERO);
        *known = if known.is_zero() { *amount } else { known.plus(amount) };
    }
}

fn roles(labels: &Value) -> String {
    let labels = labels.as_object().into_iter().flatten();
    let roles: Vec<String> = labels
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) if !role.is_empty() => Some(role.to_owned()),
            _ if key == "kubernetes.io/role" => Some(scalar(value)),
            _ => None,
        })
        .collect();
    if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") }
}

fn or_unset(text: String) -> String {
    if text.is_empty() { "<unset>".to_owned() } else { text }
}

/// A taint as people write it.
pub(super) fn taint(taint: &Value) -> String {
    let (key, value) = (scalar(&taint["key"]), scalar(&taint["value"]));
    let between = if value.is_empty() { "" } else { "=" };
    format!("{key}{between}{value}:{}", scalar(&taint["effect"]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_asks_for_its_containers_or_its_largest_start() {
        let cpu = |name: &str, amount: &str| json!({"name": name, "resources": {"requests": {"cpu": amount}}});
        let mut sidecar = cpu("s", "100m");
        sidecar["restartPolicy"] = "Always".into();
        let pod = |init: Vec<Value>| {
            let spec = json!({"containers": [cpu("a", "200m"), cpu("b", "300m")],
                "initContainers": init, "overhead": {"cpu": "10m"}});
            of_pod(&json!({ "spec": spec }), "requests")["cpu"].to_string()
        };
        assert_eq!(pod(vec![]), "510m");
        assert_eq!(pod(vec![cpu("i", "2")]), "2010m", "a start that wants more than the work");
        assert_eq!(pod(vec![sidecar.clone()]), "610m", "a sidecar runs beside the work");
        assert_eq!(pod(vec![sidecar, cpu("i", "1")]), "1110m", "and beside later starts");
    }
}
