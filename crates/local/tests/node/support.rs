//! A runtime in a folder of its own.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lockstep_local::node::dirs::NodeDirs;
use lockstep_local::node::runtime::{
    ContainerId, Exited, Launch, Runtime, RuntimeEvent, RuntimeOptions,
};
use tempfile::TempDir;
use tokio::sync::mpsc::UnboundedReceiver;

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A runtime and what it tells.
pub(crate) struct Node {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) events: UnboundedReceiver<RuntimeEvent>,
    pub(crate) dirs: NodeDirs,
    folder: Option<TempDir>,
}

impl Node {
    /// A runtime with default options.
    pub(crate) fn new() -> Self {
        Self::with(options())
    }

    /// A runtime with these options.
    pub(crate) fn with(options: RuntimeOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut node = Self::at(folder.path().join("data"), options);
        node.folder = Some(folder);
        node
    }

    /// A runtime over files that may be there already.
    pub(crate) fn at(data: PathBuf, options: RuntimeOptions) -> Self {
        let dirs = NodeDirs::new(data);
        let (runtime, events) = Runtime::new(&dirs, options);
        Self { runtime, events, dirs, folder: None }
    }

    /// Waits for the end of a container.
    pub(crate) async fn exited(&mut self) -> Exited {
        let event = tokio::time::timeout(PATIENCE, self.events.recv()).await;
        let RuntimeEvent::Exited(exited) = event.expect("in time").expect("a live runtime");
        exited
    }

    /// Runs a container to its end.
    pub(crate) async fn run(&mut self, launch: Launch) -> Exited {
        let id = launch.id.clone();
        self.runtime.start(launch).await.unwrap();
        let exited = self.exited().await;
        assert_eq!(exited.id, id);
        exited
    }

    /// The text a container wrote, both streams.
    pub(crate) fn log(&self, launch_id: &ContainerId) -> String {
        let dir = self.dirs.pod_logs("default", &launch_id.pod_uid, &launch_id.pod_uid);
        let file = dir.join(&launch_id.container).join(format!("{}.log", launch_id.attempt));
        let text = std::fs::read_to_string(file).unwrap();
        let line = |line: &str| line.splitn(4, ' ').nth(3).unwrap().to_owned();
        text.lines().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// Options for tests.
pub(crate) fn options() -> RuntimeOptions {
    RuntimeOptions { shim: Some(shim()), die_with_parent: true, ..RuntimeOptions::from_env() }
}

/// The executable that becomes a shim.
pub(crate) fn shim() -> PathBuf {
    let other = std::env::var_os("LOCKSTEP_TEST_SHIM");
    other.map_or_else(|| env!("CARGO_BIN_EXE_lockstep-shim").into(), PathBuf::from)
}

/// A launch of a shell script.
pub(crate) fn script(name: &str, script: &str) -> Launch {
    // Uids are unique on a machine, and what is left of a lost container is known by them: the same
    // tests may run more than once at a time, as other users.
    let run = std::env::var("LOCKSTEP_TEST_RUN").unwrap_or_default();
    let pod_uid = format!("{name}{run}");
    let id = ContainerId { pod_uid, container: "main".to_owned(), attempt: 0 };
    let command = ["sh", "-c", script].map(str::to_owned).to_vec();
    let mut launch = Launch::new(id, command);
    launch.env.push(("PATH".to_owned(), "/usr/bin:/bin".to_owned()));
    launch
}

/// Waits until `condition` holds.
pub(crate) async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..1000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what} did not happen");
}
