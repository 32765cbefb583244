//! Many gangs that fail at once, as when a switch is lost (F41).
//!
//! The machines of two gangs share nothing: each has its own record, its own agents and its own
//! deadlines. What they share is the process that leads them, with its store, and the time that it
//! has: it attends to one thing after the other. So a crowd is some worlds on one clock, with one
//! desk at which everything arrives that reaches any of their leaders. One of the gangs cannot come
//! to its end for minutes; that must be no concern of the others.

use std::cmp::Reverse;
use std::collections::VecDeque;

use lockstep_control::plan::restart::Phase;

use super::events::Event;
use super::trouble::Trouble;
use super::world::{Nature, World};
use super::{Broken, Outcome, Setup};
use crate::chance::Chance;

/// When all gangs lose a worker: by then all of them run.
const LOST_AT: (i64, i64) = (30_000_000, 60_000_000);
/// How long a gang may take until it is released again. There is time in it for another leader to
/// be found, and for a store that comes back.
const PROMPT: u64 = 30_000_000;
/// How long their store is away, if it is.
const STORE_AWAY: u64 = 3_000_000;

/// The process that leads all gangs: attends to one thing at a time, in the order in which they
/// came.
#[derive(Default)]
struct Desk {
    waiting: VecDeque<(usize, Event)>,
    free_at: u64,
    /// The gang that keeps all others waiting, where one may.
    owner: Option<usize>,
}

/// Runs one crowd to its end.
pub(super) fn run(setup: &Setup) -> Outcome {
    let mut crowd = Crowd::new(setup);
    while crowd.step() {}
    crowd.finish()
}

struct Crowd {
    gangs: Vec<Gang>,
    chance: Chance,
    desk: Desk,
    broken: Option<Broken>,
    now: u64,
    /// What happens to all of them, and when; the next one last.
    common: Vec<(u64, Common)>,
    violation: Option<String>,
}

/// One of them, and whether it is at its end.
struct Gang {
    world: World,
    is_done: bool,
}

/// What happens to all gangs at once.
#[derive(Clone, Copy, Debug)]
enum Common {
    /// Each loses a worker.
    Lost,
    /// The process that leads them, or what it works with, has trouble.
    Trouble(Trouble),
    /// It is looked whether the quiet ones have been released again.
    Prompt,
}

impl Crowd {
    fn new(setup: &Setup) -> Self {
        let mut chance = Chance::new(setup.seed, "crowd");
        let drawn = (0..1 + chance.below(4)).map(|_| Nature::Drawn);
        let natures = [Nature::Slow, Nature::Quiet, Nature::Quiet].into_iter().chain(drawn);
        let gangs = (0..).zip(natures).map(|(number, nature)| {
            let seed = setup.seed.wrapping_mul(16) + number;
            let mut world = World::new(&Setup { seed, broken: None, ..setup.clone() }, nature);
            world.begin(seed);
            Gang { world, is_done: false }
        });
        let gangs: Vec<Gang> = gangs.collect();
        let lost_at = chance.micros(LOST_AT.0, LOST_AT.1).cast_unsigned();
        let mut common = vec![(lost_at, Common::Lost), (lost_at + PROMPT, Common::Prompt)];
        if chance.percent(60) {
            let shared = [Trouble::LeaderDies, Trouble::StoreAway, Trouble::ApiSlow];
            let at = lost_at + chance.micros(0, 1_000_000).cast_unsigned();
            common.push((at, Common::Trouble(chance.pick(&shared))));
        }
        common.sort_by_key(|(at, _)| Reverse(*at));
        let (desk, broken) = (Desk::default(), setup.broken);
        Self { gangs, chance, desk, broken, now: 0, common, violation: None }
    }

    /// Lets the next thing happen. Whether there may be another one.
    fn step(&mut self) -> bool {
        let left = self.gangs.iter().enumerate().filter(|(_, gang)| !gang.is_done);
        let next = left.filter_map(|(number, gang)| Some((gang.world.next_at()?, number))).min();
        let gang_at = next.map_or(u64::MAX, |(at, _)| at);
        let waiting = self.next_waiting();
        let desk_at = waiting.map_or(u64::MAX, |_| self.desk.free_at.max(self.now));
        let is_common = |(at, _): &mut (u64, Common)| *at <= gang_at.min(desk_at);
        if let Some((at, common)) = self.common.pop_if(is_common) {
            self.now = at;
            self.happen(common);
        } else if let Some(at) = waiting.filter(|_| desk_at <= gang_at) {
            self.now = desk_at;
            if let Some((gang, event)) = self.desk.waiting.remove(at) {
                self.gangs[gang].world.now = desk_at;
                self.attend(gang, event);
            }
        } else if let Some((at, gang)) = next {
            self.now = at;
            self.take(gang);
        } else {
            return false;
        }
        self.violation.is_none()
    }

    /// Something happens in one of the worlds: there, or at the desk.
    fn take(&mut self, gang: usize) {
        let Some(event) = self.gangs[gang].world.next() else { return };
        let now = self.gangs[gang].world.now;
        if event.leader().is_none() {
            self.gangs[gang].world.happen(event);
            self.look(gang);
        } else if self.desk.waiting.is_empty() && self.desk.free_at <= now {
            self.attend(gang, event);
        } else {
            self.desk.waiting.push_back((gang, event));
        }
    }

    /// What is attended to next.
    fn next_waiting(&self) -> Option<usize> {
        match self.desk.owner {
            None => (!self.desk.waiting.is_empty()).then_some(0),
            Some(owner) => self.desk.waiting.iter().position(|(gang, _)| *gang == owner),
        }
    }

    fn attend(&mut self, gang: usize, event: Event) {
        if !self.gangs[gang].is_done {
            let world = &mut self.gangs[gang].world;
            world.happen(event);
            self.desk.free_at = world.now + self.chance.micros(20, 200).cast_unsigned();
            self.look(gang);
        }
        if self.broken == Some(Broken::OneByOne) {
            let owner = self.desk.owner.unwrap_or(gang);
            let record = self.gangs[owner].world.last_written;
            let is_restarting = record.is_some_and(|record| record.phase == Phase::Stopping);
            self.desk.owner = is_restarting.then_some(owner);
        }
    }

    fn happen(&mut self, common: Common) {
        let at = self.now;
        for number in 0..self.gangs.len() {
            if self.gangs[number].is_done {
                continue;
            }
            let world = &mut self.gangs[number].world;
            world.now = at;
            match common {
                Common::Lost => {
                    let slot = 1 + world.chance.below(world.terms.slots - 1);
                    world.break_down(slot);
                }
                Common::Trouble(Trouble::StoreAway) => world.vault.away_until = at + STORE_AWAY,
                Common::Trouble(trouble) => world.trouble(trouble),
                Common::Prompt if world.nature == Nature::Quiet && world.outcome.releases < 2 => {
                    let state = world.state();
                    self.violation = Some(format!("F41: gang {number} waits for others: {state}"));
                }
                Common::Prompt => {}
            }
            self.look(number);
        }
    }

    /// Looks whether a gang is at its end, good or bad.
    fn look(&mut self, number: usize) {
        let gang = &mut self.gangs[number];
        gang.is_done = gang.world.is_done();
        if let Some((invariant, what)) = gang.world.checks.violations().first() {
            self.violation = Some(format!("gang {number}: {invariant}: {what}"));
        }
    }

    fn finish(self) -> Outcome {
        let violation = self.violation;
        let mut all = Outcome { violation, is_complete: true, ..Outcome::default() };
        let is_cut_short = all.violation.is_some();
        for (number, gang) in self.gangs.into_iter().enumerate() {
            // What was cut short has no end to be looked at.
            let one = if is_cut_short { gang.world.outcome } else { gang.world.finish() };
            all.events += one.events;
            all.faults += one.faults;
            all.releases += one.releases;
            all.is_complete &= one.is_complete;
            all.is_deleted |= one.is_deleted;
            all.sizes += one.sizes;
            let violation = one.violation.map(|it| format!("gang {number}: {it}"));
            all.violation = all.violation.or(violation);
            all.story.extend(one.story.into_iter().map(|line| format!("gang {number} {line}")));
        }
        all
    }
}
