//! A JobSet in one line.

use crate::{
    custom::{Printed, columns},
    strategy::Column,
};

/// The columns of JobSets, beside their name.
pub(crate) const PRINTED: [Printed; 5] = [
    Printed::text("TerminalState", ".status.terminalState", "Final state of JobSet"),
    Printed::text("Restarts", ".status.restarts", "Number of restarts"),
    Printed::text("Completed", ".status.conditions[?(@.type==\"Completed\")].status", ""),
    Printed::text("Suspended", ".spec.suspend", "JobSet suspended"),
    Printed::age("Time this JobSet was created"),
];

pub(super) static COLUMNS: [Column; 6] = columns(&PRINTED);

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::custom::row;

    // rule: jobset 1.1
    #[test]
    fn a_row_shows_how_far_the_set_is() {
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        let fresh = json!({
            "metadata": {"name": "js", "creationTimestamp": "2026-11-15T11:59:00Z"},
            "spec": {"suspend": true},
        });
        let cells = row(&PRINTED, fresh.as_object().unwrap(), now);
        assert_eq!(Value::from(cells), json!(["js", null, null, null, "true", "60s"]));
        let done = json!({
            "metadata": {"name": "js", "creationTimestamp": "2026-11-15T11:59:00Z"},
            "spec": {},
            "status": {
                "restarts": 0, "terminalState": "Completed",
                "conditions": [{"type": "Completed", "status": "True"}],
            },
        });
        let cells = row(&PRINTED, done.as_object().unwrap(), now);
        assert_eq!(Value::from(cells), json!(["js", "Completed", "0", "True", null, "60s"]));
    }
}
