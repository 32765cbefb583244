//! What is where in Valkey, and which of two things there is the later one.

use lockstep_control::plan::restart::{Order, Record};

/// The names of one job. All of them have the job in braces, so that a server that shards keeps
/// them together. What is said under a name is published on the channel of the same name.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    /// What the leader has written down.
    pub(super) record: String,
    /// What all agents were told last.
    pub(super) order: String,
    /// What each agent has said last, by the uid of its pod.
    pub(super) reports: String,
    job: String,
}

impl Keys {
    pub(super) fn new(job: &str) -> Self {
        let name = |what| format!("lockstep:{{{job}}}:{what}");
        let (record, order, reports) = (name("record"), name("order"), name("reports"));
        Self { record, order, reports, job: job.to_owned() }
    }

    /// What one agent was told last. It is of one life of the agent: the next one in its pod must
    /// not take it for its own.
    pub(super) fn told(&self, session: u64) -> String {
        format!("lockstep:{{{}}}:told:{session:016x}", self.job)
    }
}

/// A version that is later than any of a leader.
pub(super) const LAST_VERSION: &str = "9999999999999999999999999999999999999999";

/// Versions are text of a fixed length that only has digits, so that a script can compare them as
/// text: its numbers are not exact.
pub(super) fn version((fence, revision): (u64, u64)) -> String {
    format!("{fence:020}{revision:020}")
}

/// The version of an order. One of a later leader is later, whatever it says; agents look at the
/// rank.
pub(super) fn order_version(order: &Order) -> String {
    let rank = order.rank;
    let duty = rank.duty as u8;
    format!("{:020}{:010}{:010}{duty}", order.fence, rank.generation, rank.epoch)
}

/// The leader of a version.
pub(super) fn fence(version: &str) -> Option<u64> {
    version.get(..20)?.parse().ok()
}

/// What agents should have been told by a leader that has written this; nothing if it has written
/// nothing, or something that is not told.
pub(super) fn told(record: &Record) -> Option<Order> {
    use lockstep_control::plan::restart::Phase;
    let is_told = record.revision > 0 && record.phase != Phase::Suspended;
    is_told.then(|| record.order())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lockstep_control::plan::restart::{Duty, Phase, Rank, Restarts, Terms};

    use super::*;

    #[test]
    fn as_text_the_later_version_is_the_greater_one() {
        let versions = [(0, 0), (0, 9), (0, 10), (9, 99), (10, 0), (u64::MAX, 0), (u64::MAX, 1)];
        for pair in versions.windows(2) {
            assert!(version(pair[0]) < version(pair[1]), "{pair:?}");
        }
        assert!(versions.iter().all(|it| fence(&version(*it)) == Some(it.0)));
        assert!(versions.iter().all(|it| *version(*it) < *LAST_VERSION));
        assert_eq!(fence(LAST_VERSION), None, "nobody steps down for it");
        assert_eq!(fence(""), None);
        let order = |fence, generation, epoch, duty| {
            let rank = Rank { generation, epoch, duty };
            let restarts = Restarts::default();
            order_version(&Order { fence, rank, by: 0, restarts, is_rejoining: true })
        };
        let orders = [
            order(1, 1, 9, Duty::Hold),
            order(1, 1, 9, Duty::Run),
            order(1, 1, 10, Duty::Hold),
            order(1, 2, 10, Duty::Surrender),
            order(2, 1, 0, Duty::Hold),
        ];
        assert!(orders.is_sorted());
    }

    #[test]
    fn what_was_not_written_is_not_told() {
        let terms = Terms::new(2, 1, Duration::from_secs(60));
        let record = Record::new(3, &terms);
        assert_eq!(told(&record), None);
        let written = Record { revision: 1, ..record };
        assert_eq!(told(&written), Some(written.order()));
        assert_eq!(told(&Record { phase: Phase::Suspended, ..written }), None);
    }

    #[test]
    fn all_names_of_a_job_have_it_in_braces() {
        let keys = Keys::new("uid");
        assert_eq!(keys.order, "lockstep:{uid}:order");
        assert_eq!(keys.told(10), "lockstep:{uid}:told:000000000000000a");
    }
}
