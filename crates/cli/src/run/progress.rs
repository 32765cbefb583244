//! What is known of a run, and when it is over. Events go in, notes and a verdict come out.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{catalog::query, exit::Exit, logs::log_path};

/// A log to print.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LogSource {
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
    /// Nothing can happen any more.
    Over(Exit),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Pending,
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

    /// Takes note of one event of a watch over pods.
    pub(crate) fn see(&mut self, change: &Value) -> Seen {
        let mut seen = Seen::default();
        let pod = &change["object"];
        let meta = |field: &str| pod["metadata"][field].as_str().unwrap_or_default().to_owned();
        let key = (meta("namespace"), meta("name"));
        if !self.fates.contains_key(&key) {
            return seen;
        }
        if change["type"] == "DELETED" {
            self.fates.entry(key).and_modify(|fate| {
                if matches!(fate, Fate::Pending | Fate::Stuck) {
                    *fate = Fate::Failed;
                }
            });
            return seen;
        }
        for field in ["initContainerStatuses", "containerStatuses"] {
            for status in pod["status"][field].as_array().into_iter().flatten() {
                seen.logs.extend(self.new_log(&key, status));
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
        } else if has(Fate::Failed) || has(Fate::Stuck) {
            State::Over(Exit::Failed)
        } else {
            State::Over(Exit::Success)
        }
    }

    fn new_log(&mut self, key: &(String, String), status: &Value) -> Option<LogSource> {
        let state = &status["state"];
        if !state["running"].is_object() && !state["terminated"].is_object() {
            return None;
        }
        let container = status["name"].as_str().unwrap_or_default().to_owned();
        let run = status["restartCount"].as_i64().unwrap_or_default();
        let (namespace, pod) = key;
        if !self.followed.insert((namespace.clone(), pod.clone(), container.clone(), run)) {
            return None;
        }
        let prefix =
            if self.has_prefixes { format!("[{pod}/{container}] ") } else { String::new() };
        let parameters =
            query(&[("container", Some(container)), ("follow", Some("true".to_owned()))]);
        Some(LogSource { path: log_path(namespace, pod) + &parameters, prefix })
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
        return (Fate::Stuck, format!("cannot be placed: {message}"));
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
        json!({"type": "MODIFIED", "object": {"metadata": metadata, "status": status}})
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
            ("one will never be placed", &unplaced, &succeeded, State::Over(Exit::Failed)),
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
