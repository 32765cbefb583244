//! Which pods of a job that may run are missing or not ready, and why.

use std::collections::BTreeMap;

use lockstep_api::labels::jobset::REPLICATED_JOB_NAME;
use serde_json::Value;

use super::gather::Seen;
use crate::{
    describe::text::scalar,
    queueing::workload::Workload,
    run::{
        jobset::JobSet,
        pod::{Phase, Pod},
    },
};

/// How many different troubles of pods are told.
const TROUBLES: usize = 10;

/// A line for each pod set that is not all ready, and one for each trouble of its pods.
pub(super) fn lines(seen: &Seen, workload: &Workload) -> Vec<String> {
    let set = seen.job.as_ref().filter(|_| seen.subject.kind == "JobSet").map(JobSet::read);
    let mut lines = Vec::new();
    for (name, wanted) in &workload.pod_sets {
        let is_its = |pod: &&Value| set.is_none() || group(pod) == *name;
        let pods: Vec<&Value> = seen.pods.iter().filter(is_its).collect();
        let what = match &set {
            Some(_) => format!("replicated job {name}: "),
            None => String::new(),
        };
        let held_back = set.as_ref().and_then(|set| why_held_back(set, name));
        lines.extend(of_set(&what, *wanted, &pods, held_back));
    }
    lines
}

fn of_set(what: &str, wanted: i64, pods: &[&Value], held_back: Option<String>) -> Vec<String> {
    let mut ready = 0;
    let mut there = 0;
    let mut troubles: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for object in pods {
        let pod = Pod::read(object);
        // What has failed or is going is replaced.
        if pod.phase == Phase::Failed || pod.is_deleting {
            continue;
        }
        there += 1;
        if pod.phase == Phase::Succeeded || is_ready(object) {
            ready += 1;
        } else {
            troubles.entry(why_not_ready(&pod, object)).or_default().push(pod.name);
        }
    }
    if ready >= wanted {
        return Vec::new();
    }
    let missing = wanted - there;
    let why = held_back.map(|why| format!(": {why}")).unwrap_or_default();
    let made = match missing {
        ..=0 => String::new(),
        1 => format!(", 1 not created yet{why}"),
        many => format!(", {many} not created yet{why}"),
    };
    let mut lines = vec![format!("{what}{ready} of {wanted} ready{made}")];
    let hidden = troubles.len().saturating_sub(TROUBLES);
    for (words, names) in troubles.into_iter().take(TROUBLES) {
        let first = names.first().map(String::as_str).unwrap_or_default();
        lines.push(match names.len() {
            1 => format!("pod/{first} {words}"),
            many => format!("pod/{first} and {} more: {words}", many - 1),
        });
    }
    if hidden > 0 {
        lines.push(format!("and {hidden} more troubles; see them with: lockstep get pods"));
    }
    lines
}

/// The replicated job of a pod, as pod sets are called.
fn group(pod: &Value) -> String {
    scalar(&pod["metadata"]["labels"][REPLICATED_JOB_NAME]).to_lowercase()
}

/// Why a replicated job has not been started, if that is on purpose.
fn why_held_back(set: &JobSet, name: &str) -> Option<String> {
    let jobs = &set.spec.replicated_jobs;
    let at = jobs.iter().position(|job| job.name.to_lowercase() == *name)?;
    let begins = format!("replicated job {} ", jobs[at].name);
    let depends = set.blocked().find(|words| words.starts_with(&begins));
    let in_order = || {
        set.why_holds_back()?;
        let is_ready = |job: &lockstep_api::jobset::ReplicatedJob| {
            let counts = set.counts(&job.name);
            counts.is_some_and(|counts| counts.ready + counts.succeeded == job.replicas)
        };
        let before = jobs[..at].iter().find(|job| !is_ready(job))?;
        Some(format!("it starts when {} is ready", before.name))
    };
    depends
        .map(|words| words[begins.len()..].to_owned())
        .map(|words| format!("it {words}"))
        .or_else(in_order)
}

fn is_ready(pod: &Value) -> bool {
    condition(pod).is_some_and(|ready| ready["status"] == "True")
}

fn condition(pod: &Value) -> Option<&Value> {
    let mut all = pod["status"]["conditions"].as_array().into_iter().flatten();
    all.find(|condition| condition["type"] == "Ready")
}

fn why_not_ready(pod: &Pod, object: &Value) -> String {
    if pod.waits.is_none() && pod.phase == Phase::Running {
        let message = condition(object).map(|ready| scalar(&ready["message"])).unwrap_or_default();
        let message = if message.is_empty() { String::new() } else { format!(": {message}") };
        return format!("is running and not ready{message}");
    }
    pod.words()
}
