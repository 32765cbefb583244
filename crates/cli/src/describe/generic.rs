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

/// Describes a Secret: how much, never what.
pub(super) fn secret(object: &Value, text: &mut Text) {
    object_head(object, text);
    text.line(0, "");
    text.field(0, "Type", scalar(&object["type"]));
    text.line(0, "");
    text.line(0, "Data");
    text.line(0, "====");
    for (key, value) in object["data"].as_object().into_iter().flatten() {
        let encoded = value.as_str().unwrap_or_default();
        let padding = encoded.bytes().rev().take_while(|&byte| byte == b'=').count();
        let bytes = (encoded.len() / 4 * 3).saturating_sub(padding);
        text.line(0, &format!("{key}:\t{bytes} bytes"));
    }
}

/// Describes a ConfigMap: the texts themselves.
pub(super) fn config_map(object: &Value, text: &mut Text) {
    object_head(object, text);
    for (title, field) in [("Data", "data"), ("BinaryData", "binaryData")] {
        text.line(0, "");
        text.line(0, title);
        text.line(0, "====");
        for (key, value) in object[field].as_object().into_iter().flatten() {
            if field == "binaryData" {
                text.line(0, &format!("{key}: {} bytes", scalar(value).len() / 4 * 3));
                continue;
            }
            text.line(0, &format!("{key}:"));
            text.line(0, "----");
            for line in scalar(value).lines() {
                text.line(0, line);
            }
            text.line(0, "");
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
    match words.as_str() {
        "Uid" => "UID".to_owned(),
        _ => words,
    }
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
            ("app.kubernetes.io/name", "app.kubernetes.io/name"),
        ] {
            assert_eq!(label(key), want);
        }
    }
}
