//! A running `lockstep up`.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use crate::shell;

/// How long a start or a stop may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Builds the binary and says where it is.
pub(crate) fn build(is_release: bool) -> Result<PathBuf> {
    let mut build = shell::cargo(["build", "--quiet", "--locked"]);
    match is_release {
        true => build.args(["--release", "-p", "lockstep"]),
        // With the features that the tests were built with: what they compiled is used again.
        false => build.args(["--workspace", "--all-targets"]),
    };
    shell::run(&mut build)?;
    Ok(shell::target().join(if is_release { "release" } else { "debug" }).join("lockstep"))
}

/// A process that serves from a folder.
#[derive(Debug)]
pub(crate) struct Up {
    child: Child,
    data_dir: PathBuf,
}

impl Up {
    /// Starts `lockstep up` on `data_dir` and waits until it is ready.
    pub(crate) fn start(binary: &Path, data_dir: &Path, arguments: &[&str]) -> Result<Self> {
        Self::start_as(Command::new(binary), data_dir, arguments)
    }

    /// Starts it with a command that may stand for another user or another environment.
    pub(crate) fn start_as(mut up: Command, data_dir: &Path, arguments: &[&str]) -> Result<Self> {
        let log = data_dir.with_extension("log");
        let log = fs::File::options().create(true).append(true).open(&log)?;
        let mut child = up
            .args(["up", "--data-dir"])
            .arg(data_dir)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .context("cannot start `lockstep up`")?;
        let stdout = child.stdout.take().expect("stdout is a pipe");
        let (ready, is_ready) = mpsc::channel();
        // The pipe is read to its end, so that the server never blocks on it.
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if line.contains("export KUBECONFIG=") && ready.send(()).is_err() {
                    break;
                }
            }
        });
        let up = Self { child, data_dir: data_dir.to_path_buf() };
        match is_ready.recv_timeout(PATIENCE) {
            Ok(()) => Ok(up),
            Err(_) => bail!("`lockstep up` did not get ready; it said:\n{}", up.said()),
        }
    }

    /// The kubeconfig it wrote.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.data_dir.join("kubeconfig")
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The end of what it wrote to stderr.
    pub(crate) fn said(&self) -> String {
        let text = fs::read_to_string(self.data_dir.with_extension("log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }

    /// Whether it still runs.
    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Kills it without a word of warning.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Asks it to stop and waits until it has.
    pub(crate) fn stop(mut self) -> Result<ExitStatus> {
        shell::signal(self.pid(), "TERM")?;
        let asked = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if asked.elapsed() > PATIENCE {
                bail!("`lockstep up` does not stop; it said:\n{}", self.said());
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        if self.is_running() {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}
