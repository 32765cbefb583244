//! Whether a ClusterQueue can admit anybody, and why not.

use lockstep_api::{kueue::ClusterQueue, reasons::kueue::queue as reasons};

use super::{Stop, flavors::Flavors, pool::Pool};

/// Whether a ClusterQueue can admit anybody, as its condition `Active` says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Activity {
    pub reason: &'static str,
    pub message: String,
}

impl Activity {
    /// What is true of a ClusterQueue.
    pub(super) fn of(queue: &ClusterQueue, pool: &Pool, flavors: &Flavors) -> Self {
        if queue.metadata.deletion_timestamp.is_some() {
            let message = "Can't admit new workloads; clusterQueue is terminating".to_owned();
            return Self { reason: reasons::TERMINATING, message };
        }
        let mut causes: Vec<(&'static str, String)> = Vec::new();
        if pool.stop != Stop::No {
            causes.push((reasons::STOPPED, "is stopped".to_owned()));
        }
        let missing = pool.flavors().filter(|name| !flavors.contains_key(&***name));
        let missing: Vec<&str> = missing.map(|name| &**name).collect();
        if !missing.is_empty() {
            let text = format!("references missing ResourceFlavor(s): {}", missing.join(","));
            causes.push((reasons::FLAVOR_NOT_FOUND, text));
        }
        for wrong in &pool.invalid {
            causes.push((reasons::INVALID, format!("{wrong} is invalid")));
        }
        let with_topology = pool.flavors().filter(|name| {
            let flavor = flavors.get(&***name);
            flavor.is_some_and(|it| it.spec.topology_name.as_ref().is_some_and(|it| !it.is_empty()))
        });
        let topologies = with_topology.map(|name| format!("topologyName of ResourceFlavor {name}"));
        let unsupported = pool.unsupported.iter().cloned().chain(topologies);
        for what in unsupported {
            causes.push((reasons::NOT_IMPLEMENTED, format!("{what} is not implemented yet")));
        }
        match causes.first() {
            None => Self { reason: reasons::READY, message: "Can admit new workloads".to_owned() },
            Some((reason, _)) => {
                let all: Vec<&str> = causes.iter().map(|(_, text)| text.as_str()).collect();
                let message = format!("Can't admit new workloads: {}.", all.join(", "));
                Self { reason, message }
            }
        }
    }

    /// Whether it can.
    pub(super) fn is_active(&self) -> bool {
        self.reason == reasons::READY
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::{super::Settings, *};

    // rule: queueing 1.4.3
    #[test]
    fn the_first_cause_is_the_reason_and_all_are_told() {
        let flavor = |name: &str, spec: Value| {
            let object = json!({"metadata": {"name": name}, "spec": spec});
            (name.to_owned(), Arc::new(serde_json::from_value(object).unwrap()))
        };
        let flavors = Flavors::from([
            flavor("there", json!({})),
            flavor("placed", json!({"nodeLabels": {"a": "b"}, "topologyName": "t"})),
        ]);
        let with = |names: &[&str]| {
            let list: Vec<Value> =
                names.iter().map(|name| json!({"name": name, "resources": []})).collect();
            json!([{"coveredResources": [], "flavors": list}])
        };
        let settings = Settings { fair_sharing: true, ..Settings::default() };
        let cases = [
            (json!({"resourceGroups": with(&["there"])}), "Ready", "Can admit new workloads"),
            (json!({"stopPolicy": "Hold"}), "Stopped", "Can't admit new workloads: is stopped."),
            (
                json!({"resourceGroups": with(&["a", "there", "b"])}),
                "FlavorNotFound",
                "Can't admit new workloads: references missing ResourceFlavor(s): a,b.",
            ),
            (
                json!({"stopPolicy": "HoldAndDrain", "resourceGroups": with(&["a"])}),
                "Stopped",
                "Can't admit new workloads: is stopped, references missing ResourceFlavor(s): a.",
            ),
            (
                json!({"fairSharing": {"weight": "1"}}),
                "NotImplemented",
                "Can't admit new workloads: fairSharing is not implemented yet.",
            ),
            (
                json!({"resourceGroups": with(&["placed"])}),
                "NotImplemented",
                "Can't admit new workloads: topologyName of ResourceFlavor placed is not \
                 implemented yet.",
            ),
        ];
        for (spec, reason, message) in cases {
            let queue: ClusterQueue = serde_json::from_value(json!({"spec": spec})).unwrap();
            let got = Activity::of(&queue, &Pool::of(&queue, &settings), &flavors);
            assert_eq!((got.reason, got.message.as_str()), (reason, message));
        }
        let queue: ClusterQueue = serde_json::from_value(json!({
            "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"stopPolicy": "Hold"}}))
        .unwrap();
        let got = Activity::of(&queue, &Pool::of(&queue, &settings), &flavors);
        assert_eq!(got.reason, "Terminating");
        assert_eq!(got.message, "Can't admit new workloads; clusterQueue is terminating");
    }
}
