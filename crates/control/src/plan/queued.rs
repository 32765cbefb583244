//! Jobs that wait in queues: each has a Workload that asks for all of it, starts when that is
//! admitted, stops when it is evicted, and ends it when it ends itself.
//!
//! [`QueuedJobs`] is the driver that both shells use: what has been seen of jobs, Workloads and
//! what else matters, a work queue, and the results of steps coming back in. A pass over a job
//! writes one thing; what follows from it is planned when that has been seen, so that a crash
//! between two writes changes nothing. What quota there is, and who gets it, is none of the
//! business of this room.

mod build;
mod child;
mod condition;
mod driver;
mod ensure;
mod equivalence;
mod evict;
mod finish;
mod info;
mod key;
mod known;
mod look;
mod managed;
mod object;
mod of_job;
mod of_jobset;
mod orphan;
mod pods_ready;
mod prebuilt;
mod priority;
mod ready;
mod reclaim;
mod retention;
mod start;
mod step;
mod stop;
#[cfg(test)]
mod tests;
mod upkeep;
mod waiting;
#[cfg(test)]
mod world;

use std::time::Duration;

use jiff::Timestamp;
use lockstep_api::kueue::{WaitForPodsReady, Workload};
use lockstep_api::labels;
use lockstep_api::selector::{LabelSelector, Operator, Requirement};

pub use driver::QueuedJobs;
pub use key::{JobKey, Kind};
pub use object::Object;
pub use step::{Patch, Plan, Step, WorkloadRef};
pub use waiting::Waiting;

use known::Known;
use managed::Managed;

/// The component that events of jobs come from.
pub const COMPONENT: &str = "kueue-job-controller";

/// What can be set about jobs that wait in queues.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// What holds for workloads of which nothing else is told ([`QueuedJobs::wait_seen`]); none,
    /// and nobody waits for their pods: `PodsReady` is not written.
    pub wait_for_pods_ready: Option<WaitForPodsReady>,
    /// Whether jobs are queued that name no queue.
    pub manage_without_queue_name: bool,
    /// In which namespaces jobs are queued, by the labels of the namespace.
    pub managed_namespaces: LabelSelector,
    /// Whether Jobs are queued.
    pub jobs: bool,
    /// Whether JobSets are queued.
    pub jobsets: bool,
    /// Labels that Workloads get from their jobs.
    pub label_keys_to_copy: Vec<String>,
    /// How long jobs are kept whose workload was deactivated by a limit; for ever if nothing is
    /// said. How long workloads are kept is not decided here: some have no job.
    pub keep_deactivated: Option<Duration>,
    /// First delay after a pass that failed.
    pub api_backoff_base: Duration,
    /// Longest delay after a pass that failed.
    pub api_backoff_max: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            wait_for_pods_ready: Some(WaitForPodsReady::default()),
            manage_without_queue_name: false,
            managed_namespaces: default_namespaces(),
            jobs: true,
            jobsets: true,
            label_keys_to_copy: Vec::new(),
            keep_deactivated: None,
            api_backoff_base: Duration::from_millis(200),
            api_backoff_max: Duration::from_secs(60),
        }
    }
}

/// All namespaces but those of the system.
fn default_namespaces() -> LabelSelector {
    let system = ["kube-system", "kueue-system"].map(str::to_owned).to_vec();
    let not_system = Requirement::new(labels::NAMESPACE_NAME, Operator::NotIn, system);
    not_system.map_or_else(|_| LabelSelector::everything(), |one| LabelSelector::all_of(vec![one]))
}

/// What one pass over a job that is there is about.
#[derive(Clone, Copy)]
struct Pass<'a> {
    known: &'a Known,
    settings: &'a Settings,
    key: &'a JobKey,
    job: &'a Object,
    now: Timestamp,
}

/// Plans one pass over a job. The order of decisions is that of Kueue's job reconciler.
fn plan(known: &Known, settings: &Settings, key: &JobKey, now: Timestamp) -> Plan {
    if key.kind == Kind::Orphan {
        return orphan::plan(known, key, now);
    }
    let Some(job) = known.job(key).filter(|job| job.meta().deletion_timestamp.is_none()) else {
        return finish::let_go(known, key);
    };
    let pass = Pass { known, settings, key, job, now };
    match managed::decide(&pass) {
        Managed::No(waiting) => managed::drop_workloads(&pass, waiting),
        Managed::Part(of) => child::plan(&pass, &of),
        Managed::Yes => decide(&pass),
    }
}

/// Plans a pass over a job that waits in a queue, or may.
fn decide(pass: &Pass<'_>) -> Plan {
    let workload = match ensure::one(pass) {
        Ok(Some(workload)) => workload,
        Ok(None) => return without_workload(pass),
        Err(plan) => return plan,
    };
    finish::workload_finished(pass, workload)
        .or_else(|| stop::workload_deleted(pass, workload))
        .or_else(|| finish::job_finished(pass, workload))
        .or_else(|| upkeep::follow_class(pass, workload))
        .or_else(|| upkeep::follow_annotations(pass, workload))
        .or_else(|| reclaim::update(pass, workload))
        .or_else(|| pods_ready::update(pass, workload))
        .or_else(|| stop::go_on(pass, workload))
        .or_else(|| evict::complete(pass, workload))
        .or_else(|| start::begin(pass, workload))
        .or_else(|| upkeep::follow_queue(pass, workload))
        .or_else(|| stop::not_admitted(pass, workload))
        .unwrap_or_else(|| rest(pass, workload))
}

/// A job that has no workload gets one, unless it is over or part of it still runs.
fn without_workload(pass: &Pass<'_>) -> Plan {
    if pass.job.finished().is_some() {
        return Plan::wait(Waiting::Finished);
    }
    if evict::is_active(pass, None) {
        return Plan::wait_until(Waiting::PodsActive, evict::look_again(pass.now));
    }
    build::create(pass)
}

/// Nothing is to be done: why, and until when.
fn rest(pass: &Pass<'_>, workload: &Workload) -> Plan {
    let waiting = if pass.job.is_suspended() {
        Waiting::Pending { queue: workload.spec.queue_name.clone() }
    } else if ready::is_ready(pass.job) {
        Waiting::Running
    } else {
        Waiting::PodsNotReady
    };
    Plan { next: pods_ready::next(pass, workload), ..Plan::wait(waiting) }
}
