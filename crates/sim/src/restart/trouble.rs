//! What goes wrong in a world, and when.

use lockstep_control::plan::restart::Phase;

use super::check::Fact;
use super::events::Event;
use super::world::World;

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug)]
pub(super) enum Trouble {
    /// A container dies, and is started again in its pod.
    ContainerDies,
    /// A pod is deleted.
    PodDeleted,
    /// A worker hangs, and its agent notices.
    WorkerHangs,
    /// The node of a worker is cut off for a while.
    NodeCut,
    /// All of them are.
    AllCut,
    /// The leader dies.
    LeaderDies,
    /// The leader stands still, for longer than others wait.
    LeaderPauses,
    /// The store cannot be reached.
    StoreAway,
    /// The store loses its last writes.
    StoreBehind,
    /// The store loses everything.
    StoreWiped,
    /// The API is slow.
    ApiSlow,
    /// The user suspends the job, and resumes it.
    Suspended,
    /// The job makes all its pods anew.
    Regenerated,
    /// The user wants another number of workers.
    Resized,
    /// The user deletes the job.
    Deleted,
}

impl World {
    /// Draws what goes wrong, and when.
    pub(super) fn plan_trouble(&mut self) {
        let count = self.chance.weighted(&[(15, 0), (25, 1), (25, 2), (20, 4), (15, 8)]);
        for _ in 0..count {
            let at = self.micros(0, self.calm_at);
            let trouble = self.chance.weighted(&[
                (14, Trouble::ContainerDies),
                (14, Trouble::PodDeleted),
                (4, Trouble::WorkerHangs),
                (10, Trouble::NodeCut),
                (3, Trouble::AllCut),
                (14, Trouble::LeaderDies),
                (10, Trouble::LeaderPauses),
                (8, Trouble::StoreAway),
                (5, Trouble::StoreBehind),
                (4, Trouble::StoreWiped),
                (4, Trouble::ApiSlow),
                (5, Trouble::Suspended),
                (5, Trouble::Regenerated),
            ]);
            self.at(at, Event::Trouble(trouble));
        }
    }

    pub(super) fn trouble(&mut self, trouble: Trouble) {
        self.outcome.faults += 1;
        self.tell(|| format!("trouble: {trouble:?}"));
        match trouble {
            Trouble::ContainerDies => self.container_dies(),
            Trouble::PodDeleted => {
                if let Some(pod) = self.some_pod() {
                    self.lose(pod);
                    self.delete_pod(pod);
                }
            }
            Trouble::WorkerHangs => {
                if let Some(pod) = self.some_pod() {
                    self.hang(pod);
                }
            }
            Trouble::NodeCut => {
                if let Some(pod) = self.some_pod() {
                    let until = self.now + self.micros(100_000, 90_000_000);
                    self.cut(pod, until);
                }
            }
            Trouble::AllCut => {
                let until = self.now + self.micros(100_000, 30_000_000);
                let pods: Vec<u64> = self.pods.keys().copied().collect();
                pods.into_iter().for_each(|pod| self.cut(pod, until));
            }
            Trouble::LeaderDies => {
                if let Some(leader) = self.leading {
                    self.depose(leader);
                }
            }
            Trouble::LeaderPauses => self.leader_pauses(),
            Trouble::StoreAway => {
                self.vault.away_until = self.now + self.micros(100_000, 30_000_000);
            }
            Trouble::StoreBehind => {
                let count = 1 + self.chance.below(3) as usize;
                self.roll_back(count);
            }
            Trouble::StoreWiped => self.roll_back(usize::MAX),
            Trouble::ApiSlow => self.api_slow_until = self.now + self.micros(1_000_000, 20_000_000),
            Trouble::Suspended => self.suspend(),
            Trouble::Regenerated => self.regenerate(),
            Trouble::Resized => self.resize(),
            Trouble::Deleted => self.delete(),
        }
    }

    fn some_pod(&mut self) -> Option<u64> {
        let pods: Vec<u64> =
            self.pods.iter().filter(|(_, pod)| !pod.is_gone).map(|(pod, _)| *pod).collect();
        (!pods.is_empty()).then(|| self.chance.pick(&pods))
    }

    /// Something is taken from the gang that it will have to make up for.
    fn lose(&mut self, pod: u64) {
        if let Some(slot) = self.pods.get(&pod).map(|pod| pod.slot) {
            let epoch = self.epoch();
            self.note(Fact::Lost { slot, epoch });
        }
    }

    fn container_dies(&mut self) {
        let Some(pod) = self.some_pod() else { return };
        if self.pods.get(&pod).is_none_or(|pod| pod.life.is_none() || pod.is_ending) {
            return;
        }
        self.lose(pod);
        self.crash(pod);
        if self.restarts_containers {
            let delay = self.micros(100_000, 10_000_000);
            self.after(delay, Event::Boot { pod });
        } else {
            self.end_pod(pod, true);
        }
    }

    fn leader_pauses(&mut self) {
        let Some(id) = self.leading else { return };
        let span = self.micros(1_000_000, 40_000_000);
        let until = self.now + span;
        if let Some(leader) = self.leaders.get_mut(&id) {
            leader.paused_until = until;
        }
        if span > 5_000_000 {
            // Others see that its lease has run out; it will not, for a while.
            self.leading = None;
            self.after(5_000_000, Event::Elect);
            let unaware = self.micros(0, 20_000_000);
            self.at(until + unaware, Event::Depose { leader: id });
        }
    }

    fn roll_back(&mut self, count: usize) {
        // Of a job that was deleted there is nothing left to lose.
        if !self.is_deleted && self.vault.roll_back(count) {
            self.note(Fact::RolledBack);
            // With its writes the store has lost the fence: what keeps a leader from going on that
            // was replaced is its own clock then, which tells it that its lease has run out.
            let replaced: Vec<u64> =
                self.leaders.keys().copied().filter(|id| Some(*id) != self.leading).collect();
            replaced.into_iter().for_each(|id| self.depose(id));
        }
    }

    fn suspend(&mut self) {
        if self.terms.is_suspended {
            return;
        }
        self.terms.is_suspended = true;
        self.note(Fact::Asked);
        if let Some(id) = self.leading {
            self.leader(id, |machine, now| machine.suspended(true, now));
        }
        let delay = self.micros(1_000_000, 60_000_000);
        self.after(delay, Event::Resume);
    }

    pub(super) fn resume(&mut self) {
        self.terms.is_suspended = false;
        if let Some(id) = self.leading {
            self.leader(id, |machine, now| machine.suspended(false, now));
        }
    }

    /// The job's own policy makes all pods anew.
    pub(super) fn regenerate(&mut self) {
        self.note(Fact::Asked);
        let Some(id) = self.leading else { return };
        let generation = self.vault_generation + 1;
        self.leader(id, |machine, now| machine.regenerated(generation, true, now));
    }

    /// A worker hangs; its agent notices.
    fn hang(&mut self, number: u64) {
        let epoch = self.epoch();
        let is_running = self.last_written.is_some_and(|record| record.phase == Phase::Running);
        if let Some(slot) = self.pods.get(&number).filter(|_| is_running).map(|pod| pod.slot) {
            self.note(Fact::Lost { slot, epoch });
            self.agent(number, |agent, now| agent.hung(now));
        }
    }
}
