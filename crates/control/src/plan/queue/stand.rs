//! Where a workload stands: whether it holds something, waits to be tried, or may not be tried.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use lockstep_api::{
    kueue::Workload,
    labels::kueue as labels,
    reasons::kueue::{quota_reserved as reasons, workload as kinds},
};

use super::{
    Owner, Queues, Stop, Why,
    agenda::QueueRef,
    conditions,
    entry::{self, Entry, Found, Holding, Place, Verdict},
    ledger::Held,
    wait::Scope,
};
use crate::plan::Key;

/// Where a workload stands, and what follows.
struct Stand {
    place: Place,
    verdict: Option<Verdict>,
    timer: Option<Timestamp>,
}

impl Queues {
    /// Puts a workload where it stands.
    pub(super) fn settle(&mut self, key: &Key, now: Timestamp) {
        self.index(key);
        let Some(entry) = self.workloads.get(key) else { return };
        let Stand { place, verdict, timer } = self.stand(key, entry, now);
        self.put(key, place);
        self.note_leaving(key);
        let Some(entry) = self.workloads.get_mut(key) else { return };
        if !matches!(entry.place, Place::Queued { .. }) {
            entry.verdict = verdict;
        }
        let timer = if entry.wakes_others { entry.timer } else { timer };
        let timer = if entry.is_admitting() { entry.timer.or(timer) } else { timer };
        entry.timer = self.agenda.set_timer(key, entry.timer, timer);
        if entry.verdict.is_some() {
            self.agenda.to_write.insert(key.clone());
        }
    }

    /// Moves a workload from where it stood.
    pub(super) fn put(&mut self, key: &Key, place: Place) {
        let Some(entry) = self.workloads.get(key) else { return };
        if entry.place == place {
            return;
        }
        let waited_for = self.queue_held_up_by(&entry.place);
        let Some(entry) = self.workloads.get_mut(key) else { return };
        let old = std::mem::replace(&mut entry.place, place.clone());
        entry.verdict = None;
        match (&old, &place) {
            (Place::Holding(old), Place::Holding(new)) if old.holds_as(new) => {
                self.hold_on(key, old, new);
            }
            _ => {
                self.leave(key, &old);
                self.enter(key, &place);
            }
        }
        if let Place::Holding(old) = &old
            && frees(old, &place)
        {
            let queue = Arc::clone(&old.queue);
            self.wake_tree(&queue);
            self.look_at(Owner::ClusterQueue(queue.to_string()));
        }
        // What it claimed while it waited is there for others, unless it has it now.
        if let Some(queue) = waited_for
            && !matches!(place, Place::Holding(_))
        {
            self.head_changed(&queue);
        }
    }

    /// Notes that a workload holds what it has for not much longer, if that is so.
    fn note_leaving(&mut self, key: &Key) {
        let Some(entry) = self.workloads.get(key) else { return };
        if let Place::Holding(holding) = &entry.place
            && self.is_leaving(key, entry)
        {
            self.ledger.leaves(&holding.queue, key);
        }
    }

    /// Whether a workload was told to go, or is to be.
    pub(super) fn is_leaving(&self, key: &Key, entry: &Entry) -> bool {
        entry.is_evicted() || self.agenda.orders.contains_key(key)
    }

    /// Something has changed for a ClusterQueue and those it shares with.
    pub(super) fn wake_tree(&mut self, queue: &Arc<str>) {
        let tree = self.ledger.tree(queue);
        self.agenda.to_wake.insert(tree);
    }

    /// Notes whether a ClusterQueue has somebody to try.
    pub(super) fn refresh(&mut self, queue: &Arc<str>) {
        let cluster = self.clusters.get(queue).filter(|cluster| cluster.activity.is_active());
        let note = |set: &mut BTreeSet<Arc<str>>, is_in: bool| {
            if is_in {
                set.insert(Arc::clone(queue));
            } else {
                set.remove(queue);
            }
        };
        note(&mut self.agenda.ready, cluster.is_some_and(|it| it.pending.is_ready()));
        note(&mut self.agenda.blocked, cluster.is_some_and(|it| it.pending.block().is_some()));
        self.agenda.counted.insert(Arc::clone(queue));
    }

    fn stand(&self, key: &Key, entry: &Entry, now: Timestamp) -> Stand {
        let away = |place| Stand { place, verdict: None, timer: None };
        if let Some(admission) = entry.admission()
            && (entry.is_admitting() || !conditions::is_true(&entry.object, kinds::FINISHED))
        {
            let queue: Arc<str> = Arc::from(admission.cluster_queue.as_str());
            let held = Held {
                usage: entry::usage(&entry.object, admission),
                is_admitted: entry.is_admitting()
                    || conditions::is_true(&entry.object, kinds::ADMITTED),
                standing: Arc::new(entry.standing(key)),
            };
            let flavors: BTreeSet<&str> = admission
                .pod_set_assignments
                .iter()
                .flat_map(|set| set.flavors.values().map(String::as_str))
                .collect();
            let unready = self.unready_among(entry, &queue, &flavors);
            return away(Place::Holding(Holding { queue, held, unready }));
        }
        if conditions::is_true(&entry.object, kinds::FINISHED)
            || entry.object.metadata.deletion_timestamp.is_some()
        {
            return away(Place::Away);
        }
        match self.obstacle(entry, now) {
            None => away(self.queued(key, entry)),
            Some((queue, why)) => {
                let mut timer = None;
                if let Why::BackOff { until } | Why::Refused { until } = &why {
                    timer = Some(*until);
                }
                let quota = words(&why);
                let why = Arc::new(why);
                let found = Found::Untried;
                let verdict = Verdict { quota, why, found, position: None };
                Stand { place: Place::Out { queue }, verdict: Some(verdict), timer }
            }
        }
    }

    fn queued(&self, key: &Key, entry: &Entry) -> Place {
        let local = self.locals.get(&entry::local_queue(&entry.object));
        let name = local.map_or("", |local| local.spec.cluster_queue.as_str());
        let wait = self.layers(&entry.object, Some(name), std::iter::empty());
        let rank = Arc::new(entry.rank(wait.requeued_by(self.settings.wait.as_ref())));
        debug_assert_eq!(rank.key, *key, "a workload is known by its own name");
        Place::Queued { queue: Arc::from(name), rank, class: Arc::clone(&entry.class) }
    }

    /// Among whom a workload that holds something counts as not ready.
    fn unready_among(
        &self,
        entry: &Entry,
        queue: &Arc<str>,
        flavors: &BTreeSet<&str>,
    ) -> BTreeSet<Scope> {
        let layers = self.layers(&entry.object, Some(queue), flavors.iter().copied());
        let is_waited_for = layers.effective(self.settings.wait.as_ref()).is_some();
        if !is_waited_for || conditions::is_true(&entry.object, kinds::PODS_READY) {
            return BTreeSet::new();
        }
        let flavors = flavors.iter().map(|flavor| Scope::Flavor(Arc::from(*flavor)));
        let queues = [
            Scope::Everywhere,
            Scope::ClusterQueue(Arc::clone(queue)),
            Scope::LocalQueue(entry::local_queue(&entry.object)),
        ];
        flavors.chain(queues).collect()
    }

    /// What keeps a workload from being tried, and the queue it waits in all the same.
    fn obstacle(&self, entry: &Entry, now: Timestamp) -> Option<(Option<Arc<str>>, Why)> {
        let workload = &entry.object;
        if workload.spec.active == Some(false) {
            return Some((None, Why::Deactivated));
        }
        let quota = conditions::of(workload, kinds::QUOTA_RESERVED);
        if quota.is_some_and(|it| it.status == "False" && it.reason == reasons::ON_HOLD) {
            return Some((None, Why::OnHold));
        }
        let annotations = workload.metadata.annotations.as_ref();
        if let Some(by) = annotations.and_then(|it| it.get(labels::ADMISSION_GATED_BY))
            && !by.is_empty()
        {
            return Some((None, Why::Gated { by: by.clone() }));
        }
        let queue = match self.queue_of(workload) {
            Ok(queue) => queue,
            Err(obstacle) => return Some(obstacle),
        };
        self.not_yet(entry, now).map(|why| (Some(queue), why))
    }

    /// The ClusterQueue a workload waits for, or what is wrong with its queues.
    fn queue_of(&self, workload: &Workload) -> Result<Arc<str>, (Option<Arc<str>>, Why)> {
        let local_name = entry::local_queue(workload);
        let local_queue = || format!("LocalQueue {}", local_name.name);
        let Some(local) = self.locals.get(&local_name) else {
            return Err((None, Why::QueueMissing { queue: local_queue() }));
        };
        let is_terminating = local.metadata.deletion_timestamp.is_some();
        let name = local.spec.cluster_queue.as_str();
        if is_terminating || Stop::of(local.spec.stop_policy.as_deref()) != Stop::No {
            // It waits there all the same, and is counted.
            let cluster = self.clusters.get_key_value(name).map(|(name, _)| Arc::clone(name));
            return Err((cluster, Why::QueueStopped { queue: local_queue() }));
        }
        let cluster_queue = || format!("ClusterQueue {name}");
        let Some((name, cluster)) = self.clusters.get_key_value(name) else {
            return Err((None, Why::QueueMissing { queue: cluster_queue() }));
        };
        if cluster.pool.stop != Stop::No {
            let why = Why::QueueStopped { queue: cluster_queue() };
            return Err((Some(Arc::clone(name)), why));
        }
        if !cluster.activity.is_active() {
            let message = cluster.activity.message.clone();
            let why = Why::QueueInactive { queue: cluster_queue(), message };
            return Err((Some(Arc::clone(name)), why));
        }
        let labels = self.namespaces.get(&local_name.namespace);
        if !labels.is_some_and(|labels| cluster.pool.namespaces.matches_map(labels)) {
            let why = Why::NamespaceMismatch {
                cluster_queue: name.to_string(),
                namespace: local_name.namespace.clone(),
            };
            return Err((Some(Arc::clone(name)), why));
        }
        Ok(Arc::clone(name))
    }

    fn not_yet(&self, entry: &Entry, now: Timestamp) -> Option<Why> {
        let workload = &entry.object;
        if let Some(message) = &entry.fault {
            return Some(Why::InvalidRequests { message: message.clone() });
        }
        let status = workload.status.as_ref();
        let mut checks = status.into_iter().flat_map(|status| &status.admission_checks);
        if checks.any(|check| matches!(check.state.as_str(), "Retry" | "Rejected")) {
            return Some(Why::FailedChecks);
        }
        let state = status.and_then(|status| status.requeue_state.as_ref());
        let until = state.and_then(|state| state.requeue_at.as_ref()).map(|at| at.0);
        if let Some(until) = until.filter(|until| *until > now) {
            return Some(Why::BackOff { until });
        }
        let requeued = conditions::of(workload, kinds::REQUEUED);
        // One whose queue goes on is not passed by others because nobody has said so yet.
        let is_out =
            |it: &&Condition| it.status == "False" && conditions::restarted(&it.reason).is_none();
        if let Some(requeued) = requeued.filter(is_out) {
            return Some(Why::NotRequeued { reason: requeued.reason.clone() });
        }
        entry.refused_until.filter(|until| *until > now).map(|until| Why::Refused { until })
    }

    fn enter(&mut self, key: &Key, place: &Place) {
        let Some(local) = self.workloads.get(key).map(|entry| entry.local.clone()) else { return };
        match place {
            Place::Away => return,
            Place::Holding(Holding { queue, held, unready }) => {
                self.ledger.hold(queue, held);
                self.by_cluster.entry(Arc::clone(queue)).or_default().insert(key.clone());
                for scope in unready {
                    self.unready.entry(scope.clone()).or_default().insert(key.clone());
                }
                self.tallies.entry(local.clone()).or_default().hold(held);
                self.waiters.retain(|_, waiter| waiter != key);
                self.mark_cluster(queue);
            }
            Place::Queued { queue, rank, class } => {
                if let Some(cluster) = self.clusters.get_mut(queue) {
                    cluster.pending.insert(rank, class);
                }
                self.tallies.entry(local.clone()).or_default().pending += 1;
                self.agenda.joined.insert(Arc::clone(queue));
                self.refresh(queue);
                self.mark_cluster(queue);
            }
            Place::Out { queue: None } => {}
            Place::Out { queue: Some(queue) } => {
                if let Some(cluster) = self.clusters.get_mut(queue) {
                    cluster.parked += 1;
                }
                self.tallies.entry(local.clone()).or_default().pending += 1;
                self.mark_cluster(queue);
            }
        }
        self.agenda.statuses.mark(QueueRef::Local(local));
    }

    fn leave(&mut self, key: &Key, place: &Place) {
        let Some(local) = self.workloads.get(key).map(|entry| entry.local.clone()) else { return };
        match place {
            Place::Away => return,
            Place::Holding(Holding { queue, held, unready }) => {
                self.ledger.release(queue, held);
                if let Some(others) = self.by_cluster.get_mut(queue) {
                    others.remove(key);
                    if others.is_empty() {
                        self.by_cluster.remove(queue);
                    }
                }
                for scope in unready {
                    self.ready_in(scope, key);
                }
                self.tallies.entry(local.clone()).or_default().release(held);
                self.mark_cluster(queue);
            }
            Place::Queued { queue, rank, class } => {
                if let Some(cluster) = self.clusters.get_mut(queue) {
                    cluster.pending.remove(rank, class);
                }
                self.tallies.entry(local.clone()).or_default().pending -= 1;
                self.refresh(queue);
                self.mark_cluster(queue);
            }
            Place::Out { queue: None } => {}
            Place::Out { queue: Some(queue) } => {
                if let Some(cluster) = self.clusters.get_mut(queue) {
                    cluster.parked -= 1;
                }
                self.tallies.entry(local.clone()).or_default().pending -= 1;
                self.mark_cluster(queue);
            }
        }
        self.agenda.statuses.mark(QueueRef::Local(local));
    }

    /// One holds what it has held, but is ready by now, or stands elsewhere among the others.
    fn hold_on(&mut self, key: &Key, old: &Holding, new: &Holding) {
        if old.held.standing != new.held.standing {
            self.ledger.rank(&new.queue, &old.held, &new.held.standing);
        }
        for scope in old.unready.difference(&new.unready) {
            self.ready_in(scope, key);
        }
        for scope in new.unready.difference(&old.unready) {
            self.unready.entry(scope.clone()).or_default().insert(key.clone());
        }
    }

    /// A workload counts as not ready no more; those that waited for the last one go on.
    fn ready_in(&mut self, scope: &Scope, key: &Key) {
        let Some(unready) = self.unready.get_mut(scope) else { return };
        unready.remove(key);
        if !unready.is_empty() {
            return;
        }
        self.unready.remove(scope);
        for queue in self.agenda.blocked_on.remove(scope).unwrap_or_default() {
            let cluster = self.clusters.get_mut(&queue);
            if let Some(cluster) = cluster
                && cluster.pending.block().is_some_and(|block| block.scopes.contains(scope))
            {
                cluster.pending.unblock();
                self.refresh(&queue);
            }
        }
    }

    pub(super) fn mark_cluster(&mut self, queue: &Arc<str>) {
        if self.clusters.contains_key(queue) {
            self.agenda.statuses.mark(QueueRef::Cluster(Arc::clone(queue)));
            self.agenda.counted.insert(Arc::clone(queue));
        }
    }
}

/// Whether somebody else may have what a workload held.
fn frees(old: &Holding, place: &Place) -> bool {
    let Place::Holding(new) = place else { return true };
    old.queue != new.queue
        || old.held.standing.priority != new.held.standing.priority
        || old
            .held
            .usage
            .iter()
            .any(|(what, held)| new.held.usage.get(what).is_none_or(|holds| holds < held))
}

/// Reason and message of `QuotaReserved` for one that may not be tried; none if it stays as it is.
/// What its queues, its gate and its being inactive mean is said by passes over the workload.
fn words(why: &Why) -> Option<(&'static str, String)> {
    match why {
        Why::NamespaceMismatch { .. } => {
            let message = "Workload namespace doesn't match ClusterQueue selector";
            Some((reasons::MISCONFIGURED, message.to_owned()))
        }
        Why::InvalidRequests { message } => Some((reasons::MISCONFIGURED, message.clone())),
        Why::FailedChecks => {
            let message = "The workload has failed admission checks";
            Some((reasons::PENDING_EVALUATION, message.to_owned()))
        }
        Why::Deactivated
        | Why::QueueMissing { .. }
        | Why::QueueStopped { .. }
        | Why::QueueInactive { .. }
        | Why::Gated { .. }
        | Why::BackOff { .. }
        | Why::NotRequeued { .. }
        | Why::OnHold
        | Why::Refused { .. }
        | Why::NotEnoughQuota { .. }
        | Why::NeverFits { .. }
        | Why::NoMatchingFlavor { .. }
        | Why::WaitingForPreemptedWorkloads { .. }
        | Why::WaitingForPodsReady { .. }
        | Why::BehindHead { .. } => None,
    }
}
