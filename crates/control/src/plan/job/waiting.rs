//! Why a Job is not moving.

use std::fmt;

use jiff::Timestamp;

use crate::plan::job::View;

/// Why there is nothing to do for a Job right now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// It has ended.
    Finished {
        /// `Complete` or `Failed`.
        condition: &'static str,
    },
    /// `spec.managedBy` names another controller.
    ManagedBy(String),
    /// `spec.completionMode` is none that we know.
    UnknownCompletionMode(String),
    /// The Job cannot be worked on, for a reason the API should have refused it for.
    Invalid(String),
    /// It is suspended and has no pods.
    Suspended,
    /// It is being deleted: its pods belong to the garbage collector now.
    BeingDeleted,
    /// Pods run, and there are as many as there should be.
    Running {
        /// How many are active.
        active: usize,
        /// How many of them are ready.
        ready: usize,
        /// When the Job is failed if it has not ended.
        deadline: Option<Timestamp>,
    },
    /// One pod of a work queue has succeeded; the others are left to end by themselves.
    Draining {
        /// How many are still active.
        active: usize,
    },
    /// `spec.parallelism` is zero.
    NoParallelism,
    /// Failed pods are replaced only after a while.
    BackOff {
        /// When the while is over.
        until: Timestamp,
        /// The index that is replaced next, if indexes have their own back-off.
        index: Option<i32>,
    },
    /// Pods have to be gone first.
    PodsTerminating {
        /// What they hold up.
        holding_up: HoldingUp,
        /// Some of their names.
        pods: Vec<String>,
        /// How many there are.
        total: usize,
    },
    /// The API has told us of a newer version of the Job than the one we know.
    CatchingUp,
}

/// What terminating pods hold up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldingUp {
    /// Their replacement: `spec.podReplacementPolicy` is `Failed`.
    Replacement,
    /// The end of the Job, which is decided.
    Complete,
    /// The end of the Job, which is decided.
    Failed,
    /// The suspension of the Job, which is decided.
    Suspension,
}

/// How many names of pods are shown.
const NAMES_SHOWN: usize = 3;

/// Waiting for the terminating pods of the Job.
pub(crate) fn for_pods(view: &View, holding_up: HoldingUp) -> Waiting {
    let pods = &view.tally().terminating;
    Waiting::PodsTerminating {
        holding_up,
        pods: pods.iter().take(NAMES_SHOWN).map(|(_, name)| name.to_string()).collect(),
        total: pods.len(),
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finished { condition: "Complete" } => f.write_str("the Job is complete"),
            Self::Finished { .. } => f.write_str("the Job has failed"),
            Self::ManagedBy(who) => write!(f, "the Job is managed by {who}"),
            Self::UnknownCompletionMode(mode) => {
                write!(f, "completion mode {mode:?} is unknown: Indexed or NonIndexed would do")
            }
            Self::Invalid(why) => write!(f, "the Job cannot be worked on: {why}"),
            Self::Suspended => f.write_str("the Job is suspended"),
            Self::BeingDeleted => f.write_str("the Job is being deleted"),
            Self::Running { active, ready, deadline } => {
                write!(f, "{active} active, {ready} ready")?;
                deadline.iter().try_for_each(|at| write!(f, ", to end before {at}"))
            }
            Self::Draining { active } => {
                write!(f, "a pod has succeeded; {active} more to end by themselves")
            }
            Self::NoParallelism => f.write_str("parallelism is 0: no pods are wanted"),
            Self::BackOff { until, index: None } => {
                write!(f, "backing off after a failure until {until}")
            }
            Self::BackOff { until, index: Some(index) } => {
                write!(f, "index {index} backs off after a failure until {until}")
            }
            Self::PodsTerminating { holding_up, pods, total } => {
                let what = match holding_up {
                    HoldingUp::Replacement => "to be replaced",
                    HoldingUp::Complete => "before the Job is complete",
                    HoldingUp::Failed => "before the Job is failed",
                    HoldingUp::Suspension => "after the Job was suspended",
                };
                let more = total.saturating_sub(pods.len());
                write!(f, "{total} terminating {what}: {}", pods.join(", "))?;
                if more > 0 { write!(f, " and {more} more") } else { Ok(()) }
            }
            Self::CatchingUp => f.write_str("a newer version of the Job has yet to arrive"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_reads_as_a_sentence() {
        let until: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let terminating = |holding_up, total| Waiting::PodsTerminating {
            holding_up,
            pods: vec!["a".into(), "b".into()],
            total,
        };
        let cases = [
            (Waiting::Finished { condition: "Complete" }, "the Job is complete"),
            (Waiting::Finished { condition: "Failed" }, "the Job has failed"),
            (Waiting::ManagedBy("a/b".into()), "the Job is managed by a/b"),
            (
                Waiting::UnknownCompletionMode("X".into()),
                "completion mode \"X\" is unknown: Indexed or NonIndexed would do",
            ),
            (Waiting::Suspended, "the Job is suspended"),
            (Waiting::BeingDeleted, "the Job is being deleted"),
            (Waiting::Running { active: 3, ready: 1, deadline: None }, "3 active, 1 ready"),
            (
                Waiting::Running { active: 3, ready: 1, deadline: Some(until) },
                "3 active, 1 ready, to end before 2026-11-15T12:00:00Z",
            ),
            (Waiting::Draining { active: 2 }, "a pod has succeeded; 2 more to end by themselves"),
            (Waiting::NoParallelism, "parallelism is 0: no pods are wanted"),
            (
                Waiting::BackOff { until, index: None },
                "backing off after a failure until 2026-11-15T12:00:00Z",
            ),
            (
                Waiting::BackOff { until, index: Some(4) },
                "index 4 backs off after a failure until 2026-11-15T12:00:00Z",
            ),
            (terminating(HoldingUp::Replacement, 2), "2 terminating to be replaced: a, b"),
            (
                terminating(HoldingUp::Failed, 5),
                "5 terminating before the Job is failed: a, b and 3 more",
            ),
            (Waiting::CatchingUp, "a newer version of the Job has yet to arrive"),
        ];
        for (waiting, want) in cases {
            assert_eq!(waiting.to_string(), want);
        }
    }
}
