//! What is refused in pods and pod templates, and with which words.
//!
//! The rules, their order and their texts are those of Kubernetes' `ValidatePod*`; one file per
//! concern.

use k8s_openapi::api::core::v1::{Container, PodSpec};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    field::{ErrorList, FieldError, Path},
    json,
    meta::{validate_annotations, validate_labels},
    strategy::Json,
};

mod affinity;
mod annotations;
mod container;
mod diff;
mod env;
mod mounts;
mod names_and_dns;
mod ports;
mod probe;
mod resources;
mod restart;
mod rules;
mod scheduling;
mod security;
mod spec;
mod status;
mod update;
mod volume;
mod windows;

pub(crate) use resources::{
    container_resource_name, is_extended, is_huge, is_native, is_overcommittable, resource_name,
};
pub use status::validate_status_update;
pub use update::validate_update;
pub(crate) use volume::validate_claim_spec;

pub(super) use rules::{list, text};

/// What carries the spec: some rules hold for one of them only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodKind {
    /// A Pod itself.
    Pod,
    /// The template of a Job or another controller.
    Template,
}

/// Says what is wrong with a new Pod (what its metadata has in common with all others is checked
/// elsewhere).
pub fn validate_create(pod: &Json) -> ErrorList {
    let path = Path::new("spec");
    let spec = match view(pod, &path) {
        Ok(spec) => spec,
        Err(errors) => return errors,
    };
    let mut errors = metadata_and_spec(pod, &spec);
    if !list(&spec.ephemeral_containers).is_empty() {
        let path = path.child("ephemeralContainers");
        errors.push(FieldError::forbidden(&path, "cannot be set on create"));
    }
    if !text(&spec.node_name).is_empty() && !list(&spec.scheduling_gates).is_empty() {
        let why = "cannot be set until all schedulingGates have been cleared";
        errors.push(FieldError::forbidden(&path.child("nodeName"), why));
    }
    errors.extend(annotations::validate_match(&annotations::of(pod), &spec, &path));
    errors
}

/// Says what is wrong with a pod template (`{metadata, spec}`) at `path`.
pub fn validate_template(template: &Json, path: &Path) -> ErrorList {
    let spec_path = path.child("spec");
    let spec = match view(template, &spec_path) {
        Ok(spec) => spec,
        Err(errors) => return errors,
    };
    let labels = json::at(template, &["metadata", "labels"]).and_then(Value::as_object);
    let labels = labels.into_iter().flatten().map(|(k, v)| (&**k, v.as_str().unwrap_or_default()));
    let mut errors = validate_labels(labels, &path.child("labels"));
    let annotations_path = path.child("annotations");
    let given = json::at(template, &["metadata", "annotations"]);
    errors.extend(validate_annotations(given, &annotations_path));
    let given = annotations::of(template);
    errors.extend(annotations::validate(&given, &spec, &annotations_path));
    errors.extend(validate_pod_spec(&spec, &spec_path, PodKind::Template));
    errors.extend(annotations::validate_match(&given, &spec, &spec_path));
    if !list(&spec.ephemeral_containers).is_empty() {
        let why = "ephemeral containers not allowed in pod template";
        errors.push(FieldError::forbidden(&spec_path.child("ephemeralContainers"), why));
    }
    errors
}

/// Says what is wrong with the spec of a Pod or a template.
pub fn validate_pod_spec(spec: &PodSpec, path: &Path, kind: PodKind) -> ErrorList {
    spec::validate(spec, spec::Named::default(), path, kind)
}

/// What is checked alike when a Pod is made and when it is changed.
fn metadata_and_spec(pod: &Json, spec: &PodSpec) -> ErrorList {
    let (meta_path, path) = (Path::new("metadata"), Path::new("spec"));
    let given = annotations::of(pod);
    let mut errors = annotations::validate(&given, spec, &meta_path.child("annotations"));
    let named = spec::Named {
        name: json::text(pod, &["metadata", "name"]),
        is_mirror: given.contains_key(annotations::MIRROR),
    };
    errors.extend(spec::validate(spec, named, &path, PodKind::Pod));
    if text(&spec.service_account_name).is_empty() {
        errors.extend(tokens_without_account(spec, &path));
    }
    let lists =
        [("containers", &*spec.containers), ("initContainers", list(&spec.init_containers))];
    for (field, containers) in lists {
        for (at, container) in containers.iter().enumerate() {
            errors.extend(container::only_for_pod(container, &path.child(field).index(at)));
        }
    }
    errors
}

fn tokens_without_account(spec: &PodSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (at, volume) in list(&spec.volumes).iter().enumerate() {
        let sources = volume.projected.as_ref().map(|it| list(&it.sources)).unwrap_or_default();
        for (n, source) in sources.iter().enumerate() {
            if source.service_account_token.is_some() {
                let path = path.child("volumes").index(at).child("projected").child("sources");
                let path = path.index(n).child("serviceAccountToken");
                let why = "must not be specified when serviceAccountName is not set";
                errors.push(FieldError::forbidden(&path, why));
            }
        }
    }
    errors
}

/// The typed spec of a Pod or template. The schema was checked before; a value it let through but
/// the types do not is reported, never a reason to panic.
fn view(object: &Json, path: &Path) -> Result<PodSpec, ErrorList> {
    match object.get("spec") {
        None | Some(Value::Null) => Ok(PodSpec::default()),
        Some(spec) => PodSpec::deserialize(spec)
            .map_err(|error| vec![FieldError::invalid(path, "", &error.to_string())]),
    }
}

/// Visits init containers, containers and ephemeral containers, in this order.
pub(super) fn for_each_container(
    spec: &PodSpec,
    path: &Path,
    mut visit: impl FnMut(&Container, &Path),
) {
    let lists = [("initContainers", list(&spec.init_containers)), ("containers", &spec.containers)];
    for (field, containers) in lists {
        let path = path.child(field);
        for (at, container) in containers.iter().enumerate() {
            visit(container, &path.index(at));
        }
    }
    let path = path.child("ephemeralContainers");
    for (at, ephemeral) in list(&spec.ephemeral_containers).iter().enumerate() {
        visit(&container::as_container(ephemeral), &path.index(at));
    }
}

#[cfg(test)]
mod tests;
