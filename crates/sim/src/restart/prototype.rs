//! The prototype of KEP-876, as a model: what the checkers must object to.
//!
//! Agents and orchestrators look once a second; a database holds a state and two counters for each
//! worker, and passes messages on that nobody keeps. The kubelet restarts what fails at once, so
//! there is no barrier; the lock that is to keep leaders apart is not looked at when they write;
//! and two of the states have no deadline. The proposal describes all of this; here it runs, to
//! show that a world which breaks the promises is seen to.

use super::check::{Checks, Fact, Rules, Written};
use crate::chance::Chance;

/// How long a step of the model is, in milliseconds.
const STEP: u64 = 50;
/// How often everybody looks.
const LOOK: u64 = 1000;
/// How long a lock lasts.
const LOCK: u64 = 30_000;
/// How long the kubelet takes to start a container again.
const START: u64 = 200;
/// When a model ends.
const END: u64 = 1_200_000;

/// What the database says of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Creating,
    Running,
    Restarting,
    Recreating,
}

/// What the database holds.
#[derive(Clone, Debug)]
struct Database {
    state: Option<(State, u64, u32)>,
    /// Restarts of each worker, as its agent has counted them.
    counts: Vec<Option<u32>>,
    /// Who holds the lock, and until when.
    lock: Option<(usize, u64)>,
    /// Who last acquired it.
    leader: usize,
}

#[derive(Clone, Debug)]
struct Worker {
    /// How often its container was started; it runs if `runs`.
    starts: u32,
    runs: bool,
    /// When the kubelet starts it again.
    start_at: Option<u64>,
    backoff: u64,
    /// What its agent has seen, and what it is to reach.
    seen: u32,
    want: Option<u32>,
    /// When a stop that the agent has asked for takes effect.
    stop_at: Option<(u64, u32)>,
    looks_at: u64,
}

#[derive(Clone, Debug)]
struct Orchestrator {
    looks_at: u64,
    paused_until: u64,
    /// What it has decided, before a pause, and writes after it.
    decided: Option<(State, u32)>,
}

/// Runs the model of one seed, and gives the invariants that it breaks.
pub fn run(seed: u64) -> Vec<&'static str> {
    let mut model = Model::new(seed);
    while model.now < END {
        model.step();
        model.now += STEP;
    }
    model.end();
    model.checks.violations().iter().map(|(invariant, _)| *invariant).collect()
}

struct Model {
    now: u64,
    chance: Chance,
    checks: Checks,
    database: Database,
    workers: Vec<Worker>,
    orchestrators: Vec<Orchestrator>,
    failures: Vec<u64>,
    pauses: Vec<u64>,
    wipes: Vec<u64>,
    /// Whether the next leader that decides something stands still over it.
    pauses_next: bool,
}

impl Model {
    fn new(seed: u64) -> Self {
        let mut chance = Chance::new(seed, "prototype");
        let count = 3 + chance.below(3);
        let times = |chance: &mut Chance, most: u32| {
            let count = chance.below(most + 1);
            (0..count).map(|_| u64::from(chance.below(400_000)) + 5_000).collect::<Vec<u64>>()
        };
        let workers = (0..count)
            .map(|_| Worker {
                starts: 0,
                runs: true,
                start_at: None,
                backoff: 0,
                seen: 0,
                want: None,
                stop_at: None,
                looks_at: u64::from(chance.below(1000)),
            })
            .collect();
        let orchestrator = |looks_at| Orchestrator { looks_at, paused_until: 0, decided: None };
        let rules = Rules { max_restarts: 1000, is_rejoining: true };
        let mut checks = Checks::new(rules);
        for slot in 0..count {
            checks.note(Fact::Started { slot, pod: u64::from(slot), epoch: 0 });
        }
        Self {
            now: 0,
            // One failure leads to others: each comes with another soon after.
            failures: times(&mut chance, 6)
                .into_iter()
                .flat_map(|at| [at, at + u64::from(chance.below(9_000))])
                .collect(),
            pauses: times(&mut chance, 2),
            wipes: times(&mut chance, 1),
            pauses_next: false,
            orchestrators: vec![orchestrator(100), orchestrator(600)],
            database: Database {
                state: None,
                counts: vec![Some(0); count as usize],
                lock: None,
                leader: 0,
            },
            workers,
            checks,
            chance,
        }
    }

    fn step(&mut self) {
        let now = self.now;
        let is_now = |at: &u64| (now..now + STEP).contains(at);
        if self.failures.iter().any(is_now) {
            let at = self.chance.below(u32::try_from(self.workers.len()).unwrap_or(1));
            self.ends(at as usize);
        }
        if self.pauses.iter().any(is_now) {
            self.pauses_next = true;
        }
        if self.wipes.iter().any(is_now) {
            self.database.state = None;
            self.database.counts.fill(None);
            self.database.lock = None;
        }
        for at in 0..self.workers.len() {
            self.worker(at);
        }
        for at in 0..self.orchestrators.len() {
            self.orchestrator(at);
        }
    }

    /// A worker's container ends, and the kubelet will start it again.
    fn ends(&mut self, at: usize) {
        let worker = &mut self.workers[at];
        if !worker.runs {
            return;
        }
        worker.runs = false;
        worker.start_at = Some(self.now + worker.backoff + START);
        worker.backoff = (worker.backoff * 2).clamp(10_000, 300_000);
        let (slot, epoch) = (u32::try_from(at).unwrap_or(0), worker.starts);
        self.checks.note(Fact::Ended { pod: u64::from(slot), epoch });
        self.checks.note(Fact::Lost { slot, epoch });
    }

    fn worker(&mut self, at: usize) {
        let now = self.now;
        let slot = u32::try_from(at).unwrap_or(0);
        if self.workers[at].start_at.is_some_and(|start_at| start_at <= now) {
            let worker = &mut self.workers[at];
            worker.start_at = None;
            worker.runs = true;
            worker.starts += 1;
            let epoch = worker.starts;
            self.checks.note(Fact::Started { slot, pod: u64::from(slot), epoch });
        }
        if let Some((_, towards)) = self.workers[at].stop_at.take_if(|(stop_at, _)| *stop_at <= now)
            && self.workers[at].runs
        {
            // It hits whatever runs by now.
            let epoch = self.workers[at].starts;
            self.checks.note(Fact::Stopped { slot, epoch, towards: Some(towards) });
            self.ends(at);
        }
        if self.workers[at].looks_at > now {
            return;
        }
        self.workers[at].looks_at = now + LOOK;
        if !self.workers[at].runs {
            return;
        }
        let delay = u64::from(self.chance.below(600));
        let worker = &mut self.workers[at];
        if worker.starts == worker.seen + 1
            && let Some(count) = &mut self.database.counts[at]
        {
            worker.seen += 1;
            *count = worker.seen;
        }
        if worker.want == Some(worker.seen) {
            worker.want = None;
        } else if worker.want == Some(worker.seen + 1) {
            worker.stop_at = Some((now + delay, worker.seen + 1));
            worker.want = None;
        }
    }

    fn orchestrator(&mut self, at: usize) {
        let now = self.now;
        if self.orchestrators[at].paused_until > now {
            return;
        }
        if let Some((state, desired)) = self.orchestrators[at].decided.take() {
            self.write(at, state, desired);
        }
        if self.orchestrators[at].looks_at > now {
            return;
        }
        self.orchestrators[at].looks_at = now + LOOK;
        match self.database.lock.filter(|(_, until)| *until > now) {
            Some((owner, _)) if owner != at => return,
            Some(_) => {}
            None => self.database.leader = at,
        }
        self.database.lock = Some((at, now + LOCK));
        if let Some(decided) = self.decide() {
            self.orchestrators[at].decided = Some(decided);
            // Between the decision and the write, as only a fence could tell.
            if std::mem::take(&mut self.pauses_next) {
                self.orchestrators[at].paused_until = now + 40_000;
            }
        }
    }

    /// The table of the prototype, without the recreation of pods.
    fn decide(&self) -> Option<(State, u32)> {
        let Some((state, since, desired)) = self.database.state else {
            return Some((State::Creating, 0));
        };
        let counts: Vec<u32> = self.database.counts.iter().flatten().copied().collect();
        let all = |wanted: u32| {
            counts.len() == self.workers.len() && counts.iter().all(|count| *count == wanted)
        };
        match state {
            State::Creating | State::Recreating if all(0) => Some((State::Running, 0)),
            State::Creating | State::Recreating => None,
            State::Running if counts.contains(&(desired + 1)) => {
                Some((State::Restarting, desired + 1))
            }
            State::Restarting if all(desired) => Some((State::Running, desired)),
            State::Restarting if self.now - since > 60_000 => Some((State::Recreating, 0)),
            State::Running | State::Restarting => None,
        }
    }

    fn write(&mut self, at: usize, state: State, desired: u32) {
        if at != self.database.leader {
            self.checks.note(Fact::Overruled);
        }
        self.database.state = Some((state, self.now, desired));
        self.checks.note(Fact::Written(Written {
            generation: 1,
            epoch: desired,
            slots: u32::try_from(self.workers.len()).unwrap_or(0),
            is_suspended: false,
            is_release: state == State::Running,
            is_success: false,
            is_failure: false,
            counted: 0,
        }));
        if state == State::Restarting {
            for worker in &mut self.workers {
                // Who does not listen does not hear it.
                if self.chance.percent(98) {
                    worker.want = Some(desired);
                }
            }
        }
    }

    /// Long after the last thing went wrong: is there a state that nothing will end?
    fn end(&mut self) {
        let is_stuck = self.database.state.is_some_and(|(state, since, _)| {
            matches!(state, State::Creating | State::Recreating) && self.now - since > 600_000
        });
        if is_stuck {
            self.checks.note(Fact::Silent);
        }
    }
}
