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
    /// The head as it was when a batch was handed over to be made safe, by its last revision.
    sealed: VecDeque<(Revision, Snapshot)>,
    log: Log,
    /// The last revision given out. Never goes back, not even when a change is rolled back.
    last: Revision,
}

/// What became visible of one table in one go.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The table.
    pub table: Arc<str>,
    /// The last write to the table before this batch.
    pub since: Revision,
    /// Everything up to this revision is visible now.
    pub through: Revision,
    /// What happened, in order.
    pub events: Vec<Arc<Event>>,
}

impl Batch {
    /// Nothing: how it is with a table of which no history is at hand.
    pub fn silence(table: &Arc<str>, published: &Snapshot) -> Self {
        let (since, through) = (published.table_revision(table), published.revision());
        Self { table: Arc::clone(table), since, through, events: Vec::new() }
    }
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
        let log = Log::new(limits, last);
        Self { head, published, staged: VecDeque::new(), sealed: VecDeque::new(), log, last }
    }

    /// Gives a change its revisions and lets the next change build on it. Readers do not see it
    /// yet.
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

    /// Says that what is staged now will be published together. That is cheaper than to find out
    /// later what it was.
    pub fn seal(&mut self) {
        if let Some(last) = self.staged.back() {
            self.sealed.push_back((last.event.revision, self.head.clone()));
        }
    }

    /// Makes everything staged up to `through` visible, in order. The answer is what happened, by
    /// table.
    pub fn publish(&mut self, through: Revision, now: Timestamp) -> Vec<Batch> {
        let mut batches: Vec<Batch> = Vec::new();
        let whole = self.whole_at(through);
        while let Some(pending) = self.staged.pop_front_if(|p| p.event.revision <= through) {
            let Pending { table, event } = pending;
            let event = Arc::new(event);
            let at = batches.iter().position(|batch| batch.table == table).unwrap_or_else(|| {
                let since = self.published.table_revision(&table);
                batches.push(Batch {
                    table: Arc::clone(&table),
                    since,
                    through,
                    events: Vec::new(),
                });
                batches.len() - 1
            });
            if whole.is_none() {
                let current = (!event.is_deletion).then_some(&event.object);
                self.published.apply(event.revision, &table, &event.key, current);
            }
            batches[at].events.push(Arc::clone(&event));
            self.log.push(&table, event, now);
        }
        if let Some(whole) = whole {
            self.published = whole;
        }
        self.log.trim(now);
        batches
    }

    /// The state after `through`, if it is at hand.
    fn whole_at(&mut self, through: Revision) -> Option<Snapshot> {
        while self.sealed.front().is_some_and(|(revision, _)| *revision < through) {
            self.sealed.pop_front();
        }
        match self.sealed.pop_front_if(|(revision, _)| *revision == through) {
            Some((_, snapshot)) => Some(snapshot),
            None => {
                let last = self.staged.back()?.event.revision;
                (last == through).then(|| self.head.clone())
            }
        }
    }

    /// Forgets everything staged and not published. The revisions are not given out again.
    pub fn roll_back(&mut self) {
        self.staged.clear();
        self.sealed.clear();
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
