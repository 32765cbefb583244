//! JSONPath as kubectl speaks it: templates of text and `{...}` expressions, with `range` and
//! `end`.
//!
//! The dialect is older than RFC 9535 and differs from it in templates, in filters, in what a
//! missing field means and in how results are printed, so crates for the standard do not fit.

mod parse;

use std::{cell::Cell, cmp::Ordering};

use serde_json::Value;

/// Why a template cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct JsonPathError(pub(crate) String);

/// A template, ready for any number of objects.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    parts: Vec<Part>,
}

/// A piece of a template.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    /// Text outside of braces.
    Text(String),
    /// `{.metadata.name}`; `{}` is the object itself.
    Show(Path),
    /// `{range .items[*]}...{end}`.
    Range(Path, Vec<Self>),
}

/// Steps from the current object to values.
#[derive(Clone, Debug, Default, PartialEq)]
struct Path(Vec<Step>);

#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// `.name` or `['name']`.
    Field(String),
    /// `.*`.
    Each,
    /// `..`: the value and everything below it that has members.
    Below,
    /// `[2]` or `[-1]`.
    At(i64),
    /// `[1:4:2]` or `[*]`.
    Slice { from: Option<i64>, to: Option<i64>, step: Option<i64> },
    /// `[a, b]`.
    Union(Vec<Path>),
    /// `[?(@.type=="Ready")]`.
    Filter(Box<Filter>),
    /// A quoted text, a number, `true` or `false`.
    Literal(Value),
}

#[derive(Clone, Debug, PartialEq)]
struct Filter {
    left: Path,
    /// How both sides compare; without it the left side only has to exist.
    right: Option<(Comparison, Path)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Template {
    /// Reads a template; text outside of braces stands for itself.
    pub fn parse(text: &str) -> Result<Self, JsonPathError> {
        parse::template(text).map(|parts| Self { parts })
    }

    /// Reads one expression, with or without braces and leading dot: `.a.b`, `a.b`, `{.a.b}`.
    pub fn relaxed(text: &str) -> Result<Self, JsonPathError> {
        let inner = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')).unwrap_or(text);
        if inner.is_empty() || inner.contains(['{', '}']) {
            return Err(JsonPathError(format!(
                "{text:?} is no field path; one looks like .metadata.name or {{.metadata.name}}"
            )));
        }
        let dot = if inner.starts_with(['.', '[', '$', '@']) { "" } else { "." };
        Self::parse(&format!("{{{dot}{inner}}}"))
    }

    /// Whether there is anything but text in it.
    pub fn has_expression(&self) -> bool {
        self.parts.iter().any(|part| !matches!(part, Part::Text(_)))
    }

    /// The text the template makes of `object`.
    pub fn render(&self, object: &Value) -> Result<String, JsonPathError> {
        let mut text = String::new();
        for result in self.results(object)? {
            let shown: Vec<String> = result.iter().map(shown).collect();
            text.push_str(&shown.join(" "));
        }
        Ok(text)
    }

    /// The values of every expression, texts included, in order.
    pub fn results(&self, object: &Value) -> Result<Vec<Vec<Value>>, JsonPathError> {
        let mut results = Vec::new();
        let budget = Budget::of(&self.parts, object);
        run(&self.parts, object, &mut results, &budget)?;
        Ok(results)
    }

    /// The values of all expressions in one list.
    pub fn values(&self, object: &Value) -> Result<Vec<Value>, JsonPathError> {
        Ok(self.results(object)?.concat())
    }
}

/// A value as kubectl prints it: text as it is, objects and lists as JSON.
pub fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        // Go's encoder keeps these three from HTML, and scripts compare its output.
        Value::Array(_) | Value::Object(_) => value
            .to_string()
            .replace('<', "\\u003c")
            .replace('>', "\\u003e")
            .replace('&', "\\u0026"),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// How many values an evaluation may still go through.
///
/// Steps that go through all that is below, in ranges inside of each other, come to more values
/// than anybody waits for, in a template of a line.
struct Budget {
    all: usize,
    left: Cell<usize>,
}

impl Budget {
    /// What is always granted: small objects are looked at in any way.
    const BASE: usize = 10_000;

    /// As much as if each step of the template went through the whole object.
    fn of(parts: &[Part], object: &Value) -> Self {
        let steps = parts.iter().map(Part::steps).sum::<usize>();
        let all = Self::BASE.saturating_add(steps.saturating_mul(size(object)));
        Self { all, left: Cell::new(all) }
    }

    fn spend(&self, values: usize) -> Result<(), JsonPathError> {
        let left = self.left.get().checked_sub(values).ok_or_else(|| {
            JsonPathError(format!("the template goes through more than {} values", self.all))
        })?;
        self.left.set(left);
        Ok(())
    }
}

/// How many values there are in one.
fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(size).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

fn run(
    parts: &[Part],
    object: &Value,
    into: &mut Vec<Vec<Value>>,
    budget: &Budget,
) -> Result<(), JsonPathError> {
    for part in parts {
        budget.spend(1)?;
        match part {
            Part::Text(text) => into.push(vec![text.as_str().into()]),
            Part::Show(path) => into.push(path.follow(vec![object.clone()], budget)?),
            Part::Range(path, body) => {
                for value in path.follow(vec![object.clone()], budget)? {
                    run(body, &value, into, budget)?;
                }
            }
        }
    }
    Ok(())
}

impl Part {
    fn steps(&self) -> usize {
        match self {
            Self::Text(_) => 1,
            Self::Show(path) => 1 + path.steps(),
            Self::Range(path, body) => {
                1 + path.steps() + body.iter().map(Self::steps).sum::<usize>()
            }
        }
    }
}

impl Path {
    fn steps(&self) -> usize {
        self.0.iter().map(Step::steps).sum()
    }

    fn follow(&self, from: Vec<Value>, budget: &Budget) -> Result<Vec<Value>, JsonPathError> {
        self.0.iter().try_fold(from, |values, step| step.take(values, budget))
    }
}

impl Step {
    fn steps(&self) -> usize {
        1 + match self {
            Self::Union(paths) => paths.iter().map(Path::steps).sum(),
            Self::Filter(filter) => {
                filter.left.steps() + filter.right.as_ref().map_or(0, |(_, right)| right.steps())
            }
            Self::Field(_)
            | Self::Each
            | Self::Below
            | Self::At(_)
            | Self::Slice { .. }
            | Self::Literal(_) => 0,
        }
    }

    fn take(&self, from: Vec<Value>, budget: &Budget) -> Result<Vec<Value>, JsonPathError> {
        budget.spend(from.len())?;
        let mut found = Vec::new();
        // What is missing or null has no members; that is an answer, not a mistake.
        let mut values = from.into_iter().filter(|value| !value.is_null());
        match self {
            // It stands for itself, whatever was found before it.
            Self::Literal(value) => found.push(value.clone()),
            Self::Field(name) => {
                let fields = values.filter_map(|mut value| value.get_mut(name).map(Value::take));
                found.extend(fields);
            }
            Self::Each => found.extend(values.flat_map(members)),
            Self::Below => values.try_for_each(|value| push_below(value, &mut found, budget))?,
            Self::At(at) => {
                for value in values {
                    let items = list(value)?;
                    let index = position(*at, items.len());
                    let item = usize::try_from(index).ok().and_then(|i| items.get(i).cloned());
                    found.push(item.ok_or_else(|| out_of_bounds(index, items.len()))?);
                }
            }
            Self::Slice { from, to, step } => {
                for value in values {
                    found.extend(slice(list(value)?, *from, *to, *step)?);
                }
            }
            Self::Union(paths) => {
                let values: Vec<Value> = values.collect();
                for path in paths {
                    found.extend(path.follow(values.clone(), budget)?);
                }
            }
            Self::Filter(filter) => values.try_for_each(|value| {
                for item in list(value)? {
                    if filter.admits(&item, budget)? {
                        found.push(item);
                    }
                }
                Ok(())
            })?,
        }
        Ok(found)
    }
}

impl Filter {
    fn admits(&self, item: &Value, budget: &Budget) -> Result<bool, JsonPathError> {
        let left = self.left.follow(vec![item.clone()], budget);
        let Some((comparison, right)) = &self.right else {
            return Ok(left.is_ok_and(|found| !found.is_empty()));
        };
        let right = right.follow(vec![item.clone()], budget)?;
        match (left?.as_slice(), right.as_slice()) {
            ([], _) | (_, []) => Ok(false),
            ([left], [right]) => comparison.holds(left, right),
            _ => Err(JsonPathError("a filter can only compare one value with one".to_owned())),
        }
    }
}

impl Comparison {
    fn holds(self, left: &Value, right: &Value) -> Result<bool, JsonPathError> {
        let order = match (left, right) {
            (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
                (Some(a), Some(b)) => Some(a.cmp(&b)),
                _ => a.as_f64().partial_cmp(&b.as_f64()),
            },
            (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
            (Value::Bool(a), Value::Bool(b)) if a == b => Some(Ordering::Equal),
            (Value::Bool(_), Value::Bool(_)) if self.is_equality() => Some(Ordering::Less),
            _ => None,
        };
        let Some(order) = order else {
            let message = format!("a filter cannot compare {left} with {right}");
            return Err(JsonPathError(message));
        };
        Ok(match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        })
    }

    fn is_equality(self) -> bool {
        matches!(self, Self::Equal | Self::NotEqual)
    }
}

fn members(value: Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items,
        Value::Object(fields) => fields.into_iter().map(|(_, value)| value).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

fn push_below(value: Value, found: &mut Vec<Value>, budget: &Budget) -> Result<(), JsonPathError> {
    budget.spend(1)?;
    let below = members(value.clone());
    if !below.is_empty() {
        found.push(value);
        below.into_iter().try_for_each(|member| push_below(member, found, budget))?;
    }
    Ok(())
}

fn list(value: Value) -> Result<Vec<Value>, JsonPathError> {
    if let Value::Array(items) = value {
        return Ok(items);
    }
    Err(JsonPathError(format!("{} is no list", shorten(&value.to_string()))))
}

fn shorten(text: &str) -> String {
    const LONG: usize = 60;
    match text.char_indices().nth(LONG) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// An index from the start, for one that may count from the end.
fn position(at: i64, length: usize) -> i64 {
    if at < 0 { at + i64::try_from(length).unwrap_or(i64::MAX) } else { at }
}

fn out_of_bounds(index: i64, length: usize) -> JsonPathError {
    JsonPathError(format!("array index out of bounds: index {index}, length {length}"))
}

fn slice(
    items: Vec<Value>,
    from: Option<i64>,
    to: Option<i64>,
    step: Option<i64>,
) -> Result<Vec<Value>, JsonPathError> {
    let length = items.len();
    let end = i64::try_from(length).unwrap_or(i64::MAX);
    let (from, to) = (position(from.unwrap_or(0), length), position(to.unwrap_or(end), length));
    let step = step.unwrap_or(1);
    if from == to {
        return Ok(Vec::new());
    }
    if step < 1 {
        return Err(JsonPathError("the step of a slice must be greater than 0".to_owned()));
    }
    if from < 0 || from >= end {
        return Err(out_of_bounds(from, length));
    }
    if to < 0 || to > end {
        return Err(out_of_bounds(to - 1, length));
    }
    if from > to {
        let message = format!("starting index {from} is greater than ending index {to}");
        return Err(JsonPathError(message));
    }
    let size = |number: i64| usize::try_from(number).unwrap_or_default();
    Ok(items.into_iter().take(size(to)).skip(size(from)).step_by(size(step)).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn store() -> Value {
        json!({"kind": "List", "items": [
            {"metadata": {"name": "a", "labels": {"app.kubernetes.io/name": "x"}},
             "spec": {"replicas": 1, "containers": [{"image": "i1"}, {"image": "i2"}]},
             "status": {"conditions": [{"type": "Ready", "status": "True"}]}},
            {"metadata": {"name": "b"}, "spec": {"replicas": 12, "ok": true},
             "status": {"conditions": [{"type": "Ready", "status": "False"}]}},
            {"metadata": {"name": "c"}, "note": "<&>"}]})
    }

    #[test]
    fn templates_print_what_kubectl_prints() {
        for (template, want) in [
            ("{.kind}", "List"),
            ("{.items[*].metadata.name}", "a b c"),
            ("{.items..name}", "a b c"),
            ("{..image}", "i1 i2"),
            ("{.items[0].metadata.name}", "a"),
            ("{.items[-1].metadata.name}", "c"),
            ("{.items[-1:].metadata.name}", "c"),
            ("{.items[0:2].metadata.name}", "a b"),
            ("{.items[:2].metadata.name}", "a b"),
            ("{.items[::2].metadata.name}", "a c"),
            ("{.items[0,2].metadata.name}", "a c"),
            ("{.items[*]['metadata.name', 'spec.replicas']}", "a b c 1 12"),
            ("{.items[0].metadata.labels.app\\.kubernetes\\.io/name}", "x"),
            ("{.items[0].metadata.labels['app\\.kubernetes\\.io/name']}", "x"),
            ("{.items[0].metadata}", r#"{"labels":{"app.kubernetes.io/name":"x"},"name":"a"}"#),
            ("{.items[0].spec.*}", r#"[{"image":"i1"},{"image":"i2"}] 1"#),
            (r#"{.items[?(@.metadata.name=="b")].spec.replicas}"#, "12"),
            ("{.items[?(@.metadata.name != 'b')].metadata.name}", "a c"),
            ("{.items[?(@.spec.replicas>1)].metadata.name}", "b"),
            ("{.items[?(@.spec.replicas<=1)].metadata.name}", "a"),
            ("{.items[?(@.spec.ok==true)].metadata.name}", "b"),
            ("{.items[?(@.note)].metadata.name}", "c"),
            (
                r#"{range .items[*]}{.metadata.name}{"\t"}{.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}"#,
                "a\tTrue\nb\tFalse\nc\t\n",
            ),
            (
                "{range .items[0:2]}{.metadata.name}: {range .spec.containers[*]}<{.image}>{end};{end}!",
                "a: <i1><i2>;b: ;!",
            ),
            ("{range .items[*]}{.metadata.name},", "a,b,c,"),
            ("{$.kind} {@.kind}", "List List"),
            ("{.missing}", ""),
            ("{.missing[0].x}", ""),
            ("{range .missing[*]}{.x}{end}done", "done"),
            ("{.items[2].note}", "<&>"),
            ("{.items[2]['note', 'metadata']}", r#"<&> {"name":"c"}"#),
            ("{'single \\' quote'}", "single ' quote"),
            ("{1}{true}{2.5}", "1true2.5"),
            ("plain", "plain"),
            ("{range .items[0:1]}{@.metadata.name}{end}", "a"),
        ] {
            let parsed = Template::parse(template).expect(template);
            assert_eq!(parsed.render(&store()).as_deref(), Ok(want), "{template}");
        }
        let escaped = Template::parse("{.items[2]}").expect("valid").render(&store());
        assert!(escaped.expect("rendered").contains(r#""note":"\u003c\u0026\u003e""#));
    }

    #[test]
    fn mistakes_say_what_is_wrong() {
        for (template, want) in [
            ("{.items[9]}", "array index out of bounds: index 9, length 3"),
            ("{.kind[0]}", "\"List\" is no list"),
            ("{.items[0:9]}", "array index out of bounds: index 8, length 3"),
            ("{.items[2:1]}", "starting index 2 is greater than ending index 1"),
            ("{.items[::0]}", "the step of a slice must be greater than 0"),
            ("{.items[?(@.metadata.name>1)]}", "a filter cannot compare \"a\" with 1"),
        ] {
            let parsed = Template::parse(template).expect(template);
            let error = parsed.render(&store()).expect_err(template);
            assert_eq!(error.to_string(), want, "{template}");
        }
    }

    #[test]
    fn a_short_template_does_not_take_long() {
        let parsed = Template::parse(&"{range ..}".repeat(40)).expect("it is a template");
        let error = parsed.values(&store()).expect_err("it would never end").to_string();
        assert!(error.starts_with("the template goes through more than "), "{error}");
        let many = json!({"items": vec![store(); 1000]});
        let parsed =
            Template::parse("{range .items[*]}{..name}{..image}\n{end}").expect("it is one");
        assert_eq!(parsed.results(&many).map(|results| results.len()), Ok(3000));
    }

    #[test]
    fn a_field_path_may_leave_out_braces_and_dot() {
        for text in [".metadata.name", "metadata.name", "{.metadata.name}", "{metadata.name}"] {
            let path = Template::relaxed(text).expect(text);
            assert_eq!(path.values(&store()["items"][0]), Ok(vec![json!("a")]), "{text}");
        }
        assert!(Template::relaxed("{.a}{.b}").is_err());
        assert!(Template::relaxed("").is_err());
    }
}
