//! Where leaders write their record: slow, away, behind or empty at times.

use lockstep_control::plan::restart::{Expected, Record};

/// The store, with what it held before.
#[derive(Clone, Debug, Default)]
pub(super) struct Vault {
    kept: Vec<Record>,
    /// Until when nobody can reach it.
    pub(super) away_until: u64,
    /// Whether it takes nothing any more, because the job was deleted.
    is_closed: bool,
}

impl Vault {
    pub(super) fn record(&self) -> Option<&Record> {
        self.kept.last()
    }

    /// Writes, if what is there allows it; the fence of what is there, if not.
    pub(super) fn write(&mut self, record: Record, expected: Expected) -> Result<(), u64> {
        if self.is_closed {
            return Err(u64::MAX);
        }
        let there = self.record();
        if !expected.allows(there, &record) {
            return Err(there.map_or(0, |there| there.fence));
        }
        self.kept.push(record);
        Ok(())
    }

    /// The last `count` writes are lost. Whether anything was.
    pub(super) fn roll_back(&mut self, count: usize) -> bool {
        let kept = self.kept.len().saturating_sub(count);
        let has_lost = kept < self.kept.len();
        self.kept.truncate(kept);
        has_lost
    }

    /// The job was deleted. A store that remembers it takes no record of it any more.
    pub(super) fn forget(&mut self, remembers: bool) {
        self.kept.clear();
        self.is_closed = remembers;
    }
}
