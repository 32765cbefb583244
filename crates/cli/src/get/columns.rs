//! `-o custom-columns`: a table the user lays out.

use serde_json::Value;

use crate::{
    jsonpath::{self, Template},
    tabs::Columns,
};

/// Headers, and where the values below them come from.
#[derive(Clone, Debug)]
pub(crate) struct CustomColumns {
    columns: Vec<(String, Template)>,
}

impl CustomColumns {
    /// Reads `NAME:.metadata.name,NODE:.spec.nodeName`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let columns = text.split(',').map(|column| match column.split_once(':') {
            Some((header, path)) => self::column(header, path),
            None => Err(format!(
                "the column {column:?} has no field path; one looks like NAME:.metadata.name"
            )),
        });
        Ok(Self { columns: columns.collect::<Result<_, _>>()? })
    }

    /// Reads a line of headers and a line of field paths.
    pub(crate) fn from_file(text: &str) -> Result<Self, String> {
        let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let (headers, paths) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        if headers.is_empty() || headers.len() != paths.len() {
            return Err(format!(
                "the file must have a line of headers and a line of as many field paths; it has {} \
                 and {}",
                headers.len(),
                paths.len()
            ));
        }
        let columns = headers.into_iter().zip(paths).map(|(header, path)| column(header, path));
        Ok(Self { columns: columns.collect::<Result<_, _>>()? })
    }

    /// The header line.
    fn headers(&self) -> Vec<String> {
        self.columns.iter().map(|(header, _)| header.clone()).collect()
    }

    fn row(&self, object: &Value) -> anyhow::Result<Vec<String>> {
        let mut cells = Vec::new();
        for (_, path) in &self.columns {
            let values: Vec<String> = path.values(object)?.iter().map(jsonpath::shown).collect();
            let cell = if values.is_empty() { "<none>".to_owned() } else { values.join(",") };
            cells.push(cell.replace(['\n', '\t', '\u{1b}'], " "));
        }
        Ok(cells)
    }
}

fn column(header: &str, path: &str) -> Result<(String, Template), String> {
    let path =
        Template::relaxed(path).map_err(|error| format!("the column {header:?}: {error}"))?;
    Ok((header.to_owned(), path))
}

/// Renders objects one after another under one header.
pub(super) struct ColumnsPrinter<'a> {
    columns: &'a CustomColumns,
    widths: Columns,
    needs_header: bool,
}

impl<'a> ColumnsPrinter<'a> {
    pub(super) fn new(columns: &'a CustomColumns, needs_header: bool) -> Self {
        Self { columns, widths: Columns::default(), needs_header }
    }

    pub(super) fn render(&mut self, objects: &[Value]) -> anyhow::Result<String> {
        let mut rows = Vec::new();
        if std::mem::take(&mut self.needs_header) {
            rows.push(self.columns.headers());
        }
        for object in objects {
            rows.push(self.columns.row(object)?);
        }
        Ok(self.widths.render(&rows))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_hold_what_their_paths_lead_to() {
        let pods = [
            json!({"metadata": {"name": "a"}, "spec": {"containers": [{"image": "x"}, {"image": "y"}]}}),
            json!({"metadata": {"name": "longer-name"}, "status": {"phase": "Running"}}),
        ];
        let text = "NAME:.metadata.name,IMAGES:spec.containers[*].image,PHASE:{.status.phase}";
        let columns = CustomColumns::parse(text).expect("valid");
        let mut printer = ColumnsPrinter::new(&columns, true);
        let want = "NAME          IMAGES   PHASE\na             x,y      <none>\n\
                    longer-name   <none>   Running\n";
        assert_eq!(printer.render(&pods).expect("rendered"), want);
        let later = printer.render(&pods[..1]).expect("rendered");
        assert_eq!(later, "a             x,y      <none>\n", "one header for all");
        let file = CustomColumns::from_file("NAME PHASE\n{.metadata.name} .status.phase\n");
        assert_eq!(file.expect("valid").headers(), ["NAME", "PHASE"]);
        assert!(CustomColumns::from_file("A B\n.a\n").is_err());
        assert!(CustomColumns::from_file("").is_err());
    }
}
