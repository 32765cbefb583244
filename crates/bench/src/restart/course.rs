//! A measurement in a process of its own, so that its memory is its own too, and nothing that
//! happens in it can hold up the others. It tells what it measures line by line.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::board::say;
use super::patience::{Lines, Stalled, within};
use super::phases::{Phases, table};
use crate::report::{Budget, Report};

/// How long one may be silent. It gives up earlier by itself, if it can.
const SILENT_MAX: Duration = Duration::from_secs(300);
/// The units of figures.
const UNITS: [&str; 4] = ["ms", "s", "µs", "KiB"];

/// What others are compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Figures {
    /// Milliseconds from a decision to the last agent that has heard of it.
    pub(super) broadcast: f64,
    /// Milliseconds from a failure to the last worker that runs.
    pub(super) all: f64,
    /// Milliseconds until the leader knows it.
    pub(super) known: f64,
}

/// Where a course writes down what it does and measures.
pub(super) struct Sheet {
    /// What all of it is about.
    pub(super) subject: String,
}

impl Sheet {
    /// Something is measured from now on.
    pub(super) fn step(&self, what: &str) {
        say(&format!("step\t{}: {what}", self.subject));
    }

    /// A figure, with what it must not be above.
    pub(super) fn add(&self, what: &str, value: f64, unit: &str, most: Option<f64>) {
        let most = most.map_or_else(String::new, |most| most.to_string());
        say(&format!("figure\t{}: {what}\t{value}\t{unit}\t{most}", self.subject));
    }

    /// Restarts of one sort.
    pub(super) fn phases(&self, what: &str, phases: &mut Phases) {
        say(&format!("phases\t{}", phases.line(&format!("{}: {what}", self.subject))));
    }

    /// What others are compared with.
    pub(super) fn compare(&self, figures: &Figures) {
        let Figures { broadcast, all, known } = figures;
        say(&format!("compare\t{broadcast}\t{all}\t{known}"));
    }

    /// It did not come to its end.
    pub(super) fn stalled(&self, why: &Stalled) {
        say(&format!("stalled\t{}: {why}", self.subject));
    }
}

/// All that courses have told.
pub(super) struct Journal<'a> {
    pub(super) report: &'a mut Report,
    begun: Instant,
    phases: Vec<String>,
    stalled: Vec<String>,
}

impl<'a> Journal<'a> {
    pub(super) fn new(report: &'a mut Report) -> Self {
        Self { report, begun: Instant::now(), phases: Vec::new(), stalled: Vec::new() }
    }

    /// Says what is measured from now on.
    pub(super) fn step(&self, what: &str) {
        println!("[{:>4} s] {what}", self.begun.elapsed().as_secs());
    }

    /// Something did not come to its end.
    pub(super) fn stalled(&mut self, why: String) {
        println!("NOT MEASURED: {why}");
        self.stalled.push(why);
    }

    /// What there is to show at the end, and whether all of it was measured.
    pub(super) fn end(self) -> Result<String, String> {
        self.step("done");
        let text = table(&self.phases);
        if self.stalled.is_empty() {
            return Ok(text);
        }
        let table = self.report.table();
        println!("\n{text}\n\n{table}\n");
        Err(format!("not all was measured:\n{}", self.stalled.join("\n")))
    }

    /// Runs a course, and notes what it tells.
    pub(super) async fn run(&mut self, arguments: &[&str]) -> Option<Figures> {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg("restart-course")
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            // With all that it starts, so that nothing is left of one that has to be ended.
            .process_group(0)
            .spawn()
            .unwrap();
        let mut said = Lines::of(child.stdout.take().unwrap());
        let mut figures = None;
        let before = self.stalled.len();
        let silent = loop {
            match within(SILENT_MAX, "the next thing it says", said.next()).await {
                Ok(Some(line)) => figures = self.note(&line).or(figures),
                Ok(None) => break None,
                Err(stalled) => break Some(stalled.to_string()),
            }
        };
        if silent.is_some() {
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        }
        let ended = child.wait().unwrap();
        let why = silent.or_else(|| (!ended.success()).then(|| shown(ended)));
        // What it has said itself is better than how it ended.
        if let Some(why) = why.filter(|_| self.stalled.len() == before) {
            self.stalled(format!("{}: {why}", arguments.join(" ")));
        }
        figures
    }

    fn note(&mut self, line: &str) -> Option<Figures> {
        let words: Vec<&str> = line.split('\t').collect();
        match words[..] {
            ["step", what] => self.step(what),
            ["figure", what, value, unit, most] => {
                let unit = UNITS.into_iter().find(|known| *known == unit).unwrap_or_default();
                let budget = most.parse().map_or(Budget::None, Budget::AtMost);
                self.report.add(what, value.parse().unwrap(), unit, budget);
            }
            ["phases", line] => {
                println!("{line}");
                self.phases.push(line.to_owned());
            }
            ["compare", broadcast, all, known] => {
                let [broadcast, all, known] =
                    [broadcast, all, known].map(|word| word.parse().unwrap());
                return Some(Figures { broadcast, all, known });
            }
            ["stalled", why] => self.stalled(why.to_owned()),
            _ => println!("{line}"),
        }
        None
    }
}

fn shown(ended: ExitStatus) -> String {
    format!("it has ended with {ended}")
}
