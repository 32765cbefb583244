//! LimitRange: what each container, pod or claim of a namespace gets when it says nothing, and how
//! little and how much it may ask for.

mod enforce;
mod fill;
mod validation;

use jiff::Timestamp;
use serde_json::Value;

pub use enforce::{claim_faults, pod_faults};
pub use fill::fill_pod;

use crate::{
    field::ErrorList,
    json::{object_mut, text},
    names,
    strategy::{Column, Json, MetadataCheck, Strategy},
    table::{self, NAME, column},
};

/// Annotation of pods that says what was filled in.
pub const ANNOTATION: &str = "kubernetes.io/limit-ranger";

const COLUMNS: &[Column] =
    &[NAME, Column { kind: "date", ..column("Created At", "When it was made.") }];

/// LimitRange.
#[derive(Debug)]
pub struct LimitRangeStrategy;

impl Strategy for LimitRangeStrategy {
    fn fill_defaults(&self, object: &mut Json) {
        let limits = object.get_mut("spec").and_then(|spec| spec.get_mut("limits"));
        let items = limits.and_then(Value::as_array_mut).into_iter().flatten();
        for item in items.filter_map(Value::as_object_mut) {
            if text(item, &["type"]) == "Container" {
                copy_missing(item, "max", "default");
                copy_missing(item, "default", "defaultRequest");
                copy_missing(item, "min", "defaultRequest");
            }
        }
    }

    fn validate_create(&self, object: &Json) -> ErrorList {
        validation::validate(object)
    }

    fn metadata_check(&self) -> MetadataCheck {
        MetadataCheck::New
    }

    fn validate_name(&self, name: &str, is_prefix: bool) -> Vec<String> {
        names::name_is_dns_subdomain(name, is_prefix)
    }

    fn is_named_by_the_server(&self) -> bool {
        true
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn row(&self, object: &Json, _now: Timestamp) -> Vec<Value> {
        vec![table::name(object), text(object, &["metadata", "creationTimestamp"]).into()]
    }
}

/// Gives the list `to` what only the list `from` has.
fn copy_missing(item: &mut Json, from: &str, to: &str) {
    let Some(listed) = item.get(from).and_then(Value::as_object).cloned() else { return };
    if listed.is_empty() {
        return;
    }
    let target = object_mut(item, to);
    for (name, amount) in listed {
        target.entry(name).or_insert(amount);
    }
}

/// The items of a range that are about `kind`.
fn items<'a>(range: &'a Json, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    let all = crate::json::list(range, &["spec", "limits"]).iter();
    all.filter(move |item| item["type"] == kind)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_containers_get_follows_from_what_they_may_have() {
        let cases = [
            (
                "the most is the limit and the request",
                json!({"type": "Container", "max": {"cpu": "2"}}),
                json!({"type": "Container", "max": {"cpu": "2"}, "default": {"cpu": "2"},
                    "defaultRequest": {"cpu": "2"}}),
            ),
            (
                "the least is the request",
                json!({"type": "Container", "min": {"cpu": "1"}}),
                json!({"type": "Container", "min": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}}),
            ),
            (
                "a limit comes before the least",
                json!({"type": "Container", "min": {"cpu": "1"}, "default": {"cpu": "3"}}),
                json!({"type": "Container", "min": {"cpu": "1"}, "default": {"cpu": "3"},
                    "defaultRequest": {"cpu": "3"}}),
            ),
            (
                "what was said stays",
                json!({"type": "Container", "max": {"cpu": "4"}, "default": {"cpu": "3"},
                    "defaultRequest": {"cpu": "2"}}),
                json!({"type": "Container", "max": {"cpu": "4"}, "default": {"cpu": "3"},
                    "defaultRequest": {"cpu": "2"}}),
            ),
            (
                "pods get nothing",
                json!({"type": "Pod", "max": {"cpu": "4"}}),
                json!({"type": "Pod", "max": {"cpu": "4"}}),
            ),
        ];
        for (name, item, want) in cases {
            let object = json!({"spec": {"limits": [item]}});
            let mut object = object.as_object().unwrap().clone();
            LimitRangeStrategy.fill_defaults(&mut object);
            assert_eq!(object["spec"]["limits"][0], want, "{name}");
        }
    }
}
