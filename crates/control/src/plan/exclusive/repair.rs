//! Followers that are not where their leader is.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};

use super::{domain, is_leader, leader::owner, topology};

/// The followers of a leader that have to go: all of them when one was sent to another domain than
/// the leader's. `others` are the pods with the leader's job key.
///
/// # Errors
/// When the node of the leader is not known: it has to be looked at again.
pub fn astray<'a>(
    leader: &Pod,
    node: Option<&Node>,
    others: impl Iterator<Item = &'a Pod>,
) -> Result<Vec<&'a Pod>, String> {
    let is_placed = leader.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
    let is_going = leader.metadata.deletion_timestamp.is_some();
    let (Some(topology), Some(job)) = (topology(leader), owner(leader)) else {
        return Ok(Vec::new());
    };
    if !is_leader(leader) || !is_placed || is_going {
        return Ok(Vec::new());
    }
    let followers: Vec<&Pod> = others
        .filter(|pod| !is_leader(pod) && owner(pod).is_some_and(|owner| owner.uid == job.uid))
        .collect();
    let wanted = node.and_then(|node| domain(node, topology)).unwrap_or_default();
    let is_right = |pod: &&Pod| {
        let selector = pod.spec.as_ref().and_then(|spec| spec.node_selector.as_ref());
        selector.and_then(|selector| selector.get(topology)) == Some(&wanted)
    };
    if followers.iter().all(is_right) {
        return Ok(Vec::new());
    }
    if node.is_none() {
        return Err("leader topology is unknown (node not found)".to_owned());
    }
    Ok(followers)
}

/// The patch of a pod's status that says why it is sent away, so that its end is nobody's failure;
/// nothing if it is said already.
pub fn disrupted(pod: &Pod, now: Timestamp) -> Option<Value> {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    if conditions.into_iter().any(|one| one.type_ == "DisruptionTarget") {
        return None;
    }
    Some(json!({
        "metadata": {"uid": pod.metadata.uid},
        "status": {"conditions": [{
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "ExclusivePlacementViolation",
            "message": "Pod violated JobSet exclusive placement policy",
            "lastTransitionTime": format!("{now:.0}"),
        }]},
    }))
}

#[cfg(test)]
mod tests {
    use lockstep_api::labels::jobset as keys;

    use super::*;

    fn pod(index: u32, owner: &str, spec: Value) -> Pod {
        let pod = json!({"metadata": {
            "name": format!("p{index}"),
            "annotations": {keys::EXCLUSIVE_TOPOLOGY: "rack",
                            "batch.kubernetes.io/job-completion-index": index.to_string()},
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": owner,
                                 "controller": true}],
        }, "spec": spec});
        serde_json::from_value(pod).unwrap()
    }

    // rule: jobset 3.16
    #[test]
    fn all_followers_go_when_one_is_elsewhere() {
        let node: Node =
            serde_json::from_value(json!({"metadata": {"labels": {"rack": "r2"}}})).unwrap();
        let leader = pod(0, "job", json!({"nodeName": "n", "containers": []}));
        let at = |rack: &str| json!({"nodeSelector": {"rack": rack}, "containers": []});
        let right = [leader.clone(), pod(1, "job", at("r2")), pod(2, "other", at("r1"))];
        assert_eq!(astray(&leader, Some(&node), right.iter()), Ok(vec![]));
        let wrong = [pod(1, "job", at("r2")), pod(2, "job", at("r1"))];
        assert_eq!(astray(&leader, Some(&node), wrong.iter()).unwrap().len(), 2);
        assert!(astray(&leader, None, wrong.iter()).unwrap_err().contains("is unknown"));
        let unplaced = pod(0, "job", json!({"containers": []}));
        assert_eq!(astray(&unplaced, Some(&node), wrong.iter()), Ok(vec![]));
    }

    #[test]
    fn that_it_is_sent_away_is_said_once() {
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        let mut pod = pod(1, "job", json!({"containers": []}));
        let patch = disrupted(&pod, now).unwrap();
        let condition = &patch["status"]["conditions"][0];
        assert_eq!(condition["lastTransitionTime"], "2026-11-15T12:00:00Z");
        pod.status = serde_json::from_value(patch["status"].clone()).unwrap();
        assert_eq!(disrupted(&pod, now), None);
    }
}
