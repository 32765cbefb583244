//! What a LocalQueue may look like, and that it stays at its ClusterQueue.

use crate::{
    field::{ErrorList, FieldError, Path},
    json::at,
    kinds::{IMMUTABLE, view},
    kueue::{LocalQueueSpec, wait},
    strategy::Json,
};

/// What the definition has as expressions.
pub(in crate::kueue) fn expressions(object: &Json, old: Option<&Json>) -> ErrorList {
    let queue = |of| at(of, &["spec", "clusterQueue"]);
    let before = old.and_then(queue);
    // The rule is not asked when the field comes or goes.
    match (queue(object), before) {
        (Some(now), Some(before)) if now != before => {
            let path = Path::new("spec").child("clusterQueue");
            vec![FieldError::invalid_unshown(&path, IMMUTABLE)]
        }
        _ => ErrorList::new(),
    }
}

/// What a webhook checks.
pub(in crate::kueue) fn webhook(object: &Json, _old: Option<&Json>) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec: LocalQueueSpec = view(object, "spec", &mut errors);
    let weight = spec.fair_sharing.as_ref().and_then(|sharing| sharing.weight.as_ref());
    errors.extend(super::validate_weight(weight, &Path::new("spec").child("fairSharing")));
    errors.extend(wait::validate(object));
    errors
}
