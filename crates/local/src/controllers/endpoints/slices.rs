//! Which pod is listed in which slice, and how.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use k8s_openapi::api::core::v1::{ObjectReference, Pod, Service};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// How many pods a slice lists at most.
const SLICE_MAX: usize = 100;

/// A port of a service as one pod has it: name, protocol, number, application protocol.
pub(super) type Port = (String, String, i32, Option<String>);

/// A pod as a slice lists it, with the ports it listens on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Listed {
    pub endpoint: Endpoint,
    pub ports: Vec<Port>,
}

/// The slices of one service. A pod stays in the slice it was first listed in, so that a change is
/// written to one slice only.
#[derive(Clone, Debug, Default)]
pub(super) struct Slices {
    slices: BTreeMap<usize, Slice>,
    places: HashMap<String, usize>,
    /// Slices that have to be written.
    touched: BTreeSet<usize>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Slice {
    pub ports: Vec<Port>,
    pub endpoints: BTreeMap<String, Endpoint>,
}

impl Slices {
    /// Lists a pod as it is now, or no more.
    pub(super) fn put(&mut self, uid: &str, listed: Option<Listed>) {
        let old = self.places.get(uid).copied();
        if let Some(index) = old {
            let Some(slice) = self.slices.get_mut(&index) else { return };
            if let Some(listed) = &listed
                && slice.ports == listed.ports
            {
                if slice.endpoints.get(uid) != Some(&listed.endpoint) {
                    slice.endpoints.insert(uid.to_owned(), listed.endpoint.clone());
                    self.touched.insert(index);
                }
                return;
            }
            slice.endpoints.remove(uid);
            self.places.remove(uid);
            self.touched.insert(index);
        }
        let Some(listed) = listed else { return };
        let index = self.room_for(&listed.ports);
        let slice = self.slices.entry(index).or_default();
        slice.ports = listed.ports;
        slice.endpoints.insert(uid.to_owned(), listed.endpoint);
        self.places.insert(uid.to_owned(), index);
        self.touched.insert(index);
    }

    /// The slices to write, with their numbers; empty ones are to be deleted.
    pub(super) fn touched(&self) -> Vec<(usize, Slice)> {
        let slice = |index: &usize| (*index, self.slices.get(index).cloned().unwrap_or_default());
        self.touched.iter().map(slice).collect()
    }

    /// Notes that a slice has been written.
    pub(super) fn written(&mut self, index: usize) {
        self.touched.remove(&index);
        // The first slice stays even if it lists nobody.
        if index > 0 && self.slices.get(&index).is_some_and(|slice| slice.endpoints.is_empty()) {
            self.slices.remove(&index);
        }
    }

    /// Everything has to be written again.
    pub(super) fn touch_all(&mut self) {
        self.slices.entry(0).or_default();
        self.touched.extend(self.slices.keys());
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Slice> {
        self.slices.values()
    }

    /// Whether there is a slice of this number.
    pub(super) fn contains(&self, index: usize) -> bool {
        self.slices.contains_key(&index)
    }

    pub(super) fn uids(&self) -> impl Iterator<Item = &String> {
        self.places.keys()
    }

    /// Whether the service has more pods than one slice lists.
    pub(super) fn is_large(&self) -> bool {
        self.places.len() > SLICE_MAX
    }

    fn room_for(&self, ports: &[Port]) -> usize {
        let has_room = |slice: &Slice| {
            slice.endpoints.is_empty()
                || (slice.ports == ports && slice.endpoints.len() < SLICE_MAX)
        };
        let found = self.slices.iter().find(|(_, slice)| has_room(slice)).map(|(index, _)| *index);
        found.unwrap_or_else(|| self.slices.keys().next_back().map_or(0, |last| last + 1))
    }
}

/// How `pod` is listed by `service`; `None` when it is not.
pub(super) fn endpoint_of(service: &Service, pod: &Pod) -> Option<Listed> {
    let status = pod.status.as_ref()?;
    let ip = status.pod_ip.clone().filter(|ip| !ip.is_empty())?;
    if matches!(status.phase.as_deref(), Some("Succeeded" | "Failed")) {
        return None;
    }
    let spec = service.spec.as_ref()?;
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let serving = conditions.iter().any(|it| it.type_ == "Ready" && it.status == "True");
    let terminating = pod.metadata.deletion_timestamp.is_some();
    let publishes_all = spec.publish_not_ready_addresses == Some(true);
    let pod_spec = pod.spec.as_ref();
    let subdomain = pod_spec.and_then(|spec| spec.subdomain.as_deref());
    let hostname = pod_spec
        .and_then(|spec| spec.hostname.clone())
        .filter(|name| !name.is_empty() && subdomain == service.metadata.name.as_deref());
    let endpoint = Endpoint {
        addresses: vec![ip],
        conditions: Some(EndpointConditions {
            ready: Some(publishes_all || (serving && !terminating)),
            serving: Some(serving),
            terminating: Some(terminating),
        }),
        hostname,
        node_name: pod_spec.and_then(|spec| spec.node_name.clone()),
        target_ref: Some(ObjectReference {
            kind: Some("Pod".to_owned()),
            name: pod.metadata.name.clone(),
            namespace: pod.metadata.namespace.clone(),
            uid: pod.metadata.uid.clone(),
            ..ObjectReference::default()
        }),
        ..Endpoint::default()
    };
    let ports = spec.ports.iter().flatten().filter_map(|port| {
        let number = match port.target_port.as_ref() {
            None => Some(port.port),
            Some(IntOrString::Int(0)) => Some(port.port),
            Some(IntOrString::Int(number)) => Some(*number),
            Some(IntOrString::String(name)) => named_port(pod, name),
        };
        let protocol = port.protocol.clone().unwrap_or_else(|| "TCP".to_owned());
        let name = port.name.clone().unwrap_or_default();
        number.map(|number| (name, protocol, number, port.app_protocol.clone()))
    });
    Some(Listed { endpoint, ports: ports.collect() })
}

/// A port as a slice lists it.
pub(super) fn slice_port((name, protocol, number, app_protocol): &Port) -> EndpointPort {
    EndpointPort {
        name: Some(name.clone()),
        protocol: Some(protocol.clone()),
        port: Some(*number),
        app_protocol: app_protocol.clone(),
    }
}

fn named_port(pod: &Pod, name: &str) -> Option<i32> {
    let spec = pod.spec.as_ref()?;
    let mut ports = spec.containers.iter().flat_map(|it| it.ports.iter().flatten());
    ports.find(|port| port.name.as_deref() == Some(name)).map(|port| port.container_port)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn listed(ip: &str) -> Option<Listed> {
        let endpoint = Endpoint { addresses: vec![ip.to_owned()], ..Endpoint::default() };
        Some(Listed { endpoint, ports: Vec::new() })
    }

    #[test]
    fn a_change_touches_one_slice() {
        let mut slices = Slices::default();
        for index in 0..250 {
            slices.put(&format!("u{index}"), listed(&index.to_string()));
        }
        let sizes: Vec<usize> = slices.all().map(|slice| slice.endpoints.len()).collect();
        assert_eq!(sizes, [100, 100, 50]);
        for (index, _) in slices.touched() {
            slices.written(index);
        }
        slices.put("u3", listed("other"));
        slices.put("u4", listed("4"));
        assert_eq!(slices.touched().len(), 1, "what is as it was is not written");
        slices.put("u3", None);
        slices.put("new", listed("new"));
        assert_eq!(slices.touched().len(), 1, "the free place is used");
    }

    #[test]
    fn pods_are_listed_by_readiness() {
        // (ready, deleted, publishes all, phase, expected ready)
        let cases = [
            ("True", false, false, "Running", Some(true)),
            ("False", false, false, "Running", Some(false)),
            ("False", false, true, "Pending", Some(true)),
            ("True", true, false, "Running", Some(false)),
            ("True", false, false, "Succeeded", None),
        ];
        for (ready, is_deleted, publishes, phase, want) in cases {
            let service: Service = serde_json::from_value(json!({
                "metadata": {"name": "s"},
                "spec": {"publishNotReadyAddresses": publishes,
                    "ports": [{"name": "web", "port": 80, "targetPort": "http"}]},
            }))
            .unwrap();
            let mut pod: Pod = serde_json::from_value(json!({
                "metadata": {"name": "p"},
                "spec": {"hostname": "p-0", "subdomain": "s", "containers": [
                    {"name": "c", "ports": [{"name": "http", "containerPort": 8080}]}]},
                "status": {"phase": phase, "podIP": "127.0.0.9",
                    "conditions": [{"type": "Ready", "status": ready}]},
            }))
            .unwrap();
            if is_deleted {
                let at = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
                    jiff::Timestamp::UNIX_EPOCH,
                );
                pod.metadata.deletion_timestamp = Some(at);
            }
            let got = endpoint_of(&service, &pod);
            let is_ready = got.as_ref().map(|it| it.endpoint.conditions.as_ref().unwrap().ready);
            assert_eq!(is_ready.flatten(), want, "{ready} {is_deleted} {publishes} {phase}");
            if let Some(got) = got {
                assert_eq!(got.endpoint.hostname.as_deref(), Some("p-0"));
                assert_eq!(got.ports, [("web".to_owned(), "TCP".to_owned(), 8080, None)]);
            }
        }
    }
}
