//! Why a gang does not move.

use std::fmt;

/// What an orchestrator waits for. Slots are given by number, and only some of them where there are
/// many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// The record could not be written yet.
    Store,
    /// It is not known yet which pods there are.
    Pods,
    /// Workers are still being stopped.
    Stops {
        /// How many.
        count: u32,
        /// The first of them.
        slots: Vec<u32>,
    },
    /// Workers are missing: no pod, no agent, or none that can be heard.
    Members {
        /// How many.
        count: u32,
        /// The first of them.
        slots: Vec<u32>,
    },
    /// Workers have no pod: their Jobs have yet to make one, and may put that off.
    Replacements {
        /// How many.
        count: u32,
        /// The first of them.
        slots: Vec<u32>,
    },
    /// Earlier pods of these slots may still be running.
    EarlierPods {
        /// The first of them.
        slots: Vec<u32>,
    },
    /// Pods that are no longer part of the gang may still be running.
    Strays {
        /// How many.
        count: u32,
    },
    /// The job's failure policy has to decide about this worker.
    FailurePolicy {
        /// The worker.
        slot: u32,
    },
    /// The job is suspended.
    Suspended,
}

/// How many slots are named at most.
pub(super) const NAMED_MAX: usize = 8;

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store => write!(f, "the restart record cannot be written"),
            Self::Pods => write!(f, "the pods are not known yet"),
            Self::Stops { count, slots } => {
                write!(f, "{} being stopped: {}", workers(*count), named(slots, *count))
            }
            Self::Members { count, slots } => {
                write!(f, "{} missing: {}", workers(*count), named(slots, *count))
            }
            Self::Replacements { count, slots } => {
                let (some, named) = (without(*count), named(slots, *count));
                write!(f, "{some} no pod: {named}. The Job controller decides when pods are ")?;
                write!(f, "replaced, and may wait 10s or more after several were lost")
            }
            Self::EarlierPods { slots } => {
                let count = u32::try_from(slots.len()).unwrap_or(u32::MAX);
                write!(f, "earlier pods may still run: workers {}", named(slots, count))
            }
            Self::Strays { count: 1 } => write!(f, "1 pod that was removed may still run"),
            Self::Strays { count } => write!(f, "{count} pods that were removed may still run"),
            Self::FailurePolicy { slot } => {
                write!(f, "the failure policy decides about worker {slot}")
            }
            Self::Suspended => write!(f, "the job is suspended"),
        }
    }
}

fn workers(count: u32) -> String {
    if count == 1 { "1 worker is".to_owned() } else { format!("{count} workers are") }
}

fn without(count: u32) -> String {
    if count == 1 { "1 worker has".to_owned() } else { format!("{count} workers have") }
}

fn named(slots: &[u32], count: u32) -> String {
    let some: Vec<String> = slots.iter().map(u32::to_string).collect();
    let more = usize::try_from(count).is_ok_and(|count| count > slots.len());
    if more { format!("{}, ...", some.join(", ")) } else { some.join(", ") }
}
