//! Lists: now, at a revision, page by page.

use std::{
    collections::BTreeMap,
    sync::{Arc, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use lockstep_api::Status;
use lockstep_store::{
    Expired, Revision, Snapshot,
    page::{self, Page, Token},
    watch::Filter,
};

use super::{Cluster, Shared};

/// How long a list or a watch waits for a revision that is not there yet.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);

/// What a list asks for beside the objects it is about.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// At most so many objects; 0 for all.
    pub limit: usize,
    /// The token of the page before.
    pub continue_token: Option<String>,
    /// A revision to be at least as new as, or exactly at.
    pub resource_version: Option<Revision>,
    /// Whether it is to be exactly that revision.
    pub is_exact: bool,
}

/// How long and how many states are kept for lists in pages.
const RETAINED_FOR: Duration = Duration::from_secs(60);
const RETAINED_MAX: usize = 8;

/// The states that lists in pages go on from, so that a page costs no more than its objects. What
/// is not kept here is worked out from history.
#[derive(Default)]
pub(super) struct Retained {
    states: BTreeMap<(Arc<str>, Revision), (Instant, Arc<Snapshot>)>,
}

impl Retained {
    fn put(&mut self, snapshot: Arc<Snapshot>, table: &Arc<str>) {
        self.trim();
        let key = (Arc::clone(table), snapshot.revision());
        self.states.insert(key, (Instant::now(), snapshot));
        if self.states.len() > RETAINED_MAX {
            let oldest = self.states.iter().min_by_key(|(_, (since, _))| *since);
            let oldest = oldest.map(|(key, _)| key.clone());
            oldest.and_then(|key| self.states.remove(&key));
        }
    }

    fn remove(&mut self, table: &Arc<str>, revision: Revision) {
        self.states.remove(&(Arc::clone(table), revision));
    }

    fn get(&self, table: &str, revision: Revision) -> Option<Arc<Snapshot>> {
        let (_, snapshot) = self.states.get(&(Arc::from(table), revision))?;
        Some(Arc::clone(snapshot))
    }

    /// Forgets what nobody has asked for in a while. The answer is whether anything is left.
    pub(super) fn trim(&mut self) -> bool {
        self.states.retain(|_, (since, _)| since.elapsed() < RETAINED_FOR);
        !self.states.is_empty()
    }
}

impl Shared {
    pub(super) fn retained(&self) -> MutexGuard<'_, Retained> {
        self.retained.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cluster {
    /// A list, or a page of it.
    ///
    /// # Errors
    /// 400 for a token that is none of ours, 410 for a revision no longer kept, 504 for one that is
    /// not there yet.
    pub async fn list(&self, filter: &Filter, options: &ListOptions) -> Result<Page, Status> {
        let limit = Some(options.limit);
        if let Some(text) = options.continue_token.as_deref().filter(|text| !text.is_empty()) {
            if options.resource_version.is_some_and(|revision| revision > 0) {
                return Err(Status::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            let token = Token::decode(text)?;
            let snapshot = match token.revision {
                None => self.snapshot(),
                Some(revision) => self
                    .snapshot_at(&filter.resource.table, revision)
                    .await?
                    .map_err(|_| token.expired())?,
            };
            let page = page::list(&snapshot, filter, Some(&token), limit);
            self.retain(&page, &filter.resource.table, snapshot);
            return Ok(page);
        }
        let snapshot = match options.resource_version {
            None | Some(0) => self.snapshot(),
            Some(revision) if options.is_exact => {
                self.snapshot_at(&filter.resource.table, revision).await?.map_err(|_| {
                    Status::expired("The resourceVersion for the provided list is too old.")
                })?
            }
            Some(revision) => self.wait_for(revision, PATIENCE).await?,
        };
        let page = page::list(&snapshot, filter, None, limit);
        if page.next.is_some() {
            self.retain(&page, &filter.resource.table, snapshot);
        }
        Ok(page)
    }

    /// Keeps the state a page was taken from, if there are more pages to come, and no longer.
    fn retain(&self, page: &Page, table: &Arc<str>, snapshot: Arc<Snapshot>) {
        let mut retained = self.0.core.retained();
        match page.next {
            Some(_) => retained.put(snapshot, table),
            None => retained.remove(table, page.revision),
        }
    }

    /// The state of one table as of `revision`, as long as that is kept.
    async fn snapshot_at(
        &self,
        table: &str,
        revision: Revision,
    ) -> Result<Result<Arc<Snapshot>, Expired>, Status> {
        let current = self.wait_for(revision, PATIENCE).await?;
        if current.revision() == revision {
            return Ok(Ok(current));
        }
        if let Some(retained) = self.0.core.retained().get(table, revision) {
            return Ok(Ok(retained));
        }
        let rewind = self.0.core.lock().store.rewind(table, revision);
        Ok(rewind.map(|rewind| Arc::new(rewind.run())))
    }
}
