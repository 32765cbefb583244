//! Restarts in place: what a set asks for of whoever leads them, and what becomes of the set
//! through them.
//!
//! The workers of a set are led as a gang (see [`crate::plan::restart`]) by a task beside the
//! controller of JobSets. What that task needs to know of the set is made here: [`terms()`] and
//! [`Seats`]. What the set needs to know of the gang comes back as a [`Gang`], and is acted on like
//! anything else that was seen: the count of restarts is written down first, then a set is made
//! anew, or fails, when the gang says so.

mod decide;
mod excuses;
mod inject;
mod seats;
mod terms;

use lockstep_api::jobset::{InPlaceRestart, InPlaceWorkers};

pub(super) use decide::{Turn, counted, prepare, ticket, with_workers};
pub use excuses::Excuses;
pub use inject::inject;
pub use seats::{Seats, generation};
pub use terms::terms;

pub(in crate::plan) use inject::has_agent;

use crate::plan::restart::Record;

/// How the workers of a set reach whoever leads their restarts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wiring {
    /// The way there.
    pub way: Way,
    /// Where the agent comes from.
    pub agent: AgentSource,
}

/// The way from a worker to whoever leads its restarts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// Straight to the orchestrator.
    Orchestrator {
        /// Where it listens: host and port.
        address: String,
        /// The certificates it can be trusted by, as PEM.
        ca: String,
    },
    /// Through a bus that orchestrators come and go at.
    Bus {
        /// Its URL, without anything secret.
        url: String,
        /// The certificates it can be trusted by, as PEM; none without TLS.
        ca: Option<String>,
        /// The user that agents are there.
        user: Option<String>,
        /// Whether that user has a password. It is in the Secret of the set.
        has_password: bool,
    },
}

/// Where the agent comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentSource {
    /// A program that every node has at this path.
    Path(String),
    /// An image that has it as its entry point, and copies it where the workers find it.
    Image(String),
}

/// What is known of the workers of a set that restarts in place.
#[derive(Clone, Debug, PartialEq)]
pub struct Gang {
    /// What is written down of them.
    pub record: Record,
    /// What they have been waiting for, for some time.
    pub waiting: String,
    /// What they do; nothing while that changes.
    pub workers: Vec<InPlaceWorkers>,
    /// The last restarts, oldest first.
    pub restarts: Vec<InPlaceRestart>,
    /// The Job whose worker failed last, the worker, and what happened to it.
    pub last_failure: Option<(String, String, String)>,
}

/// The name of the Secret with the tickets of a set's agents, and of the ConfigMap with the record
/// of its restarts.
pub fn secret(set_name: &str) -> String {
    format!("{set_name}-in-place-restart")
}

/// The key in the Secret of the password that agents have at the bus.
pub const BUS_PASSWORD_KEY: &str = "bus-password";

/// The key in the Secret of the ticket for the pods of a generation.
pub fn ticket_key(generation: u32) -> String {
    format!("ticket-{generation}")
}
