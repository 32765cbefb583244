//! Figures and their budgets.

/// What a figure must keep to.
#[derive(Clone, Copy)]
pub(crate) enum Budget {
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
    /// Nothing was promised.
    None,
}

struct Row {
    what: String,
    value: f64,
    unit: &'static str,
    budget: Budget,
}

/// All figures of one run.
#[derive(Default)]
pub(crate) struct Report {
    rows: Vec<Row>,
}

impl Report {
    /// Adds a figure and shows it at once.
    pub(crate) fn add(&mut self, what: &str, value: f64, unit: &'static str, budget: Budget) {
        let row = Row { what: what.to_owned(), value, unit, budget };
        println!("{what}: {} {unit} ({})", shown(value), row.verdict());
        self.rows.push(row);
    }

    /// The figures as a Markdown table.
    pub(crate) fn table(&self) -> String {
        let mut lines =
            vec!["| What | Measured | Budget | |".to_owned(), "|---|---|---|---|".to_owned()];
        for row in &self.rows {
            let budget = match row.budget {
                Budget::AtMost(most) => format!("≤ {} {}", shown(most), row.unit),
                Budget::AtLeast(least) => format!("≥ {} {}", shown(least), row.unit),
                Budget::None => String::new(),
            };
            let (what, value, unit) = (&row.what, shown(row.value), row.unit);
            lines.push(format!("| {what} | {value} {unit} | {budget} | {} |", row.verdict()));
        }
        lines.join("\n")
    }
}

impl Row {
    fn verdict(&self) -> String {
        let (is_kept, ratio) = match self.budget {
            Budget::AtMost(most) => (self.value <= most, self.value / most),
            Budget::AtLeast(least) => (self.value >= least, least / self.value),
            Budget::None => return "no budget".to_owned(),
        };
        if is_kept {
            "kept".to_owned()
        } else {
            format!("missed by {:.0} %", (ratio - 1.0) * 100.0)
        }
    }
}

/// A number with about three figures.
fn shown(value: f64) -> String {
    if value >= 100.0 {
        let digits = format!("{value:.0}");
        let mut grouped = String::new();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        grouped
    } else if value >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// The middle one of some figures.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The figure below which so many of a hundred lie.
pub(crate) fn percentile(values: &mut [f64], percent: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() * percent / 100).min(values.len() - 1)]
}
