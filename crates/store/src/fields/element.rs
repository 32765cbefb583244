//! One step of a path: a field by name, an element of a list by key, by value or by position.

use std::{cmp::Ordering, fmt};

use lockstep_api::quote::quoted;
use serde_json::{Number, Value};

/// One step from an object or a list to something in it.
#[derive(Clone, Debug)]
pub enum Element {
    /// A member of a struct or a map.
    Field(Box<str>),
    /// The element of a list that has these keys, sorted by name.
    Key(Vec<(Box<str>, Value)>),
    /// The element of a set that is this value.
    Value(Value),
    /// The element of a list at this position.
    Index(i64),
}

impl Element {
    /// The member called `name`.
    pub fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl Ord for Element {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => a.cmp(b),
            (Self::Key(a), Self::Key(b)) => compare_keys(a, b),
            (Self::Value(a), Self::Value(b)) => compare_values(a, b),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Element {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Element {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Element {}

fn compare_keys(a: &[(Box<str>, Value)], b: &[(Box<str>, Value)]) -> Ordering {
    let pairs = a.iter().zip(b);
    let differing = pairs
        .map(|((name, value), (other, with))| {
            name.cmp(other).then_with(|| compare_values(value, with))
        })
        .find(|order| order.is_ne());
    differing.unwrap_or_else(|| a.len().cmp(&b.len()))
}

/// An order of all values: numbers, strings, booleans, lists, objects, null.
fn compare_values(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let pairs = a.iter().zip(b).map(|(a, b)| compare_values(a, b));
            pairs.into_iter().find(|it| it.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => {
            let pairs = a.iter().zip(b);
            let mut orders = pairs.map(|((name, value), (other, with))| {
                name.cmp(other).then_with(|| compare_values(value, with))
            });
            orders.find(|it| it.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        _ => rank(a).cmp(&rank(b)),
    }
}

/// An order by what numbers are worth, whether they are written as integers or not. It is exact:
/// were large integers taken for the floats next to them, some would be equal to others that are
/// not equal to each other, and nothing could be sorted by that.
fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(a), None) => compare_with_float(a, float(b)),
        (None, Some(b)) => compare_with_float(b, float(a)).reverse(),
        // No number of JSON is without an order.
        (None, None) => float(a).partial_cmp(&float(b)).unwrap_or(Ordering::Equal),
    }
}

fn integer(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or_default()
}

/// Compares an integer of 64 bits, signed or not, with any float.
fn compare_with_float(integer: i128, float: f64) -> Ordering {
    let floor = float.floor();
    #[expect(
        clippy::cast_possible_truncation,
        reason = "there is nothing after the point, and what is out of range becomes the end of it"
    )]
    let whole = floor as i128;
    let fraction = if float > floor { Ordering::Less } else { Ordering::Equal };
    integer.cmp(&whole).then(fraction)
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(keys) => {
                f.write_str("[")?;
                for (at, (name, value)) in keys.iter().enumerate() {
                    let comma = if at == 0 { "" } else { "," };
                    write!(f, "{comma}{name}={}", shown(value))?;
                }
                f.write_str("]")
            }
            Self::Value(value) => write!(f, "[={}]", shown(value)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// A value as messages have it.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), quoted)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn elements_are_sorted_by_sort_then_by_what_they_say() {
        let key = |value: Value| Element::Key(vec![("port".into(), value)]);
        let sorted = [
            Element::field("a"),
            Element::field("b"),
            key(json!(9)),
            key(json!(10)),
            key(json!("1")),
            Element::Key(vec![("port".into(), json!("1")), ("protocol".into(), json!("TCP"))]),
            Element::Key(vec![("protocol".into(), json!("TCP"))]),
            Element::Value(json!(2)),
            Element::Value(json!("a")),
            Element::Value(json!(true)),
            Element::Value(json!([])),
            Element::Value(json!({})),
            Element::Index(0),
            Element::Index(10),
        ];
        for (at, a) in sorted.iter().enumerate() {
            for (other, b) in sorted.iter().enumerate() {
                assert_eq!(a.cmp(b), at.cmp(&other), "{a} {b}");
            }
        }
        assert_eq!(key(json!(1)), key(json!(1.0)));
    }

    #[test]
    fn numbers_have_one_order_however_large_they_are() {
        let two_to_53 = 9_007_199_254_740_992_i64;
        // Those of a line are equal.
        let sorted = [
            vec![json!(-1e300)],
            vec![json!(i64::MIN), json!(-9_223_372_036_854_775_808.0)],
            vec![json!(i64::MIN + 1)],
            vec![json!(-2)],
            vec![json!(-1.5)],
            vec![json!(-1), json!(-1.0)],
            vec![json!(0), json!(0.0), json!(-0.0)],
            vec![json!(0.5)],
            vec![json!(two_to_53 - 1)],
            vec![json!(two_to_53), json!(9_007_199_254_740_992.0)],
            vec![json!(two_to_53 + 1)],
            vec![json!(i64::MAX)],
            vec![json!(9_223_372_036_854_775_808.0), json!(9_223_372_036_854_775_808_u64)],
            vec![json!(u64::MAX - 1)],
            vec![json!(u64::MAX)],
            vec![json!(18_446_744_073_709_551_616.0)],
            vec![json!(1e300)],
        ];
        let numbered = sorted.iter().enumerate();
        let all: Vec<(usize, Element)> = numbered
            .flat_map(|(at, line)| line.iter().map(move |it| (at, Element::Value(it.clone()))))
            .collect();
        for (at, a) in &all {
            for (other, b) in &all {
                assert_eq!(a.cmp(b), at.cmp(other), "{a} {b}");
            }
        }
    }

    #[test]
    fn elements_are_shown_as_upstream_prints_them() {
        let ports = vec![("port".into(), json!(80)), ("protocol".into(), json!("TCP"))];
        assert_eq!(Element::Key(ports).to_string(), "[port=80,protocol=\"TCP\"]");
        assert_eq!(Element::Value(json!("a\"b")).to_string(), "[=\"a\\\"b\"]");
        assert_eq!(Element::field("a/b").to_string(), ".a/b");
        assert_eq!(Element::Index(3).to_string(), "[3]");
    }
}
