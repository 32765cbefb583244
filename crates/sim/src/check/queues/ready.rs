//! Whose pods are waited for, and who is not admitted meanwhile. What is said for all can be said
//! otherwise by a flavor, a ClusterQueue and a LocalQueue; the later counts more.

use std::collections::{BTreeMap, BTreeSet};

use lockstep_api::{
    kueue::{RequeuingTimestamp, Workload},
    labels::kueue::{BLOCK_ADMISSION, REQUEUING_TIMESTAMP, WAIT_FOR_PODS_READY},
    reasons::kueue::workload as kinds,
};

use super::{Admitter, Checker, QueueBook, Violation, WorkBook, ensure, quota::queue_of};

type Annotations = BTreeMap<String, String>;

/// Who says something, and so among whom it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sayer {
    Flavor,
    ClusterQueue,
    LocalQueue,
}

impl Checker {
    /// Nobody is admitted while there is somebody whose pods are not ready, where that is asked
    /// for.
    pub(super) fn check_block(&self, book: &WorkBook, admitter: Admitter) -> Result<(), Violation> {
        let queues = &self.queues;
        let workload = &book.workload;
        let said = queues.last_word(workload, BLOCK_ADMISSION);
        let usual = || queues.wait.as_ref().is_some_and(|wait| wait.block_admission);
        let blocks = said.map_or_else(usual, |(_, word)| word == "true");
        if !blocks || !queues.is_waited_for(workload) {
            return Ok(());
        }
        let flavors: BTreeSet<&str> = flavors_of(workload)
            .filter(|flavor| queues.flavor_says(flavor, BLOCK_ADMISSION) == Some("true"))
            .collect();
        let is_among = |other: &WorkBook| match said.map(|it| it.0) {
            None => true,
            Some(Sayer::ClusterQueue) => queue_of(&other.workload) == queue_of(workload),
            Some(Sayer::LocalQueue) => other.workload.spec.queue_name == workload.spec.queue_name,
            Some(Sayer::Flavor) => flavors_of(&other.workload).any(|it| flavors.contains(it)),
        };
        let unready = queues.holders().find(|other| {
            let is_known = other.admitted.is_some_and(|admitted| admitter.knows(admitted))
                && other.unready_at <= admitter.seen.workloads;
            is_known
                && is_among(other)
                && queues.is_waited_for(&other.workload)
                && !other.is(kinds::PODS_READY)
        });
        ensure(unready.is_none(), || {
            let other = unready.map(|other| &*other.name).unwrap_or_default();
            format!("{} is admitted though the pods of {other} are not ready", book.name)
        })
    }
}

impl QueueBook {
    /// By which time a Workload comes back into its queue.
    pub(super) fn comes_back_by(&self, workload: &Workload) -> RequeuingTimestamp {
        let usual = self.wait.as_ref().map(|wait| wait.requeuing.timestamp).unwrap_or_default();
        match self.last_word(workload, REQUEUING_TIMESTAMP) {
            Some((_, "Creation")) => RequeuingTimestamp::Creation,
            Some((_, "Eviction")) => RequeuingTimestamp::Eviction,
            _ => usual,
        }
    }

    fn is_waited_for(&self, workload: &Workload) -> bool {
        let said = self.last_word(workload, WAIT_FOR_PODS_READY);
        said.map_or_else(|| self.wait.is_some(), |(_, word)| word == "true")
    }

    /// The last of those who say something of this, and what it says. One that holds nothing has
    /// no flavor.
    fn last_word(&self, workload: &Workload, key: &str) -> Option<(Sayer, &str)> {
        let local = self.locals.get(&workload.spec.queue_name);
        let cluster = queue_of(workload).or_else(|| self.queue_of(workload));
        let cluster = cluster.and_then(|name| self.clusters.get(name));
        let local = local.and_then(|it| word(it.metadata.annotations.as_ref(), key));
        let cluster = cluster.and_then(|it| word(it.metadata.annotations.as_ref(), key));
        let flavors: BTreeSet<&str> = flavors_of(workload).collect();
        let mut flavors = flavors.into_iter().rev().filter_map(|it| self.flavor_says(it, key));
        local
            .map(|word| (Sayer::LocalQueue, word))
            .or_else(|| cluster.map(|word| (Sayer::ClusterQueue, word)))
            .or_else(|| flavors.next().map(|word| (Sayer::Flavor, word)))
    }

    fn flavor_says(&self, flavor: &str, key: &str) -> Option<&str> {
        word(self.flavors.get(flavor)?.metadata.annotations.as_ref(), key)
    }
}

fn word<'a>(annotations: Option<&'a Annotations>, key: &str) -> Option<&'a str> {
    annotations?.get(key).map(String::as_str)
}

/// The flavors a Workload holds something of.
fn flavors_of(workload: &Workload) -> impl Iterator<Item = &str> {
    let admission = workload.status.as_ref().and_then(|status| status.admission.as_ref());
    let sets = admission.into_iter().flat_map(|admission| &admission.pod_set_assignments);
    sets.flat_map(|set| set.flavors.values().map(String::as_str))
}
