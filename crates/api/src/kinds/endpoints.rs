//! Endpoints: the addresses behind a service, in the older shape.

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    duration::age,
    json::{integer, list, set_default, text},
    names,
    strategy::{Column, Json, Strategy},
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

    fn warnings(&self, _object: &Json, _old: Option<&Json>) -> Vec<String> {
        vec![
            "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
                .to_owned(),
        ]
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
