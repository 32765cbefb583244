//! The store proper: what is staged, what is published, and what happened lately.

use std::{collections::VecDeque, sync::Arc};

use jiff::Timestamp;

use crate::{
    Revision,
    change::{Change, Check, Expect, Op, Record, StageError, Staged, Write},
    log::{Event, Expired, Limits, Log},
    object::Object,
    snapshot::Snapshot,
};

/// All objects, in two states: what writers have staged and what readers may see.
///
/// The calling order for a write is [`Store::stage`], then make the records safe, then
/// [`Store::publish`]; or [`Store::roll_back`] when they could not be made safe.
#[derive(Debug)]
pub struct Store {
    head: Snapshot,
    published: Snapshot,
    staged: VecDeque<Pending>,
    log: Log,
    /// The last revision given out. Never goes back, not even when a change is rolled back.
    last: Revision,
}

#[derive(Debug)]
struct Pending {
    table: Arc<str>,
    event: Event,
}

impl Store {
    /// An empty store.
    pub fn new(limits: Limits) -> Self {
        Self::recover(std::iter::empty(), 0, limits)
    }

    /// A store of what was persisted: objects by table and key, and the highest revision ever given
    /// out. Its history begins there.
    pub fn recover(
        objects: impl IntoIterator<Item = (Arc<str>, Arc<str>, Arc<Object>)>,
        highest: Revision,
        limits: Limits,
    ) -> Self {
        let mut head = Snapshot::default();
        let mut last = highest;
        for (table, key, object) in objects {
            let revision = object.revision();
            last = last.max(revision);
            let seen = head.table_revision(&table).max(revision);
            head.apply(seen, &table, &key, Some(&object));
        }
        head.advance(last);
        let published = head.clone();
        Self { head, published, staged: VecDeque::new(), log: Log::new(limits, last), last }
    }

    /// Gives a change its revisions and lets the next change build on it. Readers do not see it yet.
    pub fn stage(&mut self, change: Change) -> Result<Staged, StageError> {
        for check in &change.checks {
            self.check(check)?;
        }
        for op in &change.ops {
            self.expect(&op.table, &op.key, op.expect)?;
        }
        let mut staged = Staged {
            objects: Vec::with_capacity(change.ops.len()),
            records: Vec::with_capacity(change.ops.len()),
            revision: self.last,
        };
        for op in change.ops {
            self.stage_op(op, &mut staged);
        }
        staged.revision = self.last;
        Ok(staged)
    }

    fn stage_op(&mut self, op: Op, staged: &mut Staged) {
        let Op { table, key, write, .. } = op;
        let before = self.head.get(&table, &key).cloned();
        let is_deletion = matches!(write, Write::Delete(_));
        let revision = self.last + 1;
        let object = match (write, &before) {
            // Deleting what is not there changes nothing and takes no revision.
            (Write::Delete(_), None) => return,
            (Write::Put(draft) | Write::Delete(Some(draft)), _) => draft.into_object(revision),
            (Write::Delete(None), Some(before)) => before.at_revision(revision),
        };
        let object = Arc::new(object);
        self.last = revision;
        let current = (!is_deletion).then_some(&object);
        self.head.apply(self.last, &table, &key, current);
        staged.records.push(Record {
            revision: self.last,
            table: Arc::clone(&table),
            key: Arc::clone(&key),
            body: current.map(|object| object.body.clone()),
        });
        staged.objects.push(Arc::clone(&object));
        let event = Event { revision: self.last, key, before, object, is_deletion };
        self.staged.push_back(Pending { table, event });
    }

    fn check(&self, check: &Check) -> Result<(), StageError> {
        match check {
            Check::Object { table, key, expect } => self.expect(table, key, *expect),
            Check::Table { table, revision } => {
                if self.head.table_revision(table) <= *revision {
                    return Ok(());
                }
                Err(StageError::Changed { table: Arc::clone(table), key: "".into() })
            }
        }
    }

    fn expect(&self, table: &Arc<str>, key: &Arc<str>, expect: Expect) -> Result<(), StageError> {
        let found = self.head.get(table, key);
        let holds = match expect {
            Expect::Any => true,
            Expect::Absent => found.is_none(),
            Expect::Revision(revision) => found.is_some_and(|o| o.revision() == revision),
        };
        if holds {
            return Ok(());
        }
        Err(StageError::Changed { table: Arc::clone(table), key: Arc::clone(key) })
    }

    /// Makes everything staged up to `through` visible, in order. The answer names the tables that
    /// changed.
    pub fn publish(&mut self, through: Revision, now: Timestamp) -> Vec<Arc<str>> {
        let mut touched: Vec<Arc<str>> = Vec::new();
        while let Some(pending) = self.staged.pop_front_if(|p| p.event.revision <= through) {
            let Pending { table, event } = pending;
            let current = (!event.is_deletion).then_some(&event.object);
            self.published.apply(event.revision, &table, &event.key, current);
            self.log.push(&table, event, now);
            if !touched.contains(&table) {
                touched.push(table);
            }
        }
        self.log.trim(now);
        touched
    }

    /// Forgets everything staged and not published. The revisions are not given out again.
    pub fn roll_back(&mut self) {
        self.staged.clear();
        self.head = self.published.clone();
    }

    /// What the next change builds on: published and staged.
    pub fn head(&self) -> &Snapshot {
        &self.head
    }

    /// What readers may see.
    pub fn published(&self) -> &Snapshot {
        &self.published
    }

    /// The last revision given out.
    pub fn last_revision(&self) -> Revision {
        self.last
    }

    /// What happened lately.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Forgets history that is older than allowed.
    pub fn trim(&mut self, now: Timestamp) {
        self.log.trim(now);
    }

    /// The state of one table as of `revision`.
    pub fn rewind(&self, table: &str, revision: Revision) -> Result<Rewind, Expired> {
        let events = self.log.events_after(table, revision, usize::MAX)?;
        Ok(Rewind { snapshot: self.published.clone(), table: table.into(), revision, events })
    }
}

/// What it takes to go back to an older revision of one table. Making it is cheap, [`Rewind::run`]
/// needs no lock.
#[derive(Debug)]
#[must_use = "nothing is rewound until it is run"]
pub struct Rewind {
    snapshot: Snapshot,
    table: Arc<str>,
    revision: Revision,
    events: Vec<Arc<Event>>,
}

impl Rewind {
    /// The snapshot; only the one table in it is as it was.
    pub fn run(mut self) -> Snapshot {
        for event in self.events.iter().rev() {
            let before = event.before.as_ref();
            self.snapshot.apply(self.revision, &self.table, &event.key, before);
        }
        self.snapshot.rewound(self.revision);
        self.snapshot
    }
}

#[cfg(test)]
mod tests;
