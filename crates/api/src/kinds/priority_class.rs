//! PriorityClass: a name for a priority.

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    duration::age,
    field::{ErrorList, FieldError, Path},
    json::{flag, integer, object_mut, set_default, text},
    kinds::immutable,
    names,
    strategy::{Column, Json, Strategy, WriteContext},
    table::{self, AGE, NAME, column},
};

/// The highest priority a user may define.
pub const HIGHEST_USER_PRIORITY: i64 = 1_000_000_000;

/// The classes every cluster has: name and value.
pub const SYSTEM_CLASSES: [(&str, i64); 2] = [
    ("system-node-critical", 2 * HIGHEST_USER_PRIORITY + 1000),
    ("system-cluster-critical", 2 * HIGHEST_USER_PRIORITY),
];

const COLUMNS: &[Column] = &[
    NAME,
    Column { kind: "integer", ..column("Value", "The priority of pods of this class.") },
    Column {
        kind: "boolean",
        ..column("Global-Default", "Whether pods that name no class are of this one.")
    },
    AGE,
    column("PreemptionPolicy", "Whether pods of this class may push others out."),
];

/// PriorityClass.
#[derive(Debug)]
pub struct PriorityClassStrategy;

impl Strategy for PriorityClassStrategy {
    fn fill_defaults(&self, object: &mut Json) {
        set_default(object, "preemptionPolicy", "PreemptLowerPriority");
    }

    /// A class has a generation, but none of its changes counts as a new one.
    fn prepare_create(&self, object: &mut Json, _context: &WriteContext) {
        object_mut(object, "metadata").insert("generation".to_owned(), 1.into());
    }

    fn validate_create(&self, object: &Json) -> ErrorList {
        let mut errors = ErrorList::new();
        let name = text(object, &["metadata", "name"]);
        let value = integer(object, &["value"]).unwrap_or_default();
        if name.starts_with("system-") {
            if let Some(why) = not_a_system_class(name, value, flag(object, &["globalDefault"])) {
                let path = Path::new("metadata").child("name");
                let why = format!(
                    "priority class names with 'system-' prefix are reserved for system use only. \
                     error: {why}"
                );
                errors.push(FieldError::forbidden(&path, &why));
            }
        } else if value > HIGHEST_USER_PRIORITY {
            let why = format!(
                "maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
            );
            errors.push(FieldError::forbidden(&Path::new("value"), &why));
        }
        let path = Path::new("preemptionPolicy");
        match object.get("preemptionPolicy").and_then(Value::as_str) {
            None | Some("PreemptLowerPriority" | "Never") => {}
            Some("") => errors.push(FieldError::required(&path, "")),
            Some(other) => {
                let supported = ["PreemptLowerPriority", "Never"];
                errors.push(FieldError::not_supported(&path, other, &supported));
            }
        }
        errors
    }

    fn validate_update(&self, object: &Json, old: &Json) -> ErrorList {
        let mut errors = ErrorList::new();
        let value = |of: &Json| integer(of, &["value"]).unwrap_or_default();
        if value(object) != value(old) {
            let why = "may not be changed in an update.";
            errors.push(FieldError::forbidden(&Path::new("value"), why));
        }
        errors.extend(immutable(object, old, "preemptionPolicy"));
        errors
    }

    fn validate_name(&self, name: &str, is_prefix: bool) -> Vec<String> {
        names::name_is_dns_subdomain(name, is_prefix)
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn row(&self, object: &Json, now: Timestamp) -> Vec<Value> {
        vec![
            table::name(object),
            integer(object, &["value"]).unwrap_or_default().into(),
            flag(object, &["globalDefault"]).into(),
            age(object, now).into(),
            text(object, &["preemptionPolicy"]).into(),
        ]
    }
}

fn not_a_system_class(name: &str, value: i64, is_default: bool) -> Option<String> {
    match SYSTEM_CLASSES.iter().find(|(known, _)| *known == name) {
        None => Some(format!("{name} is not a known system priority class")),
        Some((_, wanted)) if value != *wanted => {
            Some(format!("value of {name} PriorityClass must be {wanted}"))
        }
        Some(_) if is_default => {
            Some(format!("globalDefault of {name} PriorityClass must be false"))
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn users_stay_below_the_system() {
        let cases = [
            (json!({"metadata": {"name": "a"}, "value": 1_000_000_000}), ""),
            (
                json!({"metadata": {"name": "a"}, "value": 1_000_000_001}),
                "value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
            ),
            (json!({"metadata": {"name": "system-node-critical"}, "value": 2_000_001_000}), ""),
            (
                json!({"metadata": {"name": "system-node-critical"}, "value": 5}),
                "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved \
                 for system use only. error: value of system-node-critical PriorityClass must be \
                 2000001000",
            ),
            (
                json!({"metadata": {"name": "system-x"}, "value": 5}),
                "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved \
                 for system use only. error: system-x is not a known system priority class",
            ),
            (
                json!({"metadata": {"name": "a"}, "preemptionPolicy": "x"}),
                "preemptionPolicy: Unsupported value: \"x\": supported values: \
                 \"PreemptLowerPriority\", \"Never\"",
            ),
        ];
        for (class, want) in cases {
            let errors = PriorityClassStrategy.validate_create(class.as_object().unwrap());
            let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(texts.join("; "), want);
        }
    }

    #[test]
    fn value_and_policy_never_change() {
        let old = json!({"value": 1, "preemptionPolicy": "Never"});
        let new = json!({"value": 2, "preemptionPolicy": "PreemptLowerPriority"});
        let errors = PriorityClassStrategy
            .validate_update(new.as_object().unwrap(), old.as_object().unwrap());
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "value: Forbidden: may not be changed in an update.",
                "preemptionPolicy: Invalid value: \"PreemptLowerPriority\": field is immutable",
            ]
        );
    }
}
