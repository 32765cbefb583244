//! Restarts in place: real processes, thousands of agents over real sockets, and in the same run
//! what others do: one PUBLISH of Valkey, and the prototype of KEP-876 that looks once a second.

mod agents;
mod board;
mod clock;
mod course;
mod fleet;
mod led;
mod patience;
mod phases;
mod processes;
mod prototype;
mod publish;
mod sockets;
mod valkey;
mod worker;

use lockstep_restart::hub::raise_open_files;
use tokio::runtime::{Builder, Runtime};

use crate::Wanted;
use crate::report::{Budget, Report};
use course::{Figures, Journal};
use patience::Stalled;
use valkey::Valkey;

/// Numbers of agents over sockets, and of subscribers.
const SIZES: [u32; 3] = [1_000, 5_000, 15_000];
/// How long a restart of so many may take, in milliseconds.
const BUDGETS: [(u32, f64); 2] = [(5_000, 250.0), (15_000, 800.0)];
/// Numbers of real processes.
const PROCESSES: [u32; 2] = [64, 1_000];
/// How often the model restarts: it mostly sleeps.
const ROUNDS_MODELLED: u32 = 5;
/// Descriptors that a process needs beside those of its connections.
const SPARE: u64 = 200;

/// Measures what is wanted: the parts `processes`, `sockets` and `peers`, or some sizes of them.
pub(crate) fn measure(report: &mut Report, wanted: &Wanted, runtime: &Runtime) {
    let (sizes, parts): (Vec<String>, Vec<String>) =
        wanted.0.iter().cloned().partition(|word| word.parse::<u32>().is_ok());
    let sizes: Vec<u32> = sizes.iter().filter_map(|size| size.parse().ok()).collect();
    let chosen = |part: &str, usual: &[u32]| -> Vec<u32> {
        let is_named = parts.iter().any(|word| word == part);
        match (&sizes[..], is_named) {
            _ if !parts.is_empty() && !is_named => Vec::new(),
            ([], _) => usual.to_vec(),
            // Any size for what is named.
            (sizes, true) => sizes.to_vec(),
            (sizes, false) => usual.iter().copied().filter(|it| sizes.contains(it)).collect(),
        }
    };
    let files = raise_open_files().unwrap_or(u64::MAX);
    println!("load before: {}", std::fs::read_to_string("/proc/loadavg").unwrap().trim());
    let mut journal = Journal::new(report);
    for size in chosen("processes", &PROCESSES) {
        runtime.block_on(journal.run(&["processes", &size.to_string()]));
    }
    let mut figures = Vec::new();
    for size in chosen("sockets", &SIZES) {
        if u64::from(size) + SPARE > files {
            journal
                .stalled(format!("{size} agents: only {files} files may be open: see ulimit -n"));
            continue;
        }
        for tls in ["plain", "tls"] {
            let measured = runtime.block_on(journal.run(&["sockets", &size.to_string(), tls]));
            figures.extend(measured.filter(|_| tls == "plain").map(|measured| (size, measured)));
        }
    }
    let sizes = chosen("peers", &SIZES);
    if !sizes.is_empty() {
        runtime.block_on(peers(&mut journal, &sizes, &figures));
    }
    match journal.end() {
        Ok(table) => println!("\n{table}"),
        Err(why) => panic!("{why}"),
    }
}

/// What others need for the same, and what we need of that.
async fn peers(journal: &mut Journal<'_>, sizes: &[u32], ours: &[(u32, Figures)]) {
    let valkey = match Valkey::start().await {
        Ok(valkey) => valkey,
        Err(why) => {
            journal.stalled(format!("nothing to compare with: {why}"));
            return;
        }
    };
    println!("compared with {}", valkey.version);
    for size in sizes {
        let ours = ours.iter().find(|(it, _)| it == size).map(|(_, figures)| figures);
        journal.step(&format!("Valkey, PUBLISH to {size}"));
        if let Err(why) = published(journal.report, &valkey, *size, ours).await {
            journal.stalled(format!("Valkey, PUBLISH to {size}: {why}"));
        }
    }
    for size in sizes {
        let ours = ours.iter().find(|(it, _)| it == size).map(|(_, figures)| figures);
        journal.step(&format!("KEP-876's prototype, modelled, {size} agents"));
        if let Err(why) = modelled(journal.report, &valkey, *size, ours).await {
            journal.stalled(format!("KEP-876's prototype, modelled, {size} agents: {why}"));
        }
    }
}

async fn published(
    report: &mut Report,
    valkey: &Valkey,
    size: u32,
    ours: Option<&Figures>,
) -> Result<(), Stalled> {
    let published = publish::measure(report, valkey, size).await?;
    if let Some(ours) = ours {
        let what = format!("{size}: time for our one order to all / for one PUBLISH to all");
        report.add(&what, ours.broadcast / published, "", Budget::None);
        let what = format!("{size}: time for our whole restart / for one PUBLISH to all");
        report.add(&what, ours.all / published, "", Budget::None);
    }
    Ok(())
}

async fn modelled(
    report: &mut Report,
    valkey: &Valkey,
    size: u32,
    ours: Option<&Figures>,
) -> Result<(), Stalled> {
    let modelled = prototype::measure(report, valkey, size, ROUNDS_MODELLED).await?;
    if let Some(ours) = ours {
        let what = format!("{size}: time for our whole restart / for the prototype's");
        report.add(&what, ours.all / modelled[0], "", Budget::None);
        let what = format!("{size}: until the leader knows, ours / the prototype's");
        report.add(&what, ours.known / modelled[1], "", Budget::None);
    }
    Ok(())
}

/// Plays a part of a measurement in a process of its own. Whether there is such a part, and it came
/// to its end.
pub(crate) fn play(part: &str, words: &[String]) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let many = || Runtime::new().unwrap();
    match (part, &words[..]) {
        ("course", ["processes", size]) => {
            let course = processes::Course::new(size.parse().unwrap());
            return many().block_on(course.run());
        }
        ("course", ["sockets", size, tls]) => {
            let size = size.parse().unwrap();
            let budget = BUDGETS.iter().find(|(it, _)| *it == size).map(|(_, budget)| *budget);
            let course = sockets::Course::new(size, *tls == "tls", budget);
            return many().block_on(course.run());
        }
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
