//! What an agent needs from whatever runs its containers.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use lockstep_control::plan::pod::{Exit, HookKind, Known, ProbeKind, ProbeOutcome, StartFailure};

/// Runs containers. All methods may be called again for the same thing.
pub trait Backend: Send + Sync + 'static {
    /// Whether pods of this node are its business; others are left alone.
    fn owns(&self, node: &str) -> bool;

    /// Whether a node is to look as if it were lost: nothing happens on it for now.
    fn is_silent(&self, _node: &str) -> bool {
        false
    }

    /// The address of a node.
    fn host_ip(&self, node: &str) -> String;

    /// Makes the pod's volumes and gives it an address.
    fn set_up(&self, pod: Arc<Pod>) -> BoxFuture<'static, Result<String, String>>;

    /// Starts an instance of a container. Also gives back what users should be told.
    fn start(
        &self,
        pod: Arc<Pod>,
        container: String,
        attempt: u32,
    ) -> BoxFuture<'static, Result<Launched, StartFailure>>;

    /// As [`Backend::set_up`] for one that takes no time, which spares a task and two messages.
    fn set_up_at_once(&self, _pod: &Pod) -> Option<Result<String, String>> {
        None
    }

    /// As [`Backend::start`] for one that takes no time.
    fn start_at_once(
        &self,
        _pod: &Pod,
        _container: &str,
        _attempt: u32,
    ) -> Option<Result<Launched, StartFailure>> {
        None
    }

    /// Runs a hook; `true` when it ended well.
    fn run_hook(
        &self,
        pod: Arc<Pod>,
        container: String,
        attempt: u32,
        kind: HookKind,
        within: Option<Duration>,
    ) -> BoxFuture<'static, bool>;

    /// Probes a container once.
    fn probe(
        &self,
        pod: Arc<Pod>,
        container: String,
        attempt: u32,
        kind: ProbeKind,
    ) -> BoxFuture<'static, ProbeOutcome>;

    /// Asks the main process of a container to end.
    fn terminate(&self, pod_uid: &str, container: &str, attempt: u32, signal: i32);

    /// Kills all processes of a container.
    fn kill(&self, pod_uid: &str, container: &str, attempt: u32);

    /// Takes back what a pod that has ended no longer needs: its volumes and address. What it has
    /// written to its logs stays.
    fn tear_down(&self, _pod_uid: &str) {}

    /// Removes all traces of a pod.
    fn forget(&self, pod_uid: &str);

    /// What is still there from earlier times: the uids of pods, and what is known of the
    /// containers of each. A pod may have files and no container.
    fn recover(&self) -> Vec<(String, Vec<Known>)>;

    /// What is still there of one pod, beside [`Backend::recover`].
    fn recover_pod(&self, _pod: &Pod) -> Vec<Known> {
        Vec::new()
    }

    /// The annotations of a pod have changed.
    fn annotated(&self, _pod: &Pod) {}

    /// All pods there are have been told to [`Backend::recover_pod`].
    fn recovered(&self) {}

    /// Whether events are worth their cost here.
    fn tells_events(&self) -> bool {
        true
    }
}

/// A container that was started.
#[derive(Clone, Debug)]
pub struct Launched {
    /// Since when.
    pub at: Timestamp,
    /// What users should be told about it.
    pub notes: Vec<Told>,
    /// How it ended, if it already has: then nobody need be told that it ran.
    pub exit: Option<Exit>,
}

/// Something users should be told about a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Whether it is a warning.
    pub is_warning: bool,
    /// Why, in CamelCase.
    pub reason: &'static str,
    /// For people.
    pub message: String,
}

impl Told {
    /// Something they should worry about.
    pub fn warning(reason: &'static str, message: String) -> Self {
        Self { is_warning: true, reason, message }
    }

    /// Something good to know.
    pub fn normal(reason: &'static str, message: String) -> Self {
        Self { is_warning: false, reason, message }
    }
}

/// An instance of a container that ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The uid of its pod.
    pub pod_uid: String,
    /// Its name.
    pub container: String,
    /// Which instance.
    pub attempt: u32,
    /// How it ended.
    pub exit: Exit,
}

/// What became of a step.
#[derive(Debug)]
pub enum Outcome {
    /// Volumes and address are there, or why not.
    SetUp(Result<String, String>),
    /// The container runs, or why not.
    Started {
        /// Name of the container.
        container: String,
        /// Which instance.
        attempt: u32,
        /// Since when, or why not.
        result: Result<Launched, StartFailure>,
    },
    /// A hook ended.
    Hook {
        /// Name of the container.
        container: String,
        /// Which instance.
        attempt: u32,
        /// Which hook.
        kind: HookKind,
        /// Whether it ended well.
        is_ok: bool,
    },
    /// A probe was answered.
    Probed {
        /// Name of the container.
        container: String,
        /// Which instance.
        attempt: u32,
        /// Which probe.
        kind: ProbeKind,
        /// The answer.
        outcome: ProbeOutcome,
    },
    /// The status was written: the version the object has now.
    Written(Result<u64, kube::Error>),
    /// The status was not written, as the object is no longer this version that we know.
    Stale(u64),
    /// The object was deleted for good, or why not.
    Deleted(Result<(), kube::Error>),
}
