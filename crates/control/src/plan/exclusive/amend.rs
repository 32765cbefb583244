//! What is changed of a new pod.

use k8s_openapi::api::core::v1::Pod;
use lockstep_api::{labels::jobset as keys, strategy::Json};
use serde_json::{Value, json};

use super::label;

/// What is changed of a new pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Amendment {
    /// Its priority, to be put on it as a label.
    pub(super) priority: Option<i32>,
    /// A label of the nodes it may go to.
    pub(super) node_selector: Option<(String, String)>,
    /// Terms of its affinity, and of its anti-affinity.
    terms: Option<(Value, Value)>,
}

impl Amendment {
    /// Makes a leader look for a domain that no other Job of its priority has.
    pub(super) fn keep_to_itself(&mut self, pod: &Pod, topology: &str) -> Result<(), String> {
        let key = label(pod, keys::JOB_KEY)?;
        // A pod without a priority has no such label either, and no value stands for that.
        let priority = self.priority.map(|priority| priority.to_string()).unwrap_or_default();
        let term = |expressions: Value| {
            json!({
                "labelSelector": {"matchExpressions": expressions},
                "namespaceSelector": {},
                "topologyKey": topology,
            })
        };
        let own = json!([{"key": keys::JOB_KEY, "operator": "In", "values": [key]}]);
        let others = json!([
            {"key": keys::JOB_KEY, "operator": "Exists"},
            {"key": keys::JOB_KEY, "operator": "NotIn", "values": [key]},
            {"key": keys::PRIORITY, "operator": "In", "values": [priority]},
        ]);
        self.terms = Some((term(own), term(others)));
        Ok(())
    }

    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Changes a pod. What is there already stays.
    pub fn apply(&self, pod: &mut Json) {
        if let Some(priority) = self.priority {
            part(pod, "metadata")["labels"][keys::PRIORITY] = priority.to_string().into();
        }
        let spec = part(pod, "spec");
        if let Some((key, value)) = &self.node_selector {
            spec["nodeSelector"][key.as_str()] = value.clone().into();
        }
        let Some((own, others)) = &self.terms else { return };
        for (kind, term) in [("podAffinity", own), ("podAntiAffinity", others)] {
            let all = &mut spec["affinity"][kind];
            let required = &mut all["requiredDuringSchedulingIgnoredDuringExecution"];
            match required.as_array_mut() {
                Some(terms) => terms.push(term.clone()),
                None => *required = json!([term]),
            }
        }
    }
}

fn part<'a>(pod: &'a mut Json, name: &str) -> &'a mut Value {
    pod.entry(name).or_insert_with(|| json!({}))
}
