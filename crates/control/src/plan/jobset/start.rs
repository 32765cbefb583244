//! Which Jobs are made now: what is missing, in the order of the startup policy, each replicated
//! job when those it depends on have come far enough.

use lockstep_api::jobset::{DependsOn, DependsOnStatus, ReplicatedJob, RestartStrategy, names};

use super::{Bucket, Step, Waiting, build, condition, in_place, pass::Pass};

/// Creates what is missing. What is returned says why the set waits, if it does.
pub(super) fn create(pass: &mut Pass<'_>) -> Waiting {
    let holds_back = pass.is_in_order() && !pass.is_suspended();
    let mut jobs = Vec::new();
    let mut waiting = idle(pass);
    let mut starting = None;
    for job in &pass.spec().replicated_jobs {
        if let Some(on) = unmet(pass, job) {
            if waiting == Waiting::Running {
                let (replicated_job, on) = (job.name.clone(), on.name.clone());
                waiting = Waiting::Depending { replicated_job, on };
            }
            continue;
        }
        if holds_back && pass.is_started(job) {
            continue;
        }
        jobs.extend(missing(pass, job).map(|index| build::job(pass, job, index)));
        if holds_back {
            starting = Some(job);
            break;
        }
    }
    if !jobs.is_empty() {
        pass.steps.extend(in_place::ticket(pass));
        pass.steps.push(Step::CreateJobs(jobs));
    }
    match starting {
        Some(job) => {
            condition::starting(pass, &job.name);
            if waiting == Waiting::Running {
                waiting = Waiting::Starting {
                    replicated_job: job.name.clone(),
                    started: pass.started(job),
                    replicas: job.replicas,
                };
            }
        }
        None if holds_back => condition::started(pass),
        None => {}
    }
    waiting
}

/// Whether a Job is missing that may be created.
pub(super) fn can_create(pass: &Pass<'_>) -> bool {
    let jobs = pass.spec().replicated_jobs.iter();
    let mut open = jobs.filter(|job| unmet(pass, job).is_none());
    open.any(|job| missing(pass, job).next().is_some())
}

/// The first dependency of a replicated job that has not come far enough.
pub(super) fn unmet<'a>(pass: &Pass<'_>, job: &'a ReplicatedJob) -> Option<&'a DependsOn> {
    job.depends_on.iter().flatten().find(|wanted| !is_met(pass, wanted))
}

fn is_met(pass: &Pass<'_>, wanted: &DependsOn) -> bool {
    let mut jobs = pass.spec().replicated_jobs.iter();
    let Some(job) = jobs.find(|job| job.name == wanted.name) else { return false };
    match wanted.status {
        DependsOnStatus::Ready => pass.is_started(job),
        DependsOnStatus::Complete => pass.view.counts(&job.name).succeeded == job.replicas,
        DependsOnStatus::Unknown => false,
    }
}

/// The indexes of a replicated job that have no Job, of any attempt.
fn missing<'a>(pass: &'a Pass<'_>, job: &'a ReplicatedJob) -> impl Iterator<Item = i32> + 'a {
    let policy = pass.spec().failure_policy.as_ref();
    let strategy = policy.and_then(|policy| policy.restart_strategy);
    let is_blocked =
        strategy == Some(RestartStrategy::BlockingRecreate) && pass.view.size(Bucket::Previous) > 0;
    let is_whole = pass.view.known(&job.name) >= job.replicas;
    let indexes = if is_blocked || is_whole { 0..0 } else { 0..job.replicas };
    let jobset = pass.jobset().metadata.name.as_deref().unwrap_or_default();
    indexes.filter(move |index| {
        pass.view.child(&names::job(jobset, &job.name, i64::from(*index))).is_none()
    })
}

/// Why the set waits when nothing is missing.
fn idle(pass: &Pass<'_>) -> Waiting {
    match pass.view.size(Bucket::Previous) {
        _ if pass.is_suspended() => Waiting::Suspended,
        0 => Waiting::Running,
        total => Waiting::JobsTerminating { total },
    }
}
