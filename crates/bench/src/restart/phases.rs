//! The parts of restarts.

use lockstep_control::plan::restart::Waterfall;

use super::board::Times;
use super::clock::milliseconds;
use super::led::Led;
use crate::report::percentile;

/// The columns: what they are from, and to.
const NAMES: [&str; 5] = [
    "D: until heard of",
    "B: until all are told",
    "S: told to all gone",
    "R: all gone to all running",
    "E: all of it",
];

/// Some restarts of one sort, in milliseconds.
#[derive(Default)]
pub(super) struct Phases {
    spans: [Vec<f64>; 5],
    /// When half and nearly all ran, of all of it.
    pub(super) parts: [Vec<f64>; 2],
    /// From the decision to the last one that was told.
    pub(super) broadcast: Vec<f64>,
    /// Until the leader knows that all run.
    pub(super) known: Vec<f64>,
    /// Processor time of both ends, in seconds.
    pub(super) hub_cpu: f64,
    pub(super) fleet_cpu: f64,
}

impl Phases {
    /// Adds a restart, as both ends saw it.
    pub(super) fn add(&mut self, times: &Times, waterfall: &Waterfall, led: &Led) {
        let decided = led.time(waterfall.decided.unwrap_or(waterfall.heard));
        let gathered = led.time(waterfall.gathered.unwrap_or(waterfall.heard));
        let running = led.time(waterfall.running.unwrap_or(waterfall.heard));
        let [half, nearly, last] = times.started;
        let spans = [
            (times.failed, led.time(waterfall.heard)),
            (times.failed, times.told),
            (decided, times.stopped),
            (gathered, last),
            (times.failed, last),
        ];
        for (all, (from, to)) in self.spans.iter_mut().zip(spans) {
            all.push(milliseconds(from, to));
        }
        self.parts[0].push(milliseconds(times.failed, half));
        self.parts[1].push(milliseconds(times.failed, nearly));
        self.broadcast.push(milliseconds(decided, times.told));
        self.known.push(milliseconds(times.failed, running));
    }

    /// How many restarts there are.
    pub(super) fn count(&self) -> usize {
        self.known.len()
    }

    /// All of it in one line.
    pub(super) fn line(&mut self, name: &str) -> String {
        let cells: Vec<String> = self.spans.iter_mut().map(|span| cell(span)).collect();
        format!("| {name} | {} | {} |", self.count(), cells.join(" | "))
    }

    /// From the failure to the last worker that runs.
    pub(super) fn all(&self) -> Vec<f64> {
        self.spans[4].clone()
    }
}

/// The table of such lines; nothing if there are none.
pub(super) fn table(lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let head = format!("| milliseconds: p50 / p99 / most | times | {} |", NAMES.join(" | "));
    format!("{head}\n|---|---|---|---|---|---|---|\n{}", lines.join("\n"))
}

fn cell(values: &mut [f64]) -> String {
    let at = [50, 99, 100].map(|percent| percentile(values, percent));
    let shown = at.map(|value| match value {
        ..1.0 => format!("{value:.2}"),
        ..10.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    });
    shown.join(" / ")
}
