//! The writes that follow; each says whether it is done or has to be tried again.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tracing::{info, warn};

use super::decide::is_over;
use crate::recorder::{Note, Recorder, pod_reference};

/// Writes the conditions of a node.
pub(super) async fn conditions(client: &Client, node: &Node) -> bool {
    let api: Api<Node> = Api::all(client.clone());
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let patch = Patch::Strategic(json!({"status": {"conditions": conditions}}));
    let outcome = api.patch_status(&node.name_any(), &PatchParams::default(), &patch).await;
    is_done("node status", &node.name_any(), outcome.map(drop))
}

/// Writes the taints of a node, unless it has changed meanwhile.
pub(super) async fn taints(client: &Client, node: &Node, taints: Vec<Taint>) -> bool {
    let api: Api<Node> = Api::all(client.clone());
    // The list is replaced as a whole. Should somebody else change it at the same time, the watch
    // shows
    // the outcome and it is looked at again.
    let patch = Patch::Merge(json!({"spec": {"taints": taints}}));
    let outcome = api.patch(&node.name_any(), &PatchParams::default(), &patch).await;
    is_done("node taints", &node.name_any(), outcome.map(drop))
}

/// Says that a pod on a lost node is not ready.
pub(super) async fn not_ready(client: &Client, pod: &Pod, now: Timestamp) {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref());
    let mut conditions = conditions.unwrap_or_default().iter();
    let is_ready = conditions.any(|it| it.type_ == "Ready" && it.status == "True");
    if is_ready && !is_over(pod) {
        let patch = json!({"status": {"conditions": [
            {"type": "Ready", "status": "False", "lastTransitionTime": Time(now)}]}});
        patch_status(client, pod, patch).await;
    }
}

/// Marks a pod and deletes it because of a taint of its node.
pub(super) async fn evict(client: &Client, recorder: &Recorder, pod: &Pod, now: Timestamp) -> bool {
    let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
    info!(pod = %name, %namespace, "evicting pod from tainted node");
    recorder.record(Note {
        regarding: pod_reference(pod, None),
        is_warning: false,
        reason: "TaintManagerEviction".to_owned(),
        message: format!("Marking for deletion Pod {namespace}/{name}"),
    });
    let message = "Taint manager: deleting due to NoExecute taint";
    let condition = disruption(pod, "DeletionByTaintManager", message, now);
    let patch = json!({"status": {"conditions": [condition]}});
    patch_status(client, pod, patch).await && delete(client, pod, None).await
}

/// Makes a pod fail whose node no longer exists, and removes it.
pub(super) async fn collect(client: &Client, pod: &Pod, now: Timestamp) -> bool {
    info!(pod = %pod.name_any(), "collecting pod of a node that no longer exists");
    if !is_over(pod) {
        let condition = disruption(pod, "DeletionByPodGC", "PodGC: node no longer exists", now);
        let patch = json!({"status": {"phase": "Failed", "conditions": [condition]}});
        if !patch_status(client, pod, patch).await {
            return false;
        }
    }
    delete(client, pod, Some(0)).await
}

fn disruption(pod: &Pod, reason: &str, message: &str, now: Timestamp) -> Value {
    json!({
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "message": message,
        "observedGeneration": pod.metadata.generation,
        "lastTransitionTime": Time(now),
    })
}

async fn patch_status(client: &Client, pod: &Pod, mut patch: Value) -> bool {
    let api: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
    patch["metadata"] = json!({"uid": pod.metadata.uid});
    let patch = Patch::Strategic(patch);
    let outcome = api.patch_status(&pod.name_any(), &PatchParams::default(), &patch).await;
    is_done("pod status", &pod.name_any(), outcome.map(drop))
}

async fn delete(client: &Client, pod: &Pod, grace: Option<u32>) -> bool {
    let api: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
    let params = DeleteParams {
        grace_period_seconds: grace,
        preconditions: Some(Preconditions { uid: pod.uid(), resource_version: None }),
        ..DeleteParams::default()
    };
    let outcome = api.delete(&pod.name_any(), &params).await;
    is_done("pod", &pod.name_any(), outcome.map(drop))
}

/// Whether there is nothing more to do: written, or the object is gone or another one by now.
fn is_done(what: &str, name: &str, outcome: kube::Result<()>) -> bool {
    match outcome {
        Ok(()) => true,
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => true,
        Err(error) => {
            warn!(what, name, %error, "write failed, trying again");
            false
        }
    }
}
