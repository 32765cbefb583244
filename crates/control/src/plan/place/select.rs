//! Selectors over labels and over nodes.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// Labels of an object.
pub(super) type Labels = BTreeMap<String, String>;

/// One condition on a label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rule {
    In(String, BTreeSet<String>),
    NotIn(String, BTreeSet<String>),
    Exists(String),
    DoesNotExist(String),
    Gt(String, i64),
    Lt(String, i64),
    /// Matches nothing: an operator or a value nobody knows.
    Never,
}

/// Conditions on labels that must all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Selector(pub Vec<Rule>);

impl Rule {
    fn matches(&self, value: impl Fn(&str) -> Option<String>) -> bool {
        let number = |key: &str| value(key).and_then(|text| text.parse::<i64>().ok());
        match self {
            Self::In(key, values) => value(key).is_some_and(|value| values.contains(&value)),
            Self::NotIn(key, values) => value(key).is_none_or(|value| !values.contains(&value)),
            Self::Exists(key) => value(key).is_some(),
            Self::DoesNotExist(key) => value(key).is_none(),
            Self::Gt(key, than) => number(key).is_some_and(|number| number > *than),
            Self::Lt(key, than) => number(key).is_some_and(|number| number < *than),
            Self::Never => false,
        }
    }

    fn holds(&self, labels: &Labels) -> bool {
        match self {
            // The common case, without a copy of the value.
            Self::In(key, values) => labels.get(key).is_some_and(|value| values.contains(value)),
            Self::NotIn(..)
            | Self::Exists(_)
            | Self::DoesNotExist(_)
            | Self::Gt(..)
            | Self::Lt(..)
            | Self::Never => self.matches(|key| labels.get(key).cloned()),
        }
    }
}

impl Selector {
    /// A label selector of the API; an absent one matches nothing, an empty one everything.
    pub(super) fn of_labels(selector: Option<&LabelSelector>) -> Self {
        let Some(selector) = selector else { return Self(vec![Rule::Never]) };
        let mut rules: Vec<Rule> = selector
            .match_labels
            .iter()
            .flatten()
            .map(|(key, value)| Rule::In(key.clone(), BTreeSet::from([value.clone()])))
            .collect();
        for rule in selector.match_expressions.iter().flatten() {
            let values = rule.values.as_deref().unwrap_or_default();
            rules.push(parse(&rule.key, &rule.operator, values));
        }
        rules.sort();
        Self(rules)
    }

    /// Labels that must all be there.
    pub(super) fn of_map(labels: &Labels) -> Self {
        let exact = |(key, value): (&String, &String)| {
            Rule::In(key.clone(), BTreeSet::from([value.clone()]))
        };
        Self(labels.iter().map(exact).collect())
    }

    pub(super) fn matches(&self, labels: &Labels) -> bool {
        self.0.iter().all(|rule| rule.holds(labels))
    }

    /// A label with exactly one value that everything selected carries.
    pub(super) fn exact(&self) -> Option<(&str, &str)> {
        self.0.iter().find_map(|rule| match rule {
            Rule::In(key, values) if values.len() == 1 => {
                values.first().map(|value| (key.as_str(), value.as_str()))
            }
            Rule::In(..)
            | Rule::NotIn(..)
            | Rule::Exists(_)
            | Rule::DoesNotExist(_)
            | Rule::Gt(..)
            | Rule::Lt(..)
            | Rule::Never => None,
        })
    }
}

/// One alternative of a node selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeTerm {
    labels: Selector,
    fields: Vec<Rule>,
}

impl NodeTerm {
    /// `None` for an empty term, which matches no node.
    pub(super) fn of(term: &NodeSelectorTerm) -> Option<Self> {
        let read = |list: Option<&[NodeSelectorRequirement]>| -> Vec<Rule> {
            list.unwrap_or_default()
                .iter()
                .map(|it| parse(&it.key, &it.operator, it.values.as_deref().unwrap_or_default()))
                .collect()
        };
        let labels = Selector(read(term.match_expressions.as_deref()));
        let fields = read(term.match_fields.as_deref());
        (!labels.0.is_empty() || !fields.is_empty()).then_some(Self { labels, fields })
    }

    pub(super) fn matches(&self, name: &str, labels: &Labels) -> bool {
        self.labels.matches(labels)
            && self
                .fields
                .iter()
                .all(|rule| rule.matches(|key| (key == "metadata.name").then(|| name.to_owned())))
    }

    pub(super) fn exact(&self) -> Option<(&str, &str)> {
        self.labels.exact()
    }
}

/// The alternatives of a node selector, if there is one.
pub(super) fn node_terms(selector: Option<&NodeSelector>) -> Option<Vec<NodeTerm>> {
    selector.map(|it| it.node_selector_terms.iter().filter_map(NodeTerm::of).collect())
}

fn parse(key: &str, operator: &str, values: &[String]) -> Rule {
    let key = key.to_owned();
    let set = || values.iter().cloned().collect();
    let number = || values.first().and_then(|value| value.parse().ok());
    match operator {
        "In" => Rule::In(key, set()),
        "NotIn" => Rule::NotIn(key, set()),
        "Exists" => Rule::Exists(key),
        "DoesNotExist" => Rule::DoesNotExist(key),
        "Gt" => number().map_or(Rule::Never, |than| Rule::Gt(key, than)),
        "Lt" => number().map_or(Rule::Never, |than| Rule::Lt(key, than)),
        _ => Rule::Never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_read_labels_as_kubernetes_does() {
        let labels = Labels::from([("a".into(), "x".into()), ("n".into(), "5".into())]);
        let cases: [(&str, &str, &[&str], bool); 12] = [
            ("a", "In", &["x", "y"], true),
            ("a", "In", &["y"], false),
            ("b", "In", &["x"], false),
            ("a", "NotIn", &["x"], false),
            ("b", "NotIn", &["x"], true),
            ("a", "Exists", &[], true),
            ("b", "Exists", &[], false),
            ("b", "DoesNotExist", &[], true),
            ("n", "Gt", &["4"], true),
            ("n", "Lt", &["5"], false),
            ("a", "Gt", &["4"], false),
            ("a", "Nonsense", &[], false),
        ];
        for (key, operator, values, want) in cases {
            let values: Vec<String> = values.iter().map(ToString::to_string).collect();
            let selector = Selector(vec![parse(key, operator, &values)]);
            assert_eq!(selector.matches(&labels), want, "{key} {operator} {values:?}");
        }
        assert!(!Selector::of_labels(None).matches(&labels));
        assert!(Selector::of_labels(Some(&LabelSelector::default())).matches(&labels));
    }
}
