//! Lines of a description: labels, values, and what is nested below them.

use serde_json::Value;

use crate::tabs;

/// Collects the lines of a description; cells are aligned in the end.
#[derive(Debug, Default)]
pub(crate) struct Text {
    lines: String,
    /// What is aligned already.
    done: String,
}

impl Text {
    /// Adds `Label:<tab>value`, `level` steps in.
    pub(crate) fn field(&mut self, level: usize, label: &str, value: impl AsRef<str>) {
        self.line(level, &format!("{label}:\t{}", value.as_ref()));
    }

    /// Adds a field only when there is something to say.
    pub(crate) fn known(&mut self, level: usize, label: &str, value: &Value) {
        let shown = scalar(value);
        if !shown.is_empty() {
            self.field(level, label, shown);
        }
    }

    /// Adds a line that stands alone.
    pub(crate) fn line(&mut self, level: usize, text: &str) {
        self.lines.extend(std::iter::repeat_n("  ", level));
        self.lines.push_str(text);
        self.lines.push('\n');
    }

    /// Adds several values under one label, the label before the first.
    pub(crate) fn list(&mut self, level: usize, label: &str, values: &[String]) {
        let mut label = format!("{label}:");
        if values.is_empty() {
            self.line(level, &format!("{label}\t<none>"));
        }
        for value in values {
            self.line(level, &format!("{label}\t{value}"));
            label.clear();
        }
    }

    /// Adds a map as `a=b` lines under one label.
    pub(crate) fn map(&mut self, level: usize, label: &str, map: &Value, between: &str) {
        let pairs = map.as_object().into_iter().flatten();
        let shown = pairs.map(|(key, value)| format!("{key}{between}{}", scalar(value)));
        self.list(level, label, &shown.collect::<Vec<_>>());
    }

    /// Aligns what is there so far by itself.
    pub(crate) fn end_block(&mut self) {
        let aligned = tabs::align(&self.lines);
        self.done.push_str(&aligned);
        self.lines.clear();
    }

    /// The whole description.
    pub(crate) fn finish(mut self) -> String {
        self.end_block();
        self.done
    }
}

/// A plain value as text; empty for what is absent.
pub(crate) fn scalar(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.replace('\t', " "),
        other => other.to_string(),
    }
}

/// A plain value as text, or `<none>`.
pub(crate) fn or_none(value: &Value) -> String {
    match scalar(value) {
        text if text.is_empty() => "<none>".to_owned(),
        text => text,
    }
}
