//! A process full of agents, from the side of whoever runs it: neither end then needs all the
//! descriptors.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::board::Times;

/// A process of this very program that plays something.
pub(super) struct Fleet {
    child: Child,
    said: Lines<BufReader<ChildStdout>>,
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
        let said = BufReader::new(child.stdout.take().unwrap()).lines();
        let commands = child.stdin.take().unwrap();
        Self { child, said, commands }
    }

    /// Asks for something.
    pub(super) fn ask(&mut self, command: &str) {
        writeln!(self.commands, "{command}").unwrap();
    }

    /// The next thing it says that begins like this.
    pub(super) fn hear(&mut self, beginning: &str) -> String {
        loop {
            let line = self.said.next().expect("a fleet lives until it is ended").unwrap();
            if line.starts_with(beginning) {
                return line;
            }
        }
    }

    /// Waits until all workers run.
    pub(super) fn running(&mut self) -> Times {
        Times::read(&self.hear("running ")).unwrap()
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
