//! What an API server finds wrong with a number.

use serde_json::Number;

use super::{Found, effective_format, go_float, place};
use crate::{
    definition::schema::{Limits, Schema},
    field::{ErrorKind, FieldError},
    json::truncated,
};

/// The largest number up to which every whole one can be told from its neighbours.
const WHOLE_MAX: f64 = 9_007_199_254_740_991.0;
/// By how much of itself a number may be above a whole one that it counts as.
const TOLERANCE: f64 = 1e-9;

/// Whether a number counts as a whole one, however it is written or was reckoned.
pub(super) fn is_whole(number: f64) -> bool {
    if !number.is_finite() || number.abs() > WHOLE_MAX {
        return false;
    }
    let below = number.trunc();
    number == below || (below > 0.0 && (number - below) / (number + below) < TOLERANCE)
}

/// A number as a schema sees it: whole ones are compared as such.
#[derive(Clone, Copy)]
enum Seen {
    Whole(i64),
    Fraction(f64),
}

impl Seen {
    fn of(number: &Number) -> Self {
        let fraction = || Self::Fraction(number.as_f64().unwrap_or_default());
        number.as_i64().map_or_else(fraction, Self::Whole)
    }

    /// The same kind of number as this one, of something that a limit says.
    fn like(self, limit: f64) -> Self {
        match self {
            Self::Whole(_) => Self::Whole(truncated(limit)),
            Self::Fraction(_) => Self::Fraction(limit),
        }
    }

    fn is_positive(self) -> bool {
        match self {
            Self::Whole(number) => number > 0,
            Self::Fraction(number) => number > 0.0,
        }
    }

    /// As Go's `%v` prints it.
    fn text(self) -> String {
        match self {
            Self::Whole(number) => number.to_string(),
            Self::Fraction(number) => go_float(number),
        }
    }
}

/// The type and the format that say how large a number may be; none where it may be of several.
#[derive(Clone, Copy)]
struct Range<'a> {
    kind: &'a str,
    format: &'a str,
}

impl<'a> Range<'a> {
    fn of(schema: &'a Schema) -> Self {
        match &*schema.kind {
            kind @ ("integer" | "number") if !schema.is_int_or_string => {
                Self { kind, format: effective_format(schema) }
            }
            _ => Self { kind: "", format: "" },
        }
    }

    fn holds(self, number: f64, whole: Option<i64>) -> bool {
        let text = whole.map_or_else(|| number.to_string(), |whole| whole.to_string());
        match (self.kind, self.format) {
            ("integer", "int32") => text.parse::<i32>().is_ok(),
            ("integer", _) => text.parse::<i64>().is_ok(),
            ("number", "float") => text.parse::<f32>().is_ok_and(f32::is_finite),
            _ => true,
        }
    }

    /// What is wrong with a number that it does not hold.
    fn fault(self, what: &str, path: &str) -> String {
        let Self { kind, format } = self;
        match format {
            "" => format!("{what} value must be of type {kind} (default format) in {path}"),
            format => format!("{what} value must be of type {kind} with format {format} in {path}"),
        }
    }
}

impl Found {
    pub(super) fn check_number(&mut self, schema: &Schema, number: &Number, path: &str) {
        let range = Range::of(schema);
        if !range.holds(number.as_f64().unwrap_or_default(), number.as_i64()) {
            self.whole(&range.fault("Checked", path));
        }
        let Limits { multiple_of, minimum, maximum, .. } = &schema.limits;
        if let Some(factor) = *multiple_of {
            let (value, factor) = self.comparable(range, number, ("MultipleOf", factor), path);
            self.check_factor(value, factor, path);
        }
        if let Some((least, is_open)) = *minimum {
            let limit = ("Minimum boundary", least);
            let (value, least) = self.comparable(range, number, limit, path);
            if !is_below(least, value, is_open) {
                let or_equal = if is_open { "" } else { " or equal to" };
                let why = format!("should be greater than{or_equal} {}", least.text());
                self.misfit(path, value, &why);
            }
        }
        if let Some((most, is_open)) = *maximum {
            let limit = ("Maximum boundary", most);
            let (value, most) = self.comparable(range, number, limit, path);
            if !is_below(value, most, is_open) {
                let or_equal = if is_open { "" } else { " or equal to" };
                let why = format!("should be less than{or_equal} {}", most.text());
                self.misfit(path, value, &why);
            }
        }
    }

    /// A number and a limit of it, as they are compared: whole if the number is. A limit that the
    /// type cannot hold is a fault of its own, and both are compared as fractions.
    fn comparable(
        &mut self,
        range: Range<'_>,
        number: &Number,
        (what, limit): (&str, f64),
        path: &str,
    ) -> (Seen, Seen) {
        if range.holds(limit, None) {
            let seen = Seen::of(number);
            return (seen, seen.like(limit));
        }
        self.whole(&range.fault(what, path));
        (Seen::Fraction(number.as_f64().unwrap_or_default()), Seen::Fraction(limit))
    }

    fn check_factor(&mut self, value: Seen, factor: Seen, path: &str) {
        let shown = factor.text();
        if !factor.is_positive() {
            let body = format!(
                "Invalid value: {shown}: factor MultipleOf declared for {path} must be positive: \
                 {shown}"
            );
            return self.push(FieldError { kind: ErrorKind::Invalid, path: place(path), body });
        }
        let is_multiple = match (value, factor) {
            (Seen::Whole(value), Seen::Whole(factor)) => value % factor == 0,
            (Seen::Fraction(value), Seen::Fraction(factor)) if factor < 1.0 => {
                is_whole(1.0 / factor * value)
            }
            (Seen::Fraction(value), Seen::Fraction(factor)) => is_whole(value / factor),
            (Seen::Whole(_), Seen::Fraction(_)) | (Seen::Fraction(_), Seen::Whole(_)) => true,
        };
        if !is_multiple {
            self.misfit(path, value, &format!("should be a multiple of {shown}"));
        }
    }

    fn misfit(&mut self, path: &str, value: Seen, why: &str) {
        let body = format!("Invalid value: {}: {path} in body {why}", value.text());
        self.push(FieldError { kind: ErrorKind::Invalid, path: place(path), body });
    }
}

/// Whether a number is below another one, or is that one where the limit is not open.
fn is_below(a: Seen, b: Seen, is_open: bool) -> bool {
    match (a, b) {
        (Seen::Whole(a), Seen::Whole(b)) => a < b || !is_open && a == b,
        (Seen::Fraction(a), Seen::Fraction(b)) => a < b || !is_open && a == b,
        (Seen::Whole(_), Seen::Fraction(_)) | (Seen::Fraction(_), Seen::Whole(_)) => true,
    }
}
