//! What happened lately, for those who watch: one bounded history per table.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};

use crate::{Revision, object::Object};

/// One write, with what was there before it.
#[derive(Clone, Debug)]
pub struct Event {
    /// The revision of the write.
    pub revision: Revision,
    /// The key in the table.
    pub key: Arc<str>,
    /// What was there before.
    pub before: Option<Arc<Object>>,
    /// What is there now, or for a deletion the last state with the revision of the deletion.
    pub object: Arc<Object>,
    /// Whether the object is gone.
    pub is_deletion: bool,
}

/// The history asked for is no longer kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too old resource version: {asked} ({oldest})")]
pub struct Expired {
    /// The revision asked for.
    pub asked: Revision,
    /// The oldest revision that can be asked for.
    pub oldest: Revision,
}

/// How much history is kept: as much as fits all of these.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Events of all tables together.
    pub events_max: usize,
    /// Bytes of memory that the versions in it may take.
    pub bytes_max: usize,
    /// How old an event may get.
    pub age_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        // Room for a few seconds of as many writes as a machine can make: whoever has to list
        // fifteen thousand pods anew because it fell behind falls behind all the more.
        Self { events_max: 200_000, bytes_max: 256 << 20, age_max: Duration::from_secs(300) }
    }
}

/// What a version holds beside its encoding: metadata, selectable fields, and the event itself.
const OVERHEAD_BYTES: usize = 768;

/// How much memory an event takes, about.
fn weight(event: &Event) -> usize {
    event.object.body.len() + OVERHEAD_BYTES
}

/// The bounded history of all tables.
#[derive(Debug)]
pub struct Log {
    limits: Limits,
    tables: BTreeMap<Arc<str>, TableLog>,
    /// The order over all tables, to forget the oldest first.
    order: VecDeque<Entry>,
    bytes: usize,
    /// Before this revision nothing is known of any table.
    floor: Revision,
}

#[derive(Debug, Default)]
struct TableLog {
    events: VecDeque<Arc<Event>>,
    /// The last event forgotten.
    compacted: Revision,
}

#[derive(Debug)]
struct Entry {
    table: Arc<str>,
    at: Timestamp,
}

impl Log {
    /// An empty history that begins after `floor`.
    pub fn new(limits: Limits, floor: Revision) -> Self {
        Self { limits, tables: BTreeMap::new(), order: VecDeque::new(), bytes: 0, floor }
    }

    /// Up to `max` events of `table` after `revision`, oldest first.
    pub fn events_after(
        &self,
        table: &str,
        revision: Revision,
        max: usize,
    ) -> Result<Vec<Arc<Event>>, Expired> {
        self.check(table, revision)?;
        let Some(log) = self.tables.get(table) else {
            return Ok(Vec::new());
        };
        let start = log.events.partition_point(|event| event.revision <= revision);
        Ok(log.events.range(start..).take(max).cloned().collect())
    }

    /// Whether everything that happened to `table` after `revision` is still known.
    pub fn check(&self, table: &str, revision: Revision) -> Result<(), Expired> {
        let compacted = self.tables.get(table).map_or(0, |log| log.compacted);
        let oldest = compacted.max(self.floor);
        if revision < oldest { Err(Expired { asked: revision, oldest }) } else { Ok(()) }
    }

    /// Remembers an event, which must be younger than all before it.
    pub(crate) fn push(&mut self, table: &Arc<str>, event: Arc<Event>, now: Timestamp) {
        self.bytes += weight(&event);
        let log = self.tables.entry(Arc::clone(table)).or_default();
        log.events.push_back(event);
        self.order.push_back(Entry { table: Arc::clone(table), at: now });
    }

    /// Forgets what the limits do not allow for.
    pub fn trim(&mut self, now: Timestamp) {
        while let Some(oldest) = self.order.front() {
            // A clock that was put back makes nothing old.
            let age = now.duration_since(oldest.at).max(SignedDuration::ZERO);
            let is_full =
                self.order.len() > self.limits.events_max || self.bytes > self.limits.bytes_max;
            if !is_full && age.unsigned_abs() <= self.limits.age_max {
                return;
            }
            let entry = self.order.pop_front().expect("the front was just looked at");
            let log = self.tables.get_mut(&entry.table).expect("an entry names its table");
            let event = log.events.pop_front().expect("each entry stands for one event");
            log.compacted = event.revision;
            self.bytes -= weight(&event);
        }
    }

    /// How many events are kept.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}
