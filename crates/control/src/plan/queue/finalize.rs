//! What keeps queues and flavors that are in use from being deleted.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockstep_api::labels::kueue::RESOURCE_IN_USE;

use super::{Finalizers, Owner, Queues};
use crate::engine::after;

/// After how long finalizers are tried again that could not be written.
const RETRY: Duration = Duration::from_secs(1);

impl Queues {
    /// Finalizers that are to be written: ClusterQueues and flavors have one until they are deleted
    /// and nobody uses them any more.
    pub fn take_finalizers(&mut self, now: Timestamp) -> Vec<Finalizers> {
        if !self.is_ready() {
            return Vec::new();
        }
        let mut owners = std::mem::take(&mut self.agenda.finalizers);
        self.agenda.finalizers_later.retain(|owner, at| {
            let is_later = *at > now;
            if !is_later {
                owners.insert(owner.clone());
            }
            is_later
        });
        owners.into_iter().filter_map(|owner| self.finalizers(owner)).collect()
    }

    /// Finalizers could not be written: they are tried again.
    pub fn finalizers_refused(&mut self, of: &Owner, now: Timestamp) {
        self.agenda.finalizers_later.insert(of.clone(), after(now, RETRY));
    }

    fn finalizers(&self, of: Owner) -> Option<Finalizers> {
        let (meta, is_used) = match &of {
            Owner::ClusterQueue(name) => {
                let cluster = self.clusters.get(name.as_str())?;
                let book = self.ledger.book(name);
                let is_used = book.is_some_and(|book| book.counts.reserving > 0);
                (&cluster.object.metadata, is_used)
            }
            Owner::ResourceFlavor(name) => {
                let flavor = self.flavors.get(name)?;
                let mut queues = self.clusters.values();
                let is_used = queues.any(|queue| queue.pool.flavors().any(|it| **it == **name));
                (&flavor.metadata, is_used)
            }
        };
        let finalizers = wanted(meta, is_used)?;
        Some(Finalizers {
            of,
            uid: meta.uid.clone().unwrap_or_default(),
            version: meta.resource_version.clone().unwrap_or_default(),
            finalizers,
        })
    }
}

/// The finalizers an object is to have, if those it has are not right.
fn wanted(meta: &ObjectMeta, is_used: bool) -> Option<Vec<String>> {
    let mut all = meta.finalizers.clone().unwrap_or_default();
    let has_it = all.iter().any(|it| it == RESOURCE_IN_USE);
    match (meta.deletion_timestamp.is_some(), has_it) {
        (false, false) => {
            all.push(RESOURCE_IN_USE.to_owned());
            Some(all)
        }
        (true, true) if !is_used => {
            all.retain(|it| it != RESOURCE_IN_USE);
            Some(all)
        }
        (true | false, true) | (true, false) => None,
    }
}
