//! Amounts of resources in flavors.

use std::{collections::BTreeMap, fmt, sync::Arc};

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use lockstep_api::quantity;

/// A resource in a flavor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlavorResource {
    /// The flavor.
    pub flavor: Arc<str>,
    /// The resource.
    pub resource: Arc<str>,
}

impl FlavorResource {
    pub(super) fn new(flavor: &Arc<str>, resource: &Arc<str>) -> Self {
        Self { flavor: Arc::clone(flavor), resource: Arc::clone(resource) }
    }
}

impl fmt::Display for FlavorResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in flavor {}", self.resource, self.flavor)
    }
}

/// How much of what: thousandths of CPUs, whole units of all else.
pub(super) type Amounts = BTreeMap<FlavorResource, i64>;

/// Adds `more` to what `amounts` has of each.
pub(super) fn add(amounts: &mut Amounts, more: &Amounts) {
    for (what, amount) in more {
        let own = amounts.entry(what.clone()).or_insert(0);
        *own = own.saturating_add(*amount);
    }
}

/// Takes `less` away from what `amounts` has of each; what has come to nothing is forgotten.
pub(super) fn subtract(amounts: &mut Amounts, less: &Amounts) {
    for (what, amount) in less {
        let own = amounts.entry(what.clone()).or_insert(0);
        *own = own.saturating_sub(*amount);
        if *own == 0 {
            amounts.remove(what);
        }
    }
}

/// What `amounts` has of one.
pub(super) fn of(amounts: &Amounts, what: &FlavorResource) -> i64 {
    amounts.get(what).copied().unwrap_or(0)
}

/// Reads a quantity of a resource; `None` if it is none.
pub(super) fn read(resource: &str, text: &Quantity) -> Option<i64> {
    let quantity = quantity::Quantity::parse(&text.0).ok()?;
    Some(if resource == "cpu" { quantity.milli_value() } else { quantity.value() })
}

/// An amount of a resource as people write it.
pub fn quantity_text(resource: &str, amount: i64) -> String {
    let quantity = match resource {
        "cpu" => quantity::Quantity::milli(amount),
        "memory" | "ephemeral-storage" => quantity::Quantity::bytes(amount),
        _ if resource.starts_with("hugepages-") => quantity::Quantity::bytes(amount),
        _ => quantity::Quantity::whole(amount),
    };
    quantity.to_string()
}

/// An amount of a resource as the API has it.
pub(super) fn write(resource: &str, amount: i64) -> Quantity {
    Quantity(quantity_text(resource, amount))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_and_written() {
        let cases = [
            ("cpu", "1500m", Some(1500), "1500m"),
            ("cpu", "2", Some(2000), "2"),
            ("memory", "1Gi", Some(1 << 30), "1Gi"),
            ("nvidia.com/gpu", "3", Some(3), "3"),
            ("cpu", "many", None, ""),
            ("nvidia.com/gpu", "99999999999999999999999", Some(i64::MAX), "9223372036854775807"),
        ];
        for (resource, text, want, again) in cases {
            let got = read(resource, &Quantity(text.to_owned()));
            assert_eq!(got, want, "{resource} {text}");
            if let Some(amount) = got {
                assert_eq!(quantity_text(resource, amount), again);
            }
        }
    }
}
