//! Amounts of resources by their names: what containers ask for, what pods come to, what is left.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{json, quantity::Quantity, strategy::Json};

/// How much there is of what.
pub type Amounts = BTreeMap<String, Quantity>;

/// The amounts that an object lists. What is no quantity is left out: the schema was checked
/// before.
pub fn read(listed: Option<&Value>) -> Amounts {
    let listed = listed.and_then(Value::as_object).into_iter().flatten();
    listed
        .filter_map(|(name, amount)| Some((name.clone(), Quantity::parse(amount.as_str()?).ok()?)))
        .collect()
}

/// The amounts as an object lists them.
pub fn written(amounts: &Amounts) -> Value {
    let listed = amounts.iter().map(|(name, amount)| (name.clone(), amount.to_string().into()));
    Value::Object(listed.collect::<Map<String, Value>>())
}

/// Adds what there is more of.
pub fn add(total: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let sum = total.get(name).map_or(*amount, |have| have.plus(amount));
        total.insert(name.clone(), sum);
    }
}

/// Keeps the larger of two amounts for each name.
pub fn keep_larger(total: &mut Amounts, other: Amounts) {
    for (name, amount) in other {
        if total.get(&name).is_none_or(|have| amount > *have) {
            total.insert(name, amount);
        }
    }
}

/// What all containers of a pod have as `requests` or `limits` at once: the sum of those that run
/// together, or more if an init container needs more.
pub fn of_containers(spec: &Json, field: &str) -> Amounts {
    let mut total = Amounts::new();
    for container in json::list(spec, &["containers"]) {
        add(&mut total, &of_container(container, field));
    }
    let (mut sidecars, mut initial) = (Amounts::new(), Amounts::new());
    for container in json::list(spec, &["initContainers"]) {
        let own = of_container(container, field);
        let mut now = sidecars.clone();
        add(&mut now, &own);
        if container.get("restartPolicy").and_then(Value::as_str) == Some("Always") {
            add(&mut total, &own);
            sidecars = now.clone();
        }
        keep_larger(&mut initial, now);
    }
    keep_larger(&mut total, initial);
    total
}

/// What one container has as `requests` or `limits`.
pub fn of_container(container: &Value, field: &str) -> Amounts {
    read(container.get("resources").and_then(|resources| resources.get(field)))
}
