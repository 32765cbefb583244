//! Leaders: the machine of each, its connections, and what it asks of the store and the cluster.

use std::collections::BTreeMap;

use lockstep_control::plan::restart::{
    Effect, Expected, Moment, Orchestrator, Order, Phase, Record, Report, Terms,
};

use super::check::{Fact, Written};
use super::events::{Answer, Event, Link, PodNews};
use super::fleet::{clock, when};
use super::world::World;

/// One that leads, or thinks so.
#[derive(Debug)]
pub(super) struct Leader {
    pub(super) machine: Orchestrator,
    born: u64,
    rate: u32,
    tick_at: Option<u64>,
    /// Connections: pod and session.
    pub(super) links: BTreeMap<u64, (u64, u64)>,
    /// Until when it does not run.
    pub(super) paused_until: u64,
    /// What it has told everybody.
    told: Option<Order>,
    /// Until when its news of pods is on the way: news keeps its order.
    news_until: u64,
}

impl World {
    /// Somebody takes the lead.
    pub(super) fn elect(&mut self) {
        if self.has_failed || self.is_deleted {
            // The job says so itself, or is no more: nobody leads it.
            return;
        }
        if self.vault.away_until > self.now {
            self.at(self.vault.away_until + 1000, Event::Elect);
            return;
        }
        self.fence += 1;
        let (fence, id) = (self.fence, self.next_id());
        let stored = self.vault.record().copied();
        if stored.is_some_and(|record| record.fence >= fence) {
            self.fence = stored.map_or(fence, |record| record.fence);
            self.at(self.now + 1000, Event::Elect);
            return;
        }
        let rate = 90 + self.chance.below(21);
        self.tell(|| format!("leader {id} takes over with fence {fence}, finds {stored:?}"));
        let terms = Terms { generation: self.vault_generation, ..self.terms.clone() };
        let machine = Orchestrator::lead(terms, fence, stored);
        let leader = Leader {
            machine,
            born: self.now,
            rate,
            tick_at: None,
            links: BTreeMap::new(),
            paused_until: 0,
            told: None,
            news_until: self.now,
        };
        self.leaders.insert(id, leader);
        self.leading = Some(id);
        let found: Vec<_> =
            self.pods.iter().filter_map(|(pod, it)| Some((it.slot, *pod, it.news()?))).collect();
        for (slot, pod, news) in found {
            self.news(id, slot, pod, news);
        }
        self.news(id, 0, 0, PodNews::AllKnown);
        if self.is_lossy {
            self.after(2_000_000, Event::Remind { leader: id });
        }
        self.after_leader(id);
    }

    /// Something happens to a leader; it takes note of it when it runs again, if it does not.
    pub(super) fn leader(&mut self, id: u64, act: impl FnOnce(&mut Orchestrator, Moment)) {
        let now = self.now;
        if let Some(leader) = self.leaders.get_mut(&id) {
            let moment = clock(now, leader.born, leader.rate);
            act(&mut leader.machine, moment);
            self.after_leader(id);
        }
    }

    pub(super) fn paused_until(&self, id: u64) -> Option<u64> {
        let leader = self.leaders.get(&id)?;
        (leader.paused_until > self.now).then_some(leader.paused_until)
    }

    pub(super) fn leader_tick(&mut self, id: u64) {
        if let Some(leader) = self.leaders.get_mut(&id) {
            leader.tick_at = None;
            self.leader(id, Orchestrator::tick);
        }
    }

    pub(super) fn deliver_report(&mut self, id: u64, link: u64, report: &Report) {
        let known = (report.pod, report.session);
        let Some(leader) = self.leaders.get_mut(&id) else { return };
        if self.is_lossy {
            leader.links.insert(link, known);
        } else if !leader.links.contains_key(&link) {
            return;
        }
        self.leader(id, |machine, now| machine.heard(link, report, now));
    }

    fn after_leader(&mut self, id: u64) {
        let Some(leader) = self.leaders.get_mut(&id) else { return };
        let effects: Vec<Effect> = leader.machine.effects().collect();
        if let Some(deadline) = leader.machine.deadline() {
            let at = when(deadline, leader.born, leader.rate).max(self.now + 1);
            if leader.tick_at.is_none_or(|tick_at| at < tick_at) {
                leader.tick_at = Some(at);
                self.at(at, Event::LeaderTick { leader: id });
            }
        } else if leader.machine.record().phase.is_gathering()
            && leader.machine.waiting().is_none()
            && effects.is_empty()
            && !leader.machine.is_writing()
        {
            self.note(Fact::Silent);
        }
        for effect in effects {
            self.leader_effect(id, effect);
        }
    }

    fn leader_effect(&mut self, id: u64, effect: Effect) {
        match effect {
            Effect::Commit(mut record, expected) => {
                self.meddle(&mut record);
                let delay = self.micros(200, 20_000);
                self.after(delay, Event::Store { leader: id, record, expected });
            }
            Effect::Broadcast(order) => {
                if let Some(leader) = self.leaders.get_mut(&id) {
                    leader.told = Some(order);
                }
                self.broadcast(id, order);
            }
            Effect::Tell(link, order) => self.send_order(id, link, order),
            Effect::Close(link) => self.close(id, link),
            Effect::Replace(pods) => {
                let delay = self.micros(5_000, 200_000) + self.api_delay();
                for (_, pod) in pods {
                    self.after(delay, Event::DeletePod { pod });
                }
            }
            Effect::Recreate { generation } => {
                if self.vault_generation < generation {
                    self.fail("S11", "pods are made anew before it is written down");
                }
                let delay = self.micros(5_000, 200_000) + self.api_delay();
                self.after(delay, Event::Sweep { generation });
            }
            Effect::Fail(reason) => {
                self.has_failed = true;
                self.tell(|| format!("the job fails: {reason}"));
                // Its pods go with it.
                self.after(1_000_000, Event::Sweep { generation: u32::MAX });
            }
            Effect::Restarted(waterfall) => self.tell(|| format!("restarted: {waterfall:?}")),
            Effect::StepDown(fence) => {
                self.tell(|| format!("leader {id} steps down for {fence}"));
                self.fence = self.fence.max(fence);
                self.depose(id);
            }
        }
    }

    /// A leader is no more; who was connected notices.
    pub(super) fn depose(&mut self, id: u64) {
        let Some(leader) = self.leaders.remove(&id) else { return };
        for (link, (pod, session)) in leader.links {
            self.drop_link(pod, session, Link { leader: id, number: link });
        }
        if self.leading == Some(id) {
            self.leading = None;
            let delay = self.micros(10_000, 3_000_000);
            self.after(delay, Event::Elect);
        }
    }

    /// A record arrives at the store.
    pub(super) fn store(&mut self, id: u64, record: Record, expected: Expected) {
        let version = record.version();
        if self.vault.away_until > self.now {
            self.after(300_000, Event::Stored { leader: id, version, answer: Answer::Unsure });
            return;
        }
        let newest = self.vault.record().map(Record::version);
        let answer = match self.vault.write(record, expected) {
            Err(fence) => Answer::Refused(fence),
            Ok(()) => {
                if newest.is_some_and(|newest| newest > version) {
                    self.note(Fact::Overruled);
                }
                self.written(id, &record);
                // Now and then the answer is lost.
                let is_lost = !self.is_calm() && self.chance.percent(3);
                if is_lost { Answer::Unsure } else { Answer::Written }
            }
        };
        let delay = self.micros(200, 20_000);
        self.after(delay, Event::Stored { leader: id, version, answer });
    }

    fn written(&mut self, id: u64, record: &Record) {
        self.tell(|| format!("leader {id} writes {record:?}"));
        let before = self.last_written.replace(*record);
        let is_release = record.phase.is_running();
        let is_failure = matches!(record.phase, Phase::Failed(_));
        self.note(Fact::Written(Written {
            generation: record.generation,
            epoch: record.epoch,
            slots: record.slots,
            is_suspended: record.phase == Phase::Suspended,
            is_release,
            is_success: record.phase == Phase::Succeeding,
            is_failure,
            counted: record.restarts.counted,
        }));
        let is_new = before.is_none_or(|it| (it.epoch, it.phase) != (record.epoch, record.phase));
        if is_release && is_new {
            self.outcome.releases += 1;
            self.late_releases += u32::from(self.is_calm());
        }
        let is_idle = !is_new && record.phase == Phase::Running && self.is_calm();
        self.idle_writes += u32::from(is_idle);
        if self.idle_writes > 9 {
            self.fail("L4", "the leaders of a running gang write and write");
        }
        if record.generation > self.vault_generation {
            self.vault_generation = record.generation;
            self.done.clear();
            let delay = self.micros(5_000, 200_000) + self.api_delay();
            self.after(delay, Event::Sweep { generation: record.generation });
        }
        match record.phase {
            Phase::Suspended => {
                let delay = self.micros(5_000, 200_000);
                self.after(delay, Event::Sweep { generation: record.generation });
            }
            Phase::Surrendered(_) if is_new => {
                let delay = self.micros(100_000, 2_000_000);
                self.after(delay, Event::Policy);
            }
            Phase::Forming | Phase::Recreating if is_new => {
                (0..self.terms.slots).for_each(|slot| self.fill(slot));
            }
            Phase::Stopping if is_new && !self.is_calm() => self.spring(),
            Phase::Forming
            | Phase::Running
            | Phase::Stopping
            | Phase::Recreating
            | Phase::Surrendered(_)
            | Phase::Succeeding
            | Phase::Failed(_) => {}
        }
    }

    pub(super) fn stored(&mut self, id: u64, version: (u64, u64), answer: Answer) {
        self.leader(id, |machine, now| match answer {
            Answer::Written => machine.committed(version, now),
            Answer::Unsure => machine.not_committed(version, now),
            Answer::Refused(fence) => machine.refused(fence),
        });
    }

    /// Over connections it reaches who is connected; over a bus, whoever listens.
    fn broadcast(&mut self, id: u64, order: Order) {
        if self.is_lossy {
            let lives: Vec<(u64, u64)> = self
                .pods
                .iter()
                .filter_map(|(pod, it)| it.life.as_ref().map(|life| (*pod, life.session)))
                .collect();
            for (pod, session) in lives {
                let link = Link { leader: id, number: session };
                self.travel(pod, link, Event::ToAgent { pod, session, link, order });
            }
            return;
        }
        let links: Vec<u64> =
            self.leaders.get(&id).map(|it| it.links.keys().copied().collect()).unwrap_or_default();
        links.into_iter().for_each(|link| self.send_order(id, link, order));
    }

    /// A bus keeps the last thing that was told, for those who were not listening.
    pub(super) fn remind(&mut self, id: u64) {
        if let Some(leader) = self.leaders.get(&id) {
            if let Some(order) = leader.told {
                self.broadcast(id, order);
            }
            self.after(2_000_000, Event::Remind { leader: id });
        }
    }

    fn send_order(&mut self, id: u64, link: u64, order: Order) {
        let Some(leader) = self.leaders.get(&id) else { return };
        let Some((pod, session)) = leader.links.get(&link).copied() else { return };
        let link = Link { leader: id, number: link };
        self.travel(pod, link, Event::ToAgent { pod, session, link, order });
    }

    fn close(&mut self, id: u64, number: u64) {
        let Some(leader) = self.leaders.get_mut(&id) else { return };
        if let Some((pod, session)) = leader.links.remove(&number) {
            self.drop_link(pod, session, Link { leader: id, number });
        }
    }

    /// Tells every leader of a pod, in order, some time later.
    pub(super) fn tell_leaders_of_pod(&mut self, slot: u32, pod: u64, news: PodNews) {
        let leaders: Vec<u64> = self.leaders.keys().copied().collect();
        leaders.into_iter().for_each(|id| self.news(id, slot, pod, news));
    }

    fn news(&mut self, leader: u64, slot: u32, pod: u64, news: PodNews) {
        if self.is_unseen(slot) {
            return;
        }
        let delay = self.micros(500, 100_000) + self.api_delay();
        let now = self.now;
        let Some(found) = self.leaders.get_mut(&leader) else { return };
        found.news_until = (found.news_until + 1).max(now + delay);
        let at = found.news_until;
        self.at(at, Event::News { leader, slot, pod, news });
    }

    pub(super) fn heard_news(&mut self, id: u64, slot: u32, pod: u64, news: PodNews) {
        self.leader(id, |machine, now| match news {
            PodNews::Seen => machine.pod_seen(slot, pod, now),
            PodNews::Ending => machine.pod_ending(slot, pod, now),
            PodNews::Gone { completed } => machine.pod_gone(slot, pod, completed, now),
            PodNews::AllKnown => machine.pods_known(now),
        });
    }
}
