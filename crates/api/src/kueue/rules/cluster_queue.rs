//! What a ClusterQueue may look like.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    field::{ErrorList, FieldError, Path},
    json::{at, list, text},
    kinds::{NOT_NEGATIVE, each, view},
    kueue::{ClusterQueueSpec, FlavorQuotas, ResourceGroup, wait},
    meta, names,
    quantity::Quantity,
    strategy::Json,
};

const NO_COHORT: &str = "must be nil when cohort is empty";
const LENDING: &str = "must be less than or equal to the nominalQuota";
const PREEMPTION: &str = "reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never";
const PREFERENCE: &str =
    "preference can only be set when both whenCanBorrow and whenCanPreempt are TryNextFlavor";
const SIZES: &str = "flavors must have the same number of resources as the coveredResources";
const TOTAL_MAX: usize = 256;
const COMBINATIONS_MAX: usize = 512;

/// What the definition has as expressions.
pub(in crate::kueue) fn expressions(object: &Json, _old: Option<&Json>) -> ErrorList {
    let spec = Path::new("spec");
    let mut errors = ErrorList::new();
    let groups = list(object, &["spec", "resourceGroups"]);
    let flavors = |group: &Value| group["flavors"].as_array().cloned().unwrap_or_default();
    let resources = |flavor: &Value| flavor["resources"].as_array().cloned().unwrap_or_default();
    let mut all = groups.iter().flat_map(flavors).flat_map(|flavor| resources(&flavor));
    if at(object, &["spec", "cohortName"]).is_none()
        && all.any(|resource| resource.get("borrowingLimit").is_some())
    {
        let why = "borrowingLimit must be nil when cohort is empty";
        errors.push(FieldError::invalid_unshown(&spec, why));
    }
    let policy = |field| text(object, &["spec", "flavorFungibility", field]);
    if at(object, &["spec", "flavorFungibility", "preference"]).is_some()
        && ["whenCanBorrow", "whenCanPreempt"].iter().any(|field| policy(field) != "TryNextFlavor")
    {
        errors.push(FieldError::invalid_unshown(&spec.child("flavorFungibility"), PREFERENCE));
    }
    if text(object, &["spec", "preemption", "reclaimWithinCohort"]) == "Never"
        && at(object, &["spec", "preemption", "borrowWithinCohort"]).is_some()
        && text(object, &["spec", "preemption", "borrowWithinCohort", "policy"]) != "Never"
    {
        errors.push(FieldError::invalid_unshown(&spec.child("preemption"), PREEMPTION));
    }
    for (i, group) in groups.iter().enumerate() {
        let covered = group["coveredResources"].as_array().map_or(0, Vec::len);
        if flavors(group).iter().any(|flavor| resources(flavor).len() != covered) {
            let path = spec.child("resourceGroups").index(i);
            errors.push(FieldError::invalid_unshown(&path, SIZES));
        }
    }
    errors
}

/// What a webhook checks.
pub(in crate::kueue) fn webhook(object: &Json, _old: Option<&Json>) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec: ClusterQueueSpec = view(object, "spec", &mut errors);
    if !errors.is_empty() {
        return errors;
    }
    let path = Path::new("spec");
    let groups = path.child("resourceGroups");
    errors.extend(validate_checks(&spec, &path));
    errors.extend(validate_groups(&spec, &groups));
    if let Some(selector) = &spec.namespace_selector {
        let path = path.child("namespaceSelector");
        errors.extend(meta::validate_label_selector(selector, &path));
    }
    let weight = spec.fair_sharing.as_ref().and_then(|sharing| sharing.weight.as_ref());
    errors.extend(super::validate_weight(weight, &path.child("fairSharing")));
    errors.extend(validate_totals(&spec.resource_groups, &groups));
    errors.extend(wait::validate(object));
    errors
}

/// Checks may only name flavors that the queue has.
fn validate_checks(spec: &ClusterQueueSpec, path: &Path) -> ErrorList {
    let path = path.child("admissionChecksStrategy").child("admissionChecks");
    let groups = spec.resource_groups.iter();
    let flavors: BTreeSet<&str> =
        groups.flat_map(|group| &group.flavors).map(|flavor| flavor.name.as_str()).collect();
    let known: Vec<&str> = flavors.iter().copied().collect();
    let checks = spec.admission_checks_strategy.iter().flat_map(|it| &it.admission_checks);
    let mut errors = ErrorList::new();
    for (i, check) in checks.enumerate() {
        let path = path.index(i).child("onFlavors");
        for (j, flavor) in check.on_flavors.iter().enumerate() {
            if !flavors.contains(flavor.as_str()) {
                errors.push(FieldError::not_supported(&path.index(j), flavor, &known));
            }
        }
    }
    errors
}

fn validate_groups(spec: &ClusterQueueSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let (mut resources, mut flavors) = (BTreeSet::new(), BTreeSet::new());
    let has_cohort = !spec.cohort_name.is_empty();
    for (i, group) in spec.resource_groups.iter().enumerate() {
        let path = path.index(i);
        for (j, name) in group.covered_resources.iter().enumerate() {
            let path = path.child("coveredResources").index(j);
            errors.extend(each(&path, name, names::qualified_name(name)));
            if !resources.insert(name) {
                errors.push(FieldError::duplicate(&path, name));
            }
        }
        for (j, flavor) in group.flavors.iter().enumerate() {
            let path = path.child("flavors").index(j);
            errors.extend(validate_flavor(flavor, &group.covered_resources, has_cohort, &path));
            if !flavors.insert(&flavor.name) {
                errors.push(FieldError::duplicate(&path.child("name"), &flavor.name));
            }
        }
    }
    errors
}

fn validate_flavor(
    flavor: &FlavorQuotas,
    covered: &[String],
    has_cohort: bool,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    for (i, (quota, want)) in flavor.resources.iter().zip(covered).enumerate() {
        let path = path.child("resources").index(i);
        if quota.name != *want {
            let why = "must match the name in coveredResources";
            errors.push(FieldError::invalid(&path.child("name"), &quota.name, why));
        }
        let nominal = &quota.nominal_quota.0;
        errors.extend(validate_amount(nominal, &path.child("nominalQuota")));
        if let Some(limit) = &quota.borrowing_limit {
            let path = path.child("borrowingLimit");
            if !has_cohort {
                errors.push(FieldError::invalid(&path, &limit.0, NO_COHORT));
            }
            errors.extend(validate_amount(&limit.0, &path));
        }
        if let Some(limit) = &quota.lending_limit {
            let path = path.child("lendingLimit");
            errors.extend(validate_amount(&limit.0, &path));
            if !has_cohort {
                errors.push(FieldError::invalid(&path, &limit.0, NO_COHORT));
            }
            let amounts = (Quantity::parse(&limit.0), Quantity::parse(nominal));
            if matches!(amounts, (Ok(limit), Ok(nominal)) if limit > nominal) {
                errors.push(FieldError::invalid(&path, &limit.0, LENDING));
            }
        }
    }
    errors
}

fn validate_amount(amount: &str, path: &Path) -> Option<FieldError> {
    match Quantity::parse(amount) {
        Ok(parsed) if parsed.sign() >= 0 => None,
        Ok(_) => Some(FieldError::invalid(path, amount, NOT_NEGATIVE)),
        Err(why) => Some(FieldError::invalid(path, amount, &why.to_string())),
    }
}

fn validate_totals(groups: &[ResourceGroup], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let flavors: usize = groups.iter().map(|group| group.flavors.len()).sum();
    let covered: usize = groups.iter().map(|group| group.covered_resources.len()).sum();
    for (what, total) in [("flavors", flavors), ("covered resources", covered)] {
        if total > TOTAL_MAX {
            let why = format!(
                "total number of {what} across all resourceGroups must be ≤ {TOTAL_MAX}, got \
                 {total}"
            );
            errors.push(FieldError::invalid(path, total, &why));
        }
    }
    for (i, group) in groups.iter().enumerate() {
        let total: usize = group.flavors.iter().map(|flavor| flavor.resources.len()).sum();
        if total > COMBINATIONS_MAX {
            let why = format!(
                "number of flavor-resource combinations in a resourceGroup must be ≤ \
                 {COMBINATIONS_MAX}, got {total}"
            );
            errors.push(FieldError::invalid(&path.index(i), total, &why));
        }
    }
    errors
}
