//! Runs worlds: `seeds run FIRST COUNT STRIDE` runs many of them and tells of those that went
//! wrong, `seeds replay SEED` tells the story of one. `cargo xtask sim` is the way to call it.
#![expect(clippy::print_stdout, reason = "what it finds goes to whoever started it")]

use std::process::ExitCode;

use lockstep_sim::{Setup, run, shrink};
use mimalloc::MiMalloc;

/// A world is many small objects that live for a few events: a fifth of the time goes into getting
/// and freeing them with the allocator of the system.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["run", first, count, stride] => many(first, count, stride),
        ["replay", seed] => one(seed),
        _ => None,
    };
    let Some(is_clean) = done else {
        println!("usage: seeds run FIRST COUNT STRIDE | seeds replay SEED");
        return ExitCode::from(2);
    };
    if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs `count` worlds, `stride` apart; the last line sums up.
fn many(first: &str, count: &str, stride: &str) -> Option<bool> {
    let (first, count, stride) =
        (first.parse::<u64>().ok()?, count.parse::<u64>().ok()?, stride.parse::<u64>().ok()?);
    let (mut events, mut faults, mut bad) = (0, 0, 0);
    let (mut complete, mut failed) = (0, 0);
    for seed in (0..count).map(|at| first + at * stride) {
        let outcome = run(&Setup { seed, ..Setup::default() });
        events += outcome.events;
        faults += u64::from(outcome.faults);
        complete += outcome.endings.0;
        failed += outcome.endings.1;
        if let Some(violation) = outcome.violation {
            bad += 1;
            println!("seed {seed}: {violation}");
        }
    }
    println!("worlds {count} events {events} faults {faults} complete {complete} failed {failed}");
    Some(bad == 0)
}

/// Tells the story of one world with as few faults as it takes.
fn one(seed: &str) -> Option<bool> {
    let setup = Setup { seed: seed.parse().ok()?, ..Setup::default() };
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
