//! EndpointSlice: addresses behind a service, in slices.

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    duration::age,
    json::{integer, list, set_default, text},
    names,
    strategy::{Column, Json, Strategy},
    table::{self, AGE, NAME, column, first_three},
};

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

fn or_unset(cell: String) -> String {
    if cell.is_empty() { "<unset>".to_owned() } else { cell }
}
