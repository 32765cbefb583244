//! One Job of a run: where it stands and what decided that.

use jiff::Timestamp;
use lockstep_api::{
    labels::kueue::QUEUE_NAME,
    reasons::job::{COMPLETE, FAILED, FAILURE_TARGET, SUCCESS_CRITERIA_MET, SUSPENDED},
};
use serde_json::Value;

use super::{indexes::Indexes, member::Member};

/// The controller that `managedBy` names when it names ours.
const OURS: &str = "kubernetes.io/job-controller";

/// Where a Job stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nobody has looked at it yet.
    #[default]
    Pending,
    /// It runs.
    Running,
    /// It is suspended.
    Suspended,
    /// It will succeed once its pods have ended.
    Succeeding,
    /// It will fail once its pods have ended.
    Failing,
    /// It succeeded.
    Complete,
    /// It failed.
    Failed,
    /// It disappeared before it ended.
    Gone,
}

impl Phase {
    /// The word for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Suspended => "Suspended",
            Self::Succeeding => "Succeeding",
            Self::Failing => "Failing",
            Self::Complete => "Complete",
            Self::Failed => "Failed",
            Self::Gone => "Deleted",
        }
    }
}

/// Why a Job stands where it stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Why {
    /// In one word.
    pub(crate) reason: String,
    /// For people.
    pub(crate) message: String,
}

/// A Job as it was last seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Job {
    /// Its namespace.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
    /// Its uid.
    pub(crate) uid: String,
    /// Its place in a JobSet, if it is of one.
    pub(crate) member: Option<Member>,
    /// Where it stands.
    pub(crate) phase: Phase,
    /// What decided that.
    pub(crate) why: Why,
    /// Whether each pod has an index.
    pub(crate) is_indexed: bool,
    /// How many pods or indexes must succeed, if that is fixed.
    pub(crate) completions: Option<u32>,
    /// How many pods may run at once.
    pub(crate) parallelism: u32,
    /// Whether it is meant to be suspended.
    pub(crate) is_suspended: bool,
    /// The LocalQueue it is to wait in, if it names one.
    pub(crate) queue: Option<String>,
    /// Whoever else runs it, if somebody does.
    pub(crate) manager: Option<String>,
    /// How many pods run or are starting.
    pub(crate) active: i64,
    /// How many of them serve.
    pub(crate) ready: i64,
    /// How many pods are being ended.
    pub(crate) terminating: i64,
    /// How many pods or indexes succeeded.
    pub(crate) succeeded: i64,
    /// How many pods failed.
    pub(crate) failed: i64,
    /// The indexes that succeeded.
    pub(crate) done: Indexes,
    /// The indexes that failed for good.
    pub(crate) lost: Indexes,
    /// When it was started, the last time.
    pub(crate) started: Option<Timestamp>,
    /// When it ended.
    pub(crate) ended: Option<Timestamp>,
    /// Its rules and limits: everything it says but what its pods are like.
    pub(crate) rules: Value,
    /// How many containers each of its pods has.
    pub(crate) containers: usize,
    /// Whether it is being deleted.
    pub(crate) is_deleting: bool,
    /// Whether it no longer exists, however it ended.
    pub(crate) is_gone: bool,
}

impl Job {
    /// Reads a Job.
    pub(crate) fn read(object: &Value) -> Self {
        let (meta, spec, status) = (&object["metadata"], &object["spec"], &object["status"]);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let moment = |value: &Value| value.as_str().and_then(|text| text.parse().ok());
        let number = |value: &Value| value.as_i64().unwrap_or_default();
        let small = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
        let indexes = |value: &Value| Indexes::read(value.as_str().unwrap_or_default());
        let (phase, condition) = phase(object);
        let why = Why { reason: text(&condition["reason"]), message: text(&condition["message"]) };
        let is_over = matches!(phase, Phase::Complete | Phase::Failed);
        let lists = ["initContainers", "containers"];
        let template = &spec["template"]["spec"];
        let containers = lists.map(|list| template[list].as_array().map_or(0, Vec::len));
        Self {
            namespace: text(&meta["namespace"]),
            name: text(&meta["name"]),
            uid: text(&meta["uid"]),
            member: Member::of(meta),
            phase,
            why,
            is_indexed: spec["completionMode"] == "Indexed",
            completions: small(&spec["completions"]),
            parallelism: small(&spec["parallelism"]).unwrap_or(1),
            is_suspended: spec["suspend"] == true,
            queue: queue(meta),
            manager: spec["managedBy"].as_str().filter(|it| *it != OURS).map(ToOwned::to_owned),
            active: number(&status["active"]),
            ready: number(&status["ready"]),
            terminating: number(&status["terminating"]),
            succeeded: number(&status["succeeded"]),
            failed: number(&status["failed"]),
            done: indexes(&status["completedIndexes"]),
            lost: indexes(&status["failedIndexes"]),
            started: moment(&status["startTime"]),
            ended: if is_over { moment(&condition["lastTransitionTime"]) } else { None },
            rules: rules(spec),
            containers: containers.iter().sum(),
            is_deleting: meta["deletionTimestamp"].is_string(),
            is_gone: false,
        }
    }

    /// Whether it is over.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Complete | Phase::Failed | Phase::Gone)
    }

    /// How many pods it may have at once.
    pub(crate) fn width(&self) -> u32 {
        self.parallelism.min(self.completions.unwrap_or(u32::MAX))
    }

    /// What keeps it from ever having pods, whatever else happens in a cluster of one's own.
    pub(crate) fn hindrance(&self) -> Option<String> {
        if self.has_ended() {
            None
        } else if let Some(manager) = &self.manager {
            Some(format!("is left to {manager} (spec.managedBy), which does not run here"))
        } else if self.is_suspended {
            Some("is suspended: set spec.suspend to false to start it".to_owned())
        } else if self.parallelism == 0 && self.completions != Some(0) {
            Some("has spec.parallelism 0, so no pod is started".to_owned())
        } else {
            None
        }
    }

    /// `3/10 done`.
    pub(crate) fn progress(&self) -> String {
        match self.completions {
            Some(wanted) => format!("{}/{wanted} done", self.succeeded),
            None => format!("{} done", self.succeeded),
        }
    }
}

/// The LocalQueue that a job names.
pub(super) fn queue(meta: &Value) -> Option<String> {
    let name = meta["labels"][QUEUE_NAME].as_str().filter(|name| !name.is_empty());
    name.map(ToOwned::to_owned)
}

fn rules(spec: &Value) -> Value {
    let fields = spec.as_object().into_iter().flatten().filter(|(name, _)| *name != "template");
    fields.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The phase and the condition that says so. What is final counts most.
fn phase(object: &Value) -> (Phase, &Value) {
    let order = [
        (COMPLETE, Phase::Complete),
        (FAILED, Phase::Failed),
        (FAILURE_TARGET, Phase::Failing),
        (SUCCESS_CRITERIA_MET, Phase::Succeeding),
        (SUSPENDED, Phase::Suspended),
    ];
    let conditions = object["status"]["conditions"].as_array();
    for (kind, phase) in order {
        let mut found = conditions.into_iter().flatten();
        if let Some(condition) = found.find(|it| it["type"] == kind && it["status"] == "True") {
            return (phase, condition);
        }
    }
    let has_begun = object["status"]["startTime"].is_string();
    (if has_begun { Phase::Running } else { Phase::Pending }, &Value::Null)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with(conditions: &[&str]) -> Job {
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|kind| json!({"type": kind, "status": "True", "reason": format!("R{kind}")}))
            .collect();
        Job::read(&json!({"spec": {}, "status": {"startTime": "2026-01-01T00:00:00Z",
            "conditions": conditions}}))
    }

    #[test]
    fn what_is_final_counts_most() {
        let cases: [(&[&str], Phase); 6] = [
            (&[], Phase::Running),
            (&["Suspended"], Phase::Suspended),
            (&["Suspended", "FailureTarget"], Phase::Failing),
            (&["FailureTarget", "Failed"], Phase::Failed),
            (&["SuccessCriteriaMet"], Phase::Succeeding),
            (&["SuccessCriteriaMet", "Complete", "Suspended"], Phase::Complete),
        ];
        for (conditions, want) in cases {
            assert_eq!(with(conditions).phase, want, "{conditions:?}");
        }
        assert_eq!(with(&["Failed"]).why.reason, "RFailed");
        assert_eq!(Job::read(&json!({})).phase, Phase::Pending);
    }

    #[test]
    fn a_job_that_nobody_will_start_says_so() {
        let cases = [
            (json!({}), None),
            (json!({"managedBy": OURS}), None),
            (json!({"managedBy": "a/b"}), Some("is left to a/b")),
            (json!({"suspend": true}), Some("is suspended")),
            (json!({"parallelism": 0}), Some("has spec.parallelism 0")),
            (json!({"parallelism": 0, "completions": 0}), None),
        ];
        for (spec, want) in cases {
            let said = Job::read(&json!({"spec": spec})).hindrance();
            let starts =
                said.as_deref().map(|said| want.is_some_and(|want| said.starts_with(want)));
            assert!(starts.unwrap_or_else(|| want.is_none()), "{spec}: {said:?}");
        }
    }
}
