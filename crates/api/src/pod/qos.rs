//! The quality-of-service class of a pod.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{json, quantity::Quantity, strategy::Json};

const COUNTED: [&str; 2] = ["cpu", "memory"];

/// `Guaranteed` when every container limits CPU and memory and requests just that, `BestEffort`
/// when none says anything about them, else `Burstable`.
pub fn class(spec: &Json) -> &'static str {
    let mut requests = BTreeMap::new();
    let mut limits = BTreeMap::new();
    let mut is_limited = true;
    if let Some(own) = spec.get("resources").filter(|own| !own.is_null()) {
        add(&mut requests, own.get("requests"));
        let counted = add(&mut limits, own.get("limits"));
        let has_limits =
            own.get("limits").and_then(Value::as_object).is_some_and(|limits| !limits.is_empty());
        is_limited = !has_limits || counted == COUNTED.len();
    } else {
        for list in ["containers", "initContainers"] {
            for container in json::list(spec, &[list]) {
                add(&mut requests, container.pointer("/resources/requests"));
                let counted = add(&mut limits, container.pointer("/resources/limits"));
                is_limited &= counted == COUNTED.len();
            }
        }
    }
    if requests.is_empty() && limits.is_empty() {
        "BestEffort"
    } else if is_limited && requests == limits {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// Adds the amounts that count and answers how many did.
fn add(total: &mut BTreeMap<&'static str, Quantity>, list: Option<&Value>) -> usize {
    let mut counted = 0;
    for name in COUNTED {
        let amount = list.and_then(|list| list.get(name)).and_then(Value::as_str);
        let Some(amount) = amount.and_then(|text| Quantity::parse(text).ok()) else { continue };
        if amount.sign() > 0 {
            let sum = total.get(name).map_or(amount, |have| have.plus(&amount));
            total.insert(name, sum);
            counted += 1;
        }
    }
    counted
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::class;

    #[test]
    fn the_class_follows_from_requests_and_limits() {
        let both = |cpu: &str, memory: &str| json!({"cpu": cpu, "memory": memory});
        let one = |resources: Value| json!({"containers": [{"resources": resources}]});
        let equal = json!({"requests": both("1", "1Gi"), "limits": both("1000m", "1024Mi")});
        let cases = [
            ("nothing said", one(json!({})), "BestEffort"),
            ("zero is nothing", one(json!({"limits": both("0", "0")})), "BestEffort"),
            ("other resources", one(json!({"limits": {"nvidia.com/gpu": "1"}})), "BestEffort"),
            ("equal", one(equal.clone()), "Guaranteed"),
            (
                "limit for one",
                one(json!({"requests": {"cpu": "1"}, "limits": {"cpu": "1"}})),
                "Burstable",
            ),
            ("request only", one(json!({"requests": {"cpu": "1"}})), "Burstable"),
            (
                "an init container without limits",
                json!({"containers": [{"resources": equal}], "initContainers": [{}]}),
                "Burstable",
            ),
            (
                "the pod's own resources decide",
                json!({"resources": equal, "containers": [{}]}),
                "Guaranteed",
            ),
        ];
        for (name, spec, want) in cases {
            assert_eq!(class(spec.as_object().unwrap()), want, "{name}");
        }
    }
}
