//! The columns of custom kinds: one list says what a definition prints and what a row shows.

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    duration::since,
    json::{at, list},
    strategy::{Column, Json},
    table::{self, NAME},
};

/// A column that is printed, with the path of what it shows.
#[derive(Clone, Copy, Debug)]
pub struct Printed {
    /// Header.
    pub name: &'static str,
    /// Type of the cell: `string`, `integer` or `date`.
    pub kind: &'static str,
    /// Where the value is: `.a.b`, or the field of one of the conditions.
    pub path: &'static str,
    /// What the column means.
    pub description: &'static str,
    /// 0 for columns always shown, 1 for `-o wide`.
    pub priority: i32,
}

impl Printed {
    /// A column of text.
    pub const fn text(name: &'static str, path: &'static str, description: &'static str) -> Self {
        Self { name, kind: "string", path, description, priority: 0 }
    }

    /// A column of numbers.
    pub const fn number(name: &'static str, path: &'static str, description: &'static str) -> Self {
        Self { kind: "integer", ..Self::text(name, path, description) }
    }

    /// How long ago the object was created.
    pub const fn age(description: &'static str) -> Self {
        Self { kind: "date", ..Self::text("Age", ".metadata.creationTimestamp", description) }
    }

    /// The same column, of `-o wide` only.
    #[must_use]
    pub const fn wide(self) -> Self {
        Self { priority: 1, ..self }
    }

    const fn column(&self) -> Column {
        let Self { name, kind, description, priority, .. } = *self;
        Column { name, kind, format: "", description, priority }
    }

    fn cell(&self, object: &Json, now: Timestamp) -> Value {
        match (found(object, self.path), self.kind) {
            (None | Some(Value::Null), _) => Value::Null,
            (Some(Value::String(moment)), "date") => since(moment, now).into(),
            (Some(value), "integer") | (Some(value @ Value::String(_)), _) => value.clone(),
            (Some(other), _) => other.to_string().into(),
        }
    }
}

/// The columns of a kind that prints these: `C` is one more, for the name.
pub const fn columns<const P: usize, const C: usize>(printed: &[Printed; P]) -> [Column; C] {
    assert!(C == P + 1, "the name of the object is printed too");
    let mut columns = [const { NAME }; C];
    let mut at = 0;
    while at < P {
        columns[at + 1] = printed[at].column();
        at += 1;
    }
    columns
}

/// The row of an object of a kind that prints these.
pub fn row(printed: &[Printed], object: &Json, now: Timestamp) -> Vec<Value> {
    let cells = printed.iter().map(|column| column.cell(object, now));
    std::iter::once(table::name(object)).chain(cells).collect()
}

/// What is at a path.
fn found<'a>(object: &'a Json, path: &str) -> Option<&'a Value> {
    let Some((before, rest)) = path.split_once("[?(@.type==") else {
        return at(object, &keys(path));
    };
    let (kind, field) = rest.split_once(")].")?;
    let kind = kind.trim_matches(['"', '\'']);
    list(object, &keys(before)).iter().find(|condition| condition["type"] == kind)?.get(field)
}

fn keys(path: &str) -> Vec<&str> {
    path.split('.').filter(|key| !key.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cells_show_what_is_at_their_paths() {
        let printed = [
            Printed::text("Text", ".spec.text", ""),
            Printed::text("Flag", ".spec.flag", ""),
            Printed::number("Number", ".spec.number", "").wide(),
            Printed::text("Done", ".status.conditions[?(@.type=='Done')].status", ""),
            Printed::text("Ready", ".status.conditions[?(@.type==\"Ready\")].status", ""),
            Printed::age(""),
        ];
        let object = json!({
            "metadata": {"name": "x", "creationTimestamp": "2026-11-15T11:59:00Z"},
            "spec": {"text": "t", "flag": true, "number": 3},
            "status": {"conditions": [{"type": "A"}, {"type": "Done", "status": "True"}]},
        });
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        let cells = row(&printed, object.as_object().unwrap(), now);
        assert_eq!(Value::from(cells), json!(["x", "t", "true", 3, "True", null, "60s"]));
        let columns: [Column; 7] = columns(&printed);
        assert_eq!((columns[0].format, columns[3].priority, columns[6].kind), ("name", 1, "date"));
    }
}
