//! Kinds without a description of their own: every field, in words.

use serde_json::Value;

use super::{
    object_head,
    text::{Text, scalar},
};

/// Fields of the metadata that `object_head` shows, or that nobody reads.
const KNOWN: [&str; 5] = ["annotations", "labels", "managedFields", "name", "namespace"];

/// Describes any object.
pub(super) fn describe(object: &Value, text: &mut Text) {
    object_head(object, text);
    text.field(0, "API Version", scalar(&object["apiVersion"]));
    text.field(0, "Kind", scalar(&object["kind"]));
    for (key, value) in object.as_object().into_iter().flatten() {
        match (key.as_str(), value) {
            ("apiVersion" | "kind", _) => {}
            ("metadata", Value::Object(metadata)) => {
                text.line(0, "Metadata:");
                for (key, value) in
                    metadata.iter().filter(|(key, _)| !KNOWN.contains(&key.as_str()))
                {
                    push(1, &label(key), value, text);
                }
            }
            _ => push(0, &label(key), value, text),
        }
    }
}

fn push(level: usize, label: &str, value: &Value, text: &mut Text) {
    match value {
        Value::Object(fields) => {
            text.line(level, &format!("{label}:"));
            for (key, value) in fields {
                push(level + 1, &self::label(key), value, text);
            }
        }
        Value::Array(items) => {
            text.line(level, &format!("{label}:"));
            for item in items {
                match item {
                    Value::Object(fields) => {
                        for (key, value) in fields {
                            push(level + 1, &self::label(key), value, text);
                        }
                    }
                    other => text.line(level + 1, &scalar(other)),
                }
            }
        }
        other => text.field(level, label, scalar(other)),
    }
}

/// `activeDeadlineSeconds` as `Active Deadline Seconds`; keys that are no field names stay.
fn label(key: &str) -> String {
    if !key.chars().all(|c| c.is_ascii_alphanumeric()) {
        return key.to_owned();
    }
    let mut words = String::new();
    let mut was_lower = false;
    for (at, letter) in key.chars().enumerate() {
        if at == 0 {
            words.extend(letter.to_uppercase());
        } else {
            if letter.is_uppercase() && was_lower {
                words.push(' ');
            }
            words.push(letter);
        }
        was_lower = letter.is_lowercase();
    }
    // Words that are abbreviations are written as such: kubectl's list.
    let words = words.split(' ').map(|word| match word {
        "Api" | "Url" | "Uid" | "Guid" => word.to_uppercase(),
        _ => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_names_become_words() {
        for (key, want) in [
            ("activeDeadlineSeconds", "Active Deadline Seconds"),
            ("uid", "UID"),
            ("podIP", "Pod IP"),
            ("apiVersion", "API Version"),
            ("app.kubernetes.io/name", "app.kubernetes.io/name"),
        ] {
            assert_eq!(label(key), want);
        }
    }
}
