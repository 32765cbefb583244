//! What pods and pod templates have in common: containers, volumes, tolerations.

use lockstep_api::quantity::Quantity;
use serde_json::Value;

use super::{
    moment,
    text::{Text, or_none, scalar},
};

/// Where containers and volumes are described: in a pod, or in the template of one.
#[derive(Clone, Copy)]
pub(super) enum Inside<'a> {
    /// A pod, which has values for what its containers refer to.
    Pod(&'a Value),
    /// A template, described one step further in.
    Template,
}

impl Inside<'_> {
    fn space(self) -> &'static str {
        match self {
            Self::Pod(_) => "",
            Self::Template => "  ",
        }
    }

    fn name(self, name: &str, text: &mut Text) {
        match self {
            Self::Pod(_) => text.line(1, &format!("{name}:")),
            // kubectl's own: one space, not two, to tell names from fields.
            Self::Template => text.line(1, &format!(" {name}:")),
        }
    }
}

/// Describes the template of the pods of a controller.
pub(super) fn describe(template: &Value, text: &mut Text) {
    let (meta, spec) = (&template["metadata"], &template["spec"]);
    text.line(0, "Pod Template:");
    text.map(0, "  Labels", &meta["labels"], "=");
    if meta["annotations"].as_object().is_some_and(|known| !known.is_empty()) {
        text.map(0, "  Annotations", &meta["annotations"], ": ");
    }
    text.known(1, "Service Account", &spec["serviceAccountName"]);
    let inside = Inside::Template;
    if !list(&spec["initContainers"]).is_empty() {
        containers("Init Containers", &spec["initContainers"], &Value::Null, inside, text);
    }
    containers("Containers", &spec["containers"], &Value::Null, inside, text);
    volumes(&spec["volumes"], inside, text);
    text.known(1, "Priority Class Name", &spec["priorityClassName"]);
    text.map(0, "  Node-Selectors", &spec["nodeSelector"], "=");
    text.list(0, "  Tolerations", &tolerations(&spec["tolerations"]));
}

/// Describes containers; a container without a status is described as it should be.
pub(super) fn containers(
    title: &str,
    specs: &Value,
    statuses: &Value,
    inside: Inside<'_>,
    text: &mut Text,
) {
    let none = if list(specs).is_empty() { " <none>" } else { "" };
    text.line(0, &format!("{}{title}:{none}", inside.space()));
    for spec in list(specs) {
        let status = list(statuses).iter().find(|status| status["name"] == spec["name"]);
        inside.name(&scalar(&spec["name"]), text);
        container(spec, status, inside, text);
    }
}

fn container(spec: &Value, status: Option<&Value>, inside: Inside<'_>, text: &mut Text) {
    if let Some(status) = status {
        text.field(2, "Container ID", scalar(&status["containerID"]));
    }
    text.field(2, "Image", scalar(&spec["image"]));
    if let Some(status) = status {
        text.field(2, "Image ID", scalar(&status["imageID"]));
    }
    ports("Port", "containerPort", &spec["ports"], text);
    ports("Host Port", "hostPort", &spec["ports"], text);
    words("Command", &spec["command"], text);
    words("Args", &spec["args"], text);
    if let Some(status) = status {
        state("State", &status["state"], text);
        if status["lastState"]["terminated"].is_object() {
            state("Last State", &status["lastState"], text);
        }
        let is_ready = status["ready"].as_bool().unwrap_or_default();
        text.field(2, "Ready", if is_ready { "True" } else { "False" });
        let restarts = status["restartCount"].as_i64().unwrap_or_default();
        text.field(2, "Restart Count", restarts.to_string());
    }
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
    environment(spec, inside, text);
    mounts(&spec["volumeMounts"], text);
}

fn ports(label: &str, field: &str, ports: &Value, text: &mut Text) {
    let shown = list(ports).iter().map(|port| {
        let number = port[field].as_i64().unwrap_or_default();
        let name = match scalar(&port["name"]) {
            name if name.is_empty() => name,
            name => format!(" ({name})"),
        };
        format!("{number}/{}{name}", scalar(&port["protocol"]))
    });
    match shown.collect::<Vec<_>>().as_slice() {
        [] => text.field(2, label, "<none>"),
        [one] => text.field(2, label, one),
        several => text.field(2, &format!("{label}s"), several.join(", ")),
    }
}

fn mounts(mounts: &Value, text: &mut Text) {
    let mut sorted: Vec<&Value> = list(mounts).iter().collect();
    if sorted.is_empty() {
        return text.field(2, "Mounts", "<none>");
    }
    sorted.sort_by_key(|mount| scalar(&mount["mountPath"]));
    text.line(2, "Mounts:");
    for mount in sorted {
        let mode = if mount["readOnly"] == true { "ro" } else { "rw" };
        let path = match scalar(&mount["subPath"]) {
            path if path.is_empty() => path,
            path => format!(",path={path:?}"),
        };
        let (at, name) = (scalar(&mount["mountPath"]), scalar(&mount["name"]));
        text.line(3, &format!("{at} from {name} ({mode}{path})"));
    }
}

fn words(label: &str, words: &Value, text: &mut Text) {
    if list(words).is_empty() {
        return;
    }
    text.line(2, &format!("{label}:"));
    for word in list(words) {
        scalar(word).split('\n').for_each(|line| text.line(3, line));
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
        // kubectl leaves it out. It is what says how to go on.
        text.known(3, "Message", &state["waiting"]["message"]);
    }
}

fn probe(probe: &Value) -> String {
    let number = |field: &str| probe[field].as_i64().unwrap_or_default();
    let what = if probe["exec"].is_object() {
        let words: Vec<String> = list(&probe["exec"]["command"]).iter().map(scalar).collect();
        format!("exec [{}]", words.join(" "))
    } else if probe["httpGet"].is_object() {
        let get = &probe["httpGet"];
        let scheme = scalar(&get["scheme"]).to_lowercase();
        let (host, port) = (scalar(&get["host"]), scalar(&get["port"]));
        format!("http-get {scheme}://{host}:{port}{}", scalar(&get["path"]))
    } else if probe["tcpSocket"].is_object() {
        let socket = &probe["tcpSocket"];
        format!("tcp-socket {}:{}", scalar(&socket["host"]), scalar(&socket["port"]))
    } else if probe["grpc"].is_object() {
        let grpc = &probe["grpc"];
        format!("grpc <pod>:{} {}", scalar(&grpc["port"]), scalar(&grpc["service"]))
    } else {
        "unknown".to_owned()
    };
    format!(
        "{what} delay={}s timeout={}s period={}s #success={} #failure={}",
        number("initialDelaySeconds"),
        number("timeoutSeconds"),
        number("periodSeconds"),
        number("successThreshold"),
        number("failureThreshold")
    )
}

fn environment(spec: &Value, inside: Inside<'_>, text: &mut Text) {
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
            let prefix = match scalar(&source["prefix"]) {
                prefix if prefix.is_empty() => prefix,
                prefix => format!(" with prefix '{prefix}'"),
            };
            let name = scalar(&reference["name"]);
            text.line(3, &format!("{name}\t{kind}{prefix}\tOptional: {optional}"));
        }
    }
    let variables = list(&spec["env"]);
    if variables.is_empty() {
        return text.field(2, "Environment", "<none>");
    }
    text.line(2, "Environment:");
    for variable in variables {
        let value = variable_value(variable, spec, inside);
        let mut lines = value.split('\n');
        text.field(3, &scalar(&variable["name"]), lines.next().unwrap_or_default());
        lines.for_each(|line| text.line(3, &format!("\t{line}")));
    }
}

fn variable_value(variable: &Value, container: &Value, inside: Inside<'_>) -> String {
    let from = &variable["valueFrom"];
    for (field, what) in [("secretKeyRef", "in secret"), ("configMapKeyRef", "of config map")] {
        if let Some(source) = from.get(field).filter(|source| source.is_object()) {
            let optional = source["optional"].as_bool().unwrap_or_default();
            let (key, name) = (scalar(&source["key"]), scalar(&source["name"]));
            return format!("<set to the key '{key}' {what} '{name}'>\tOptional: {optional}");
        }
    }
    if from["fieldRef"].is_object() {
        let (version, path) =
            (&from["fieldRef"]["apiVersion"], scalar(&from["fieldRef"]["fieldPath"]));
        let value = match inside {
            Inside::Pod(pod) => field(pod, &path),
            Inside::Template => String::new(),
        };
        return format!("{value} ({}:{path})", scalar(version));
    }
    if from["resourceFieldRef"].is_object() {
        let reference = &from["resourceFieldRef"];
        return format!("{} ({})", amount(reference, container), scalar(&reference["resource"]));
    }
    scalar(&variable["value"])
}

/// The value of `metadata.name`, or of `metadata.labels['app']`.
fn field(pod: &Value, path: &str) -> String {
    let (path, key) = match path.split_once("['") {
        Some((path, rest)) => (path, rest.strip_suffix("']")),
        None => (path, None),
    };
    let found = path.split('.').fold(pod, |value, name| &value[name]);
    scalar(key.map_or(found, |key| &found[key]))
}

/// The amount a container has of a resource, in the unit asked for.
fn amount(reference: &Value, container: &Value) -> String {
    let resource = scalar(&reference["resource"]);
    let (kind, name) = resource.split_once('.').unwrap_or(("", ""));
    let given = Quantity::parse(&scalar(&container["resources"][kind][name])).ok();
    let unit = Quantity::parse(&scalar(&reference["divisor"])).ok().filter(|unit| !unit.is_zero());
    let unit = unit.unwrap_or(Quantity::whole(1));
    let (have, unit) = match (given, name) {
        (None, _) if kind == "limits" => return "node allocatable".to_owned(),
        (None, _) => return "0".to_owned(),
        (Some(given), "cpu") => (given.milli_value(), unit.milli_value()),
        (Some(given), _) => (given.value(), unit.value()),
    };
    // Parts of a unit count as a whole one.
    ((have + unit - 1) / unit.max(1)).to_string()
}

/// Describes volumes by what they are made of.
pub(super) fn volumes(volumes: &Value, inside: Inside<'_>, text: &mut Text) {
    let space = inside.space();
    if list(volumes).is_empty() {
        return text.line(0, &format!("{space}Volumes:\t<none>"));
    }
    text.line(0, &format!("{space}Volumes:"));
    for volume in list(volumes) {
        inside.name(&scalar(&volume["name"]), text);
        let source = volume.as_object().into_iter().flatten().find(|(key, _)| *key != "name");
        if let Some((kind, source)) = source {
            volume_source(kind, source, text);
        }
    }
}

fn volume_source(kind: &str, source: &Value, text: &mut Text) {
    let is_optional = |source: &Value| (source["optional"] == true).to_string();
    match kind {
        "hostPath" => {
            text.field(2, "Type", "HostPath (bare host directory volume)");
            text.field(2, "Path", scalar(&source["path"]));
            text.field(2, "HostPathType", scalar(&source["type"]));
        }
        "emptyDir" => {
            let what = "EmptyDir (a temporary directory that shares a pod's lifetime)";
            text.field(2, "Type", what);
            text.field(2, "Medium", scalar(&source["medium"]));
            let limit = scalar(&source["sizeLimit"]);
            text.field(2, "SizeLimit", if limit.is_empty() { "<unset>" } else { &limit });
        }
        "secret" => {
            text.field(2, "Type", "Secret (a volume populated by a Secret)");
            text.field(2, "SecretName", scalar(&source["secretName"]));
            text.field(2, "Optional", is_optional(source));
        }
        "configMap" => {
            text.field(2, "Type", "ConfigMap (a volume populated by a ConfigMap)");
            text.field(2, "Name", scalar(&source["name"]));
            text.field(2, "Optional", is_optional(source));
        }
        "downwardAPI" => {
            text.field(2, "Type", "DownwardAPI (a volume populated by information about the pod)");
            text.line(2, "Items:");
            for item in list(&source["items"]) {
                let from = match &item["fieldRef"]["fieldPath"] {
                    Value::String(path) => path.clone(),
                    _ => scalar(&item["resourceFieldRef"]["resource"]),
                };
                text.line(3, &format!("{from} -> {}", scalar(&item["path"])));
            }
        }
        "projected" => {
            let what = "Projected (a volume that contains injected data from multiple sources)";
            text.field(2, "Type", what);
            list(&source["sources"]).iter().for_each(|source| projected(source, text));
        }
        _ => {
            text.field(2, "Type", kind);
            for (key, value) in source.as_object().into_iter().flatten() {
                if !value.is_object() && !value.is_array() {
                    text.field(2, key, or_none(value));
                }
            }
        }
    }
}

fn projected(source: &Value, text: &mut Text) {
    for (field, label) in [("secret", "SecretName"), ("configMap", "ConfigMapName")] {
        if source[field].is_object() {
            text.field(2, label, scalar(&source[field]["name"]));
            text.field(2, "Optional", (source[field]["optional"] == true).to_string());
        }
    }
    if source["downwardAPI"].is_object() {
        text.field(2, "DownwardAPI", "true");
    }
    let token = &source["serviceAccountToken"];
    if token.is_object() {
        text.field(2, "TokenExpirationSeconds", scalar(&token["expirationSeconds"]));
    }
}

/// Tolerations in words, sorted by key.
pub(super) fn tolerations(tolerations: &Value) -> Vec<String> {
    let mut sorted: Vec<&Value> = list(tolerations).iter().collect();
    sorted.sort_by_key(|toleration| scalar(&toleration["key"]));
    sorted.into_iter().map(toleration).collect()
}

fn toleration(toleration: &Value) -> String {
    let mut shown = scalar(&toleration["key"]);
    let has_value = !scalar(&toleration["value"]).is_empty();
    if has_value {
        shown = format!("{shown}={}", scalar(&toleration["value"]));
    }
    if toleration["effect"].is_string() {
        shown = format!("{shown}:{}", scalar(&toleration["effect"]));
    }
    if toleration["operator"] == "Exists" && !has_value {
        shown = format!("{shown} op=Exists").trim_start().to_owned();
    }
    match toleration["tolerationSeconds"].as_i64() {
        Some(seconds) => format!("{shown} for {seconds}s"),
        None => shown,
    }
}

/// The members of a list; none of what is no list.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
