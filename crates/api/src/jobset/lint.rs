//! What the API takes although it cannot be meant: expressions that do not compile never match, and
//! templates of which no Job can be made never start.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{JobSetSpec, names, pattern_fault};
use crate::{
    Gates,
    field::{ErrorList, FieldError, Path},
    job::JobStrategy,
    json::{at, text},
    kueue::jobs::{self, JobKind},
    strategy::{Json, Strategy, WriteContext},
};

/// Points at what cannot be meant.
pub(super) fn errors(object: &Json, spec: &JobSetSpec, gates: Gates) -> ErrorList {
    let mut errors = patterns(spec);
    errors.extend(templates(object, gates));
    errors.extend(jobs::validate_create(JobKind::JobSet, object));
    errors
}

fn patterns(spec: &JobSetSpec) -> ErrorList {
    let path = Path::new("spec").child("failurePolicy").child("rules");
    let rules = spec.failure_policy.iter().flat_map(|policy| &policy.rules).enumerate();
    rules
        .flat_map(|(at, rule)| {
            let path = path.index(at).child("onJobFailureMessagePatterns");
            let patterns = rule.on_job_failure_message_patterns.iter().enumerate();
            patterns.filter_map(move |(at, pattern)| {
                let why = pattern_fault(pattern)?;
                let why = format!("must be a regular expression, or it never matches: {why}");
                Some(FieldError::invalid(&path.index(at), pattern, &why))
            })
        })
        .collect()
}

/// What the API will say of the Jobs that are made of the templates.
fn templates(object: &Json, gates: Gates) -> ErrorList {
    let groups = at(object, &["spec", "replicatedJobs"]).and_then(Value::as_array);
    let path = Path::new("spec").child("replicatedJobs");
    groups
        .into_iter()
        .flatten()
        .enumerate()
        .flat_map(|(at, group)| {
            let path = path.index(at).child("template");
            job_errors(object, group, gates).into_iter().map(move |error| {
                let path = path.child(&error.path.to_string());
                FieldError { path, ..error }
            })
        })
        .collect()
}

/// Adds the volumes that pods of the set get beside their own.
fn add_claims(object: &Json, pod: &mut Value) {
    let policies = at(object, &["spec", "volumeClaimPolicies"]).and_then(Value::as_array);
    let templates = policies.into_iter().flatten().filter_map(|it| it["templates"].as_array());
    let names = templates.flatten().filter_map(|template| template["metadata"]["name"].as_str());
    let claims: Vec<Value> = names
        .map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}))
        .collect();
    if claims.is_empty() || !pod.is_object() {
        return;
    }
    match pod["volumes"].as_array_mut() {
        Some(volumes) => volumes.extend(claims),
        None => pod["volumes"] = json!(claims),
    }
}

/// Whether everything is a map that is looked into: what is not is said elsewhere.
fn is_template(template: &Value) -> bool {
    let is_map = |at: &str| template.pointer(at).is_none_or(|it| it.is_object() || it.is_null());
    template.is_object()
        && ["/metadata", "/spec", "/spec/template", "/spec/template/spec"].into_iter().all(is_map)
}

fn job_errors(object: &Json, group: &Value, gates: Gates) -> ErrorList {
    let Some(template) = group.get("template").filter(|template| is_template(template)) else {
        return ErrorList::new();
    };
    let set_name = text(object, &["metadata", "name"]);
    let name = group.get("name").and_then(Value::as_str).unwrap_or_default();
    let mut job = template.clone();
    let context =
        WriteContext { now: Timestamp::UNIX_EPOCH, uid: "a-uid".to_owned(), user: String::new() };
    job["metadata"]["name"] = json!(names::job(set_name, name, 0));
    job["metadata"]["uid"] = json!(context.uid);
    add_claims(object, &mut job["spec"]["template"]["spec"]);
    let Value::Object(mut job) = job else { return ErrorList::new() };
    let strategy = JobStrategy::new(gates);
    strategy.fill_defaults(&mut job);
    strategy.prepare_create(&mut job, &context);
    strategy.validate_create(&job)
}
