//! Messages and connections: over connections nothing is lost or overtaken until they break, over a
//! bus anything may be.

use lockstep_control::plan::restart::{Duty, Report, Worker};

use super::check::Fact;
use super::events::{Event, Link};
use super::world::World;

impl World {
    /// An agent looks for a leader.
    pub(super) fn dial(&mut self, pod: u64, session: u64, tries: u32) {
        let most = (100_000_u64 << tries.min(6)).min(5_000_000);
        let delay = self.micros(500, most);
        self.after(delay, Event::Dial { pod, session, tries });
    }

    pub(super) fn dialled(&mut self, pod: u64, session: u64, tries: u32) {
        let is_cut = self.pods.get(&pod).is_some_and(|pod| pod.cut_until > self.now);
        if self.life(pod, session).is_none_or(|life| life.link.is_some()) {
            return;
        }
        // Now and then it finds one that only thinks it leads.
        let stale = self.leaders.keys().copied().find(|id| Some(*id) != self.leading);
        let is_stale = stale.is_some() && self.chance.percent(30);
        let Some(leader) = (if is_stale { stale } else { self.leading }).filter(|_| !is_cut) else {
            self.dial(pod, session, tries + 1);
            return;
        };
        let link = Link { leader, number: self.next_id() };
        if let Some(found) = self.leaders.get_mut(&leader) {
            found.links.insert(link.number, (pod, session));
        }
        if let Some(life) = self.life(pod, session) {
            life.link = Some(link);
        }
        self.agent(pod, |agent, now| agent.connected(now));
    }

    pub(super) fn send_report(&mut self, number: u64, report: Report) {
        let Some(pod) = self.pods.get(&number) else { return };
        let Some(life) = &pod.life else { return };
        if let (Worker::Idle, Some(held)) = (&report.worker, report.held)
            && held.rank.duty == Duty::Hold
            && held.by > 0
        {
            let epoch = held.rank.epoch;
            self.checks.note(Fact::Promised { slot: report.slot, pod: number, epoch });
        }
        let link = if self.is_lossy {
            // Whoever leads hears it, under one connection for each life of an agent.
            self.leading.map(|leader| Link { leader, number: report.session })
        } else {
            life.link
        };
        if let Some(link) = link {
            self.travel(number, link, Event::ToLeader { link, report });
        }
    }

    /// Sends something to or from a pod.
    pub(super) fn travel(&mut self, pod: u64, link: Link, event: Event) {
        let is_up = matches!(event, Event::ToLeader { .. });
        if self.pods.get(&pod).is_none_or(|pod| pod.cut_until > self.now) {
            return;
        }
        if self.is_lossy {
            let is_calm = self.is_calm();
            if !is_calm && self.chance.percent(6) {
                return;
            }
            if !is_calm && self.chance.percent(4) {
                let delay = self.micros(100, 2_000_000);
                self.after(delay, event.clone());
            }
            let delay = self.micros(100, 200_000);
            self.after(delay, event);
            return;
        }
        let delay = self.micros(100, 5_000);
        let arrival = self.arrivals.entry((link, is_up)).or_default();
        *arrival = (*arrival + 1).max(self.now + delay);
        let at = *arrival;
        self.at(at, event);
    }

    /// Whether an order still finds its agent.
    pub(super) fn arrives(&mut self, pod: u64, session: u64, link: Link) -> bool {
        if self.pods.get(&pod).is_none_or(|pod| pod.cut_until > self.now) {
            return false;
        }
        let is_lossy = self.is_lossy;
        self.life(pod, session).is_some_and(|life| is_lossy || life.link == Some(link))
    }

    /// The connection of an agent that is no more: its leader notices.
    pub(super) fn hang_up(&mut self, pod: u64, link: Option<Link>) {
        let Some(slot) = self.pods.get(&pod).map(|pod| pod.slot) else { return };
        if let Some(link) = link {
            let delay = self.micros(100, 50_000);
            self.after(delay, Event::LinkLost { link, slot });
        }
    }

    /// The connection of an agent to a leader that is no more: the agent looks for another.
    pub(super) fn drop_link(&mut self, pod: u64, session: u64, link: Link) {
        if self.is_lossy {
            return;
        }
        if let Some(life) = self.life(pod, session)
            && life.link == Some(link)
        {
            life.link = None;
            self.dial(pod, session, 0);
        }
    }

    /// A node is cut off. Both ends of its connection notice after a while.
    pub(super) fn cut(&mut self, number: u64, until: u64) {
        let Some(pod) = self.pods.get_mut(&number) else { return };
        pod.cut_until = pod.cut_until.max(until);
        let Some(life) = pod.life.as_mut() else { return };
        let (link, session) = (life.link.take(), life.session);
        self.hang_up(number, link);
        if !self.is_lossy {
            self.dial(number, session, 0);
        }
    }
}
