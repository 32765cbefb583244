//! The columns that a definition has printed.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{duration::since, json::truncated, jsonpath::Template, strategy::Json, table};

/// The columns of a version.
#[derive(Debug, Default)]
pub(super) struct Columns(Vec<Printed>);

#[derive(Debug)]
struct Printed {
    definition: Value,
    kind: String,
    path: Option<Template>,
}

impl Columns {
    /// The columns that a version says, or the age for one that says nothing.
    pub(super) fn read(version: &Value) -> Self {
        let given = version["additionalPrinterColumns"].as_array().filter(|it| !it.is_empty());
        let columns: Vec<Value> = given.cloned().unwrap_or_else(|| {
            vec![json!({
                "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp",
                "description": "How long ago the object was created.",
            })]
        });
        Self(columns.iter().map(Printed::read).collect())
    }

    /// `columnDefinitions` of the table.
    pub(super) fn definitions(&self) -> Vec<Value> {
        let name = table::definition(&table::NAME);
        std::iter::once(name).chain(self.0.iter().map(|it| it.definition.clone())).collect()
    }

    /// The row of an object.
    pub(super) fn row(&self, object: &Json, now: Timestamp) -> Vec<Value> {
        let name = table::name(object);
        let whole = Value::Object(object.clone());
        std::iter::once(name).chain(self.0.iter().map(|it| it.cell(&whole, now))).collect()
    }
}

impl Printed {
    fn read(column: &Value) -> Self {
        let text = |key: &str| column[key].as_str().unwrap_or_default();
        let path = text("jsonPath");
        let description = match text("description") {
            "" => format!("Custom resource definition column (in JSONPath format): {path}"),
            description => description.to_owned(),
        };
        Self {
            definition: json!({
                "name": text("name"), "type": text("type"), "format": text("format"),
                "description": description,
                "priority": column["priority"].as_i64().unwrap_or_default(),
            }),
            kind: text("type").to_owned(),
            path: Template::parse(&format!("{{{path}}}")).ok(),
        }
    }

    fn cell(&self, object: &Value, now: Timestamp) -> Value {
        let results = self.path.as_ref().and_then(|path| path.results(object).ok());
        let found = results.and_then(|results| results.into_iter().next()?.into_iter().next());
        let Some(value) = found else { return Value::Null };
        match (&*self.kind, &value) {
            ("string", _) => crate::jsonpath::shown(&value).into(),
            (_, Value::Null) => Value::Null,
            ("integer", Value::Number(number)) => {
                let cut = || number.as_f64().map(truncated);
                number.as_i64().or_else(cut).into()
            }
            ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value,
            ("date", Value::String(moment)) => since(moment, now).into(),
            _ => Value::Null,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_the_type_of_their_column() {
        let columns = Columns::read(&json!({"additionalPrinterColumns": [
            {"name": "Text", "type": "string", "jsonPath": ".spec.text"},
            {"name": "Count", "type": "integer", "jsonPath": ".spec.count", "priority": 1},
            {"name": "Part", "type": "number", "jsonPath": ".spec.part"},
            {"name": "Is", "type": "boolean", "jsonPath": ".spec.is"},
            {"name": "Ready", "type": "string",
             "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"},
            {"name": "First", "type": "string", "jsonPath": ".spec.list[0]"},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
            {"name": "Wrong", "type": "integer", "jsonPath": ".spec.text"},
            {"name": "Map", "type": "string", "jsonPath": ".spec.map"},
            {"name": "Cut", "type": "integer", "jsonPath": ".spec.part"},
            {"name": "Never", "type": "date", "jsonPath": ".spec.text"},
        ]}));
        let object = json!({
            "metadata": {"name": "x", "creationTimestamp": "2026-11-15T11:59:00Z"},
            "spec": {"text": "t", "count": 3, "part": 1.5, "is": true, "list": ["a", "b"],
                     "map": {"k": 1}},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        });
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        let row = columns.row(object.as_object().unwrap(), now);
        assert_eq!(
            Value::from(row),
            json!(["x", "t", 3, 1.5, true, "True", "a", "60s", null, "{\"k\":1}", 1, "<invalid>"])
        );
        let definitions = columns.definitions();
        assert_eq!(definitions[2]["priority"], 1);
        assert_eq!(
            definitions[1]["description"],
            "Custom resource definition column (in JSONPath format): .spec.text"
        );
    }

    #[test]
    fn kinds_that_print_nothing_show_their_age() {
        let columns = Columns::read(&json!({}));
        let names: Vec<Value> = columns.definitions().iter().map(|it| it["name"].clone()).collect();
        assert_eq!(names, ["Name", "Age"]);
    }
}
