//! Why a JobSet is not moving.

use std::fmt;

/// Why there is nothing to do for a JobSet right now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// It has ended.
    Finished {
        /// `Completed` or `Failed`.
        condition: String,
    },
    /// `spec.managedBy` names another controller.
    ManagedBy(String),
    /// It cannot be worked on, because of a Job that it should not have.
    Invalid(String),
    /// It is being deleted: its Jobs belong to the garbage collector now.
    BeingDeleted,
    /// It has changed since it was seen, and the news has not come yet.
    CatchingUp,
    /// The record of restarts in place is not known yet.
    RestartRecord,
    /// Workers that restart in place wait for this.
    Workers(String),
    /// It is suspended.
    Suspended,
    /// All Jobs that may run are there.
    Running,
    /// Jobs of an earlier attempt have to be gone first.
    JobsTerminating {
        /// How many there are.
        total: usize,
    },
    /// A Job goes on when pods from before its suspension are gone.
    PodsOfBefore {
        /// Its name.
        job: String,
    },
    /// A replicated job has not started, and others wait for it.
    Starting {
        /// Its name.
        replicated_job: String,
        /// How many of its Jobs are ready or have ended.
        started: i32,
        /// How many it has.
        replicas: i32,
    },
    /// A replicated job waits for others that it depends on.
    Depending {
        /// Its name.
        replicated_job: String,
        /// The name of the first one it waits for.
        on: String,
    },
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finished { condition } if condition == "Completed" => {
                f.write_str("the JobSet is complete")
            }
            Self::Finished { .. } => f.write_str("the JobSet has failed"),
            Self::ManagedBy(who) => write!(f, "the JobSet is managed by {who}"),
            Self::Invalid(why) => write!(f, "the JobSet cannot be worked on: {why}"),
            Self::BeingDeleted => f.write_str("the JobSet is being deleted"),
            Self::CatchingUp => f.write_str("the JobSet has changed: waiting for the news of it"),
            Self::RestartRecord => {
                f.write_str("the record of the JobSet's restarts in place is not known yet")
            }
            Self::Workers(why) => write!(f, "the workers wait: {why}"),
            Self::Suspended => f.write_str("the JobSet is suspended"),
            Self::Running => f.write_str("all Jobs that may run are there"),
            Self::JobsTerminating { total } => {
                write!(f, "{total} Jobs of an earlier attempt have to be gone first")
            }
            Self::PodsOfBefore { job } => {
                write!(f, "Job {job} goes on when its pods from before are gone")
            }
            Self::Starting { replicated_job, started, replicas } => {
                write!(f, "replicated job {replicated_job} is starting: {started} of {replicas}")
            }
            Self::Depending { replicated_job, on } => {
                write!(f, "replicated job {replicated_job} waits for {on}")
            }
        }
    }
}
