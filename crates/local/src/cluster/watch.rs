//! Watches: cursors into the store's bounded history. Nothing is queued for a watcher, so a slow
//! one costs no memory; it is told when the history it needs is gone.

use std::sync::Arc;

use lockstep_api::Status;
use lockstep_store::{
    Batch, Revision, page,
    watch::{EventType, Filter, Notice, WatchStart},
};
use tokio::sync::watch as signal;

use super::{Cluster, list::PATIENCE};

/// How many events a watcher looks at in one go.
const BATCH_MAX: usize = 512;

/// One watch. Dropping it ends it.
pub struct Watch {
    cluster: Cluster,
    filter: Filter,
    initial: Vec<Notice>,
    /// Everything up to this revision has been handed out.
    cursor: Revision,
    changed: signal::Receiver<Arc<Batch>>,
}

impl Cluster {
    /// Starts to watch what `filter` selects.
    ///
    /// # Errors
    /// 410 when the history asked for is no longer kept, 504 when it is not there yet.
    pub async fn watch(&self, filter: Filter, start: WatchStart) -> Result<Watch, Status> {
        let table = &*filter.resource.table;
        let changed = self.0.core.tables.load().get(table).map(signal::Sender::subscribe);
        let Some(changed) = changed else { return Err(Status::no_such_resource()) };
        let (initial, cursor) = match start {
            WatchStart::After(revision) => {
                // A revision we never reach is from another state: who waits for it misses events.
                self.wait_for(revision, PATIENCE).await?;
                let core = self.0.core.lock();
                core.store
                    .log()
                    .check(table, revision)
                    .map_err(|e| Status::expired(e.to_string()))?;
                (Vec::new(), revision)
            }
            WatchStart::Now => {
                let page = page::list(&self.snapshot(), &filter, None, None);
                let notice = |object| Notice { kind: EventType::Added, object };
                (page.items.into_iter().map(notice).collect(), page.revision)
            }
        };
        Ok(Watch { cluster: self.clone(), filter, initial, cursor, changed })
    }
}

impl Watch {
    /// The objects that were there at the start, as additions; empty the second time, and for a
    /// watch that began at a revision.
    pub fn take_initial(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.initial)
    }

    /// The revision up to which everything has been handed out: what a bookmark says.
    pub fn revision(&self) -> Revision {
        self.cursor
    }

    /// Whether nothing more will happen here, as the kind is defined anew or no more.
    pub fn is_over(&self) -> bool {
        self.changed.has_changed().is_err()
    }

    /// The next things that happened: waits for the first, then takes what there is.
    ///
    /// This may be dropped and called again without losing anything.
    ///
    /// # Errors
    /// 410 when the watcher was too slow and history has moved on.
    pub async fn next(&mut self) -> Result<Vec<Notice>, Status> {
        if !self.initial.is_empty() {
            return Ok(self.take_initial());
        }
        loop {
            let notices = self.poll_notices()?;
            if !notices.is_empty() {
                return Ok(notices);
            }
            if self.is_behind() {
                continue;
            }
            if self.changed.changed().await.is_err() {
                return Err(Status::unavailable("the cluster is shutting down"));
            }
        }
    }

    fn is_behind(&self) -> bool {
        let latest = self.changed.borrow();
        latest.events.last().is_some_and(|event| event.revision > self.cursor)
    }

    /// What happened since the last call, if anything.
    ///
    /// # Errors
    /// 410 when the watcher was too slow and history has moved on.
    pub fn poll_notices(&mut self) -> Result<Vec<Notice>, Status> {
        let latest = Arc::clone(&self.changed.borrow_and_update());
        if self.cursor < latest.since {
            return self.catch_up();
        }
        let news = latest.events.partition_point(|event| event.revision <= self.cursor);
        self.cursor = self.cursor.max(latest.through);
        let events = &latest.events[news..];
        Ok(events.iter().filter_map(|event| self.filter.notice(event)).collect())
    }

    /// What happened longer ago than the latest batch.
    fn catch_up(&mut self) -> Result<Vec<Notice>, Status> {
        let table = &*self.filter.resource.table;
        let (events, published) = {
            let core = self.cluster.0.core.lock();
            let events = core.store.log().events_after(table, self.cursor, BATCH_MAX);
            (events, core.store.published().revision())
        };
        let events = events.map_err(|expired| Status::expired(expired.to_string()))?;
        self.cursor = match events.last() {
            Some(last) if events.len() == BATCH_MAX => last.revision,
            _ => published.max(self.cursor),
        };
        Ok(events.iter().filter_map(|event| self.filter.notice(event)).collect())
    }
}
