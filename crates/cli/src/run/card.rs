//! Why a run failed, on a card: which pod, how it ended, what it wrote last, which rule decided.

#[cfg(test)]
mod tests;

use super::{
    ends::End,
    job::{self, Job},
    model::Model,
    pod::{Phase, Pod},
    session::Tails,
    style::{Paint, Tone},
};

/// How many pods of a Job are shown.
const PODS_MAX: usize = 3;

/// The cards of everything that failed or cannot go on.
pub(crate) fn lines(model: &Model, tails: &Tails, paint: Paint) -> Vec<String> {
    let mut lines = Vec::new();
    for job in model.jobs.values() {
        match job.phase {
            job::Phase::Complete => {}
            job::Phase::Failed => failed(model, job, tails, paint, &mut lines),
            job::Phase::Gone => lines.push(head(&format!("job/{} was deleted", job.name), paint)),
            _ => {
                let why = model.why_waits(job).unwrap_or_else(|| "is not finished".to_owned());
                lines.push(head(&format!("job/{} cannot go on", job.name), paint));
                lines.push(field("because", &why));
            }
        }
    }
    for pod in model.bare_pods().filter(|pod| pod.phase != Phase::Succeeded) {
        let what = if pod.phase == Phase::Failed { "failed" } else { "cannot go on" };
        lines.push(head(&format!("pod/{} {what}", pod.name), paint));
        if pod.phase != Phase::Failed {
            lines.push(field("because", &pod.words()));
        }
        ended(pod, tails, &mut lines);
    }
    lines
}

/// The containers whose last lines the cards show, as far as there are any.
pub(crate) fn containers(model: &Model) -> Vec<[String; 3]> {
    let of_jobs = model.jobs.values().filter(|job| job.phase == job::Phase::Failed);
    let of_jobs = of_jobs.flat_map(|job| culprits(model, job).0);
    let bare = model.bare_pods().filter(|pod| pod.phase == Phase::Failed);
    let of_pod = |pod: &Pod| -> Vec<[String; 3]> {
        let one = |end: &End| [pod.namespace.clone(), pod.name.clone(), end.container.clone()];
        pod.ends.iter().map(one).collect()
    };
    of_jobs.chain(bare).flat_map(of_pod).collect()
}

fn failed(model: &Model, job: &Job, tails: &Tails, paint: Paint, lines: &mut Vec<String>) {
    lines.push(head(&format!("job/{} failed: {}", job.name, job.why.reason), paint));
    lines.push(field("rule", &rule(job)));
    let (pods, others) = culprits(model, job);
    for pod in pods {
        let index = pod.index.map(|index| format!(", index {index}")).unwrap_or_default();
        let node = match pod.node.as_str() {
            "" => String::new(),
            node => format!(", on node {node}"),
        };
        lines.push(field("pod", &format!("{}{index}{node}", pod.name)));
        ended(pod, tails, lines);
    }
    if others > 0 {
        lines.push(field("", &format!("and {others} more pods failed")));
    }
}

/// How the containers of a pod ended, and their last lines.
fn ended(pod: &Pod, tails: &Tails, lines: &mut Vec<String>) {
    if !pod.reason.is_empty() {
        lines.push(field("because", &pod.reason));
    }
    for end in &pod.ends {
        lines.push(field("ended", &end.words()));
        let name = [pod.namespace.clone(), pod.name.clone(), end.container.clone()];
        let mut label = "log";
        for line in tails.get(&name).into_iter().flatten() {
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
