//! A Job in full: kubectl's lines, and what it leaves out of policies and conditions.

use jiff::Timestamp;
use lockstep_api::duration::human;
use serde_json::Value;

use super::{
    agent, moment, object_annotations, owner,
    template::{self, list},
    text::{Text, scalar},
    waits_in,
};
use crate::run::job::Job;

/// So many letters of a list of indexes are shown, and up to the next comma.
const INDEXES_SHOWN: usize = 50;

/// Describes a Job, up to its events.
pub(super) fn describe(job: &Value, text: &mut Text) {
    let (meta, spec, status) = (&job["metadata"], &job["spec"], &job["status"]);
    text.field(0, "Name", scalar(&meta["name"]));
    text.field(0, "Namespace", scalar(&meta["namespace"]));
    text.field(0, "Selector", selector(&spec["selector"]));
    text.map(0, "Labels", &meta["labels"], "=");
    object_annotations(meta, text);
    owner(meta, text);
    text.known(0, "Parallelism", &spec["parallelism"]);
    let completions = scalar(&spec["completions"]);
    text.field(0, "Completions", if completions.is_empty() { "<unset>" } else { &completions });
    text.known(0, "Completion Mode", &spec["completionMode"]);
    text.known(0, "Suspend", &spec["suspend"]);
    let seen = Job::read(job);
    if let Some(queue) = seen.queue.as_deref().filter(|_| seen.is_suspended && !seen.has_ended()) {
        text.field(0, "Waiting", waits_in(queue, &seen.name));
    }
    text.known(0, "Backoff Limit", &spec["backoffLimit"]);
    text.known(0, "Backoff Limit Per Index", &spec["backoffLimitPerIndex"]);
    text.known(0, "Max Failed Indexes", &spec["maxFailedIndexes"]);
    text.known(0, "TTL Seconds After Finished", &spec["ttlSecondsAfterFinished"]);
    text.known(0, "Pod Replacement Policy", &spec["podReplacementPolicy"]);
    text.known(0, "Managed By", &spec["managedBy"]);
    agent::describe(job, text);
    times(status, text);
    if let Some(seconds) = spec["activeDeadlineSeconds"].as_i64() {
        text.field(0, "Active Deadline Seconds", format!("{seconds}s"));
    }
    let count = |field: &str| status[field].as_i64().unwrap_or_default();
    let ready = status["ready"].as_i64().map(|ready| format!(" ({ready} Ready)"));
    let statuses = format!(
        "{} Active{} / {} Succeeded / {} Failed",
        count("active"),
        ready.unwrap_or_default(),
        count("succeeded"),
        count("failed")
    );
    text.field(0, "Pods Statuses", statuses);
    if spec["completionMode"] == "Indexed" {
        text.field(0, "Completed Indexes", indexes(&scalar(&status["completedIndexes"])));
        if status["failedIndexes"].is_string() {
            text.field(0, "Failed Indexes", indexes(&scalar(&status["failedIndexes"])));
        }
    }
    success_policy(&spec["successPolicy"], text);
    failure_policy(&spec["podFailurePolicy"], text);
    conditions(&status["conditions"], text);
    template::describe(&spec["template"], text);
}

fn times(status: &Value, text: &mut Text) {
    if !status["startTime"].is_null() {
        text.field(0, "Start Time", moment(&status["startTime"]));
    }
    if !status["completionTime"].is_null() {
        text.field(0, "Completed At", moment(&status["completionTime"]));
    }
    let at = |field: &str| scalar(&status[field]).parse::<Timestamp>();
    if let (Ok(started), Ok(completed)) = (at("startTime"), at("completionTime")) {
        text.field(0, "Duration", human(completed.duration_since(started).as_secs()));
    }
}

/// A list of indexes, cut where it gets long.
fn indexes(text: &str) -> String {
    if text.is_empty() {
        return "<none>".to_owned();
    }
    match text.get(INDEXES_SHOWN..).and_then(|rest| rest.find(',')) {
        Some(comma) => format!("{}...", &text[..=INDEXES_SHOWN + comma]),
        None => text.to_owned(),
    }
}

/// A label selector as people write it.
pub(super) fn selector(selector: &Value) -> String {
    let equal = selector["matchLabels"].as_object().into_iter().flatten();
    let mut terms: Vec<String> =
        equal.map(|(key, value)| format!("{key}={}", scalar(value))).collect();
    for term in list(&selector["matchExpressions"]) {
        let (key, values) = (scalar(&term["key"]), joined(&term["values"], ","));
        terms.push(match term["operator"].as_str() {
            Some("In") => format!("{key} in ({values})"),
            Some("NotIn") => format!("{key} notin ({values})"),
            Some("DoesNotExist") => format!("!{key}"),
            _ => key,
        });
    }
    terms.sort();
    terms.join(",")
}

fn success_policy(policy: &Value, text: &mut Text) {
    if list(&policy["rules"]).is_empty() {
        return;
    }
    text.line(0, "Success Policy:");
    for (at, rule) in list(&policy["rules"]).iter().enumerate() {
        let count = rule["succeededCount"].as_i64();
        let words = match (rule["succeededIndexes"].as_str(), count) {
            (Some(indexes), Some(count)) => format!("{count} of the indexes {indexes} succeeded"),
            (Some(indexes), None) => format!("the indexes {indexes} succeeded"),
            (None, Some(count)) => format!("{count} indexes succeeded"),
            (None, None) => "<none>".to_owned(),
        };
        text.field(1, &format!("Rule {at}"), words);
    }
}

fn failure_policy(policy: &Value, text: &mut Text) {
    if list(&policy["rules"]).is_empty() {
        return;
    }
    text.line(0, "Pod Failure Policy:");
    for (at, rule) in list(&policy["rules"]).iter().enumerate() {
        let codes = &rule["onExitCodes"];
        let mut when = Vec::new();
        if codes.is_object() {
            let container = match scalar(&codes["containerName"]) {
                name if name.is_empty() => "a container".to_owned(),
                name => format!("container {name}"),
            };
            let not = if codes["operator"] == "NotIn" { "anything but " } else { "" };
            when.push(format!("{container} exits with {not}{}", joined(&codes["values"], ", ")));
        }
        for pattern in list(&rule["onPodConditions"]) {
            when.push(format!("{}={}", scalar(&pattern["type"]), scalar(&pattern["status"])));
        }
        let words = format!("{} when {}", scalar(&rule["action"]), when.join(" or "));
        text.field(1, &format!("Rule {at}"), words);
    }
}

fn conditions(conditions: &Value, text: &mut Text) {
    if list(conditions).is_empty() {
        return;
    }
    text.line(0, "Conditions:");
    text.line(1, "Type\tStatus\tReason\tMessage");
    text.line(1, "----\t------\t------\t-------");
    for condition in list(conditions) {
        let cells = ["type", "status", "reason", "message"].map(|field| scalar(&condition[field]));
        text.line(1, &cells.join("\t"));
    }
}

fn joined(values: &Value, between: &str) -> String {
    list(values).iter().map(scalar).collect::<Vec<_>>().join(between)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_lists_of_indexes_are_cut_at_a_comma() {
        assert_eq!(indexes(""), "<none>");
        assert_eq!(indexes("1,3-5"), "1,3-5");
        let long: Vec<String> = (0..40).map(|i| (2 * i).to_string()).collect();
        let shown = indexes(&long.join(","));
        assert!(shown.ends_with(",...") && shown.len() < 60, "{shown}");
    }

    #[test]
    fn selectors_are_written_as_on_the_command_line() {
        let terms = json!({"matchLabels": {"b": "c"}, "matchExpressions": [
            {"key": "a", "operator": "In", "values": ["x", "y"]},
            {"key": "d", "operator": "DoesNotExist"},
            {"key": "e", "operator": "NotIn", "values": ["z"]},
            {"key": "f", "operator": "Exists"}]});
        assert_eq!(selector(&terms), "!d,a in (x,y),b=c,e notin (z),f");
    }
}
