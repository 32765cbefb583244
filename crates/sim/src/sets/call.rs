//! Requests of a JobSet controller: what a step comes to.

use k8s_openapi::api::{batch::v1::Job, core::v1::Service};
use lockstep_api::strategy::Propagation;
use lockstep_control::plan::{
    Key,
    jobset::{JobRef, Resize, Resumption, StatusWrite, Step},
};
use lockstep_store::patch::Patch;
use serde_json::{Value, json};

use crate::{
    api::{Api, Kind},
    check::Violation,
    controller::{self, Answer, request},
};

/// One request.
pub(crate) enum Call {
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

/// Cuts a step into requests, which are one group.
pub(super) fn cut(step: Step) -> Result<Vec<Call>, Violation> {
    Ok(match step {
        Step::WriteStatus(write) => vec![Call::WriteStatus(write)],
        Step::DeleteJobs(jobs) => jobs.into_iter().map(Call::DeleteJob).collect(),
        Step::DeleteJobSet { uid } => vec![Call::DeleteSet { uid }],
        Step::CreateService(service) => vec![Call::CreateService(service)],
        Step::CreateClaims(claims) if claims.is_empty() => Vec::new(),
        Step::CreateClaims(_) => {
            return Err(Violation("claims are made that nobody asked for".to_owned()));
        }
        Step::Annotate(_) | Step::PutTicket(_) => {
            return Err(Violation("nobody asked for restarts in place".to_owned()));
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
    })
}

impl controller::Call for Call {
    fn send(&self, api: &mut Api, key: &Key) -> Answer {
        let set = (Kind::JobSet, &*key.name);
        let foreground = Some(Propagation::Foreground);
        match self {
            Self::WriteStatus(write) => {
                let version = (&*write.uid, &*write.resource_version);
                request::write_status(api, set, version, &write.status)
            }
            Self::DeleteJob(job) => {
                request::delete(api, (Kind::Job, &job.name), &job.uid, foreground)
            }
            Self::DeleteSet { uid } => request::delete(api, set, uid, foreground),
            Self::CreateService(service) => request::create(api, Kind::Service, service),
            Self::CreateJob(job) => request::create(api, Kind::Job, job),
            Self::PatchJob(job, patch) => send_patch(api, job, None, patch.clone()),
            Self::ClearStart(job) => {
                send_patch(api, job, Some("status"), json!({"status": {"startTime": null}}))
            }
        }
    }

    fn target<'a>(&'a self, _api: &Api, key: &'a Key) -> Option<(Kind, &'a str)> {
        match self {
            Self::WriteStatus(_) | Self::DeleteSet { .. } => Some((Kind::JobSet, &key.name)),
            Self::DeleteJob(job) | Self::PatchJob(job, _) | Self::ClearStart(job) => {
                Some((Kind::Job, &job.name))
            }
            Self::CreateService(_) | Self::CreateJob(_) => None,
        }
    }

    /// The template of a Job that runs cannot change: one that is to go on may have to wait until
    /// its suspension is known.
    fn may_wait(&self) -> bool {
        matches!(self, Self::PatchJob(..) | Self::ClearStart(_))
    }

    fn told(&self, _key: &Key) -> String {
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

/// Sends a merge patch to the Job that has this uid, no other of its name.
fn send_patch(api: &mut Api, job: &JobRef, sub: Option<&str>, mut patch: Value) -> Answer {
    patch["metadata"]["uid"] = json!(job.uid);
    let patch = Patch::merge(patch.to_string().as_bytes())?;
    api.patch(Kind::Job, sub, &job.name, &patch).map(Some)
}
