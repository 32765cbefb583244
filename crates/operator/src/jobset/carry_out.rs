//! Carrying out the steps of one pass over a JobSet.

use std::fmt::Debug;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use futures::{FutureExt, StreamExt};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ObjectReference, PersistentVolumeClaim, Service};
use kube::api::PostParams;
use kube::{Api, Client, Resource};
use lockstep_api::jobset::JobSet;
use lockstep_control::plan::jobset::{JobRef, Resize, Resumption, StatusWrite, Step};
use lockstep_control::plan::{Key, Refusal, RefusalKind};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tracing::error;

use super::{Message, note};
use crate::metrics::Metrics;
use crate::observe::Teller;
use crate::recorder::Recorder;
use crate::requests::{concurrently, refusal};
use crate::write;

/// What became of a request.
pub(super) enum Answer {
    StatusWritten(Box<JobSet>),
    JobWritten(Job),
    /// Nothing is left of it.
    JobDeleted(JobRef),
    /// With the Job that has the name already, if that is why.
    JobNotCreated {
        name: String,
        refusal: Refusal,
        found: Option<Job>,
    },
    JobNotWritten(JobRef, Refusal),
    ServiceCreated(Box<Service>),
    /// With the Service that has the name already, if that is why.
    ServiceNotCreated(Refusal, Option<Box<Service>>),
    /// Or found.
    ClaimCreated(String),
    ClaimNotCreated(Refusal),
    Failed(Refusal),
}

impl Answer {
    /// Whether the pass may go on after this.
    fn is_fine(&self) -> bool {
        match self {
            Self::JobNotWritten(_, refusal) => refusal.kind == RefusalKind::NotFound,
            Self::ServiceNotCreated(_, found) => found.is_some(),
            Self::JobNotCreated { .. } | Self::ClaimNotCreated(_) | Self::Failed(_) => false,
            _ => true,
        }
    }
}

/// Everything a pass needs.
pub(super) struct Pass {
    pub(super) client: Client,
    pub(super) recorder: Recorder,
    pub(super) metrics: Arc<Metrics>,
    pub(super) teller: Teller<Message>,
    pub(super) requests_max: usize,
    /// From then on no request is begun.
    pub(super) until: Instant,
    pub(super) jobset: Arc<ObjectReference>,
    pub(super) key: Key,
}

impl Pass {
    /// Carries out the steps in order, up to the first that fails, and says when it is over,
    /// whatever happens: a set is in one pass at a time.
    pub(super) async fn run(self, steps: Vec<Step>) {
        if AssertUnwindSafe(self.carry_out(steps)).catch_unwind().await.is_err() {
            error!(jobset = %self.key, "pass panicked");
        }
        self.teller.tell(Message::Done(self.key)).await;
    }

    async fn carry_out(&self, steps: Vec<Step>) {
        for step in steps {
            // What is told of a write that was made is part of it, however long the write took.
            let is_request = !matches!(step, Step::Emit(_) | Step::Note(_));
            if is_request && Instant::now() >= self.until || !self.step(step).await {
                break;
            }
        }
    }

    async fn tell(&self, answer: Answer) -> bool {
        let is_fine = answer.is_fine();
        self.teller.tell(Message::Answer(self.key.clone(), Box::new(answer))).await;
        is_fine
    }

    /// Carries out a step; false ends the pass.
    async fn step(&self, step: Step) -> bool {
        let client = &self.client;
        match step {
            Step::WriteStatus(write) => self.write_status(&write).await,
            Step::DeleteJobSet { uid } => self.delete_jobset(&uid).await,
            Step::DeleteJobs(jobs) => self.for_each(jobs, |job| delete(client.clone(), job)).await,
            Step::CreateJobs(jobs) => self.for_each(jobs, |job| create(client.clone(), job)).await,
            Step::ResizeJobs(jobs) => {
                let resized = |Resize { job, size }| {
                    let spec = json!({"parallelism": size, "completions": size});
                    patch(client.clone(), job, json!({"spec": spec}))
                };
                self.for_each(jobs, resized).await
            }
            Step::SuspendJobs(jobs) => {
                let suspended =
                    |job| patch(client.clone(), job, json!({"spec": {"suspend": true}}));
                self.for_each(jobs, suspended).await
            }
            Step::ClearStartTimes(jobs) => {
                self.for_each(jobs, |job| clear_start(client.clone(), job)).await
            }
            Step::ResumeJobs(jobs) => {
                let resumed =
                    |Resumption { job, patch: wanted }| patch(client.clone(), job, wanted);
                self.for_each(jobs, resumed).await
            }
            Step::CreateService(service) => {
                let answer = create_service(client, &service).await;
                self.tell(answer).await
            }
            Step::CreateClaims(claims) => {
                for claim in claims {
                    let answer = create_claim(client, &claim).await;
                    if !self.tell(answer).await {
                        return false;
                    }
                }
                true
            }
            Step::Emit(event) => {
                self.recorder.record(note(&self.jobset, event));
                true
            }
            Step::Note(fact) => {
                self.metrics.jobsets.note(fact, &self.key);
                true
            }
        }
    }

    async fn write_status(&self, wanted: &StatusWrite) -> bool {
        let Key { namespace, name } = &self.key;
        let object = (namespace.as_str(), name.as_str(), wanted.uid.as_str());
        let version = &wanted.resource_version;
        let written = write::jobset_status(&self.client, object, version, &wanted.status);
        self.tell(match written.await {
            Ok(jobset) => Answer::StatusWritten(Box::new(jobset)),
            Err(error) => Answer::Failed(refusal(&error)),
        })
        .await
    }

    async fn delete_jobset(&self, uid: &str) -> bool {
        let Key { namespace, name } = &self.key;
        match write::delete_whole::<JobSet>(&self.client, (namespace, name, uid)).await {
            Ok(_) => true,
            Err(error) => self.tell(Answer::Failed(refusal(&error))).await,
        }
    }

    /// Makes a request for each of `items`, many at the same time, and tells what became of each.
    async fn for_each<T, F>(&self, items: Vec<T>, request: impl Fn(T) -> F) -> bool
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        let limits = (self.requests_max, self.until);
        let mut requests = std::pin::pin!(concurrently(items, limits, request));
        let mut is_fine = true;
        while let Some(answer) = requests.next().await {
            is_fine &= self.tell(answer.unwrap_or_else(Answer::Failed)).await;
        }
        is_fine
    }
}

async fn create(client: Client, job: Job) -> Answer {
    let name = job.metadata.name.clone().unwrap_or_default();
    match create_or_find(&client, &job).await {
        Ok(created) => Answer::JobWritten(created),
        Err((refusal, found)) => Answer::JobNotCreated { name, refusal, found },
    }
}

async fn create_service(client: &Client, service: &Service) -> Answer {
    match create_or_find(client, service).await {
        Ok(created) => Answer::ServiceCreated(Box::new(created)),
        Err((refusal, found)) => Answer::ServiceNotCreated(refusal, found.map(Box::new)),
    }
}

async fn create_claim(client: &Client, claim: &PersistentVolumeClaim) -> Answer {
    let name = claim.metadata.name.clone().unwrap_or_default();
    match create_or_find(client, claim).await {
        Ok(_) | Err((_, Some(_))) => Answer::ClaimCreated(name),
        Err((refusal, None)) => Answer::ClaimNotCreated(refusal),
    }
}

/// Creates an object. If there is one of its name already, that one comes with the refusal, unless
/// it has gone meanwhile.
async fn create_or_find<K>(client: &Client, object: &K) -> Result<K, (Refusal, Option<K>)>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned,
{
    let namespace = object.meta().namespace.as_deref().unwrap_or_default();
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    let refused = match api.create(&PostParams::default(), object).await {
        Ok(created) => return Ok(created),
        Err(error) => refusal(&error),
    };
    if refused.kind != RefusalKind::AlreadyExists {
        return Err((refused, None));
    }
    let name = object.meta().name.as_deref().unwrap_or_default();
    match api.get_opt(name).await {
        Ok(found) => Err((refused, found)),
        Err(error) => Err((refusal(&error), None)),
    }
}

async fn delete(client: Client, job: JobRef) -> Answer {
    match write::delete_whole::<Job>(&client, (&job.namespace, &job.name, &job.uid)).await {
        Ok(Some(left)) => Answer::JobWritten(left),
        Ok(None) => Answer::JobDeleted(job),
        Err(error) => Answer::JobNotWritten(job, refusal(&error)),
    }
}

async fn patch(client: Client, job: JobRef, patch: Value) -> Answer {
    match write::patch_job(&client, (&job.namespace, &job.name, &job.uid), patch).await {
        Ok(patched) => Answer::JobWritten(patched),
        Err(error) => Answer::JobNotWritten(job, refusal(&error)),
    }
}

async fn clear_start(client: Client, job: JobRef) -> Answer {
    match write::clear_job_start(&client, (&job.namespace, &job.name, &job.uid)).await {
        Ok(patched) => Answer::JobWritten(patched),
        Err(error) => Answer::JobNotWritten(job, refusal(&error)),
    }
}
