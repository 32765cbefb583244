//! What is refused in pods and pod templates, and with which words.

use k8s_openapi::api::core::v1::PodSpec;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    field::{ErrorList, FieldError, Path},
    strategy::Json,
};

mod container;

/// What carries the spec: some fields make sense only in one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodKind {
    /// A Pod itself.
    Pod,
    /// The template of a Job or another controller.
    Template,
}

/// Says what is wrong with a new Pod (its metadata is checked elsewhere).
pub fn validate_create(pod: &Json) -> ErrorList {
    let path = Path::new("spec");
    match view(pod, &path) {
        Ok(spec) => validate_pod_spec(&spec, &path, PodKind::Pod),
        Err(errors) => errors,
    }
}

/// Says what is wrong with a change of a Pod.
pub fn validate_update(pod: &Json, _old: &Json) -> ErrorList {
    validate_create(pod)
}

/// Says what is wrong with a change of a Pod's status.
pub fn validate_status_update(_pod: &Json, _old: &Json) -> ErrorList {
    ErrorList::new()
}

/// Says what is wrong with a pod template (`{metadata, spec}`) at `path`.
pub fn validate_template(template: &Json, path: &Path) -> ErrorList {
    let path = path.child("spec");
    match view(template, &path) {
        Ok(spec) => validate_pod_spec(&spec, &path, PodKind::Template),
        Err(errors) => errors,
    }
}

/// Says what is wrong with the spec of a Pod or a template.
pub fn validate_pod_spec(spec: &PodSpec, path: &Path, _kind: PodKind) -> ErrorList {
    let mut errors = ErrorList::new();
    let containers = path.child("containers");
    if spec.containers.is_empty() {
        errors.push(FieldError::required(&containers, ""));
    }
    for (at, container) in spec.containers.iter().enumerate() {
        errors.extend(container::validate(container, &containers.index(at)));
    }
    errors
}

/// The typed spec of a Pod or template. The schema was checked before; a value it let through but
/// the types do not is reported, never a reason to panic.
fn view(object: &Json, path: &Path) -> Result<PodSpec, ErrorList> {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    if spec.is_null() {
        return Ok(PodSpec::default());
    }
    PodSpec::deserialize(spec)
        .map_err(|error| vec![FieldError::invalid(path, "", &error.to_string())])
}
