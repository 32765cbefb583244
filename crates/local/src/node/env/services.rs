//! Where services are found, as variables.

use std::{collections::BTreeMap, net::SocketAddr};

use k8s_openapi::api::core::v1::{Pod, Service};
use lockstep_api::labels::API_ADDRESS;

/// The variables for the services `pod` sees: those of its namespace unless it switched that off,
/// and always the API server's.
pub(super) fn variables(pod: &Pod, services: &[Service]) -> BTreeMap<String, String> {
    let namespace = pod.metadata.namespace.as_deref();
    let links = pod.spec.as_ref().and_then(|spec| spec.enable_service_links).unwrap_or(true);
    let mut variables = BTreeMap::new();
    for service in services {
        let name = service.metadata.name.as_deref().unwrap_or_default();
        let of = service.metadata.namespace.as_deref();
        let is_api_server = of == Some("default") && name == "kubernetes";
        if is_api_server || (links && of == namespace) {
            match service.metadata.annotations.as_ref().and_then(|given| given.get(API_ADDRESS)) {
                Some(address) if is_api_server => add_api(&mut variables, service, address),
                _ => add(&mut variables, name, service),
            }
        }
    }
    variables
}

/// The variables of the API server where it is reached at another address than the service's.
fn add_api(variables: &mut BTreeMap<String, String>, service: &Service, address: &str) {
    let Ok(address) = address.parse::<SocketAddr>() else { return };
    let mut there = service.clone();
    if let Some(spec) = &mut there.spec {
        spec.cluster_ip = Some(address.ip().to_string());
        spec.ports.iter_mut().flatten().for_each(|port| port.port = address.port().into());
    }
    add(variables, "kubernetes", &there);
}

fn add(variables: &mut BTreeMap<String, String>, name: &str, service: &Service) {
    let Some(spec) = &service.spec else { return };
    let host = spec.cluster_ip.as_deref().unwrap_or_default();
    let ports = spec.ports.as_deref().unwrap_or_default();
    let Some(first) = ports.first().filter(|_| !host.is_empty() && host != "None") else { return };
    let prefix = variable_name(name);
    variables.insert(format!("{prefix}_SERVICE_HOST"), host.to_owned());
    variables.insert(format!("{prefix}_SERVICE_PORT"), first.port.to_string());
    let bracketed = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    for (index, port) in ports.iter().enumerate() {
        if let Some(name) = port.name.as_deref().filter(|name| !name.is_empty()) {
            let key = format!("{prefix}_SERVICE_PORT_{}", variable_name(name));
            variables.insert(key, port.port.to_string());
        }
        let protocol = port.protocol.as_deref().unwrap_or("TCP");
        let lower = protocol.to_lowercase();
        let url = format!("{lower}://{bracketed}:{}", port.port);
        if index == 0 {
            variables.insert(format!("{prefix}_PORT"), url.clone());
        }
        let key = format!("{prefix}_PORT_{}_{}", port.port, protocol.to_uppercase());
        variables.insert(format!("{key}_PROTO"), lower);
        variables.insert(format!("{key}_PORT"), port.port.to_string());
        variables.insert(format!("{key}_ADDR"), host.to_owned());
        variables.insert(key, url);
    }
}

fn variable_name(name: &str) -> String {
    name.replace('-', "_").to_uppercase()
}
