//! The pieces of a Table: what the server sends when a client wants rows rather than objects.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    duration::age,
    json::text,
    strategy::{Column, Json, Strategy},
};

/// What an empty cell says.
pub const NONE: &str = "<none>";

/// The column that identifies an object.
pub const NAME: Column = Column {
    name: "Name",
    kind: "string",
    format: "name",
    description: "Name of the object, unique among its kind in its namespace.",
    priority: 0,
};

/// How long ago the object was created.
pub const AGE: Column = column("Age", "How long ago the object was created.");

/// The columns of kinds that have no more to show.
pub const NAME_AND_AGE: &[Column] = &[NAME, AGE];

/// A text column that is always shown.
pub const fn column(name: &'static str, description: &'static str) -> Column {
    Column { name, kind: "string", format: "", description, priority: 0 }
}

/// A text column of `-o wide`.
pub const fn wide(name: &'static str, description: &'static str) -> Column {
    Column { priority: 1, ..column(name, description) }
}

/// The row of kinds that show no more than a name and an age.
pub fn name_and_age(object: &Json, now: Timestamp) -> Vec<Value> {
    vec![name(object), age(object, now).into()]
}

/// The cell of [`NAME`].
pub fn name(object: &Json) -> Value {
    text(object, &["metadata", "name"]).into()
}

/// One of `columnDefinitions`.
pub fn definition(column: &Column) -> Value {
    json!({
        "name": column.name,
        "type": column.kind,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    })
}

/// One of a Table's `rows`, without its `object`.
pub fn row(strategy: &dyn Strategy, object: &Json, now: Timestamp) -> Json {
    let mut row = Json::new();
    row.insert("cells".to_owned(), strategy.row(object, now).into());
    let conditions = strategy.row_conditions(object);
    if !conditions.is_empty() {
        row.insert("conditions".to_owned(), conditions.into());
    }
    row
}

/// A comma-separated list of at most three texts, and how many more there are; `empty` when there
/// are none.
pub fn first_three(all: &[String], empty: &str) -> String {
    const MAX: usize = 3;
    match all {
        [] => empty.to_owned(),
        _ if all.len() > MAX => {
            format!("{} + {} more...", all[..MAX].join(","), all.len() - MAX)
        }
        _ => all.join(","),
    }
}

/// Labels as `k=v,k=v`, or [`NONE`].
pub fn labels(labels: Option<&Value>) -> String {
    let listed: Vec<String> = labels
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    or_none(listed.join(","))
}

/// The text itself, or [`NONE`] for an empty one.
pub fn or_none(text: String) -> String {
    if text.is_empty() { NONE.to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::registry;

    #[test]
    fn every_row_has_a_cell_for_each_column() {
        let empty = json!({"metadata": {"name": "x"}});
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        for resource in registry().iter() {
            let strategy = &*resource.strategy;
            let cells = strategy.row(empty.as_object().unwrap(), now);
            assert_eq!(cells.len(), strategy.columns().len(), "{resource:?}");
            let names = strategy.columns().iter().filter(|column| column.format == "name");
            assert_eq!(names.count(), 1, "{resource:?}");
        }
    }

    #[test]
    fn only_three_items_are_listed() {
        let cases = [
            (0, "<none>"),
            (1, "0"),
            (3, "0,1,2"),
            (4, "0,1,2 + 1 more..."),
            (12, "0,1,2 + 9 more..."),
        ];
        for (count, want) in cases {
            let all: Vec<String> = (0..count).map(|n| n.to_string()).collect();
            assert_eq!(first_three(&all, NONE), want);
        }
    }

    #[test]
    fn column_definitions_carry_every_member() {
        let definitions =
            registry().get("", "v1", "secrets").unwrap().strategy.column_definitions();
        assert_eq!(definitions[0]["name"], "Name");
        assert_eq!(definitions[0]["format"], "name");
        assert_eq!(definitions[0]["priority"], 0);
        assert_eq!(definitions[1]["format"], "");
    }
}
