//! What is known of a run, and when it is over. Events go in, notes and a verdict come out.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{catalog::query, exit::Exit, logs::log_path};

/// A log to print.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LogSource {
    /// Whose it is. Logs of one container follow each other.
    pub(crate) container: String,
    /// Where it is.
    pub(crate) path: String,
    /// What to put before each line.
    pub(crate) prefix: String,
}

/// What one change of a pod means.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// What to tell.
    pub(crate) notes: Vec<String>,
    /// Logs that began.
    pub(crate) logs: Vec<LogSource>,
}

/// Whether a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Something may still happen.
    Going,
    /// Some pods have no place, and no other pod will make room. A node may still come: it is over
    /// only when nothing changes for a while.
    Unplaced,
    /// Nothing can happen any more.
    Over(Exit),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Pending,
    /// No node has room for it, now.
    Unplaced,
    /// Waits for something that nobody in this cluster will ever do.
    Stuck,
    Succeeded,
    Failed,
}

/// The pods of a run.
#[derive(Debug)]
pub(crate) struct Progress {
    has_prefixes: bool,
    fates: BTreeMap<(String, String), Fate>,
    told: BTreeMap<(String, String), String>,
    followed: BTreeSet<(String, String, String, i64)>,
}

impl Progress {
    /// A run of `pods`, given as (namespace, name).
    pub(crate) fn new(pods: &[(String, String)], has_prefixes: bool) -> Self {
        Self {
            has_prefixes,
            fates: pods.iter().map(|pod| (pod.clone(), Fate::Pending)).collect(),
            told: BTreeMap::new(),
            followed: BTreeSet::new(),
        }
    }

    /// Takes note of a pod that no longer exists.
    pub(crate) fn gone(&mut self, namespace: &str, name: &str) {
        let key = (namespace.to_owned(), name.to_owned());
        if let Some(fate @ (Fate::Pending | Fate::Unplaced | Fate::Stuck)) =
            self.fates.get_mut(&key)
        {
            *fate = Fate::Failed;
        }
    }

    /// Takes note of a pod as it is now.
    pub(crate) fn see(&mut self, pod: &Value) -> Seen {
        let mut seen = Seen::default();
        let meta = |field: &str| pod["metadata"][field].as_str().unwrap_or_default().to_owned();
        let key = (meta("namespace"), meta("name"));
        if !self.fates.contains_key(&key) {
            return seen;
        }
        for field in ["initContainerStatuses", "containerStatuses"] {
            for status in pod["status"][field].as_array().into_iter().flatten() {
                seen.logs.extend(self.new_logs(&key, status));
            }
        }
        let (fate, words) = judge(pod);
        let words = format!("pod/{} {words}", key.1);
        if self.told.get(&key) != Some(&words) {
            self.told.insert(key.clone(), words.clone());
            seen.notes.push(words);
        }
        self.fates.insert(key, fate);
        seen
    }

    /// Whether the run is over, and how. Pods that are stuck end it only when no other pod could
    /// still free what they wait for.
    pub(crate) fn state(&self) -> State {
        let has = |wanted: Fate| self.fates.values().any(|&fate| fate == wanted);
        if has(Fate::Pending) {
            State::Going
        } else if has(Fate::Unplaced) {
            State::Unplaced
        } else if has(Fate::Failed) || has(Fate::Stuck) {
            State::Over(Exit::Failed)
        } else {
            State::Over(Exit::Success)
        }
    }

    /// The logs of a container that are not being printed yet: of the run before this one, which
    /// may have come and gone between two looks, and of this one.
    fn new_logs(&mut self, key: &(String, String), status: &Value) -> Vec<LogSource> {
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
            self.followed.insert((key.0.clone(), key.1.clone(), container.to_owned(), *run))
        });
        let source = |(_, is_previous)| self.source(key, container, is_previous);
        runs.into_iter().map(source).collect()
    }

    fn source(&self, key: &(String, String), container: &str, is_previous: bool) -> LogSource {
        let (namespace, pod) = key;
        let prefix =
            if self.has_prefixes { format!("[{pod}/{container}] ") } else { String::new() };
        let mode = if is_previous { "previous" } else { "follow" };
        let parameters =
            query(&[("container", Some(container.to_owned())), (mode, Some("true".to_owned()))]);
        let path = log_path(namespace, pod) + &parameters;
        LogSource { container: format!("{namespace}/{pod}/{container}"), path, prefix }
    }
}

/// Where a pod stands, for the program and for the reader.
fn judge(pod: &Value) -> (Fate, String) {
    let status = &pod["status"];
    match status["phase"].as_str() {
        Some("Succeeded") => return (Fate::Succeeded, "succeeded".to_owned()),
        Some("Failed") => return (Fate::Failed, format!("failed{}", why_failed(status))),
        _ => {}
    }
    let lists = ["initContainerStatuses", "containerStatuses"];
    let statuses = lists.iter().flat_map(|field| status[*field].as_array().into_iter().flatten());
    for container in statuses {
        let waiting = &container["state"]["waiting"];
        let reason = waiting["reason"].as_str().unwrap_or_default();
        if matches!(reason, "" | "ContainerCreating" | "PodInitializing") {
            continue;
        }
        let message = waiting["message"].as_str().unwrap_or_default();
        let is_final = reason == "CreateContainerConfigError";
        let fate = if is_final { Fate::Stuck } else { Fate::Pending };
        return (fate, format!("waits: {reason}: {message}"));
    }
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let unplaced = conditions.into_iter().find(|condition| condition["reason"] == "Unschedulable");
    if let Some(condition) = unplaced {
        let message = condition["message"].as_str().unwrap_or_default();
        return (Fate::Unplaced, format!("cannot be placed: {message}"));
    }
    match status["phase"].as_str() {
        Some("Running") => (Fate::Pending, "is running".to_owned()),
        _ => (Fate::Pending, "is starting".to_owned()),
    }
}

fn why_failed(status: &Value) -> String {
    let lists = ["initContainerStatuses", "containerStatuses"];
    let statuses = lists.iter().flat_map(|field| status[*field].as_array().into_iter().flatten());
    let ended = statuses.map(|container| (&container["name"], &container["state"]["terminated"]));
    let bad = ended.into_iter().find(|(_, end)| end["exitCode"].as_i64().is_some_and(|c| c != 0));
    match (bad, status["reason"].as_str()) {
        (_, Some(reason)) => {
            format!(": {reason}: {}", status["message"].as_str().unwrap_or_default())
        }
        (Some((name, end)), None) => {
            let name = name.as_str().unwrap_or_default();
            format!(": container {name} ended with exit code {}", end["exitCode"])
        }
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(name: &str, status: Value) -> Value {
        let metadata = json!({"namespace": "default", "name": name});
        json!({"metadata": metadata, "status": status})
    }

    fn progress(names: &[&str]) -> Progress {
        let pods: Vec<_> = names.iter().map(|n| ("default".to_owned(), (*n).to_owned())).collect();
        Progress::new(&pods, names.len() > 1)
    }

    #[test]
    fn a_run_is_over_when_nothing_can_happen_any_more() {
        let running = json!({"phase": "Running"});
        let succeeded = json!({"phase": "Succeeded"});
        let failed = json!({"phase": "Failed"});
        let unplaced = json!({"phase": "Pending", "conditions": [{"reason": "Unschedulable"}]});
        let cases = [
            ("both run", &running, &running, State::Going),
            ("one runs", &succeeded, &running, State::Going),
            ("one failed, one runs", &failed, &running, State::Going),
            ("both succeeded", &succeeded, &succeeded, State::Over(Exit::Success)),
            ("one failed", &succeeded, &failed, State::Over(Exit::Failed)),
            ("one waits for the other's room", &unplaced, &running, State::Going),
            ("nobody makes room for one", &unplaced, &succeeded, State::Unplaced),
        ];
        for (name, a, b, want) in cases {
            let mut progress = progress(&["a", "b"]);
            progress.see(&event("a", a.clone()));
            progress.see(&event("b", b.clone()));
            assert_eq!(progress.state(), want, "{name}");
        }
    }

    #[test]
    fn each_run_of_a_container_is_followed_once() {
        let mut progress = progress(&["a"]);
        let status = |restarts: i64| {
            json!({"phase": "Running", "containerStatuses": [
                {"name": "c", "restartCount": restarts, "state": {"running": {}}}]})
        };
        assert_eq!(progress.see(&event("a", status(0))).logs.len(), 1);
        assert_eq!(progress.see(&event("a", status(0))).logs.len(), 0);
        assert_eq!(progress.see(&event("a", status(1))).logs.len(), 1);
        assert_eq!(progress.see(&event("other", status(0))).logs.len(), 0, "not ours");
    }

    #[test]
    fn runs_that_come_and_go_between_two_looks_are_printed_too() {
        let status = |restarts: i64, state: &str| {
            json!({"phase": "Running", "containerStatuses": [{"name": "c",
                "restartCount": restarts, "state": {state: {}}, "lastState": {"terminated": {}}}]})
        };
        let mut progress = progress(&["a"]);
        let mut asked = |status| -> Vec<String> {
            let logs = progress.see(&event("a", status)).logs.into_iter();
            logs.map(|log| log.path.split_once('&').expect("two parameters").1.into()).collect()
        };
        assert_eq!(asked(status(0, "waiting")), ["previous=true"]);
        assert_eq!(asked(status(1, "running")), ["follow=true"], "run 0 is printed");
        assert_eq!(asked(status(3, "terminated")), ["previous=true", "follow=true"]);
        assert!(asked(status(3, "waiting")).is_empty());
    }

    #[test]
    fn a_pod_that_disappears_has_failed() {
        let mut progress = progress(&["a"]);
        progress.gone("default", "other");
        assert_eq!(progress.state(), State::Going);
        progress.gone("default", "a");
        assert_eq!(progress.state(), State::Over(Exit::Failed));
    }

    #[test]
    fn notes_say_what_a_pod_waits_for() {
        let waits = json!({"phase": "Pending", "containerStatuses": [{"name": "c", "state":
            {"waiting": {"reason": "CreateContainerConfigError", "message": "no command"}}}]});
        let failed = json!({"phase": "Failed", "containerStatuses": [{"name": "c", "state":
            {"terminated": {"exitCode": 3}}}]});
        let mut progress = progress(&["a"]);
        let told = progress.see(&event("a", waits.clone())).notes;
        assert_eq!(told, ["pod/a waits: CreateContainerConfigError: no command"]);
        assert!(progress.see(&event("a", waits)).notes.is_empty(), "said once");
        assert_eq!(progress.state(), State::Over(Exit::Failed));
        let told = progress.see(&event("a", failed)).notes;
        assert_eq!(told, ["pod/a failed: container c ended with exit code 3"]);
    }
}
