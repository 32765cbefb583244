//! Lists: now, at a revision, page by page.

use std::{sync::Arc, time::Duration};

use lockstep_api::Status;
use lockstep_store::{
    Expired, Revision, Snapshot,
    page::{self, Page, Token},
    watch::Filter,
};

use super::Cluster;

/// How long a list waits for a revision that is not there yet.
const PATIENCE: Duration = Duration::from_secs(3);

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
            return Ok(page::list(&snapshot, filter, Some(&token.start), limit));
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
        Ok(page::list(&snapshot, filter, None, limit))
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
        let rewind = self.0.core.lock().store.rewind(table, revision);
        Ok(rewind.map(|rewind| Arc::new(rewind.run())))
    }
}
