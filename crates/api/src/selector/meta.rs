//! Selectors inside objects: `matchLabels` and `matchExpressions`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;

use crate::selector::{LabelSelector, Operator, Requirement, SelectorError};

impl LabelSelector {
    /// The selector an object holds. None given matches nothing, an empty one everything.
    pub fn from_meta(selector: Option<&meta::LabelSelector>) -> Result<Self, SelectorError> {
        let Some(selector) = selector else { return Ok(Self::nothing()) };
        let mut requirements = Vec::new();
        for (key, value) in selector.match_labels.iter().flatten() {
            requirements.push(Requirement::new(key, Operator::Equals, vec![value.clone()])?);
        }
        for expression in selector.match_expressions.iter().flatten() {
            let Some(operator) = operator(&expression.operator) else {
                let why =
                    format!("{:?} is not a valid label selector operator", expression.operator);
                return Err(SelectorError(why));
            };
            let values = expression.values.clone().unwrap_or_default();
            requirements.push(Requirement::new(&expression.key, operator, values)?);
        }
        Ok(Self::all_of(requirements))
    }
}

fn operator(name: &str) -> Option<Operator> {
    match name {
        "In" => Some(Operator::In),
        "NotIn" => Some(Operator::NotIn),
        "Exists" => Some(Operator::Exists),
        "DoesNotExist" => Some(Operator::DoesNotExist),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::*;

    fn selector(value: &Value) -> meta::LabelSelector {
        meta::LabelSelector::deserialize(value).unwrap()
    }

    #[test]
    fn object_selectors_print_as_query_selectors() {
        let cases = [
            (json!({}), ""),
            (json!({"matchLabels": {"b": "2", "a": "1"}}), "a=1,b=2"),
            (
                json!({"matchExpressions": [
                    {"key": "z", "operator": "In", "values": ["y", "x"]},
                    {"key": "b", "operator": "Exists"},
                    {"key": "c", "operator": "DoesNotExist"},
                    {"key": "d", "operator": "NotIn", "values": ["1"]},
                ]}),
                "b,!c,d notin (1),z in (x,y)",
            ),
        ];
        for (value, want) in cases {
            let parsed = LabelSelector::from_meta(Some(&selector(&value))).unwrap();
            assert_eq!(parsed.to_string(), want, "{value}");
        }
        assert!(!LabelSelector::from_meta(None).unwrap().matches(|_| Some("x")));
    }
}
