//! Measures the one-machine cluster against its budgets: `cargo xtask bench cluster`.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints, and ends when it cannot go on"
)]

mod objects;
mod process;
mod report;
mod watches;
mod writes;

use report::Report;

fn main() {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|word| word == name);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let mut report = Report::default();
    runtime.block_on(async {
        if is_wanted("start") {
            process::starts(&mut report);
        }
        if is_wanted("writes") {
            writes::measure(&mut report).await;
        }
        if is_wanted("watches") {
            watches::measure(&mut report).await;
        }
        if is_wanted("pods") {
            process::pods(&mut report).await;
        }
        if is_wanted("objects") {
            objects::measure(&mut report).await;
        }
    });
    println!("\n{}", report.table());
}
