//! Why a run failed, on a card: which pod, how it ended, what it wrote last, which rule decided.

mod set;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::{
    ends::End,
    job::{self, Job},
    model::{ContainerId, Model},
    pod::{Phase, Pod},
    session::Tails,
    style::{Paint, Tone},
};
use crate::queueing::workload::{State, Workload};

/// How many reasons are shown for which pods did not get ready.
const TROUBLES_MAX: usize = 3;

/// How many pods of a Job are shown.
const PODS_MAX: usize = 3;

/// What is known of pods that does not stand in them.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    /// What containers wrote last.
    pub(crate) tails: Tails,
    /// What events say about the end of containers, by the uid of their pod.
    pub(crate) causes: BTreeMap<String, Vec<String>>,
}

/// The cards of everything that failed or cannot go on.
pub(crate) fn lines(model: &Model, evidence: &Evidence, paint: Paint) -> Vec<String> {
    let mut lines = Vec::new();
    for set in model.sets.values() {
        set::card(model, set, evidence, paint, &mut lines);
    }
    for job in model.lone_jobs() {
        match job.phase {
            job::Phase::Complete => {}
            job::Phase::Failed => failed(model, job, evidence, paint, &mut lines),
            job::Phase::Gone => lines.push(head(&format!("job/{} was deleted", job.name), paint)),
            _ => {
                let why = model.why_waits(job).unwrap_or_else(|| "is not finished".to_owned());
                lines.push(head(&format!("job/{} cannot go on", job.name), paint));
                lines.push(field("because", &why));
                queued(model, model.workload_of_job(job), &mut lines);
            }
        }
    }
    for pod in model.bare_pods().filter(|pod| pod.phase != Phase::Succeeded) {
        let what = if pod.phase == Phase::Failed { "failed" } else { "cannot go on" };
        lines.push(head(&format!("pod/{} {what}", pod.name), paint));
        if pod.phase != Phase::Failed {
            lines.push(field("because", &pod.words()));
        }
        ended(pod, evidence, &mut lines);
    }
    lines
}

/// The pods the cards show that ended, or were ended.
pub(crate) fn pods(model: &Model) -> Vec<&Pod> {
    let of_sets = model.sets.values().filter_map(|set| set::job_to_blame(model, set));
    let of_jobs = model.lone_jobs().filter(|job| job.phase == job::Phase::Failed).chain(of_sets);
    let of_jobs = of_jobs.flat_map(|job| culprits(model, job).0);
    let bare = model.bare_pods().filter(|pod| pod.phase == Phase::Failed);
    of_jobs.chain(bare).collect()
}

/// The containers whose last lines the cards show, as far as there are any.
pub(crate) fn containers(model: &Model) -> Vec<ContainerId> {
    let of_pod = |pod: &Pod| -> Vec<ContainerId> {
        pod.ends.iter().chain(&pod.ends_before).map(|end| id(pod, end)).collect()
    };
    let mut containers: Vec<ContainerId> = pods(model).into_iter().flat_map(of_pod).collect();
    containers.dedup();
    containers
}

fn id(pod: &Pod, end: &End) -> ContainerId {
    ContainerId {
        namespace: pod.namespace.clone(),
        pod: pod.name.clone(),
        uid: pod.uid.clone(),
        name: end.container.clone(),
    }
}

/// What else is known of a job that a queue does not start: how often it was tried, and what would
/// help.
fn queued(model: &Model, workload: Option<&Workload>, lines: &mut Vec<String>) {
    let Some(workload) = workload else { return };
    if let Some(often) = workload.evictions_words() {
        lines.push(field("evicted", &often));
        let mut label = "pods";
        for words in model.troubles_before(workload).into_iter().take(TROUBLES_MAX) {
            lines.push(field(label, words));
            label = "";
        }
    }
    let change = match workload.state() {
        State::Pending if model.is_private() => workload.remedy_in_files(),
        State::Pending => workload.remedy(None),
        // In a cluster that ends with the run there is nothing to go on with.
        State::Deactivated if !model.is_private() => Some(workload.reactivation()),
        _ => None,
    };
    lines.extend(change.map(|change| field("to go on", &change)));
}

fn failed(model: &Model, job: &Job, evidence: &Evidence, paint: Paint, lines: &mut Vec<String>) {
    lines.push(head(&format!("job/{} failed: {}", job.name, job.why.reason), paint));
    lines.push(field("rule", &rule(job)));
    blame(model, job, evidence, lines);
}

/// The pods that made a Job fail, and how they ended.
fn blame(model: &Model, job: &Job, evidence: &Evidence, lines: &mut Vec<String>) {
    let (pods, others) = culprits(model, job);
    for pod in pods {
        let index = pod.index.map(|index| format!(", index {index}")).unwrap_or_default();
        let node = match pod.node.as_str() {
            "" => String::new(),
            node => format!(", on node {node}"),
        };
        lines.push(field("pod", &format!("{}{index}{node}", pod.name)));
        ended(pod, evidence, lines);
    }
    if others > 0 {
        lines.push(field("", &format!("and {others} more pods failed")));
    }
}

/// How the containers of a pod ended, by whom, and their last lines.
fn ended(pod: &Pod, evidence: &Evidence, lines: &mut Vec<String>) {
    if !pod.reason.is_empty() {
        lines.push(field("because", &pod.reason));
    }
    for cause in evidence.causes.get(&pod.uid).into_iter().flatten() {
        lines.push(field("because", cause));
    }
    if pod.restarts > 0 {
        lines.push(field("restarts", &pod.restarts.to_string()));
    }
    let is_told = |end: &&End| pod.ends.iter().all(|told| told.container != end.container);
    let before = pod.ends_before.iter().filter(is_told);
    let before = before.map(|end| (end, format!("{}, before its last start", end.words())));
    for (end, words) in pod.ends.iter().map(|end| (end, end.words())).chain(before) {
        lines.push(field("ended", &words));
        let mut label = "log";
        for line in evidence.tails.get(&id(pod, end)).into_iter().flatten() {
            lines.push(field(label, &format!("| {line}")));
            label = "";
        }
    }
}

/// Which rule of the manifest decided, and in whose words.
fn rule(job: &Job) -> String {
    let job::Why { reason, message } = &job.why;
    let limit = |name: &str| format!("spec.{name} {}: {message}", job.rules[name]);
    match reason.as_str() {
        "PodFailurePolicy" => match message.rsplit_once("rule at index ") {
            Some((_, index)) => format!("spec.podFailurePolicy.rules[{index}]: {message}"),
            None => message.clone(),
        },
        "BackoffLimitExceeded" => limit("backoffLimit"),
        "DeadlineExceeded" => limit("activeDeadlineSeconds"),
        "MaxFailedIndexesExceeded" => limit("maxFailedIndexes"),
        "FailedIndexes" => limit("backoffLimitPerIndex"),
        _ => message.clone(),
    }
}

/// The pods to blame, those first that the decision names or that failed first, and how many more
/// failed.
fn culprits<'a>(model: &'a Model, job: &Job) -> (Vec<&'a Pod>, usize) {
    let mut failed: Vec<&Pod> = model
        .pods_of(job)
        .filter(|pod| pod.phase == Phase::Failed && !is_bystander(pod, job))
        .collect();
    let is_named = |pod: &Pod| {
        let name = format!("{}/{}", pod.namespace, pod.name);
        job.why.message.split(' ').any(|word| word == name)
    };
    failed.sort_by_key(|pod| (!is_named(pod), pod.ended, pod.name.clone()));
    if failed.is_empty() {
        // Restarts count as failures too; the pod is ended when there were too many.
        failed = model.pods_of(job).filter(|pod| pod.restarts > 0).collect();
        failed.sort_by_key(|pod| (-pod.restarts, pod.name.clone()));
    }
    let others = failed.len().saturating_sub(PODS_MAX);
    failed.truncate(PODS_MAX);
    (failed, others)
}

/// Whether a pod only failed because the Job did: it was asked to end. When time was up, those are
/// the ones that took too long.
fn is_bystander(pod: &Pod, job: &Job) -> bool {
    let is_asked = pod.is_deleting && pod.ends.iter().all(|end| matches!(end.code, 137 | 143));
    is_asked && job.why.reason != "DeadlineExceeded"
}

fn head(text: &str, paint: Paint) -> String {
    paint.text(Tone::Bad, text)
}

fn field(label: &str, text: &str) -> String {
    format!("  {label:<8} {text}")
}
