//! Commands, and a cluster for them.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Output, Stdio},
};

/// A command that knows nothing of this machine but where programs are.
pub(crate) fn lockstep() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockstep"));
    command
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data"))
        .env_clear()
        .env("HOME", "/nonexistent")
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::null());
    command
}

/// A cluster for one test.
pub(crate) struct Up {
    child: Child,
    /// Its data directory.
    pub(crate) folder: tempfile::TempDir,
}

impl Up {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut child = lockstep()
            .args(["up", "--in-memory", "--port", "0", "--log", "warn", "--data-dir"])
            .arg(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("lockstep runs");
        let mut said = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let is_ready = said.any(|line| line.is_ok_and(|line| line.contains("export KUBECONFIG=")));
        assert!(is_ready, "it ended before it was ready");
        Self { child, folder }
    }

    /// Runs a command on this cluster; `stdin` is what it reads.
    pub(crate) fn output(&self, words: &str, stdin: &str) -> Output {
        let mut child = lockstep()
            .args(words.split(' '))
            .arg("--data-dir")
            .arg(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("lockstep runs");
        // A command that reads nothing may have ended by now.
        drop(child.stdin.take().expect("a pipe").write_all(stdin.as_bytes()));
        child.wait_with_output().expect("it ends")
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
