//! The admission cycle.

mod round;
mod sweep;
mod tell;
mod verdict;

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;

use super::{
    Cycle, Decision, Queues, Settings,
    decide::{self, Party},
    entry::{Entry, Flight, FlightKind, Place},
    ledger::Tree,
};
use crate::plan::Key;
use sweep::Sweep;

impl Queues {
    /// One admission cycle: everything that can be decided now. What is decided counts at once.
    pub fn cycle(&mut self, now: Timestamp) -> Cycle {
        let mut cycle = Cycle::default();
        if !self.is_ready() {
            return cycle;
        }
        for key in self.agenda.take_timers(now) {
            self.timer_ended(&key, now);
        }
        self.repeat(now, &mut cycle);
        self.wake(now);
        let Settings { decisions_max, visits_max, .. } = self.settings;
        let mut sweep = Sweep::default();
        let mut heads = self.heads();
        while !heads.is_empty()
            && cycle.decisions.len() < decisions_max
            && cycle.visited < visits_max
        {
            self.round(&heads, &mut sweep, now, &mut cycle);
            heads = self.heads();
        }
        self.agenda.unfinished = heads.iter().map(|queue| self.ledger.tree(queue)).collect();
        self.carry_out_orders(now, &mut cycle);
        self.tell(now, &mut cycle);
        cycle
    }

    /// Lets those be tried again for whom something has changed: heads that wait at once, those
    /// that did not fit when it is their time.
    fn wake(&mut self, now: Timestamp) {
        for tree in std::mem::take(&mut self.agenda.to_wake) {
            self.unblock(&tree);
            self.agenda.to_retry.insert(tree);
        }
        for tree in self.agenda.take_retries(now) {
            let mut classes = 0;
            for queue in self.ledger.members(&tree) {
                if let Some(cluster) = self.clusters.get_mut(&queue) {
                    classes += cluster.pending.wake();
                    self.refresh(&queue);
                }
            }
            self.agenda.retried(tree, classes, now);
        }
    }

    /// Lets the heads be tried again that wait in these queues.
    fn unblock(&mut self, tree: &Tree) {
        for queue in self.ledger.members(tree) {
            if let Some(cluster) = self.clusters.get_mut(&queue)
                && cluster.pending.block().is_some()
            {
                cluster.pending.unblock();
                self.refresh(&queue);
            }
        }
    }

    /// The queue whose head a workload is, if nobody may overtake it there.
    pub(super) fn queue_held_up_by(&self, place: &Place) -> Option<Arc<str>> {
        let Place::Queued { queue, rank, .. } = place else { return None };
        let block = self.clusters.get(queue)?.pending.block()?;
        (block.head == *rank).then(|| Arc::clone(queue))
    }

    /// What a queue waits for has changed, or who waits. All are tried again for whom that makes a
    /// difference: those too that were kept from what it claimed.
    pub(super) fn head_changed(&mut self, queue: &Arc<str>) {
        let tree = self.ledger.tree(queue);
        self.unblock(&tree);
    }

    /// The first of each ClusterQueue that has somebody to try, and of those that share with it:
    /// who waits at their heads has a claim too.
    fn heads(&self) -> Vec<Arc<str>> {
        if self.agenda.ready.is_empty() {
            return Vec::new();
        }
        let mut queues: Vec<Arc<str>> = self.agenda.ready.iter().cloned().collect();
        if !self.agenda.blocked.is_empty() {
            let trees: BTreeSet<Tree> = queues.iter().map(|it| self.ledger.tree(it)).collect();
            let blocked = self.agenda.blocked.iter();
            queues.extend(blocked.filter(|it| trees.contains(&self.ledger.tree(it))).cloned());
        }
        queues
    }

    /// Tells those that are to give way.
    fn carry_out_orders(&mut self, now: Timestamp, cycle: &mut Cycle) {
        if !std::mem::take(&mut self.agenda.has_orders) {
            return;
        }
        let keys: Vec<Key> = self.agenda.orders.keys().cloned().collect();
        for key in keys {
            let entry = self.workloads.get(&key);
            // One whose admission is still being written is told once that is done.
            if entry.is_some_and(|entry| entry.is_admitting()) {
                continue;
            }
            let Some(order) = self.agenda.orders.remove(&key) else { continue };
            let Some(entry) = entry.filter(|entry| !entry.is_evicted()) else { continue };
            let Place::Holding(holding) = &entry.place else { continue };
            let Some((preemptor, queue)) = self.waits(&order.preemptor) else {
                // It stays after all. Others may have counted on that it goes.
                let queue = Arc::clone(&holding.queue);
                self.wake_tree(&queue);
                continue;
            };
            let id = self.next_id;
            let victim = self.party(&entry.object, &holding.queue);
            let preemptor = self.party(&preemptor.object, queue);
            let reason = order.target.reason;
            let write = decide::preempt(entry, &victim, &preemptor, reason, (id, now));
            self.next_id += 1;
            if let Some(entry) = self.workloads.get_mut(&key) {
                entry.flight = Some(Flight::new(id, entry.version, FlightKind::Evict, now));
            }
            cycle.decisions.push(Decision::Preempt(write));
        }
    }

    /// One that waits to be tried, and its queue.
    fn waits(&self, key: &Key) -> Option<(&Entry, &Arc<str>)> {
        let entry = self.workloads.get(key)?;
        let Place::Queued { queue, .. } = &entry.place else { return None };
        Some((entry, queue))
    }

    fn party<'a>(
        &'a self,
        object: &'a lockstep_api::kueue::Workload,
        queue: &'a Arc<str>,
    ) -> Party<'a> {
        let cohort = self.ledger.book(queue).and_then(|book| book.pool.cohort.as_ref());
        Party { object, queue, cohort }
    }
}
