//! Measures Lockstep against the budgets of its design: `cargo xtask bench`. Not a test: what is
//! measured depends on the machine. It also plays the nodes of clusters that have none.
#![expect(
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints, and ends when it cannot go on"
)]

mod cluster;
mod jobs;
mod jobset;
mod meter;
mod nodes;
mod queue;
mod report;
mod restart;

use std::process::ExitCode;

use mimalloc::MiMalloc;
use report::Report;
use tokio::runtime::Runtime;

/// The allocator of the binary.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The parts of a subject that are to be measured.
struct Wanted(Vec<String>);

impl Wanted {
    /// Whether this part is, as all are unless some are named.
    fn has(&self, part: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|word| word == part)
    }
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let subject = words.next().unwrap_or_default();
    let wanted = Wanted(words.collect());
    if let Some(part) = subject.strip_prefix("restart-") {
        let is_known = restart::play(part, &wanted.0);
        return if is_known { ExitCode::SUCCESS } else { ExitCode::from(2) };
    }
    let level = tracing::Level::WARN;
    let _ = tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).try_init();
    let runtime = Runtime::new().unwrap();
    let mut report = Report::default();
    match subject.as_str() {
        "cluster" => runtime.block_on(cluster::measure(&mut report, &wanted)),
        "jobs" => jobs::measure(&mut report, &wanted, &runtime),
        "jobset" => jobset::measure(&mut report, &wanted, &runtime),
        "queue" => queue::measure(&mut report, &wanted, &runtime),
        "restart" => restart::measure(&mut report, &wanted, &runtime),
        "nodes" if wanted.0.len() == 1 => {
            runtime.block_on(nodes::play(wanted.0[0].parse().unwrap()));
            return ExitCode::SUCCESS;
        }
        _ => {
            let subjects = "cluster|jobs|jobset|queue|restart";
            println!("usage: lockstep-bench {subjects} [PART]... or nodes COUNT");
            return ExitCode::from(2);
        }
    }
    println!("\n{}", report.table());
    ExitCode::SUCCESS
}
