//! What a new JobSet may look like.

mod claims;
mod coordinator;
mod failure_policy;
mod replicated_jobs;

pub(super) use claims::validate_existing;

use serde_json::Value;

use super::{JobSetSpec, in_place};
use crate::{
    field::{ErrorList, FieldError, Path},
    gates::Gates,
    json::{at, text},
    kinds::{each, view},
    labels::jobset::RESTARTS_MAX_PREFIX,
    names,
    strategy::Json,
};

/// The end of what is said of a DNS label that is too long.
const TOO_LONG: &str = "must be no more than 63 characters";

/// Says what is wrong with a new JobSet.
pub(super) fn validate(object: &Json, gates: Gates) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec: JobSetSpec = view(object, "spec", &mut errors);
    if !errors.is_empty() {
        return errors;
    }
    let name = text(object, &["metadata", "name"]);
    if !gates.in_place_restart && replicated_jobs::is_in_place(&spec) {
        errors.push(FieldError::internal(
            "InPlaceRestart restart strategy cannot be set when InPlaceRestart feature gate is \
             disabled",
        ));
    }
    if spec.replicated_jobs.first().is_some_and(|first| first.depends_on.is_some()) {
        let why = "DependsOn can't be set for the first ReplicatedJob";
        errors.push(FieldError::internal(why));
    }
    errors.extend(validate_subdomain(&spec));
    if let Some(manager) = &spec.managed_by {
        let path = Path::new("spec").child("managedBy");
        errors.extend(crate::job::validate_manager(manager, &path));
    }
    errors.extend(replicated_jobs::validate(name, &spec, gates));
    for target in spec.success_policy.iter().flat_map(|policy| &policy.target_replicated_jobs) {
        if !is_replicated_job(&spec, target) {
            errors.push(FieldError::internal(&format!(
                "invalid replicatedJob name '{target}' does not appear in .spec.ReplicatedJobs"
            )));
        }
    }
    errors.extend(failure_policy::validate(&spec, gates));
    errors.extend(coordinator::validate(name, &spec));
    errors.extend(claims::validate(name, object, &spec));
    errors.extend(validate_annotations(object, None));
    errors
}

/// Says what is wrong with annotations that ask for something: how often a rule may restart
/// something, and restarts in place.
pub(super) fn validate_annotations(object: &Json, old: Option<&Json>) -> ErrorList {
    let spec: JobSetSpec = view(object, "spec", &mut ErrorList::new());
    let annotations = at(object, &["metadata", "annotations"]).and_then(Value::as_object);
    let path = Path::new("metadata").child("annotations");
    let mut errors = ErrorList::new();
    for (key, value) in annotations.into_iter().flatten() {
        let Some(name) = key.strip_prefix(RESTARTS_MAX_PREFIX) else { continue };
        let value = value.as_str().unwrap_or_default();
        let mut rules = spec.failure_policy.iter().flat_map(|policy| &policy.rules);
        if !rules.any(|rule| rule.name == name) {
            let why = "must end with the name of a rule of spec.failurePolicy";
            errors.push(FieldError::invalid(&path.key(key), value, why));
        }
        if !value.parse::<i32>().is_ok_and(|most| most >= 0) {
            let why = "must be a number of restarts, such as \"3\"";
            errors.push(FieldError::invalid(&path.key(key), value, why));
        }
    }
    errors.extend(in_place::validate(object, old, &spec));
    errors
}

fn validate_subdomain(spec: &JobSetSpec) -> ErrorList {
    let path = Path::new("spec").child("network").child("subdomain");
    let Some(subdomain) = spec.network.as_ref().map(|network| network.subdomain.as_str()) else {
        return ErrorList::new();
    };
    if subdomain.is_empty() {
        return ErrorList::new();
    }
    let mut errors: ErrorList =
        each(&path, subdomain, names::dns1123_subdomain(subdomain)).collect();
    let why = ".spec.network.subdomain is too long, must be less than 63 characters";
    errors.extend(label(&path, subdomain, subdomain, why));
    errors
}

/// Errors for what is wrong with `name` as a DNS label; `why` when it is too long. Errors show
/// `shown`.
fn label(path: &Path, shown: &str, name: &str, why: &str) -> ErrorList {
    let faults = names::dns1035_label(name).into_iter();
    let faults = faults.map(|fault| {
        let text = if fault.contains(TOO_LONG) { why } else { &fault };
        FieldError::invalid(path, shown, text)
    });
    faults.collect()
}

fn is_replicated_job(spec: &JobSetSpec, name: &str) -> bool {
    spec.replicated_jobs.iter().any(|job| job.name == name)
}
