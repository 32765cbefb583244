//! What became of decisions.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use lockstep_api::{
    kueue::{ClusterQueue, LocalQueue, ResourceFlavor, Workload},
    reasons::kueue::workload as kinds,
};

use super::Queues;
use crate::{
    engine::after,
    plan::{
        Key, Refusal, RefusalKind,
        queue::{
            Cycle, Decision, conditions, decide,
            entry::{Entry, FlightKind, Holding, Place, holds_quota},
        },
    },
};

/// Back-off of a workload whose admission the API did not take: at first, and at most.
pub(super) const RETRY_FIRST: Duration = Duration::from_millis(100);
pub(super) const RETRY_MAX: Duration = Duration::from_secs(60);

/// After which time without news an admission was not carried out.
const DOUBT: Duration = Duration::from_secs(60);

impl Queues {
    /// A decision was carried out: the workload as the API answered.
    pub fn written(&mut self, workload: &Arc<Workload>, now: Timestamp) {
        let key = Key::of(&workload.metadata);
        if self.workloads.contains_key(&key) {
            self.backoff.succeeded(&key);
            self.workload_seen(workload, now);
        }
    }

    /// A ClusterQueue was written: this is it now. One that has gone meanwhile stays gone.
    pub fn cluster_queue_written(&mut self, queue: &Arc<ClusterQueue>, now: Timestamp) {
        let name = queue.metadata.name.as_deref().unwrap_or_default();
        let known = self.clusters.get(name).map(|known| &known.object.metadata.uid);
        if known == Some(&queue.metadata.uid) {
            self.cluster_queue_seen(queue, now);
        }
    }

    /// A LocalQueue was written: this is it now. One that has gone meanwhile stays gone.
    pub fn local_queue_written(&mut self, queue: &Arc<LocalQueue>, now: Timestamp) {
        let known = self.locals.get(&Key::of(&queue.metadata)).map(|known| &known.metadata.uid);
        if known == Some(&queue.metadata.uid) {
            self.local_queue_seen(queue, now);
        }
    }

    /// A flavor was written: this is it now. One that has gone meanwhile stays gone.
    pub fn flavor_written(&mut self, flavor: &Arc<ResourceFlavor>, now: Timestamp) {
        let name = flavor.metadata.name.as_deref().unwrap_or_default();
        let known = self.flavors.get(name).map(|known| &known.metadata.uid);
        if known == Some(&flavor.metadata.uid) {
            self.flavor_seen(flavor, now);
        }
    }

    /// A decision came to nothing: what it took is given back, and it is thought over. `id` is that
    /// of its [`Write`](super::super::Write): one that a later has taken the place of matters no
    /// more.
    pub fn refused(&mut self, key: &Key, id: u64, refusal: &Refusal, now: Timestamp) {
        let Some(entry) = self.workloads.get_mut(key) else { return };
        let Some(flight) = entry.flight.take_if(|it| it.id == id) else { return };
        // Whoever has news already need not wait for it.
        let is_stale = entry.version == flight.version;
        match flight.kind {
            FlightKind::Admit(_) if is_stale && is_in_doubt(refusal.kind) => {
                // It may have been carried out: it counts until that is known. To say the same of
                // the same version again does no harm, and may be what tells. Where there is
                // another version already there will be news of it.
                let delay = self.backoff.failed(key);
                let is_told = refusal.kind == RefusalKind::Conflict;
                let until = after(now, if is_told { RETRY_MAX } else { delay });
                entry.refused_until = Some(until);
                entry.flight = Some(flight);
                let old = entry.timer;
                entry.timer = self.agenda.set_timer(key, old, Some(until));
                return;
            }
            FlightKind::Admit(_) => {
                self.touched.insert(key.clone());
                self.agenda.orders.remove(key);
                let delay = self.backoff.failed(key);
                entry.refused_until = is_stale.then(|| after(now, delay));
            }
            FlightKind::Evict => {
                let delay = self.backoff.failed(key);
                entry.wakes_others = true;
                let old = entry.timer;
                let at = if is_stale { after(now, delay) } else { now };
                entry.timer = self.agenda.set_timer(key, old, Some(at));
            }
            FlightKind::Pend => {
                if entry.words_at.is_none() {
                    entry.words_at = Some(self.agenda.defer_words(key, now));
                }
                // To say the same of what is not news any more would be refused again.
                if is_stale {
                    return;
                }
            }
        }
        self.settle(key, now);
    }

    /// Whether a workload was admitted here and nobody knows yet what became of that.
    pub fn is_admitting(&self, key: &Key) -> bool {
        self.workloads.get(key).is_some_and(Entry::is_admitting)
    }

    /// Says again what was decided about those of whom nobody knows whether it was carried out.
    pub(in crate::plan::queue) fn repeat(&mut self, now: Timestamp, cycle: &mut Cycle) {
        for key in std::mem::take(&mut self.agenda.repeats) {
            let Some(entry) = self.workloads.get(&key).filter(|it| it.is_admitting()) else {
                continue;
            };
            if self.is_overdrawn(entry) {
                self.wait_for_news(&key, now);
                continue;
            }
            let Some(entry) = self.workloads.get_mut(&key) else { continue };
            let Some(flight) = &mut entry.flight else { continue };
            let FlightKind::Admit(admission) = &flight.kind else { continue };
            let (id, admission) = (self.next_id, Arc::clone(admission));
            self.next_id += 1;
            flight.id = id;
            cycle.decisions.push(Decision::Admit(decide::admit(entry, &admission, "", (id, now))));
        }
    }

    /// Whether others were given what a workload holds: to say again that it has it would be wrong.
    fn is_overdrawn(&self, entry: &Entry) -> bool {
        let Place::Holding(Holding { queue, held, .. }) = &entry.place else { return false };
        let without = |what, own| self.ledger.available_after(queue, what, own, own);
        held.usage.iter().any(|(what, own)| without(what, *own) < *own)
    }

    /// An admission that cannot be said again was not carried out if there is no news of it for
    /// long enough.
    fn wait_for_news(&mut self, key: &Key, now: Timestamp) {
        let Some(entry) = self.workloads.get_mut(key) else { return };
        let Some(flight) = &entry.flight else { return };
        let until = after(flight.at, DOUBT);
        if until > now {
            let old = entry.timer;
            entry.timer = self.agenda.set_timer(key, old, Some(until));
            return;
        }
        entry.flight = None;
        entry.refused_until = None;
        self.agenda.orders.remove(key);
        self.settle(key, now);
    }

    /// What was decided is done once it can be seen.
    pub(super) fn settle_flight(&mut self, key: &Key) {
        let Some(entry) = self.workloads.get_mut(key) else { return };
        let Some(flight) = &entry.flight else { return };
        let is_done = match flight.kind {
            FlightKind::Admit(_) => holds_quota(&entry.object),
            FlightKind::Evict => conditions::is_true(&entry.object, kinds::EVICTED),
            FlightKind::Pend => true,
        };
        if is_done {
            entry.flight = None;
            entry.refused_until = None;
            self.agenda.has_orders |= self.agenda.orders.contains_key(key);
        }
    }

    /// A workload has changed.
    pub(super) fn note_news(&mut self, key: &Key) {
        let Some(entry) = self.workloads.get_mut(key) else { return };
        // What comes after the version that was decided on is not the admission: it never was
        // carried out.
        let was_refused = entry.refused_until.is_some() && !holds_quota(&entry.object);
        if was_refused && entry.is_admitting() {
            entry.flight = None;
            self.agenda.orders.remove(key);
        }
        if !entry.is_admitting() {
            entry.refused_until = None;
        }
        if std::mem::take(&mut entry.wakes_others) {
            self.wake_for(key);
        }
    }

    /// The time has come to look at a workload again.
    pub(in crate::plan::queue) fn timer_ended(&mut self, key: &Key, now: Timestamp) {
        let Some(entry) = self.workloads.get_mut(key) else { return };
        entry.timer = None;
        if entry.refused_until.is_some_and(|until| until <= now) {
            if entry.is_admitting() {
                self.agenda.repeats.insert(key.clone());
                return;
            }
            entry.refused_until = None;
        }
        let wakes_others = std::mem::take(&mut entry.wakes_others);
        if wakes_others {
            self.wake_for(key);
        }
        self.settle(key, now);
    }

    /// Wakes those who may want what a workload holds.
    fn wake_for(&mut self, key: &Key) {
        let Some(entry) = self.workloads.get(key) else { return };
        if let Place::Holding(holding) = &entry.place {
            let queue = Arc::clone(&holding.queue);
            self.wake_tree(&queue);
        }
    }
}

/// Whether an admission that seems to be refused may have been carried out all the same, while
/// there is no news of the workload: it was not answered, or it met another version, which may be
/// of its own making.
fn is_in_doubt(kind: RefusalKind) -> bool {
    match kind {
        RefusalKind::Other | RefusalKind::Conflict => true,
        RefusalKind::NotFound
        | RefusalKind::AlreadyExists
        | RefusalKind::Refused
        | RefusalKind::NamespaceTerminating => false,
    }
}
