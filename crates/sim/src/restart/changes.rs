//! What the user does to the job of a gang: another number of workers, or none at all.

use lockstep_control::plan::restart::{Completion, Record, Terms};

use super::Broken;
use super::check::Fact;
use super::events::Event;
use super::trouble::Trouble;
use super::world::World;
use crate::chance::Chance;

impl World {
    /// Draws what the user does, and when: half of it in the middle of the next restart. That has a
    /// chance of its own, so that worlds in which it does not happen are what they were without it.
    pub(super) fn plan_changes(&mut self, seed: u64) {
        let mut chance = Chance::new(seed, "restart changes");
        let count = chance.weighted(&[(78, 0), (15, 1), (5, 2), (2, 4)]);
        for _ in 0..count {
            let trouble = chance.weighted(&[(1, Trouble::Deleted), (3, Trouble::Resized)]);
            if chance.percent(50) {
                self.ambush.push(trouble);
            } else {
                let at = chance.micros(0, self.calm_at.cast_signed()).cast_unsigned();
                self.at(at, Event::Trouble(trouble));
            }
        }
    }

    /// A restart has begun: what has waited for one happens in the middle of it.
    pub(super) fn spring(&mut self) {
        if let Some(trouble) = self.ambush.pop() {
            let delay = self.micros(0, 1_500_000);
            self.after(delay, Event::Trouble(trouble));
        }
    }

    /// The user wants more workers, or fewer. Whoever leads is told before anything is done about
    /// it, or is followed by somebody who knows.
    pub(super) fn resize(&mut self) {
        if self.is_over() {
            return;
        }
        let before = self.terms.slots;
        let slots = match before {
            100.. => before * (9 + 2 * self.chance.below(2)) / 10,
            _ => 2 + self.chance.below(5),
        };
        let slots = if slots == before { slots + 1 } else { slots };
        self.outcome.sizes += 1;
        self.tell(|| format!("{slots} workers instead of {before}"));
        self.terms.slots = slots;
        self.terms.completion = Completion::all(slots);
        self.terms.rules.iter_mut().for_each(|rule| rule.slots = 0..slots);
        self.note(Fact::Asked);
        let is_led_anew = self.chance.percent(50) || self.broken == Some(Broken::Blind);
        match self.leading {
            Some(leader) if is_led_anew => self.depose(leader),
            Some(leader) => self.after(1, Event::Amend { leader }),
            None => {}
        }
        let delay = self.micros(5_000, 300_000) + self.api_delay();
        self.after(delay, Event::Resized);
    }

    pub(super) fn amend(&mut self, leader: u64) {
        let terms = Terms { generation: self.vault_generation, ..self.terms.clone() };
        self.leader(leader, |machine, now| machine.amended(terms, now));
    }

    /// The pods of the job become as many as its workers.
    pub(super) fn resized(&mut self) {
        let slots = self.terms.slots;
        if !self.terms.is_rejoining {
            // A Job forgets that an index is done which it has no more.
            self.done.retain(|slot| *slot < slots);
            self.note(Fact::Resized { slots });
        }
        let removed = self.pods.iter().filter(|(_, pod)| !pod.is_gone && pod.slot >= slots);
        let removed: Vec<u64> = removed.map(|(number, _)| *number).collect();
        removed.into_iter().for_each(|pod| self.delete_pod(pod));
        (0..slots).for_each(|slot| self.fill(slot));
    }

    /// The user deletes the job. Its pods go with it, and nobody leads it once that is known.
    pub(super) fn delete(&mut self) {
        if self.is_over() {
            return;
        }
        self.is_deleted = true;
        self.outcome.is_deleted = true;
        // Whoever does not know it yet sees pods that are lost.
        self.note(Fact::Asked);
        let pods: Vec<u64> = self.pods.keys().copied().collect();
        for pod in pods {
            let delay = self.micros(5_000, 500_000) + self.api_delay();
            self.after(delay, Event::DeletePod { pod });
        }
        let delay = self.micros(500, 100_000) + self.api_delay();
        self.after(delay, Event::Forget);
    }

    /// Whoever leads hears that the job is deleted, and sees to it that nothing of it is written
    /// any more. A leader that was replaced without noticing hears nothing.
    pub(super) fn forget(&mut self) {
        let busy_until = self.leading.and_then(|leader| self.paused_until(leader));
        let until = busy_until.unwrap_or(0).max(self.vault.away_until);
        if until > self.now {
            self.at(until + 1000, Event::Forget);
            return;
        }
        if let Some(leader) = self.leading.take() {
            self.depose(leader);
        }
        self.vault.forget(self.broken != Some(Broken::Forgetful));
        self.note(Fact::Deleted);
    }

    /// Whether leaders are kept from seeing a pod.
    pub(super) fn is_unseen(&self, slot: u32) -> bool {
        self.broken == Some(Broken::Blind) && slot >= self.terms.slots
    }

    /// Spoils a record before it is written, if that is wanted.
    pub(super) fn meddle(&self, record: &mut Record) {
        let Some(last) = self.last_written.filter(|_| self.broken == Some(Broken::Unfrozen)) else {
            return;
        };
        if record.slots != last.slots && record.generation == last.generation {
            (record.epoch, record.phase, record.by) = (last.epoch, last.phase, last.by);
        }
    }
}
