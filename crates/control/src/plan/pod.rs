//! The life of a pod, as a kubelet decides it.
//!
//! [`Memory`] is what the node knows of one pod: the shell tells it what happened (a container
//! started, exited, answered a probe) and [`plan`] says what to do next. Decisions are noted in the
//! memory as they are made, so that planning again before anything has happened asks for nothing
//! new. This room knows nothing of processes, files or the API: it sees their outcomes.

mod conditions;
mod ending;
mod memory;
mod phase;
mod probe;
mod recover;
mod restart;
mod shutdown;
mod start;
mod status;
mod stop;
#[cfg(test)]
mod world;

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod, PodStatus};

pub use ending::Ending;
pub use memory::{
    ContainerMemory, Exit, Hook, HookKind, Memory, Problem, Setup, StartFailure, State, Stop,
    StopWhy,
};
pub use probe::{ProbeKind, ProbeMemory, ProbeOutcome, Verdict, spec_of, thresholds};
pub use recover::{Known, KnownState};
pub use restart::go_duration;
pub use stop::signal_number;

/// One thing for a shell to carry out. Carrying it out twice is harmless.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Make the pod's directories and volumes, give it an address; then [`Memory::set_up`] or
    /// [`Memory::set_up_failed`].
    SetUp,
    /// Start a container; then [`Memory::started`] or [`Memory::start_failed`].
    Start {
        /// Name of the container.
        container: String,
        /// Which instance of it, counted from zero: its restart count.
        attempt: u32,
    },
    /// Run a hook of a container; then [`Memory::hook_done`].
    RunHook {
        /// Name of the container.
        container: String,
        /// Which instance of it.
        attempt: u32,
        /// Which hook.
        kind: HookKind,
        /// How long the hook may take; forever when absent.
        within: Option<Duration>,
    },
    /// Probe a container once; then [`Memory::probed`].
    Probe {
        /// Name of the container.
        container: String,
        /// Which instance of it.
        attempt: u32,
        /// Which of its probes.
        kind: ProbeKind,
    },
    /// Ask the main process of a container to end.
    Terminate {
        /// Name of the container.
        container: String,
        /// Which instance of it.
        attempt: u32,
        /// The signal to send.
        signal: i32,
    },
    /// Kill every process of a container.
    Kill {
        /// Name of the container.
        container: String,
        /// Which instance of it.
        attempt: u32,
    },
    /// Tell the user something.
    Emit(Event),
    /// Make the pod's status this; then [`Memory::status_written`].
    WriteStatus(Box<PodStatus>),
    /// Delete the object for good: grace 0, with its uid; [`Memory::delete_failed`] when that
    /// fails.
    ConfirmDelete,
    /// Take back the volumes and the address of the pod: it has ended, and its object says so.
    TearDown,
    /// Remove all traces of the pod from this node: its object is gone.
    Forget,
}

/// An event to record on the pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Whether it is a `Warning` rather than `Normal`.
    pub is_warning: bool,
    /// Why, in CamelCase.
    pub reason: &'static str,
    /// For people.
    pub message: String,
    /// The container it is about.
    pub container: Option<String>,
}

/// Why a pod is not moving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Volumes and address are being made, or could not be made.
    SetUp,
    /// An init container has to end, or a sidecar to start, before the next one may.
    Initializing(String),
    /// A process is being started.
    Starting(String),
    /// A container cannot be created as it is configured.
    Unstartable(String),
    /// A container that keeps failing is restarted later.
    BackOff(String),
    /// Containers have been told to end.
    Stopping,
    /// The API has not yet taken the status.
    StatusWrite,
    /// The containers run.
    Running,
    /// Everything is done; somebody else holds the object.
    Finished,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SetUp => f.write_str("volumes are being set up"),
            Self::Initializing(name) => write!(f, "init container {name} has to finish first"),
            Self::Starting(name) => write!(f, "container {name} is starting"),
            Self::Unstartable(name) => {
                write!(f, "container {name} cannot be created as configured")
            }
            Self::BackOff(name) => {
                write!(f, "container {name} keeps failing and is restarted later")
            }
            Self::Stopping => f.write_str("containers have been told to end"),
            Self::StatusWrite => f.write_str("the status is being written"),
            Self::Running => f.write_str("containers are running"),
            Self::Finished => f.write_str("the pod has ended"),
        }
    }
}

/// The outcome of one planning pass.
#[must_use = "a plan does nothing until a shell carries it out"]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// What to do, in this order.
    pub steps: Vec<Step>,
    /// When to plan again even if nothing happens.
    pub next: Option<Timestamp>,
    /// Why nothing more happens now.
    pub waiting: Option<Waiting>,
}

/// What the planner may be told to do differently.
#[derive(Clone, Debug)]
pub struct Options {
    /// The delay before the second restart of a failing container.
    pub backoff_base: Duration,
    /// The longest such delay. A container that ran for twice as long starts afresh.
    pub backoff_max: Duration,
    /// When to try again to set up or configure what could not be.
    pub retry: Duration,
    /// How long a status that is about to change anyway is held back.
    pub settle: Duration,
    /// The least time between asking a process to end and killing it.
    pub grace_min: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            backoff_base: Duration::from_secs(10),
            backoff_max: Duration::from_secs(300),
            retry: Duration::from_secs(2),
            settle: Duration::from_millis(500),
            grace_min: Duration::from_secs(2),
        }
    }
}

/// What the planner needs to know of the node.
#[derive(Clone, Debug, Default)]
pub struct NodeFacts {
    /// The node's address.
    pub host_ip: String,
    /// Whether the node is about to go: nothing starts any more and everything has to end.
    pub is_shutting_down: bool,
}

/// Plans one pass over `pod`, the object as it was last seen or written by us.
pub fn plan(
    pod: &Pod,
    memory: &mut Memory,
    node: &NodeFacts,
    options: &Options,
    now: Timestamp,
) -> Plan {
    let mut pass = Pass { pod, memory, node, options, now, plan: Plan::default() };
    let known = pod.status.as_ref().and_then(|status| status.start_time.as_ref());
    pass.memory.started_at.get_or_insert_with(|| known.map_or(now, |time| time.0));
    let ending = ending::decide(&pass);
    pass.memory.note_ending(ending);
    stop::plan(&mut pass, ending);
    if ending.is_none() {
        start::plan(&mut pass);
    }
    probe::plan(&mut pass, ending);
    pass.tell();
    if pass.memory.is_gone {
        pass.forget_when_still();
    } else {
        status::plan(&mut pass, ending);
    }
    pass.plan
}

/// One pass in progress.
struct Pass<'a> {
    pod: &'a Pod,
    memory: &'a mut Memory,
    node: &'a NodeFacts,
    options: &'a Options,
    now: Timestamp,
    plan: Plan,
}

impl Pass<'_> {
    fn step(&mut self, step: Step) {
        self.plan.steps.push(step);
    }

    fn wait(&mut self, why: Waiting) {
        self.plan.waiting.get_or_insert(why);
    }

    fn wake(&mut self, at: Option<Timestamp>) {
        if let Some(at) = at {
            self.plan.next = Some(self.plan.next.map_or(at, |earlier| earlier.min(at)));
        }
    }

    /// Hands out the events that have gathered.
    fn tell(&mut self) {
        let events = std::mem::take(&mut self.memory.events);
        self.plan.steps.extend(events.into_iter().map(Step::Emit));
    }

    fn forget_when_still(&mut self) {
        if self.memory.is_still() && !self.memory.is_forgotten {
            self.memory.is_forgotten = true;
            self.step(Step::Forget);
        }
    }
}

/// The part a container plays in its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Runs to its end before the next one starts.
    Init,
    /// An init container that keeps running beside the main ones.
    Sidecar,
    /// A main container.
    Main,
}

/// The containers of a pod in the order in which they start.
pub fn containers(pod: &Pod) -> impl Iterator<Item = (Role, &Container)> {
    let spec = pod.spec.as_ref();
    let init = spec.and_then(|spec| spec.init_containers.as_deref()).unwrap_or_default();
    let main = spec.map(|spec| spec.containers.as_slice()).unwrap_or_default();
    init.iter()
        .map(|container| match container.restart_policy.as_deref() {
            Some("Always") => (Role::Sidecar, container),
            _ => (Role::Init, container),
        })
        .chain(main.iter().map(|container| (Role::Main, container)))
}

/// `name_namespace(uid)`, which is how events and messages of a node name a pod.
pub fn full_name(pod: &Pod) -> String {
    let meta = &pod.metadata;
    format!(
        "{}_{}({})",
        meta.name.as_deref().unwrap_or_default(),
        meta.namespace.as_deref().unwrap_or_default(),
        meta.uid.as_deref().unwrap_or_default()
    )
}
