//! Lease: who leads, and until when.

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::LeaseSpec;
use serde_json::Value;

use crate::{
    duration::age,
    field::{ErrorList, FieldError, Path},
    json::text,
    kinds::{NOT_NEGATIVE, view},
    names,
    strategy::{Column, Json, Strategy, WriteContext},
    table::{self, AGE, NAME, column},
};

const COLUMNS: &[Column] = &[NAME, column("Holder", "Who holds the lease."), AGE];

/// Lease.
#[derive(Debug)]
pub struct LeaseStrategy;

impl Strategy for LeaseStrategy {
    fn prepare_create(&self, object: &mut Json, _context: &WriteContext) {
        drop_coordinated_election(object);
    }

    fn prepare_update(&self, object: &mut Json, _old: &Json, _context: &WriteContext) {
        drop_coordinated_election(object);
    }

    fn validate_create(&self, object: &Json) -> ErrorList {
        let mut errors = ErrorList::new();
        let spec: LeaseSpec = view(object, "spec", &mut errors);
        let path = Path::new("spec");
        if let Some(seconds) = spec.lease_duration_seconds.filter(|seconds| *seconds <= 0) {
            let path = path.child("leaseDurationSeconds");
            errors.push(FieldError::invalid(&path, seconds, "must be greater than 0"));
        }
        if let Some(count) = spec.lease_transitions.filter(|count| *count < 0) {
            errors.push(FieldError::invalid(&path.child("leaseTransitions"), count, NOT_NEGATIVE));
        }
        errors
    }

    fn needs_qualified_finalizers(&self) -> bool {
        false
    }

    fn validate_name(&self, name: &str, is_prefix: bool) -> Vec<String> {
        names::name_is_dns_subdomain(name, is_prefix)
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn row(&self, object: &Json, now: Timestamp) -> Vec<Value> {
        let holder = text(object, &["spec", "holderIdentity"]);
        vec![table::name(object), holder.into(), age(object, now).into()]
    }
}

/// Coordinated leader election is off by default upstream, and its fields are dropped then.
fn drop_coordinated_election(object: &mut Json) {
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("strategy");
        spec.remove("preferredHolder");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn leases_last_a_while() {
        let cases = [
            (json!({"spec": {"leaseDurationSeconds": 1, "leaseTransitions": 0}}), vec![]),
            (json!({}), vec![]),
            (
                json!({"spec": {"leaseDurationSeconds": 0, "leaseTransitions": -1}}),
                vec![
                    "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
                    "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
                ],
            ),
        ];
        for (lease, want) in cases {
            let errors = LeaseStrategy.validate_create(lease.as_object().unwrap());
            let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(texts, want, "{lease}");
        }
    }
}
