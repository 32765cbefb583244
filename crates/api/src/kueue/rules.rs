//! What objects of the group may look like and how they may change: the expressions of the
//! definitions, and what webhooks check beyond them.

pub(super) mod cluster_queue;
pub(super) mod local_queue;
pub(super) mod resource_flavor;
pub(super) mod workload;

use k8s_openapi::{
    api::core::v1::Toleration, apimachinery::pkg::api::resource::Quantity as Written,
};

use crate::{
    field::{ErrorList, FieldError, Path},
    kinds::NOT_NEGATIVE,
    meta,
    quantity::Quantity,
    strategy::Json,
};

/// The rule of kinds that have none.
pub(super) fn nothing(_object: &Json, _old: Option<&Json>) -> ErrorList {
    ErrorList::new()
}

/// A share is nothing, or more than what counts as nothing.
fn validate_weight(weight: Option<&Written>, path: &Path) -> Option<FieldError> {
    let written = &weight?.0;
    let refused = |why: &str| Some(FieldError::invalid(path, written, why));
    match Quantity::parse(written) {
        Err(why) => refused(&why.to_string()),
        Ok(weight) if weight.sign() < 0 => refused(NOT_NEGATIVE),
        Ok(weight) if weight.sign() > 0 && weight.scaled(-9) <= 1 => {
            refused("When not 0, weight must be > 10e-9")
        }
        Ok(_) => None,
    }
}

fn validate_tolerations(tolerations: &[Toleration], path: &Path) -> ErrorList {
    let keys = tolerations.iter().enumerate().filter_map(|(at, one)| Some((at, one.key.as_ref()?)));
    keys.filter(|(_, key)| !key.is_empty())
        .flat_map(|(at, key)| meta::validate_label_name(key, &path.index(at).child("key")))
        .collect()
}
