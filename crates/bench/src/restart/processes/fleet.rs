//! The processes: agents, and what their workers say.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::time::sleep;

use super::super::board::Times;
use super::super::led::ticket;
use super::super::patience::{Lines, PATIENCE, Stalled, within};
use super::super::worker::{SAID, deaf};

/// A gang of them.
pub(super) struct Processes {
    program: PathBuf,
    address: SocketAddr,
    agents: Vec<Child>,
    said: Lines,
    /// The worker of each place.
    workers: HashMap<u32, Pid>,
    /// The epoch after the one that all have been started for.
    epoch: u32,
    folder: TempDir,
    size: u32,
}

impl Processes {
    /// Starts an agent for each place; the uids of their pods are their numbers.
    pub(super) fn new(program: PathBuf, address: SocketAddr, size: u32) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let said = folder.path().join(SAID);
        mknodat(CWD, &said, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        // With a writer of our own there is never an end of it.
        let said = Lines::of(File::options().read(true).write(true).open(said)?);
        let (agents, workers) = (Vec::new(), HashMap::new());
        let mut processes =
            Self { program, address, agents, said, workers, epoch: 0, folder, size };
        for slot in 0..size {
            let agent = processes.agent(slot, &slot.to_string())?;
            processes.agents.push(agent);
        }
        Ok(processes)
    }

    fn agent(&self, slot: u32, uid: &str) -> io::Result<Child> {
        Command::new(&self.program)
            .args(["agent", "--plaintext", "--orchestrator", &self.address.to_string()])
            .args(["--ticket", &ticket(), "--pod", uid, "--grace", "2s", "--"])
            .arg(std::env::current_exe()?)
            .arg("restart-worker")
            .arg(self.folder.path())
            .arg(slot.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
    }

    /// Whether a worker ignores being asked to stop.
    pub(super) fn deafen(&self, slot: u32, is_deaf: bool) -> io::Result<()> {
        let file = self.folder.path().join(deaf(slot));
        if is_deaf { std::fs::write(file, "") } else { std::fs::remove_file(file) }
    }

    /// Kills workers.
    pub(super) fn kill(&self, slots: &[u32]) -> Result<(), Stalled> {
        for slot in slots {
            kill_process(self.workers[slot], Signal::KILL)
                .map_err(|error| Stalled::new(format!("worker {slot} is not there: {error}")))?;
        }
        Ok(())
    }

    /// Kills an agent, and starts another one in the same pod.
    pub(super) async fn restart(&mut self, slot: u32) -> Result<(), Stalled> {
        self.agents[slot as usize].kill()?;
        self.ended(slot).await?;
        self.join(slot, &slot.to_string())
    }

    /// Asks an agent to end, as a container is when its pod is deleted.
    pub(super) async fn leave(&mut self, slot: u32) -> Result<(), Stalled> {
        let pid = Pid::from_child(&self.agents[slot as usize]);
        kill_process(pid, Signal::TERM).map_err(io::Error::from)?;
        self.ended(slot).await
    }

    /// Starts the agent of another pod.
    pub(super) fn join(&mut self, slot: u32, uid: &str) -> Result<(), Stalled> {
        self.agents[slot as usize] = self.agent(slot, uid)?;
        Ok(())
    }

    async fn ended(&mut self, slot: u32) -> Result<(), Stalled> {
        let agent = &mut self.agents[slot as usize];
        let ended = async {
            while agent.try_wait()?.is_none() {
                sleep(Duration::from_millis(1)).await;
            }
            io::Result::Ok(())
        };
        Ok(within(PATIENCE, "an agent to end", ended).await??)
    }

    /// Waits until all workers have started for a later epoch than before.
    pub(super) async fn running(
        &mut self,
        failed: u64,
        patience: Duration,
    ) -> Result<Times, Stalled> {
        let mut times = Times { failed, ..Times::default() };
        let (mut epoch, mut started) = (self.epoch, Vec::new());
        let waiting = async {
            while started.len() < self.size as usize {
                let line = self.said.next().await?;
                let words: Vec<&str> = line.split(' ').collect();
                let [what, slot, pid, time, started_for] = words[..] else { continue };
                let (time, of): (u64, u32) = (time.parse().ok()?, started_for.parse().ok()?);
                if what != "started" {
                    times.told = times.told.max(time);
                    continue;
                }
                match of.cmp(&epoch) {
                    Ordering::Less => continue,
                    Ordering::Equal => {}
                    Ordering::Greater => (epoch, started) = (of, Vec::new()),
                }
                started.push(time);
                self.workers.insert(slot.parse().ok()?, Pid::from_raw(pid.parse().ok()?)?);
            }
            Some(())
        };
        let done = within(patience, "all workers to start", waiting).await;
        let count = started.len();
        done.map_err(|stalled| stalled.beside(&format!("{count} have")))?
            .ok_or_else(|| Stalled::new("a worker said something else than it should"))?;
        self.epoch = epoch + 1;
        started.sort_unstable();
        let at = |percent: usize| started[(started.len() * percent / 100).min(started.len() - 1)];
        times.started = [at(50), at(99), at(100)];
        Ok(times)
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for agent in &mut self.agents {
            let _ = agent.kill();
        }
        for agent in &mut self.agents {
            let _ = agent.wait();
        }
    }
}
