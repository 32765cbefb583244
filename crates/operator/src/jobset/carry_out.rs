//! Carrying out the steps of one pass over a JobSet.

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Service};
use kube::api::PostParams;
use kube::{Api, Client, Resource};
use lockstep_api::jobset::JobSet;
use lockstep_control::plan::jobset::{
    Annotation, JobRef, Resize, Resumption, StatusWrite, Step, claim_leaving,
};
use lockstep_control::plan::{Key, Refusal, RefusalKind};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Message, in_place};
use crate::metrics::{Metrics, QueueMetrics};
use crate::passes::{Kind, Pass};
use crate::requests::refusal;
use crate::write;

/// What became of a request.
pub(super) enum Answer {
    StatusWritten(Box<JobSet>),
    Annotated(Box<JobSet>),
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
    /// All of a pass.
    ClaimsNotCreated(Vec<Refusal>),
    Failed(Refusal),
}

/// Passes over JobSets.
pub(super) enum OfJobSets {}

impl Kind for OfJobSets {
    type Key = Key;
    type Step = Step;
    type Answer = Answer;
    type Message = Message;
    /// What lets agents in.
    type Shared = Option<in_place::Keys>;

    const NAME: &'static str = "jobset";

    fn queue(metrics: &Metrics) -> &QueueMetrics {
        &metrics.jobset_queue
    }

    fn only_tells(step: &Step) -> bool {
        matches!(step, Step::Emit(_) | Step::Note(_))
    }

    fn is_fine(answer: &Answer) -> bool {
        match answer {
            Answer::JobNotWritten(_, refusal) => refusal.kind == RefusalKind::NotFound,
            Answer::ServiceNotCreated(_, found) => found.is_some(),
            Answer::JobNotCreated { .. } | Answer::ClaimsNotCreated(_) | Answer::Failed(_) => false,
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
            Step::DeleteJobSet { uid } => delete_jobset(pass, &uid).await,
            Step::DeleteJobs(jobs) => pass.for_each(jobs, |job| delete(client.clone(), job)).await,
            Step::CreateJobs(jobs) => pass.for_each(jobs, |job| create(client.clone(), job)).await,
            Step::ResizeJobs(jobs) => {
                let resized = |Resize { job, size }| {
                    let spec = json!({"parallelism": size, "completions": size});
                    patch(client.clone(), job, json!({"spec": spec}))
                };
                pass.for_each(jobs, resized).await
            }
            Step::SuspendJobs(jobs) => {
                let suspended =
                    |job| patch(client.clone(), job, json!({"spec": {"suspend": true}}));
                pass.for_each(jobs, suspended).await
            }
            Step::ClearStartTimes(jobs) => {
                pass.for_each(jobs, |job| clear_start(client.clone(), job)).await
            }
            Step::ResumeJobs(jobs) => {
                let resumed =
                    |Resumption { job, patch: wanted }| patch(client.clone(), job, wanted);
                pass.for_each(jobs, resumed).await
            }
            Step::CreateService(service) => {
                let answer = create_service(client, &service).await;
                pass.tell(answer).await
            }
            Step::Annotate(annotation) => annotate(pass, &annotation).await,
            Step::PutTicket(ticket) => {
                let Some(keys) = pass.shared() else { return true };
                match in_place::put_ticket(client, &pass.key, keys, &ticket).await {
                    Ok(()) => true,
                    Err(refusal) => pass.tell(Answer::Failed(refusal)).await,
                }
            }
            Step::CreateClaims(claims) => {
                let uid = pass.uid();
                let create = |claim| create_claim(client.clone(), uid.to_owned(), claim);
                let mut is_fine = true;
                for answer in create_claims(claims, create).await {
                    is_fine &= pass.tell(answer).await;
                }
                is_fine
            }
            Step::Emit(event) => {
                pass.record(event);
                true
            }
            Step::Note(fact) => {
                pass.metrics().jobsets.note(fact, &pass.key);
                true
            }
        }
    }
}

async fn write_status(pass: &Pass<OfJobSets>, wanted: &StatusWrite) -> bool {
    let Key { namespace, name } = &pass.key;
    let object = (namespace.as_str(), name.as_str(), wanted.uid.as_str());
    let version = &wanted.resource_version;
    let written = write::jobset_status(pass.client(), object, version, &wanted.status);
    pass.tell(match written.await {
        Ok(jobset) => Answer::StatusWritten(Box::new(jobset)),
        Err(error) => Answer::Failed(refusal(&error)),
    })
    .await
}

async fn annotate(pass: &Pass<OfJobSets>, wanted: &Annotation) -> bool {
    let Key { namespace, name } = &pass.key;
    let object = (namespace.as_str(), name.as_str(), wanted.uid.as_str());
    let annotation = (wanted.key.as_str(), wanted.value.as_str());
    let version = &wanted.resource_version;
    let written = write::annotate_jobset(pass.client(), object, version, annotation);
    pass.tell(match written.await {
        Ok(jobset) => Answer::Annotated(Box::new(jobset)),
        Err(error) => Answer::Failed(refusal(&error)),
    })
    .await
}

async fn delete_jobset(pass: &Pass<OfJobSets>, uid: &str) -> bool {
    let Key { namespace, name } = &pass.key;
    match write::delete_whole::<JobSet>(pass.client(), (namespace, name, uid)).await {
        Ok(_) => true,
        Err(error) => pass.tell(Answer::Failed(refusal(&error))).await,
    }
}

async fn create(client: Client, job: Job) -> Vec<Answer> {
    let name = job.metadata.name.clone().unwrap_or_default();
    vec![match create_or_find(&client, &job).await {
        Ok(created) => Answer::JobWritten(created),
        Err((refusal, found)) => Answer::JobNotCreated { name, refusal, found },
    }]
}

async fn create_service(client: &Client, service: &Service) -> Answer {
    match create_or_find(client, service).await {
        Ok(created) => Answer::ServiceCreated(Box::new(created)),
        Err((refusal, found)) => Answer::ServiceNotCreated(refusal, found.map(Box::new)),
    }
}

/// Creates the claims of each policy up to the first that is refused.
async fn create_claims<F>(
    policies: Vec<Vec<PersistentVolumeClaim>>,
    create: impl Fn(PersistentVolumeClaim) -> F,
) -> Vec<Answer>
where
    F: Future<Output = Result<String, Refusal>>,
{
    let mut answers = Vec::new();
    let mut refusals = Vec::new();
    for claims in policies {
        for claim in claims {
            match create(claim).await {
                Ok(name) => answers.push(Answer::ClaimCreated(name)),
                Err(refusal) => {
                    refusals.push(refusal);
                    break;
                }
            }
        }
    }
    if !refusals.is_empty() {
        answers.push(Answer::ClaimsNotCreated(refusals));
    }
    answers
}

/// Creates a claim or finds one that can be used; this is its name.
async fn create_claim(
    client: Client,
    set: String,
    claim: PersistentVolumeClaim,
) -> Result<String, Refusal> {
    let name = claim.metadata.name.clone().unwrap_or_default();
    let Err((refusal, found)) = create_or_find(&client, &claim).await else {
        return Ok(name);
    };
    match found.map(|found| claim_leaving(&found, &set)) {
        Some(None) => Ok(name),
        Some(Some(message)) => Err(Refusal { message, ..refusal }),
        None => Err(refusal),
    }
}

/// Creates an object. If there is one of its name already, that one comes with the refusal, unless
/// it has gone meanwhile.
pub(super) async fn create_or_find<K>(
    client: &Client,
    object: &K,
) -> Result<K, (Refusal, Option<K>)>
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

async fn delete(client: Client, job: JobRef) -> Vec<Answer> {
    vec![match write::delete_whole::<Job>(&client, (&job.namespace, &job.name, &job.uid)).await {
        Ok(Some(left)) => Answer::JobWritten(left),
        Ok(None) => Answer::JobDeleted(job),
        Err(error) => Answer::JobNotWritten(job, refusal(&error)),
    }]
}

async fn patch(client: Client, job: JobRef, patch: Value) -> Vec<Answer> {
    vec![match write::patch_job(&client, (&job.namespace, &job.name, &job.uid), patch).await {
        Ok(patched) => Answer::JobWritten(patched),
        Err(error) => Answer::JobNotWritten(job, refusal(&error)),
    }]
}

async fn clear_start(client: Client, job: JobRef) -> Vec<Answer> {
    vec![match write::clear_job_start(&client, (&job.namespace, &job.name, &job.uid)).await {
        Ok(patched) => Answer::JobWritten(patched),
        Err(error) => Answer::JobNotWritten(job, refusal(&error)),
    }]
}

#[cfg(test)]
mod tests {
    use super::*;

    // rule: jobset 3.10
    #[tokio::test]
    async fn a_refused_claim_holds_up_the_rest_of_its_policy_alone() {
        let claims = |names: &[&str]| {
            let claim = |name: &&str| {
                let claim = json!({"metadata": {"name": name}});
                serde_json::from_value(claim).unwrap()
            };
            names.iter().map(claim).collect::<Vec<PersistentVolumeClaim>>()
        };
        let create = |claim: PersistentVolumeClaim| {
            let message = claim.metadata.name.unwrap_or_default();
            let is_refused = message.starts_with("no");
            let refusal = Refusal { kind: RefusalKind::Other, message: message.clone() };
            std::future::ready(if is_refused { Err(refusal) } else { Ok(message) })
        };
        let policies = vec![claims(&["a", "no-1", "b"]), claims(&["c"]), claims(&["no-2", "d"])];
        let mut told = Vec::new();
        for answer in create_claims(policies, create).await {
            match answer {
                Answer::ClaimCreated(name) => told.push(name),
                Answer::ClaimsNotCreated(refusals) => {
                    told.extend(refusals.into_iter().map(|refusal| refusal.message));
                }
                _ => panic!("claims were asked for"),
            }
        }
        assert_eq!(told, ["a", "c", "no-1", "no-2"]);
        let made = create_claims(vec![claims(&["a"])], create).await;
        assert_eq!(made.len(), 1, "nothing is told of refusals that there were none of");
    }
}
