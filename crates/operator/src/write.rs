//! The writes of controllers. Each says which object it means by its uid, so that another one of
//! the same name is never touched, and changes no field it does not name.

use std::fmt::Debug;

use http::{HeaderValue, header};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::batch::v1::{Job, JobStatus};
use k8s_openapi::api::core::v1::{Event, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy};
use kube::core::Request;
use kube::{Api, Client, Resource};
use lockstep_api::jobset::{JobSet, JobSetStatus};
use lockstep_api::kueue::{Workload, WorkloadStatus};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
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
    written(client, request.create(&PostParams::default(), body)).await
}

/// Creates an object of a custom kind. Its type does not write down what it is, and a real API
/// server does not take that from the path for such kinds.
///
/// # Errors
/// When the server refuses it or does not answer.
pub async fn create_custom<K>(client: &Client, object: &K) -> kube::Result<K>
where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned,
{
    let mut body = serde_json::to_value(object).map_err(kube::Error::SerdeError)?;
    body["apiVersion"] = json!(K::api_version(&()));
    body["kind"] = json!(K::kind(&()));
    let body = serde_json::to_vec(&body).map_err(kube::Error::SerdeError)?;
    let request = Request::new(K::url_path(&(), object.meta().namespace.as_deref()));
    let request = request.create(&PostParams::default(), body);
    client.request(request.map_err(kube::Error::BuildRequest)?).await
}

/// Patches the status of a pod; the patch names its uid. The answer is the version that has it.
///
/// # Errors
/// When the server refuses it or does not answer.
pub async fn patch_pod_status(
    client: &Client,
    (namespace, name): (&str, &str),
    patch: Value,
) -> kube::Result<String> {
    /// What is read of the metadata.
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Version {
        resource_version: String,
    }
    let (params, patch) = (PatchParams::default(), Patch::Strategic(patch));
    let request = Request::new(Pod::url_path(&(), Some(namespace)));
    let request = request.patch_subresource("status", name, &params, &patch);
    written::<Version>(client, request).await.map(|version| version.resource_version)
}

/// Creates an event, of whose answer nobody reads anything.
///
/// # Errors
/// When the server refuses it or does not answer.
pub(crate) async fn create_event(
    client: &Client,
    namespace: &str,
    event: &Event,
) -> kube::Result<()> {
    let body = serde_json::to_vec(event).map_err(kube::Error::SerdeError)?;
    let request = Request::new(Event::url_path(&(), Some(namespace)));
    written::<IgnoredAny>(client, request.create(&PostParams::default(), body)).await.map(drop)
}

/// Deletes a pod of this uid at once: its node says that nothing of it is left.
///
/// # Errors
/// When the server refuses it or does not answer.
pub async fn confirm_pod_deletion(
    client: &Client,
    (namespace, name, uid): (&str, &str, &str),
) -> kube::Result<()> {
    let params = DeleteParams {
        grace_period_seconds: Some(0),
        preconditions: Some(same(uid)),
        ..DeleteParams::default()
    };
    let request = Request::new(Pod::url_path(&(), Some(namespace)));
    written::<IgnoredAny>(client, request.delete(name, &params)).await.map(drop)
}

/// Sends a write and reads of the answer what `M` takes of the metadata.
async fn written<M: DeserializeOwned + Default>(
    client: &Client,
    request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
) -> kube::Result<M> {
    #[derive(Deserialize)]
    struct Written<M> {
        #[serde(default)]
        metadata: M,
    }
    let mut request = request.map_err(kube::Error::BuildRequest)?;
    let accepted = HeaderValue::from_static(METADATA_ONLY);
    request.headers_mut().insert(header::ACCEPT, accepted);
    client.request::<Written<M>>(request).await.map(|written| written.metadata)
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
    let mut status = serde_json::to_value(status).map_err(kube::Error::SerdeError)?;
    complete(&mut status, &JOB_STATUS);
    if let Some(uncounted) = status["uncountedTerminatedPods"].as_object_mut() {
        for list in ["failed", "succeeded"] {
            uncounted.entry(list).or_insert(Value::Null);
        }
    }
    let patch = status_patch(uid, version, status);
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await
}

/// Writes the status of a JobSet of this uid, if it still has this version. Fields of the status
/// that nobody here knows stay as they are.
///
/// # Errors
/// When the server refuses it or does not answer.
pub async fn jobset_status(
    client: &Client,
    (namespace, name, uid): (&str, &str, &str),
    version: &str,
    status: &JobSetStatus,
) -> kube::Result<JobSet> {
    let api: Api<JobSet> = Api::namespaced(client.clone(), namespace);
    let mut status = serde_json::to_value(status).map_err(kube::Error::SerdeError)?;
    complete(&mut status, &JOBSET_STATUS);
    if status["lockstep"].is_object() {
        complete(&mut status["lockstep"], &LOCKSTEP_STATUS);
        if status["lockstep"]["inPlace"].is_object() {
            complete(&mut status["lockstep"]["inPlace"], &IN_PLACE_STATUS);
        }
    }
    let patch = status_patch(uid, version, status);
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await
}

/// Sets an annotation of a JobSet of this uid, if it still has this version.
///
/// # Errors
/// When the server refuses it or does not answer.
pub async fn annotate_jobset(
    client: &Client,
    (namespace, name, uid): (&str, &str, &str),
    version: &str,
    (key, value): (&str, &str),
) -> kube::Result<JobSet> {
    let api: Api<JobSet> = Api::namespaced(client.clone(), namespace);
    let patch = json!({"metadata": {
        "uid": uid, "resourceVersion": version, "annotations": {key: value},
    }});
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await
}

/// Writes the status of a Workload of this uid, if it still has this version. Fields of the status
/// that nobody here knows stay as they are.
///
/// # Errors
/// When the server refuses it or does not answer.
pub async fn workload_status(
    client: &Client,
    (namespace, name, uid): (&str, &str, &str),
    version: &str,
    status: &WorkloadStatus,
) -> kube::Result<Workload> {
    let api: Api<Workload> = Api::namespaced(client.clone(), namespace);
    let mut status = serde_json::to_value(status).map_err(kube::Error::SerdeError)?;
    complete(&mut status, &WORKLOAD_STATUS);
    if status["requeueState"].is_object() {
        complete(&mut status["requeueState"], &REQUEUE_STATE);
    }
    let patch = status_patch(uid, version, status);
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await
}

/// Patches an object of a namespace; the patch names its uid.
///
/// # Errors
/// When the server refuses it or does not answer.
pub async fn patch<K>(
    client: &Client,
    (namespace, name): (&str, &str),
    patch: &Patch<Value>,
) -> kube::Result<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned,
{
    Api::namespaced(client.clone(), namespace).patch(name, &PatchParams::default(), patch).await
}

/// Patches the status of a Job; the patch names its uid.
///
/// # Errors
/// When the server refuses it or does not answer.
pub async fn patch_job_status(
    client: &Client,
    (namespace, name): (&str, &str),
    patch: Value,
) -> kube::Result<Job> {
    let api: Api<Job> = Api::namespaced(client.clone(), namespace);
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await
}

/// Writes the status of a queue of this uid, if it still has this version.
///
/// # Errors
/// When the server refuses it or does not answer.
pub async fn queue_status<K>(
    api: &Api<K>,
    (name, uid): (&str, &str),
    version: &str,
    status: &impl Serialize,
) -> kube::Result<K>
where
    K: Clone + Debug + DeserializeOwned,
{
    let mut status = serde_json::to_value(status).map_err(kube::Error::SerdeError)?;
    complete(&mut status, &QUEUE_STATUS);
    let patch = status_patch(uid, version, status);
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await
}

/// Gives an object of this uid these finalizers, if it still has this version.
///
/// # Errors
/// When the server refuses it or does not answer.
pub async fn finalizers<K>(
    api: &Api<K>,
    (name, uid): (&str, &str),
    version: &str,
    finalizers: &[String],
) -> kube::Result<K>
where
    K: Clone + Debug + DeserializeOwned,
{
    let patch = json!({"metadata": {
        "uid": uid, "resourceVersion": version, "finalizers": finalizers,
    }});
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await
}

fn status_patch(uid: &str, version: &str, status: Value) -> Value {
    json!({"metadata": {"uid": uid, "resourceVersion": version}, "status": status})
}

/// Patches a Job of this uid.
///
/// # Errors
/// When the server refuses it or does not answer.
pub async fn patch_job(
    client: &Client,
    (namespace, name, uid): (&str, &str, &str),
    mut patch: Value,
) -> kube::Result<Job> {
    let api: Api<Job> = Api::namespaced(client.clone(), namespace);
    patch["metadata"]["uid"] = uid.into();
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await
}

/// Takes the time of its start from a Job of this uid.
///
/// # Errors
/// When the server refuses it or does not answer.
pub async fn clear_job_start(
    client: &Client,
    (namespace, name, uid): (&str, &str, &str),
) -> kube::Result<Job> {
    let api: Api<Job> = Api::namespaced(client.clone(), namespace);
    let patch = json!({"metadata": {"uid": uid}, "status": {"startTime": null}});
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await
}

/// The fields of a Job's status that we know.
const JOB_STATUS: [&str; 11] = [
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

/// The fields of a JobSet's status that we know.
const JOBSET_STATUS: [&str; 8] = [
    "conditions",
    "currentInPlaceRestartAttempt",
    "lockstep",
    "previousInPlaceRestartAttempt",
    "replicatedJobsStatus",
    "restarts",
    "restartsCountTowardsMax",
    "terminalState",
];

/// The fields of a Workload's status that may be gone again.
const WORKLOAD_STATUS: [&str; 8] = [
    "accumulatedPastExecutionTimeSeconds",
    "admission",
    "admissionChecks",
    "conditions",
    "reclaimablePods",
    "requeueState",
    "resourceRequests",
    "schedulingStats",
];

/// The fields of how often a Workload has come back that may be gone again.
const REQUEUE_STATE: [&str; 2] = ["count", "requeueAt"];

/// The fields of a queue's status that may be gone again.
const QUEUE_STATUS: [&str; 4] = ["conditions", "fairSharing", "flavorsReservation", "flavorsUsage"];

/// The fields of what we keep there beyond what JobSet has. Rules are only ever added.
const LOCKSTEP_STATUS: [&str; 3] = ["endedJobs", "inPlace", "lastRestarts"];

/// The fields of what is told of restarts in place that may be gone again.
const IN_PLACE_STATUS: [&str; 3] = ["lastRestarts", "waiting", "workers"];

/// Says of every field that is not there that it is not to be there.
fn complete(status: &mut Value, fields: &[&str]) {
    for field in fields {
        // To index is to insert.
        let _inserted = &mut status[*field];
    }
}

/// Deletes an object of this uid after everything that depends on it; the object as it is now,
/// unless it is gone.
///
/// # Errors
/// When the server refuses it or does not answer.
pub async fn delete_whole<K>(
    client: &Client,
    (namespace, name, uid): (&str, &str, &str),
) -> kube::Result<Option<K>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    let params = DeleteParams {
        preconditions: Some(same(uid)),
        propagation_policy: Some(PropagationPolicy::Foreground),
        ..DeleteParams::default()
    };
    api.delete(name, &params).await.map(|answer| answer.left())
}

fn same(uid: &str) -> Preconditions {
    Preconditions { uid: Some(uid.to_owned()), resource_version: None }
}

#[cfg(test)]
mod tests {
    use lockstep_api::jobset::InPlaceStatus;

    use super::*;

    #[test]
    fn what_a_status_no_longer_says_is_taken_away() {
        let mut patch = json!({"active": 1});
        complete(&mut patch, &JOB_STATUS);
        assert_eq!(patch["active"], json!(1));
        let nulls = JOB_STATUS.into_iter().filter(|field| patch[field].is_null());
        assert_eq!(nulls.count(), JOB_STATUS.len() - 1);
        assert_eq!(patch.as_object().unwrap().len(), JOB_STATUS.len());
    }

    fn status_conditions() -> Vec<k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition> {
        serde_json::from_value(json!([{
            "type": "t", "status": "True", "reason": "r", "message": "",
            "lastTransitionTime": "2026-11-15T12:00:00Z",
        }]))
        .unwrap()
    }

    /// A field that is added to the status and forgotten here would never go away again.
    #[test]
    fn all_fields_of_a_status_are_known() {
        let condition = json!({"type": "t", "status": "True", "reason": "r", "message": "",
                               "lastTransitionTime": "2026-11-15T12:00:00Z"});
        let whole = json!({
            "conditions": [condition], "restarts": 1, "restartsCountTowardsMax": 1,
            "terminalState": "Failed", "replicatedJobsStatus": [{"name": "a"}],
            "previousInPlaceRestartAttempt": 1, "currentInPlaceRestartAttempt": 1, "lockstep": {},
        });
        let status: JobSetStatus = serde_json::from_value(whole).unwrap();
        let fields = serde_json::to_value(status).unwrap();
        let fields: Vec<&str> = fields.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(fields, JOBSET_STATUS);
        let workload = WorkloadStatus {
            conditions: status_conditions(),
            admission: Some(Default::default()),
            requeue_state: Some(Default::default()),
            reclaimable_pods: vec![Default::default()],
            admission_checks: vec![Default::default()],
            resource_requests: vec![Default::default()],
            accumulated_past_execution_time_seconds: Some(1),
            scheduling_stats: Some(Default::default()),
            ..WorkloadStatus::default()
        };
        let fields = serde_json::to_value(workload).unwrap();
        let mut fields: Vec<&str> =
            fields.as_object().unwrap().keys().map(String::as_str).collect();
        fields.sort_unstable();
        assert_eq!(fields, WORKLOAD_STATUS);
        let optional = |whole: Value, empty: Value| -> Vec<String> {
            let fields = |value: Value| value.as_object().unwrap().clone();
            let empty = fields(empty);
            fields(whole)
                .into_iter()
                .map(|(key, _)| key)
                .filter(|key| !empty.contains_key(key))
                .collect()
        };
        let told: InPlaceStatus = serde_json::from_value(json!({
            "waiting": "w", "workers": [{}], "lastRestarts": [{}],
        }))
        .unwrap();
        let whole = serde_json::to_value(told).unwrap();
        let empty = serde_json::to_value(InPlaceStatus::default()).unwrap();
        assert_eq!(optional(whole, empty), IN_PLACE_STATUS);
    }
}
