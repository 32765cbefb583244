//! Carrying out the steps of one pass over a Job.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, Client};
use lockstep_control::plan::job::{
    Key, NewPod, Orphan, PodRef, Refusal, RefusalKind, StatusWrite, Step, patch, slow_start,
};
use serde_json::Value;

use super::Message;
use crate::metrics::{Metrics, QueueMetrics};
use crate::passes::{Kind, Pass};
use crate::requests::refusal;
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

/// Passes over Jobs.
pub(super) enum OfJobs {}

impl Kind for OfJobs {
    type Key = Key;
    type Step = Step;
    type Answer = Answer;
    type Message = Message;
    type Shared = ();

    const NAME: &'static str = "job";

    fn queue(metrics: &Metrics) -> &QueueMetrics {
        &metrics.job_queue
    }

    fn only_tells(step: &Step) -> bool {
        matches!(step, Step::Emit(_) | Step::Note(_))
    }

    fn is_fine(answer: &Answer) -> bool {
        match answer {
            Answer::NotPatched(_, refusal) | Answer::NotDeleted(_, refusal) => {
                refusal.kind == RefusalKind::NotFound
            }
            Answer::NotCreated { .. } | Answer::Failed(_) => false,
            _ => true,
        }
    }

    fn failed(refusal: Refusal) -> Answer {
        Answer::Failed(refusal)
    }

    async fn carry_out(pass: &Pass<Self>, step: Step) -> bool {
        let client = pass.client();
        match step {
            Step::WriteStatus(write) => write_status(pass, &write).await,
            Step::Adopt { job_uid, pods } => adopt(pass, &job_uid, pods).await,
            Step::Release { job_uid, pods } => {
                pass.for_each(pods, |pod| release(client.clone(), pod, job_uid.clone())).await
            }
            Step::Relist { uids } => relist(pass, uids).await,
            Step::Create(pods) => create_all(pass, pods).await,
            Step::Delete { pods, strip_finalizer_first: true } => {
                pass.for_each(pods, |pod| strip_and_delete(client.clone(), pod)).await
            }
            Step::Delete { pods, strip_finalizer_first: false } => {
                pass.for_each(pods, |pod| delete(client.clone(), pod)).await
            }
            Step::RemoveFinalizers(pods) => {
                let removed = |pod: PodRef| {
                    let patch = patch::remove_finalizer(&pod);
                    patched(client.clone(), pod, patch)
                };
                pass.for_each(pods, removed).await
            }
            Step::Emit(event) => {
                pass.record(event);
                true
            }
            Step::Note(fact) => {
                pass.metrics().jobs.note(&fact);
                true
            }
        }
    }
}

async fn write_status(pass: &Pass<OfJobs>, write: &StatusWrite) -> bool {
    let Key { namespace, name } = &pass.key;
    let written = write::job_status(
        pass.client(),
        (namespace, name, &write.uid),
        &write.resource_version,
        &write.status,
    );
    pass.tell(match written.await {
        Ok(job) => Answer::StatusWritten(job),
        Err(error) => Answer::Failed(refusal(&error)),
    })
    .await
}

async fn adopt(pass: &Pass<OfJobs>, job_uid: &str, pods: Vec<PodRef>) -> bool {
    let Key { namespace, name } = &pass.key;
    let api: Api<Job> = Api::namespaced(pass.client().clone(), namespace);
    let why_not = match api.get(name).await {
        Err(error) => Some(refusal(&error)),
        Ok(job) if job.metadata.uid.as_deref() != Some(job_uid) => {
            let uid = job.metadata.uid.unwrap_or_default();
            let message =
                format!("original Job {namespace}/{name} is gone: got uid {uid}, wanted {job_uid}");
            Some(Refusal { kind: RefusalKind::Conflict, message })
        }
        Ok(Job { metadata, .. }) => metadata.deletion_timestamp.map(|at| {
            let message = format!("{namespace}/{name} has just been deleted at {}", at.0);
            Refusal { kind: RefusalKind::Conflict, message }
        }),
    };
    if let Some(why_not) = why_not {
        return pass.tell(Answer::Failed(why_not)).await;
    }
    let adopted = |pod: PodRef| {
        let patch = patch::adopt(&pod, name, job_uid);
        patched(pass.client().clone(), pod, patch)
    };
    pass.for_each(pods, adopted).await
}

async fn relist(pass: &Pass<OfJobs>, uids: Vec<String>) -> bool {
    let api: Api<Pod> = Api::namespaced(pass.client().clone(), &pass.key.namespace);
    let listed = api.list(&ListParams::default()).await;
    pass.tell(match listed {
        Ok(list) => Answer::Relisted(uids, list.items),
        Err(error) => Answer::Failed(refusal(&error)),
    })
    .await
}

/// Creates pods, few at first and more and more while it works.
async fn create_all(pass: &Pass<OfJobs>, pods: Vec<NewPod>) -> bool {
    let mut pods: Vec<Option<NewPod>> = pods.into_iter().map(Some).collect();
    for batch in slow_start(pods.len()) {
        let batch: Vec<NewPod> = pods[batch].iter_mut().filter_map(Option::take).collect();
        let created = |pod| create(pass.client().clone(), pass.key.namespace.clone(), pod);
        if !pass.for_each(batch, created).await || pass.is_late() {
            return false;
        }
    }
    true
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
