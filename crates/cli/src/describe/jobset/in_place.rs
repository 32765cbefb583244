//! Restarts in place: where the workers are, which agent is around them, and where the time of the
//! last restarts went.

use lockstep_api::{
    jobset::{InPlaceRestart, InPlaceStatus},
    labels::jobset::{IN_PLACE_RESTARTS, IN_PLACE_TIMEOUT},
};
use serde_json::{Value, json};

use super::super::{agent, moment, text::Text};
use crate::run::jobset::{
    JobSet,
    in_place::{cause, doing, group_width, span},
};

/// How many restarts are shown with all their parts; those before them have one line each.
const DRAWN: usize = 4;

/// How many columns a restart is drawn with.
const COLUMNS: i64 = 40;

/// Adds what there is to say about restarts in place; nothing for a set that does not ask for them.
pub(super) fn describe(set: &JobSet, object: &Value, jobs: &[&Value], text: &mut Text) {
    let annotations = &object["metadata"]["annotations"];
    let Some(timeout) = annotations[IN_PLACE_TIMEOUT].as_str() else { return };
    text.end_block();
    text.line(0, "In-Place Restart:");
    text.field(1, "Timeout", timeout);
    let Some(told) = set.in_place() else {
        let is_begun = annotations[IN_PLACE_RESTARTS].is_string();
        let why =
            if is_begun { "<unknown>" } else { "<none>: nobody leads the workers of the set" };
        text.field(1, "Phase", why);
        return text.end_block();
    };
    text.field(1, "Phase", &told.phase);
    text.field(1, "Epoch", told.epoch.to_string());
    text.field(1, "Restarts", restarts(set, told));
    if let Some(agent) = agents(jobs) {
        text.field(1, "Agent", agent);
    }
    workers(set, told, text);
    for restart in last(told, text) {
        waterfall(restart, text);
    }
    text.end_block();
}

fn restarts(set: &JobSet, told: &InPlaceStatus) -> String {
    let budget = set.budget();
    let left = budget.as_deref().unwrap_or("<none> allowed: there is no failure policy");
    match told.restarts {
        0 => left.to_owned(),
        count => format!("{count} in all; {left}"),
    }
}

/// In which Jobs an agent is, around which container, and how it starts the worker.
fn agents(jobs: &[&Value]) -> Option<String> {
    let agents: Vec<agent::Agent> = jobs.iter().filter_map(|job| agent::of_job(job)).collect();
    let first = agents.first()?;
    let amount = match (agents.len(), jobs.len()) {
        (1, 1) => "its Job".to_owned(),
        (some, all) if some == all => format!("all {all} Jobs"),
        (some, all) => format!("{some} of {all} Jobs"),
    };
    Some(format!("put into {amount}: {first}"))
}

fn workers(set: &JobSet, told: &InPlaceStatus, text: &mut Text) {
    text.field(1, "Workers", format!("{}: {}", set.workers(), numbers(set)));
    let groups = doing(told);
    if groups.is_empty() {
        return text.end_block();
    }
    text.end_block();
    text.line(2, "State\tEpoch\tCount\tWorkers");
    text.line(2, "-----\t-----\t-----\t-------");
    for group in groups {
        let epoch = group.epoch.map_or_else(|| "<none>".to_owned(), |epoch| epoch.to_string());
        let cells = [&group.state, &epoch, &group.count.to_string(), &group.places];
        text.line(2, &cells.map(String::as_str).join("\t"));
    }
    text.end_block();
}

/// Which numbers the workers of each replicated job have: `driver 0, workers 1-6 (2 Jobs of 3)`.
fn numbers(set: &JobSet) -> String {
    let mut first = 0;
    let mut parts = Vec::new();
    for group in &set.spec.replicated_jobs {
        let (jobs, width) = (i64::from(group.replicas), group_width(group));
        let end = first + jobs * width;
        match end - first {
            ..=0 => continue,
            1 => parts.push(format!("{} {first}", group.name)),
            _ if jobs == 1 => parts.push(format!("{} {first}-{}", group.name, end - 1)),
            _ => {
                let name = &group.name;
                parts.push(format!("{name} {first}-{} ({jobs} Jobs of {width})", end - 1));
            }
        }
        first = end;
    }
    parts.join(", ")
}

/// Lists the restarts that are not drawn; the answer is those that are.
fn last<'a>(told: &'a InPlaceStatus, text: &mut Text) -> &'a [InPlaceRestart] {
    let (listed, drawn) =
        told.last_restarts.split_at(told.last_restarts.len().saturating_sub(DRAWN));
    for restart in listed {
        text.line(1, &title(restart));
    }
    drawn
}

/// One restart: a line for each part, drawn from where the part before it ended.
fn waterfall(restart: &InPlaceRestart, text: &mut Text) {
    text.line(1, &title(restart));
    let total = restart.total_micros().max(1);
    let mut before = 0;
    for (part, micros) in restart.parts() {
        let bar = bar(before, micros, total);
        before += micros.max(0);
        let line = format!("{part:<8}  {:>8}  {bar}", span(micros));
        text.line(2, line.trim_end());
    }
}

fn title(restart: &InPlaceRestart) -> String {
    let at = restart.time.as_ref().map(|time| json!(time.0.to_string())).unwrap_or_default();
    let took = span(restart.total_micros());
    format!("To epoch {} in {took}, {}: {}", restart.epoch, moment(&at), cause(restart))
}

/// A part of a whole, drawn: as many blanks as came before it, then as much as it takes, but at
/// least something where there is something.
fn bar(before: i64, micros: i64, total: i64) -> String {
    if micros <= 0 {
        return String::new();
    }
    let column = |at: i64| (at.min(total).saturating_mul(COLUMNS) + total / 2) / total;
    let from = column(before).min(COLUMNS - 1);
    let length = (column(before.saturating_add(micros)) - from).max(1);
    let times = |count: i64| usize::try_from(count).unwrap_or_default();
    " ".repeat(times(from)) + &"#".repeat(times(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_drawn_where_it_was() {
        let cases = [
            (0, 0, 100, ""),
            (0, 100, 100, "########################################"),
            (0, 50, 100, "####################"),
            (50, 25, 100, "                    ##########"),
            (0, 1, 1_000_000, "#"),
            (999_999, 1, 1_000_000, "                                       #"),
            (5, -3, 100, ""),
        ];
        for (before, micros, total, want) in cases {
            assert_eq!(bar(before, micros, total), want, "{micros} after {before} of {total}");
        }
    }
}
