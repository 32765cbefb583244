//! What stands against an apply: fields that others own and have other values for.

use std::collections::BTreeMap;

use lockstep_api::{
    Status,
    quote::quoted,
    status::{Cause, Details},
};

use super::{Entry, Operation};
use crate::fields::Path;

/// One field that somebody else owns.
#[derive(Clone, Debug)]
pub struct Conflict {
    /// Who owns it.
    pub owner: Entry,
    /// The field.
    pub path: Path,
}

/// 409: what an apply is answered that would take fields from others.
pub(super) fn status(conflicts: &[Conflict]) -> Status {
    let causes = conflicts
        .iter()
        .map(|conflict| Cause {
            reason: "FieldManagerConflict".to_owned(),
            message: format!("conflict with {}", shown(&conflict.owner)),
            field: conflict.path.to_string(),
        })
        .collect();
    Status::apply_conflict(message(conflicts))
        .with_details(Details { causes, ..Details::default() })
}

fn message(conflicts: &[Conflict]) -> String {
    if let [one] = conflicts {
        let owner = shown(&one.owner);
        return format!("Apply failed with 1 conflict: conflict with {owner}: {}", one.path);
    }
    let mut owners: BTreeMap<String, Vec<&Conflict>> = BTreeMap::new();
    for conflict in conflicts {
        owners.entry(conflict.owner.identifier()).or_default().push(conflict);
    }
    let mut lines = Vec::new();
    for conflicts in owners.values() {
        lines.push(format!("conflicts with {}:", shown(&conflicts[0].owner)));
        lines.extend(conflicts.iter().map(|conflict| format!("- {}", conflict.path)));
    }
    format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
}

fn shown(owner: &Entry) -> String {
    let mut text = quoted(&owner.manager);
    if !owner.subresource.is_empty() {
        text = format!("{text} with subresource {}", quoted(&owner.subresource));
    }
    match owner.operation {
        Operation::Apply => text,
        Operation::Update => format!("{text} using {}", owner.api_version),
    }
}
