//! Levels what two servers cannot agree on.

use std::{collections::BTreeMap, sync::LazyLock};

use regex::Regex;
use serde_json::Value;

/// What looks like this is the server's own, with the word for it.
static OWN: LazyLock<[(Regex, &str); 9]> = LazyLock::new(|| {
    let pattern = |text: &str| Regex::new(text).expect("the pattern is one");
    [
        (pattern(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uid>"),
        (pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "<moment>"),
        (pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"), "<microseconds>"),
        (pattern(r"^\d+[smh](\d+s)?$"), "<age>"),
        (pattern(r"^(10|127)\.\d+\.\d+\.\d+$"), "<address>"),
        (pattern(r"current: \d+$"), "current: <version>"),
        // In an object that a message shows.
        (pattern(r#"resourceVersion\\":\\"\d+"#), r#"resourceVersion\":\"<version>"#),
        (pattern(r"in record \(\d+\)"), "in record (<version>)"),
        // Go names a scheme after the file that made it, which depends on how it was built.
        (pattern(r#"in scheme "[^"]+""#), "in scheme <scheme>"),
    ]
});

/// Members whose values are the server's own whatever they look like.
const MEMBERS: [(&str, &str); 4] = [
    ("resourceVersion", "<version>"),
    ("continue", "<continue>"),
    ("nodePort", "<port>"),
    ("healthCheckNodePort", "<port>"),
];

/// Replaces what is the server's own by words for it: `saved` has what was taken from its answers.
pub(super) fn level(value: &mut Value, saved: &BTreeMap<String, String>) {
    match value {
        Value::String(text) => *text = leveled(text, saved),
        Value::Array(list) => list.iter_mut().for_each(|value| level(value, saved)),
        Value::Object(members) => {
            // Keys of managed fields may hold uids too.
            let all = std::mem::take(members).into_iter().map(|(key, mut value)| {
                match MEMBERS.iter().find(|(member, _)| *member == key) {
                    Some((_, word)) if !is_empty(&value) => value = (*word).into(),
                    _ => level(&mut value, saved),
                }
                (leveled(&key, saved), value)
            });
            *members = all.collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value == "" || value == "0" || value == 0
}

fn leveled(text: &str, saved: &BTreeMap<String, String>) -> String {
    let mut text = text.to_owned();
    for (name, value) in saved.iter().filter(|(_, value)| value.len() > 3) {
        text = text.replace(value.as_str(), &format!("<{name}>"));
    }
    for (pattern, word) in &*OWN {
        text = pattern.replace_all(&text, *word).into_owned();
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_the_servers_own_is_leveled() {
        let saved = BTreeMap::from([("name".to_owned(), "job-x7z4q".to_owned())]);
        let mut value = json!({
            "metadata": {
                "uid": "6f1f6a44-2a3c-4a80-9a57-9f9d3c1c2f10", "resourceVersion": "123",
                "creationTimestamp": "2026-01-02T03:04:05Z", "name": "job-x7z4q", "generation": 3
            },
            "message": "UID 6f1f6a44-2a3c-4a80-9a57-9f9d3c1c2f10 of job-x7z4q",
            "rows": [{"cells": ["a", "3s", 5]}],
            "list": {"resourceVersion": "0", "continue": ""}
        });
        level(&mut value, &saved);
        let wanted = json!({
            "metadata": {
                "uid": "<uid>", "resourceVersion": "<version>",
                "creationTimestamp": "<moment>", "name": "<name>", "generation": 3
            },
            "message": "UID <uid> of <name>",
            "rows": [{"cells": ["a", "<age>", 5]}],
            "list": {"resourceVersion": "0", "continue": ""}
        });
        assert_eq!(value, wanted);
    }
}
