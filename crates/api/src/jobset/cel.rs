//! The rules that the CustomResourceDefinition has as expressions, in Rust.

use serde_json::Value;

use crate::{
    field::{ErrorList, FieldError, Path},
    json::{at, list, text},
    strategy::Json,
};

const EXCLUSIVE: &str = "StartupPolicy and DependsOn APIs are mutually exclusive";
const NAMESPACE: &str = "namespace cannot be set for VolumeClaimPolicies templates";

/// What never changes as long as it is there.
const IMMUTABLE: [&str; 5] =
    ["network", "successPolicy", "failurePolicy", "startupPolicy", "volumeClaimPolicies"];

/// Checks what holds for every JobSet.
pub(super) fn validate(object: &Json) -> ErrorList {
    let mut errors = ErrorList::new();
    errors.extend(validate_order(object));
    let path = Path::new("spec").child("volumeClaimPolicies");
    for (i, policy) in list(object, &["spec", "volumeClaimPolicies"]).iter().enumerate() {
        errors.extend(validate_claims(policy, &path.index(i)));
    }
    errors
}

/// Checks what holds between a JobSet and what it was before.
pub(super) fn validate_change(object: &Json, old: &Json) -> ErrorList {
    let spec = Path::new("spec");
    let immutable = |path: &Path| FieldError::invalid_unshown(path, "Value is immutable");
    let mut errors = ErrorList::new();
    for field in IMMUTABLE {
        // The rule is not asked when a field comes or goes.
        let (new, old) = (at(object, &["spec", field]), at(old, &["spec", field]));
        if new.is_some() && old.is_some() && new != old {
            errors.push(immutable(&spec.child(field)));
        }
    }
    let before = list(old, &["spec", "replicatedJobs"]);
    for (i, job) in list(object, &["spec", "replicatedJobs"]).iter().enumerate() {
        let twin = before.iter().find(|old| old.get("name") == job.get("name"));
        let (new, old) = (job.get("dependsOn"), twin.and_then(|old| old.get("dependsOn")));
        if new.is_some() && old.is_some() && new != old {
            let path = spec.child("replicatedJobs").index(i).child("dependsOn");
            errors.push(immutable(&path));
        }
    }
    errors
}

fn validate_order(object: &Json) -> Option<FieldError> {
    if text(object, &["spec", "startupPolicy", "startupPolicyOrder"]) != "InOrder" {
        return None;
    }
    let path = Path::new("spec");
    match at(object, &["spec", "replicatedJobs"]).and_then(Value::as_array) {
        None => Some(no_such_key(&path, "replicatedJobs", EXCLUSIVE)),
        Some(jobs) => jobs
            .iter()
            .any(|job| job.get("dependsOn").is_some())
            .then(|| FieldError::invalid_unshown(&path, EXCLUSIVE)),
    }
}

fn validate_claims(policy: &Value, path: &Path) -> Option<FieldError> {
    let Some(templates) = policy.get("templates").and_then(Value::as_array) else {
        return Some(no_such_key(path, "templates", NAMESPACE));
    };
    let namespace = |claim: &Value| {
        let meta = claim.get("metadata")?;
        Some(meta.get("namespace").and_then(Value::as_str).unwrap_or_default().to_owned())
    };
    let named: Vec<Option<String>> = templates.iter().map(namespace).collect();
    // One that decides is worth more than one that cannot be looked at.
    if named.iter().flatten().any(|namespace| !namespace.is_empty()) {
        return Some(FieldError::invalid_unshown(path, NAMESPACE));
    }
    named.contains(&None).then(|| no_such_key(path, "metadata", NAMESPACE))
}

/// What is said of a rule that looks at something that is not there.
fn no_such_key(path: &Path, key: &str, rule: &str) -> FieldError {
    let why = format!("no such key: {key} evaluating rule: {rule}");
    FieldError::invalid(path, "object", &why)
}
