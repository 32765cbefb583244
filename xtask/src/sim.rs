//! The simulator: many worlds at once, or the story of one.

use std::{
    process::{Child, Command, Stdio},
    time::Instant,
};

use anyhow::{Context, Result, bail};

use crate::shell;

/// Options of `cargo xtask sim`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How many worlds to run of each sort.
    #[arg(long, default_value_t = 10_000)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Tell the story of this one world instead, with as few faults as it takes to go wrong.
    #[arg(long, conflicts_with_all = ["seeds", "first"], requires = "sort")]
    seed: Option<u64>,
    /// What the worlds are about; all, one after the other, if nothing is said.
    #[arg(long)]
    sort: Option<Sort>,
}

/// What a world is about.
#[derive(Clone, Copy, clap::ValueEnum)]
#[value(rename_all = "lower")]
enum Sort {
    Jobs,
    JobSets,
    Queues,
    Restarts,
}

impl Sort {
    const fn word(self) -> &'static str {
        match self {
            Self::Jobs => "jobs",
            Self::JobSets => "jobsets",
            Self::Queues => "queues",
            Self::Restarts => "restarts",
        }
    }
}

/// What one process has to say about its share of the worlds.
#[derive(Debug, Default, PartialEq, Eq)]
struct Summary {
    worlds: u64,
    events: u64,
    faults: u64,
    complete: u64,
    failed: u64,
}

/// Builds the simulator, optimised, and runs it on all cores: a process for each, since the
/// simulator itself knows no threads and no clock.
pub(crate) fn run(options: &Options) -> Result<()> {
    let build = "build --profile sim --locked -p lockstep-sim --example seeds";
    shell::run(&mut shell::cargo(build.split(' ')))?;
    if let (Some(seed), Some(sort)) = (options.seed, options.sort) {
        return shell::run(seeds().args(["replay", sort.word(), &seed.to_string()]));
    }
    let all = || vec![Sort::Jobs, Sort::JobSets, Sort::Queues, Sort::Restarts];
    let sorts = options.sort.map_or_else(all, |sort| vec![sort]);
    let mut is_clean = true;
    for sort in sorts {
        is_clean &= run_all(options, sort.word())?;
    }
    if !is_clean {
        bail!("worlds went wrong: `cargo xtask sim --sort SORT --seed N` tells how");
    }
    Ok(())
}

/// Runs all worlds of a sort; whether nothing went wrong.
fn run_all(options: &Options, sort: &str) -> Result<bool> {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let start = Instant::now();
    let children: Vec<Child> = (0..cores)
        .map(|core| {
            let count = (options.seeds + cores - 1 - core) / cores;
            let share = [options.first + core, count, cores].map(|number| number.to_string());
            let mut command = seeds();
            command.args(["run", sort]).args(share).stdout(Stdio::piped());
            command.spawn().context("cannot start the simulator")
        })
        .collect::<Result<_>>()?;
    let (mut total, mut is_clean) = (Summary::default(), true);
    for child in children {
        let output = child.wait_with_output().context("cannot wait for the simulator")?;
        let text = String::from_utf8_lossy(&output.stdout);
        is_clean &= output.status.success();
        for line in text.lines() {
            match total.add(line) {
                Some(()) => {}
                None => println!("{line}"),
            }
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let Summary { worlds, events, faults, complete, failed } = total;
    println!(
        "{worlds} worlds of {sort}, {events} events, {faults} faults in {seconds:.1} s: {:.0} \
         events/s; {complete} completed, {failed} failed",
        events as f64 / seconds,
    );
    Ok(is_clean && worlds == options.seeds)
}

fn seeds() -> Command {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(Into::into);
    let target = target.unwrap_or_else(|| shell::root().join("target"));
    Command::new(target.join("sim/examples/seeds"))
}

impl Summary {
    /// Adds what a line sums up; nothing when it is another line.
    fn add(&mut self, line: &str) -> Option<()> {
        let mut words = line.split(' ');
        for (name, sum) in [
            ("worlds", &mut self.worlds),
            ("events", &mut self.events),
            ("faults", &mut self.faults),
            ("complete", &mut self.complete),
            ("failed", &mut self.failed),
        ] {
            if words.next()? != name {
                return None;
            }
            *sum += words.next()?.parse::<u64>().ok()?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::Summary;

    #[test]
    fn only_the_last_line_of_a_share_is_summed_up() {
        let mut summary = Summary::default();
        assert_eq!(summary.add("jobs 5: a pod is counted twice"), None);
        for _ in 0..2 {
            summary.add("worlds 1 events 2 faults 3 complete 4 failed 5").unwrap();
        }
        let twice = Summary { worlds: 2, events: 4, faults: 6, complete: 8, failed: 10 };
        assert_eq!(summary, twice);
    }
}
