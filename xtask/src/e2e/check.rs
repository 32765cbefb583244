//! Checks of commands: what to run, what must come of it, and how long that may take.

mod child;

use std::{
    ffi::OsString,
    io::Read,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};

pub(crate) use self::child::{finish, interrupt_after};
use crate::shell;

/// What a command did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Done {
    /// Its exit code; 128 + n when signal n ended it, -1 when it was stuck.
    pub(crate) code: i32,
    /// What it wrote.
    pub(crate) out: String,
    /// What it complained of.
    pub(crate) err: String,
}

/// A command and what must come of it.
#[derive(Clone, Debug)]
#[must_use = "a check does nothing until a suite runs it"]
pub(crate) struct Check {
    words: Vec<String>,
    stdin: String,
    variables: Vec<(String, String)>,
    code: Option<i32>,
    expectations: Vec<Expectation>,
    patience: Duration,
}

#[derive(Clone, Debug)]
enum Expectation {
    OutIs(String),
    OutHas(String),
    OutLacks(String),
    ErrHas(String),
}

impl Check {
    /// A check of a command line; quotes keep words together.
    pub(crate) fn new(line: &str) -> Self {
        Self {
            words: split(line),
            stdin: String::new(),
            variables: Vec::new(),
            code: Some(0),
            expectations: Vec::new(),
            patience: Duration::ZERO,
        }
    }

    /// Gives the command something to read.
    pub(crate) fn stdin(mut self, text: &str) -> Self {
        text.clone_into(&mut self.stdin);
        self
    }

    /// Sets a variable of its environment.
    pub(crate) fn var(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The exit code must be this one instead of 0.
    pub(crate) fn code(mut self, code: i32) -> Self {
        self.code = Some(code);
        self
    }

    /// stdout must be exactly this, but for blanks at the end.
    pub(crate) fn out_is(mut self, text: &str) -> Self {
        self.expectations.push(Expectation::OutIs(text.to_owned()));
        self
    }

    /// stdout must contain this.
    pub(crate) fn out(mut self, text: &str) -> Self {
        self.expectations.push(Expectation::OutHas(text.to_owned()));
        self
    }

    /// stdout must not contain this.
    pub(crate) fn out_lacks(mut self, text: &str) -> Self {
        self.expectations.push(Expectation::OutLacks(text.to_owned()));
        self
    }

    /// stderr must contain this.
    pub(crate) fn err(mut self, text: &str) -> Self {
        self.expectations.push(Expectation::ErrHas(text.to_owned()));
        self
    }

    /// Tries again until all of it holds, for at most so many seconds.
    pub(crate) fn within(mut self, seconds: u64) -> Self {
        self.patience = Duration::from_secs(seconds);
        self
    }

    fn faults(&self, done: &Done) -> Vec<String> {
        let mut faults = Vec::new();
        if self.code.is_some_and(|code| code != done.code) {
            faults.push(format!("exit code {}", self.code.unwrap_or_default()));
        }
        for expectation in &self.expectations {
            let (is_met, wanted) = match expectation {
                Expectation::OutIs(text) => {
                    (done.out.trim_end() == text.trim_end(), format!("stdout exactly {text:?}"))
                }
                Expectation::OutHas(text) => {
                    (done.out.contains(text), format!("stdout with {text:?}"))
                }
                Expectation::OutLacks(text) => {
                    (!done.out.contains(text), format!("stdout without {text:?}"))
                }
                Expectation::ErrHas(text) => {
                    (done.err.contains(text), format!("stderr with {text:?}"))
                }
            };
            if !is_met {
                faults.push(wanted);
            }
        }
        faults
    }
}

/// Runs checks with one program and keeps count.
#[derive(Debug)]
pub(crate) struct Suite {
    title: String,
    program: PathBuf,
    environment: Vec<(OsString, OsString)>,
    number: usize,
    failed: Vec<String>,
}

impl Suite {
    /// A suite whose checks run `program`.
    pub(crate) fn new(title: &str, program: &Path) -> Self {
        println!("\n== {title}");
        Self {
            title: title.to_owned(),
            program: program.to_path_buf(),
            environment: Vec::new(),
            number: 0,
            failed: Vec::new(),
        }
    }

    /// Sets a variable for all commands.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.environment.push((name.into(), value.into()));
    }

    /// Runs one check and prints how it went.
    pub(crate) fn check(&mut self, name: &str, check: Check) {
        let deadline = Instant::now() + check.patience;
        loop {
            let done = self.run(&check);
            let faults = check.faults(&done);
            if faults.is_empty() {
                return self.record(name, Ok(()));
            }
            if Instant::now() >= deadline {
                let mut shown = Command::new(self.program.file_name().unwrap_or_default());
                shown.args(&check.words);
                let report = format!(
                    "  command:  {}\n  expected: {}\n  got:      exit code {}\n  stdout: {}\n  stderr: {}",
                    shell::shown(&shown),
                    faults.join("; "),
                    done.code,
                    excerpt(&done.out),
                    excerpt(&done.err)
                );
                return self.record(name, Err(report));
            }
            thread::sleep(Duration::from_millis(200));
        }
    }

    /// Records something proved by other means than one command.
    pub(crate) fn prove(&mut self, name: &str, proof: impl FnOnce(&Self) -> Result<(), String>) {
        let outcome = proof(self).map_err(|why| format!("  {why}"));
        self.record(name, outcome);
    }

    /// Runs a command line without judging it.
    pub(crate) fn ask(&self, line: &str) -> Done {
        self.run(&Check::new(line))
    }

    /// Starts a command line and leaves it running.
    pub(crate) fn start(&self, line: &str) -> Result<Child> {
        let words = split(line);
        let mut command = self.command(&words, &[]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().with_context(|| format!("cannot start {line}"))
    }

    /// Starts a command line, leaves it running, and returns once it wrote `first` as its first
    /// line: from then on it sees whatever happens.
    pub(crate) fn start_past(&self, line: &str, first: &str) -> Result<Child> {
        let mut child = self.start(line)?;
        let stdout = child.stdout.as_mut().context("its output is a pipe")?;
        let mut seen = Vec::new();
        let mut byte = [0];
        // Byte by byte, because what follows the line belongs to whoever finishes the command.
        while stdout.read(&mut byte)? == 1 && byte[0] != b'\n' {
            seen.push(byte[0]);
        }
        let seen = String::from_utf8_lossy(&seen);
        ensure!(seen == first, "{line} began with {seen:?} instead of {first:?}");
        Ok(child)
    }

    /// Runs a command line on a terminal of its own, of 31 rows and 97 columns, and types `stdin`
    /// there. All that the terminal shows is what it wrote.
    pub(crate) fn on_a_terminal(&self, line: &str, stdin: &str) -> Done {
        let mut script = Command::new("script");
        let line = shell::shown(&self.command(&split(line), &[]));
        script.args(["-qec", &format!("stty rows 31 cols 97; exec {line}"), "/dev/null"]);
        script.envs(self.environment.iter().map(|(name, value)| (name, value)));
        script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        match script.spawn() {
            Ok(child) => finish(child, stdin),
            Err(error) => Done { code: -1, err: error.to_string(), ..Done::default() },
        }
    }

    /// How many checks passed and failed; a failure is an error.
    pub(crate) fn finish(self) -> Summary {
        let summary = Summary {
            passed: self.number - self.failed.len(),
            failed: self.failed.iter().map(|name| format!("{}: {name}", self.title)).collect(),
        };
        println!("{}: {} passed, {} failed", self.title, summary.passed, summary.failed.len());
        summary
    }

    fn record(&mut self, name: &str, outcome: Result<(), String>) {
        self.number += 1;
        match outcome {
            Ok(()) => println!("{:>3} ok    {name}", self.number),
            Err(report) => {
                println!("{:>3} FAIL  {name}\n{report}", self.number);
                self.failed.push(name.to_owned());
            }
        }
    }

    fn command(&self, words: &[String], variables: &[(String, String)]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        command
    }

    fn run(&self, check: &Check) -> Done {
        let mut command = self.command(&check.words, &check.variables);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        match command.spawn() {
            Ok(child) => finish(child, &check.stdin),
            Err(error) => Done { code: -1, err: error.to_string(), ..Done::default() },
        }
    }
}

/// What came of one or more suites.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// How many checks passed.
    pub(crate) passed: usize,
    /// The names of those that did not.
    pub(crate) failed: Vec<String>,
}

impl Summary {
    /// Adds the counts of another.
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed.extend(other.failed);
    }
}

fn excerpt(text: &str) -> String {
    const LIMIT: usize = 1500;
    let text = text.trim_end();
    match text.char_indices().nth(LIMIT) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

/// Splits a command line at blanks; single quotes keep what is inside as it is.
fn split(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut is_quoted = false;
    for letter in line.chars() {
        match letter {
            '\'' => {
                is_quoted = !is_quoted;
                word.get_or_insert_default();
            }
            ' ' if !is_quoted => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_split_as_a_shell_splits_it() {
        assert_eq!(split("get pods -l 'a in (x, y)' ''"), ["get", "pods", "-l", "a in (x, y)", ""]);
        assert_eq!(split("patch -p '{\"a\":1}'"), ["patch", "-p", "{\"a\":1}"]);
    }

    #[test]
    fn a_check_says_what_is_missing() {
        let done = Done { code: 1, out: "one two\n".into(), err: "no\n".into() };
        let check = Check::new("x").out("one").out_is("one two").out_lacks("two").err("yes");
        let faults = check.faults(&done);
        assert_eq!(faults, ["exit code 0", "stdout without \"two\"", "stderr with \"yes\""]);
        assert!(Check::new("x").code(1).err("no").faults(&done).is_empty());
    }

    #[test]
    fn a_stuck_or_killed_command_has_a_code_of_its_own() {
        let mut suite = Suite::new("sh", Path::new("sh"));
        assert_eq!(suite.ask("-c 'kill -9 $$'").code, 137);
        suite.check("exits", Check::new("-c 'cat; exit 3'").stdin("hi").code(3).out_is("hi"));
        assert!(suite.finish().failed.is_empty());
    }
}
