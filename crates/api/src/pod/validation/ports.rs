//! Ports of containers.

use std::collections::BTreeSet;

use k8s_openapi::{
    api::core::v1::{Container, ContainerPort},
    apimachinery::pkg::util::intstr::IntOrString,
};

use super::rules::{choice, list, number, text};
use crate::{
    field::{ErrorList, FieldError, Path},
    meta::invalid,
    names,
};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// Says what is wrong with the ports of one container.
pub(super) fn validate(ports: &[ContainerPort], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for (at, port) in ports.iter().enumerate() {
        let path = path.index(at);
        let name = text(&port.name);
        if !name.is_empty() {
            let name_path = path.child("name");
            let faults = names::port_name(name);
            if !faults.is_empty() {
                errors.extend(invalid(&name_path, name, faults));
            } else if !seen.insert(name) {
                errors.push(FieldError::duplicate(&name_path, name));
            }
        }
        let number_path = path.child("containerPort");
        if port.container_port == 0 {
            errors.push(FieldError::required(&number_path, ""));
        } else {
            errors.extend(number(port.container_port.into(), &number_path, names::port_number));
        }
        let host = port.host_port.unwrap_or_default();
        if host != 0 {
            errors.extend(number(host.into(), &path.child("hostPort"), names::port_number));
        }
        errors.extend(choice(text(&port.protocol), &PROTOCOLS, &path.child("protocol")));
    }
    errors
}

/// Says which ports of the host are asked for twice.
pub(super) fn host_conflicts<'a>(
    containers: impl IntoIterator<Item = &'a Container>,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut taken = BTreeSet::new();
    for (at, container) in containers.into_iter().enumerate() {
        for (n, port) in list(&container.ports).iter().enumerate() {
            let host = port.host_port.unwrap_or_default();
            if host == 0 {
                continue;
            }
            let claim = format!("{}/{}/{host}", text(&port.protocol), text(&port.host_ip));
            if !taken.insert(claim.clone()) {
                let path = path.index(at).child("ports").index(n).child("hostPort");
                errors.push(FieldError::duplicate(&path, claim));
            }
        }
    }
    errors
}

/// Says what is wrong with a port given by number or by name.
pub(super) fn number_or_name(port: &IntOrString, path: &Path) -> ErrorList {
    match port {
        IntOrString::Int(value) => number((*value).into(), path, names::port_number),
        IntOrString::String(name) => invalid(path, name, names::port_name(name)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{assert_container, assert_spec};

    #[test]
    fn ports_are_numbers_with_unique_names() {
        assert_container(
            json!({"ports": [
                {"name": "web", "containerPort": 80},
                {"name": "web", "containerPort": 0},
                {"name": "Web", "containerPort": 70000, "hostPort": -1, "protocol": "ICMP"},
            ]}),
            &[
                "spec.containers[0].ports[1].name: Duplicate value: \"web\"",
                "spec.containers[0].ports[1].containerPort: Required value",
                "spec.containers[0].ports[2].name: Invalid value: \"Web\": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
                "spec.containers[0].ports[2].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
                "spec.containers[0].ports[2].hostPort: Invalid value: -1: must be between 1 and 65535, inclusive",
                "spec.containers[0].ports[2].protocol: Unsupported value: \"ICMP\": supported values: \"SCTP\", \"TCP\", \"UDP\"",
            ],
        );
    }

    #[test]
    fn a_host_port_is_taken_once() {
        let container = |name: &str| json!({"name": name, "image": "i", "ports": [{"containerPort": 1, "hostPort": 80}]});
        assert_spec(
            json!({"containers": [container("a"), container("b")]}),
            &["spec.containers[1].ports[0].hostPort: Duplicate value: \"TCP//80\""],
        );
        assert_spec(
            json!({"hostNetwork": true, "containers": [container("a")]}),
            &[
                "spec.containers[0].ports[0].hostPort: Invalid value: 80: must match `containerPort` when `hostNetwork` is true",
            ],
        );
    }
}
