//! Group commit: changes are staged one by one, made safe together, and then seen together.

use std::{
    collections::BTreeSet,
    io,
    panic::{self, AssertUnwindSafe},
    sync::{Arc, PoisonError},
    thread,
};

use lockstep_api::{Status, definition::PLURAL as DEFINITIONS};
use lockstep_store::{Batch, Change, Object, Record, Revision, Snapshot, StageError, Store};
use tokio::sync::oneshot;

use super::{Cluster, Progress, Shared, now};
use crate::journal::{Journal, JournalError};

/// What the lock guards.
pub(super) struct Core {
    pub(super) store: Store,
    /// Whether records must be made safe before they are seen.
    is_durable: bool,
    records: Vec<Record>,
    waiting: Vec<oneshot::Sender<Saved>>,
    pub(super) is_closed: bool,
    /// How often staged changes were given up.
    roll_backs: u64,
    /// Why the last commit failed, until one succeeds.
    pub(super) failure: Option<String>,
}

impl Core {
    pub(super) fn new(store: Store, is_durable: bool) -> Self {
        Self {
            store,
            is_durable,
            records: Vec::new(),
            waiting: Vec::new(),
            is_closed: false,
            roll_backs: 0,
            failure: None,
        }
    }
}

/// What became of one change: an object for each op.
type Outcome = Result<Vec<Arc<Object>>, CommitError>;
/// What became of a batch.
type Saved = Result<(), Arc<JournalError>>;

/// Why a change did not go in.
pub(super) enum CommitError {
    /// Somebody else wrote first: plan again.
    Changed,
    /// It could not be made safe.
    Lost(Status),
}

impl Cluster {
    /// What the next write builds on.
    pub(super) fn head(&self) -> Head {
        let core = self.0.core.lock();
        Head { snapshot: core.store.head().clone(), roll_backs: core.roll_backs }
    }

    /// Waits until `revision`, which a planner has seen in `head`, can be seen by all. The answer
    /// is whether it can for sure: it may have been given up instead.
    pub(super) async fn settle(&self, head: &Head, revision: Revision) -> bool {
        let mut progress = self.0.core.progress.subscribe();
        let is_given_up = |now: &Progress| now.roll_backs != head.roll_backs;
        let settled = progress.wait_for(|now| now.revision >= revision || is_given_up(now)).await;
        settled.is_ok_and(|now| !is_given_up(&now))
    }
}

/// What the next write builds on, and which of the states that may be given up it belongs to.
pub(super) struct Head {
    pub(super) snapshot: Snapshot,
    roll_backs: u64,
}

/// What a client is told when nothing is taken any more.
fn closed(failure: Option<&str>) -> Status {
    match failure {
        Some(why) => Status::internal(format!("the write could not be saved: {why}")),
        None => Status::unavailable("the cluster is shutting down"),
    }
}

/// What a client is told when its write could not be made safe.
fn lost(error: &JournalError) -> Status {
    Status::internal(format!("the write could not be saved: {error}"))
}

impl Shared {
    /// Puts a change in and waits until it is safe and can be seen. The answer has one object for
    /// each op.
    pub(super) async fn commit(&self, change: Change) -> Outcome {
        let mut outcomes = self.commit_all(vec![change]).await;
        outcomes.pop().expect("each change has an outcome")
    }

    /// Puts in all changes that still fit, each for itself, and waits until they are safe.
    pub(super) async fn commit_all(&self, changes: Vec<Change>) -> Vec<Outcome> {
        let (mut outcomes, done) = self.stage(changes);
        let Some(done) = done else {
            return outcomes;
        };
        self.work.notify_one();
        let lost = match done.await {
            Ok(Ok(())) => return outcomes,
            Ok(Err(error)) => lost(&error),
            Err(_) => closed(self.lock().failure.as_deref()),
        };
        for outcome in outcomes.iter_mut().filter(|outcome| outcome.is_ok()) {
            *outcome = Err(CommitError::Lost(lost.clone()));
        }
        outcomes
    }

    /// Stages what still fits. Without a journal it can be seen at once; otherwise the receiver
    /// says when.
    fn stage(&self, changes: Vec<Change>) -> (Vec<Outcome>, Option<oneshot::Receiver<Saved>>) {
        let mut core = self.lock();
        if core.is_closed {
            let lost = || Err(CommitError::Lost(closed(core.failure.as_deref())));
            return (changes.iter().map(|_| lost()).collect(), None);
        }
        let mut written = None;
        let mut outcomes = Vec::with_capacity(changes.len());
        for change in changes {
            outcomes.push(match core.store.stage(change) {
                Err(StageError::Changed { .. }) => Err(CommitError::Changed),
                Ok(stage) => {
                    // A change may come to nothing: then there is nothing to wait for either.
                    written = stage.records.last().map(|record| record.revision).or(written);
                    core.records.extend(stage.records);
                    Ok(stage.objects)
                }
            });
        }
        let Some(through) = written else {
            return (outcomes, None);
        };
        if !core.is_durable {
            core.records.clear();
            self.publish(&mut core, through);
            return (outcomes, None);
        }
        let (sender, receiver) = oneshot::channel();
        core.waiting.push(sender);
        (outcomes, Some(receiver))
    }

    /// Lets everybody see what is staged up to `through`.
    fn publish(&self, core: &mut Core, through: Revision) {
        let batches = core.store.publish(through, now());
        let snapshot = core.store.published().clone();
        let revision = snapshot.revision();
        if batches.iter().any(|batch| &*batch.table == DEFINITIONS) {
            self.redefine(&snapshot);
        }
        self.published.store(Arc::new(snapshot));
        let tables = self.tables.load();
        for batch in batches {
            if let Some(table) = tables.get(&batch.table) {
                table.send_replace(Arc::new(batch));
            }
        }
        self.progress.send_modify(|progress| progress.revision = revision);
    }

    /// Lets go of the last batch of each table whose events history has forgotten: a watcher that
    /// has not seen it is too late.
    pub(super) fn forget_batches(&self, core: &Core) {
        let (log, published) = (core.store.log(), core.store.published());
        for (table, sender) in &**self.tables.load() {
            sender.send_if_modified(|batch| {
                let first = batch.events.first().map(|event| event.revision);
                if first.is_some_and(|first| log.check(table, first - 1).is_err()) {
                    *batch = Arc::new(Batch::silence(table, published));
                }
                // Nothing happened.
                false
            });
        }
    }

    /// Gives up everything staged. The answer is those who wait for it.
    fn roll_back(&self, core: &mut Core, why: String) -> Vec<oneshot::Sender<Saved>> {
        core.store.roll_back();
        core.records.clear();
        core.failure = Some(why);
        core.roll_backs += 1;
        self.progress.send_modify(|progress| progress.roll_backs = core.roll_backs);
        std::mem::take(&mut core.waiting)
    }
}

/// Starts the one thread that writes to `journal`.
pub(super) fn start(
    shared: Arc<Shared>,
    mut journal: Box<dyn Journal>,
) -> io::Result<thread::JoinHandle<()>> {
    thread::Builder::new().name("committer".to_owned()).spawn(move || {
        let work = AssertUnwindSafe(|| {
            run(&shared, &mut *journal);
            journal.close();
        });
        if panic::catch_unwind(work).is_err() {
            give_up(&shared);
        }
    })
}

/// Nobody will make anything safe any more: all who wait are told, and all who come.
fn give_up(shared: &Shared) {
    let mut core = shared.lock();
    core.is_closed = true;
    let why = "the thread that writes the journal failed; start again".to_owned();
    tracing::error!("{why}");
    // Whoever waits hears of it by losing the other end.
    drop(shared.roll_back(&mut core, why));
}

fn run(shared: &Shared, journal: &mut dyn Journal) {
    let mut doubtful = BTreeSet::new();
    loop {
        let mut core = shared.lock();
        while core.records.is_empty() && !core.is_closed {
            core = shared.work.wait(core).unwrap_or_else(PoisonError::into_inner);
        }
        if core.records.is_empty() {
            let records = restated(core.store.published(), &doubtful);
            drop(core);
            // If it fails it is as if we had crashed in the failed commit.
            let _as_after_a_crash = journal.commit(&records);
            return;
        }
        let mut records = restated(core.store.published(), &doubtful);
        records.append(&mut core.records);
        let mut waiting = std::mem::take(&mut core.waiting);
        core.store.seal();
        drop(core);
        let through = records.last().map_or(0, |record| record.revision);
        let outcome = journal.commit(&records).map_err(Arc::new);
        let mut core = shared.lock();
        match &outcome {
            Ok(()) => {
                core.failure = None;
                doubtful.clear();
                shared.publish(&mut core, through);
            }
            // What was staged since builds on what is lost, so it is lost too.
            Err(error) => {
                doubtful.extend(records.into_iter().map(|record| (record.table, record.key)));
                waiting.extend(shared.roll_back(&mut core, error.to_string()));
            }
        }
        drop(core);
        for waiter in waiting {
            let _gone = waiter.send(outcome.clone());
        }
    }
}

/// Records that say again what is published of keys whose last commit failed: a disk that said no
/// may still have kept what it was given.
fn restated(published: &Snapshot, doubtful: &BTreeSet<(Arc<str>, Arc<str>)>) -> Vec<Record> {
    let record = |(table, key): &(Arc<str>, Arc<str>)| {
        let object = published.get(table, key);
        Record {
            revision: object.map_or(0, |object| object.revision()),
            table: Arc::clone(table),
            key: Arc::clone(key),
            body: object.map(|object| object.body.clone()),
        }
    };
    doubtful.iter().map(record).collect()
}
