//! Which logs there are to print, each run of a container once.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Model, Name};
use crate::{
    catalog::query,
    logs::log_path,
    run::{
        ends::has_never_started,
        pod::{Pod, statuses},
    },
};

/// A container of a pod. A pod that came after another of its name is another pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ContainerId {
    /// The namespace of its pod.
    pub(crate) namespace: String,
    /// The name of its pod.
    pub(crate) pod: String,
    /// The uid of its pod.
    pub(crate) uid: String,
    /// Its own name.
    pub(crate) name: String,
}

/// A log to print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogSource {
    /// Whose it is. Logs of one container follow each other.
    pub(crate) container: ContainerId,
    /// Which run of the container it is of, from 0 on.
    pub(crate) run: i64,
    /// Where it is.
    pub(crate) path: String,
    /// What tells its lines from others; empty when there are no others.
    pub(crate) label: String,
    /// Which worker it is of; the same one has the same colour.
    pub(crate) worker: u32,
}

/// Where a run of a container is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Whether another run came after it.
    pub(crate) is_previous: bool,
    /// Whether it has ended.
    pub(crate) has_ended: bool,
}

/// Where to ask for the log of a container, or for that of its run before.
pub(crate) fn log_of(container: &ContainerId, is_previous: bool) -> String {
    let mode = if is_previous { "previous" } else { "follow" };
    let parameters =
        query(&[("container", Some(container.name.clone())), (mode, Some("true".to_owned()))]);
    log_path(&container.namespace, &container.pod) + &parameters
}

/// Finds a run of a container again; nothing when there is no way to its log any more.
pub(crate) fn locate(pod: &Value, container: &str, run: i64) -> Option<Run> {
    let status = statuses(pod).find(|status| status["name"] == container)?;
    let (state, now) = (&status["state"], status["restartCount"].as_i64().unwrap_or_default());
    let has_begun = state["running"].is_object() || state["terminated"].is_object();
    if has_begun && now == run {
        return Some(Run { is_previous: false, has_ended: state["terminated"].is_object() });
    }
    let had_ended = status["lastState"]["terminated"].is_object();
    let is_before = if has_begun { now == run + 1 } else { now == run };
    (had_ended && is_before).then_some(Run { is_previous: true, has_ended: true })
}

/// How the logs of a pod are called.
pub(super) struct Label {
    name: Name,
    uid: String,
    /// Before the container's name; nothing when lines are not told apart.
    text: Option<String>,
    has_container: bool,
    worker: u32,
}

/// The logs that are known.
#[derive(Clone, Debug, Default)]
pub(super) struct Sources {
    followed: BTreeSet<(ContainerId, i64)>,
    /// The numbers of workers that have no index.
    workers: BTreeMap<Name, u32>,
}

impl Model {
    /// How the logs of `pod` are called: a worker with an index keeps its name over all its pods.
    pub(super) fn label(&mut self, name: &Name, pod: &Pod) -> Label {
        let job = pod.job.as_ref().filter(|_| !self.bare.contains(name));
        let (text, has_container) = match (job, pod.index) {
            (Some((job, _)), Some(index)) => (format!("{job}-{index}"), pod.containers > 1),
            (Some(_), None) => (pod.name.clone(), pod.containers > 1),
            (None, _) => (pod.name.clone(), true),
        };
        // Where things start again, the same worker writes in several attempts.
        let attempt = pod.member.as_ref().filter(|member| self.may_restart(&name.0, member));
        let attempt = attempt.map(|it| format!("#{}", it.attempt_words())).unwrap_or_default();
        let text = text + &attempt;
        let worker = match pod.index {
            Some(index) => index,
            None => {
                let next = u32::try_from(self.sources.workers.len()).unwrap_or_default();
                *self.sources.workers.entry(name.clone()).or_insert(next)
            }
        };
        let text = self.has_prefixes.then_some(text);
        Label { name: name.clone(), uid: pod.uid.clone(), text, has_container, worker }
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
        let container = ContainerId {
            namespace: label.name.0.clone(),
            pod: label.name.1.clone(),
            uid: label.uid.clone(),
            name: status["name"].as_str().unwrap_or_default().to_owned(),
        };
        let mut runs = Vec::new();
        if has_begun {
            runs.extend((had_ended && run > 0).then_some((run - 1, true)));
            runs.push((run, false));
        } else if had_ended {
            // While it waits for its next run, the last one still counts.
            runs.push((run, true));
        }
        runs.retain(|(run, _)| self.followed.insert((container.clone(), *run)));
        // What was never started wrote nothing, and its log cannot be had.
        let is_unborn = |is_previous: bool| {
            let state = if is_previous { &status["lastState"] } else { state };
            has_never_started(&state["terminated"])
        };
        runs.retain(|(_, is_previous)| !is_unborn(*is_previous));
        let source = |(run, is_previous)| source(label, &container, run, is_previous);
        runs.into_iter().map(source).collect()
    }
}

fn source(label: &Label, container: &ContainerId, run: i64, is_previous: bool) -> LogSource {
    let text = match &label.text {
        None => String::new(),
        Some(text) if label.has_container => format!("{text}/{}", container.name),
        Some(text) => text.clone(),
    };
    LogSource {
        container: container.clone(),
        run,
        path: log_of(container, is_previous),
        label: text,
        worker: label.worker,
    }
}
