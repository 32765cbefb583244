//! A Service in full.

use serde_json::Value;

use super::{
    object_head,
    template::list,
    text::{Text, or_none, scalar},
};
use crate::table::pairs;

/// So many addresses are shown of those behind a port.
const ENDPOINTS_SHOWN: usize = 3;

/// Describes a Service, up to its events; `slices` are its EndpointSlices.
pub(super) fn describe(service: &Value, slices: &[Value], text: &mut Text) {
    let spec = &service["spec"];
    object_head(service, text);
    text.field(0, "Selector", pairs(&spec["selector"]));
    text.field(0, "Type", scalar(&spec["type"]));
    text.known(0, "IP Family Policy", &spec["ipFamilyPolicy"]);
    text.field(0, "IP Families", joined(&spec["ipFamilies"]));
    text.field(0, "IP", scalar(&spec["clusterIP"]));
    text.field(0, "IPs", joined(&spec["clusterIPs"]));
    if !list(&spec["externalIPs"]).is_empty() {
        text.field(0, "External IPs", joined(&spec["externalIPs"]));
    }
    text.known(0, "Desired LoadBalancer IP", &spec["loadBalancerIP"]);
    text.known(0, "External Name", &spec["externalName"]);
    for port in list(&spec["ports"]) {
        let name = match scalar(&port["name"]) {
            name if name.is_empty() => "<unset>".to_owned(),
            name => name,
        };
        let protocol = scalar(&port["protocol"]);
        text.line(0, &format!("Port:\t{name}\t{}/{protocol}", scalar(&port["port"])));
        text.field(0, "TargetPort", format!("{}/{protocol}", scalar(&port["targetPort"])));
        text.known(0, "AppProtocol", &port["appProtocol"]);
        if port["nodePort"].as_i64().unwrap_or_default() != 0 {
            let number = scalar(&port["nodePort"]);
            text.line(0, &format!("NodePort:\t{name}\t{number}/{protocol}"));
        }
        text.field(0, "Endpoints", endpoints(slices, &scalar(&port["name"])));
    }
    text.field(0, "Session Affinity", scalar(&spec["sessionAffinity"]));
    text.known(0, "External Traffic Policy", &spec["externalTrafficPolicy"]);
    text.known(0, "Internal Traffic Policy", &spec["internalTrafficPolicy"]);
    text.known(0, "Traffic Distribution", &spec["trafficDistribution"]);
}

/// The ready addresses behind a port: `127.1.0.1:80,127.1.0.2:80 + 3 more...`.
fn endpoints(slices: &[Value], port: &str) -> String {
    if slices.is_empty() {
        return "<none>".to_owned();
    }
    let mut found = Vec::new();
    for slice in slices {
        let ports = list(&slice["ports"]).iter().filter(|p| scalar(&p["name"]) == port);
        let ports: Vec<String> = if list(&slice["ports"]).is_empty() {
            vec![String::new()]
        } else {
            ports.map(|port| format!(":{}", scalar(&port["port"]))).collect()
        };
        for port in &ports {
            let ready =
                list(&slice["endpoints"]).iter().filter(|e| e["conditions"]["ready"] != false);
            found.extend(ready.map(|e| {
                let address = scalar(&e["addresses"][0]);
                let is_bare = !address.contains(':') || port.is_empty();
                if is_bare { format!("{address}{port}") } else { format!("[{address}]{port}") }
            }));
        }
    }
    let shown = found.iter().take(ENDPOINTS_SHOWN).cloned().collect::<Vec<_>>().join(",");
    match found.len().saturating_sub(ENDPOINTS_SHOWN) {
        0 => shown,
        more => format!("{shown} + {more} more..."),
    }
}

fn joined(values: &Value) -> String {
    let values: Vec<String> = list(values).iter().map(scalar).collect();
    or_none(&Value::String(values.join(",")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_addresses_that_take_traffic_are_shown() {
        let slice = |ready: bool, count: usize| {
            let endpoint = json!({"addresses": ["127.1.0.1"], "conditions": {"ready": ready}});
            json!({"ports": [{"name": "http", "port": 80}], "endpoints": vec![endpoint; count]})
        };
        assert_eq!(endpoints(&[], "http"), "<none>");
        assert_eq!(endpoints(&[slice(false, 2)], "http"), "");
        assert_eq!(endpoints(&[slice(true, 1)], "other"), "");
        let all = endpoints(&[slice(true, 4), slice(true, 1)], "http");
        assert_eq!(all, "127.1.0.1:80,127.1.0.1:80,127.1.0.1:80 + 2 more...");
    }
}
