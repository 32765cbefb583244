//! EndpointSlice: addresses behind a service, in slices.

use std::{collections::BTreeSet, net::IpAddr};

use jiff::Timestamp;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointHints, EndpointPort};
use serde_json::Value;

use crate::{
    duration::age,
    field::{ErrorList, FieldError, Path},
    json::{at, integer, list, object_mut, set_default, text},
    kinds::{
        address::validate_endpoint_ip, each, immutable, service::validation::validate_protocol,
        view,
    },
    names,
    strategy::{Column, Json, MetadataCheck, Strategy, WriteContext},
    table::{self, AGE, NAME, column, first_three},
};

const ENDPOINTS_MAX: usize = 1000;
const PORTS_MAX: usize = 20_000;
const ADDRESSES_MAX: usize = 100;
const HINTS_MAX: usize = 8;

const COLUMNS: &[Column] = &[
    NAME,
    column("AddressType", "What kind of addresses the slice holds."),
    column("Ports", "The first few ports."),
    column("Endpoints", "The first few addresses."),
    AGE,
];

/// EndpointSlice.
#[derive(Debug)]
pub struct EndpointSliceStrategy;

impl Strategy for EndpointSliceStrategy {
    fn fill_defaults(&self, object: &mut Json) {
        let ports = object.get_mut("ports").and_then(Value::as_array_mut);
        for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
            set_default(port, "name", "");
            set_default(port, "protocol", "TCP");
        }
    }

    fn prepare_create(&self, object: &mut Json, _context: &WriteContext) {
        drop_topology(object);
    }

    fn validate_create(&self, object: &Json) -> ErrorList {
        let mut errors = validate_shape(object);
        errors.extend(validate_endpoints(object));
        errors
    }

    /// A change of labels counts as a new generation too: they say which service the slice is of.
    fn prepare_update(&self, object: &mut Json, old: &Json, _context: &WriteContext) {
        drop_topology(object);
        let labels = |of: &Json| at(of, &["metadata", "labels"]).cloned();
        if labels(object) != labels(old) {
            let generation = integer(old, &["metadata", "generation"]).unwrap_or_default();
            object_mut(object, "metadata").insert("generation".to_owned(), (generation + 1).into());
        }
    }

    /// Endpoints that were accepted once are not looked at again.
    fn validate_update(&self, object: &Json, old: &Json) -> ErrorList {
        let mut errors = validate_shape(object);
        if object.get("endpoints") != old.get("endpoints") {
            errors.extend(validate_endpoints(object));
        }
        errors.extend(immutable(object, old, "addressType"));
        errors
    }

    fn warnings(&self, object: &Json, old: Option<&Json>) -> Vec<String> {
        if old.is_none() && text(object, &["addressType"]) == "FQDN" {
            vec!["spec.addressType: FQDN endpoints are deprecated".to_owned()]
        } else {
            Vec::new()
        }
    }

    fn metadata_check(&self) -> MetadataCheck {
        MetadataCheck::New
    }

    fn validate_name(&self, name: &str, is_prefix: bool) -> Vec<String> {
        names::name_is_dns_subdomain(name, is_prefix)
    }

    fn has_generation(&self) -> bool {
        true
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn row(&self, object: &Json, now: Timestamp) -> Vec<Value> {
        let ports: Vec<String> = list(object, &["ports"])
            .iter()
            .filter_map(Value::as_object)
            .map(|port| match (integer(port, &["port"]), port.get("name")) {
                (Some(number), _) => number.to_string(),
                (None, Some(Value::String(name))) => name.clone(),
                (None, _) => "*".to_owned(),
            })
            .collect();
        let addresses: Vec<String> = list(object, &["endpoints"])
            .iter()
            .filter_map(Value::as_object)
            .flat_map(|endpoint| list(endpoint, &["addresses"]))
            .filter_map(|address| address.as_str().map(str::to_owned))
            .collect();
        vec![
            table::name(object),
            text(object, &["addressType"]).into(),
            or_unset(first_three(&ports, "")).into(),
            or_unset(first_three(&addresses, "")).into(),
            age(object, now).into(),
        ]
    }
}

/// `deprecatedTopology` is for reading old slices, and there are none here.
fn drop_topology(object: &mut Json) {
    let endpoints = object.get_mut("endpoints").and_then(Value::as_array_mut);
    for endpoint in endpoints.into_iter().flatten().filter_map(Value::as_object_mut) {
        endpoint.remove("deprecatedTopology");
    }
}

fn validate_shape(object: &Json) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("addressType");
    match text(object, &["addressType"]) {
        "" => errors.push(FieldError::required(&path, "")),
        "FQDN" | "IPv4" | "IPv6" => {}
        other => {
            errors.push(FieldError::not_supported(&path, other, &["FQDN", "IPv4", "IPv6"]));
        }
    }
    let ports: Vec<EndpointPort> = view(object, "ports", &mut errors);
    let path = Path::new("ports");
    if ports.len() > PORTS_MAX {
        errors.push(FieldError::too_many(&path, ports.len(), PORTS_MAX));
        return errors;
    }
    let mut seen = BTreeSet::new();
    for (at, port) in ports.iter().enumerate() {
        let path = path.index(at);
        let name = port.name.as_deref().unwrap_or_default();
        let name_path = path.child("name");
        if !name.is_empty() {
            errors.extend(each(&name_path, name, names::dns1123_label(name)));
        }
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&name_path, name));
        }
        errors.extend(validate_protocol(port.protocol.as_deref(), &path.child("protocol")));
        if let Some(protocol) = &port.app_protocol {
            let path = path.child("appProtocol");
            errors.extend(each(&path, protocol, names::qualified_name(protocol)));
        }
    }
    errors
}

fn validate_endpoints(object: &Json) -> ErrorList {
    let mut errors = ErrorList::new();
    let kind = text(object, &["addressType"]);
    let endpoints: Vec<Endpoint> = view(object, "endpoints", &mut errors);
    let path = Path::new("endpoints");
    if endpoints.len() > ENDPOINTS_MAX {
        errors.push(FieldError::too_many(&path, endpoints.len(), ENDPOINTS_MAX));
        return errors;
    }
    for (at, endpoint) in endpoints.iter().enumerate() {
        let path = path.index(at);
        let addresses = &endpoint.addresses;
        let addresses_path = path.child("addresses");
        if addresses.is_empty() {
            let why = "must contain at least 1 address";
            errors.push(FieldError::required(&addresses_path, why));
        } else if addresses.len() > ADDRESSES_MAX {
            errors.push(FieldError::too_many(&addresses_path, addresses.len(), ADDRESSES_MAX));
        }
        for (at, address) in addresses.iter().enumerate() {
            errors.extend(validate_address(address, kind, &addresses_path, at));
        }
        if let Some(node) = &endpoint.node_name {
            errors.extend(each(&path.child("nodeName"), node, names::dns1123_subdomain(node)));
        }
        if let Some(hostname) = &endpoint.hostname {
            let path = path.child("hostname");
            errors.extend(each(&path, hostname, names::dns1123_label(hostname)));
        }
        if let Some(hints) = &endpoint.hints {
            errors.extend(validate_hints(hints, &path.child("hints")));
        }
    }
    errors
}

fn validate_address(address: &str, kind: &str, list: &Path, at: usize) -> ErrorList {
    let path = list.index(at);
    let wants_v6 = match kind {
        "IPv4" => false,
        "IPv6" => true,
        "FQDN" => return validate_domain(address, &path),
        _ => return ErrorList::new(),
    };
    let mut errors = names::validate_ip(address, &path);
    let Some(ip) = address.parse::<IpAddr>().ok().filter(|_| errors.is_empty()) else {
        return errors;
    };
    if wants_v6 && ip.to_string() != address {
        let why = format!("must be in canonical form (\"{ip}\")");
        return vec![FieldError::invalid(&path, address, &why)];
    }
    if ip.is_ipv6() != wants_v6 {
        errors.push(FieldError::invalid(list, address, &format!("must be an {kind} address")));
    }
    errors.extend(validate_endpoint_ip(address, &path));
    errors
}

fn validate_domain(name: &str, path: &Path) -> ErrorList {
    if name.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let faults = names::dns1123_subdomain(name);
    if !faults.is_empty() {
        return vec![FieldError::invalid(path, name, &faults.join(","))];
    }
    if !name.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        return vec![FieldError::invalid(path, name, why)];
    }
    let bad = name.split('.').find(|label| !names::dns1123_label(label).is_empty());
    bad.map(|label| FieldError::invalid(path, label, &names::dns1123_label(label).join(",")))
        .into_iter()
        .collect()
}

fn validate_hints(hints: &EndpointHints, path: &Path) -> ErrorList {
    let zones: Vec<&str> = hints.for_zones.iter().flatten().map(|zone| &*zone.name).collect();
    let nodes: Vec<&str> = hints.for_nodes.iter().flatten().map(|node| &*node.name).collect();
    let mut errors = validate_hinted(&zones, &path.child("forZones"), names::label_value);
    if zones.len() <= HINTS_MAX {
        let path = path.child("forNodes");
        errors.extend(validate_hinted(&nodes, &path, names::dns1123_subdomain));
    }
    errors
}

fn validate_hinted(hinted: &[&str], path: &Path, faults: fn(&str) -> Vec<String>) -> ErrorList {
    if hinted.len() > HINTS_MAX {
        return vec![FieldError::too_many(path, hinted.len(), HINTS_MAX)];
    }
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for (at, name) in hinted.iter().enumerate() {
        let path = path.index(at).child("name");
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&path, name));
        }
        errors.extend(each(&path, name, faults(name)));
    }
    errors
}

fn or_unset(cell: String) -> String {
    if cell.is_empty() { "<unset>".to_owned() } else { cell }
}

#[cfg(test)]
mod tests;
