//! Ports that collide or are half given.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ContainerPort, PodSpec};

use super::{for_each_container, list, text};
use crate::field::Path;

pub(super) fn warnings(spec: &PodSpec, path: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut ports: BTreeMap<String, Vec<(Path, ContainerPort)>> = BTreeMap::new();
    let mut names: BTreeMap<String, Path> = BTreeMap::new();
    let mut about_names = Vec::new();
    for_each_container(spec, path, |container, path| {
        for (at, port) in list(&container.ports).iter().enumerate() {
            let path = path.child("ports").index(at);
            if !text(&port.host_ip).is_empty() && host(port) == 0 {
                warnings.push(format!("{path}: hostIP set without hostPort: {}", shown(port)));
            }
            let key = format!("{}/{}", port.container_port, text(&port.protocol));
            let others = ports.entry(key).or_default();
            for (other_path, other) in &*others {
                if let Some(how) = collision(port, other) {
                    warnings.push(format!("{path}: {how} port definition with {other_path}"));
                }
            }
            others.push((path.clone(), port.clone()));
            let name = text(&port.name);
            if name.is_empty() {
                continue;
            }
            if let Some(other) = names.get(name) {
                about_names.push(format!(
                    "{path}: duplicate port name {name:?} with {other}, services and probes that \
                     select ports by name will use {other}"
                ));
            } else {
                names.insert(name.to_owned(), path);
            }
        }
    });
    warnings.extend(about_names);
    warnings
}

fn host(port: &ContainerPort) -> i32 {
    port.host_port.unwrap_or_default()
}

fn collision(port: &ContainerPort, other: &ContainerPort) -> Option<&'static str> {
    let (ip, other_ip) = (text(&port.host_ip), text(&other.host_ip));
    if ip == other_ip && host(port) == host(other) {
        Some("duplicate")
    } else if host(port) == 0 || host(other) == 0 {
        Some("overlapping")
    } else if host(port) == host(other) && ip.is_empty() != other_ip.is_empty() {
        Some("dangerously ambiguous")
    } else {
        None
    }
}

fn shown(port: &ContainerPort) -> String {
    format!(
        "{{Name:{} HostPort:{} ContainerPort:{} Protocol:{} HostIP:{}}}",
        text(&port.name),
        host(port),
        port.container_port,
        text(&port.protocol),
        text(&port.host_ip)
    )
}
