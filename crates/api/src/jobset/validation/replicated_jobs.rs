//! What the groups of Jobs may look like.

use super::label;
use crate::{
    field::{ErrorList, FieldError, Path},
    gates::Gates,
    jobset::{JobSetSpec, ReplicatedJob, RestartStrategy, names},
};

const GROUP_NAME: &str =
    ".spec.replicatedJob[].groupName is too long, must be less than 63 characters";
const JOB_NAME: &str =
    "JobSet name is too long, job names generated for this JobSet will exceed 63 characters";
const POD_NAME: &str =
    "JobSet name is too long, pod names generated for this JobSet will exceed 63 characters";

/// Whether containers are restarted in place.
pub(super) fn is_in_place(spec: &JobSetSpec) -> bool {
    let strategy = spec.failure_policy.as_ref().and_then(|policy| policy.restart_strategy);
    strategy == Some(RestartStrategy::InPlaceRestart)
}

/// Says what is wrong with replicated jobs.
pub(super) fn validate(jobset: &str, spec: &JobSetSpec, gates: Gates) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("spec").child("replicatedJobs");
    for (i, job) in spec.replicated_jobs.iter().enumerate() {
        let path = path.index(i);
        errors.extend(validate_size(job));
        errors.extend(label(
            &path.child("groupName"),
            &job.group_name,
            &job.group_name,
            GROUP_NAME,
        ));
        errors.extend(validate_names(jobset, job, &path.child("name")));
        // The own name is known by now: a group that waits for itself is taken, and never starts.
        let known = &spec.replicated_jobs[..=i];
        for wanted in job.depends_on.iter().flatten() {
            if !known.iter().any(|one| one.name == wanted.name) {
                errors.push(FieldError::internal(&format!(
                    "replicatedJob: {} cannot depend on replicatedJob: {}",
                    job.name, wanted.name
                )));
            }
        }
        if gates.in_place_restart && is_in_place(spec) {
            errors.extend(validate_in_place(job, &path.child("template").child("spec")));
        }
    }
    errors
}

fn validate_size(job: &ReplicatedJob) -> Option<FieldError> {
    let parallelism = job.template.spec.as_ref().and_then(|spec| spec.parallelism).unwrap_or(1);
    let pods = i64::from(parallelism) * i64::from(job.replicas);
    (pods > i64::from(i32::MAX)).then(|| {
        FieldError::internal(&format!(
            "the product of replicas and parallelism must not exceed {} for replicatedJob '{}'",
            i32::MAX,
            job.name
        ))
    })
}

/// The longest names of Jobs and pods must still be labels.
fn validate_names(jobset: &str, job: &ReplicatedJob, path: &Path) -> ErrorList {
    let last = i64::from(job.replicas) - 1;
    let longest = names::job(jobset, &job.name, last);
    let mut errors = label(path, &longest, &longest, JOB_NAME);
    let spec = job.template.spec.as_ref();
    let is_indexed = spec.and_then(|s| s.completion_mode.as_deref()) == Some("Indexed");
    let completions = spec.and_then(|spec| spec.completions).filter(|_| is_indexed);
    if let Some(completions) = completions {
        let pod = names::pod(jobset, &job.name, last, i64::from(completions) - 1);
        errors.extend(label(path, &longest, &format!("{pod}-abcde"), POD_NAME));
    }
    errors
}

fn validate_in_place(job: &ReplicatedJob, path: &Path) -> ErrorList {
    let name = &job.name;
    let spec = job.template.spec.clone().unwrap_or_default();
    let mut errors = ErrorList::new();
    if spec.backoff_limit != Some(i32::MAX) {
        let why = format!(
            "replicatedJob {name}: must be set to {} (MaxInt32) when in-place restart is enabled",
            i32::MAX
        );
        errors.push(FieldError::invalid(&path.child("backoffLimit"), spec.backoff_limit, &why));
    }
    if spec.pod_replacement_policy.as_deref() != Some("Failed") {
        let why =
            format!("replicatedJob {name}: must be set to Failed when in-place restart is enabled");
        let path = path.child("podReplacementPolicy");
        errors.push(FieldError::invalid_json(&path, &spec.pod_replacement_policy, &why));
    }
    if spec.completions.is_none() || spec.completions != spec.parallelism {
        let why = format!(
            "replicatedJob {name}: completions and parallelism must be set and equal to each \
             other when in-place restart is enabled"
        );
        errors.push(FieldError::invalid(&path.child("completions"), spec.completions, &why));
    }
    errors
}
