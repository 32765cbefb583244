//! A process full of agents, from the side of whoever runs it: neither end then needs all the
//! descriptors.

use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use super::board::Times;
use super::patience::{Lines, PATIENCE, START, Stalled, within};

/// A process of this very program that plays something.
pub(super) struct Fleet {
    child: Child,
    said: Lines,
    commands: ChildStdin,
}

impl Fleet {
    /// Starts a part of this program.
    pub(super) fn new(part: &str, arguments: &[&str]) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg(format!("restart-{part}"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = Lines::of(child.stdout.take().unwrap());
        let commands = child.stdin.take().unwrap();
        Self { child, said, commands }
    }

    /// What it said up to now is of no interest.
    pub(super) fn forget(&mut self) {
        self.said.forget();
    }

    /// Asks for something. What it said before has nothing to do with that.
    pub(super) fn ask(&mut self, command: &str) {
        self.forget();
        // One that has ended is found out when its answer is waited for.
        let _ = writeln!(self.commands, "{command}");
    }

    /// The next thing it says that begins like this.
    pub(super) async fn hear(&mut self, beginning: &str) -> Result<String, Stalled> {
        self.hear_within(PATIENCE, beginning).await
    }

    async fn hear_within(&mut self, span: Duration, beginning: &str) -> Result<String, Stalled> {
        let what = format!("the agents to be {}", beginning.trim_end());
        let heard = within(span, &what, async {
            loop {
                match self.said.next().await {
                    Some(line) if line.starts_with(beginning) => return Some(line),
                    Some(_) => {}
                    None => return None,
                }
            }
        });
        heard.await?.ok_or_else(|| Stalled::new("the process of the agents has ended"))
    }

    /// Waits until all workers run.
    pub(super) async fn running(&mut self) -> Result<Times, Stalled> {
        let line = self.hear("running ").await?;
        Times::read(&line).ok_or_else(|| Stalled::new(format!("{line:?} has no times")))
    }

    /// Waits until all are there.
    pub(super) async fn started(&mut self, beginning: &str) -> Result<(), Stalled> {
        self.hear_within(START, beginning).await.map(|_| ())
    }

    /// Seconds of processor time it has used.
    pub(super) fn processor_time(&self) -> f64 {
        super::processor_time(&self.child.id().to_string())
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
