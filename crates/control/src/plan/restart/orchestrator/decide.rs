//! The order of decisions. Each leads to a record, which is written before anything is done.

use super::super::{Cause, Duty, Moment, Phase, Reason, Record, Verdict, Waterfall, Worker};
use super::ladder::{Ladder, Rung};
use super::slots::{Slot, Standing};
use super::{Effect, Orchestrator, resend_wait};

impl Orchestrator {
    /// Decides what can be decided now.
    pub(super) fn decide(&mut self, now: Moment) {
        if self.is_deposed || self.flight.is_some() || !self.is_confirmed {
            return;
        }
        if let Some(next) = self.next(now) {
            self.propose(next);
        }
    }

    /// A record was written: from here on it is true, and told.
    pub(super) fn enter(&mut self, record: Record, now: Moment) {
        let before = self.record;
        self.record = record;
        // Also when there are as many as before: there may have been others in between, who is
        // needed for a success with them.
        self.slots.resize(record.slots, &self.terms.completion, &record);
        if self.regenerated.is_some_and(|(generation, _)| generation <= record.generation) {
            self.regenerated = None;
        }
        if record.rank() != before.rank() {
            self.running_since = None;
        }
        let is_new = record.rank() != before.rank() || record.phase != before.phase;
        if !std::mem::replace(&mut self.is_confirmed, true) || is_new {
            self.ladder = Ladder::new(record.phase, &self.terms, now);
            self.slots.gather();
        }
        let doomed = std::mem::take(&mut self.doomed);
        if record.rank() == before.rank() && !doomed.is_empty() {
            self.ladder.replacing(&self.terms, now);
            self.effects.push(Effect::Replace(doomed));
        }
        if record.generation > before.generation {
            for link in self.slots.retire(&record) {
                self.dismiss(link, Duty::Retire);
            }
        }
        match record.phase {
            Phase::Recreating => {
                self.effects.push(Effect::Recreate { generation: record.generation });
                self.tell();
            }
            Phase::Suspended => {}
            Phase::Surrendered(slot) => self.tell_to_leave(slot),
            Phase::Failed(reason) => {
                self.tell();
                self.effects.push(Effect::Fail(reason));
            }
            Phase::Forming | Phase::Running | Phase::Stopping | Phase::Succeeding => self.tell(),
        }
        self.resend_wait = resend_wait(record.slots);
        self.resend_at = Some(now + self.resend_wait);
        self.note_entered(now);
        self.note_stages(now);
    }

    /// The next record, if something has to change.
    fn next(&mut self, now: Moment) -> Option<Record> {
        let record = self.record;
        if let Some(ahead) = self.adopted() {
            return Some(ahead);
        }
        if record.phase.is_terminal() {
            return None;
        }
        if record.is_rejoining && self.slots.count(Standing::Finished) > 0 {
            // Nobody completes before success is decided: the record is behind.
            return Some(Record { phase: Phase::Succeeding, ..record });
        }
        if self.terms.is_suspended != (record.phase == Phase::Suspended) {
            if self.terms.is_suspended {
                return Some(record.next_epoch(Phase::Suspended));
            }
            // The epoch is new already: nobody has heard of it. Pods that were never deleted,
            // because the suspension was short, gather for it as all others do.
            let generation = record.generation.max(self.terms.generation);
            let slots = self.terms.slots;
            let by = record.fence;
            return Some(Record { generation, phase: Phase::Forming, by, slots, ..record });
        }
        if record.phase == Phase::Suspended {
            return None;
        }
        if let Some((generation, is_counted)) = self.regenerated
            && generation > record.generation
        {
            let next = Record { generation, slots: self.terms.slots, ..record };
            let next = next.next_epoch(Phase::Forming);
            return Some(if is_counted { self.charged(next, true) } else { next });
        }
        if record.slots != self.terms.slots {
            let slots = self.terms.slots;
            return Some(Record { slots, ..record.next_epoch(Phase::Stopping) });
        }
        if record.phase.is_gathering() { self.gathered(now) } else { self.looked_after(now) }
    }

    /// The state that an agent has shown and the record does not have.
    fn adopted(&mut self) -> Option<Record> {
        let ahead = self.ahead.take()?;
        let record = self.record;
        let restarts = record.restarts.max(ahead.restarts);
        let (rank, by) = (ahead.held.rank, ahead.held.by);
        if rank <= record.rank() {
            return (restarts != record.restarts).then_some(Record { restarts, ..record });
        }
        let (generation, epoch) = (rank.generation, rank.epoch);
        if record.phase.is_terminal() {
            // The end is the end; those who are further along have to hear of it there.
            return Some(Record { generation, epoch, restarts, ..record });
        }
        let (phase, by) = match rank.duty {
            Duty::Hold | Duty::Retire | Duty::Surrender => (Phase::Stopping, record.fence),
            Duty::Run => (Phase::Running, by),
            Duty::Finish => (Phase::Succeeding, by),
            Duty::Fail if restarts.counted > self.terms.max_restarts => {
                (Phase::Failed(Reason::ReachedMaxRestarts), by)
            }
            Duty::Fail => (Phase::Failed(Reason::NoProgress), by),
        };
        Some(Record { generation, epoch, phase, by, restarts, ..record })
    }

    /// While workers gather: release them, or help those along that do not come.
    fn gathered(&mut self, now: Moment) -> Option<Record> {
        let record = self.record;
        if record.restarts.counted > self.terms.max_restarts {
            return Some(Record { phase: Phase::Failed(Reason::ReachedMaxRestarts), ..record });
        }
        let finished = self.slots.count(Standing::Finished);
        if finished == record.slots {
            return Some(Record { phase: Phase::Succeeding, ..record });
        }
        // A worker that is no longer part of the gang must be gone too: it is of another epoch.
        if self.slots.are_pods_known()
            && self.slots.count(Standing::Ready) + finished == record.slots
            && self.slots.strays() == 0
        {
            let remade = record.remade.max(self.terms.remade);
            return Some(Record { phase: Phase::Running, remade, ..record });
        }
        while let Some(rung) = self.ladder.due(now) {
            match rung {
                Rung::Replace if self.dooms_silent(now) => return Some(record),
                Rung::ReplaceAll if self.dooms(|slot| slot.is_late() && !slot.is_replacement()) => {
                    return Some(record);
                }
                Rung::Replace | Rung::ReplaceAll => {}
                Rung::Recreate if self.slots.is_any_replaced() && self.ladder.extend(now) => {}
                Rung::Recreate => {
                    let generation = record.generation.saturating_add(1);
                    let next = record.next_epoch(Phase::Recreating);
                    return Some(self.charged(Record { generation, ..next }, true));
                }
                Rung::Remind => {
                    self.effects.push(Effect::Recreate { generation: record.generation });
                }
            }
        }
        // Those that cannot be stopped are replaced without waiting.
        let has_stuck =
            record.phase == Phase::Stopping && self.slots.stuck() > 0 && self.dooms(Slot::is_stuck);
        has_stuck.then_some(record)
    }

    /// While workers run: look for the end, good or bad.
    fn looked_after(&mut self, now: Moment) -> Option<Record> {
        let record = self.record;
        if self.slots.is_complete(self.terms.completion.is_any) {
            return Some(Record { phase: Phase::Succeeding, ..record });
        }
        let is_patient = self.ladder.is_patient(now);
        let (slot, verdict) = self.worst_failure(is_patient)?;
        if verdict == Verdict::Surrender {
            let phase = Phase::Surrendered(slot);
            return (record.phase != phase).then_some(Record { phase, ..record });
        }
        let first = self.slots.failed().next().unwrap_or(slot);
        let cause = self.slots.get(first)?.cause();
        self.last_failure = Some((first, cause.clone()));
        let has_progressed =
            self.running_since.is_some_and(|since| now.since(since) >= self.terms.progress_after);
        let stalled = if has_progressed { 0 } else { record.stalled.saturating_add(1) };
        let next = Record { stalled, ..record.next_epoch(Phase::Stopping) };
        self.waterfall = Some(Waterfall::new(next.epoch, first, cause, now));
        if stalled > self.terms.stalled_max {
            return Some(Record { phase: Phase::Failed(Reason::NoProgress), stalled, ..record });
        }
        Some(self.charged(next, verdict == Verdict::Count))
    }

    /// One restart more, or the end of the gang if that is one too many.
    fn charged(&self, next: Record, is_counted: bool) -> Record {
        let next = next.charged(is_counted);
        if next.restarts.counted <= self.terms.max_restarts {
            return next;
        }
        // Nobody is asked to gather for an epoch that will not be.
        let phase = Phase::Failed(Reason::ReachedMaxRestarts);
        Record { phase, restarts: next.restarts, stalled: next.stalled, ..self.record }
    }

    /// Of all failures there are, the one that asks for most. While the failure policy is to decide
    /// about one, the others are what follows from it: its Job takes the pods beside it along, and
    /// workers miss their peer.
    fn worst_failure(&self, is_patient: bool) -> Option<(u32, Verdict)> {
        let surrendered = match self.record.phase {
            Phase::Surrendered(slot) => Some(slot),
            Phase::Forming
            | Phase::Running
            | Phase::Stopping
            | Phase::Recreating
            | Phase::Suspended
            | Phase::Succeeding
            | Phase::Failed(_) => None,
        };
        // What the job has counted itself is not counted again.
        let is_remade = self.terms.remade > self.record.remade;
        let judged = self.slots.failed().filter_map(|at| {
            let slot = self.slots.get(at)?;
            if surrendered == Some(at) {
                // The failure policy has this one, until it makes Jobs anew, or a new agent shows
                // that the worker came back without it.
                let is_new = slot.is_live && slot.worker == Worker::Idle;
                let verdict = is_new.then_some(Verdict::Count);
                return Some((at, is_remade.then_some(Verdict::Ignore).or(verdict)?));
            }
            if is_patient {
                return None;
            }
            let cause = slot.cause();
            if cause == Cause::PodLost && (is_remade || slot.is_excused()) {
                return Some((at, Verdict::Ignore));
            }
            Some((at, self.terms.judge(at, &cause)))
        });
        judged.max_by_key(|(_, verdict)| *verdict)
    }

    /// Marks the pods to replace. Nothing is done to them before the record is written once more:
    /// a leader that was replaced without noticing must not take pods from the one that was not.
    fn dooms(&mut self, is_wanted: impl Fn(&Slot) -> bool) -> bool {
        let wanted = self.slots.iter().filter(|(_, slot)| is_wanted(slot) && slot.is_replaceable());
        self.doomed = wanted.map(|(at, slot)| (at, slot.pod)).collect();
        for at in 0..self.doomed.len() {
            self.slots.note_replaced(self.doomed[at].0, &self.record);
        }
        !self.doomed.is_empty()
    }

    /// The same for agents that have had their time to stop and to say so. One that this leader has
    /// never heard may still be looking for it; one that came later has its time from then.
    fn dooms_silent(&mut self, now: Moment) -> bool {
        let within = self.terms.stop_within();
        let late = self.slots.iter().filter_map(|(_, slot)| slot.answers_until(within));
        self.ladder.replace_at(late.filter(|until| *until > now).min());
        self.dooms(|slot| slot.answers_until(within).is_some_and(|until| until <= now))
    }

    fn tell(&mut self) {
        self.effects.push(Effect::Broadcast(self.record.order()));
    }

    fn tell_to_leave(&mut self, slot: u32) {
        if let Some(slot) = self.slots.get(slot) {
            self.dismiss(slot.link, Duty::Surrender);
        }
    }

    fn note_entered(&mut self, now: Moment) {
        let (epoch, phase) = (self.record.epoch, self.record.phase);
        let Some(waterfall) = self.waterfall.as_mut().filter(|it| it.epoch == epoch) else {
            return;
        };
        match phase {
            Phase::Stopping => waterfall.decided = Some(now),
            Phase::Running => {
                waterfall.gathered = waterfall.gathered.or(Some(now));
                waterfall.released = Some(now);
            }
            Phase::Forming
            | Phase::Recreating
            | Phase::Suspended
            | Phase::Surrendered(_)
            | Phase::Succeeding
            | Phase::Failed(_) => {}
        }
    }

    /// Notes when a restart gets from one part to the next.
    pub(super) fn note_stages(&mut self, now: Moment) {
        let slots = self.record.slots;
        let finished = self.slots.count(Standing::Finished);
        let Record { phase, epoch, .. } = self.record;
        let waterfall = self.waterfall.as_mut().filter(|it| it.epoch == epoch);
        if phase == Phase::Stopping
            && let Some(waterfall) = waterfall
        {
            if self.slots.count(Standing::Behind) == 0 {
                waterfall.stopped = waterfall.stopped.or(Some(now));
            }
            if self.slots.count(Standing::Ready) + finished == slots {
                waterfall.gathered = waterfall.gathered.or(Some(now));
            }
            return;
        }
        let running = self.slots.count(Standing::Running) + self.slots.count(Standing::Succeeded);
        if phase == Phase::Running && self.running_since.is_none() && running + finished == slots {
            self.running_since = Some(now);
            if let Some(mut waterfall) = self.waterfall.take_if(|it| it.epoch == epoch) {
                waterfall.running = Some(now);
                self.effects.push(Effect::Restarted(waterfall));
            }
        }
    }
}
