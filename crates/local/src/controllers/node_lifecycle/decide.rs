//! What follows from the state of a node, without IO.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, NodeCondition, Pod, Taint, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use lockstep_control::plan::place::tolerates;

const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// Whether the node says that it may have pods that must leave.
pub(super) fn evicts(node: &Node) -> bool {
    taints_of(node).iter().any(|taint| taint.effect == "NoExecute")
}

/// The node with all conditions unknown, or `None` if it already says so.
pub(super) fn lost(node: &Node, now: Timestamp) -> Option<Node> {
    if is_unknown(node) {
        return None;
    }
    let kinds = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];
    let message = "Kubelet stopped posting node status.";
    Some(with_conditions(node, now, &kinds, "Unknown", "NodeStatusUnknown", message))
}

/// The node ready again: for fake nodes, which have nobody to say so.
pub(super) fn ready_again(node: &Node, now: Timestamp) -> Option<Node> {
    let message = "kubelet is posting ready status";
    Some(with_conditions(node, now, &["Ready"], "True", "KubeletReady", message))
}

/// When the node itself last said how it is.
pub(super) fn reported_at(node: &Node) -> Option<Timestamp> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    let ready = conditions.iter().find(|it| it.type_ == "Ready")?;
    ready.last_heartbeat_time.as_ref().map(|time| time.0)
}

/// Whether nobody knows how the node is.
pub(super) fn is_unknown(node: &Node) -> bool {
    ready_status(node) == Some("Unknown")
}

/// The taints the node should have, or `None` if it has them. Taints of others stay.
pub(super) fn taints(node: &Node, now: Timestamp) -> Option<Vec<Taint>> {
    let status = ready_status(node);
    let is_cordoned = node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true));
    let wanted: Vec<(&str, &str)> = [
        (status == Some("Unknown"), UNREACHABLE, "NoSchedule"),
        (status == Some("Unknown"), UNREACHABLE, "NoExecute"),
        (status == Some("False"), NOT_READY, "NoSchedule"),
        (status == Some("False"), NOT_READY, "NoExecute"),
        (is_cordoned, UNSCHEDULABLE, "NoSchedule"),
    ]
    .into_iter()
    .filter_map(|(is_wanted, key, effect)| is_wanted.then_some((key, effect)))
    .collect();
    let is_ours = |taint: &Taint| [UNREACHABLE, NOT_READY, UNSCHEDULABLE].contains(&&*taint.key);
    let is_wanted = |taint: &Taint| wanted.contains(&(&*taint.key, &*taint.effect));
    let old = taints_of(node);
    let mut new: Vec<Taint> =
        old.iter().filter(|taint| !is_ours(taint) || is_wanted(taint)).cloned().collect();
    for (key, effect) in &wanted {
        if !new.iter().any(|taint| taint.key == *key && taint.effect == *effect) {
            new.push(Taint {
                key: (*key).to_owned(),
                effect: (*effect).to_owned(),
                time_added: Some(Time(now)),
                value: None,
            });
        }
    }
    (new != old).then_some(new)
}

/// When the pod must leave its node because of taints; `None` when it may stay.
pub(super) fn eviction(pod: &Pod, node: &Node) -> Option<Timestamp> {
    let spec = pod.spec.as_ref()?;
    if pod.metadata.deletion_timestamp.is_some() || is_over(pod) {
        return None;
    }
    let tolerations = spec.tolerations.as_deref().unwrap_or_default();
    let hard = taints_of(node).iter().filter(|taint| taint.effect == "NoExecute");
    let mut earliest: Option<Timestamp> = None;
    for taint in hard {
        let added = taint.time_added.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0);
        let at = if tolerates(tolerations, taint) {
            let bearing = |it: &&Toleration| tolerates(std::slice::from_ref(*it), taint);
            let seconds: Option<Vec<i64>> =
                tolerations.iter().filter(bearing).map(|it| it.toleration_seconds).collect();
            // One toleration without a limit is enough to stay; of several limits the least counts.
            let Some(least) = seconds.and_then(|all| all.into_iter().min()) else { continue };
            let wait = Duration::from_secs(u64::try_from(least).unwrap_or(0));
            added.checked_add(wait).unwrap_or(Timestamp::MAX)
        } else {
            added
        };
        earliest = Some(earliest.map_or(at, |other| other.min(at)));
    }
    earliest
}

/// Whether the pod has ended.
pub(super) fn is_over(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

fn taints_of(node: &Node) -> &[Taint] {
    node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default()
}

fn ready_status(node: &Node) -> Option<&str> {
    let conditions = node.status.as_ref()?.conditions.as_deref()?;
    conditions.iter().find(|it| it.type_ == "Ready").map(|it| it.status.as_str())
}

fn with_conditions(
    node: &Node,
    now: Timestamp,
    kinds: &[&str],
    status: &str,
    reason: &str,
    message: &str,
) -> Node {
    let mut node = node.clone();
    let conditions = node.status.get_or_insert_default().conditions.get_or_insert_default();
    for kind in kinds {
        let place = conditions.iter().position(|it| it.type_ == *kind);
        let old = place.map(|place| conditions[place].clone());
        let condition = NodeCondition {
            type_: (*kind).to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_transition_time: Some(Time(now)),
            last_heartbeat_time: old.and_then(|old| old.last_heartbeat_time),
        };
        match place {
            Some(place) => conditions[place] = condition,
            None => conditions.push(condition),
        }
    }
    node
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn node(ready: &str, spec: Value) -> Node {
        serde_json::from_value(json!({
            "metadata": {"name": "n"},
            "spec": spec,
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        }))
        .unwrap()
    }

    #[test]
    fn taints_follow_from_readiness_and_cordon() {
        let cases: [(&str, Value, Option<&[&str]>); 6] = [
            ("True", json!({}), None),
            ("Unknown", json!({}), Some(&["unreachable:NoSchedule", "unreachable:NoExecute"])),
            ("False", json!({}), Some(&["not-ready:NoSchedule", "not-ready:NoExecute"])),
            ("True", json!({"unschedulable": true}), Some(&["unschedulable:NoSchedule"])),
            (
                "True",
                json!({"taints": [{"key": "node.kubernetes.io/unreachable",
                    "effect": "NoExecute"}]}),
                Some(&[]),
            ),
            (
                "True",
                json!({"taints": [{"key": "node.kubernetes.io/other", "effect": "NoExecute"}]}),
                None,
            ),
        ];
        for (ready, spec, want) in cases {
            let got = taints(&node(ready, spec.clone()), at(0)).map(|all| -> Vec<String> {
                let short = |taint: &Taint| {
                    let key = taint.key.trim_start_matches("node.kubernetes.io/");
                    format!("{key}:{}", taint.effect)
                };
                all.iter().map(short).collect()
            });
            let want = want.map(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>());
            assert_eq!(got, want, "{ready} {spec}");
        }
    }

    #[test]
    fn a_lost_node_is_marked_once() {
        let marked = lost(&node("True", json!({})), at(5)).unwrap();
        assert!(is_unknown(&marked));
        assert_eq!(lost(&marked, at(6)), None);
        let tainted = Node {
            spec: Some(k8s_openapi::api::core::v1::NodeSpec {
                taints: taints(&marked, at(5)),
                ..Default::default()
            }),
            ..marked
        };
        assert_eq!(taints(&tainted, at(9)), None, "nothing is left to do");
    }

    #[test]
    fn pods_leave_when_their_tolerations_run_out() {
        let tainted = node(
            "Unknown",
            json!({"taints": [{"key": "k", "effect": "NoExecute",
                "timeAdded": "1970-01-01T00:01:40Z"}]}),
        );
        let cases = [
            ("no toleration", json!([]), Some(at(100))),
            ("for ever", json!([{"key": "k", "operator": "Exists"}]), None),
            (
                "for a while",
                json!([{"key": "k", "operator": "Exists", "tolerationSeconds": 30}]),
                Some(at(130)),
            ),
            (
                "the least",
                json!([{"operator": "Exists", "tolerationSeconds": 30},
                       {"key": "k", "operator": "Exists", "tolerationSeconds": 10}]),
                Some(at(110)),
            ),
        ];
        for (name, tolerations, want) in cases {
            let pod: Pod = serde_json::from_value(json!({
                "spec": {"containers": [], "tolerations": tolerations}}))
            .unwrap();
            assert_eq!(eviction(&pod, &tainted), want, "{name}");
            assert_eq!(eviction(&pod, &node("True", json!({}))), None, "{name}");
        }
    }
}
