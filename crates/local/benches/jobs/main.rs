//! Measures Jobs on the embedded cluster against their budgets: `cargo xtask bench jobs`.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints, and ends when it cannot go on"
)]

mod limited;
mod meter;
mod policy;
#[path = "../cluster/report.rs"]
#[expect(dead_code, reason = "the other benchmark uses the rest of it")]
mod report;
mod scale;

use report::Report;

fn main() {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|word| word == name);
    let level = tracing::Level::WARN;
    let _ = tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).try_init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let mut report = Report::default();
    if is_wanted("policy") {
        policy::measure(&mut report);
    }
    for size in [1_000, 10_000, 50_000] {
        if is_wanted("scale") || is_wanted(&size.to_string()) {
            runtime.block_on(scale::measure(&mut report, size));
        }
    }
    scale::compare(&mut report);
    if is_wanted("limited") {
        runtime.block_on(limited::measure(&mut report));
    }
    println!("\n{}", report.table());
}
