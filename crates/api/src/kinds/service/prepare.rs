//! Filling in what a service leaves out, and guessing what an update means by the fields it drops.

use std::net::Ipv6Addr;

use serde_json::{Map, Value, json};

use crate::{
    json::{at, integer, list, object_mut, set_default, text},
    kinds::service::is_headless,
    strategy::Json,
};

/// Fills in what does not depend on the cluster.
pub(super) fn fill_defaults(object: &mut Json) {
    let spec = object_mut(object, "spec");
    default_text(spec, "sessionAffinity", "None");
    if text(spec, &["sessionAffinity"]) == "None" {
        spec.remove("sessionAffinityConfig");
    }
    let timeout = at(spec, &["sessionAffinityConfig", "clientIP", "timeoutSeconds"]);
    if text(spec, &["sessionAffinity"]) == "ClientIP" && timeout.is_none_or(Value::is_null) {
        let config = json!({"clientIP": {"timeoutSeconds": 10800}});
        spec.insert("sessionAffinityConfig".to_owned(), config);
    }
    default_text(spec, "type", "ClusterIP");
    for port in ports_mut(spec) {
        default_text(port, "protocol", "TCP");
        let is_unset = port.get("targetPort").is_none_or(|target| {
            target.is_null() || target.as_i64() == Some(0) || target.as_str() == Some("")
        });
        if is_unset && let Some(number) = port.get("port").cloned() {
            port.insert("targetPort".to_owned(), number);
        }
    }
    if is_externally_accessible(spec) {
        default_text(spec, "externalTrafficPolicy", "Cluster");
    }
    let kind = text(spec, &["type"]).to_owned();
    if matches!(kind.as_str(), "ClusterIP" | "NodePort" | "LoadBalancer") {
        set_default(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        set_default(spec, "allocateLoadBalancerNodePorts", true);
        default_ip_modes(object);
    }
}

/// Makes `clusterIPs` follow `clusterIP`, and chooses the IP families.
pub(super) fn prepare_create(object: &mut Json) {
    let spec = object_mut(object, "spec");
    let ip = text(spec, &["clusterIP"]).to_owned();
    if !ip.is_empty() && list(spec, &["clusterIPs"]).is_empty() {
        spec.insert("clusterIPs".to_owned(), json!([ip]));
    }
    choose_families(spec, None);
}

/// Carries over what was allocated and not given again, then drops what the new type has no use
/// for.
pub(super) fn prepare_update(object: &mut Json, old: &Json) {
    let empty = Json::new();
    let old = old.get("spec").and_then(Value::as_object).unwrap_or(&empty);
    let spec = object_mut(object, "spec");
    keep_allocated(spec, old);
    sync_cluster_ips(spec, old);
    choose_families(spec, Some(old));
    drop_unused(spec, old);
    if text(spec, &["type"]) != "LoadBalancer"
        && let Some(status) = object.get_mut("status").and_then(Value::as_object_mut)
    {
        status.insert("loadBalancer".to_owned(), json!({}));
    }
}

pub(super) fn is_externally_accessible(spec: &Json) -> bool {
    match text(spec, &["type"]) {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => !list(spec, &["externalIPs"]).is_empty(),
        _ => false,
    }
}

fn default_text(object: &mut Json, key: &str, value: &str) {
    if text(object, &[key]).is_empty() {
        object.insert(key.to_owned(), value.into());
    }
}

pub(super) fn ports_mut(spec: &mut Json) -> impl Iterator<Item = &mut Map<String, Value>> {
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    ports.into_iter().flatten().filter_map(Value::as_object_mut)
}

fn default_ip_modes(object: &mut Json) {
    let ingress = object
        .get_mut("status")
        .and_then(|status| status.get_mut("loadBalancer"))
        .and_then(|balancer| balancer.get_mut("ingress"))
        .and_then(Value::as_array_mut);
    for one in ingress.into_iter().flatten().filter_map(Value::as_object_mut) {
        if !text(one, &["ip"]).is_empty() {
            set_default(one, "ipMode", "VIP");
        }
    }
}

/// The cluster has one family, IPv4. Only a headless service without selector may name both: its
/// endpoints are somebody else's.
fn choose_families(spec: &mut Json, old: Option<&Json>) {
    if text(spec, &["type"]) == "ExternalName" {
        return;
    }
    let has_selector = at(spec, &["selector"])
        .and_then(Value::as_object)
        .is_some_and(|selector| !selector.is_empty());
    let is_free = is_headless(spec) && !has_selector;
    if text(spec, &["ipFamilyPolicy"]).is_empty() {
        let kept =
            old.map(|old| text(old, &["ipFamilyPolicy"])).filter(|policy| !policy.is_empty());
        let fallback = if is_free { "RequireDualStack" } else { "SingleStack" };
        let policy = kept.unwrap_or(fallback).to_owned();
        spec.insert("ipFamilyPolicy".to_owned(), policy.into());
    }
    let is_single = text(spec, &["ipFamilyPolicy"]) == "SingleStack";
    let mut families = list(spec, &["ipFamilies"]).to_vec();
    if is_single && old.is_some_and(|old| list(old, &["ipFamilies"]) == families) {
        families.truncate(1);
    }
    let ips = list(spec, &["clusterIPs"]);
    for ip in ips.iter().skip(families.len()).filter_map(Value::as_str) {
        // Another family is left out here and refused by validation.
        if ip.parse::<Ipv6Addr>().is_err() && ip != "None" && !ip.is_empty() {
            families.push("IPv4".into());
        }
    }
    if families.is_empty() && !ips.iter().any(|ip| ip.as_str().is_some_and(|ip| ip.contains(':'))) {
        families.push("IPv4".into());
    }
    if is_free && !is_single && families.len() == 1 {
        families.push(if families[0] == "IPv4" { "IPv6" } else { "IPv4" }.into());
    }
    spec.insert("ipFamilies".to_owned(), families.into());
}

fn needs_ip(spec: &Json) -> bool {
    text(spec, &["type"]) != "ExternalName"
}

pub(super) fn needs_node_port(spec: &Json) -> bool {
    matches!(text(spec, &["type"]), "NodePort" | "LoadBalancer")
}

pub(super) fn needs_health_port(spec: &Json) -> bool {
    text(spec, &["type"]) == "LoadBalancer" && text(spec, &["externalTrafficPolicy"]) == "Local"
}

fn node_ports(spec: &Json) -> Vec<i64> {
    let ports = list(spec, &["ports"]).iter().filter_map(Value::as_object);
    ports.filter_map(|port| integer(port, &["nodePort"])).filter(|port| *port != 0).collect()
}

fn keep_allocated(spec: &mut Json, old: &Json) {
    if needs_ip(old) && needs_ip(spec) {
        let ip = text(old, &["clusterIP"]);
        if text(spec, &["clusterIP"]).is_empty() && !ip.is_empty() {
            spec.insert("clusterIP".to_owned(), ip.into());
        }
        let ips = list(old, &["clusterIPs"]);
        if list(spec, &["clusterIPs"]).is_empty() && !ips.is_empty() {
            spec.insert("clusterIPs".to_owned(), ips.into());
        }
    }
    if needs_node_port(old) && needs_node_port(spec) {
        let (before, after) = (node_ports(old), node_ports(spec));
        let old_ports: Vec<&Json> =
            list(old, &["ports"]).iter().filter_map(Value::as_object).collect();
        for port in ports_mut(spec) {
            if integer(port, &["nodePort"]).unwrap_or_default() != 0 {
                continue;
            }
            let name = text(port, &["name"]);
            let same = old_ports.iter().rfind(|old| text(old, &["name"]) == name);
            let number = same.and_then(|old| integer(old, &["nodePort"])).unwrap_or_default();
            let is_used = before.contains(&number) && after.contains(&number);
            if number != 0 && !is_used {
                port.insert("nodePort".to_owned(), number.into());
            }
        }
    }
    if needs_health_port(old)
        && needs_health_port(spec)
        && integer(spec, &["healthCheckNodePort"]).unwrap_or_default() == 0
        && let Some(port) = old.get("healthCheckNodePort").cloned()
    {
        spec.insert("healthCheckNodePort".to_owned(), port);
    }
}

/// Clients that know only `clusterIP` change it alone.
fn sync_cluster_ips(spec: &mut Json, old: &Json) {
    let (ip, old_ip) = (text(spec, &["clusterIP"]).to_owned(), text(old, &["clusterIP"]));
    if ip != old_ip && list(spec, &["clusterIPs"]) == list(old, &["clusterIPs"]) {
        if ip.is_empty() {
            spec.remove("clusterIPs");
        } else {
            spec.insert("clusterIPs".to_owned(), json!([ip]));
        }
    }
}

fn drop_unused(spec: &mut Json, old: &Json) {
    let same = |spec: &Json, field: &str| spec.get(field) == old.get(field);
    if needs_ip(old) && !needs_ip(spec) {
        if same(spec, "clusterIP") && same(spec, "clusterIPs") {
            spec.remove("clusterIP");
            spec.remove("clusterIPs");
        }
        for field in ["ipFamilies", "ipFamilyPolicy"] {
            if same(spec, field) {
                spec.remove(field);
            }
        }
    }
    if needs_node_port(old) && !needs_node_port(spec) {
        let before = node_ports(old);
        if node_ports(spec).iter().all(|port| before.contains(port)) {
            ports_mut(spec).for_each(|port| drop(port.remove("nodePort")));
        }
    }
    if needs_health_port(old) && !needs_health_port(spec) && same(spec, "healthCheckNodePort") {
        spec.remove("healthCheckNodePort");
    }
    let is_balancer = |of: &Json| text(of, &["type"]) == "LoadBalancer";
    if is_balancer(old) && !is_balancer(spec) {
        for field in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
            if same(spec, field) {
                spec.remove(field);
            }
        }
    }
    if is_externally_accessible(old)
        && !is_externally_accessible(spec)
        && same(spec, "externalTrafficPolicy")
    {
        spec.remove("externalTrafficPolicy");
    }
}
