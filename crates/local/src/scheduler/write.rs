//! The writes that follow from placements.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Binding, ObjectReference, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client};
use lockstep_control::plan::place::Victim;
use serde_json::{Value, json};
use tracing::warn;

use super::{Message, Scheduler};
use crate::observe::ObjectKey;
use crate::recorder::{Note, pod_reference};

impl Scheduler {
    /// Writes that the pod goes to `node`.
    pub(super) async fn bind(&mut self, uid: &str, node: String) {
        let Some(pending) = self.pending.get(uid) else { return };
        let pod = pending.pod.clone();
        let key = ObjectKey::of(&*pod);
        let Ok(permit) = self.permits.clone().acquire_owned().await else { return };
        let (client, teller, recorder) =
            (self.client.clone(), self.teller.clone(), self.recorder.clone());
        tokio::spawn(async move {
            let outcome = post_binding(&client, &key, &node).await;
            drop(permit);
            match outcome {
                Ok(()) => {
                    let (namespace, name) = (&key.namespace, &key.name);
                    recorder.record(Note {
                        regarding: pod_reference(&pod, None),
                        is_warning: false,
                        reason: "Scheduled".to_owned(),
                        message: format!("Successfully assigned {namespace}/{name} to {node}"),
                    });
                }
                Err(error) => {
                    let is_gone = matches!(&error, kube::Error::Api(status)
                        if status.code == 404);
                    warn!(pod = %key.name, %node, %error, "binding failed");
                    teller.tell(Message::BindFailed { uid: key.uid, is_gone }).await;
                }
            }
        });
    }

    /// Says that the pod fits nowhere, unless it says so already.
    pub(super) async fn tell_unschedulable(
        &mut self,
        uid: &str,
        message: &str,
        nominated: Option<&str>,
    ) {
        let Some(pending) = self.pending.get_mut(uid) else { return };
        // What was said last counts, whether or not the watch has shown it yet.
        let is_known = match &pending.told {
            Some(told) => told == message,
            None => says(&pending.pod, "Unschedulable", message),
        };
        let status = pending.pod.status.as_ref();
        let known_node = status.and_then(|status| status.nominated_node_name.as_deref());
        if is_known && (nominated.is_none() || nominated == known_node) {
            return;
        }
        pending.told = Some(message.to_owned());
        let pod = pending.pod.clone();
        self.note(&pod, true, "FailedScheduling", message.to_owned());
        let patch = unscheduled_patch(&pod, "Unschedulable", message, nominated);
        let Ok(permit) = self.permits.clone().acquire_owned().await else { return };
        let (client, key) = (self.client.clone(), ObjectKey::of(&*pod));
        tokio::spawn(async move {
            patch_status(&client, &key, patch).await;
            drop(permit);
        });
    }

    /// Makes the victims leave and keeps the node for the pod.
    pub(super) async fn preempt(
        &mut self,
        uid: &str,
        node: String,
        victims: Vec<Victim>,
        message: String,
    ) {
        self.tell_unschedulable(uid, &message, Some(&node)).await;
        let Ok(permit) = self.permits.clone().acquire_owned().await else { return };
        let (client, recorder, by) = (self.client.clone(), self.recorder.clone(), uid.to_owned());
        tokio::spawn(async move {
            for victim in victims {
                evict(&client, &victim).await;
                recorder.record(Note {
                    regarding: victim_reference(&victim),
                    is_warning: false,
                    reason: "Preempted".to_owned(),
                    message: format!("Preempted by pod {by} on node {node}"),
                });
            }
            drop(permit);
        });
    }
}

fn victim_reference(victim: &Victim) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        name: Some(victim.name.clone()),
        namespace: Some(victim.namespace.clone()),
        uid: Some(victim.uid.clone()),
        ..ObjectReference::default()
    }
}

/// Whether the pod already carries this condition.
pub(super) fn says(pod: &Pod, reason: &str, message: &str) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref());
    conditions.unwrap_or_default().iter().any(|condition| {
        condition.type_ == "PodScheduled"
            && condition.reason.as_deref() == Some(reason)
            && condition.message.as_deref() == Some(message)
    })
}

/// A patch that says why the pod is not scheduled.
pub(super) fn unscheduled_patch(
    pod: &Pod,
    reason: &str,
    message: &str,
    nominated: Option<&str>,
) -> Value {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref());
    let since = conditions
        .unwrap_or_default()
        .iter()
        .find(|condition| condition.type_ == "PodScheduled" && condition.status == "False")
        .and_then(|condition| condition.last_transition_time.clone())
        .unwrap_or_else(|| Time(Timestamp::now()));
    let mut patch = json!({
        "metadata": {"uid": pod.metadata.uid},
        "status": {"conditions": [{
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": message,
            "observedGeneration": pod.metadata.generation,
            "lastTransitionTime": since,
        }]},
    });
    if let Some(node) = nominated {
        patch["status"]["nominatedNodeName"] = json!(node);
    }
    patch
}

/// Patches the status of a pod; what cannot be written now is written with the next try.
pub(super) async fn patch_status(client: &Client, key: &ObjectKey, patch: Value) {
    let api: Api<Pod> = Api::namespaced(client.clone(), &key.namespace);
    let params = PatchParams::default();
    match api.patch_status(&key.name, &params, &Patch::Strategic(patch)).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
        Err(error) => warn!(pod = %key.name, %error, "status not written"),
    }
}

async fn post_binding(client: &Client, key: &ObjectKey, node: &str) -> kube::Result<()> {
    let binding = Binding {
        metadata: ObjectMeta {
            name: Some(key.name.clone()),
            namespace: Some(key.namespace.clone()),
            uid: Some(key.uid.clone()),
            ..ObjectMeta::default()
        },
        target: ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Node".to_owned()),
            name: Some(node.to_owned()),
            ..ObjectReference::default()
        },
    };
    let url = format!("/api/v1/namespaces/{}/pods/{}/binding", key.namespace, key.name);
    let body = serde_json::to_vec(&binding).map_err(kube::Error::SerdeError)?;
    let request = http::Request::post(url)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(body)
        .map_err(kube::Error::HttpError)?;
    client.request::<Value>(request).await.map(drop)
}

/// Marks a victim and deletes it.
async fn evict(client: &Client, victim: &Victim) {
    let key = ObjectKey {
        namespace: victim.namespace.clone(),
        name: victim.name.clone(),
        uid: victim.uid.clone(),
    };
    let patch = json!({
        "metadata": {"uid": victim.uid},
        "status": {"conditions": [{
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": "default-scheduler: preempting to accommodate a higher priority pod",
            "lastTransitionTime": Time(Timestamp::now()),
        }]},
    });
    patch_status(client, &key, patch).await;
    let api: Api<Pod> = Api::namespaced(client.clone(), &key.namespace);
    let preconditions = Preconditions { uid: Some(key.uid.clone()), resource_version: None };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    match api.delete(&key.name, &params).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
        Err(error) => warn!(pod = %key.name, %error, "victim not deleted"),
    }
}
