//! The server's Table as text.

use serde_json::Value;

use crate::tabs::Columns;

/// What is shown of a Table beside its own columns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Style {
    /// Columns of lower priority too.
    pub(crate) is_wide: bool,
    /// A first column with the namespace.
    pub(crate) has_namespace: bool,
    /// Labels with a column of their own.
    pub(crate) label_columns: Vec<String>,
    /// A last column with all labels.
    pub(crate) has_labels: bool,
    /// No header line.
    pub(crate) is_headless: bool,
}

/// Renders Tables one after another, keeping the columns of the first: a watch sends the column
/// definitions only once.
#[derive(Debug, Default)]
pub(crate) struct Printer {
    style: Style,
    columns: Vec<(usize, String)>,
    widths: Columns,
    has_printed_header: bool,
}

impl Printer {
    /// A printer with a style.
    pub(crate) fn new(style: Style) -> Self {
        Self { has_printed_header: style.is_headless, style, ..Self::default() }
    }

    /// Takes the columns of `table` without printing anything.
    pub(crate) fn learn(&mut self, table: &Value) {
        let definitions = table["columnDefinitions"].as_array();
        if let Some(definitions) = definitions.filter(|found| !found.is_empty()) {
            self.columns = definitions
                .iter()
                .enumerate()
                .filter(|(_, column)| {
                    self.style.is_wide || column["priority"].as_i64().unwrap_or_default() == 0
                })
                .map(|(at, column)| (at, text(&column["name"]).to_uppercase()))
                .collect();
        }
    }

    /// The rows of `table` as text; `prefix` is put before names (`pod/`).
    pub(crate) fn render(&mut self, table: &Value, prefix: &str) -> String {
        self.learn(table);
        let mut rows = Vec::new();
        if !self.has_printed_header {
            self.has_printed_header = true;
            rows.push(self.header());
        }
        let found = table["rows"].as_array().into_iter().flatten();
        rows.extend(found.map(|row| self.row(row, prefix)));
        self.widths.render(&rows)
    }

    fn header(&self) -> Vec<String> {
        let mut cells = Vec::new();
        if self.style.has_namespace {
            cells.push("NAMESPACE".to_owned());
        }
        cells.extend(self.columns.iter().map(|(_, name)| name.clone()));
        let label_name = |key: &String| key.rsplit('/').next().unwrap_or_default().to_uppercase();
        cells.extend(self.style.label_columns.iter().map(label_name));
        if self.style.has_labels {
            cells.push("LABELS".to_owned());
        }
        cells
    }

    fn row(&self, row: &Value, prefix: &str) -> Vec<String> {
        let metadata = &row["object"]["metadata"];
        let mut cells = Vec::new();
        if self.style.has_namespace {
            cells.push(text(&metadata["namespace"]));
        }
        for (nth, (at, _)) in self.columns.iter().enumerate() {
            let cell = text(&row["cells"][*at]);
            cells.push(if nth == 0 { format!("{prefix}{cell}") } else { cell });
        }
        for key in &self.style.label_columns {
            cells.push(metadata["labels"][key].as_str().unwrap_or_default().to_owned());
        }
        if self.style.has_labels {
            cells.push(pairs(&metadata["labels"]));
        }
        cells
    }
}

/// A cell: one line, and no tab that would start another.
fn text(cell: &Value) -> String {
    let whole = match cell {
        Value::Null => return String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut lines = whole.split(['\n', '\r', '\u{c}']);
    let first = lines.next().unwrap_or_default().replace('\t', " ");
    if lines.next().is_some() { format!("{first}...") } else { first }
}

/// Labels as `a=b,c=d`, or `<none>`.
pub(crate) fn pairs(map: &Value) -> String {
    let pairs: Vec<String> = map
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::golden;

    fn pods() -> Value {
        json!({
            "columnDefinitions": [
                {"name": "Name", "priority": 0}, {"name": "Ready", "priority": 0},
                {"name": "Restarts", "priority": 0}, {"name": "IP", "priority": 1}],
            "rows": [
                {"cells": ["hello", "1/1", 0, "127.1.0.1"],
                 "object": {"metadata": {"namespace": "default", "labels": {"a": "b", "c": "d"}}}},
                {"cells": ["a-longer-name", "0/1", "2 (5s ago)", null],
                 "object": {"metadata": {"namespace": "kube-system"}}}],
        })
    }

    #[test]
    fn tables_look_like_kubectls() {
        let styles = [
            ("plain", Style::default(), ""),
            ("wide", Style { is_wide: true, ..Style::default() }, ""),
            ("labels", Style { has_labels: true, ..Style::default() }, ""),
            (
                "label columns",
                Style { label_columns: vec!["a".into(), "x/c".into()], ..Style::default() },
                "",
            ),
            ("all namespaces", Style { has_namespace: true, ..Style::default() }, "pod/"),
            ("no headers", Style { is_headless: true, ..Style::default() }, ""),
        ];
        let mut screens = String::new();
        for (name, style, prefix) in styles {
            let screen = Printer::new(style).render(&pods(), prefix);
            screens.extend(["# ", name, "\n", &screen, "\n"]);
        }
        golden::check("tables.txt", &screens);
    }

    #[test]
    fn a_watch_prints_one_header() {
        let mut printer = Printer::new(Style::default());
        printer.render(&pods(), "");
        let later = json!({"rows": [{"cells": ["hello", "0/1", 1, ""]}]});
        assert_eq!(printer.render(&later, ""), "hello           0/1     1\n");
    }

    #[test]
    fn a_cell_is_one_line() {
        assert_eq!(text(&json!("a\nb")), "a...");
        assert_eq!(text(&json!("a\tb")), "a b");
        assert_eq!(text(&Value::Null), "");
        assert_eq!(text(&json!(3)), "3");
    }
}
