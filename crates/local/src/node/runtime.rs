//! Runs containers: one shim process each, started, asked and heard here.

mod adopt;
mod attend;
mod error;
pub(crate) mod fallback;
mod launch;
pub(crate) mod open_files;
mod orphans;
pub(crate) mod talk;

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;

pub use self::error::{ExecError, ExecFailure, StartError};
pub use self::launch::{
    Console, ContainerId, Credentials, ExecOutcome, Exited, Input, Launch, LimitedBy, Limits,
    Mount, Recovered, RecoveredState, RuntimeEvent, Started,
};
pub(crate) use self::orphans::shim_pid;
pub use super::shim::wire::{Isolation, LogRotation};

use self::attend::Handle;
use super::dirs::NodeDirs;
use super::limits::CgroupBase;
use super::shim::wire::{PROBE_ARGUMENT, Probed, Request, SHIM_ARGUMENT, ShimLaunch, files};

/// Names the container a process belongs to, so that strays can be told from other processes.
pub(crate) const CONTAINER_VARIABLE: &str = "LOCKSTEP_CONTAINER";

/// How often to look whether everything has ended.
const CLOSE_POLL: Duration = Duration::from_millis(10);

/// How containers are run.
#[derive(Clone, Debug, Default)]
pub struct RuntimeOptions {
    /// The executable that becomes a shim when its first argument is [`SHIM_ARGUMENT`]; this one if
    /// not given.
    pub shim: Option<PathBuf>,
    /// Whether containers end with this process, however it ends, rather than go on without it.
    pub die_with_parent: bool,
    /// Never use namespaces, as if this machine forbade them.
    pub without_namespaces: bool,
    /// Never use cgroups.
    pub without_cgroups: bool,
    /// How log files are rotated.
    pub rotation: LogRotation,
}

impl RuntimeOptions {
    /// The defaults, as changed by the environment: `LOCKSTEP_NO_USERNS=1` forbids namespaces.
    pub fn from_env() -> Self {
        let forbids = |name| std::env::var_os(name).is_some_and(|value| value == "1");
        Self { without_namespaces: forbids("LOCKSTEP_NO_USERNS"), ..Self::default() }
    }
}

/// Runs the containers of this node.
pub struct Runtime {
    dirs: NodeDirs,
    options: RuntimeOptions,
    shim: PathBuf,
    probed: Probed,
    cgroups: CgroupBase,
    shared: Arc<Shared>,
}

/// What the tasks that attend containers need.
struct Shared {
    dirs: NodeDirs,
    containers: Mutex<HashMap<ContainerId, Handle>>,
    events: mpsc::UnboundedSender<RuntimeEvent>,
    /// How many containers have a process, from before their shim is started until it is gone.
    busy: AtomicUsize,
    is_closed: AtomicBool,
}

/// A container that has a process, or is about to.
struct Busy(Arc<Shared>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Shared {
    /// Counts a container.
    fn busy(self: &Arc<Self>) -> Busy {
        self.busy.fetch_add(1, Ordering::SeqCst);
        Busy(Arc::clone(self))
    }

    /// Counts a start; `None` when nothing may start any more.
    fn begin(self: &Arc<Self>) -> Option<Busy> {
        // Counted before the question: whoever closes either refuses it or waits for it.
        let busy = self.busy();
        (!self.is_closed.load(Ordering::SeqCst)).then_some(busy)
    }

    fn handle(&self, id: &ContainerId) -> Option<Handle> {
        self.lock().get(id).cloned()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ContainerId, Handle>> {
        // No code that can panic runs while the lock is held.
        self.containers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Runtime {
    /// A runtime that keeps its files in `dirs`, and where it tells what happens.
    ///
    /// Finds out what this machine allows, which takes some milliseconds.
    pub fn new(
        dirs: &NodeDirs,
        options: RuntimeOptions,
    ) -> (Arc<Self>, mpsc::UnboundedReceiver<RuntimeEvent>) {
        open_files::raise();
        let (events, receiver) = mpsc::unbounded_channel();
        // Not by its path: the file there may be another one after an upgrade.
        let own = || PathBuf::from("/proc/self/exe");
        let shim = options.shim.clone().unwrap_or_else(own);
        let probed = if options.without_namespaces {
            Probed { isolation: Isolation::None, reason: Some("switched off".to_owned()) }
        } else {
            probe(&shim)
        };
        let cgroups = if options.without_cgroups {
            CgroupBase::None
        } else {
            CgroupBase::find(&dirs.instance())
        };
        let shared = Arc::new(Shared {
            dirs: dirs.clone(),
            containers: Mutex::default(),
            events,
            busy: AtomicUsize::new(0),
            is_closed: AtomicBool::new(false),
        });
        let runtime = Self { dirs: dirs.clone(), options, shim, probed, cgroups, shared };
        (Arc::new(runtime), receiver)
    }

    /// How much of its own view of the machine a container gets here, and if none, why.
    pub fn isolation(&self) -> (Isolation, Option<&str>) {
        (self.probed.isolation, self.probed.reason.as_deref())
    }

    /// What enforces limits here.
    pub fn limited_by(&self) -> LimitedBy {
        self.cgroups.limited_by()
    }

    /// Starts a container. It runs when this returns `Ok`, and its end will be reported.
    pub async fn start(&self, launch: Launch) -> Result<Started, StartError> {
        if launch.command.is_empty() {
            return Err(StartError::NoCommand);
        }
        let id = launch.id.clone();
        if self.shared.handle(&id).is_some() {
            return Err(StartError::AlreadyRunning { id: id.to_string() });
        }
        let busy = self.shared.begin().ok_or(StartError::Closed)?;
        let (shim_launch, warnings) = self.prepare(launch)?;
        // In a task of its own: a caller that gives up waiting must not leave a container behind
        // that nobody knows of.
        let task = tokio::spawn(attend::start(busy, self.shim.clone(), shim_launch));
        let mut started =
            task.await.map_err(|error| StartError::Shim { message: error.to_string() })??;
        started.warnings.extend(warnings);
        Ok(started)
    }

    /// Sends `signal` to the main process of a container, if it runs.
    pub fn terminate(&self, id: &ContainerId, signal: i32) {
        if let Some(handle) = self.shared.handle(id) {
            handle.send(Request::Signal(signal));
        }
    }

    /// Kills every process of a container, if it runs.
    pub fn kill(&self, id: &ContainerId) {
        if let Some(handle) = self.shared.handle(id) {
            handle.send(Request::Kill);
        }
    }

    /// Starts nothing any more, kills what runs and waits until no process of it is left, nor of
    /// containers which were just being started.
    pub async fn close(&self) {
        self.shared.is_closed.store(true, Ordering::SeqCst);
        while self.shared.busy.load(Ordering::SeqCst) > 0 {
            self.kill_all();
            tokio::time::sleep(CLOSE_POLL).await;
        }
    }

    /// Kills every process of every container.
    pub fn kill_all(&self) {
        for id in &self.running() {
            self.kill(id);
        }
    }

    /// All instances that run.
    pub fn running(&self) -> Vec<ContainerId> {
        self.shared.lock().keys().cloned().collect()
    }

    /// Whether this instance runs.
    pub fn is_running(&self, id: &ContainerId) -> bool {
        self.shared.handle(id).is_some()
    }

    /// Runs a command in a running container and waits for its end.
    pub async fn exec(
        &self,
        id: &ContainerId,
        command: &[String],
        timeout: Duration,
    ) -> Result<ExecOutcome, ExecError> {
        if self.shared.handle(id).is_none() {
            return Err(ExecError::NotRunning { id: id.to_string() });
        }
        attend::exec(&self.dirs, id, command, timeout).await
    }

    /// Finds the containers a previous process left, and takes over those that still run. Those
    /// that were being started and had not begun are gone.
    pub fn recover(&self) -> Vec<Recovered> {
        adopt::recover(&self.shared)
    }

    /// The uids of all pods there are files of.
    pub fn pods(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dirs.pods()).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    /// Kills what is left of a pod and removes its files and logs.
    pub fn forget_pod(&self, pod_uid: &str) {
        let running: Vec<_> = self
            .shared
            .lock()
            .iter()
            .filter(|(id, _)| id.pod_uid == pod_uid)
            .map(|(_, handle)| handle.clone())
            .collect();
        for handle in running {
            handle.send(Request::Kill);
        }
        super::volumes::remove_memory(&self.dirs, pod_uid);
        remove_tree(&self.dirs.pod(pod_uid));
        let suffix = format!("_{pod_uid}");
        for entry in fs::read_dir(self.dirs.logs()).into_iter().flatten().flatten() {
            if entry.file_name().to_str().is_some_and(|name| name.ends_with(&suffix)) {
                remove_tree(&entry.path());
            }
        }
    }

    /// Makes the files of a container and the orders for its shim.
    fn prepare(&self, mut launch: Launch) -> Result<(ShimLaunch, Vec<String>), StartError> {
        let dir = self.dirs.container(&launch.id);
        let log_dir = self
            .dirs
            .pod_logs(&launch.pod_namespace, &launch.pod_name, &launch.id.pod_uid)
            .join(&launch.id.container);
        for dir in [&dir, &log_dir] {
            make_private_dir(dir)
                .map_err(|source| StartError::Prepare { path: dir.clone(), source })?;
        }
        for stale in [files::EXIT, files::STATE, files::BEGUN] {
            let _ = fs::remove_file(dir.join(stale));
        }
        let (mut warnings, mut moved) = (Vec::new(), Vec::new());
        if self.probed.isolation == Isolation::None {
            let rewritten = fallback::rewrite(&mut launch, &dir.join(files::MESSAGE))?;
            (warnings, moved) = (rewritten.warnings, rewritten.paths);
        }
        let mut env = Vec::new();
        if launch.inherit_caller_env {
            env.extend(std::env::vars_os().filter_map(|(name, value)| {
                Some((name.into_string().ok()?, value.into_string().ok()?))
            }));
        }
        env.append(&mut launch.env);
        env.push((CONTAINER_VARIABLE.to_owned(), launch.id.to_string()));
        let cgroup = self.cgroups.plan(&launch.id, &launch.limits);
        Ok((
            ShimLaunch {
                moved,
                dir,
                log_dir,
                data_dir: self.dirs.data().to_owned(),
                die_with_parent: self.options.die_with_parent,
                open_files: open_files::for_containers(),
                isolation: self.probed.isolation,
                hostname: launch.hostname,
                hosts_file: launch.hosts_file,
                mounts: launch.mounts,
                termination_message_path: launch.termination_message_path.into(),
                message_from_logs_on_error: launch.message_from_logs_on_error,
                command: launch.command,
                env,
                working_dir: launch.working_dir.unwrap_or_else(|| PathBuf::from("/")),
                credentials: launch.credentials,
                console: launch.console,
                limits: launch.limits,
                cgroup,
                rotation: self.options.rotation,
                id: launch.id,
            },
            warnings,
        ))
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.cgroups.release();
    }
}

/// Lets a shim try what this machine allows.
fn probe(shim: &Path) -> Probed {
    let tried = Command::new(shim)
        .args([SHIM_ARGUMENT, PROBE_ARGUMENT])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let read = tried.and_then(|output| Ok(serde_json::from_slice(&output.stdout)?));
    read.unwrap_or_else(|error: io::Error| Probed {
        isolation: Isolation::None,
        reason: Some(format!("{} does not work: {error}", shim.display())),
    })
}

pub(super) fn make_private_dir(dir: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

fn remove_tree(path: &Path) {
    if let Err(error) = fs::remove_dir_all(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(path = %path.display(), %error, "cannot remove files of a pod");
    }
}
