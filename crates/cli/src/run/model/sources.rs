//! Which logs there are to print, each run of a container once.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Model, Name};
use crate::{
    catalog::query,
    logs::log_path,
    run::pod::{Pod, statuses},
};

/// A log to print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogSource {
    /// Whose it is: namespace, pod and container. Logs of one container follow each other.
    pub(crate) container: [String; 3],
    /// Where it is.
    pub(crate) path: String,
    /// What tells its lines from others; empty when there are no others.
    pub(crate) label: String,
    /// Which worker it is of; the same one has the same colour.
    pub(crate) worker: u32,
}

/// How the logs of a pod are called.
pub(super) struct Label {
    name: Name,
    /// Before the container's name; nothing when lines are not told apart.
    text: Option<String>,
    has_container: bool,
    worker: u32,
}

/// The logs that are known.
#[derive(Clone, Debug, Default)]
pub(super) struct Sources {
    followed: BTreeSet<(Name, String, i64)>,
    /// The numbers of workers that have no index.
    workers: BTreeMap<Name, u32>,
}

impl Model {
    /// How the logs of `pod` are called: a worker with an index keeps its name over all its pods.
    pub(super) fn label(&mut self, name: &Name, pod: &Pod) -> Label {
        let job =
            pod.job.as_ref().and_then(|(job, _)| self.jobs.get(&(name.0.clone(), job.clone())));
        let (text, has_container) = match (job, pod.index) {
            (Some(job), Some(index)) => (format!("{}-{index}", job.name), job.containers > 1),
            (Some(job), None) => (pod.name.clone(), job.containers > 1),
            (None, _) => (pod.name.clone(), true),
        };
        let worker = match pod.index {
            Some(index) => index,
            None => {
                let next = u32::try_from(self.sources.workers.len()).unwrap_or_default();
                *self.sources.workers.entry(name.clone()).or_insert(next)
            }
        };
        let text = self.has_prefixes.then_some(text);
        Label { name: name.clone(), text, has_container, worker }
    }
}

impl Sources {
    /// The logs of a pod that are not being printed yet.
    pub(super) fn begun(&mut self, label: &Label, pod: &Value) -> Vec<LogSource> {
        statuses(pod).flat_map(|status| self.of_container(label, status)).collect()
    }

    /// The logs of a container that are not being printed yet: of the run before this one, which
    /// may have come and gone between two looks, and of this one.
    fn of_container(&mut self, label: &Label, status: &Value) -> Vec<LogSource> {
        let (state, run) = (&status["state"], status["restartCount"].as_i64().unwrap_or_default());
        let has_begun = state["running"].is_object() || state["terminated"].is_object();
        let had_ended = status["lastState"]["terminated"].is_object();
        let container = status["name"].as_str().unwrap_or_default();
        let mut runs = Vec::new();
        if has_begun {
            runs.extend((had_ended && run > 0).then_some((run - 1, true)));
            runs.push((run, false));
        } else if had_ended {
            // While it waits for its next run, the last one still counts.
            runs.push((run, true));
        }
        runs.retain(|(run, _)| {
            self.followed.insert((label.name.clone(), container.to_owned(), *run))
        });
        // What was never started wrote nothing, and its log cannot be had.
        let is_unborn = |is_previous: bool| {
            let state = if is_previous { &status["lastState"] } else { state };
            state["terminated"]["reason"] == "StartError"
        };
        runs.retain(|(_, is_previous)| !is_unborn(*is_previous));
        runs.into_iter().map(|(_, is_previous)| source(label, container, is_previous)).collect()
    }
}

fn source(label: &Label, container: &str, is_previous: bool) -> LogSource {
    let (namespace, pod) = &label.name;
    let mode = if is_previous { "previous" } else { "follow" };
    let parameters =
        query(&[("container", Some(container.to_owned())), (mode, Some("true".to_owned()))]);
    let text = match &label.text {
        None => String::new(),
        Some(text) if label.has_container => format!("{text}/{container}"),
        Some(text) => text.clone(),
    };
    LogSource {
        container: [namespace.clone(), pod.clone(), container.to_owned()],
        path: log_path(namespace, pod) + &parameters,
        label: text,
        worker: label.worker,
    }
}
