//! Endpoints: the addresses behind a service, in the older shape.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset};
use serde_json::Value;

use crate::{
    duration::age,
    field::{ErrorList, FieldError, Path},
    json::{integer, list, set_default, text},
    kinds::{address::validate_endpoint_ip, each, service::validation::validate_protocol, view},
    names,
    strategy::{Column, Json, MetadataCheck, Strategy},
    table::{self, AGE, NAME, NONE, column, first_three},
};

const COLUMNS: &[Column] = &[NAME, column("Endpoints", "The first few addresses."), AGE];

/// Endpoints.
#[derive(Debug)]
pub struct EndpointsStrategy;

impl Strategy for EndpointsStrategy {
    fn fill_defaults(&self, object: &mut Json) {
        let subsets = object.get_mut("subsets").and_then(Value::as_array_mut);
        for subset in subsets.into_iter().flatten() {
            let ports = subset.get_mut("ports").and_then(Value::as_array_mut);
            for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
                if text(port, &["protocol"]).is_empty() {
                    port.remove("protocol");
                }
                set_default(port, "protocol", "TCP");
            }
        }
    }

    fn validate_create(&self, object: &Json) -> ErrorList {
        let mut errors = ErrorList::new();
        let subsets: Vec<EndpointSubset> = view(object, "subsets", &mut errors);
        for (at, subset) in subsets.iter().enumerate() {
            errors.extend(validate_subset(subset, &Path::new("subsets").index(at)));
        }
        errors
    }

    /// What was accepted once is not looked at again.
    fn validate_update(&self, object: &Json, old: &Json) -> ErrorList {
        if object.get("subsets") == old.get("subsets") {
            return ErrorList::new();
        }
        self.validate_create(object)
    }

    fn warnings(&self, _object: &Json, _old: Option<&Json>) -> Vec<String> {
        vec![
            "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
                .to_owned(),
        ]
    }

    fn metadata_check(&self) -> MetadataCheck {
        MetadataCheck::Both
    }

    fn validate_name(&self, name: &str, is_prefix: bool) -> Vec<String> {
        names::name_is_dns_subdomain(name, is_prefix)
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn row(&self, object: &Json, now: Timestamp) -> Vec<Value> {
        vec![table::name(object), endpoints_cell(object).into(), age(object, now).into()]
    }
}

fn validate_subset(subset: &EndpointSubset, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let ready = subset.addresses.as_deref().unwrap_or_default();
    let not_ready = subset.not_ready_addresses.as_deref().unwrap_or_default();
    if ready.is_empty() && not_ready.is_empty() {
        let why = "must specify `addresses` or `notReadyAddresses`";
        errors.push(FieldError::required(path, why));
    }
    for (list, addresses) in [("addresses", ready), ("notReadyAddresses", not_ready)] {
        for (at, address) in addresses.iter().enumerate() {
            errors.extend(validate_address(address, &path.child(list).index(at)));
        }
    }
    let ports = subset.ports.as_deref().unwrap_or_default();
    for (at, port) in ports.iter().enumerate() {
        errors.extend(validate_port(port, ports.len() > 1, &path.child("ports").index(at)));
    }
    errors
}

fn validate_address(address: &EndpointAddress, path: &Path) -> ErrorList {
    let mut errors = names::validate_ip(&address.ip, &path.child("ip"));
    let hostname = address.hostname.as_deref().unwrap_or_default();
    if !hostname.is_empty() {
        errors.extend(each(&path.child("hostname"), hostname, names::dns1123_label(hostname)));
    }
    if let Some(node) = &address.node_name {
        errors.extend(each(&path.child("nodeName"), node, names::dns1123_subdomain(node)));
    }
    errors.extend(validate_endpoint_ip(&address.ip, &path.child("ip")));
    errors
}

fn validate_port(port: &EndpointPort, is_name_required: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let name = port.name.as_deref().unwrap_or_default();
    let name_path = path.child("name");
    if !name.is_empty() {
        errors.extend(each(&name_path, name, names::dns1123_label(name)));
    } else if is_name_required {
        errors.push(FieldError::required(&name_path, ""));
    }
    for why in names::port_number(port.port.into()) {
        errors.push(FieldError::invalid(&path.child("port"), port.port, &why));
    }
    errors.extend(validate_protocol(port.protocol.as_deref(), &path.child("protocol")));
    if let Some(protocol) = &port.app_protocol {
        let path = path.child("appProtocol");
        errors.extend(each(&path, protocol, names::qualified_name(protocol)));
    }
    errors
}

fn endpoints_cell(object: &Json) -> String {
    let subsets = list(object, &["subsets"]);
    let mut all = Vec::new();
    for subset in subsets.iter().filter_map(Value::as_object) {
        let addresses = list(subset, &["addresses"]);
        let address = |one: &Value| one["ip"].as_str().unwrap_or_default().to_owned();
        // A headless service may have no ports.
        if list(subset, &["ports"]).is_empty() {
            all.extend(addresses.iter().map(address));
        }
        for port in list(subset, &["ports"]).iter().filter_map(Value::as_object) {
            let number = integer(port, &["port"]).unwrap_or_default();
            all.extend(addresses.iter().map(|one| match address(one) {
                ip if ip.contains(':') => format!("[{ip}]:{number}"),
                ip => format!("{ip}:{number}"),
            }));
        }
    }
    // Only without any subset it is `<none>`: subsets without ready addresses show nothing.
    first_three(&all, if subsets.is_empty() { NONE } else { "" })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn texts(errors: &ErrorList) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn subsets_have_addresses_and_ports() {
        let cases = [
            (json!([{"addresses": [{"ip": "127.33.0.1"}], "ports": [{"port": 80}]}]), vec![]),
            (
                json!([{"ports": [{"port": 80}]}]),
                vec!["subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`"],
            ),
            (
                json!([{"notReadyAddresses": [{"ip": "10.0.0.1", "hostname": "a.b"}],
                    "ports": [{"port": 80}, {"port": 0, "name": "x"}]}]),
                vec![
                    "subsets[0].notReadyAddresses[0].hostname: Invalid value: \"a.b\": must not \
                     contain dots",
                    "subsets[0].ports[0].name: Required value",
                    "subsets[0].ports[1].port: Invalid value: 0: must be between 1 and 65535, \
                     inclusive",
                ],
            ),
            (
                json!([{"addresses": [{"ip": "0.0.0.0"}]}]),
                vec![
                    "subsets[0].addresses[0].ip: Invalid value: \"0.0.0.0\": may not be \
                     unspecified (0.0.0.0)",
                ],
            ),
        ];
        for (subsets, want) in cases {
            let mut object = json!({"subsets": subsets}).as_object().unwrap().clone();
            EndpointsStrategy.fill_defaults(&mut object);
            assert_eq!(texts(&EndpointsStrategy.validate_create(&object)), want, "{subsets}");
            assert!(EndpointsStrategy.validate_update(&object, &object).is_empty());
        }
    }

    #[test]
    fn a_row_shows_the_first_addresses() {
        let cases = [
            (json!(null), "<none>"),
            (json!([{"addresses": [{"ip": "10.0.0.1"}]}]), "10.0.0.1"),
            (json!([{"notReadyAddresses": [{"ip": "10.0.0.1"}]}]), ""),
            (
                json!([{"addresses": [{"ip": "10.0.0.1"}, {"ip": "::1"}],
                    "ports": [{"port": 80}, {"port": 81}]}]),
                "10.0.0.1:80,[::1]:80,10.0.0.1:81 + 1 more...",
            ),
        ];
        for (subsets, want) in cases {
            let object = json!({"subsets": subsets});
            assert_eq!(endpoints_cell(object.as_object().unwrap()), want, "{subsets}");
        }
    }
}
