//! A JobSet in one line.

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    duration::age,
    json::{at, list},
    strategy::{Column, Json},
    table::{self, NAME, column},
};

/// A column that is printed, with the path of what it shows.
#[derive(Clone, Debug)]
pub struct Printed {
    /// Header.
    pub name: &'static str,
    /// Type of the cell.
    pub kind: &'static str,
    /// Where the value is.
    pub path: &'static str,
    /// What the column means.
    pub description: &'static str,
}

/// The columns of JobSets, beside their name.
pub const PRINTED: [Printed; 5] = [
    Printed {
        name: "TerminalState",
        kind: "string",
        path: ".status.terminalState",
        description: "Final state of JobSet",
    },
    Printed {
        name: "Restarts",
        kind: "string",
        path: ".status.restarts",
        description: "Number of restarts",
    },
    Printed {
        name: "Completed",
        kind: "string",
        path: ".status.conditions[?(@.type==\"Completed\")].status",
        description: "",
    },
    Printed {
        name: "Suspended",
        kind: "string",
        path: ".spec.suspend",
        description: "JobSet suspended",
    },
    Printed {
        name: "Age",
        kind: "date",
        path: ".metadata.creationTimestamp",
        description: "Time this JobSet was created",
    },
];

pub(super) const COLUMNS: &[Column] = &[
    NAME,
    column(PRINTED[0].name, PRINTED[0].description),
    column(PRINTED[1].name, PRINTED[1].description),
    column(PRINTED[2].name, PRINTED[2].description),
    column(PRINTED[3].name, PRINTED[3].description),
    Column { kind: PRINTED[4].kind, ..column(PRINTED[4].name, PRINTED[4].description) },
];

pub(super) fn row(object: &Json, now: Timestamp) -> Vec<Value> {
    let completed = list(object, &["status", "conditions"])
        .iter()
        .find(|condition| condition["type"] == "Completed")
        .and_then(|condition| condition.get("status"));
    vec![
        table::name(object),
        shown(at(object, &["status", "terminalState"])),
        shown(at(object, &["status", "restarts"])),
        shown(completed),
        shown(at(object, &["spec", "suspend"])),
        age(object, now).into(),
    ]
}

/// The value as text. What is not there stays empty.
fn shown(value: Option<&Value>) -> Value {
    match value {
        None | Some(Value::Null) => Value::Null,
        Some(Value::String(text)) => text.as_str().into(),
        Some(other) => other.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // rule: jobset 1.1
    #[test]
    fn a_row_shows_how_far_the_set_is() {
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        let fresh = json!({
            "metadata": {"name": "js", "creationTimestamp": "2026-11-15T11:59:00Z"},
            "spec": {"suspend": true},
        });
        let cells = row(fresh.as_object().unwrap(), now);
        assert_eq!(Value::from(cells), json!(["js", null, null, null, "true", "60s"]));
        let done = json!({
            "metadata": {"name": "js", "creationTimestamp": "2026-11-15T11:59:00Z"},
            "spec": {},
            "status": {
                "restarts": 0, "terminalState": "Completed",
                "conditions": [{"type": "Completed", "status": "True"}],
            },
        });
        let cells = row(done.as_object().unwrap(), now);
        assert_eq!(Value::from(cells), json!(["js", "Completed", "0", "True", null, "60s"]));
    }
}
