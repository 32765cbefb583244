//! Exclusive placement of the Jobs of a JobSet: one Job for each domain of a topology, and all pods
//! of a Job in its domain.
//!
//! The first pod of a Job leads: it looks for a domain that no other Job of its priority has, by
//! affinity. The others follow: they are let in when the leader has a node, and go where it went.
//! When a leader has moved, those that followed it elsewhere are sent away ([`astray`]).
//!
//! Sets that leave this to labels of nodes (annotation `node-selector`) are not touched.

mod amend;
mod leader;
mod repair;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod};
use lockstep_api::labels::jobset as keys;

pub use amend::Amendment;
pub use leader::is_leader;
pub use repair::{astray, disrupted};

/// What has to be looked up to let a pod in.
pub trait Surroundings {
    /// The pods of the same namespace whose names begin like this.
    fn pods_named(&self, beginning: &str) -> Vec<Pod>;
    /// The node of this name.
    fn node(&self, name: &str) -> Option<Node>;
}

/// Why a new pod is not let in, and by which of the two webhooks of JobSet it would not be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("admission webhook \"{webhook}\" denied the request: {why}")]
pub struct Denial {
    webhook: &'static str,
    why: String,
}

/// What is changed of a new pod, or why it is not let in. A pod that is none of a JobSet's is not
/// changed.
///
/// # Errors
/// Mostly that the leader has no node so far: whoever creates pods tries again.
pub fn admit(pod: &Pod, around: &impl Surroundings) -> Result<Amendment, Denial> {
    let mut amendment = Amendment::default();
    if annotation(pod, keys::JOBSET_NAME).is_none()
        || annotation(pod, keys::NODE_SELECTOR).is_some()
    {
        return Ok(amendment);
    }
    amendment.priority = pod.spec.as_ref().and_then(|spec| spec.priority);
    let Some(topology) = annotation(pod, keys::EXCLUSIVE_TOPOLOGY) else { return Ok(amendment) };
    let deny = |webhook| move |why| Denial { webhook, why };
    if is_leader(pod) {
        amendment.keep_to_itself(pod, topology).map_err(deny("mpod.kb.io"))?;
        return Ok(amendment);
    }
    let denied = deny("vpod.kb.io");
    let leader = leader::find(pod, around).map_err(&denied)?;
    let node = leader.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    let Some(node) = node.filter(|name| !name.is_empty()) else {
        return Err(denied(
            "leader pod not yet scheduled, not creating follower pod. this is an expected, \
             transient error"
                .to_owned(),
        ));
    };
    let domain = around.node(node).and_then(|node| domain(&node, topology)).ok_or_else(|| {
        deny("mpod.kb.io")(format!("node does not have topology label: {topology}"))
    })?;
    amendment.node_selector = Some((topology.to_owned(), domain));
    Ok(amendment)
}

/// The domain a node is in.
pub fn domain(node: &Node, topology: &str) -> Option<String> {
    node.metadata.labels.as_ref()?.get(topology).cloned()
}

/// The topology a pod is kept to one domain of, if it is by affinity.
pub fn topology(pod: &Pod) -> Option<&str> {
    let is_by_selector = annotation(pod, keys::NODE_SELECTOR).is_some();
    annotation(pod, keys::EXCLUSIVE_TOPOLOGY).filter(|_| !is_by_selector)
}

fn annotation<'a>(pod: &'a Pod, key: &str) -> Option<&'a str> {
    text(pod.metadata.annotations.as_ref(), key)
}

fn label<'a>(pod: &'a Pod, key: &str) -> Result<&'a str, String> {
    let found = text(pod.metadata.labels.as_ref(), key);
    found.ok_or_else(|| format!("pod missing label: {key}"))
}

fn text<'a>(all: Option<&'a BTreeMap<String, String>>, key: &str) -> Option<&'a str> {
    all?.get(key).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    struct Around(Vec<Pod>, Option<Node>);

    impl Surroundings for Around {
        fn pods_named(&self, beginning: &str) -> Vec<Pod> {
            let named = |pod: &&Pod| pod.metadata.name.as_ref().unwrap().starts_with(beginning);
            self.0.iter().filter(named).cloned().collect()
        }

        fn node(&self, _: &str) -> Option<Node> {
            self.1.clone()
        }
    }

    /// Pod `index` of the Job `js-w-0`, exclusive in racks.
    fn pod(index: u32, more: Value) -> Pod {
        let mut pod = json!({"metadata": {
            "name": format!("js-w-0-{index}-abcde"),
            "labels": {keys::JOBSET_NAME: "js", keys::REPLICATED_JOB_NAME: "w", keys::JOB_INDEX: "0",
                       keys::JOB_KEY: "key"},
            "annotations": {keys::JOBSET_NAME: "js", keys::EXCLUSIVE_TOPOLOGY: "rack",
                            "batch.kubernetes.io/job-completion-index": index.to_string()},
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "js-w-0",
                                 "uid": "job", "controller": true}],
        }, "spec": {"containers": []}});
        lockstep_merge(&mut pod, &more);
        serde_json::from_value(pod).unwrap()
    }

    fn lockstep_merge(value: &mut Value, more: &Value) {
        match more.as_object() {
            Some(members) => {
                members.iter().for_each(|(key, more)| lockstep_merge(&mut value[key], more));
            }
            None => *value = more.clone(),
        }
    }

    fn node(labels: Value) -> Option<Node> {
        Some(serde_json::from_value(json!({"metadata": {"name": "n", "labels": labels}})).unwrap())
    }

    fn amended(pod: &Pod, around: &Around) -> Result<Value, String> {
        let mut object = serde_json::to_value(pod).unwrap().as_object().unwrap().clone();
        admit(pod, around).map_err(|denial| denial.to_string())?.apply(&mut object);
        Ok(Value::Object(object))
    }

    // rule: jobset 3.16, jobset 2.4
    #[test]
    fn the_leader_keeps_to_a_domain_of_its_own() {
        let leader = pod(0, json!({"spec": {"priority": 7}}));
        let object = amended(&leader, &Around(vec![], None)).unwrap();
        assert_eq!(object["metadata"]["labels"][keys::PRIORITY], "7");
        let term = |expressions: Value| {
            json!([{"labelSelector": {"matchExpressions": expressions}, "namespaceSelector": {},
                    "topologyKey": "rack"}])
        };
        let own = json!([{"key": keys::JOB_KEY, "operator": "In", "values": ["key"]}]);
        let others = json!([
            {"key": keys::JOB_KEY, "operator": "Exists"},
            {"key": keys::JOB_KEY, "operator": "NotIn", "values": ["key"]},
            {"key": keys::PRIORITY, "operator": "In", "values": ["7"]},
        ]);
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        let affinity = &object["spec"]["affinity"];
        assert_eq!(affinity["podAffinity"][required], term(own));
        assert_eq!(affinity["podAntiAffinity"][required], term(others));
    }

    // rule: jobset Q20
    #[test]
    fn a_leader_without_a_priority_asks_for_the_empty_one() {
        let object = amended(&pod(0, json!({})), &Around(vec![], None)).unwrap();
        assert_eq!(object["metadata"]["labels"].get("jobset.sigs.k8s.io/priority"), None);
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        let terms = &object["spec"]["affinity"]["podAntiAffinity"][required];
        let expressions = &terms[0]["labelSelector"]["matchExpressions"];
        let want = json!({"key": "jobset.sigs.k8s.io/priority", "operator": "In", "values": [""]});
        assert_eq!(expressions[2], want);
    }

    // rule: jobset 3.16
    #[test]
    fn followers_go_where_the_leader_went() {
        let leader = |more| pod(0, more);
        let placed = json!({"spec": {"nodeName": "n"}});
        let rack = || node(json!({"rack": "r1"}));
        let cases = [
            (vec![leader(placed.clone())], rack(), Ok("r1")),
            (
                vec![],
                rack(),
                Err(
                    "expected 1 leader pod (js-w-0-0), but got 0. this is an expected, transient error",
                ),
            ),
            (
                vec![
                    leader(placed.clone()),
                    pod(0, json!({"metadata": {"name": "js-w-0-0-fghij"}})),
                ],
                rack(),
                Err("but got 2."),
            ),
            (vec![leader(json!({"status": {"phase": "Failed"}}))], rack(), Err("but got 0.")),
            (
                vec![leader(json!({}))],
                rack(),
                Err(
                    "leader pod not yet scheduled, not creating follower pod. this is an expected, transient error",
                ),
            ),
            (
                vec![leader(placed.clone())],
                node(json!({})),
                Err("node does not have topology label: rack"),
            ),
            (
                vec![leader(json!({"metadata": {"ownerReferences": [{"apiVersion": "batch/v1",
                "kind": "Job", "name": "js-w-0", "uid": "old", "controller": true}]},
                "spec": {"nodeName": "n"}}))],
                rack(),
                Err("follower pod owner UID (job) != leader pod owner UID (old)"),
            ),
        ];
        for (pods, node, wanted) in cases {
            let answer = amended(&pod(1, json!({})), &Around(pods, node));
            match wanted {
                Ok(domain) => {
                    assert_eq!(answer.unwrap()["spec"]["nodeSelector"]["rack"], domain);
                }
                Err(why) => {
                    let error = answer.unwrap_err();
                    assert!(error.contains(why), "{error}");
                    assert!(error.starts_with("admission webhook"), "{error}");
                }
            }
        }
    }

    #[test]
    fn other_pods_are_let_in_as_they_are() {
        let by_selector = json!({"metadata": {"annotations": {keys::NODE_SELECTOR: "true"}}});
        let mut plain = pod(1, json!({"spec": {"priority": 1}}));
        plain.metadata.annotations = None;
        for pod in [pod(1, by_selector), plain] {
            let object = amended(&pod, &Around(vec![], None)).unwrap();
            assert_eq!(object, serde_json::to_value(&pod).unwrap());
        }
    }
}
