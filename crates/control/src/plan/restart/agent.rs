//! The end around a worker: does what the gang does, and tells how it goes.
//!
//! An agent disturbs a worker only when it is ordered to a later epoch, or its part is over.
//! Without an orchestrator it does nothing: a healthy worker runs on, a failed one stays down.

mod process;

use std::time::Duration;

use super::{Cause, Duty, Held, Moment, Order, Rank, Report, Restarts, Worker};
use process::{Ending, Process, Stop};

/// Which place of which gang an agent has. See [`Report`] for the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its place in the gang.
    pub slot: u32,
    /// Its pod.
    pub pod: u64,
    /// Its own life.
    pub session: u64,
    /// The generation its pod was made for.
    pub generation: u32,
}

/// What the shell of an agent has to do. Doing it twice is harmless, but for `Spawn`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentEffect {
    /// Start the worker; then [`Agent::spawned`] or [`Agent::not_spawned`].
    Spawn {
        /// For this epoch.
        epoch: u32,
        /// After this many restarts.
        restarts: Restarts,
    },
    /// Ask the worker and all it has started to end.
    Terminate,
    /// End all that is left of the worker, at once; then [`Agent::gone`].
    Kill,
    /// Send this, if there is somebody to send it to. It replaces what was not sent yet.
    Send(Report),
    /// End the agent with this code.
    Exit(i32),
}

/// How often an agent says where it is when nothing happens: it is also the sign that it is there.
const STEADY: Duration = Duration::from_secs(10);
/// The same while it waits for somebody, which is what a lost message would look like.
const WAITING: Duration = Duration::from_secs(2);
/// How long an order that is being carried out may go unanswered: most are done by then, and one
/// answer is sent instead of two.
const ANSWER_WITHIN: Duration = Duration::from_millis(100);
/// How long a killed worker may take to vanish before it counts as stuck.
const VANISH_WITHIN: Duration = Duration::from_secs(10);
/// The code of an agent that leaves without an ending of its worker's: as if ended by SIGTERM.
const ENDED: i32 = 143;

/// The agent of one worker.
#[derive(Clone, Debug)]
pub struct Agent {
    identity: Identity,
    grace: Duration,
    fence: u64,
    held: Option<Held>,
    /// The leader that sent this agent away, if one has.
    retired_by: u64,
    restarts: Restarts,
    /// Whether a success is shared by the gang, as the last order said.
    is_rejoining: bool,
    process: Process,
    /// How the last worker ended by itself; `None` once a later epoch was ordered.
    ended: Option<(u32, Ending)>,
    is_leaving: bool,
    has_exited: bool,
    sequence: u64,
    report_at: Moment,
    effects: Vec<AgentEffect>,
}

impl Agent {
    /// An agent that has just been started, and gives its worker `grace` to end.
    pub const fn new(identity: Identity, grace: Duration, now: Moment) -> Self {
        Self {
            identity,
            grace,
            fence: 0,
            held: None,
            retired_by: 0,
            restarts: Restarts { total: 0, counted: 0 },
            is_rejoining: true,
            process: Process::None,
            ended: None,
            is_leaving: false,
            has_exited: false,
            sequence: 0,
            report_at: now,
            effects: Vec::new(),
        }
    }

    /// What is to be done now, in order.
    pub fn effects(&mut self) -> impl Iterator<Item = AgentEffect> + use<'_> {
        self.effects.drain(..)
    }

    /// When [`Agent::tick`] has something to do.
    pub fn deadline(&self) -> Moment {
        let process = match &self.process {
            Process::Stopping(stop) => stop.deadline(),
            Process::None | Process::Starting(_) | Process::Alive(_) => None,
        };
        process.map_or(self.report_at, |at| at.min(self.report_at))
    }

    /// An orchestrator is there, perhaps another one than before: it hears where this agent is.
    pub fn connected(&mut self, now: Moment) {
        self.report(now);
    }

    /// An order arrived.
    pub fn ordered(&mut self, order: &Order, now: Moment) {
        if order.fence < self.fence {
            return;
        }
        self.fence = order.fence;
        self.restarts = self.restarts.max(order.restarts);
        self.is_rejoining = order.is_rejoining;
        self.take(order);
        if self.settle(now) {
            self.report(now);
        } else {
            self.report_at = self.report_at.min(now + ANSWER_WITHIN);
        }
    }

    /// The worker was started.
    pub fn spawned(&mut self, now: Moment) {
        let Process::Starting(epoch) = self.process else { return };
        self.process = Process::Alive(epoch);
        self.settle(now);
        self.report(now);
    }

    /// The worker could not be started.
    pub fn not_spawned(&mut self, why: String, now: Moment) {
        let Process::Starting(epoch) = self.process else { return };
        self.process = Process::None;
        self.ended = Some((epoch, Ending::Badly(Cause::NotStarted(why))));
        self.settle(now);
        self.report(now);
    }

    /// The worker's main process ended, with `failure` unless it ended well. What it has started
    /// and left behind is ended too, as it is when the first process of a container ends.
    pub fn exited(&mut self, failure: Option<Cause>, now: Moment) {
        match self.process {
            Process::Alive(epoch) => {
                self.ended = Some((epoch, failure.map_or(Ending::Well, Ending::Badly)));
                self.kill(now);
                self.report(now);
            }
            // It was asked to: how it ended says nothing.
            Process::Stopping(_) => self.kill(now),
            Process::None | Process::Starting(_) => {}
        }
    }

    /// The worker has shown no sign of life for too long.
    pub fn hung(&mut self, now: Moment) {
        let Process::Alive(epoch) = self.process else { return };
        self.ended = Some((epoch, Ending::Badly(Cause::Hung)));
        self.kill(now);
        self.report(now);
    }

    /// Nothing is left of the worker.
    pub fn gone(&mut self, now: Moment) {
        if matches!(self.process, Process::Stopping(_)) {
            self.process = Process::None;
            self.settle(now);
            self.report(now);
        }
    }

    /// The agent itself is asked to end, as a container is when its pod is deleted.
    pub fn terminated(&mut self, now: Moment) {
        self.is_leaving = true;
        self.settle(now);
        self.report(now);
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Moment) {
        if let Process::Stopping(stop) = &mut self.process
            && stop.deadline().is_some_and(|at| at <= now)
        {
            let was_killed = stop.is_killed();
            stop.kill(now + VANISH_WITHIN);
            self.effects.push(AgentEffect::Kill);
            if was_killed {
                self.report(now);
            }
        }
        if self.report_at <= now {
            self.report(now);
        }
    }

    /// Takes an order that comes from a leader worth listening to.
    fn take(&mut self, order: &Order) {
        let Order { rank, by, .. } = *order;
        match self.held {
            Some(held) if self.is_called_back(held.rank, order) => {
                self.held = None;
                self.take(order);
            }
            Some(held) if held.rank > rank || held.rank.duty.is_personal() => {}
            Some(held) if held.rank == rank => {
                // The same once more. Only a promise to wait is given anew.
                if rank.duty == Duty::Hold {
                    self.held = Some(Held { rank, by });
                }
            }
            held => {
                let waits_for_it = held.is_some_and(|held| {
                    let waited = Rank { duty: Duty::Hold, ..rank };
                    held.rank == waited && held.by == by
                });
                self.held = if rank.duty == Duty::Run && !waits_for_it {
                    // Released without having been waited for: this agent was not there, so it
                    // must not run. It waits, and no leader takes that for the promise.
                    Some(Held { rank: Rank { duty: Duty::Hold, ..rank }, by: 0 })
                } else {
                    Some(Held { rank, by })
                };
                if rank.duty == Duty::Retire {
                    self.retired_by = order.fence;
                }
            }
        }
    }

    /// Whether an earlier leader sent the agent away and a later one has a place for it: the
    /// earlier one had not heard of the place yet, or did not know that it was replaced.
    fn is_called_back(&self, held: Rank, order: &Order) -> bool {
        held.duty == Duty::Retire
            && order.fence > self.retired_by
            && !order.rank.duty.is_personal()
            && (order.rank.generation, order.rank.epoch) >= (held.generation, held.epoch)
    }

    /// Makes the worker do what the agent holds. Whether nothing is under way any more.
    fn settle(&mut self, now: Moment) -> bool {
        if self.has_exited {
            return true;
        }
        let held = self.held.map(|held| held.rank);
        let is_leaving = self.is_leaving || held.is_some_and(|rank| rank.duty == Duty::Surrender);
        match self.process {
            Process::Starting(_) => false,
            Process::Stopping(_) => false,
            Process::Alive(epoch) => {
                let is_late = held.is_some_and(|rank| rank.epoch > epoch || rank.duty.is_over());
                if is_late || is_leaving {
                    self.stop(now);
                }
                !is_late && !is_leaving
            }
            Process::None => {
                let is_leaving = is_leaving || self.has_succeeded_alone();
                let Some(rank) = held else {
                    self.exit_if(is_leaving);
                    return true;
                };
                if self.ended.as_ref().is_some_and(|(epoch, _)| *epoch < rank.epoch) && !is_leaving
                {
                    self.ended = None;
                }
                if is_leaving || rank.duty == Duty::Finish {
                    self.exit_if(true);
                } else if rank.duty == Duty::Run && self.ended.is_none() {
                    self.process = Process::Starting(rank.epoch);
                    let restarts = self.restarts;
                    self.effects.push(AgentEffect::Spawn { epoch: rank.epoch, restarts });
                    return false;
                }
                true
            }
        }
    }

    /// Whether the worker has succeeded, and need not wait for the others. It takes part in nothing
    /// any more, also if they are asked to by the time that nothing is left of it.
    fn has_succeeded_alone(&self) -> bool {
        !self.is_rejoining && matches!(self.ended, Some((_, Ending::Well)))
    }

    fn stop(&mut self, now: Moment) {
        // A pod that is deleted has its own grace, and whoever deletes it keeps the time.
        let kill_at = (!self.is_leaving).then(|| now + self.grace);
        self.process = Process::Stopping(Stop::asked(kill_at));
        self.effects.push(AgentEffect::Terminate);
    }

    fn kill(&mut self, now: Moment) {
        self.process = Process::Stopping(Stop::killed(now + VANISH_WITHIN));
        self.effects.push(AgentEffect::Kill);
    }

    fn exit_if(&mut self, is_leaving: bool) {
        if !is_leaving {
            return;
        }
        self.has_exited = true;
        let is_finished = self.has_succeeded_alone()
            || self.held.is_some_and(|held| held.rank.duty == Duty::Finish);
        let code = match &self.ended {
            Some((_, Ending::Badly(cause))) => cause.code().unwrap_or(ENDED),
            // A success that the gang does not share yet is none: the index would count as done,
            // and could never take part again.
            Some((_, Ending::Well)) if is_finished => 0,
            None if is_finished && !self.is_leaving => 0,
            Some((_, Ending::Well)) | None => ENDED,
        };
        self.effects.push(AgentEffect::Exit(code));
    }

    fn worker(&self) -> Worker {
        if self.is_leaving {
            return Worker::Leaving;
        }
        let epoch = self.held.map_or(0, |held| held.rank.epoch);
        if let Some((ended, ending)) = &self.ended
            && *ended >= epoch
        {
            return match ending {
                Ending::Well => Worker::Succeeded(*ended),
                Ending::Badly(cause) => Worker::Failed(*ended, cause.clone()),
            };
        }
        match &self.process {
            Process::None | Process::Starting(_) => Worker::Idle,
            Process::Alive(epoch) => Worker::Running(*epoch),
            Process::Stopping(stop) if stop.is_stuck() => Worker::Stuck,
            Process::Stopping(_) => Worker::Stopping,
        }
    }

    fn report(&mut self, now: Moment) {
        if self.has_exited {
            return;
        }
        let worker = self.worker();
        let is_steady = matches!(worker, Worker::Running(_) | Worker::Succeeded(_));
        self.report_at = now + if is_steady { STEADY } else { WAITING };
        self.sequence += 1;
        let Identity { slot, pod, session, generation } = self.identity;
        self.effects.push(AgentEffect::Send(Report {
            slot,
            pod,
            session,
            sequence: self.sequence,
            generation,
            fence: self.fence,
            held: self.held,
            restarts: self.restarts,
            worker,
        }));
    }
}
