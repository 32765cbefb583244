//! One run of a shape: everything is made, admitted, run and finished, and what that took is told.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use lockstep_operator::metrics::Metrics;
use tokio::runtime::Runtime;

use super::books::Books;
use super::execute::{self, Played};
use super::generate::{self, Births};
use super::place::{Place, Way};
use super::shape::{Shape, count};
use crate::meter::{cpu_seconds, difference, requests};
use crate::report::{Budget, Report, percentile};

/// What a run has taken up to now.
struct Taken {
    cpu: f64,
    controller: Option<f64>,
    requests: BTreeMap<String, f64>,
}

/// Runs a shape, and tells what it took.
pub(super) fn measure(report: &mut Report, runtime: &Runtime, shape: &Shape, way: Way) {
    let place = Place::start(runtime, way);
    let load = place.load();
    let client = load.block_on(place.client());
    load.block_on(generate::queues(&client, shape));
    let births = Births::default();
    let workloads = generate::workloads(client.clone(), shape.clone(), Arc::clone(&births));
    let mut workloads = Some(workloads);
    if let Some(workloads) = workloads.take_if(|_| shape.is_at_once()) {
        load.block_on(workloads);
    }
    let taken = |place: &Place<'_>| Taken {
        cpu: cpu_seconds(std::process::id()),
        controller: place.controller_seconds(),
        requests: load.block_on(requests(&client)),
    };
    let before = taken(&place);
    let started = Instant::now();
    let books = Books::new(shape, &births, started);
    let playing = load.spawn(execute::play(client.clone(), books));
    let controller = place.start_controller();
    let making = workloads.map(|workloads| load.spawn(workloads));
    let played = load.block_on(playing).unwrap();
    let after = taken(&place);
    load.block_on(generate::until_at_rest(&client));
    assert!(making.is_none_or(|making| load.block_on(making).is_ok()));
    let name = format!("{}, {} workloads, {}", shape.name, shape.workloads(), way.name());
    tell_times(report, &name, (shape, way), (&played.books, started));
    tell_costs(report, &name, shape, &played, (&before, &after));
    tell_cycles(report, &name, &place.metrics, played.books.admissions);
    place.stop(&controller);
}

fn tell_times(
    report: &mut Report,
    name: &str,
    (shape, way): (&Shape, Way),
    (books, started): (&Books, Instant),
) {
    let since = |at: Instant| at.duration_since(started).as_secs_f64();
    let wall = since(books.last_finish);
    let floor = shape.floor();
    let is_promised = shape.is_whole && way != Way::Limited;
    if shape.is_at_once() {
        let budget = match is_promised && way == Way::InProcess {
            true => Budget::AtLeast(1_000.0),
            false => Budget::None,
        };
        let rate = count(shape.workloads()) / since(books.last_admission);
        report.add(&format!("{name}: admissions"), rate, "/s", budget);
        report.add(&format!("{name}: until all have finished"), wall, "s", Budget::None);
    } else {
        let is_baseline = shape.name == Shape::baseline().name;
        let budget = match is_promised && is_baseline {
            true => Budget::AtMost(1.25 * floor),
            false => Budget::None,
        };
        report.add(&format!("{name}: until all have finished"), wall, "s", budget);
        report.add(&format!("{name}: that over its floor"), wall / floor, "x", Budget::None);
        let rate = count(shape.workloads()) / since(books.last_admission);
        report.add(&format!("{name}: admissions"), rate, "/s", Budget::None);
        report.add(&format!("{name}: quota in use"), books.usage(), "%", Budget::None);
    }
    println!("\n| time to admission, ms | average | p50 | p99 | max |\n|---|---|---|---|---|");
    for (class, mut waits) in books.waits() {
        let average = waits.iter().sum::<f64>() / count(waits.len());
        let [p50, p99, max] = [50, 99, 100].map(|percent| percentile(&mut waits, percent));
        println!("| {class} | {average:.0} | {p50:.0} | {p99:.0} | {max:.0} |");
    }
    println!();
}

fn tell_costs(
    report: &mut Report,
    name: &str,
    shape: &Shape,
    played: &Played,
    (before, after): (&Taken, &Taken),
) {
    let each = 1.0 / count(shape.workloads());
    let cpu = after.cpu - before.cpu;
    report.add(&format!("{name}: CPU, all of it"), cpu, "s", Budget::None);
    report.add(&format!("{name}: CPU per workload"), cpu * 1000.0 * each, "ms", Budget::None);
    if let (Some(before), Some(after)) = (before.controller, after.controller) {
        let what = format!("{name}: CPU, of it the controller");
        report.add(&what, after - before, "s", Budget::None);
    }
    let memory = played.memory / 1e6;
    report.add(&format!("{name}: resident memory, most"), memory, "MB", Budget::None);
    let is_write = |(what, _): &(String, f64)| {
        ["all", "create ", "update ", "patch ", "delete "].iter().any(|it| what.starts_with(it))
    };
    let made = difference(&before.requests, &after.requests);
    for (what, requests) in made.into_iter().filter(is_write) {
        println!("  {what}: {requests} ({:.2} per workload)", requests * each);
        if what == "all" {
            report.add(&format!("{name}: writes per workload"), requests * each, "", Budget::None);
        }
    }
    let Played { books, conflicts, failures, .. } = played;
    let evictions = count(books.evictions);
    report.add(&format!("{name}: evictions"), evictions, "", Budget::None);
    println!("  of the load: {conflicts} writes in conflict, {failures} failed otherwise");
}

fn tell_cycles(report: &mut Report, name: &str, metrics: &Metrics, admissions: usize) {
    let mut text = String::new();
    metrics.write(&mut text).unwrap();
    let sum = |name: &str| -> f64 {
        let lines = text.lines().filter_map(|line| line.strip_prefix(name));
        let values = lines.filter_map(|rest| rest.rsplit(' ').next()?.parse::<f64>().ok());
        values.sum()
    };
    let cycles = sum("kueue_admission_attempts_total");
    let visited = sum("lockstep_queue_visited_workloads_total");
    let seconds = sum("kueue_admission_attempt_duration_seconds_sum");
    println!("  {admissions} admissions in {cycles} cycles, {visited} workloads visited");
    report.add(&format!("{name}: all cycles together"), seconds, "s", Budget::None);
    report.add(&format!("{name}: visited per cycle"), visited / cycles, "", Budget::None);
    let per_admission = visited / count(admissions);
    report.add(&format!("{name}: visited per admission"), per_admission, "", Budget::None);
}
