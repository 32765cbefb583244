//! Fields of a pod and resources of its containers, as text: the downward API.

use std::collections::BTreeMap;
use std::fmt::Write;

use k8s_openapi::api::core::v1::{Container, Pod, ResourceFieldSelector};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use lockstep_api::quantity::Quantity;

use super::ConfigError;
use crate::node::sources::{NodeFacts, Sources};

/// The value of the field at `path`.
pub(crate) fn of_pod(pod: &Pod, path: &str, sources: &Sources) -> Result<String, ConfigError> {
    let meta = &pod.metadata;
    let unsupported = || ConfigError::Field { path: path.to_owned() };
    if let Some((map, key)) = subscript(path) {
        let map = match map {
            "metadata.labels" => &meta.labels,
            "metadata.annotations" => &meta.annotations,
            _ => return Err(unsupported()),
        };
        return Ok(map.as_ref().and_then(|map| map.get(key).cloned()).unwrap_or_default());
    }
    let spec = |field: fn(&k8s_openapi::api::core::v1::PodSpec) -> Option<String>| {
        Ok(pod.spec.as_ref().and_then(field).unwrap_or_default())
    };
    match path {
        "metadata.name" => Ok(meta.name.clone().unwrap_or_default()),
        "metadata.namespace" => Ok(meta.namespace.clone().unwrap_or_default()),
        "metadata.uid" => Ok(meta.uid.clone().unwrap_or_default()),
        "metadata.labels" => Ok(format_map(meta.labels.as_ref())),
        "metadata.annotations" => Ok(format_map(meta.annotations.as_ref())),
        "spec.nodeName" => spec(|spec| spec.node_name.clone()),
        "spec.serviceAccountName" => spec(|spec| spec.service_account_name.clone()),
        "status.hostIP" | "status.hostIPs" => Ok(sources.node.host_ip.clone()),
        "status.podIP" | "status.podIPs" => Ok(sources.pod_ip.clone()),
        _ => Err(unsupported()),
    }
}

/// The value of a resource of a container, in units of its divisor, rounded up.
pub(crate) fn of_resources(
    pod: &Pod,
    own: Option<&Container>,
    selector: &ResourceFieldSelector,
    node: &NodeFacts,
) -> Result<String, ConfigError> {
    let named = selector.container_name.as_deref().filter(|name| !name.is_empty());
    let container = match named {
        Some(name) => find(pod, name)
            .ok_or_else(|| ConfigError::ContainerNotFound { container: name.to_owned() })?,
        None => own.ok_or_else(|| ConfigError::ContainerNotFound { container: String::new() })?,
    };
    let resource = selector.resource.as_str();
    let unsupported = || ConfigError::Resource { resource: resource.to_owned() };
    let (kind, name) = resource.split_once('.').ok_or_else(unsupported)?;
    let is_standard = matches!(name, "cpu" | "memory" | "ephemeral-storage");
    if !is_standard && !name.starts_with("hugepages-") {
        return Err(unsupported());
    }
    let resources = container.resources.as_ref();
    let amount = match kind {
        "limits" => {
            let limit = resources.and_then(|all| all.limits.as_ref()?.get(name));
            // Without a limit the whole node is.
            let limit = limit.map(parse).transpose()?.filter(|limit| !limit.is_zero());
            match (limit, node.allocatable.get(name).filter(|_| is_standard)) {
                (Some(limit), _) => Some(limit),
                (None, Some(whole)) => Some(parse(whole)?),
                (None, None) => None,
            }
        }
        "requests" => {
            let request = resources.and_then(|all| all.requests.as_ref()?.get(name));
            request.map(parse).transpose()?
        }
        _ => return Err(unsupported()),
    };
    let divisor = selector.divisor.as_ref().map(parse).transpose()?;
    let divisor = divisor.filter(|divisor| !divisor.is_zero());
    // Thousandths matter for CPU only.
    let in_units = |quantity: &Quantity| {
        if name == "cpu" { quantity.milli_value() } else { quantity.value() }
    };
    let amount = amount.as_ref().map_or(0, in_units);
    let divisor = divisor.as_ref().map_or(if name == "cpu" { 1000 } else { 1 }, in_units).max(1);
    Ok((amount / divisor + i64::from(amount % divisor > 0)).to_string())
}

fn find<'a>(pod: &'a Pod, name: &str) -> Option<&'a Container> {
    let spec = pod.spec.as_ref()?;
    let mut all = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    all.find(|container| container.name == name)
}

fn parse(text: &Text) -> Result<Quantity, ConfigError> {
    Quantity::parse(&text.0).map_err(|_| ConfigError::Quantity { text: text.0.clone() })
}

/// Splits `metadata.labels['key']`.
fn subscript(path: &str) -> Option<(&str, &str)> {
    let (map, key) = path.strip_suffix("']")?.split_once("['")?;
    (!map.is_empty()).then_some((map, key))
}

/// One `key="value"` per line, with the quoting of Go.
fn format_map(map: Option<&BTreeMap<String, String>>) -> String {
    let lines: Vec<_> =
        map.into_iter().flatten().map(|(key, value)| format!("{key}={}", quote(value))).collect();
    lines.join("\n")
}

fn quote(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{b}' => quoted.push_str("\\v"),
            '\u{c}' => quoted.push_str("\\f"),
            c if c.is_ascii_control() => escape(&mut quoted, 'x', 2, c),
            c if c.is_control() => escape(&mut quoted, 'u', 4, c),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

fn escape(quoted: &mut String, kind: char, digits: usize, c: char) {
    write!(quoted, "\\{kind}{:0digits$x}", u32::from(c)).expect("a String takes anything");
}
