//! Requests of a JobSet controller: what a step comes to, and what comes back.

use std::{collections::VecDeque, sync::Arc};

use k8s_openapi::api::{batch::v1::Job, core::v1::Service};
use lockstep_api::{Status, json, strategy::Propagation};
use lockstep_control::plan::{
    RefusalKind,
    jobset::{JobRef, Resize, Resumption, StatusWrite, Step},
};
use lockstep_store::{Object, patch::Patch, rest::DeleteOptions};
use serde::Serialize;
use serde_json::{Value, json};

use super::{ACTOR, SetController};
use crate::{
    api::{Api, Kind, map},
    check::Violation,
    cluster::Cluster,
    controller::call::{note, refusal},
    faults::{Faults, Trouble},
};

/// One request.
#[derive(Clone, Debug)]
pub(super) enum Call {
    WriteStatus(Box<StatusWrite>),
    DeleteJob(JobRef),
    DeleteSet {
        uid: String,
    },
    CreateService(Box<Service>),
    CreateJob(Box<Job>),
    /// Sends a merge patch.
    PatchJob(JobRef, Value),
    ClearStart(JobRef),
}

/// Cuts steps into requests, each with the number of its group: what is after the group of a
/// request that failed is not tried.
pub(super) fn cut(steps: Vec<Step>) -> Result<VecDeque<(usize, Call)>, Violation> {
    let mut calls = VecDeque::new();
    for (group, step) in steps.into_iter().enumerate() {
        let more: Vec<Call> = match step {
            Step::WriteStatus(write) => vec![Call::WriteStatus(write)],
            Step::DeleteJobs(jobs) => jobs.into_iter().map(Call::DeleteJob).collect(),
            Step::DeleteJobSet { uid } => vec![Call::DeleteSet { uid }],
            Step::CreateService(service) => vec![Call::CreateService(service)],
            Step::CreateClaims(claims) if claims.is_empty() => Vec::new(),
            Step::CreateClaims(_) => {
                return Err(Violation("claims are made that nobody asked for".to_owned()));
            }
            Step::ResizeJobs(jobs) => {
                let resize = |Resize { job, size }| {
                    let spec = json!({"parallelism": size, "completions": size});
                    Call::PatchJob(job, json!({"spec": spec}))
                };
                jobs.into_iter().map(resize).collect()
            }
            Step::CreateJobs(jobs) => {
                jobs.into_iter().map(|job| Call::CreateJob(Box::new(job))).collect()
            }
            Step::SuspendJobs(jobs) => {
                let patch = json!({"spec": {"suspend": true}});
                jobs.into_iter().map(|job| Call::PatchJob(job, patch.clone())).collect()
            }
            Step::ClearStartTimes(jobs) => jobs.into_iter().map(Call::ClearStart).collect(),
            Step::ResumeJobs(jobs) => {
                let resume = |Resumption { job, patch }| Call::PatchJob(job, patch);
                jobs.into_iter().map(resume).collect()
            }
            Step::Emit(_) | Step::Note(_) => Vec::new(),
        };
        calls.extend(more.into_iter().map(|call| (group, call)));
    }
    Ok(calls)
}

/// A Service, as its kind.
pub(super) fn service(object: &Object) -> Service {
    serde_json::from_slice(&object.body).expect("the API has accepted it as its kind")
}

impl SetController {
    /// Sends one request and reports what became of it; whether it failed.
    pub(super) fn call(
        &mut self,
        cluster: &mut Cluster,
        faults: &mut Faults,
        call: Call,
    ) -> Result<bool, Violation> {
        let trouble = faults.request();
        if trouble == Trouble::Conflict {
            self.disturb(&mut cluster.api, &call);
        }
        let answer = match trouble {
            Trouble::None | Trouble::Conflict => self.send(&mut cluster.api, &call),
            Trouble::Refused => Err(Status::internal("connection refused")),
            Trouble::Unanswered => {
                let _ = self.send(&mut cluster.api, &call);
                Err(Status::internal("connection lost"))
            }
            Trouble::Twice => {
                let _ = self.send(&mut cluster.api, &call);
                self.send(&mut cluster.api, &call)
            }
        };
        let number = self.number;
        cluster.say(ACTOR, || {
            let said = match &answer {
                Ok(object) => format!("ok, @{}", object.revision()),
                Err(status) => format!("{} {}", status.code, status.message),
            };
            let is_fine = trouble == Trouble::None;
            let how = if is_fine { String::new() } else { format!(" [{trouble:?}]") };
            format!("{number}{how} {said}: {}", call.told())
        });
        if let Err(status) = &answer
            && is_refused_for_good(status, &call)
        {
            return Err(Violation(format!("the API refuses to {}: {status}", call.told())));
        }
        Ok(self.report(cluster, &call, answer))
    }

    fn send(&self, api: &mut Api, call: &Call) -> Result<Arc<Object>, Status> {
        match call {
            Call::WriteStatus(write) => {
                let name = self.set_name();
                api.edit(Kind::JobSet, Some("status"), name, |set| {
                    let meta = json::object_mut(set, "metadata");
                    meta.insert("uid".to_owned(), json!(write.uid));
                    meta.insert("resourceVersion".to_owned(), json!(write.resource_version));
                    let status = serde_json::to_value(&write.status);
                    let status = status.expect("a status can be written");
                    set.insert("status".to_owned(), status);
                })
            }
            Call::DeleteJob(job) => delete(api, Kind::Job, &job.name, &job.uid),
            Call::DeleteSet { uid } => delete(api, Kind::JobSet, self.set_name(), uid),
            Call::CreateService(service) => create(api, Kind::Service, service),
            Call::CreateJob(job) => create(api, Kind::Job, job),
            Call::PatchJob(job, patch) => {
                let mut patch = patch.clone();
                patch["metadata"]["uid"] = json!(job.uid);
                let patch = Patch::merge(patch.to_string().as_bytes())?;
                api.patch(Kind::Job, None, &job.name, &patch)
            }
            Call::ClearStart(job) => {
                let patch = json!({"metadata": {"uid": job.uid}, "status": {"startTime": null}});
                let patch = Patch::merge(patch.to_string().as_bytes())?;
                api.patch(Kind::Job, Some("status"), &job.name, &patch)
            }
        }
    }

    /// Tells the driver what became of a request; whether it failed.
    fn report(
        &mut self,
        cluster: &mut Cluster,
        call: &Call,
        answer: Result<Arc<Object>, Status>,
    ) -> bool {
        let (now, api) = (cluster.now(), &mut cluster.api);
        let Some(key) = self.pass.as_ref().map(|pass| pass.key.clone()) else { return false };
        let sets = &mut self.sets;
        match (call, answer.map_err(|status| refusal(&status))) {
            (Call::WriteStatus(_), Ok(object)) => {
                sets.status_written(&key, &api.jobset(&object));
                false
            }
            (Call::DeleteSet { .. }, Ok(_)) => false,
            (Call::WriteStatus(_) | Call::DeleteSet { .. }, Err(refusal)) => {
                sets.failed(&key, &refusal, now);
                true
            }
            (Call::DeleteJob(job), Ok(object)) => {
                let is_left = api.get(Kind::Job, &job.name).is_some_and(|left| {
                    left.meta.uid == object.meta.uid && left.meta.is_deleting()
                });
                match is_left {
                    true => sets.job_written(&key, (*api.job(&object)).clone(), now),
                    false => sets.job_deleted(job, now),
                }
                false
            }
            (Call::CreateJob(_) | Call::PatchJob(..) | Call::ClearStart(_), Ok(object)) => {
                sets.job_written(&key, (*api.job(&object)).clone(), now);
                false
            }
            (Call::CreateJob(job), Err(refusal)) => {
                let name = job.metadata.name.as_deref().unwrap_or_default();
                let is_there = refusal.kind == RefusalKind::AlreadyExists;
                let found = api.get(Kind::Job, name).cloned().filter(|_| is_there);
                let found = found.map(|job| (*api.job(&job)).clone());
                sets.job_not_created(&key, &refusal, found, now);
                true
            }
            (
                Call::DeleteJob(job) | Call::PatchJob(job, _) | Call::ClearStart(job),
                Err(refusal),
            ) => {
                sets.job_not_written(&key, job, &refusal, now);
                refusal.kind != RefusalKind::NotFound
            }
            (Call::CreateService(_), Ok(object)) => {
                sets.service_created(&service(&object));
                false
            }
            (Call::CreateService(wanted), Err(refusal)) => {
                let name = wanted.metadata.name.as_deref().unwrap_or_default();
                let is_there = refusal.kind == RefusalKind::AlreadyExists;
                let found = api.get(Kind::Service, name).filter(|_| is_there);
                let found = found.map(|object| service(object));
                let is_found = found.is_some();
                drop(sets.service_not_created(&key, &refusal, found.as_ref()));
                !is_found
            }
        }
    }

    fn disturb(&self, api: &mut Api, call: &Call) {
        match call {
            Call::WriteStatus(_) | Call::DeleteSet { .. } => {
                note(api, Kind::JobSet, self.set_name());
            }
            Call::DeleteJob(job) | Call::PatchJob(job, _) | Call::ClearStart(job) => {
                note(api, Kind::Job, &job.name);
            }
            Call::CreateService(_) | Call::CreateJob(_) => {}
        }
    }

    fn set_name(&self) -> &str {
        self.pass.as_ref().map(|pass| pass.key.name.as_str()).unwrap_or_default()
    }
}

impl Call {
    fn told(&self) -> String {
        match self {
            Self::WriteStatus(write) => {
                let status = serde_json::to_string(&write.status).unwrap_or_default();
                format!("writes status over @{} {status}", write.resource_version)
            }
            Self::DeleteJob(job) => format!("deletes Job {}", job.name),
            Self::DeleteSet { .. } => "deletes the set, which has been kept enough".to_owned(),
            Self::CreateService(_) => "creates the Service".to_owned(),
            Self::CreateJob(job) => {
                format!("creates Job {}", job.metadata.name.as_deref().unwrap_or_default())
            }
            Self::PatchJob(job, patch) => format!("patches Job {} by {patch}", job.name),
            Self::ClearStart(job) => format!("clears the start of Job {}", job.name),
        }
    }
}

/// Whether to ask again would change nothing. The template of a Job that runs cannot change: one
/// that is to go on may have to wait until its suspension is known.
fn is_refused_for_good(status: &Status, call: &Call) -> bool {
    let may_wait = matches!(call, Call::PatchJob(..) | Call::ClearStart(_));
    status.code == 400 || (status.code == 422 && !may_wait)
}

fn create(api: &mut Api, kind: Kind, object: &impl Serialize) -> Result<Arc<Object>, Status> {
    let mut object = map(serde_json::to_value(object).expect("an object can be written"));
    object.remove("apiVersion");
    object.remove("kind");
    api.create(kind, object)
}

fn delete(api: &mut Api, kind: Kind, name: &str, uid: &str) -> Result<Arc<Object>, Status> {
    let (uid, propagation) = (Some(uid.to_owned()), Some(Propagation::Foreground));
    api.delete(kind, name, &DeleteOptions { uid, propagation, ..DeleteOptions::default() })
}
