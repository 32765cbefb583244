//! One pod of a run: where it stands, and what it waits for.

use jiff::Timestamp;
use lockstep_api::reasons::{
    container::{CREATE_CONFIG_ERROR, CREATING, POD_INITIALIZING},
    pod::{SCHEDULING_GATED, UNSCHEDULABLE},
};
use serde_json::Value;

use super::{
    ends::{End, one_line},
    member::Member,
};

/// The label of a pod that says which index it works on.
const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// The exit code of what SIGTERM ended.
const TERMINATED: i64 = 143;

/// Where a pod stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing of it runs yet.
    #[default]
    Pending,
    /// It runs.
    Running,
    /// All its containers ended well.
    Succeeded,
    /// It ended, not well.
    Failed,
    /// It disappeared before it ended.
    Gone,
}

/// Whether what a pod waits for can still come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Hope {
    /// Nobody in a cluster of one's own will ever help.
    Never,
    /// It may, but not because of anything that goes on here.
    Maybe,
    /// It is tried again.
    Soon,
}

/// What a pod waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waits {
    /// Why, for people.
    pub(crate) words: String,
    /// Whether it can still come.
    pub(crate) hope: Hope,
}

/// A pod as it was last seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pod {
    /// Its namespace.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
    /// Its uid.
    pub(crate) uid: String,
    /// The name and uid of the Job it belongs to.
    pub(crate) job: Option<(String, String)>,
    /// Its place in a JobSet, if it is of one.
    pub(crate) member: Option<Member>,
    /// The index it works on.
    pub(crate) index: Option<u32>,
    /// Where it stands.
    pub(crate) phase: Phase,
    /// Whether it is being ended.
    pub(crate) is_deleting: bool,
    /// Whether it was being ended before it ended, so that how it ended is nobody's failure.
    pub(crate) was_stopped: bool,
    /// How often its containers were started again.
    pub(crate) restarts: i64,
    /// What it waits for, if that is known.
    pub(crate) waits: Option<Waits>,
    /// Its containers that ended badly.
    pub(crate) ends: Vec<End>,
    /// How those ended that were started again since.
    pub(crate) ends_before: Vec<End>,
    /// Why the node gave it up, if it did: `DeadlineExceeded: ...`.
    pub(crate) reason: String,
    /// The node it runs on.
    pub(crate) node: String,
    /// How many seconds its containers have to end when they are asked to.
    pub(crate) grace: i64,
    /// How many containers it has, those included that only prepare it.
    pub(crate) containers: usize,
    /// When it was made.
    pub(crate) created: Option<Timestamp>,
    /// When the last of its containers ended.
    pub(crate) ended: Option<Timestamp>,
}

impl Pod {
    /// Reads a Pod.
    pub(crate) fn read(object: &Value) -> Self {
        let (meta, status) = (&object["metadata"], &object["status"]);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let moment = |value: &Value| value.as_str().and_then(|text| text.parse().ok());
        let ends: Vec<End> = statuses(object).filter_map(End::of).collect();
        let finished = statuses(object)
            .filter_map(|status| moment(&status["state"]["terminated"]["finishedAt"]));
        let reason = match (status["reason"].as_str(), status["message"].as_str()) {
            (Some(reason), Some(message)) => format!("{reason}: {message}"),
            (Some(reason), None) => reason.to_owned(),
            (None, _) => String::new(),
        };
        let lists = ["initContainers", "containers"];
        let containers = lists.map(|list| object["spec"][list].as_array().map_or(0, Vec::len));
        let phase = match status["phase"].as_str() {
            Some("Running") => Phase::Running,
            Some("Succeeded") => Phase::Succeeded,
            Some("Failed") => Phase::Failed,
            _ => Phase::Pending,
        };
        Self {
            namespace: text(&meta["namespace"]),
            name: text(&meta["name"]),
            uid: text(&meta["uid"]),
            job: owner(meta),
            member: Member::of(meta),
            index: meta["labels"][INDEX].as_str().and_then(|index| index.parse().ok()),
            phase,
            is_deleting: meta["deletionTimestamp"].is_string(),
            was_stopped: false,
            restarts: statuses(object).filter_map(|s| s["restartCount"].as_i64()).sum(),
            waits: waits(object),
            ends,
            ends_before: statuses(object).filter_map(End::before).collect(),
            reason,
            node: text(&object["spec"]["nodeName"]),
            grace: object["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30),
            containers: containers.iter().sum(),
            created: moment(&meta["creationTimestamp"]),
            ended: finished.max(),
        }
    }

    /// Whether nothing of it can run any more.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Succeeded | Phase::Failed | Phase::Gone)
    }

    /// Whether `now`, which is this pod as it is now, has ended because it was asked to.
    pub(crate) fn is_stopped_as(&self, now: &Self) -> bool {
        let was_asked = self.was_stopped || (self.is_deleting && !self.has_ended());
        self.uid == now.uid && now.phase == Phase::Failed && was_asked
    }

    /// Where it stands, as a sentence about it.
    pub(crate) fn words(&self) -> String {
        match (self.phase, &self.waits) {
            (Phase::Succeeded, _) => "succeeded".to_owned(),
            (Phase::Failed, _) if self.was_stopped => format!("was stopped{}", self.why_failed()),
            (Phase::Failed, _) => format!("failed{}", self.why_failed()),
            (Phase::Gone, _) => "was deleted before it ended".to_owned(),
            (_, Some(waits)) => waits.words.clone(),
            _ if self.is_deleting => "is being ended".to_owned(),
            (Phase::Running, None) => "is running".to_owned(),
            (Phase::Pending, None) => "is starting".to_owned(),
        }
    }

    /// `: container c ended with exit code 3`, or nothing when nobody said.
    fn why_failed(&self) -> String {
        // What is asked to end ends with this signal; that is no news.
        let is_news = |end: &&End| !self.was_stopped || end.code != TERMINATED;
        let ends = self.ends.iter().filter(is_news).map(End::words);
        let reason = Some(self.reason.clone()).filter(|reason| !reason.is_empty());
        let why: Vec<String> = reason.into_iter().chain(ends).collect();
        if why.is_empty() { String::new() } else { format!(": {}", why.join("; ")) }
    }
}

/// The statuses of all containers, those of init containers first.
pub(crate) fn statuses(pod: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["initContainerStatuses", "containerStatuses"];
    lists.into_iter().flat_map(|list| pod["status"][list].as_array().into_iter().flatten())
}

fn owner(meta: &Value) -> Option<(String, String)> {
    let owners = meta["ownerReferences"].as_array()?;
    let owner = owners.iter().find(|it| it["controller"] == true && it["kind"] == "Job")?;
    Some((owner["name"].as_str()?.to_owned(), owner["uid"].as_str()?.to_owned()))
}

fn waits(pod: &Value) -> Option<Waits> {
    for status in statuses(pod) {
        let waiting = &status["state"]["waiting"];
        let reason = waiting["reason"].as_str().unwrap_or_default();
        if matches!(reason, "" | CREATING | POD_INITIALIZING) {
            continue;
        }
        let message = one_line(waiting["message"].as_str().unwrap_or_default());
        let hope = match reason {
            CREATE_CONFIG_ERROR => Hope::Never,
            "CreateContainerError" => Hope::Maybe,
            _ => Hope::Soon,
        };
        let words = if message.is_empty() {
            format!("waits: {reason}")
        } else {
            format!("waits: {reason}: {message}")
        };
        return Some(Waits { words, hope });
    }
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    for condition in conditions {
        let message = condition["message"].as_str().unwrap_or_default();
        let words = match condition["reason"].as_str() {
            Some(UNSCHEDULABLE) => format!("cannot be placed: {message}"),
            Some(SCHEDULING_GATED) => "waits until its scheduling gates are removed".to_owned(),
            _ => continue,
        };
        return Some(Waits { words, hope: Hope::Maybe });
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(status: Value) -> Pod {
        Pod::read(&json!({"metadata": {"name": "p", "namespace": "d"}, "status": status}))
    }

    #[test]
    fn a_pod_says_where_it_stands() {
        let waiting = |reason: &str, message: &str| {
            json!({"phase": "Pending", "containerStatuses": [{"name": "c", "state":
                {"waiting": {"reason": reason, "message": message}}}]})
        };
        let cases = [
            (json!({"phase": "Running"}), "is running", None),
            (json!({"phase": "Succeeded"}), "succeeded", None),
            (json!({}), "is starting", None),
            (waiting("ContainerCreating", ""), "is starting", None),
            (
                waiting("CreateContainerConfigError", "no command"),
                "waits: CreateContainerConfigError: no command",
                Some(Hope::Never),
            ),
            (waiting("CrashLoopBackOff", ""), "waits: CrashLoopBackOff", Some(Hope::Soon)),
            (
                json!({"phase": "Pending", "conditions": [{"type": "PodScheduled",
                    "reason": "Unschedulable", "message": "0/1 nodes are available"}]}),
                "cannot be placed: 0/1 nodes are available",
                Some(Hope::Maybe),
            ),
            (
                json!({"phase": "Failed", "reason": "DeadlineExceeded", "message": "too long",
                    "containerStatuses": [{"name": "c", "state": {"terminated":
                    {"exitCode": 143, "reason": "Error"}}}]}),
                "failed: DeadlineExceeded: too long; \
                 container c ended with exit code 143 (SIGTERM)",
                None,
            ),
            (json!({"phase": "Failed"}), "failed", None),
        ];
        for (status, words, hope) in cases {
            let pod = read(status);
            assert_eq!(pod.words(), words);
            assert_eq!(pod.waits.map(|waits| waits.hope), hope, "{words}");
        }
    }

    #[test]
    fn a_worker_knows_its_job_and_index() {
        let pod = Pod::read(&json!({"metadata": {"name": "train-3-x", "namespace": "d",
        "labels": {INDEX: "3"}, "ownerReferences": [
            {"kind": "Other", "name": "o"}, {"kind": "Job", "name": "train", "uid": "u", "controller": true}
        ]}}));
        assert_eq!((pod.job, pod.index), (Some(("train".to_owned(), "u".to_owned())), Some(3)));
        assert_eq!(read(json!({})).job, None);
    }
}
