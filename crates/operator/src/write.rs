//! The writes of controllers. Each says which object it means by its uid, so that another one of
//! the same name is never touched, and changes no field it does not name.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy};
use kube::{Api, Client};
use serde_json::{Value, json};

/// How a write ended.
#[derive(Debug)]
pub enum Outcome<T> {
    /// As wanted; the object as it is now.
    Done(T),
    /// There is no such object any more: no longer, or one of another uid.
    Gone,
}

/// Creates a pod.
///
/// # Errors
/// When the server refuses it or does not answer.
pub async fn create_pod(client: &Client, namespace: &str, pod: &Pod) -> kube::Result<Pod> {
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    api.create(&PostParams::default(), pod).await
}

/// Patches a pod of this uid.
///
/// # Errors
/// When the server refuses it or does not answer.
pub async fn patch_pod(
    client: &Client,
    (namespace, name, uid): (&str, &str, &str),
    mut patch: Value,
) -> kube::Result<Outcome<Pod>> {
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    patch["metadata"]["uid"] = json!(uid);
    let patched = api.patch(name, &PatchParams::default(), &Patch::Strategic(patch)).await;
    unless_gone(patched)
}

/// Deletes a pod of this uid with the grace it asks for.
///
/// # Errors
/// When the server refuses it or does not answer.
pub async fn delete_pod(
    client: &Client,
    (namespace, name, uid): (&str, &str, &str),
) -> kube::Result<Outcome<Option<Pod>>> {
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let params = DeleteParams { preconditions: Some(same(uid)), ..DeleteParams::default() };
    unless_gone(api.delete(name, &params).await.map(|answer| answer.left()))
}

/// Deletes a Job of this uid after everything that depends on it.
///
/// # Errors
/// When the server refuses it or does not answer.
pub async fn delete_job(
    client: &Client,
    (namespace, name, uid): (&str, &str, &str),
) -> kube::Result<Outcome<()>> {
    let api: Api<Job> = Api::namespaced(client.clone(), namespace);
    let params = DeleteParams {
        preconditions: Some(same(uid)),
        propagation_policy: Some(PropagationPolicy::Foreground),
        ..DeleteParams::default()
    };
    unless_gone(api.delete(name, &params).await.map(drop))
}

fn same(uid: &str) -> Preconditions {
    Preconditions { uid: Some(uid.to_owned()), resource_version: None }
}

fn unless_gone<T>(outcome: kube::Result<T>) -> kube::Result<Outcome<T>> {
    match outcome {
        Ok(object) => Ok(Outcome::Done(object)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Outcome::Gone),
        Err(error) => Err(error),
    }
}
