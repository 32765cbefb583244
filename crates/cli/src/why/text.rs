//! A report for people, readable without colours.

use std::fmt::Write;

use jiff::Timestamp;
use lockstep_api::duration::human;

use super::{place::Holder, report::Report};
use crate::queueing::{at, words};

/// The lines of a report: what it is and how it stands, then what there is to say, label by label.
pub(super) fn render(report: &Report, now: Timestamp) -> String {
    let mut text = format!("{}\n", report.summary);
    let mut say = |label: &str, lines: &[String]| {
        let mut label = label;
        for line in lines {
            // Written into a String, which takes everything.
            let _ = writeln!(text, "  {label:<8} {line}");
            label = "";
        }
    };
    if let Some((reason, message)) = &report.because {
        say("because", &[words(reason, message)]);
    }
    // Who is to be tried again later stands in no line, and asks all the same.
    if report.place.is_some() || report.retry_at.is_some() {
        say("asks for", report.asks.as_slice());
    }
    if let Some(place) = &report.place {
        let after = match place.before.as_slice() {
            [] => String::new(),
            before => format!(", after {}", before.join(", ")),
        };
        say("place", &[format!("{} of {}{after}", place.place, place.of)]);
    }
    let mut holders: Vec<String> =
        report.holders.iter().map(|holder| holder_words(holder, report)).collect();
    if report.holders_more > 0 {
        holders.push(format!("and {} more", report.holders_more));
    }
    say("held by", &holders);
    say("stage", report.stage.as_slice());
    say("pods", &report.pods);
    say(
        "deadline",
        &report.deadline.map(|until| until_words(until, now)).into_iter().collect::<Vec<_>>(),
    );
    say("evicted", report.evictions.as_slice());
    if report.requeues > 0 {
        say("requeued", &[often(report.requeues)]);
    }
    let retry = report.retry_at.map(|when| format!("tried again {}", at(when, now)));
    say("retry", retry.as_slice());
    say("to go on", report.change.as_slice());
    text
}

/// `job/train: 4 cpu, 4Gi memory of flavor spot`.
fn holder_words(holder: &Holder, report: &Report) -> String {
    let mut flavors: Vec<&str> = Vec::new();
    for (flavor, _) in holder.held.keys() {
        if !flavors.contains(&flavor.as_str()) {
            flavors.push(flavor);
        }
    }
    let of_flavor = |flavor: &str| {
        let held = holder.held.iter().filter(|((its, _), _)| its == flavor);
        let held: Vec<String> =
            held.map(|((_, resource), amount)| format!("{amount} {resource}")).collect();
        format!("{} of flavor {flavor}", held.join(", "))
    };
    let held: Vec<String> = flavors.into_iter().map(of_flavor).collect();
    let mut place = String::new();
    if holder.namespace != report.namespace {
        place = format!(" ({})", holder.namespace);
    }
    if report.cluster_queue.as_deref() != Some(&holder.cluster_queue) {
        place = format!("{place} through ClusterQueue {}", holder.cluster_queue);
    }
    format!("{}{place}: {}", holder.what, held.join("; "))
}

fn until_words(until: Timestamp, now: Timestamp) -> String {
    let left = until.duration_since(now).as_secs();
    let left = if left > 0 { format!("{} left", human(left)) } else { "is over".to_owned() };
    format!("{until} ({left}); then it is evicted and tried again later")
}

fn often(count: i64) -> String {
    if count == 1 { "once so far".to_owned() } else { format!("{count} times so far") }
}
