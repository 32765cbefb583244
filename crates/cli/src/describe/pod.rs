//! A pod in full.

use jiff::Timestamp;
use serde_json::Value;

use super::{
    moment,
    text::{Text, or_none, scalar},
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
    text.map(0, "Annotations", &visible_annotations(meta), ": ");
    if meta["deletionTimestamp"].is_null() {
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
    text.line(0, "IPs:");
    for address in list(&status["podIPs"]) {
        text.field(1, "IP", scalar(&address["ip"]));
    }
    let owners = list(&meta["ownerReferences"]);
    if let Some(owner) = owners.iter().find(|owner| owner["controller"] == true) {
        let shown = format!("{}/{}", scalar(&owner["kind"]), scalar(&owner["name"]));
        text.field(0, "Controlled By", shown);
    }
    containers("Init Containers", &spec["initContainers"], &status["initContainerStatuses"], text);
    containers("Containers", &spec["containers"], &status["containerStatuses"], text);
    conditions(&status["conditions"], text);
    volumes(&spec["volumes"], text);
    text.known(0, "QoS Class", &status["qosClass"]);
    text.map(0, "Node-Selectors", &spec["nodeSelector"], "=");
    let tolerated: Vec<String> = list(&spec["tolerations"]).iter().map(toleration).collect();
    text.list(0, "Tolerations", &tolerated);
}

/// The annotations without the one that repeats the whole object.
pub(super) fn visible_annotations(meta: &Value) -> Value {
    let mut shown = meta["annotations"].clone();
    if let Some(annotations) = shown.as_object_mut() {
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    }
    shown
}

fn containers(title: &str, specs: &Value, statuses: &Value, text: &mut Text) {
    let specs = list(specs);
    if specs.is_empty() {
        return;
    }
    text.line(0, &format!("{title}:"));
    for spec in specs {
        let status = list(statuses).iter().find(|status| status["name"] == spec["name"]);
        container(spec, status.unwrap_or(&Value::Null), text);
    }
}

fn container(spec: &Value, status: &Value, text: &mut Text) {
    text.line(1, &format!("{}:", scalar(&spec["name"])));
    text.known(2, "Container ID", &status["containerID"]);
    text.field(2, "Image", scalar(&spec["image"]));
    text.known(2, "Image ID", &status["imageID"]);
    let ports: Vec<String> = list(&spec["ports"])
        .iter()
        .map(|port| format!("{}/{}", scalar(&port["containerPort"]), scalar(&port["protocol"])))
        .collect();
    text.field(2, "Port", if ports.is_empty() { "<none>".to_owned() } else { ports.join(", ") });
    words("Command", &spec["command"], text);
    words("Args", &spec["args"], text);
    state("State", &status["state"], text);
    if status["lastState"]["terminated"].is_object() {
        state("Last State", &status["lastState"], text);
    }
    let is_ready = status["ready"].as_bool().unwrap_or_default();
    text.field(2, "Ready", if is_ready { "True" } else { "False" });
    text.field(2, "Restart Count", status["restartCount"].as_i64().unwrap_or_default().to_string());
    for (label, field) in [("Limits", "limits"), ("Requests", "requests")] {
        let amounts = &spec["resources"][field];
        if amounts.as_object().is_some_and(|amounts| !amounts.is_empty()) {
            text.line(2, &format!("{label}:"));
            for (name, amount) in amounts.as_object().into_iter().flatten() {
                text.field(3, name, scalar(amount));
            }
        }
    }
    for (label, field) in [
        ("Liveness", "livenessProbe"),
        ("Readiness", "readinessProbe"),
        ("Startup", "startupProbe"),
    ] {
        if spec[field].is_object() {
            text.field(2, label, probe(&spec[field]));
        }
    }
    environment(spec, text);
    let mounts: Vec<String> = list(&spec["volumeMounts"])
        .iter()
        .map(|mount| {
            let mode = if mount["readOnly"] == true { "ro" } else { "rw" };
            format!("{} from {} ({mode})", scalar(&mount["mountPath"]), scalar(&mount["name"]))
        })
        .collect();
    if mounts.is_empty() {
        text.field(2, "Mounts", "<none>");
    } else {
        text.line(2, "Mounts:");
        for mount in mounts {
            text.line(3, &mount);
        }
    }
}

fn words(label: &str, words: &Value, text: &mut Text) {
    if list(words).is_empty() {
        return;
    }
    text.line(2, &format!("{label}:"));
    for line in list(words)
        .iter()
        .flat_map(|word| scalar(word).lines().map(ToOwned::to_owned).collect::<Vec<_>>())
    {
        text.line(3, &line);
    }
}

fn state(label: &str, state: &Value, text: &mut Text) {
    if let Some(running) = state.get("running").filter(|s| s.is_object()) {
        text.field(2, label, "Running");
        text.field(3, "Started", moment(&running["startedAt"]));
    } else if let Some(ended) = state.get("terminated").filter(|s| s.is_object()) {
        text.field(2, label, "Terminated");
        text.known(3, "Reason", &ended["reason"]);
        text.known(3, "Message", &ended["message"]);
        text.field(3, "Exit Code", scalar(&ended["exitCode"]));
        if ended["signal"].as_i64().unwrap_or_default() > 0 {
            text.field(3, "Signal", scalar(&ended["signal"]));
        }
        text.field(3, "Started", moment(&ended["startedAt"]));
        text.field(3, "Finished", moment(&ended["finishedAt"]));
    } else {
        text.field(2, label, "Waiting");
        text.known(3, "Reason", &state["waiting"]["reason"]);
        text.known(3, "Message", &state["waiting"]["message"]);
    }
}

fn probe(probe: &Value) -> String {
    let number = |field: &str| scalar(&probe[field]);
    let what = if probe["exec"].is_object() {
        let words: Vec<String> = list(&probe["exec"]["command"]).iter().map(scalar).collect();
        format!("exec [{}]", words.join(" "))
    } else if probe["httpGet"].is_object() {
        let get = &probe["httpGet"];
        let scheme = scalar(&get["scheme"]).to_lowercase();
        format!(
            "http-get {scheme}://{}:{}{}",
            scalar(&get["host"]),
            scalar(&get["port"]),
            scalar(&get["path"])
        )
    } else if probe["tcpSocket"].is_object() {
        format!(
            "tcp-socket {}:{}",
            scalar(&probe["tcpSocket"]["host"]),
            scalar(&probe["tcpSocket"]["port"])
        )
    } else {
        "unknown".to_owned()
    };
    let delay = probe["initialDelaySeconds"].as_i64().unwrap_or_default();
    format!(
        "{what} delay={delay}s timeout={}s period={}s #success={} #failure={}",
        number("timeoutSeconds"),
        number("periodSeconds"),
        number("successThreshold"),
        number("failureThreshold")
    )
}

fn environment(spec: &Value, text: &mut Text) {
    let from = list(&spec["envFrom"]);
    if !from.is_empty() {
        text.line(2, "Environment Variables from:");
        for source in from {
            let (kind, reference) = if source["configMapRef"].is_object() {
                ("ConfigMap", &source["configMapRef"])
            } else {
                ("Secret", &source["secretRef"])
            };
            let optional = reference["optional"].as_bool().unwrap_or_default();
            text.line(3, &format!("{}\t{kind}\tOptional: {optional}", scalar(&reference["name"])));
        }
    }
    let variables = list(&spec["env"]);
    if variables.is_empty() {
        return text.field(2, "Environment", "<none>");
    }
    text.line(2, "Environment:");
    for variable in variables {
        text.field(3, &scalar(&variable["name"]), variable_value(variable));
    }
}

fn variable_value(variable: &Value) -> String {
    let from = &variable["valueFrom"];
    for (field, what) in [("secretKeyRef", "secret"), ("configMapKeyRef", "config map")] {
        if let Some(source) = from.get(field).filter(|source| source.is_object()) {
            let optional = source["optional"].as_bool().unwrap_or_default();
            let (key, name) = (scalar(&source["key"]), scalar(&source["name"]));
            return format!("<set to the key '{key}' of {what} '{name}'>  Optional: {optional}");
        }
    }
    if from["fieldRef"].is_object() {
        let (version, path) = (&from["fieldRef"]["apiVersion"], &from["fieldRef"]["fieldPath"]);
        return format!("({}:{})", scalar(version), scalar(path));
    }
    if from["resourceFieldRef"].is_object() {
        return format!("({})", scalar(&from["resourceFieldRef"]["resource"]));
    }
    scalar(&variable["value"]).replace('\n', " ")
}

fn conditions(conditions: &Value, text: &mut Text) {
    if list(conditions).is_empty() {
        return;
    }
    text.line(0, "Conditions:");
    text.line(1, "Type\tStatus");
    for condition in list(conditions) {
        text.line(1, &format!("{}\t{}", scalar(&condition["type"]), scalar(&condition["status"])));
    }
}

fn volumes(volumes: &Value, text: &mut Text) {
    if list(volumes).is_empty() {
        return text.field(0, "Volumes", "<none>");
    }
    text.line(0, "Volumes:");
    for volume in list(volumes) {
        text.line(1, &format!("{}:", scalar(&volume["name"])));
        let source = volume.as_object().into_iter().flatten().find(|(key, _)| *key != "name");
        let Some((kind, source)) = source else { continue };
        text.field(2, "Type", kind);
        for (key, value) in source.as_object().into_iter().flatten() {
            if !value.is_object() && !value.is_array() {
                text.field(2, key, or_none(value));
            }
        }
    }
}

fn toleration(toleration: &Value) -> String {
    let mut shown = scalar(&toleration["key"]);
    if toleration["value"].is_string() {
        shown = format!("{shown}={}", scalar(&toleration["value"]));
    }
    if toleration["effect"].is_string() {
        shown = format!("{shown}:{}", scalar(&toleration["effect"]));
    }
    if toleration["operator"] == "Exists" {
        shown = format!("{shown} op=Exists").trim_start().to_owned();
    }
    match toleration["tolerationSeconds"].as_i64() {
        Some(seconds) => format!("{shown} for {seconds}s"),
        None => shown,
    }
}

pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
