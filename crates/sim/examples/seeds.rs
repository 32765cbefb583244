//! Runs worlds: `seeds run SORT FIRST COUNT STRIDE` runs many of them and tells of those that went
//! wrong, `seeds replay SORT SEED` tells the story of one with as few faults as it takes, `seeds
//! tell SORT SEED` with all of them; a sort is `jobs`, `jobsets` or `queues`. `cargo xtask sim` is
//! the way to call it.
#![expect(clippy::print_stdout, reason = "what it finds goes to whoever started it")]

use std::process::ExitCode;

use lockstep_sim::{Setup, Sort, restart, run, shrink};
use mimalloc::MiMalloc;

/// A world is many small objects that live for a few events: a fifth of the time goes into getting
/// and freeing them with the allocator of the system.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["run", "restarts", first, count, stride] => restarts(first, count, stride),
        ["replay", "restarts", seed] => restart(seed),
        ["run", sort, first, count, stride] => many(sort, first, count, stride),
        ["replay", sort, seed] => one(sort, seed),
        ["tell", sort, seed] => tell(sort, seed),
        _ => None,
    };
    let Some(is_clean) = done else {
        println!("usage: seeds run SORT FIRST COUNT STRIDE | seeds replay SORT SEED");
        return ExitCode::from(2);
    };
    if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn sort(word: &str) -> Option<Sort> {
    match word {
        "jobs" => Some(Sort::Jobs),
        "jobsets" => Some(Sort::JobSets),
        "queues" => Some(Sort::Queues),
        _ => None,
    }
}

/// Runs `count` worlds, `stride` apart; the last line sums up.
fn many(word: &str, first: &str, count: &str, stride: &str) -> Option<bool> {
    let sort = sort(word)?;
    let (first, count, stride) =
        (first.parse::<u64>().ok()?, count.parse::<u64>().ok()?, stride.parse::<u64>().ok()?);
    let (mut events, mut faults, mut bad) = (0, 0, 0);
    let (mut complete, mut failed) = (0, 0);
    for seed in (0..count).map(|at| first + at * stride) {
        let outcome = run(&Setup { seed, sort, ..Setup::default() });
        events += outcome.events;
        faults += u64::from(outcome.faults);
        complete += outcome.endings.0;
        failed += outcome.endings.1;
        if let Some(violation) = outcome.violation {
            bad += 1;
            println!("{word} {seed}: {violation}");
        }
    }
    println!("worlds {count} events {events} faults {faults} complete {complete} failed {failed}");
    Some(bad == 0)
}

/// The same for worlds of gangs that are restarted in place.
fn restarts(first: &str, count: &str, stride: &str) -> Option<bool> {
    let (first, count, stride) =
        (first.parse::<u64>().ok()?, count.parse::<u64>().ok()?, stride.parse::<u64>().ok()?);
    let (mut events, mut faults, mut bad) = (0, 0, 0);
    let (mut complete, mut failed) = (0, 0);
    for seed in (0..count).map(|at| first + at * stride) {
        let outcome = restart::run(&restart::Setup::sampled(seed));
        events += outcome.events;
        faults += u64::from(outcome.faults);
        complete += u64::from(outcome.is_complete);
        failed += u64::from(!outcome.is_complete);
        if let Some(violation) = outcome.violation {
            bad += 1;
            println!("restarts {seed}: {violation}");
        }
    }
    println!("worlds {count} events {events} faults {faults} complete {complete} failed {failed}");
    Some(bad == 0)
}

fn restart(seed: &str) -> Option<bool> {
    let seed = seed.parse().ok()?;
    let setup = restart::Setup { is_told: true, ..restart::Setup::sampled(seed) };
    let outcome = restart::run(&setup);
    outcome.story.iter().for_each(|line| println!("{line}"));
    if let Some(violation) = &outcome.violation {
        println!("{violation}");
    }
    Some(outcome.violation.is_none())
}

/// Tells the story of one world with all its faults.
fn tell(word: &str, seed: &str) -> Option<bool> {
    let setup = Setup { seed: seed.parse().ok()?, sort: sort(word)?, ..Setup::default() };
    let told = run(&Setup { is_told: true, ..setup });
    print!("{}", told.trace);
    Some(told.violation.is_none())
}

/// Tells the story of one world with as few faults as it takes.
fn one(word: &str, seed: &str) -> Option<bool> {
    let setup = Setup { seed: seed.parse().ok()?, sort: sort(word)?, ..Setup::default() };
    let outcome = run(&setup);
    let muted = match &outcome.violation {
        Some(_) => shrink(&setup),
        None => setup.muted.clone(),
    };
    let told = run(&Setup { muted, is_told: true, ..setup });
    print!("{}", told.trace);
    if outcome.violation.is_some() {
        println!("{} faults happened, of which the story needs the above", outcome.faults);
    }
    Some(outcome.violation.is_none())
}
