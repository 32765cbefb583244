//! Carrying out the steps of one pass over a Job.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use futures::{FutureExt, StreamExt};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use kube::api::ListParams;
use kube::{Api, Client};
use lockstep_control::plan::job::{
    Key, NewPod, Orphan, PodRef, Refusal, RefusalKind, StatusWrite, Step, patch, slow_start,
};
use serde_json::Value;
use tracing::error;

use super::{Message, note};
use crate::metrics::Metrics;
use crate::observe::Teller;
use crate::recorder::Recorder;
use crate::requests::{concurrently, refusal};
use crate::write;

/// What became of a request.
pub(super) enum Answer {
    StatusWritten(Job),
    Created(Pod),
    /// With the pod that has the name already, if that is why.
    NotCreated {
        wanted: NewPod,
        refusal: Refusal,
        found: Option<Pod>,
    },
    Patched(Pod),
    NotPatched(PodRef, Refusal),
    Deleted(PodRef, Option<Pod>),
    NotDeleted(PodRef, Refusal),
    Relisted(Vec<String>, Vec<Pod>),
    Failed(Refusal),
}

impl Answer {
    /// Whether the pass may go on after this.
    fn is_fine(&self) -> bool {
        match self {
            Self::NotPatched(_, refusal) | Self::NotDeleted(_, refusal) => {
                refusal.kind == RefusalKind::NotFound
            }
            Self::NotCreated { .. } | Self::Failed(_) => false,
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
    pub(super) job: Arc<ObjectReference>,
    pub(super) key: Key,
}

impl Pass {
    /// Carries out the steps in order, up to the first that fails, and says when it is over,
    /// whatever happens: a Job is in one pass at a time.
    pub(super) async fn run(self, steps: Vec<Step>) {
        if AssertUnwindSafe(self.carry_out(steps)).catch_unwind().await.is_err() {
            error!(job = %self.key, "pass panicked");
        }
        self.teller.tell(Message::Done(self.key)).await;
    }

    async fn carry_out(&self, steps: Vec<Step>) {
        for step in steps {
            // What is told of a write that was made is part of it, however long the write took.
            let is_request = !matches!(step, Step::Emit(_) | Step::Note(_));
            if is_request && self.is_late() || !self.step(step).await {
                break;
            }
        }
    }

    fn is_late(&self) -> bool {
        Instant::now() >= self.until
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
            Step::Adopt { job_uid, pods } => self.adopt(&job_uid, pods).await,
            Step::Release { job_uid, pods } => {
                self.for_each(pods, |pod| release(client.clone(), pod, job_uid.clone())).await
            }
            Step::Relist { uids } => self.relist(uids).await,
            Step::Create(pods) => self.create(pods).await,
            Step::Delete { pods, strip_finalizer_first: true } => {
                let stripped = |pod| strip_and_delete(client.clone(), pod);
                self.for_each(pods, stripped).await
            }
            Step::Delete { pods, strip_finalizer_first: false } => {
                self.for_each(pods, |pod| delete(client.clone(), pod)).await
            }
            Step::RemoveFinalizers(pods) => {
                let removed = |pod: PodRef| {
                    let patch = patch::remove_finalizer(&pod);
                    patched(client.clone(), pod, patch)
                };
                self.for_each(pods, removed).await
            }
            Step::Emit(event) => {
                self.recorder.record(note(&self.job, event));
                true
            }
            Step::Note(fact) => {
                self.metrics.jobs.note(&fact);
                true
            }
        }
    }

    async fn write_status(&self, write: &StatusWrite) -> bool {
        let Key { namespace, name } = &self.key;
        let written = write::job_status(
            &self.client,
            (namespace, name, &write.uid),
            &write.resource_version,
            &write.status,
        );
        self.tell(match written.await {
            Ok(job) => Answer::StatusWritten(job),
            Err(error) => Answer::Failed(refusal(&error)),
        })
        .await
    }

    async fn adopt(&self, job_uid: &str, pods: Vec<PodRef>) -> bool {
        let Key { namespace, name } = &self.key;
        let api: Api<Job> = Api::namespaced(self.client.clone(), namespace);
        let why_not = match api.get(name).await {
            Err(error) => Some(refusal(&error)),
            Ok(job) if job.metadata.uid.as_deref() != Some(job_uid) => {
                let uid = job.metadata.uid.unwrap_or_default();
                let message = format!(
                    "original Job {namespace}/{name} is gone: got uid {uid}, wanted {job_uid}"
                );
                Some(Refusal { kind: RefusalKind::Conflict, message })
            }
            Ok(Job { metadata, .. }) => metadata.deletion_timestamp.map(|at| {
                let message = format!("{namespace}/{name} has just been deleted at {}", at.0);
                Refusal { kind: RefusalKind::Conflict, message }
            }),
        };
        if let Some(why_not) = why_not {
            return self.tell(Answer::Failed(why_not)).await;
        }
        let adopted = |pod: PodRef| {
            let patch = patch::adopt(&pod, name, job_uid);
            patched(self.client.clone(), pod, patch)
        };
        self.for_each(pods, adopted).await
    }

    async fn relist(&self, uids: Vec<String>) -> bool {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &self.key.namespace);
        let listed = api.list(&ListParams::default()).await;
        self.tell(match listed {
            Ok(list) => Answer::Relisted(uids, list.items),
            Err(error) => Answer::Failed(refusal(&error)),
        })
        .await
    }

    /// Creates pods, few at first and more and more while it works.
    async fn create(&self, pods: Vec<NewPod>) -> bool {
        let mut pods: Vec<Option<NewPod>> = pods.into_iter().map(Some).collect();
        for batch in slow_start(pods.len()) {
            let batch: Vec<NewPod> = pods[batch].iter_mut().filter_map(Option::take).collect();
            let created = |pod| create(self.client.clone(), self.key.namespace.clone(), pod);
            if !self.for_each(batch, created).await || self.is_late() {
                return false;
            }
        }
        true
    }

    /// Makes a request for each of `items`, many at the same time, and tells what became of each.
    /// One that is refused does not keep the others back.
    async fn for_each<T, F>(&self, items: Vec<T>, request: impl Fn(T) -> F) -> bool
    where
        F: Future<Output = Vec<Answer>> + Send + 'static,
    {
        let limits = (self.requests_max, self.until);
        let mut requests = std::pin::pin!(concurrently(items, limits, request));
        let mut is_fine = true;
        while let Some(answers) = requests.next().await {
            for answer in answers.unwrap_or_else(|lost| vec![Answer::Failed(lost)]) {
                is_fine &= self.tell(answer).await;
            }
        }
        is_fine
    }
}

async fn create(client: Client, namespace: String, wanted: NewPod) -> Vec<Answer> {
    let refused = match write::create_pod(&client, &namespace, &wanted.pod).await {
        Ok(metadata) => return vec![Answer::Created(Pod { metadata, ..*wanted.pod })],
        Err(error) => refusal(&error),
    };
    let mut found = None;
    if refused.kind == RefusalKind::AlreadyExists {
        let api: Api<Pod> = Api::namespaced(client, &namespace);
        found = match api.get_opt(&wanted.name).await {
            Ok(found) => found,
            Err(error) => {
                let refusal = refusal(&error);
                return vec![Answer::NotCreated { wanted, refusal, found: None }];
            }
        };
    }
    vec![Answer::NotCreated { wanted, refusal: refused, found }]
}

async fn strip_and_delete(client: Client, pod: PodRef) -> Vec<Answer> {
    let patch = patch::remove_finalizer(&pod);
    match write::patch_pod(&client, &pod.namespace, &pod.name, patch).await {
        Ok(stripped) => {
            let mut answers = vec![Answer::Patched(stripped)];
            answers.extend(delete(client, pod).await);
            answers
        }
        Err(error) => vec![Answer::NotPatched(pod, refusal(&error))],
    }
}

async fn delete(client: Client, pod: PodRef) -> Vec<Answer> {
    let deleted = write::delete_pod(&client, (&pod.namespace, &pod.name, &pod.uid)).await;
    vec![match deleted {
        Ok(answer) => Answer::Deleted(pod, answer),
        Err(error) => Answer::NotDeleted(pod, refusal(&error)),
    }]
}

async fn patched(client: Client, pod: PodRef, patch: Value) -> Vec<Answer> {
    vec![match write::patch_pod(&client, &pod.namespace, &pod.name, patch).await {
        Ok(patched) => Answer::Patched(patched),
        Err(error) => Answer::NotPatched(pod, refusal(&error)),
    }]
}

async fn release(client: Client, pod: PodRef, job_uid: String) -> Vec<Answer> {
    let patch = patch::release(&pod, &job_uid);
    let mut answers = patched(client, pod, patch).await;
    // The pod may have let go itself, and then there is nothing the patch could take away. It is
    // still there: the watch tells what has become of it.
    answers.retain(|answer| match answer {
        Answer::NotPatched(_, refusal) => {
            refusal.kind != RefusalKind::Refused || !refusal.message.contains("is invalid")
        }
        _ => true,
    });
    answers
}

/// Takes the tracking finalizer off a pod that no Job counts.
pub(super) async fn let_go(client: &Client, orphan: &Orphan) -> Result<(), Refusal> {
    let pod = &orphan.pod;
    if let Some((Key { namespace, name }, uid)) = &orphan.unseen {
        let api: Api<Job> = Api::namespaced(client.clone(), namespace);
        let found = api.get_metadata_opt(name).await.map_err(|error| refusal(&error))?;
        if found.is_some_and(|job| job.metadata.uid.as_ref() == Some(uid)) {
            let message = format!("its Job {namespace}/{name} is there, but not known yet");
            return Err(Refusal { kind: RefusalKind::Conflict, message });
        }
    }
    let patch = patch::remove_finalizer(pod);
    match write::patch_pod(client, &pod.namespace, &pod.name, patch).await {
        Ok(_) => Ok(()),
        Err(error) => match refusal(&error) {
            Refusal { kind: RefusalKind::NotFound, .. } => Ok(()),
            refusal => Err(refusal),
        },
    }
}
