//! What is refused in a LimitRange, with the rules and the words of `ValidateLimitRange`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::each;
use crate::{
    amounts::{self, Amounts},
    field::{ErrorList, FieldError, Path},
    json::list,
    names,
    pod::validation::{container_resource_name, is_overcommittable, resource_name},
    quantity::{MILLI_VALUE_MAX, Quantity},
    strategy::Json,
};

/// Says what is wrong with a LimitRange.
pub(super) fn validate(object: &Json) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut kinds = BTreeSet::new();
    let path = Path::new("spec").child("limits");
    for (at, item) in list(object, &["spec", "limits"]).iter().enumerate() {
        let path = path.index(at);
        let kind = item["type"].as_str().unwrap_or_default();
        errors.extend(kind_faults(kind, &path.child("type")));
        if !kinds.insert(kind) {
            errors.push(FieldError::duplicate(&path.child("type"), kind));
        }
        Item::read(item, kind, &path, &mut errors).validate(&path, &mut errors);
    }
    errors
}

fn kind_faults(kind: &str, path: &Path) -> ErrorList {
    let mut errors: ErrorList = each(path, kind, names::qualified_name(kind)).collect();
    let is_standard = matches!(kind, "Pod" | "Container" | "PersistentVolumeClaim");
    if errors.is_empty() && !kind.contains('/') && !is_standard {
        let why = "must be a standard limit type or fully qualified";
        errors.push(FieldError::invalid(path, kind, why));
    }
    errors
}

/// The lists of an item that belong into one of its kind.
struct Item {
    min: Amounts,
    max: Amounts,
    default: Amounts,
    default_request: Amounts,
    ratio: Amounts,
}

impl Item {
    /// Reads the lists and says what is wrong with their names.
    fn read(item: &Value, kind: &str, path: &Path, errors: &mut ErrorList) -> Self {
        let read = |field: &str, errors: &mut ErrorList| {
            let listed = amounts::read(item.get(field));
            for name in listed.keys() {
                let path = path.child(field).key(name);
                errors.extend(match kind {
                    "Pod" | "Container" => container_resource_name(name, &path),
                    _ => resource_name(name, &path),
                });
            }
            listed
        };
        let max = read("max", errors);
        let min = read("min", errors);
        let mut defaults = |field: &str| {
            if kind != "Pod" {
                return read(field, errors);
            }
            if !amounts::read(item.get(field)).is_empty() {
                let why = "may not be specified when `type` is 'Pod'";
                errors.push(FieldError::forbidden(&path.child(field), why));
            }
            Amounts::new()
        };
        let (default, default_request) = (defaults("default"), defaults("defaultRequest"));
        let has_size = max.contains_key("storage") || min.contains_key("storage");
        if kind == "PersistentVolumeClaim" && !has_size {
            let why =
                "either minimum or maximum storage value is required, but neither was provided";
            errors.push(FieldError::required(&path.child("limits"), why));
        }
        let ratio = read("maxLimitRequestRatio", errors);
        Self { min, max, default, default_request, ratio }
    }

    /// Says which of the amounts contradict each other.
    fn validate(&self, path: &Path, errors: &mut ErrorList) {
        let lists = [&self.max, &self.min, &self.default, &self.default_request, &self.ratio];
        let names: BTreeSet<&String> = lists.into_iter().flat_map(Amounts::keys).collect();
        for name in names {
            self.validate_order(name, path, errors);
            self.validate_ratio(name, path, errors);
            let (default, request) = (self.default.get(name), self.default_request.get(name));
            if let (Some(default), Some(request)) = (default, request)
                && !is_overcommittable(name)
                && default != request
            {
                let why = format!(
                    "default value {default} must equal to defaultRequest value {request} in {name}"
                );
                let path = path.child("defaultRequest").key(name);
                errors.push(FieldError::invalid(&path, request.to_string(), &why));
            }
        }
    }

    fn validate_order(&self, name: &str, path: &Path, errors: &mut ErrorList) {
        let min = ("min", self.min.get(name));
        let max = ("max", self.max.get(name));
        let default = ("default", self.default.get(name));
        let limit = ("default limit", self.default.get(name));
        let request = ("default request", self.default_request.get(name));
        // What must not be greater than what, the field that is blamed, and whether it is the
        // greater one that is shown there.
        let rules = [
            (min, max, "min", true),
            (min, request, "defaultRequest", false),
            (request, max, "defaultRequest", true),
            (request, limit, "defaultRequest", true),
            (min, default, "default", true),
            (default, max, "default", false),
        ];
        for ((low_name, low), (high_name, high), field, is_low_shown) in rules {
            let (Some(low), Some(high)) = (low, high) else { continue };
            if low <= high {
                continue;
            }
            let why = format!("{low_name} value {low} is greater than {high_name} value {high}");
            let shown = if is_low_shown { low } else { high };
            let path = path.child(field).key(name);
            errors.push(FieldError::invalid(&path, shown.to_string(), &why));
        }
    }

    fn validate_ratio(&self, name: &str, path: &Path, errors: &mut ErrorList) {
        let Some(ratio) = self.ratio.get(name) else { return };
        let path = path.child("maxLimitRequestRatio").key(name);
        if *ratio < Quantity::whole(1) {
            let why = format!("ratio {ratio} is less than 1");
            errors.push(FieldError::invalid(&path, ratio.to_string(), &why));
        }
        let (Some(min), Some(max)) = (self.min.get(name), self.max.get(name)) else { return };
        let is_fine = [ratio, min, max].iter().all(|it| it.value() < MILLI_VALUE_MAX);
        let quotient = if is_fine {
            max.milli_value() as f64 / min.milli_value() as f64
        } else {
            max.value() as f64 / min.value() as f64
        };
        let wanted =
            if is_fine { ratio.milli_value() as f64 / 1000.0 } else { ratio.value() as f64 };
        if wanted > quotient {
            let why = format!("ratio {ratio} is greater than max/min = {quotient:.6}");
            errors.push(FieldError::invalid(&path, ratio.to_string(), &why));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The text of a fault of the first item.
    fn at(rest: &str) -> String {
        format!("spec.limits[0].{rest}")
    }

    fn check(cases: Vec<(&str, Value, Vec<String>)>) {
        for (name, item, want) in cases {
            let object = json!({"spec": {"limits": [item]}});
            let errors = validate(object.as_object().unwrap());
            let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(found, want, "{name}");
        }
    }

    #[test]
    fn ranges_must_not_contradict_themselves() {
        check(vec![
            (
                "fine",
                json!({"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "1"}}),
                vec![],
            ),
            (
                "an unknown kind",
                json!({"type": "Thing"}),
                vec![at("type: Invalid value: \"Thing\": must be a standard limit type or fully \
                         qualified")],
            ),
            ("another's kind", json!({"type": "example.com/thing"}), vec![]),
            (
                "a wrong name",
                json!({"type": "Container", "max": {"storage": "2"}}),
                vec![at(
                    "max[storage]: Invalid value: \"storage\": must be a standard resource for \
                         containers",
                )],
            ),
            (
                "less than the least",
                json!({"type": "Pod", "max": {"cpu": "1"}, "min": {"cpu": "2"}}),
                vec![at("min[cpu]: Invalid value: \"2\": min value 2 is greater than max value 1")],
            ),
            (
                "defaults out of bounds",
                json!({"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "1"},
                    "default": {"cpu": "3"}, "defaultRequest": {"cpu": "500m"}}),
                vec![
                    at(
                        "defaultRequest[cpu]: Invalid value: \"500m\": min value 1 is greater than \
                        default request value 500m",
                    ),
                    at("default[cpu]: Invalid value: \"2\": default value 3 is greater than max \
                        value 2"),
                ],
            ),
            (
                "a request beyond its limit",
                json!({"type": "Container", "default": {"cpu": "1"},
                    "defaultRequest": {"cpu": "2"}}),
                vec![at("defaultRequest[cpu]: Invalid value: \"2\": default request value 2 is \
                         greater than default limit value 1")],
            ),
        ]);
    }

    #[test]
    fn each_kind_of_range_has_its_own_bounds() {
        check(vec![
            (
                "defaults of pods",
                json!({"type": "Pod", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}}),
                vec![
                    at("default: Forbidden: may not be specified when `type` is 'Pod'"),
                    at("defaultRequest: Forbidden: may not be specified when `type` is 'Pod'"),
                ],
            ),
            (
                "a claim of any size",
                json!({"type": "PersistentVolumeClaim"}),
                vec![at("limits: Required value: either minimum or maximum storage value is \
                         required, but neither was provided")],
            ),
            (
                "a ratio below one",
                json!({"type": "Pod", "maxLimitRequestRatio": {"cpu": "800m"}}),
                vec![at("maxLimitRequestRatio[cpu]: Invalid value: \"800m\": ratio 800m is less \
                         than 1")],
            ),
            (
                "a ratio nobody can have",
                json!({"type": "Pod", "maxLimitRequestRatio": {"cpu": "10"}, "min": {"cpu": "1"},
                    "max": {"cpu": "2"}}),
                vec![at("maxLimitRequestRatio[cpu]: Invalid value: \"10\": ratio 10 is greater \
                         than max/min = 2.000000")],
            ),
            (
                "what cannot be shared",
                json!({"type": "Container", "default": {"nvidia.com/gpu": "2"},
                    "defaultRequest": {"nvidia.com/gpu": "1"}}),
                vec![at("defaultRequest[nvidia.com/gpu]: Invalid value: \"1\": default value 2 \
                         must equal to defaultRequest value 1 in nvidia.com/gpu")],
            ),
        ]);
    }

    #[test]
    fn each_kind_has_one_item() {
        let object = json!({"spec": {"limits": [{"type": "Pod"}, {"type": "Pod"}]}});
        let errors = validate(object.as_object().unwrap());
        let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(found, ["spec.limits[1].type: Duplicate value: \"Pod\""]);
    }
}
