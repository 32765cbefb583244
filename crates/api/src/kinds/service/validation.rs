//! What a service may look like.

use std::{collections::BTreeSet, net::IpAddr};

use k8s_openapi::{
    api::core::v1::{LoadBalancerIngress, LoadBalancerStatus, ServicePort, ServiceSpec},
    apimachinery::pkg::util::intstr::IntOrString,
};
use serde_json::Value;

use crate::{
    field::{ErrorKind, ErrorList, FieldError, Path},
    json::at,
    kinds::{
        IMMUTABLE,
        address::{validate_cidr, validate_external_ip},
        each,
        service::cluster_ip,
        view,
    },
    meta::validate_labels,
    names,
    strategy::Json,
};

const NOT_FOR_ALIASES: &str = "may not be set for ExternalName services";
const ONLY_FOR_BALANCERS: &str = "may only be used when `type` is 'LoadBalancer'";

pub(super) fn validate(object: &Json, old: Option<&Json>) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec: ServiceSpec = view(object, "spec", &mut errors);
    let old: Option<ServiceSpec> = old.map(|old| view(old, "spec", &mut ErrorList::new()));
    // Addresses are allocated before the rest is looked at, and cannot be when these are wrong.
    errors.extend(cluster_ip::validate_fields(&spec, old.as_ref()));
    if errors.is_empty() {
        errors.extend(cluster_ip::validate_families(&spec));
    }
    if !errors.is_empty() {
        return errors;
    }
    if let Some(old) = &old {
        errors.extend(validate_change(&spec, old));
    }
    let path = Path::new("spec");
    let ports = spec.ports.as_deref().unwrap_or_default();
    let is_headless = spec.cluster_ips.as_deref().unwrap_or_default() == ["None"];
    let kind = spec.type_.as_deref().unwrap_or_default();
    if ports.is_empty() && !is_headless && kind != "ExternalName" {
        errors.push(FieldError::required(&path.child("ports"), ""));
    }
    errors.extend(validate_kind(&spec, is_headless));
    errors.extend(validate_ports(ports, &path.child("ports")));
    let selector =
        spec.selector.iter().flatten().map(|(key, value)| (key.as_str(), value.as_str()));
    errors.extend(validate_labels(selector, &path.child("selector")));
    errors.extend(validate_affinity(&spec));
    for (at, ip) in spec.external_ips.iter().flatten().enumerate() {
        let known = old.as_ref().and_then(|old| old.external_ips.as_deref()).unwrap_or_default();
        let path = path.child("externalIPs").index(at);
        errors.extend(validate_external_ip(ip, known.contains(ip), &path));
    }
    let kinds = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    if !kinds.contains(&kind) {
        errors.push(FieldError::not_supported(&path.child("type"), kind, &kinds));
    }
    errors.extend(validate_port_numbers(ports, kind));
    errors.extend(validate_balancer(&spec, old.as_ref(), kind));
    errors.extend(validate_traffic(&spec, kind));
    errors
}

pub(super) fn validate_status(object: &Json, old: &Json) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("status").child("loadBalancer").child("ingress");
    let ingress = ingress_of(object, &mut errors);
    let known = ingress_of(old, &mut ErrorList::new());
    let is_balancer = at(object, &["spec", "type"]).is_some_and(|kind| kind == "LoadBalancer");
    if !is_balancer && !ingress.is_empty() {
        let why = "may only be used when `spec.type` is 'LoadBalancer'";
        errors.push(FieldError::forbidden(&path, why));
        return errors;
    }
    for (at, one) in ingress.iter().enumerate() {
        let path = path.index(at);
        let ip = one.ip.as_deref().unwrap_or_default();
        if !ip.is_empty() && !known.iter().any(|known| known.ip == one.ip) {
            errors.extend(names::validate_ip(ip, &path.child("ip")));
        }
        let mode_path = path.child("ipMode");
        match one.ip_mode.as_deref() {
            None if !ip.is_empty() => {
                errors.push(FieldError::required(&mode_path, "must be specified when `ip` is set"));
            }
            Some(_) if ip.is_empty() => {
                let why = "may not be specified when `ip` is not set";
                errors.push(FieldError::forbidden(&mode_path, why));
            }
            Some(mode) if !["Proxy", "VIP"].contains(&mode) => {
                errors.push(FieldError::not_supported(&mode_path, mode, &["Proxy", "VIP"]));
            }
            _ => {}
        }
        let hostname = one.hostname.as_deref().unwrap_or_default();
        if !hostname.is_empty() {
            let path = path.child("hostname");
            errors.extend(each(&path, hostname, names::dns1123_subdomain(hostname)));
            if hostname.parse::<IpAddr>().is_ok() {
                let why = "must be a DNS name, not an IP address";
                errors.push(FieldError::invalid(&path, hostname, why));
            }
        }
    }
    errors
}

fn ingress_of(object: &Json, errors: &mut ErrorList) -> Vec<LoadBalancerIngress> {
    let Some(status) = object.get("status").and_then(Value::as_object) else { return Vec::new() };
    let balancer: LoadBalancerStatus = view(status, "loadBalancer", errors);
    balancer.ingress.unwrap_or_default()
}

fn validate_change(spec: &ServiceSpec, old: &ServiceSpec) -> ErrorList {
    let mut errors = cluster_ip::validate_change(spec, old);
    let is_balancer = |of: &ServiceSpec| of.type_.as_deref() == Some("LoadBalancer");
    if is_balancer(spec) && is_balancer(old) && spec.load_balancer_class != old.load_balancer_class
    {
        let path = Path::new("spec").child("loadBalancerClass");
        let why = "may not change once set";
        errors.push(FieldError::invalid(&path, &spec.load_balancer_class, why));
    }
    if needs_health_check(spec)
        && needs_health_check(old)
        && spec.health_check_node_port != old.health_check_node_port
    {
        let path = Path::new("spec").child("healthCheckNodePort");
        errors.push(FieldError::forbidden(&path, IMMUTABLE));
    }
    errors
}

fn validate_kind(spec: &ServiceSpec, is_headless: bool) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("spec");
    match spec.type_.as_deref().unwrap_or_default() {
        kind @ ("LoadBalancer" | "NodePort") if is_headless => {
            let why = format!("may not be set to 'None' for {kind} services");
            errors.push(FieldError::invalid(&path.child("clusterIPs").index(0), "None", &why));
        }
        "ExternalName" => {
            let is_set = |list: &Option<Vec<String>>| list.as_ref().is_some_and(|l| !l.is_empty());
            let fields = [
                ("clusterIPs", is_set(&spec.cluster_ips)),
                ("ipFamilies", is_set(&spec.ip_families)),
                ("ipFamilyPolicy", spec.ip_family_policy.is_some()),
            ];
            for (field, _) in fields.into_iter().filter(|(_, is_set)| *is_set) {
                errors.push(FieldError::forbidden(&path.child(field), NOT_FOR_ALIASES));
            }
            let name = spec.external_name.as_deref().unwrap_or_default();
            let name = name.strip_suffix('.').unwrap_or(name);
            let path = path.child("externalName");
            if name.is_empty() {
                errors.push(FieldError::required(&path, ""));
            } else {
                errors.extend(each(&path, name, names::dns1123_subdomain(name)));
            }
        }
        _ => {}
    }
    errors
}

fn validate_ports(ports: &[ServicePort], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for (at, port) in ports.iter().enumerate() {
        let path = path.index(at);
        let name = port.name.as_deref().unwrap_or_default();
        let name_path = path.child("name");
        if !name.is_empty() {
            errors.extend(each(&name_path, name, names::dns1123_label(name)));
            if !seen.insert(name) {
                errors.push(FieldError::duplicate(&name_path, name));
            }
        } else if ports.len() > 1 {
            errors.push(FieldError::required(&name_path, ""));
        }
        errors.extend(validate_port(port, &path));
    }
    errors
}

fn validate_port(port: &ServicePort, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for why in names::port_number(port.port.into()) {
        errors.push(FieldError::invalid(&path.child("port"), port.port, &why));
    }
    errors.extend(validate_protocol(port.protocol.as_deref(), &path.child("protocol")));
    let target_path = path.child("targetPort");
    match &port.target_port {
        Some(IntOrString::Int(number)) => {
            for why in names::port_number((*number).into()) {
                errors.push(FieldError::invalid(&target_path, number, &why));
            }
        }
        Some(IntOrString::String(name)) => {
            errors.extend(each(&target_path, name, names::port_name(name)));
        }
        None => {}
    }
    if let Some(protocol) = &port.app_protocol {
        let path = path.child("appProtocol");
        errors.extend(each(&path, protocol, names::qualified_name(protocol)));
    }
    errors
}

/// Says what is wrong with a transport protocol.
pub(in crate::kinds) fn validate_protocol(
    protocol: Option<&str>,
    path: &Path,
) -> Option<FieldError> {
    match protocol.unwrap_or_default() {
        "" => Some(FieldError::required(path, "")),
        "SCTP" | "TCP" | "UDP" => None,
        other => Some(FieldError::not_supported(path, other, &["SCTP", "TCP", "UDP"])),
    }
}

fn validate_port_numbers(ports: &[ServicePort], kind: &str) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("spec").child("ports");
    let node_port = |port: &ServicePort| port.node_port.filter(|number| *number != 0);
    for (at, _) in ports.iter().enumerate().filter(|(_, port)| node_port(port).is_some()) {
        if kind == "ClusterIP" {
            let why = "may not be used when `type` is 'ClusterIP'";
            errors.push(FieldError::forbidden(&path.index(at).child("nodePort"), why));
        }
    }
    let mut seen = BTreeSet::new();
    for (at, port) in ports.iter().enumerate() {
        if let Some(number) = node_port(port)
            && !seen.insert((number, &port.protocol))
        {
            errors.push(FieldError::duplicate(&path.index(at).child("nodePort"), number));
        }
    }
    let mut seen = BTreeSet::new();
    for (at, port) in ports.iter().enumerate() {
        if !seen.insert((port.port, &port.protocol)) {
            // Upstream shows its own representation of a port, with nothing but these two set.
            let body = format!(
                "Duplicate value: {{\"Name\":\"\",\"Protocol\":{:?},\"AppProtocol\":null,\
                 \"Port\":{},\"TargetPort\":0,\"NodePort\":0}}",
                port.protocol.as_deref().unwrap_or_default(),
                port.port
            );
            errors.push(FieldError { kind: ErrorKind::Duplicate, path: path.index(at), body });
        }
    }
    errors
}

fn validate_affinity(spec: &ServiceSpec) -> ErrorList {
    let path = Path::new("spec");
    let config_path = path.child("sessionAffinityConfig");
    let config = spec.session_affinity_config.as_ref();
    let required =
        |path: &Path| vec![FieldError::required(path, "when session affinity type is ClientIP")];
    match spec.session_affinity.as_deref().unwrap_or_default() {
        "" => vec![FieldError::required(&path.child("sessionAffinity"), "")],
        "None" if config.is_some() => {
            let why = "must not be set when session affinity is None";
            vec![FieldError::forbidden(&config_path, why)]
        }
        "None" => ErrorList::new(),
        "ClientIP" => {
            let Some(config) = config else { return required(&config_path) };
            let path = config_path.child("clientIP");
            let Some(client_ip) = &config.client_ip else { return required(&path) };
            let path = path.child("timeoutSeconds");
            match client_ip.timeout_seconds {
                None => required(&path),
                Some(1..=86400) => ErrorList::new(),
                Some(seconds) => {
                    let why = "must be greater than 0 and less than 86400";
                    vec![FieldError::invalid(&path, seconds, why)]
                }
            }
        }
        other => {
            let path = path.child("sessionAffinity");
            vec![FieldError::not_supported(&path, other, &["ClientIP", "None"])]
        }
    }
}

fn validate_balancer(spec: &ServiceSpec, old: Option<&ServiceSpec>, kind: &str) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("spec");
    let is_balancer = kind == "LoadBalancer";
    let ranges = spec.load_balancer_source_ranges.as_deref().unwrap_or_default();
    let ranges_path = path.child("LoadBalancerSourceRanges");
    if !ranges.is_empty() && !is_balancer {
        errors.push(FieldError::forbidden(&ranges_path, ONLY_FOR_BALANCERS));
    }
    let known = old.and_then(|old| old.load_balancer_source_ranges.as_deref()).unwrap_or_default();
    let is_new = |range: &str| !known.iter().any(|known| known.trim() == range.trim());
    for (at, range) in ranges.iter().enumerate().filter(|(_, range)| is_new(range)) {
        errors.extend(validate_cidr(range.trim(), &ranges_path.index(at)));
    }
    if spec.allocate_load_balancer_node_ports.is_some() && !is_balancer {
        let path = path.child("allocateLoadBalancerNodePorts");
        errors.push(FieldError::forbidden(&path, ONLY_FOR_BALANCERS));
    }
    if let Some(class) = &spec.load_balancer_class {
        let path = path.child("loadBalancerClass");
        if is_balancer {
            errors.extend(each(&path, class, names::qualified_name(class)));
        } else {
            errors.push(FieldError::forbidden(&path, ONLY_FOR_BALANCERS));
        }
    }
    errors
}

fn validate_traffic(spec: &ServiceSpec, kind: &str) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("spec");
    let scopes = ["Cluster", "Local"];
    let has_external_ips = spec.external_ips.as_ref().is_some_and(|ips| !ips.is_empty());
    let is_accessible =
        matches!(kind, "LoadBalancer" | "NodePort") || kind == "ClusterIP" && has_external_ips;
    let policy_path = path.child("externalTrafficPolicy");
    match spec.external_traffic_policy.as_deref().unwrap_or_default() {
        "" if is_accessible => errors.push(FieldError::required(&policy_path, "")),
        "" => {}
        policy if !is_accessible => {
            let why = "may only be set for externally-accessible services";
            errors.push(FieldError::invalid(&policy_path, policy, why));
        }
        policy if !scopes.contains(&policy) => {
            errors.push(FieldError::not_supported(&policy_path, policy, &scopes));
        }
        _ => {}
    }
    let port = spec.health_check_node_port.unwrap_or_default();
    let port_path = path.child("healthCheckNodePort");
    if !needs_health_check(spec) && port != 0 {
        let why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is \
                   'Local'";
        errors.push(FieldError::invalid(&port_path, port, why));
    }
    match spec.internal_traffic_policy.as_deref() {
        None if matches!(kind, "ClusterIP" | "NodePort" | "LoadBalancer") => {
            errors.push(FieldError::required(&path.child("internalTrafficPolicy"), ""));
        }
        Some(policy) if !scopes.contains(&policy) => {
            let path = path.child("internalTrafficPolicy");
            errors.push(FieldError::not_supported(&path, policy, &scopes));
        }
        _ => {}
    }
    let distributions = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    if let Some(distribution) = &spec.traffic_distribution
        && !distributions.contains(&distribution.as_str())
    {
        let path = path.child("trafficDistribution");
        errors.push(FieldError::not_supported(&path, distribution, &distributions));
    }
    errors
}

fn needs_health_check(spec: &ServiceSpec) -> bool {
    spec.type_.as_deref() == Some("LoadBalancer")
        && spec.external_traffic_policy.as_deref() == Some("Local")
}

/// What a user should know about an accepted service.
pub(super) fn warnings(object: &Json) -> Vec<String> {
    let mut warnings = Vec::new();
    let spec: ServiceSpec = view(object, "spec", &mut ErrorList::new());
    let mut warn = |is_so: bool, text: &str| {
        if is_so {
            warnings.push(text.to_owned());
        }
    };
    let hints =
        at(object, &["metadata", "annotations", "service.kubernetes.io/topology-aware-hints"]);
    warn(
        hints.is_some_and(Value::is_string),
        "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use \
         service.kubernetes.io/topology-mode instead",
    );
    let kind = spec.type_.as_deref().unwrap_or_default();
    let is_headless = kind == "ClusterIP" && spec.cluster_ip.as_deref() == Some("None");
    let is_alias = kind == "ExternalName";
    let has_external_ips = spec.external_ips.as_ref().is_some_and(|ips| !ips.is_empty());
    let is_set = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
    warn(
        is_headless && is_set(&spec.load_balancer_ip),
        "spec.loadBalancerIP is ignored for headless services",
    );
    warn(is_headless && has_external_ips, "spec.externalIPs is ignored for headless services");
    warn(
        is_headless && spec.session_affinity.as_deref() != Some("None"),
        "spec.SessionAffinity is ignored for headless services",
    );
    warn(
        has_external_ips && !is_headless && !is_alias,
        "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
    );
    warn(
        is_alias && has_external_ips,
        "spec.externalIPs is ignored when spec.type is \"ExternalName\"",
    );
    warn(
        !is_alias && is_set(&spec.external_name),
        "spec.externalName is ignored when spec.type is not \"ExternalName\"",
    );
    warn(
        spec.traffic_distribution.as_deref() == Some("PreferClose"),
        "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"",
    );
    warnings
}
