//! Pods, the agents in them and the processes of their workers.

use std::time::Duration;

use lockstep_control::plan::restart::{Agent, AgentEffect, Cause, Duty, Identity, Moment, Order};

use super::check::Fact;
use super::events::{Event, Link, PodNews};
use super::world::{Nature, World};

/// How a worker answers when it is asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manners {
    /// It ends soon.
    Polite,
    /// It has to be killed.
    Deaf,
    /// It cannot be killed either, for as long as its machine is not restarted.
    Stuck,
}

/// The processes of one worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process {
    pub(super) id: u64,
    pub(super) epoch: u32,
    manners: Manners,
    is_ending: bool,
}

/// An agent, for as long as its container lives.
#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) session: u64,
    pub(super) agent: Agent,
    pub(super) link: Option<Link>,
    born: u64,
    rate: u32,
    tick_at: Option<u64>,
    process: Option<Process>,
    fence: u64,
}

/// A pod.
#[derive(Clone, Debug)]
pub(super) struct Pod {
    pub(super) slot: u32,
    pub(super) generation: u32,
    pub(super) life: Option<Life>,
    pub(super) is_ending: bool,
    pub(super) is_gone: bool,
    pub(super) is_done: bool,
    pub(super) cut_until: u64,
}

impl Pod {
    pub(super) const fn new(slot: u32, generation: u32) -> Self {
        let life = None;
        let (is_ending, is_gone, is_done) = (false, false, false);
        Self { slot, generation, life, is_ending, is_gone, is_done, cut_until: 0 }
    }

    /// What somebody who has just begun to lead is told of it.
    pub(super) fn news(&self) -> Option<PodNews> {
        match (self.is_gone, self.is_ending) {
            (true, _) if self.is_done => Some(PodNews::Gone { completed: Some(self.generation) }),
            (true, _) => None,
            (false, true) => Some(PodNews::Ending),
            (false, false) => Some(PodNews::Seen),
        }
    }
}

/// The clock of a process that began at `born` and runs at `rate` percent.
pub(super) fn clock(now: u64, born: u64, rate: u32) -> Moment {
    Moment::after(Duration::from_micros((now - born) * u64::from(rate) / 100))
}

/// When the clock of such a process shows `at`.
pub(super) fn when(at: Moment, born: u64, rate: u32) -> u64 {
    let micros = u64::try_from(at.since(Moment::default()).as_micros()).unwrap_or(u64::MAX / 200);
    born + (micros * 100).div_ceil(u64::from(rate))
}

impl World {
    /// A container starts, and its agent with it.
    pub(super) fn boot(&mut self, number: u64) {
        let (now, session) = (self.now, self.next_id());
        let rate = 90 + self.chance.below(21);
        let grace = self.terms.grace;
        let Some(pod) = self.pods.get_mut(&number) else { return };
        if pod.is_gone || pod.is_ending || pod.life.is_some() {
            return;
        }
        let identity =
            Identity { slot: pod.slot, pod: number, session, generation: pod.generation };
        pod.life = Some(Life {
            session,
            agent: Agent::new(identity, grace, Moment::default()),
            link: None,
            born: now,
            rate,
            tick_at: None,
            process: None,
            fence: 0,
        });
        self.dial(number, session, 0);
        self.after_agent(number);
    }

    /// Something happens to an agent.
    pub(super) fn agent(&mut self, pod: u64, act: impl FnOnce(&mut Agent, Moment)) {
        let now = self.now;
        if let Some(life) = self.pods.get_mut(&pod).and_then(|pod| pod.life.as_mut()) {
            let moment = clock(now, life.born, life.rate);
            act(&mut life.agent, moment);
            self.after_agent(pod);
        }
    }

    /// An order reaches an agent.
    pub(super) fn deliver_order(&mut self, pod: u64, session: u64, order: &Order) {
        let Some(life) = self.life(pod, session) else { return };
        let is_overtaken = order.fence < life.fence;
        life.fence = life.fence.max(order.fence);
        // What it is asked for, to see why it stops; the latest counts, however it came.
        let asked = self.asked.entry(pod).or_insert((order.rank.epoch, order.rank.duty));
        *asked = (*asked).max((order.rank.epoch, order.rank.duty));
        let events = self.scheduled;
        self.agent(pod, |agent, now| agent.ordered(order, now));
        if is_overtaken && self.scheduled > events + 1 {
            self.note(Fact::Overruled);
        }
    }

    pub(super) fn life(&mut self, pod: u64, session: u64) -> Option<&mut Life> {
        let life = self.pods.get_mut(&pod)?.life.as_mut()?;
        (life.session == session).then_some(life)
    }

    /// Does what an agent asks for.
    fn after_agent(&mut self, number: u64) {
        let Some(life) = self.pods.get_mut(&number).and_then(|pod| pod.life.as_mut()) else {
            return;
        };
        let effects: Vec<AgentEffect> = life.agent.effects().collect();
        let at = when(life.agent.deadline(), life.born, life.rate).max(self.now + 1);
        if life.tick_at.is_none_or(|tick_at| at < tick_at) {
            life.tick_at = Some(at);
            let session = life.session;
            self.at(at, Event::AgentTick { pod: number, session });
        }
        for effect in effects {
            self.agent_effect(number, effect);
        }
    }

    pub(super) fn agent_tick(&mut self, pod: u64, session: u64) {
        let Some(life) = self.life(pod, session) else { return };
        life.tick_at = None;
        self.agent(pod, Agent::tick);
    }

    fn agent_effect(&mut self, number: u64, effect: AgentEffect) {
        match effect {
            AgentEffect::Spawn { epoch, .. } => {
                let delay = self.micros(200, 20_000);
                self.after(delay, Event::Spawned { pod: number, epoch });
            }
            AgentEffect::Terminate => self.terminate(number),
            AgentEffect::Kill => self.kill(number),
            AgentEffect::Send(report) => self.send_report(number, report),
            AgentEffect::Exit(code) => self.container_ended(number, code),
        }
    }

    /// A worker has been started: how it will end is drawn here.
    pub(super) fn spawned(&mut self, number: u64, epoch: u32) {
        let id = self.next_id();
        let manners = match self.nature {
            Nature::Drawn => self.chance.weighted(&[
                (80, Manners::Polite),
                (18, Manners::Deaf),
                (if self.is_calm() { 0 } else { 2 }, Manners::Stuck),
            ]),
            Nature::Slow if epoch == 0 && self.slot_of(number) == 0 => Manners::Stuck,
            Nature::Slow | Nature::Quiet => Manners::Polite,
        };
        let fails = self.failures_left > 0 && !self.is_calm() && self.chance.percent(12);
        let Some(pod) = self.pods.get_mut(&number) else { return };
        let slot = pod.slot;
        let Some(life) = pod.life.as_mut() else { return };
        life.process = Some(Process { id, epoch, manners, is_ending: false });
        let cannot_start = fails && self.chance.percent(5);
        if cannot_start {
            self.failures_left -= 1;
            life.process = None;
            self.note(Fact::Lost { slot, epoch });
            self.agent(number, |agent, now| agent.not_spawned("no such file".into(), now));
            return;
        }
        self.tell(|| format!("worker {slot} starts epoch {epoch} in pod {number}"));
        self.note(Fact::Started { slot, pod: number, epoch });
        let work = self.work;
        let delay = if fails {
            self.failures_left -= 1;
            self.micros(100, work)
        } else {
            work + self.micros(0, work / 4)
        };
        let code = if fails { self.chance.pick(&[1, 1, 42, 137]) } else { 0 };
        self.after(delay, Event::Exited { pod: number, process: id, code });
        self.agent(number, Agent::spawned);
    }

    fn process(&mut self, number: u64) -> Option<&mut Process> {
        self.pods.get_mut(&number)?.life.as_mut()?.process.as_mut()
    }

    /// The main process of a worker ends by itself.
    pub(super) fn exited(&mut self, number: u64, process: u64, code: i32) {
        let Some(found) = self.process(number).filter(|it| it.id == process && !it.is_ending)
        else {
            return;
        };
        found.is_ending = true;
        found.manners = Manners::Deaf;
        let epoch = found.epoch;
        let slot = self.slot_of(number);
        let fact =
            if code == 0 { Fact::Succeeded { slot, epoch } } else { Fact::Lost { slot, epoch } };
        self.note(fact);
        self.tell(|| format!("worker {slot} of epoch {epoch} exits with {code}"));
        let failure = (code != 0).then_some(Cause::Exited(code));
        self.agent(number, |agent, now| agent.exited(failure, now));
    }

    fn terminate(&mut self, number: u64) {
        let towards = self.asked_of(number);
        let Some(process) = self.process(number) else { return };
        let (id, epoch, manners) = (process.id, process.epoch, process.manners);
        let was_ending = std::mem::replace(&mut process.is_ending, true);
        let slot = self.slot_of(number);
        if !was_ending {
            self.note(Fact::Stopped { slot, epoch, towards });
        }
        if manners == Manners::Polite {
            let delay = self.micros(1_000, 400_000);
            self.after(delay, Event::Gone { pod: number, process: id });
        }
    }

    fn kill(&mut self, number: u64) {
        let Some(process) = self.process(number) else { return };
        process.is_ending = true;
        let (id, manners) = (process.id, process.manners);
        let delay = match manners {
            Manners::Polite | Manners::Deaf => self.micros(100, 50_000),
            Manners::Stuck => 60_000_000,
        };
        self.after(delay, Event::Gone { pod: number, process: id });
    }

    /// Nothing is left of a worker.
    pub(super) fn gone(&mut self, number: u64, id: u64) {
        let Some(life) = self.pods.get_mut(&number).and_then(|pod| pod.life.as_mut()) else {
            return;
        };
        let Some(process) = life.process.take_if(|process| process.id == id) else { return };
        self.note(Fact::Ended { pod: number, epoch: process.epoch });
        self.agent(number, Agent::gone);
    }

    /// The container of a pod dies with all that is in it.
    pub(super) fn crash(&mut self, number: u64) {
        let Some(pod) = self.pods.get_mut(&number) else { return };
        let slot = pod.slot;
        let Some(life) = pod.life.take() else { return };
        self.hang_up(number, life.link);
        if let Some(process) = life.process {
            self.note(Fact::Ended { pod: number, epoch: process.epoch });
        }
        self.tell(|| format!("the container of worker {slot} dies in pod {number}"));
    }

    /// The agent has ended its container.
    fn container_ended(&mut self, number: u64, code: i32) {
        let Some(pod) = self.pods.get_mut(&number) else { return };
        let (slot, was_ending) = (pod.slot, pod.is_ending);
        let link = pod.life.as_ref().and_then(|life| life.link);
        self.tell(|| format!("pod {number} of worker {slot} ends with {code}"));
        self.hang_up(number, link);
        if let Some(pod) = self.pods.get_mut(&number) {
            pod.life = None;
        }
        if code != 0 && !was_ending && self.restarts_containers {
            let delay = self.micros(100_000, 10_000_000);
            self.after(delay, Event::Boot { pod: number });
        } else {
            self.pod_ended(number, code == 0 && !was_ending);
        }
    }

    /// Whoever deletes a pod asks its container to end, and ends it after the grace.
    pub(super) fn delete_pod(&mut self, number: u64) {
        let Some(pod) = self.pods.get_mut(&number).filter(|pod| !pod.is_gone && !pod.is_ending)
        else {
            return;
        };
        pod.is_ending = true;
        let (slot, cut_until) = (pod.slot, pod.cut_until);
        self.tell(|| format!("pod {number} of worker {slot} is deleted"));
        self.tell_leaders_of_pod(slot, number, PodNews::Ending);
        // A node that is cut off hears of it when it is back.
        let delay = cut_until.saturating_sub(self.now) + self.micros(1_000, 300_000);
        self.after(delay, Event::EndPod { pod: number, is_forced: false });
        self.after(delay + 30_000_000, Event::EndPod { pod: number, is_forced: true });
    }

    pub(super) fn end_pod(&mut self, number: u64, is_forced: bool) {
        let Some(pod) = self.pods.get_mut(&number).filter(|pod| !pod.is_gone) else { return };
        let has_stuck = pod.life.as_ref().and_then(|life| life.process);
        match (is_forced, &pod.life) {
            (_, None) => self.pod_ended(number, false),
            (false, Some(_)) => self.agent(number, Agent::terminated),
            (true, Some(_)) if has_stuck.is_some_and(|it| it.manners == Manners::Stuck) => {
                // Somebody restarts the machine.
                if let Some(process) = self.process(number) {
                    process.manners = Manners::Deaf;
                }
                self.after(60_000_000, Event::EndPod { pod: number, is_forced: true });
            }
            (true, Some(_)) => {
                self.crash(number);
                self.pod_ended(number, false);
            }
        }
    }

    fn pod_ended(&mut self, number: u64, is_done: bool) {
        let Some(pod) = self.pods.get_mut(&number).filter(|pod| !pod.is_gone) else { return };
        pod.is_gone = true;
        pod.is_done = is_done;
        pod.life = None;
        let (slot, generation) = (pod.slot, pod.generation);
        let completed = is_done.then_some(generation);
        // Its Job may be gone, and there be another one that knows nothing of it.
        let is_done = is_done && generation >= self.vault_generation;
        if is_done {
            self.done.insert(slot);
        }
        self.note(Fact::PodEnded { slot, is_done });
        self.tell_leaders_of_pod(slot, number, PodNews::Gone { completed });
        self.fill(slot);
    }

    /// A worker ends badly, if one runs in this place.
    pub(super) fn break_down(&mut self, slot: u32) {
        let broken = self.pods.iter().find_map(|(number, pod)| {
            let process = pod.life.as_ref().filter(|_| pod.slot == slot)?.process?;
            Some((*number, process.id))
        });
        if let Some((number, process)) = broken {
            self.outcome.faults += 1;
            self.exited(number, process, 1);
        }
    }

    fn slot_of(&self, number: u64) -> u32 {
        self.pods.get(&number).map_or(u32::MAX, |pod| pod.slot)
    }

    /// What an agent was asked for, if that is a restart.
    fn asked_of(&self, number: u64) -> Option<u32> {
        let is_ending = self.pods.get(&number).is_none_or(|pod| pod.is_ending);
        let (epoch, duty) = self.asked.get(&number)?;
        (!is_ending && matches!(duty, Duty::Hold | Duty::Run)).then_some(*epoch)
    }
}
