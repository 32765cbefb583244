//! The writes of controllers. Each says which object it means by its uid, so that another one of
//! the same name is never touched, and changes no field it does not name.

use http::{HeaderValue, header};
use k8s_openapi::api::batch::v1::{Job, JobStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy};
use kube::core::Request;
use kube::{Api, Client, Resource};
use serde::Deserialize;
use serde_json::{Value, json};

/// Asks for nothing but the metadata of what was written.
const METADATA_ONLY: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// Creates a pod. The answer is its metadata: the rest is what was sent, until a watch tells more.
///
/// # Errors
/// When the server refuses it or does not answer.
pub async fn create_pod(client: &Client, namespace: &str, pod: &Pod) -> kube::Result<ObjectMeta> {
    let body = serde_json::to_vec(pod).map_err(kube::Error::SerdeError)?;
    let request = Request::new(Pod::url_path(&(), Some(namespace)));
    metadata(client, request.create(&PostParams::default(), body)).await
}

/// Patches the status of a pod; the patch names its uid. The answer is its metadata.
///
/// # Errors
/// When the server refuses it or does not answer.
pub async fn patch_pod_status(
    client: &Client,
    (namespace, name): (&str, &str),
    patch: Value,
) -> kube::Result<ObjectMeta> {
    let (params, patch) = (PatchParams::default(), Patch::Strategic(patch));
    let request = Request::new(Pod::url_path(&(), Some(namespace)));
    metadata(client, request.patch_subresource("status", name, &params, &patch)).await
}

/// Sends a write and reads the metadata of the answer.
async fn metadata(
    client: &Client,
    request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
) -> kube::Result<ObjectMeta> {
    /// What is read of an answer.
    #[derive(Deserialize)]
    struct Written {
        #[serde(default)]
        metadata: ObjectMeta,
    }
    let mut request = request.map_err(kube::Error::BuildRequest)?;
    let accepted = HeaderValue::from_static(METADATA_ONLY);
    request.headers_mut().insert(header::ACCEPT, accepted);
    client.request::<Written>(request).await.map(|written| written.metadata)
}

/// Patches a pod; the patch names its uid.
///
/// # Errors
/// When the server refuses it or does not answer.
pub async fn patch_pod(
    client: &Client,
    namespace: &str,
    name: &str,
    patch: Value,
) -> kube::Result<Pod> {
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    api.patch(name, &PatchParams::default(), &Patch::Strategic(patch)).await
}

/// Deletes a pod of this uid with the grace it asks for; the pod as it is now, unless it is gone.
///
/// # Errors
/// When the server refuses it or does not answer.
pub async fn delete_pod(
    client: &Client,
    (namespace, name, uid): (&str, &str, &str),
) -> kube::Result<Option<Pod>> {
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let params = DeleteParams { preconditions: Some(same(uid)), ..DeleteParams::default() };
    api.delete(name, &params).await.map(|answer| answer.left())
}

/// Writes the status of a Job of this uid, if it still has this version. Fields of the status that
/// nobody here knows stay as they are.
///
/// # Errors
/// When the server refuses it or does not answer.
pub async fn job_status(
    client: &Client,
    (namespace, name, uid): (&str, &str, &str),
    version: &str,
    status: &JobStatus,
) -> kube::Result<Job> {
    let api: Api<Job> = Api::namespaced(client.clone(), namespace);
    let status = serde_json::to_value(status).map_err(kube::Error::SerdeError)?;
    let patch = json!({
        "metadata": {"uid": uid, "resourceVersion": version},
        "status": complete(status),
    });
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await
}

/// The fields of a Job's status that we know.
const STATUS_FIELDS: [&str; 11] = [
    "active",
    "completedIndexes",
    "completionTime",
    "conditions",
    "failed",
    "failedIndexes",
    "ready",
    "startTime",
    "succeeded",
    "terminating",
    "uncountedTerminatedPods",
];

/// Says of every field that is not there that it is not to be there.
fn complete(mut status: Value) -> Value {
    for field in STATUS_FIELDS {
        // To index is to insert.
        let value = &mut status[field];
        if field == "uncountedTerminatedPods" && value.is_object() {
            for list in ["failed", "succeeded"] {
                let _inserted = &mut value[list];
            }
        }
    }
    status
}

/// Deletes a Job of this uid after everything that depends on it.
///
/// # Errors
/// When the server refuses it or does not answer.
pub async fn delete_job(
    client: &Client,
    (namespace, name, uid): (&str, &str, &str),
) -> kube::Result<()> {
    let api: Api<Job> = Api::namespaced(client.clone(), namespace);
    let params = DeleteParams {
        preconditions: Some(same(uid)),
        propagation_policy: Some(PropagationPolicy::Foreground),
        ..DeleteParams::default()
    };
    api.delete(name, &params).await.map(drop)
}

fn same(uid: &str) -> Preconditions {
    Preconditions { uid: Some(uid.to_owned()), resource_version: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_status_no_longer_says_is_taken_away() {
        let status = JobStatus { active: Some(1), ..JobStatus::default() };
        let patch = complete(serde_json::to_value(status).unwrap());
        assert_eq!(patch["active"], json!(1));
        let nulls = STATUS_FIELDS.into_iter().filter(|field| patch[field].is_null());
        assert_eq!(nulls.count(), STATUS_FIELDS.len() - 1);
        assert_eq!(patch.as_object().unwrap().len(), STATUS_FIELDS.len());
        let patch = complete(json!({"uncountedTerminatedPods": {"failed": ["a"]}}));
        let uncounted = json!({"failed": ["a"], "succeeded": null});
        assert_eq!(patch["uncountedTerminatedPods"], uncounted);
    }
}
