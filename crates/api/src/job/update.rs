//! What of a Job may change.
//!
//! The template may change only while the Job is suspended and has no pods, and then only where its
//! pods are placed, what they are labelled with and what they request.

use k8s_openapi::api::batch::v1::{JobSpec, JobStatus};
use serde_json::Value;

use crate::{
    field::{ErrorList, FieldError, Path},
    job::{is_indexed, shown, status::is_true},
    json::{at, list},
    kinds::{IMMUTABLE, view, without_absent},
    labels::{CONTROLLER_UID, JOB_NAME},
    strategy::Json,
};

/// Whether the template of a Job, as it is stored, may change.
pub(super) fn is_template_mutable(old: &Json) -> bool {
    let spec: JobSpec = view(old, "spec", &mut ErrorList::new());
    let status: JobStatus = view(old, "status", &mut ErrorList::new());
    spec.suspend == Some(true)
        && (status.start_time.is_none() || is_true(&status, "Suspended"))
        && status.active.unwrap_or_default() == 0
}

/// Whether a Job has labels with a prefix on its template; very old ones have not.
pub(super) fn has_prefixed_labels(old: &Json) -> bool {
    let labels = at(old, &["spec", "template", "metadata", "labels"]).and_then(Value::as_object);
    labels
        .is_some_and(|labels| labels.contains_key(JOB_NAME) && labels.contains_key(CONTROLLER_UID))
}

/// Says what an update changes that it may not.
pub(super) fn validate(object: &Json, old: &Json) -> ErrorList {
    let spec: JobSpec = view(object, "spec", &mut ErrorList::new());
    let old_spec: JobSpec = view(old, "spec", &mut ErrorList::new());
    let path = Path::new("spec");
    let keep = |field: &str, is_same: bool| {
        let value = || at(object, &["spec", field]).cloned().unwrap_or_default();
        (!is_same).then(|| FieldError::invalid(&path.child(field), value(), IMMUTABLE))
    };
    let failure_policy = || {
        let shown = spec.pod_failure_policy.as_ref().map(shown::failure);
        FieldError::invalid(&path.child("podFailurePolicy"), shown, IMMUTABLE)
    };
    let success_policy = || {
        let shown = spec.success_policy.as_ref().map(shown::success);
        FieldError::invalid(&path.child("successPolicy"), shown, IMMUTABLE)
    };
    let is_limit_same = spec.backoff_limit_per_index == old_spec.backoff_limit_per_index;
    let checks = [
        validate_completions(&spec, &old_spec, &path.child("completions")),
        keep("selector", spec.selector == old_spec.selector),
        validate_template(object, old),
        keep("completionMode", spec.completion_mode == old_spec.completion_mode),
        (spec.pod_failure_policy != old_spec.pod_failure_policy).then(failure_policy),
        keep("backoffLimitPerIndex", is_limit_same),
        keep("managedBy", spec.managed_by == old_spec.managed_by),
        (spec.success_policy != old_spec.success_policy).then(success_policy),
    ];
    checks.into_iter().flatten().collect()
}

/// An Indexed Job is elastic as long as all of its indexes run at once.
fn validate_completions(spec: &JobSpec, old: &JobSpec, path: &Path) -> Option<FieldError> {
    if spec.completions == old.completions {
        return None;
    }
    if !is_indexed(spec) {
        return Some(FieldError::invalid(path, spec.completions, IMMUTABLE));
    }
    let completions = spec.completions?;
    (Some(completions) != spec.parallelism).then(|| {
        let why = "can only be modified in tandem with spec.parallelism";
        FieldError::invalid(path, completions, why)
    })
}

fn validate_template(object: &Json, old: &Json) -> Option<FieldError> {
    let template = at(object, &["spec", "template"]).cloned().unwrap_or_default();
    let old_template = at(old, &["spec", "template"]).cloned().unwrap_or_default();
    let path = Path::new("spec").child("template");
    if !is_template_mutable(old) {
        let is_same = without_absent(&template) == without_absent(&old_template);
        return (!is_same).then(|| FieldError::invalid(&path, template, IMMUTABLE));
    }
    let pod = template.get("spec").cloned().unwrap_or_default();
    let mut expected = old_template.get("spec").cloned().unwrap_or_default();
    if let (Some(pod), Some(expected)) = (pod.as_object(), expected.as_object_mut()) {
        take_over(pod, expected);
    }
    let is_same = without_absent(&pod) == without_absent(&expected);
    (!is_same).then(|| FieldError::invalid(&path.child("spec"), pod, IMMUTABLE))
}

/// Copies into `expected` whatever may change in a mutable template.
fn take_over(pod: &Json, expected: &mut Json) {
    for field in ["nodeSelector", "tolerations", "schedulingGates"] {
        crate::strategy::keep(expected, pod, field);
    }
    let node_affinity = at(pod, &["affinity", "nodeAffinity"]).cloned();
    match (pod.get("affinity"), expected.get_mut("affinity").and_then(Value::as_object_mut)) {
        (Some(Value::Object(_)), None) => {
            let affinity: Json =
                node_affinity.into_iter().map(|value| ("nodeAffinity".to_owned(), value)).collect();
            expected.insert("affinity".to_owned(), affinity.into());
        }
        (Some(Value::Object(_)), Some(old)) => match node_affinity {
            Some(value) => drop(old.insert("nodeAffinity".to_owned(), value)),
            None => drop(old.remove("nodeAffinity")),
        },
        (_, Some(old)) => {
            old.remove("nodeAffinity");
            if old.is_empty() {
                expected.remove("affinity");
            }
        }
        (_, None) => {}
    }
    for field in ["containers", "initContainers"] {
        let containers = list(pod, &[field]);
        let Some(old) = expected.get_mut(field).and_then(Value::as_array_mut) else { continue };
        if containers.len() != old.len() {
            continue;
        }
        for (new, old) in containers.iter().zip(old) {
            if let (Some(new), Some(old)) = (new.as_object(), old.as_object_mut())
                && new.get("name") == old.get("name")
            {
                crate::strategy::keep(old, new, "resources");
            }
        }
    }
}
