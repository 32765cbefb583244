//! What an agent says on the bus: who it is and how it is, at once, since whoever reads it may
//! never have heard of it.

use serde::{Deserialize, Serialize};

use crate::wire::{Hello, Status};

/// One report of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Letter {
    pub(super) hello: Hello,
    pub(super) status: Status,
}

#[cfg(test)]
pub(super) mod tests {
    use lockstep_control::plan::restart::{Report, Restarts, Worker};

    use super::*;
    use crate::wire::PROTOCOL;

    pub(in super::super) fn letter(pod: &str, session: u64) -> Letter {
        let hello = Hello { protocol: PROTOCOL, ticket: "ticket".into(), pod: pod.into() };
        let report = Report {
            slot: 0,
            pod: 0,
            session,
            sequence: 1,
            generation: 1,
            fence: 0,
            held: None,
            restarts: Restarts::default(),
            worker: Worker::Idle,
        };
        Letter { hello, status: report.into() }
    }
}
