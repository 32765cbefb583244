//! Telling workloads why they wait.

use std::sync::Arc;

use jiff::Timestamp;

use crate::plan::{
    Key,
    queue::{
        Cycle, Decision, Queues, Why,
        decide::{self, Change},
        entry::{Entry, Flight, FlightKind, Found, Place, Verdict},
    },
};

/// What those are told that are like one that did not fit.
const BYPASSED: &str =
    "Bypassed scheduling evaluation because an equivalent workload recently failed";

impl Queues {
    /// Tells those whose reasons have changed, and of those whose words have changed one.
    pub(super) fn tell(&mut self, now: Timestamp, cycle: &mut Cycle) {
        for queue in std::mem::take(&mut self.agenda.joined) {
            let untold = self.clusters.get_mut(&queue).map(|it| it.pending.take_untold());
            self.tell_later(untold.unwrap_or_default());
        }
        while cycle.decisions.len() < self.settings.decisions_max {
            let Some(key) = self.agenda.to_write.pop_first() else { break };
            self.write_verdict(&key, now, cycle, false);
        }
        if let Some(key) = self.agenda.take_words(now) {
            if let Some(entry) = self.workloads.get_mut(&key) {
                entry.words_at = None;
            }
            self.write_verdict(&key, now, cycle, true);
        }
    }

    /// Notes that workloads are to be told what their queue waits for.
    pub(super) fn tell_later(&mut self, keys: Vec<Key>) {
        for key in keys {
            let Some(entry) = self.workloads.get(&key) else { continue };
            let verdict = self.by_the_way(entry);
            let Some(entry) = self.workloads.get_mut(&key) else { continue };
            if verdict.is_some() {
                entry.verdict = verdict;
                self.agenda.to_write.insert(key);
            }
        }
    }

    /// Why one waits that was not tried itself.
    fn by_the_way(&self, entry: &Entry) -> Option<Verdict> {
        let Place::Queued { queue, rank, class } = &entry.place else { return None };
        let pending = &self.clusters.get(queue)?.pending;
        let (quota, why, found) = if let Some(parked) = pending.parked(class) {
            (Some((parked.reason, BYPASSED.to_owned())), Arc::clone(&parked.why), Found::Alike)
        } else {
            let block = pending.block().filter(|block| block.head != *rank)?;
            let why = if block.scopes.is_empty() {
                Why::BehindHead { cluster_queue: queue.to_string(), head: block.head.key.clone() }
            } else {
                Why::WaitingForPodsReady { unready: self.unready_in(&block.scopes) }
            };
            // What is not true any more of its queues is taken back by the pass over it.
            (None, Arc::new(why), Found::Untried)
        };
        let position = self.position(queue, rank);
        Some(Verdict { quota, why, found, position })
    }

    /// Writes what a workload is told, if that is news. Words alone are not written at once.
    fn write_verdict(&mut self, key: &Key, now: Timestamp, cycle: &mut Cycle, with_words: bool) {
        let Some(entry) = self.workloads.get_mut(key) else { return };
        // What is under way is answered first.
        if entry.flight.is_some() {
            return;
        }
        let Some(verdict) = &entry.verdict else { return };
        let id = self.next_id;
        let (change, write) = decide::pend(entry, verdict, id, now);
        if change == Change::Words && !with_words {
            if entry.words_at.is_none() {
                entry.words_at = Some(self.agenda.defer_words(key, now));
            }
            return;
        }
        self.agenda.forget_words(key, entry.words_at.take());
        if change != Change::Nothing {
            self.next_id += 1;
            entry.flight = Some(Flight::new(id, entry.version, FlightKind::Pend, now));
            cycle.decisions.push(Decision::Pend(write));
        }
    }
}
