//! Binding: a request to put a pod on a node. It is posted, acted upon and never stored.

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    field::{ErrorList, FieldError, Path},
    json::text,
    names,
    strategy::{Column, Json, Strategy},
    table::{NAME_AND_AGE, name_and_age},
};

/// Binding.
#[derive(Debug)]
pub struct BindingStrategy;

impl Strategy for BindingStrategy {
    fn validate_create(&self, object: &Json) -> ErrorList {
        let mut errors = ErrorList::new();
        let kind = text(object, &["target", "kind"]);
        if !kind.is_empty() && kind != "Node" {
            let path = Path::new("target").child("kind");
            errors.push(FieldError::not_supported(&path, kind, &["Node", "<empty>"]));
        }
        if text(object, &["target", "name"]).is_empty() {
            errors.push(FieldError::required(&Path::new("target").child("name"), ""));
        }
        errors
    }

    fn validate_name(&self, name: &str, is_prefix: bool) -> Vec<String> {
        names::name_is_dns_subdomain(name, is_prefix)
    }

    fn columns(&self) -> &'static [Column] {
        NAME_AND_AGE
    }

    fn row(&self, object: &Json, now: Timestamp) -> Vec<Value> {
        name_and_age(object, now)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_binding_names_a_node() {
        let cases = [
            (json!({"target": {"kind": "Node", "name": "n"}}), ""),
            (json!({"target": {"name": "n"}}), ""),
            (json!({"target": {"kind": "Node"}}), "target.name: Required value"),
            (
                json!({"target": {"kind": "Pod", "name": "n"}}),
                "target.kind: Unsupported value: \"Pod\": supported values: \"Node\", \"<empty>\"",
            ),
        ];
        for (binding, want) in cases {
            let errors = BindingStrategy.validate_create(binding.as_object().unwrap());
            let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(texts.join("; "), want);
        }
    }
}
