//! What the node knows of one pod, and how what happens changes it.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::ending::Ending;
use super::probe::{ProbeKind, ProbeMemory, ProbeOutcome};
use super::restart::Delay;
use super::{Event, Options};

/// What the node knows of one pod.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// Its containers, by name. Those not listed have never started. In boxes, as a map makes room
    /// for many at once, and most pods have one.
    pub containers: BTreeMap<String, Box<ContainerMemory>>,
    /// How far the pod's volumes and address are.
    pub setup: Setup,
    /// The pod's address.
    pub pod_ip: Option<String>,
    /// When the node first saw the pod.
    pub started_at: Option<Timestamp>,
    /// Whether the object no longer exists.
    pub is_gone: bool,
    /// What has not been told yet.
    pub(super) events: Vec<Event>,
    /// Why the pod ends, once that is decided for good.
    pub(super) ending: Option<Ending>,
    /// Until when status writes are held back because the status is about to change.
    pub(super) settled_at: Option<Timestamp>,
    /// What was told last of why volumes or address cannot be made.
    told_setup: Option<String>,
    pub(super) is_writing: bool,
    pub(super) is_delete_asked: bool,
    pub(super) is_torn_down: bool,
    pub(super) is_forgotten: bool,
}

/// How far a pod's volumes and address are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Setup {
    /// Nothing has been done.
    #[default]
    Wanted,
    /// A shell is at it.
    Asked,
    /// Containers may start.
    Ready,
    /// It did not work.
    Failed {
        /// Why, for people.
        message: String,
        /// When to try again.
        retry_at: Timestamp,
    },
}

/// What the node knows of one container.
#[derive(Clone, Debug, Default)]
pub struct ContainerMemory {
    /// What its newest instance is doing.
    pub state: State,
    /// Which instance that is: the restart count.
    pub attempt: u32,
    /// How the instance before ended.
    pub last: Option<Exit>,
    /// How the newest instance is being stopped.
    pub stop: Option<Stop>,
    /// Why it cannot be started.
    pub problem: Option<Problem>,
    /// How far its postStart hook is.
    pub post_start: Hook,
    /// Its startup probe.
    pub startup: ProbeMemory,
    /// Its readiness probe.
    pub readiness: ProbeMemory,
    /// Its liveness probe.
    pub liveness: ProbeMemory,
    /// Whether its newest instance was asked to end because the node shut down.
    pub(super) is_interrupted: bool,
    pub(super) delay: Option<Delay>,
    /// The instance whose back-off has been told.
    pub(super) told: Option<u32>,
}

/// What an instance of a container is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// There has been none.
    #[default]
    Never,
    /// A shell is starting it.
    Starting {
        /// How the instance before ended; put back if this one cannot be created.
        before: Option<Exit>,
    },
    /// It runs.
    Running {
        /// Since when.
        since: Timestamp,
    },
    /// It has ended.
    Exited(Exit),
}

/// How an instance of a container ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    /// The exit code; 128 + n after signal n.
    pub code: i32,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Why, in one word: `Completed`, `Error`, `OOMKilled`, `StartError`, `ContainerStatusUnknown`.
    pub reason: String,
    /// What it left to be read: its termination message.
    pub message: String,
    /// When it started, if known.
    pub started_at: Option<Timestamp>,
    /// When it ended, if known.
    pub finished_at: Option<Timestamp>,
}

impl Exit {
    /// The reason of an ordinary end.
    pub fn ordinary_reason(code: i32, is_oom_killed: bool) -> &'static str {
        match (code, is_oom_killed) {
            (_, true) => "OOMKilled",
            (0, false) => "Completed",
            (_, false) => "Error",
        }
    }
}

/// How a container is being stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Why.
    pub why: StopWhy,
    /// When that was decided.
    pub began_at: Timestamp,
    /// How far its preStop hook is.
    pub pre_stop: Hook,
    /// When it was asked to end.
    pub signalled_at: Option<Timestamp>,
    /// When it was killed.
    pub killed_at: Option<Timestamp>,
}

/// Why a container is being stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopWhy {
    /// The pod ends.
    Pod,
    /// Its liveness probe failed.
    Liveness,
    /// Its startup probe failed.
    Startup,
    /// Its postStart hook failed.
    PostStart,
}

/// A hook of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookKind {
    /// Runs right after the container has started.
    PostStart,
    /// Runs before the container is asked to end.
    PreStop,
}

/// How far a hook is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hook {
    /// Not asked for.
    #[default]
    Idle,
    /// A shell runs it.
    Running,
    /// It has ended.
    Done,
    /// It has ended with an error.
    Failed,
}

/// Why a container waits rather than runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The reason shown: `CreateContainerConfigError`, `CreateContainerError`, `RunContainerError`.
    pub reason: &'static str,
    /// What is wrong and what would be right.
    pub message: String,
    /// When to try again; by the back-off of restarts when absent.
    pub retry_at: Option<Timestamp>,
}

/// Why a container could not be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartFailure {
    /// Its configuration cannot be resolved: a missing key, no command.
    Config(String),
    /// The node could not make what the process needs.
    Create(String),
    /// The process could not be executed; it counts as an instance that ended with `code`.
    Run {
        /// 126, 127 or 128.
        code: i32,
        /// Why.
        message: String,
    },
}

impl Memory {
    /// What is known of `container`, to be changed.
    pub(super) fn container(&mut self, name: &str) -> &mut ContainerMemory {
        if !self.containers.contains_key(name) {
            self.containers.insert(name.to_owned(), Box::default());
        }
        self.containers.get_mut(name).expect("it was inserted above if it was not there")
    }

    /// Volumes and address are there.
    pub fn set_up(&mut self, pod_ip: String) {
        self.setup = Setup::Ready;
        self.pod_ip = Some(pod_ip);
    }

    /// Volumes or address could not be made; `volume` names the one at fault.
    pub fn set_up_failed(&mut self, message: String, options: &Options, now: Timestamp) {
        if self.told_setup.as_ref() != Some(&message) {
            self.warn("FailedMount", message.clone(), None);
            self.told_setup = Some(message.clone());
        }
        self.setup = Setup::Failed { message, retry_at: after(now, options.retry) };
    }

    /// An instance of a container runs.
    pub fn started(&mut self, name: &str, attempt: u32, at: Timestamp) {
        let container = self.container(name);
        let State::Starting { before } = &mut container.state else { return };
        if container.attempt != attempt {
            return;
        }
        container.last = before.take().or_else(|| container.last.take());
        container.state = State::Running { since: at };
        container.problem = None;
        container.post_start = Hook::Idle;
        container.stop = None;
        container.is_interrupted = false;
        container.startup = ProbeMemory::default();
        container.readiness = ProbeMemory::default();
        container.liveness = ProbeMemory::default();
        self.normal("Created", "Container created".to_owned(), Some(name));
        self.normal("Started", "Container started".to_owned(), Some(name));
    }

    /// An instance of a container could not be started.
    pub fn start_failed(
        &mut self,
        name: &str,
        attempt: u32,
        failure: StartFailure,
        options: &Options,
        now: Timestamp,
    ) {
        let container = self.container(name);
        let State::Starting { before } = &mut container.state else { return };
        if container.attempt != attempt {
            return;
        }
        let before = before.take();
        let retry_at = Some(after(now, options.retry));
        let problem = match failure {
            StartFailure::Config(message) => {
                Problem { reason: "CreateContainerConfigError", message, retry_at }
            }
            StartFailure::Create(message) => {
                Problem { reason: "CreateContainerError", message, retry_at }
            }
            StartFailure::Run { code, message } => {
                container.last = before.or_else(|| container.last.take());
                container.state = State::Exited(Exit {
                    code,
                    reason: "StartError".to_owned(),
                    message: message.clone(),
                    started_at: Some(now),
                    finished_at: Some(now),
                    ..Exit::default()
                });
                // A container that cannot be executed has been created all the same.
                self.normal("Created", "Container created".to_owned(), Some(name));
                self.problem(
                    name,
                    Problem { reason: "RunContainerError", message, retry_at: None },
                );
                return;
            }
        };
        match before {
            Some(exit) => {
                container.state = State::Exited(exit);
                container.attempt -= 1;
            }
            None => container.state = State::Never,
        }
        self.problem(name, problem);
    }

    /// An instance of a container has ended.
    pub fn exited(&mut self, name: &str, attempt: u32, exit: Exit) {
        let container = self.container(name);
        if container.attempt != attempt || matches!(container.state, State::Exited(_)) {
            return;
        }
        // The end of a very short container may be told before its start is.
        if let (State::Starting { .. }, Some(at)) = (&container.state, exit.started_at) {
            let is_interrupted = container.is_interrupted;
            self.started(name, attempt, at);
            self.container(name).is_interrupted = is_interrupted;
        }
        let container = self.container(name);
        if let State::Starting { before } = &mut container.state {
            container.last = before.take().or_else(|| container.last.take());
        }
        let exit = if container.is_interrupted { super::shutdown::interrupted(exit) } else { exit };
        container.state = State::Exited(exit);
        container.stop = None;
        container.problem = None;
    }

    /// A hook has ended.
    pub fn hook_done(&mut self, name: &str, attempt: u32, kind: HookKind, is_ok: bool) {
        let container = self.container(name);
        if container.attempt != attempt {
            return;
        }
        match kind {
            HookKind::PostStart if is_ok => container.post_start = Hook::Done,
            HookKind::PostStart => {
                container.post_start = Hook::Failed;
                self.warn("FailedPostStartHook", "PostStartHook failed".to_owned(), Some(name));
            }
            HookKind::PreStop => {
                if let Some(stop) = &mut container.stop {
                    stop.pre_stop = Hook::Done;
                }
                if !is_ok {
                    self.warn("FailedPreStopHook", "PreStopHook failed".to_owned(), Some(name));
                }
            }
        }
    }

    /// A probe has been answered. `failure_threshold` and `success_threshold` are those of the
    /// probe.
    pub fn probed(
        &mut self,
        name: &str,
        attempt: u32,
        kind: ProbeKind,
        outcome: &ProbeOutcome,
        thresholds: (u32, u32),
    ) {
        let container = self.container(name);
        if container.attempt != attempt || !matches!(container.state, State::Running { .. }) {
            return;
        }
        let told = container.probe_mut(kind).answered(kind, outcome, thresholds);
        if let Some((reason, message)) = told {
            self.warn(reason, message, Some(name));
        }
    }

    /// The status has been written, or could not be: plan again with the object as it is now.
    pub fn status_written(&mut self) {
        self.is_writing = false;
    }

    /// The object could not be deleted: ask again.
    pub fn delete_failed(&mut self) {
        self.is_delete_asked = false;
    }

    /// The object no longer exists.
    pub fn gone(&mut self) {
        self.is_gone = true;
    }

    /// Whether nothing runs and nothing is being written: the node may go.
    pub fn is_at_rest(&self) -> bool {
        self.is_still() && !self.is_writing
    }

    /// Whether no instance runs or is about to.
    pub fn is_still(&self) -> bool {
        self.containers.values().all(|container| !container.is_live()) && self.setup != Setup::Asked
    }

    pub(super) fn note_ending(&mut self, ending: Option<Ending>) {
        if self.ending.is_none() && ending == Some(Ending::DeadlineExceeded) {
            self.normal("DeadlineExceeded", super::ending::DEADLINE_MESSAGE.to_owned(), None);
        }
        // A deletion tells more than the deadline that may have come before it, but the verdict of
        // the deadline stays: the phase it gave the pod is final.
        let is_kept =
            |kept: &Ending| matches!(kept, Ending::DeadlineExceeded | Ending::NodeShutdown);
        self.ending = self.ending.filter(is_kept).or(ending);
    }

    /// Notes a problem and tells it, once for each wording.
    fn problem(&mut self, name: &str, problem: Problem) {
        let container = self.container(name);
        let is_new = container.problem.as_ref().is_none_or(|old| old.message != problem.message);
        let message = format!("Error: {}", problem.message);
        container.problem = Some(problem);
        if is_new {
            self.warn("Failed", message, Some(name));
        }
    }

    pub(super) fn normal(&mut self, reason: &'static str, message: String, name: Option<&str>) {
        let container = name.map(str::to_owned);
        self.events.push(Event { is_warning: false, reason, message, container });
    }

    pub(super) fn warn(&mut self, reason: &'static str, message: String, name: Option<&str>) {
        let container = name.map(str::to_owned);
        self.events.push(Event { is_warning: true, reason, message, container });
    }
}

impl ContainerMemory {
    /// Whether an instance runs or is about to.
    pub fn is_live(&self) -> bool {
        matches!(self.state, State::Starting { .. } | State::Running { .. })
    }

    /// Since when it runs.
    pub fn running_since(&self) -> Option<Timestamp> {
        match self.state {
            State::Running { since } => Some(since),
            State::Never | State::Starting { .. } | State::Exited(_) => None,
        }
    }

    /// How its newest instance ended.
    pub fn exit(&self) -> Option<&Exit> {
        match &self.state {
            State::Exited(exit) => Some(exit),
            State::Never | State::Starting { .. } | State::Running { .. } => None,
        }
    }

    /// The memory of one of its probes.
    pub fn probe(&self, kind: ProbeKind) -> &ProbeMemory {
        match kind {
            ProbeKind::Startup => &self.startup,
            ProbeKind::Readiness => &self.readiness,
            ProbeKind::Liveness => &self.liveness,
        }
    }

    pub(super) fn probe_mut(&mut self, kind: ProbeKind) -> &mut ProbeMemory {
        match kind {
            ProbeKind::Startup => &mut self.startup,
            ProbeKind::Readiness => &mut self.readiness,
            ProbeKind::Liveness => &mut self.liveness,
        }
    }
}

/// The moment `duration` after `at`; the end of time if that is later.
pub(super) fn after(at: Timestamp, duration: Duration) -> Timestamp {
    at.checked_add(duration).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_told_before_its_start_still_tells_of_the_start() {
        let mut memory = Memory::default();
        memory.container("a").state = State::Starting { before: None };
        let at = Some(Timestamp::UNIX_EPOCH);
        let exit = Exit { started_at: at, finished_at: at, ..Exit::default() };
        memory.exited("a", 0, exit);
        memory.started("a", 0, Timestamp::UNIX_EPOCH);
        let told: Vec<&str> = memory.events.iter().map(|event| event.reason).collect();
        assert_eq!(told, ["Created", "Started"]);
        assert!(memory.container("a").exit().is_some());
    }
}
