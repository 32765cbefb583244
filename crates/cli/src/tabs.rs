//! Text in columns.

/// Rows of a table that may come one at a time: columns never get narrower, so that a watch stays
/// aligned.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    widths: Vec<usize>,
}

impl Columns {
    /// The least width of a column, and the least room between two: kubectl's.
    const WIDTH_MIN: usize = 6;
    const PADDING: usize = 3;

    /// The rows as lines; a row's last cell is not padded.
    pub(crate) fn render(&mut self, rows: &[Vec<String>]) -> String {
        for row in rows {
            if self.widths.len() < row.len() {
                self.widths.resize(row.len(), Self::WIDTH_MIN);
            }
            for (known, cell) in self.widths.iter_mut().zip(row) {
                *known = (*known).max(width(cell) + Self::PADDING);
            }
        }
        let mut lines = String::new();
        for row in rows {
            push_line(row, &self.widths, &mut lines);
        }
        lines
    }
}

/// Replaces the tabs of `text` by spaces. A column is as wide as its widest cell among the lines
/// directly above and below that also have a tab there; a line's last cell is no column.
pub(crate) fn align(text: &str) -> String {
    const PADDING: usize = 2;
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    let mut widths: Vec<Vec<usize>> = lines.iter().map(|cells| vec![0; cells.len()]).collect();
    let columns = lines.iter().map(Vec::len).max().unwrap_or_default();
    for column in 0..columns {
        let mut first = 0;
        while first < lines.len() {
            let run = lines[first..].iter().take_while(|line| column + 1 < line.len()).count();
            let block = first..first + run;
            let widest = lines[block.clone()].iter().map(|cells| width(cells[column])).max();
            for line in &mut widths[block] {
                line[column] = widest.unwrap_or_default() + PADDING;
            }
            first += run + 1;
        }
    }
    let mut aligned = String::new();
    for (cells, widths) in lines.iter().zip(&widths) {
        push_line(cells, widths, &mut aligned);
    }
    aligned
}

fn push_line(cells: &[impl AsRef<str>], widths: &[usize], lines: &mut String) {
    if let Some((last, columns)) = cells.split_last() {
        for (cell, wanted) in columns.iter().zip(widths) {
            lines.push_str(cell.as_ref());
            lines.extend(std::iter::repeat_n(' ', wanted.saturating_sub(width(cell.as_ref()))));
        }
        lines.push_str(last.as_ref());
        lines.truncate(lines.trim_end_matches(' ').len());
    }
    lines.push('\n');
}

fn width(cell: &str) -> usize {
    cell.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[&[&str]]) -> Vec<Vec<String>> {
        rows.iter().map(|row| row.iter().map(|&cell| cell.to_owned()).collect()).collect()
    }

    #[test]
    fn columns_stay_as_wide_as_they_were() {
        let mut columns = Columns::default();
        let first =
            columns.render(&rows(&[&["NAME", "READY", "AGE"], &["a-long-name", "1/1", "5s"]]));
        assert_eq!(first, "NAME          READY   AGE\na-long-name   1/1     5s\n");
        assert_eq!(columns.render(&rows(&[&["b", "0/1", "6s"]])), "b             0/1     6s\n");
    }

    #[test]
    fn a_line_without_the_column_ends_its_block() {
        let text =
            "Name:\tp\nNamespace:\tdefault\nContainers:\n  a:\n    ID:\tx\n    Image ID:\ty\n";
        let want = "Name:       p\nNamespace:  default\nContainers:\n  a:\n    ID:        x\n    Image ID:  y\n";
        assert_eq!(align(text), want);
    }
}
