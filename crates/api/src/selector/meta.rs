//! Selectors inside objects: `matchLabels` and `matchExpressions`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;

use crate::{
    field::{ErrorList, FieldError, Path},
    names,
    selector::{LabelSelector, Operator, Requirement, SelectorError},
};

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

/// Says what is wrong with a selector inside an object.
pub fn validate_label_selector(selector: &meta::LabelSelector, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let labels_path = path.child("matchLabels");
    for (key, value) in selector.match_labels.iter().flatten() {
        errors.extend(invalid(&labels_path, key, names::qualified_name(key)));
        errors.extend(invalid(&labels_path, value, names::label_value(value)));
    }
    for (at, expression) in selector.match_expressions.iter().flatten().enumerate() {
        let path = path.child("matchExpressions").index(at);
        errors.extend(validate_expression(expression, &path));
    }
    errors
}

fn validate_expression(expression: &meta::LabelSelectorRequirement, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let values_path = path.child("values");
    let values = expression.values.as_deref().unwrap_or_default();
    match operator(&expression.operator) {
        Some(Operator::In | Operator::NotIn) if values.is_empty() => {
            let why = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(FieldError::required(&values_path, why));
        }
        Some(Operator::Exists | Operator::DoesNotExist) if !values.is_empty() => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(&values_path, why));
        }
        Some(_) => {}
        None => errors.push(FieldError::invalid(
            &path.child("operator"),
            &expression.operator,
            "not a valid selector operator",
        )),
    }
    errors.extend(invalid(
        &path.child("key"),
        &expression.key,
        names::qualified_name(&expression.key),
    ));
    for (at, value) in values.iter().enumerate() {
        errors.extend(invalid(&values_path.index(at), value, names::label_value(value)));
    }
    errors
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

fn invalid(path: &Path, value: &str, why: Vec<String>) -> impl Iterator<Item = FieldError> {
    why.into_iter().map(move |why| FieldError::invalid(path, value, &why))
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

    #[test]
    fn bad_object_selectors_point_at_the_field() {
        let cases = [
            (
                json!({"matchExpressions": [{"key": "a", "operator": "In"}]}),
                "s.matchExpressions[0].values: Required value: must be specified when `operator` \
                 is 'In' or 'NotIn'",
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]}),
                "s.matchExpressions[0].values: Forbidden: may not be specified when `operator` is \
                 'Exists' or 'DoesNotExist'",
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}),
                "s.matchExpressions[0].operator: Invalid value: \"Gt\": not a valid selector \
                 operator",
            ),
        ];
        for (value, want) in cases {
            let errors = validate_label_selector(&selector(&value), &Path::new("s"));
            let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(texts, [want], "{value}");
        }
    }
}
