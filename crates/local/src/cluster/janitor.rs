//! Cleans up: carries out what the store's collectors plan, woken by what happens.

use std::{
    panic::{self, AssertUnwindSafe},
    sync::{Arc, Weak},
    time::Duration,
};

use lockstep_store::{
    Change, Expect, Op, Revision, Snapshot, Write,
    collect::{
        self, Backlog, Candidate, View,
        expiry::{self, Deadlines, EVENT_LIFETIME, EXPIRING_TABLE},
    },
    rest::Catalog,
};
use tokio::{runtime::Handle, sync::watch as signal, time};

use super::{Progress, Shared, commit::CommitError, now};

/// How many candidates are looked at before others get their turn.
const BATCH_MAX: usize = 64;
/// How long to wait when writes fail.
const PAUSE: Duration = Duration::from_secs(1);
/// How often old history is forgotten when nothing else happens.
const TRIM_EVERY: Duration = Duration::from_secs(60);

/// Starts to clean up, if there is a runtime to do it in. It ends with the cluster.
pub(super) fn start(shared: &Arc<Shared>) {
    let Ok(runtime) = Handle::try_current() else {
        return;
    };
    let progress = shared.progress.subscribe();
    runtime.spawn(run(Arc::downgrade(shared), progress));
}

async fn run(shared: Weak<Shared>, mut progress: signal::Receiver<Progress>) {
    let mut janitor = Janitor::default();
    loop {
        let pause = {
            let Some(shared) = shared.upgrade() else { return };
            progress.borrow_and_update();
            janitor.observe(&shared);
            janitor.work(&shared).await
        };
        let closed = match pause {
            Pause::None => {
                tokio::task::yield_now().await;
                continue;
            }
            Pause::Until(at) => tokio::select! {
                changed = progress.changed() => changed.is_err() || progress.borrow().is_closed,
                () = time::sleep(at) => false,
            },
            Pause::Failing => tokio::select! {
                _ = progress.wait_for(|progress| progress.is_closed) => true,
                () = time::sleep(PAUSE) => false,
            },
        };
        if closed {
            return;
        }
    }
}

/// How long there is nothing to do.
enum Pause {
    None,
    /// Until then, unless something happens.
    Until(Duration),
    /// For a while, whatever happens: our own failed writes are among it.
    Failing,
}

#[derive(Default)]
struct Janitor {
    /// Everything up to this revision has been seen; none at the start.
    cursor: Option<Revision>,
    backlog: Backlog,
    deadlines: Deadlines,
}

impl Janitor {
    /// Notes what happened since the last time.
    fn observe(&mut self, shared: &Shared) {
        let snapshot = shared.published.load_full();
        let Some(cursor) = self.cursor.replace(snapshot.revision()) else {
            return self.take_stock(&snapshot, &shared.catalog.load());
        };
        if cursor == snapshot.revision() {
            return;
        }
        let catalog = shared.catalog.load_full();
        for (table, _) in catalog.tables() {
            if snapshot.table_revision(table) <= cursor {
                continue;
            }
            let events = shared.lock().store.log().events_after(table, cursor, usize::MAX);
            let Ok(events) = events else {
                return self.take_stock(&snapshot, &catalog);
            };
            for event in events {
                if &**table == EXPIRING_TABLE {
                    if event.is_deletion {
                        self.deadlines.forget(&event.key);
                    } else {
                        self.deadlines.touch(&event.key, now());
                    }
                }
                let found = collect::candidates(&snapshot, &catalog, table, &event);
                self.backlog.extend(found);
            }
        }
    }

    /// Looks at everything: after a start, and when history has moved on.
    fn take_stock(&mut self, snapshot: &Snapshot, catalog: &Catalog) {
        self.backlog.extend(collect::all_candidates(snapshot, catalog));
        self.deadlines = Deadlines::default();
        for (key, object) in snapshot.range(EXPIRING_TABLE, None, None) {
            self.deadlines.touch(key, expiry::last_written(object, now()));
        }
    }

    /// Does some of what there is to do.
    async fn work(&mut self, shared: &Shared) -> Pause {
        let mut changes: Vec<(Cause, Change)> =
            self.deadlines.take_due(now(), BATCH_MAX).into_iter().map(expiration).collect();
        if !self.backlog.is_empty() || self.backlog.next().is_some_and(|at| at <= now()) {
            let snapshot = shared.lock().store.head().clone();
            let context = collect::context(now(), uuid::Uuid::new_v4().to_string());
            let catalog = shared.catalog.load_full();
            let view = View { snapshot: &snapshot, catalog: &catalog, context: &context };
            let may_wait = |candidate: &Candidate| collect::may_wait(&view, candidate);
            for candidate in self.backlog.take(context.now, BATCH_MAX, may_wait) {
                let planned = guarded(&candidate, || collect::plan(&view, &candidate));
                let cause = || Cause::Look(candidate.clone());
                changes.extend(planned.into_iter().map(|change| (cause(), change)));
            }
        }
        let (causes, changes): (Vec<_>, Vec<_>) = changes.into_iter().unzip();
        let outcomes = shared.commit_all(changes).await;
        let mut is_failing = false;
        for (cause, outcome) in causes.into_iter().zip(outcomes) {
            let Err(error) = outcome else { continue };
            is_failing |= matches!(error, CommitError::Lost(_));
            match cause {
                Cause::Look(candidate) => self.backlog.extend([candidate]),
                Cause::Expired(key) => self.deadlines.touch(&key, now() - EVENT_LIFETIME),
            }
        }
        if is_failing { Pause::Failing } else { self.pause(shared) }
    }

    fn pause(&self, shared: &Shared) -> Pause {
        if !self.backlog.is_empty() {
            return Pause::None;
        }
        // History grows old even when nothing happens.
        let is_remembering = {
            let mut core = shared.lock();
            core.store.trim(now());
            shared.forget_batches(&core);
            !core.store.log().is_empty()
        };
        let is_remembering = shared.retained().trim() || is_remembering;
        let rest = if is_remembering { TRIM_EVERY } else { Duration::MAX };
        let next = self.deadlines.next().into_iter().chain(self.backlog.next()).min();
        let next = next.map(|at| at.duration_since(now()));
        Pause::Until(next.map_or(rest, |left| left.try_into().unwrap_or_default()).min(rest))
    }
}

/// Plans for one candidate. A panic is a bug, but one object must not keep all others from being
/// cleaned up; it is looked at again when something happens to it.
fn guarded(candidate: &Candidate, plan: impl FnOnce() -> Vec<Change>) -> Vec<Change> {
    panic::catch_unwind(AssertUnwindSafe(plan)).unwrap_or_else(|_| {
        let (table, key) = candidate;
        tracing::error!(%table, %key, "cleaning up after an object failed");
        Vec::new()
    })
}

/// Why a change is made.
enum Cause {
    Look(Candidate),
    Expired(Arc<str>),
}

fn expiration(key: Arc<str>) -> (Cause, Change) {
    let op = Op {
        table: EXPIRING_TABLE.into(),
        key: Arc::clone(&key),
        expect: Expect::Any,
        write: Write::Delete(None),
    };
    (Cause::Expired(key), Change { checks: Vec::new(), ops: vec![op] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_object_that_cannot_be_planned_for_keeps_no_other_from_it() {
        let candidate = |key: &str| -> Candidate { ("pods".into(), key.into()) };
        let planned: Vec<usize> = ["n/a", "n/broken", "n/c"]
            .iter()
            .map(|key| {
                let plan = || {
                    assert_ne!(*key, "n/broken", "a bug of ours");
                    vec![expiration((*key).into()).1]
                };
                guarded(&candidate(key), plan).len()
            })
            .collect();
        assert_eq!(planned, [1, 0, 1]);
    }
}
