//! Restarting a gang in place: both ends of the protocol, as machines without IO.
//!
//! One [`Orchestrator`] leads a gang, one [`Agent`] stands around each worker. What passes between
//! them is always a whole state, never a command: an [`Order`] says what the gang should be doing,
//! a [`Report`] says what one worker is doing. Both can be lost, doubled or overtake each other:
//! the later state wins, by comparing numbers.
//!
//! A restart is a new **epoch**. The orchestrator writes it down ([`Effect::Commit`]) before anyone
//! hears of it, everybody stops and waits ([`Duty::Hold`]), and only when all of them have said so
//! the release is written down and told ([`Duty::Run`]). So no worker of one epoch ever runs beside
//! one of another, whatever is killed, cut off or late.
//!
//! Three numbers keep the late and the lost apart. The **generation** counts how often all pods
//! were made anew, the **epoch** how often the workers were started, and the **fence** the leaders:
//! who has heard a later leader does not listen to an earlier one. The fleet is the backup of the
//! record: each agent remembers the last order, so that a leader whose record is behind, or gone,
//! takes the latest state that any of them has seen.

mod agent;
mod cause;
mod moment;
mod orchestrator;
mod order;
mod record;
mod report;
mod terms;
#[cfg(test)]
mod tests;
mod waiting;

pub use agent::{Agent, AgentEffect, Identity};
pub use cause::Cause;
pub use moment::Moment;
pub use orchestrator::{Effect, Orchestrator, Waterfall, Workers};
pub use order::{Duty, Order, Rank, Restarts};
pub use record::{Expected, Phase, Reason, Record};
pub use report::{Held, Report, Worker};
pub use terms::{Completion, ExitRule, Terms, Verdict};
pub use waiting::Waiting;
