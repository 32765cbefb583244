//! Suspending the Jobs of a set, and letting them go on with the templates as they are by then.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use lockstep_api::jobset::ReplicatedJob;
use lockstep_api::labels;
use serde_json::{Value, json};

use super::{Bucket, Child, Resumption, Step, Waiting, build, condition, pass::Pass, start};

type Members = serde_json::Map<String, Value>;

/// Labels that the Job controller puts on templates.
const CONTROLLER_LABELS: [&str; 4] = [
    labels::JOB_NAME,
    labels::CONTROLLER_UID,
    labels::LEGACY_JOB_NAME,
    labels::LEGACY_CONTROLLER_UID,
];

/// Suspends what is not.
pub(super) fn suspend(pass: &mut Pass<'_>) {
    let jobs = pass.view.bucket(Bucket::Active).filter(|child| !child.is_suspended());
    let jobs: Vec<_> = jobs.map(Child::reference).collect();
    if !jobs.is_empty() {
        pass.steps.push(Step::SuspendJobs(jobs));
    }
    condition::suspended(pass);
}

/// Lets suspended Jobs go on, as far as order and dependencies allow. What is returned says which
/// one has to wait for its own pods, if one has.
pub(super) fn resume(pass: &mut Pass<'_>) -> Option<Waiting> {
    let is_in_order = pass.is_in_order();
    let jobs = &pass.spec().replicated_jobs;
    let is_ordered = is_in_order || jobs.iter().any(|job| job.depends_on.is_some());
    let is_any = jobs.iter().any(|job| pass.view.counts(&job.name).suspended > 0);
    // Most passes have nothing to resume, and need not look at every Job.
    let suspended: Vec<&Child> = match is_any {
        true => pass.view.bucket(Bucket::Active).filter(|child| child.is_suspended()).collect(),
        false => Vec::new(),
    };
    let (mut clear, mut resume) = (Vec::new(), Vec::new());
    let mut is_starting = false;
    let mut waiting = None;
    for job in jobs {
        if start::unmet(pass, job).is_some() || (is_in_order && pass.is_started(job)) {
            continue;
        }
        let own = suspended.iter().filter(|child| child.group() == Some(job.name.as_str()));
        for child in own {
            // Others wait for what starts: pods of before must not be taken for those to come.
            if is_ordered && child.is_active() {
                waiting.get_or_insert_with(|| Waiting::PodsOfBefore { job: child.name().into() });
                continue;
            }
            // A template may change only while the Job has no start.
            if child.job.status.as_ref().is_some_and(|status| status.start_time.is_some()) {
                clear.push(child.reference());
            } else {
                resume.push(Resumption { job: child.reference(), patch: patch(pass, child, job) });
            }
        }
        if is_in_order {
            is_starting = true;
            break;
        }
    }
    if !clear.is_empty() {
        pass.steps.push(Step::ClearStartTimes(clear));
    }
    if !resume.is_empty() {
        pass.steps.push(Step::ResumeJobs(resume));
    }
    // In order, the set counts as suspended until all of it has started.
    if !is_starting && waiting.is_none() {
        condition::resumed(pass);
    }
    waiting
}

/// The merge patch that lets a Job go on, with what its replicated job now says of its pods, and
/// nothing of what it said before: who is admitted to other nodes must not look for those of the
/// first time. What the set puts on each Job itself stays, and so do the labels of the Job
/// controller. (JobSet keeps everything that only the Job has.)
fn patch(pass: &Pass<'_>, child: &Child, job: &ReplicatedJob) -> Value {
    let index = child.index().and_then(|index| i32::try_from(index).ok()).unwrap_or_default();
    let built = build::job(pass, job, index);
    let said = job.template.spec.as_ref().map(|spec| json(&spec.template)).unwrap_or_default();
    let whole = built.spec.as_ref().map(|spec| json(&spec.template)).unwrap_or_default();
    let there = child.job.spec.as_ref().map(|spec| json(&spec.template)).unwrap_or_default();
    let mut template = json!({});
    for (part, field) in
        [("metadata", "labels"), ("metadata", "annotations"), ("spec", "nodeSelector")]
    {
        let of = |template: &Value| template[part][field].as_object().cloned().unwrap_or_default();
        let changes = changes(&of(&there), &of(&said), &of(&whole));
        if !changes.is_empty() {
            template[part][field] = changes.into();
        }
    }
    for field in ["tolerations", "schedulingGates"] {
        if whole["spec"][field] != there["spec"][field] {
            template["spec"][field] = whole["spec"][field].clone();
        }
    }
    let mut patch = json!({
        "metadata": {"resourceVersion": child.job.metadata.resource_version},
        "spec": {"suspend": false},
    });
    if template.as_object().is_some_and(|template| !template.is_empty()) {
        patch["spec"]["template"] = template;
    }
    patch
}

fn json(template: &PodTemplateSpec) -> Value {
    serde_json::to_value(template).unwrap_or_default()
}

/// What is to be changed of a map so that it says what the template `said`. Members that are not
/// in the `whole` go; those that the set has put there are left as they are.
fn changes(there: &Members, said: &Members, whole: &Members) -> Members {
    let is_ours = |key: &str| whole.contains_key(key) || CONTROLLER_LABELS.contains(&key);
    let stale = there.keys().filter(|key| !is_ours(key)).map(|key| (key.clone(), Value::Null));
    let new = said.iter().filter(|(key, value)| there.get(*key) != Some(value));
    // Where the set says the same key, it counts more than the template.
    let new = new.filter(|(key, value)| whole.get(*key) == Some(value));
    stale.chain(new.map(|(key, value)| (key.clone(), value.clone()))).collect()
}
