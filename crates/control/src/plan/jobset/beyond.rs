//! What a JobSet's status keeps beyond what JobSet has: how often each rule has restarted
//! something, which ended Jobs their own time to live takes away, and what led to the last
//! restarts.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use lockstep_api::{
    jobset::{
        EndedJobs, FailurePolicyRule, JobSet, JobSetStatus, ReplicatedJob, RestartRecord, names,
    },
    labels::jobset as keys,
    reasons::jobset as reasons,
};

use super::{Bucket, Child, Outcome, condition, failure, group, pass::Pass};
use crate::plan::job::Indexes;

/// How many restarts are remembered.
const RESTARTS_MAX: usize = 16;

/// How often a rule may restart something, if the set says so.
pub(super) fn limit(pass: &Pass<'_>, rule: &FailurePolicyRule) -> Option<i32> {
    let annotations = pass.jobset().metadata.annotations.as_ref()?;
    annotations.get(&format!("{}{}", keys::RESTARTS_MAX_PREFIX, rule.name))?.parse().ok()
}

/// How often a rule has restarted something.
pub(super) fn restarts(pass: &Pass<'_>, rule: &FailurePolicyRule) -> i32 {
    let kept = pass.status().lockstep.as_ref();
    kept.and_then(|kept| kept.rule_restarts.get(&rule.name).copied()).unwrap_or_default()
}

/// Notes a restart: which rule, what was done, and because of which Job.
pub(super) fn restarted(
    pass: &mut Pass<'_>,
    rule: Option<&FailurePolicyRule>,
    action: &str,
    job: &Child,
) {
    let (reason, message) = match &job.outcome {
        Outcome::Failed { reason, message, .. } => (reason.clone(), message.clone()),
        Outcome::Running | Outcome::Complete => Default::default(),
    };
    let record = RestartRecord {
        attempt: pass.view.status().restarts,
        time: Some(Time(condition::whole_second(pass.now))),
        rule: rule.map(|rule| rule.name.clone()).unwrap_or_default(),
        action: action.to_owned(),
        job: job.name().to_owned(),
        reason,
        message,
    };
    let kept = pass.status_mut().lockstep.get_or_insert_default();
    if let Some(rule) = rule {
        *kept.rule_restarts.entry(rule.name.clone()).or_default() += 1;
    }
    remember(pass, record);
}

/// Notes that all Jobs are made anew because workers could not be restarted in place: the Job of
/// the one that failed last, the worker, and what happened to it.
pub(super) fn recreated(pass: &mut Pass<'_>, (job, worker, cause): (String, String, String)) {
    let record = RestartRecord {
        attempt: pass.view.status().restarts,
        time: Some(Time(condition::whole_second(pass.now))),
        action: "Recreate".to_owned(),
        message: format!("{worker} {cause}").trim().to_owned(),
        reason: reasons::IN_PLACE_RESTART_FAILED.to_owned(),
        job,
        ..RestartRecord::default()
    };
    remember(pass, record);
}

fn remember(pass: &mut Pass<'_>, record: RestartRecord) {
    let kept = pass.status_mut().lockstep.get_or_insert_default();
    kept.last_restarts.push(record);
    let old = kept.last_restarts.len().saturating_sub(RESTARTS_MAX);
    kept.last_restarts.drain(..old);
}

/// Notes the Jobs that have ended in this attempt and that their own time to live takes away, so
/// that they count when they are gone, whoever has to count them then.
pub(super) fn note_ended(pass: &mut Pass<'_>) {
    let mut ended: BTreeMap<&str, (Indexes, Indexes)> = BTreeMap::new();
    // What a set has failed of is left as it is, too.
    let is_over = condition::finished(pass.status()).is_some();
    for child in pass.view.fleeting() {
        let index = child.index().and_then(|index| i32::try_from(index).ok());
        let (Some(name), Some(index)) = (child.group(), index) else { continue };
        let (succeeded, failed) = ended.entry(name).or_default();
        match child.bucket(pass.jobset(), pass.status(), pass.options.gates) {
            Ok(Bucket::Successful) => drop(succeeded.insert(index)),
            Ok(Bucket::Failed) if is_over || failure::is_left(pass.view, child) => {
                failed.insert(index);
            }
            Ok(Bucket::Failed | Bucket::Active | Bucket::Previous) | Err(_) => {}
        }
    }
    ended.retain(|_, (succeeded, failed)| !succeeded.is_empty() || !failed.is_empty());
    let ended: Vec<EndedJobs> = ended
        .into_iter()
        .map(|(name, (succeeded, failed))| EndedJobs {
            name: name.to_owned(),
            succeeded: succeeded.to_string(),
            failed: failed.to_string(),
        })
        .collect();
    let kept = pass.status().lockstep.as_ref();
    if kept.map(|kept| kept.ended_jobs.as_slice()).unwrap_or_default() != ended {
        pass.status_mut().lockstep.get_or_insert_default().ended_jobs = ended;
    }
}

/// The Jobs of this attempt that the status says have ended, as far as it can tell.
pub(super) fn ended(jobset: &JobSet, status: &JobSetStatus) -> Vec<Child> {
    let entries = status.lockstep.iter().flat_map(|kept| &kept.ended_jobs);
    let mut children = Vec::new();
    for entry in entries {
        let mut jobs = jobset.spec.replicated_jobs.iter();
        let Some(job) = jobs.find(|job| job.name == entry.name) else { continue };
        for (list, is_complete) in [(&entry.succeeded, true), (&entry.failed, false)] {
            let indexes = Indexes::parse(list, job.replicas);
            let indexes: Vec<i32> = indexes.iter().collect();
            children.extend(
                indexes.into_iter().map(|index| gone(jobset, status, (job, index), is_complete)),
            );
        }
    }
    children
}

/// A Job of this attempt that is no longer there.
fn gone(
    jobset: &JobSet,
    status: &JobSetStatus,
    (job, index): (&ReplicatedJob, i32),
    is_complete: bool,
) -> Child {
    let meta = &jobset.metadata;
    let at = usize::try_from(index).unwrap_or_default();
    let own = group::restarts_of(jobset, status, &job.name, at).unwrap_or_default();
    let labels = [
        (keys::REPLICATED_JOB_NAME, job.name.clone()),
        (keys::JOB_INDEX, index.to_string()),
        (keys::RESTART_ATTEMPT, status.restarts.to_string()),
        (keys::JOB_RESTART_ATTEMPT, own.to_string()),
    ];
    let name = names::job(meta.name.as_deref().unwrap_or_default(), &job.name, index.into());
    let metadata = ObjectMeta {
        name: Some(name),
        namespace: meta.namespace.clone(),
        labels: Some(labels.map(|(key, value)| (key.to_owned(), value)).into()),
        ..ObjectMeta::default()
    };
    let job = Job { metadata, ..Job::default() };
    let left = Outcome::Failed { reason: String::new(), message: String::new(), at: None };
    let outcome = if is_complete { Outcome::Complete } else { left };
    Child { job: Arc::new(job), outcome, is_ready: false, is_gone: true, is_left: !is_complete }
}
