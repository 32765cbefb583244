//! Requirements on labels and what it means to meet them.

use std::{collections::BTreeMap, fmt};

use serde_json::Value;

use crate::{
    field::{ErrorList, FieldError, Path},
    json::at,
    names,
    selector::{SelectorError, parse},
    strategy::Json,
};

/// How a label relates to the values of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `=`
    Equals,
    /// `==`
    DoubleEquals,
    /// `!=`; a missing label meets it.
    NotEquals,
    /// `in`
    In,
    /// `notin`; a missing label meets it.
    NotIn,
    /// The bare key.
    Exists,
    /// `!key`
    DoesNotExist,
    /// `>`, between integers.
    GreaterThan,
    /// `<`, between integers.
    LessThan,
}

/// One demand on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

/// A conjunction of requirements, ordered by key; or nothing at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelSelector {
    /// `None` matches no object.
    requirements: Option<Vec<Requirement>>,
}

impl Default for LabelSelector {
    fn default() -> Self {
        Self::everything()
    }
}

impl LabelSelector {
    /// Matches every object.
    pub fn everything() -> Self {
        Self { requirements: Some(Vec::new()) }
    }

    /// Matches no object.
    pub fn nothing() -> Self {
        Self { requirements: None }
    }

    /// Parses the value of `labelSelector`.
    pub fn parse(selector: &str) -> Result<Self, SelectorError> {
        parse::requirements(selector).map(Self::all_of)
    }

    /// Matches objects that meet all of these.
    pub fn all_of(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Self { requirements: Some(requirements) }
    }

    /// Matches objects that carry all of these labels.
    pub fn of_set<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let equals = |(key, value): (&str, &str)| Requirement {
            key: key.to_owned(),
            operator: Operator::Equals,
            values: vec![value.to_owned()],
        };
        Self::all_of(labels.into_iter().map(equals).collect())
    }

    /// Whether every object matches.
    pub fn is_everything(&self) -> bool {
        self.requirements.as_ref().is_some_and(Vec::is_empty)
    }

    /// The requirements; empty for everything and for nothing.
    pub fn requirements(&self) -> &[Requirement] {
        self.requirements.as_deref().unwrap_or_default()
    }

    /// Whether the labels, as `value_of` tells them, match.
    pub fn matches<'a>(&self, value_of: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements
            .as_ref()
            .is_some_and(|all| all.iter().all(|one| one.is_met_by(value_of(&one.key))))
    }

    /// Whether a map of labels matches.
    pub fn matches_map(&self, labels: &BTreeMap<String, String>) -> bool {
        self.matches(|key| labels.get(key).map(String::as_str))
    }

    /// Whether the labels of an object match.
    pub fn matches_object(&self, object: &Json) -> bool {
        let labels = at(object, &["metadata", "labels"]).and_then(Value::as_object);
        self.matches(|key| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str))
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, requirement) in self.requirements().iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{requirement}")?;
        }
        Ok(())
    }
}

impl Requirement {
    /// A requirement whose parts fit together, or all that is wrong with them.
    pub fn new(key: &str, operator: Operator, values: Vec<String>) -> Result<Self, SelectorError> {
        let mut errors = ErrorList::new();
        let key_errors = names::qualified_name(key);
        if !key_errors.is_empty() {
            errors.push(FieldError::invalid(&Path::new("key"), key, &key_errors.join("; ")));
        }
        let path = Path::new("values");
        if let Some(why) = wrong_count(operator, values.len()) {
            errors.push(FieldError::invalid(&path, &values, why));
        }
        for (at, value) in values.iter().enumerate() {
            if operator.compares_integers() && value.parse::<i64>().is_err() {
                let why = "for 'Gt', 'Lt' operators, the value must be an integer";
                errors.push(FieldError::invalid(&path.index(at), value, why));
            }
        }
        for (at, value) in values.iter().enumerate() {
            let why = names::label_value(value);
            if !why.is_empty() {
                let path = path.index(at).key(key);
                errors.push(FieldError::invalid(&path, value, &why.join("; ")));
            }
        }
        match errors.as_slice() {
            [] => Ok(Self { key: key.to_owned(), operator, values }),
            [one] => Err(SelectorError(one.to_string())),
            many => {
                let listed: Vec<String> = many.iter().map(ToString::to_string).collect();
                Err(SelectorError(format!("[{}]", listed.join(", "))))
            }
        }
    }

    /// The label this is about.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// How the label relates to the values.
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// The values.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    fn is_met_by(&self, label: Option<&str>) -> bool {
        let is_listed = |value: &str| self.values.iter().any(|wanted| wanted == value);
        match self.operator {
            Operator::In | Operator::Equals | Operator::DoubleEquals => {
                label.is_some_and(is_listed)
            }
            Operator::NotIn | Operator::NotEquals => !label.is_some_and(is_listed),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan | Operator::LessThan => {
                let bound = self.values.first().and_then(|value| value.parse::<i64>().ok());
                let actual = label.and_then(|value| value.parse::<i64>().ok());
                match (actual, bound) {
                    (Some(actual), Some(bound)) if self.operator == Operator::GreaterThan => {
                        actual > bound
                    }
                    (Some(actual), Some(bound)) => actual < bound,
                    _ => false,
                }
            }
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        let mut sorted: Vec<&str> = self.values.iter().map(String::as_str).collect();
        sorted.sort_unstable();
        let values = sorted.join(",");
        match self.operator {
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Exists => f.write_str(key),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

impl Operator {
    fn compares_integers(self) -> bool {
        matches!(self, Self::GreaterThan | Self::LessThan)
    }
}

fn wrong_count(operator: Operator, values: usize) -> Option<&'static str> {
    match operator {
        Operator::In | Operator::NotIn => {
            (values == 0).then_some("for 'in', 'notin' operators, values set can't be empty")
        }
        Operator::Equals | Operator::DoubleEquals | Operator::NotEquals => {
            (values != 1).then_some("exact-match compatibility requires one single value")
        }
        Operator::Exists | Operator::DoesNotExist => {
            (values != 0).then_some("values set must be empty for exists and does not exist")
        }
        Operator::GreaterThan | Operator::LessThan => {
            (values != 1).then_some("for 'Gt', 'Lt' operators, exactly one value is required")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_match_like_upstream() {
        let labels: BTreeMap<String, String> =
            [("a", "1"), ("b", ""), ("n", "x")].map(|(k, v)| (k.into(), v.into())).into();
        let cases = [
            ("", true),
            ("a", true),
            ("!a", false),
            ("!c", true),
            ("a=1", true),
            ("a==2", false),
            ("a!=1", false),
            ("c!=1", true),
            ("b=", true),
            ("b", true),
            ("c=", false),
            ("a in (1,2)", true),
            ("c in (1)", false),
            ("a notin (2)", true),
            ("c notin (2)", true),
            ("b in ()", true),
            ("a>0", true),
            ("a<1", false),
            ("c>0", false),
            ("n>0", false),
            ("a=1,b,!c", true),
            ("a=1,c", false),
        ];
        for (selector, want) in cases {
            let parsed = LabelSelector::parse(selector).unwrap();
            assert_eq!(parsed.matches_map(&labels), want, "{selector}");
        }
        assert!(!LabelSelector::nothing().matches_map(&labels));
    }

    #[test]
    fn a_set_of_labels_selects_what_carries_them_all() {
        let selector = LabelSelector::of_set([("b", "2"), ("a", "1")]);
        assert_eq!(selector.to_string(), "a=1,b=2");
        let object = serde_json::json!({"metadata": {"labels": {"a": "1", "b": "2", "c": "3"}}});
        assert!(selector.matches_object(object.as_object().unwrap()));
        assert!(!selector.matches_object(&Json::new()));
    }
}
