//! Measures restarts of JobSets on the embedded cluster: `cargo xtask bench jobset`; and on a real
//! one, where `LOCKSTEP_OPERATOR_PID` names the operator: `cargo xtask bench jobset-kubernetes`.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints, and ends when it cannot go on"
)]

#[path = "../jobs/meter.rs"]
mod meter;
#[path = "../cluster/report.rs"]
#[expect(dead_code, reason = "the other benchmarks use the rest of it")]
mod report;
mod restart;

use report::Report;

fn main() {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let level = tracing::Level::WARN;
    let _ = tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).try_init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let mut report = Report::default();
    let operator = std::env::var("LOCKSTEP_OPERATOR_PID").ok().map(|pid| pid.parse().unwrap());
    for size in [1_000, 5_000, 15_000, 50_000] {
        if !wanted.is_empty() && !wanted.contains(&size.to_string()) {
            continue;
        }
        match operator {
            None => runtime.block_on(restart::embedded(&mut report, size)),
            Some(pid) => runtime.block_on(restart::operator(&mut report, size, pid)),
        }
    }
    println!("\n{}", report.table());
}
