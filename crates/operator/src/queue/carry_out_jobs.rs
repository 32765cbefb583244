//! Carrying out the steps of one pass over a job that has a Workload.

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::batch::v1::Job;
use kube::api::{DeleteParams, Preconditions};
use kube::{Api, Resource};
use lockstep_api::jobset::JobSet;
use lockstep_api::kueue::Workload;
use lockstep_control::plan::queued::{JobKey, Kind as JobKind, Patch, Step, WorkloadRef};
use lockstep_control::plan::{Key, Refusal, RefusalKind};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Message;
use crate::metrics::{Metrics, QueueMetrics};
use crate::passes::{Kind, Pass};
use crate::requests::refusal;
use crate::write;

/// What became of a request.
pub(super) enum Answer {
    WorkloadWritten(Box<Workload>),
    /// With the Workload that has the name already, if that is why.
    WorkloadNotCreated(Refusal, Option<Box<Workload>>),
    /// Nothing is left of it.
    WorkloadDeleted(Key, String),
    JobWritten(Box<Job>),
    JobSetWritten(Box<JobSet>),
    /// Of which nothing comes back.
    Done,
    Failed(Refusal),
}

/// Passes over jobs that have Workloads.
pub(super) enum OfQueuedJobs {}

impl Kind for OfQueuedJobs {
    type Key = JobKey;
    type Step = Step;
    type Answer = Answer;
    type Message = Message;
    type Shared = ();

    const NAME: &'static str = "queued job";

    fn queue(metrics: &Metrics) -> &QueueMetrics {
        &metrics.queued_queue
    }

    fn only_tells(step: &Step) -> bool {
        matches!(step, Step::Emit(_))
    }

    fn is_fine(answer: &Answer) -> bool {
        !matches!(answer, Answer::Failed(_) | Answer::WorkloadNotCreated(..))
    }

    fn failed(refusal: Refusal) -> Answer {
        Answer::Failed(refusal)
    }

    async fn carry_out(pass: &Pass<Self>, step: Step) -> bool {
        let answer = match step {
            Step::CreateWorkload(workload) => create(pass, &workload).await,
            Step::WriteWorkloadStatus { workload: WorkloadRef { key, uid, version }, status } => {
                let object = (key.namespace.as_str(), key.name.as_str(), uid.as_str());
                let written = write::workload_status(pass.client(), object, &version, &status);
                of_workload(written.await)
            }
            Step::PatchWorkload { workload: WorkloadRef { key, .. }, patch } => {
                let object = (key.namespace.as_str(), key.name.as_str());
                let patch = kube::api::Patch::Merge(patch);
                of_workload(write::patch(pass.client(), object, &patch).await)
            }
            Step::DeleteWorkload { workload: WorkloadRef { key, uid, .. } } => {
                delete_workload(pass, key, uid).await
            }
            Step::PatchJob { patch, .. } => patch_job(pass, patch).await,
            Step::ClearStartTime { patch, .. } => clear_start(pass, patch).await,
            Step::DeleteJob { uid } => match pass.key.kind {
                JobKind::Job => delete::<Job>(pass, &pass.key.key, &uid).await.1,
                JobKind::JobSet => delete::<JobSet>(pass, &pass.key.key, &uid).await.1,
                JobKind::Orphan => delete::<Workload>(pass, &pass.key.key, &uid).await.1,
            },
            Step::Emit(event) => {
                pass.record(event);
                return true;
            }
        };
        pass.tell(answer).await
    }
}

async fn create(pass: &Pass<OfQueuedJobs>, workload: &Workload) -> Answer {
    let error = match write::create_custom(pass.client(), workload).await {
        Ok(created) => return Answer::WorkloadWritten(Box::new(created)),
        Err(error) => refusal(&error),
    };
    let found = match error.kind {
        RefusalKind::AlreadyExists => {
            let meta = &workload.metadata;
            let namespace = meta.namespace.as_deref().unwrap_or_default();
            let api: Api<Workload> = Api::namespaced(pass.client().clone(), namespace);
            api.get_opt(meta.name.as_deref().unwrap_or_default()).await.ok().flatten().map(Box::new)
        }
        _ => None,
    };
    Answer::WorkloadNotCreated(error, found)
}

fn of_workload(written: kube::Result<Workload>) -> Answer {
    match written {
        Ok(workload) => Answer::WorkloadWritten(Box::new(workload)),
        Err(error) => Answer::Failed(refusal(&error)),
    }
}

async fn patch_job(pass: &Pass<OfQueuedJobs>, patch: Patch) -> Answer {
    let patch = match patch {
        Patch::Merge(patch) => kube::api::Patch::Merge(patch),
        Patch::Json(operations) => match serde_json::from_value(operations) {
            Ok(operations) => kube::api::Patch::Json(operations),
            Err(error) => {
                let kind = RefusalKind::Refused;
                return Answer::Failed(Refusal { kind, message: error.to_string() });
            }
        },
    };
    let Key { namespace, name } = &pass.key.key;
    let object = (namespace.as_str(), name.as_str());
    let written = match pass.key.kind {
        JobKind::Job => {
            let written = write::patch(pass.client(), object, &patch).await;
            written.map(|job| Answer::JobWritten(Box::new(job)))
        }
        JobKind::JobSet => {
            let written = write::patch(pass.client(), object, &patch).await;
            written.map(|jobset| Answer::JobSetWritten(Box::new(jobset)))
        }
        JobKind::Orphan => return Answer::Done,
    };
    written.unwrap_or_else(|error| Answer::Failed(refusal(&error)))
}

async fn clear_start(pass: &Pass<OfQueuedJobs>, patch: Value) -> Answer {
    let Key { namespace, name } = &pass.key.key;
    match write::patch_job_status(pass.client(), (namespace, name), patch).await {
        Ok(job) => Answer::JobWritten(Box::new(job)),
        Err(error) => Answer::Failed(refusal(&error)),
    }
}

async fn delete_workload(pass: &Pass<OfQueuedJobs>, key: Key, uid: String) -> Answer {
    match delete::<Workload>(pass, &key, &uid).await {
        // Something keeps it for now: it will be heard of.
        (Some(left), _) => Answer::WorkloadWritten(Box::new(left)),
        (None, Answer::Done) => Answer::WorkloadDeleted(key, uid),
        (None, answer) => answer,
    }
}

/// Deletes an object of this uid, what it owns later; what is left of it for now, and the answer.
async fn delete<K>(pass: &Pass<OfQueuedJobs>, key: &Key, uid: &str) -> (Option<K>, Answer)
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(pass.client().clone(), &key.namespace);
    let same = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
    let params = DeleteParams { preconditions: Some(same), ..DeleteParams::background() };
    match api.delete(&key.name, &params).await.map_err(|error| refusal(&error)) {
        Ok(answer) => (answer.left(), Answer::Done),
        Err(gone) if gone.kind == RefusalKind::NotFound => (None, Answer::Done),
        Err(refusal) => (None, Answer::Failed(refusal)),
    }
}
