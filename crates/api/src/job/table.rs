//! A Job in one line.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    duration::{age, human, since},
    json::{at, integer, list, text},
    selector::LabelSelector,
    strategy::{Column, Json},
    table::{self, AGE, NAME, column, or_none, wide},
};

pub(super) const COLUMNS: &[Column] = &[
    NAME,
    column("Status", "How far the job has come."),
    column("Completions", "How many pods succeeded, of how many wanted."),
    column("Duration", "How long it ran, or has been running."),
    AGE,
    wide("Containers", "Names of the containers of its pods."),
    wide("Images", "Images of the containers of its pods."),
    wide("Selector", "Labels of its pods."),
];

pub(super) fn row(object: &Json, now: Timestamp) -> Vec<Value> {
    let mut cells = vec![
        table::name(object),
        status_cell(object).into(),
        completions_cell(object).into(),
        duration_cell(object, now).into(),
        age(object, now).into(),
    ];
    let spec = at(object, &["spec"]).and_then(Value::as_object);
    cells.extend(template_cells(spec));
    cells
}

/// Containers, images and selector of the pods that the spec of a Job has.
pub(super) fn template_cells(spec: Option<&Json>) -> [Value; 3] {
    let empty = Json::new();
    let spec = spec.unwrap_or(&empty);
    let containers = list(spec, &["template", "spec", "containers"]);
    let joined = |member: &str| {
        let texts = containers.iter().map(|one| one[member].as_str().unwrap_or_default());
        texts.collect::<Vec<_>>().join(",")
    };
    [joined("name").into(), joined("image").into(), selector_cell(spec).into()]
}

fn status_cell(object: &Json) -> &'static str {
    // Of several conditions of one type the first decides.
    let is_true = |kind: &str| {
        list(object, &["status", "conditions"])
            .iter()
            .find(|condition| condition["type"] == kind)
            .is_some_and(|condition| condition["status"] == "True")
    };
    let is_going = at(object, &["metadata", "deletionTimestamp"]).is_some_and(Value::is_string);
    if is_true("Complete") {
        "Complete"
    } else if is_true("Failed") {
        "Failed"
    } else if is_going {
        "Terminating"
    } else if is_true("Suspended") {
        "Suspended"
    } else if is_true("FailureTarget") {
        "FailureTarget"
    } else if is_true("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

fn completions_cell(object: &Json) -> String {
    let succeeded = integer(object, &["status", "succeeded"]).unwrap_or_default();
    let parallelism = integer(object, &["spec", "parallelism"]).unwrap_or_default();
    match integer(object, &["spec", "completions"]) {
        Some(completions) => format!("{succeeded}/{completions}"),
        None if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        None => format!("{succeeded}/1"),
    }
}

fn duration_cell(object: &Json, now: Timestamp) -> String {
    let start = text(object, &["status", "startTime"]);
    let end = text(object, &["status", "completionTime"]);
    match (start.parse::<Timestamp>(), end.parse::<Timestamp>()) {
        (Err(_), _) => String::new(),
        (Ok(_), Err(_)) => since(start, now),
        (Ok(start), Ok(end)) => human(end.duration_since(start).as_secs()),
    }
}

fn selector_cell(spec: &Json) -> String {
    let selector =
        at(spec, &["selector"]).and_then(|value| meta::LabelSelector::deserialize(value).ok());
    match LabelSelector::from_meta(selector.as_ref()) {
        Ok(selector) => or_none(selector.to_string()),
        Err(_) => "<error>".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn condition(kind: &str) -> Value {
        json!({"type": kind, "status": "True"})
    }

    // rule: job 1.7
    #[test]
    fn the_first_condition_in_order_is_the_status() {
        let cases = [
            (json!([]), "Running"),
            (json!([condition("SuccessCriteriaMet")]), "SuccessCriteriaMet"),
            (json!([condition("SuccessCriteriaMet"), condition("Complete")]), "Complete"),
            (json!([condition("FailureTarget")]), "FailureTarget"),
            (json!([condition("FailureTarget"), condition("Failed")]), "Failed"),
            (json!([condition("Suspended"), condition("FailureTarget")]), "Suspended"),
            (json!([{"type": "Failed", "status": "False"}, condition("Failed")]), "Running"),
        ];
        for (conditions, want) in cases {
            let job = json!({"status": {"conditions": conditions}});
            assert_eq!(status_cell(job.as_object().unwrap()), want, "{conditions}");
        }
        let going = json!({
            "metadata": {"deletionTimestamp": "2026-11-15T12:00:00Z"},
            "status": {"conditions": [condition("Suspended")]},
        });
        assert_eq!(status_cell(going.as_object().unwrap()), "Terminating");
    }

    // rule: job 1.7
    #[test]
    fn completions_say_of_how_many() {
        let cases = [
            (json!({"spec": {"completions": 3}, "status": {"succeeded": 1}}), "1/3"),
            (json!({"spec": {"parallelism": 4}}), "0/1 of 4"),
            (json!({"spec": {"parallelism": 1}}), "0/1"),
            (json!({"spec": {}}), "0/1"),
        ];
        for (job, want) in cases {
            assert_eq!(completions_cell(job.as_object().unwrap()), want);
        }
    }

    // rule: job 1.7
    #[test]
    fn durations_run_until_completion() {
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        let cases = [
            (json!({"status": {}}), ""),
            (json!({"status": {"startTime": "2026-11-15T11:59:00Z"}}), "60s"),
            (
                json!({"status": {
                    "startTime": "2026-11-15T11:00:00Z",
                    "completionTime": "2026-11-15T11:00:05Z",
                }}),
                "5s",
            ),
        ];
        for (job, want) in cases {
            assert_eq!(duration_cell(job.as_object().unwrap(), now), want);
        }
    }

    // rule: job 1.7
    #[test]
    fn wide_cells_show_containers_and_selector() {
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        let job = json!({"spec": {
            "selector": {"matchLabels": {"b": "2", "a": "1"}},
            "template": {"spec": {"containers": [
                {"name": "x", "image": "i"}, {"name": "y", "image": "j"},
            ]}},
        }});
        let cells = row(job.as_object().unwrap(), now);
        assert_eq!(cells[5..], ["x,y", "i,j", "a=1,b=2"]);
    }
}
