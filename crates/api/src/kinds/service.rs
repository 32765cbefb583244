//! Service: a name and an address for a set of pods.

mod cluster_ip;
mod node_port;
mod prepare;
#[cfg(test)]
mod tests;
pub(in crate::kinds) mod validation;

pub use cluster_ip::{
    ClusterIp, SERVICE_RANGE, already_allocated, cluster_ip_wanted, service_addresses,
    set_cluster_ip,
};
pub use node_port::{NODE_PORTS, NodePortError, allocate_node_ports, node_ports};

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    duration::{UNKNOWN, age},
    field::ErrorList,
    json::{at, integer, list, text},
    names,
    strategy::{Column, Json, Strategy, WriteContext, keep},
    table::{self, AGE, NAME, NONE, column, or_none, wide},
};

const COLUMNS: &[Column] = &[
    NAME,
    column("Type", "How the service is exposed."),
    column("Cluster-IP", "Address inside the cluster, or None."),
    column("External-IP", "Addresses outside the cluster."),
    column("Port(s)", "Ports and protocols."),
    AGE,
    wide("Selector", "Labels of the pods that serve it."),
];

/// Service.
#[derive(Debug)]
pub struct ServiceStrategy;

impl Strategy for ServiceStrategy {
    fn fill_defaults(&self, object: &mut Json) {
        prepare::fill_defaults(object);
    }

    fn prepare_create(&self, object: &mut Json, _context: &WriteContext) {
        object.remove("status");
        prepare::prepare_create(object);
    }

    fn validate_create(&self, object: &Json) -> ErrorList {
        validation::validate(object, None)
    }

    fn prepare_update(&self, object: &mut Json, old: &Json, _context: &WriteContext) {
        keep(object, old, "status");
        prepare::prepare_update(object, old);
    }

    fn validate_update(&self, object: &Json, old: &Json) -> ErrorList {
        validation::validate(object, Some(old))
    }

    fn validate_status_update(&self, object: &Json, old: &Json) -> ErrorList {
        validation::validate_status(object, old)
    }

    fn warnings(&self, object: &Json, _old: Option<&Json>) -> Vec<String> {
        validation::warnings(object)
    }

    fn validate_name(&self, name: &str, is_prefix: bool) -> Vec<String> {
        names::name_is_dns_label(name, is_prefix)
    }

    fn has_status(&self) -> bool {
        true
    }

    fn has_generation(&self) -> bool {
        false
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }

    fn delete_returns_object(&self) -> bool {
        true
    }

    fn selectable_fields(&self) -> &'static [&'static str] {
        &["spec.clusterIP", "spec.type"]
    }

    fn field_value(&self, object: &Json, field: &str) -> String {
        match field {
            "spec.type" => text(object, &["spec", "type"]).to_owned(),
            _ => text(object, &["spec", "clusterIP"]).to_owned(),
        }
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn row(&self, object: &Json, now: Timestamp) -> Vec<Value> {
        let cluster_ip = list(object, &["spec", "clusterIPs"]).first().and_then(Value::as_str);
        vec![
            table::name(object),
            text(object, &["spec", "type"]).into(),
            cluster_ip.unwrap_or(NONE).into(),
            external_cell(object).into(),
            ports_cell(object).into(),
            age(object, now).into(),
            table::labels(at(object, &["spec", "selector"])).into(),
        ]
    }
}

/// Whether the pods behind a service are found without an address of its own.
fn is_headless(spec: &Json) -> bool {
    matches!(list(spec, &["clusterIPs"]), [one] if one == "None")
}

fn external_cell(object: &Json) -> String {
    let external: Vec<&str> =
        list(object, &["spec", "externalIPs"]).iter().filter_map(Value::as_str).collect();
    match text(object, &["spec", "type"]) {
        "ClusterIP" | "NodePort" if external.is_empty() => NONE.to_owned(),
        "ClusterIP" | "NodePort" => external.join(","),
        "LoadBalancer" => {
            let ingress = list(object, &["status", "loadBalancer", "ingress"]).iter();
            let balanced: BTreeSet<&str> = ingress
                .filter_map(|one| {
                    let member = |name: &str| one[name].as_str().filter(|text| !text.is_empty());
                    member("ip").or_else(|| member("hostname"))
                })
                .collect();
            let all: Vec<&str> = balanced.into_iter().chain(external).collect();
            if all.is_empty() { "<pending>".to_owned() } else { all.join(",") }
        }
        "ExternalName" => text(object, &["spec", "externalName"]).to_owned(),
        _ => UNKNOWN.to_owned(),
    }
}

fn ports_cell(object: &Json) -> String {
    let ports = list(object, &["spec", "ports"]).iter().filter_map(Value::as_object);
    let cells: Vec<String> = ports
        .map(|port| {
            let number = integer(port, &["port"]).unwrap_or_default();
            let protocol = text(port, &["protocol"]);
            match integer(port, &["nodePort"]) {
                Some(node_port) if node_port > 0 => format!("{number}:{node_port}/{protocol}"),
                _ => format!("{number}/{protocol}"),
            }
        })
        .collect();
    or_none(cells.join(","))
}
