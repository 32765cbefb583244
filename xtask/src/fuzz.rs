//! Fuzzing: builds a program for each target with libFuzzer in it, and feeds it.
//!
//! The compiler is the stable one. What libFuzzer needs to see where an input led is put into our
//! own crates only, by standing between cargo and the compiler: what others made is built as ever,
//! and is no place to look for inputs that are new.

use std::{
    ffi::OsString,
    fs,
    path::PathBuf,
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use crate::shell;

/// Set for the compiler that cargo starts when it is this program, to what is noted.
const COMPILING: &str = "LOCKSTEP_FUZZ_COMPILES";
/// Where a program is to write its seeds to; `lockstep_fuzz::SEEDS`.
const SEEDS: &str = "LOCKSTEP_FUZZ_SEEDS";
/// What is watched while it is fed.
const WATCHED: [&str; 4] = ["lockstep_api", "lockstep_fuzz", "lockstep_local", "lockstep_store"];
/// What makes the compiler note where a program comes by.
const WATCH: [&str; 4] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=3",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
];
/// What makes it note what is compared, too. That takes half of the time of a target, so that long
/// runs do without: they have dictionaries.
const WATCH_COMPARES: &str = "-Cllvm-args=-sanitizer-coverage-trace-compares";

/// Options of `cargo xtask fuzz`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// What to feed; everything, one after the other, if nothing is said.
    targets: Vec<String>,
    /// How many inputs each target gets.
    #[arg(long, conflicts_with = "seconds")]
    inputs: Option<u64>,
    /// How long each target is fed; 60 if nothing is said.
    #[arg(long)]
    seconds: Option<u64>,
    /// What chance begins with; 0 for something else each time.
    #[arg(long, default_value_t = 1)]
    seed: u32,
    /// Build for long runs: it takes minutes longer, and is some times faster.
    #[arg(long)]
    optimised: bool,
    /// Feed one target this file instead.
    #[arg(long, requires = "targets")]
    input: Option<PathBuf>,
}

/// Builds all programs, then feeds those that are asked for.
pub(crate) fn run(options: &Options) -> Result<()> {
    let all = targets()?;
    if let Some(unknown) = options.targets.iter().find(|name| !all.contains(name)) {
        bail!("there is no target {unknown}; there are {}", all.join(", "));
    }
    let wanted = if options.targets.is_empty() { &all } else { &options.targets };
    build(options, wanted)?;
    let mut failed = Vec::new();
    for target in wanted {
        let outcome = match &options.input {
            Some(file) => shell::run(program(target, options).arg(file)),
            None => feed(target, options),
        };
        if let Err(error) = outcome {
            println!("{error:#}");
            failed.push(target.as_str());
        }
    }
    if failed.is_empty() { Ok(()) } else { bail!("something was found: {}", failed.join(", ")) }
}

/// The names of all targets: those of their programs.
fn targets() -> Result<Vec<String>> {
    let folder = shell::root().join("fuzz/examples");
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("no {}", folder.display()))? {
        let path = entry?.path();
        names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

fn build(options: &Options, targets: &[String]) -> Result<()> {
    let started = Instant::now();
    // Of the whole workspace, though little of it is built: what others made is then built with the
    // very features it has been built with before, which is to say, not again.
    let words = "build --locked --workspace --features lockstep-fuzz/programs --profile";
    let mut command = shell::cargo(words.split(' '));
    command.arg(if options.optimised { "fuzz" } else { "dev" });
    for target in targets {
        command.args(["--example", target]);
    }
    let own = std::env::current_exe().context("this program does not know where it is")?;
    let noted = if options.optimised { "places" } else { "compares" };
    command.env("RUSTC_WORKSPACE_WRAPPER", own).env(COMPILING, noted);
    shell::run(&mut command)?;
    println!("built in {:.0} s", started.elapsed().as_secs_f64());
    Ok(())
}

/// Where all of it lies: what was fed, what was found.
fn folder() -> PathBuf {
    shell::target().join("fuzzing")
}

fn program(target: &str, options: &Options) -> Command {
    let built = if options.optimised { "fuzz" } else { "debug" };
    let mut command = Command::new(shell::target().join(built).join("examples").join(target));
    // What fails is said in full.
    command.env("RUST_BACKTRACE", "1");
    command
}

/// Feeds one target and sums up what came of it.
fn feed(target: &str, options: &Options) -> Result<()> {
    let corpus = folder().join("corpus").join(target);
    let found = folder().join("found");
    fs::create_dir_all(&found).with_context(|| format!("cannot make {}", found.display()))?;
    shell::output(program(target, options).env(SEEDS, &corpus))?;
    let log = folder().join(format!("{target}.log"));
    let mut command = program(target, options);
    command
        .arg(&corpus)
        .arg(format!("-dict={}", corpus.with_extension("dict").display()))
        .arg(format!("-artifact_prefix={}/{target}-", found.display()))
        .arg(format!("-seed={}", options.seed))
        .args(["-max_len=65536", "-timeout=20", "-rss_limit_mb=3000", "-print_final_stats=1"])
        // To count what is rare takes more time than it saves when there are thousands of places.
        .arg("-entropic=0");
    match (options.inputs, options.seconds) {
        (Some(inputs), _) => command.arg(format!("-runs={inputs}")),
        (None, seconds) => command.arg(format!("-max_total_time={}", seconds.unwrap_or(60))),
    };
    let started = Instant::now();
    let out = fs::File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(out)
        .status()
        .with_context(|| format!("cannot start {target}"))?;
    let text = String::from_utf8_lossy(&fs::read(&log).unwrap_or_default()).into_owned();
    println!("{}", summary(target, &text, started.elapsed()));
    if !status.success() {
        bail!(
            "{}\n{target} ended with {status}; all of it is in {}",
            failure(&text),
            log.display()
        );
    }
    Ok(())
}

/// How far a run came, from what libFuzzer prints.
fn summary(target: &str, log: &str, took: Duration) -> String {
    let number = |name: &str| -> u64 {
        let line = log.lines().rev().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.trim_start_matches(':').trim().parse().ok()).unwrap_or(0)
    };
    let inputs = number("stat::number_of_executed_units");
    // `#1024 NEW cov: 812 ft: 2410 ...`: the first is what the seeds reach.
    let reached = log.lines().filter_map(|line| line.split(" cov: ").nth(1));
    let mut reached = reached.filter_map(|rest| rest.split(' ').next()?.parse::<u64>().ok());
    let first = reached.next().unwrap_or(0);
    let last = reached.next_back().unwrap_or(first);
    let seconds = took.as_secs_f64();
    format!(
        "{target:<16} {inputs:>9} inputs in {seconds:>5.0} s, {:>6.0}/s; {last} places reached, of \
         them {} by more than seeds; slowest {} s, {} MB",
        inputs as f64 / seconds,
        last - first.min(last),
        number("stat::slowest_unit_time_sec"),
        number("stat::peak_rss_mb"),
    )
}

/// What libFuzzer says of what was found: from the panic to the name of the file.
fn failure(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    let is_begin = |line: &&str| line.contains("panicked at") || line.contains("ERROR: libFuzzer");
    let begin = lines.iter().position(is_begin).unwrap_or(0);
    let said = lines[begin..].iter().take(12);
    let named = lines.iter().filter(|line| line.contains("Test unit written to"));
    said.chain(named).copied().collect::<Vec<_>>().join("\n")
}

/// Does what the compiler does, when cargo takes this program for it; nothing when it is itself.
pub(crate) fn compile_if_asked() -> Option<ExitCode> {
    let noted = std::env::var_os(COMPILING)?;
    let mut words = std::env::args_os().skip(1);
    let mut compiler = Command::new(words.next()?);
    compiler.args(arguments(words.collect(), noted == "compares"));
    let code = compiler.status().ok().and_then(|status| status.code()).unwrap_or(1);
    Some(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// What the compiler is told: for what is watched, to watch.
fn arguments(mut words: Vec<OsString>, notes_compares: bool) -> Vec<OsString> {
    let at = words.iter().position(|word| word == "--crate-name");
    let name = at.and_then(|at| words.get(at + 1)).and_then(|name| name.to_str());
    if name.is_some_and(|name| WATCHED.contains(&name)) {
        words.extend(WATCH.map(OsString::from));
        words.extend(notes_compares.then(|| WATCH_COMPARES.into()));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_crates_are_watched() {
        let of = |name: &str, notes_compares| {
            arguments(["--crate-name", name].map(OsString::from).to_vec(), notes_compares).len()
        };
        assert_eq!(of("lockstep_api", false), 2 + WATCH.len());
        assert_eq!(of("lockstep_api", true), 3 + WATCH.len());
        assert_eq!(of("build_script_build", true), 2);
        assert_eq!(arguments(vec!["-vV".into()], true), ["-vV"]);
    }

    #[test]
    fn a_run_is_summed_up() {
        let log = "#12\tINITED cov: 100 ft: 9\n#1024\tNEW    cov: 150 ft: 10 corp: 3\n\
                   stat::number_of_executed_units: 2000\nstat::slowest_unit_time_sec: 1\n\
                   stat::peak_rss_mb: 60\n";
        let told = summary("json", log, Duration::from_secs(2));
        assert!(told.contains("2000 inputs in     2 s,   1000/s; 150 places"), "{told}");
        assert!(told.contains("of them 50 by more than seeds; slowest 1 s, 60 MB"), "{told}");
    }
}
