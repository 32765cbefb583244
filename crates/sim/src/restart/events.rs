//! What happens in a world.

use lockstep_control::plan::restart::{Expected, Order, Record, Report};

use super::trouble::Trouble;

/// A connection of an agent to a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Link {
    pub(super) leader: u64,
    pub(super) number: u64,
}

/// What the store says.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    Written,
    Unsure,
    Refused(u64),
}

/// What a leader is told of a pod.
#[derive(Clone, Copy, Debug)]
pub(super) enum PodNews {
    Seen,
    Ending,
    /// With its generation, if it has completed.
    Gone {
        completed: Option<u32>,
    },
    AllKnown,
}

/// What happens.
#[derive(Clone, Debug)]
pub(super) enum Event {
    Boot { pod: u64 },
    Dial { pod: u64, session: u64, tries: u32 },
    AgentTick { pod: u64, session: u64 },
    Spawned { pod: u64, epoch: u32 },
    Exited { pod: u64, process: u64, code: i32 },
    Gone { pod: u64, process: u64 },
    ToAgent { pod: u64, session: u64, link: Link, order: Order },
    ToLeader { link: Link, report: Report },
    LinkLost { link: Link, slot: u32 },
    LeaderTick { leader: u64 },
    Store { leader: u64, record: Record, expected: Expected },
    Stored { leader: u64, version: (u64, u64), answer: Answer },
    News { leader: u64, slot: u32, pod: u64, news: PodNews },
    CreatePod { slot: u32 },
    DeletePod { pod: u64 },
    EndPod { pod: u64, is_forced: bool },
    Sweep { generation: u32 },
    Remind { leader: u64 },
    Elect,
    Depose { leader: u64 },
    Policy,
    Resume,
    Amend { leader: u64 },
    Resized,
    Forget,
    Trouble(Trouble),
}

impl Event {
    /// The leader that it reaches, if it reaches one.
    pub(super) const fn leader(&self) -> Option<u64> {
        match self {
            Self::ToLeader { link, .. } | Self::LinkLost { link, .. } => Some(link.leader),
            Self::LeaderTick { leader }
            | Self::Remind { leader }
            | Self::Amend { leader }
            | Self::Stored { leader, .. }
            | Self::News { leader, .. } => Some(*leader),
            Self::Boot { .. }
            | Self::Dial { .. }
            | Self::AgentTick { .. }
            | Self::Spawned { .. }
            | Self::Exited { .. }
            | Self::Gone { .. }
            | Self::ToAgent { .. }
            | Self::Store { .. }
            | Self::CreatePod { .. }
            | Self::DeletePod { .. }
            | Self::EndPod { .. }
            | Self::Sweep { .. }
            | Self::Elect
            | Self::Depose { .. }
            | Self::Policy
            | Self::Resume
            | Self::Resized
            | Self::Forget
            | Self::Trouble(_) => None,
        }
    }
}
