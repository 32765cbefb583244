//! Restarts in place: real processes, thousands of agents over real sockets, and in the same run
//! what others do: one PUBLISH of Valkey, and the prototype of KEP-876 that looks once a second.

mod agents;
mod board;
mod clock;
mod fleet;
mod led;
mod phases;
mod processes;
mod prototype;
mod publish;
mod sockets;
mod valkey;
mod worker;

use tokio::runtime::{Builder, Runtime};

use crate::Wanted;
use crate::report::{Budget, Report};
use phases::Table;
use sockets::{Course, Figures};
use valkey::Valkey;

/// The sizes, each with its budget in milliseconds.
const SIZES: [(u32, Option<f64>); 3] = [(1_000, None), (5_000, Some(250.0)), (15_000, Some(800.0))];
/// Numbers of real processes.
const PROCESSES: [u32; 2] = [64, 1_000];
/// Sizes of the model, each with how often it restarts: it mostly sleeps.
const MODELLED: [(u32, u32); 3] = [(64, 10), (1_000, 10), (5_000, 6)];

/// Measures what is wanted: the parts `processes`, `sockets` and `peers`, or some sizes of them.
pub(crate) fn measure(report: &mut Report, wanted: &Wanted, runtime: &Runtime) {
    let (sizes, parts): (Vec<String>, Vec<String>) =
        wanted.0.iter().cloned().partition(|word| word.parse::<u32>().is_ok());
    let (sizes, parts) = (Wanted(sizes), Wanted(parts));
    let mut table = Table::default();
    let mut figures = Vec::new();
    println!("load before: {}", std::fs::read_to_string("/proc/loadavg").unwrap().trim());
    for size in PROCESSES {
        if parts.has("processes") && sizes.has(&size.to_string()) {
            runtime.block_on(processes::measure(report, &mut table, size));
        }
    }
    for (size, budget) in SIZES {
        if !parts.has("sockets") || !sizes.has(&size.to_string()) {
            continue;
        }
        for has_tls in [false, true] {
            let budget = budget.filter(|_| !has_tls).map_or(Budget::None, Budget::AtMost);
            let table = &mut table;
            let course = Course { report, table, size, has_tls, budget };
            let measured = runtime.block_on(course.run());
            if !has_tls {
                figures.push((size, measured));
            }
        }
    }
    if parts.has("peers") {
        runtime.block_on(peers(report, &sizes, &figures));
    }
    println!("\n{}", table.text());
}

/// What others need for the same, and what we need of that.
async fn peers(report: &mut Report, sizes: &Wanted, ours: &[(u32, Figures)]) {
    let valkey = match Valkey::start().await {
        Ok(valkey) => valkey,
        Err(why) => {
            println!("nothing to compare with: {why}");
            return;
        }
    };
    println!("compared with {}", valkey.version);
    let ours = |size: u32| ours.iter().find(|(it, _)| *it == size).map(|(_, figures)| *figures);
    for (size, _) in SIZES.iter().filter(|(size, _)| sizes.has(&size.to_string())) {
        let published = publish::measure(report, &valkey, *size).await;
        if let Some(ours) = ours(*size) {
            let what = format!("{size}: time for our one order to all / for one PUBLISH to all");
            report.add(&what, ours.broadcast / published, "", Budget::None);
            let what = format!("{size}: time for our whole restart / for one PUBLISH to all");
            report.add(&what, ours.all / published, "", Budget::None);
        }
    }
    for (size, rounds) in MODELLED.iter().filter(|(size, _)| sizes.has(&size.to_string())) {
        let modelled = prototype::measure(report, &valkey, *size, *rounds).await;
        if let Some(ours) = ours(*size) {
            let what = format!("{size}: time for our whole restart / for the prototype's");
            report.add(&what, ours.all / modelled[0], "", Budget::None);
            let what = format!("{size}: until the leader knows, ours / the prototype's");
            report.add(&what, ours.known / modelled[1], "", Budget::None);
        }
    }
}

/// Plays a part of a measurement in a process of its own. Whether there is such a part.
pub(crate) fn play(part: &str, words: &[String]) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let many = || Runtime::new().unwrap();
    match (part, &words[..]) {
        ("agents", [address, ca, ticket, size]) => {
            many().block_on(agents::play(address, ca, ticket, size));
        }
        ("subscribers", [address, size]) => many().block_on(publish::play(address, size)),
        ("prototype", [address, size]) => many().block_on(prototype::play(address, size)),
        ("worker", [folder, slot]) => {
            // There are many of these: as little as can be.
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(worker::work(folder, slot));
        }
        _ => return false,
    }
    true
}

/// Memory of this process in KiB.
fn own_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn own_processor_time() -> f64 {
    processor_time("self")
}

/// Seconds of processor time that a process has used.
fn processor_time(process: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    ticks / 100.0
}
