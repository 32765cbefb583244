//! What of a JobSet may change.
//!
//! Replicated jobs never do, but for two exceptions: where pods are placed and what they are
//! labelled with while the set is suspended, and the size of Indexed Jobs.

use serde_json::Value;

use super::validation::validate_annotations;
use crate::{
    field::{ErrorList, FieldError, Path},
    gates::Gates,
    json::{at, flag, integer, list, text},
    kinds::{IMMUTABLE, without_absent},
    strategy::{Json, keep},
};

/// Says what an update changes that it may not.
pub(super) fn validate(object: &Json, old: &Json, gates: Gates) -> ErrorList {
    let path = Path::new("spec").child("replicatedJobs");
    let before = list(old, &["spec", "replicatedJobs"]);
    let mut after = list(object, &["spec", "replicatedJobs"]).to_vec();
    let twin = |job: &Json| {
        let name = text(job, &["name"]).to_owned();
        before.iter().filter_map(Value::as_object).find(|old| text(old, &["name"]) == name)
    };
    let mut errors = ErrorList::new();
    let is_suspended = [object, old].iter().any(|of| flag(of, &["spec", "suspend"]));
    for (i, job) in after.iter_mut().enumerate() {
        let Some(job) = job.as_object_mut() else { continue };
        let Some(old_job) = twin(job) else { continue };
        if gates.elastic_job_set {
            errors.extend(validate_size(job, old_job, old, &path.index(i)));
            mask_size(job, old_job);
        }
        if is_suspended {
            mask_placement(job, old_job);
        }
    }
    let after = Value::Array(after);
    let is_same = without_absent(&after) == without_absent(&Value::Array(before.to_vec()));
    if !is_same {
        errors.push(FieldError::invalid(&path, &after, IMMUTABLE));
    }
    let manager = |of: &Json| at(of, &["spec", "managedBy"]).cloned();
    if manager(object) != manager(old) {
        let path = Path::new("spec").child("managedBy");
        errors.push(FieldError::invalid_json(&path, manager(object), IMMUTABLE));
    }
    errors.extend(validate_annotations(object, Some(old)));
    errors
}

const SIZES: [&str; 2] = ["parallelism", "completions"];

/// Whether the size of a Job may change, and to what it does.
fn validate_size(job: &Json, old_job: &Json, old: &Json, path: &Path) -> ErrorList {
    let size = |of: &Json, field: &str| integer(of, &["template", "spec", field]);
    let changed = SIZES.map(|field| size(job, field) != size(old_job, field));
    let path = path.child("template").child("spec");
    if !is_indexed(job) || !changed.contains(&true) {
        return ErrorList::new();
    }
    if is_finished(old) {
        let why = "Cannot mutate parallelism or completions when JobSet is in a terminal state \
                   (Completed or Failed)";
        return vec![FieldError::forbidden(&path, why)];
    }
    let mut errors = ErrorList::new();
    for (field, is_changed) in SIZES.into_iter().zip(changed) {
        if let Some(number) = size(job, field).filter(|number| is_changed && *number < 1) {
            let why = format!("{field} must be >= 1");
            errors.push(FieldError::invalid(&path.child(field), number, &why));
        }
    }
    if let [Some(parallelism), Some(completions)] = SIZES.map(|field| size(job, field))
        && parallelism != completions
    {
        let why = "completions must be equal to parallelism for Elastic Indexed Jobs";
        errors.push(FieldError::invalid(&path.child("completions"), completions, why));
    }
    errors
}

fn is_indexed(job: &Json) -> bool {
    text(job, &["template", "spec", "completionMode"]) == "Indexed"
}

fn is_finished(old: &Json) -> bool {
    list(old, &["status", "conditions"]).iter().any(|condition| {
        ["Completed", "Failed"].iter().any(|kind| condition["type"] == *kind)
            && condition["status"] == "True"
    })
}

fn mask_size(job: &mut Json, old_job: &Json) {
    if !is_indexed(job) {
        return;
    }
    let old = at(old_job, &["template", "spec"]).and_then(Value::as_object);
    let spec = job.get_mut("template").and_then(|template| template.get_mut("spec"));
    if let (Some(spec), Some(old)) = (spec.and_then(Value::as_object_mut), old) {
        SIZES.iter().for_each(|field| keep(spec, old, field));
    }
}

/// Puts back what may change while the set is suspended.
fn mask_placement(job: &mut Json, old_job: &Json) {
    let pods = job
        .get_mut("template")
        .and_then(|template| template.get_mut("spec"))
        .and_then(|spec| spec.get_mut("template"));
    let Some(Value::Object(pods)) = pods else { return };
    let none = Json::new();
    let old = at(old_job, &["template", "spec", "template"]).and_then(Value::as_object);
    let whole = old.unwrap_or(&none);
    for (part, fields) in [
        ("metadata", ["annotations", "labels"].as_slice()),
        ("spec", &["nodeSelector", "tolerations", "schedulingGates"]),
    ] {
        let old = whole.get(part).and_then(Value::as_object).unwrap_or(&none);
        let slot = pods.entry(part).or_insert(Value::Null);
        if slot.is_null() {
            *slot = Value::Object(Json::new());
        }
        if let Some(new) = slot.as_object_mut() {
            fields.iter().for_each(|field| keep(new, old, field));
            // Empty metadata is as good as none.
            if new.is_empty() {
                keep(pods, whole, part);
            }
        }
    }
}
