//! What queues say of themselves.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use lockstep_api::{
    kueue::{ClusterQueueStatus, FlavorUsage, LocalQueue, LocalQueueStatus, ResourceUsage},
    reasons::kueue::queue as reasons,
};

use super::{
    Queues, StatusOfQueue, Stop,
    agenda::QueueRef,
    amount::{self, Amounts, FlavorResource},
    conditions::{self, Said},
    ledger::{Counts, Held},
    pool::Pool,
};
use crate::{engine::after, plan::Key};

/// After how long a status is tried again that could not be written.
const RETRY: std::time::Duration = std::time::Duration::from_secs(1);

/// What the workloads of a LocalQueue use, and how many there are.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub pending: i32,
    counts: Counts,
    reserved: Amounts,
    admitted: Amounts,
}

impl Tally {
    pub(super) fn hold(&mut self, held: &Held) {
        self.counts.reserving += 1;
        amount::add(&mut self.reserved, &held.usage);
        if held.is_admitted {
            self.counts.admitted += 1;
            amount::add(&mut self.admitted, &held.usage);
        }
    }

    pub(super) fn release(&mut self, held: &Held) {
        self.counts.reserving -= 1;
        amount::subtract(&mut self.reserved, &held.usage);
        if held.is_admitted {
            self.counts.admitted -= 1;
            amount::subtract(&mut self.admitted, &held.usage);
        }
    }
}

impl Queues {
    /// Statuses of queues that are to be written, those that changed only, and each at most twice a
    /// second.
    pub fn take_statuses(&mut self, now: Timestamp) -> Vec<StatusOfQueue> {
        if !self.is_ready() {
            return Vec::new();
        }
        let due = self.agenda.statuses.take(now);
        let mut changed = Vec::new();
        for queue in due {
            let status = match &queue {
                QueueRef::Cluster(name) => self.cluster_status(name, now),
                QueueRef::Local(key) => self.local_status(key, now),
            };
            if let Some(status) = status {
                self.agenda.statuses.wrote(&queue, now);
                changed.push(status);
            }
        }
        changed
    }

    /// How many of those who wait are not tried before something changes for them, of ClusterQueues
    /// of which that may be another number than it was.
    pub fn take_inadmissible(&mut self) -> Vec<(Arc<str>, i32)> {
        let counted = std::mem::take(&mut self.agenda.counted);
        let known = counted.into_iter().filter_map(|name| {
            let cluster = self.clusters.get(&name)?;
            let parked = i32::try_from(cluster.pending.parked_len()).unwrap_or(i32::MAX);
            Some((name, parked.saturating_add(cluster.parked)))
        });
        known.collect()
    }

    /// The status of a ClusterQueue could not be written: it is tried again.
    pub fn cluster_queue_status_refused(&mut self, name: &str, now: Timestamp) {
        if let Some((name, _)) = self.clusters.get_key_value(name) {
            let queue = QueueRef::Cluster(Arc::clone(name));
            self.agenda.statuses.not_before(&queue, after(now, RETRY));
            self.agenda.statuses.mark(queue);
        }
    }

    /// The status of a LocalQueue could not be written: it is tried again.
    pub fn local_queue_status_refused(&mut self, key: &Key, now: Timestamp) {
        if self.locals.contains_key(key) {
            let queue = QueueRef::Local(key.clone());
            self.agenda.statuses.not_before(&queue, after(now, RETRY));
            self.agenda.statuses.mark(queue);
        }
    }

    fn cluster_status(&self, name: &Arc<str>, now: Timestamp) -> Option<StatusOfQueue> {
        let cluster = self.clusters.get(name)?;
        let object = &cluster.object;
        let book = self.ledger.book(name);
        let counts = book.map(|book| book.counts).unwrap_or_default();
        let none = Amounts::new();
        let amounts = book.map_or((&none, &none), |book| (&book.reserved, &book.admitted));
        let waiting = i32::try_from(cluster.pending.len()).unwrap_or(i32::MAX);
        let old = object.status.clone().unwrap_or_default();
        let mut status = ClusterQueueStatus {
            conditions: old.conditions.clone(),
            flavors_reservation: usage(&cluster.pool, amounts.0, true),
            flavors_usage: usage(&cluster.pool, amounts.1, true),
            pending_workloads: waiting.saturating_add(cluster.parked),
            reserving_workloads: counts.reserving,
            admitted_workloads: counts.admitted,
            fair_sharing: old.fair_sharing.clone(),
        };
        let active = Said {
            kind: reasons::ACTIVE,
            is_true: cluster.activity.is_active(),
            reason: cluster.activity.reason,
            message: &cluster.activity.message,
            generation: object.metadata.generation,
        };
        if !conditions::says(&status.conditions, &active) {
            conditions::set(&mut status.conditions, &active, now);
        }
        (object.status.as_ref() != Some(&status)).then(|| StatusOfQueue::ClusterQueue {
            name: name.to_string(),
            uid: object.metadata.uid.clone().unwrap_or_default(),
            version: object.metadata.resource_version.clone().unwrap_or_default(),
            status,
        })
    }

    fn local_status(&self, key: &Key, now: Timestamp) -> Option<StatusOfQueue> {
        let local = self.locals.get(key)?;
        let cluster = self.clusters.get(local.spec.cluster_queue.as_str());
        let pool = cluster.map(|cluster| Arc::clone(&cluster.pool)).unwrap_or_default();
        let tally = self.tallies.get(key).cloned().unwrap_or_default();
        let old = local.status.clone().unwrap_or_default();
        let mut status = LocalQueueStatus {
            conditions: old.conditions.clone(),
            pending_workloads: tally.pending,
            reserving_workloads: tally.counts.reserving,
            admitted_workloads: tally.counts.admitted,
            flavors_reservation: usage(&pool, &tally.reserved, false),
            flavors_usage: usage(&pool, &tally.admitted, false),
            fair_sharing: old.fair_sharing.clone(),
        };
        let is_open = cluster.map(|cluster| cluster.activity.is_active());
        let active = local_activity(local, is_open);
        if !conditions::says(&status.conditions, &active) {
            conditions::set(&mut status.conditions, &active, now);
        }
        (local.status.as_ref() != Some(&status)).then(|| StatusOfQueue::LocalQueue {
            key: key.clone(),
            uid: local.metadata.uid.clone().unwrap_or_default(),
            version: local.metadata.resource_version.clone().unwrap_or_default(),
            status,
        })
    }
}

/// What a LocalQueue says: `is_open` is whether its ClusterQueue can admit anybody, if it is there.
fn local_activity(local: &LocalQueue, is_open: Option<bool>) -> Said<'static> {
    let elsewhere = "Can't submit new workloads to clusterQueue";
    let is_stopped = Stop::of(local.spec.stop_policy.as_deref()) != Stop::No;
    let (reason, message) = match is_open {
        _ if is_stopped => (reasons::STOPPED, "LocalQueue is stopped"),
        None => (reasons::CLUSTER_QUEUE_DOES_NOT_EXIST, elsewhere),
        Some(false) => (reasons::CLUSTER_QUEUE_IS_INACTIVE, elsewhere),
        Some(true) => (reasons::READY, "Can submit new workloads to localQueue"),
    };
    Said {
        kind: reasons::ACTIVE,
        is_true: reason == reasons::READY,
        reason,
        message,
        generation: local.metadata.generation,
    }
}

/// What is used of each flavor that a pool has, in its order.
fn usage(pool: &Pool, used: &Amounts, borrows: bool) -> Vec<FlavorUsage> {
    let mut by_flavor: Vec<FlavorUsage> = Vec::new();
    let mut at: BTreeMap<&str, usize> = BTreeMap::new();
    for group in &pool.groups {
        for flavor in &group.flavors {
            let index = *at.entry(flavor).or_insert_with(|| {
                by_flavor.push(FlavorUsage { name: flavor.to_string(), resources: Vec::new() });
                by_flavor.len() - 1
            });
            for resource in &group.resources {
                let what = FlavorResource::new(flavor, resource);
                let Some(quota) = pool.quotas.get(&what) else { continue };
                let total = amount::of(used, &what);
                // Without a cohort there is nobody to borrow from.
                let shares = borrows && pool.cohort.is_some();
                let borrowed = if shares { total.saturating_sub(quota.nominal).max(0) } else { 0 };
                by_flavor[index].resources.push(ResourceUsage {
                    name: resource.to_string(),
                    total: amount::write(resource, total),
                    borrowed: borrows.then(|| amount::write(resource, borrowed)),
                });
            }
        }
    }
    by_flavor
}
