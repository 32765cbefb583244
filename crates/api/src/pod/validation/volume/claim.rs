//! Claims that are made with the pod and go with it.

use k8s_openapi::api::core::v1::{
    EphemeralVolumeSource, PersistentVolumeClaimSpec, PersistentVolumeClaimTemplate,
};

use super::super::rules::{dns_subdomain, list, option, required, text};
use crate::{
    field::{ErrorList, FieldError, Path},
    meta::{validate_annotations, validate_label_selector, validate_labels},
    quantity::Quantity,
};

const ACCESS_MODES: [&str; 4] =
    ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// Says what is wrong with an ephemeral volume.
pub(super) fn validate(source: &EphemeralVolumeSource, path: &Path) -> ErrorList {
    let path = path.child("volumeClaimTemplate");
    let Some(template) = &source.volume_claim_template else {
        return vec![FieldError::required(&path, "")];
    };
    let mut errors = validate_metadata(template, &path.child("metadata"));
    errors.extend(validate_claim_spec(&template.spec, &path.child("spec")));
    errors
}

fn validate_metadata(template: &PersistentVolumeClaimTemplate, path: &Path) -> ErrorList {
    let Some(meta) = &template.metadata else { return ErrorList::new() };
    let annotations = serde_json::to_value(&meta.annotations).unwrap_or_default();
    let mut errors = validate_annotations(Some(&annotations), &path.child("annotations"));
    let labels = meta.labels.iter().flatten().map(|(k, v)| (k.as_str(), v.as_str()));
    errors.extend(validate_labels(labels, &path.child("labels")));
    let unfit = [
        ("name", meta.name.is_some()),
        ("generateName", meta.generate_name.is_some()),
        ("namespace", meta.namespace.is_some()),
        ("uid", meta.uid.is_some()),
        ("resourceVersion", meta.resource_version.is_some()),
        ("ownerReferences", meta.owner_references.is_some()),
        ("finalizers", meta.finalizers.is_some()),
    ];
    for (field, is_set) in unfit {
        if is_set {
            errors.push(FieldError::forbidden(&path.child(field), "cannot be set"));
        }
    }
    errors
}

/// Says what is wrong with what a claim asks for.
pub(crate) fn validate_claim_spec(spec: &PersistentVolumeClaimSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let modes = list(&spec.access_modes);
    let modes_path = path.child("accessModes");
    if modes.is_empty() {
        errors.push(FieldError::required(&modes_path, "at least 1 access mode is required"));
    }
    if let Some(selector) = &spec.selector {
        errors.extend(validate_label_selector(selector, &path.child("selector")));
    }
    errors.extend(modes.iter().filter_map(|mode| option(mode, &ACCESS_MODES, &modes_path)));
    let is_alone = |mode: &String| mode == "ReadWriteOncePod";
    let is_shared = |mode: &String| !is_alone(mode) && ACCESS_MODES.contains(&mode.as_str());
    if modes.iter().any(is_alone) && modes.iter().any(is_shared) {
        let why = "may not use ReadWriteOncePod with other access modes";
        errors.push(FieldError::forbidden(&modes_path, why));
    }
    errors.extend(validate_size(spec, &path.child("resources").key("storage")));
    let classes = [
        ("storageClassName", &spec.storage_class_name),
        ("volumeAttributesClassName", &spec.volume_attributes_class_name),
    ];
    let (storage, attributes) = (classes[0], classes[1]);
    errors.extend(validate_class(storage, path));
    if let Some(mode) = &spec.volume_mode {
        errors.extend(option(mode, &["Block", "Filesystem"], &path.child("volumeMode")));
    }
    if let Some(source) = &spec.data_source {
        let (group, kind) = (text(&source.api_group), source.kind.as_str());
        let path = path.child("dataSource");
        errors.extend(validate_data_source(&source.name, kind, group, &path));
    }
    if let Some(source) = &spec.data_source_ref {
        let (group, kind) = (text(&source.api_group), source.kind.as_str());
        let path = path.child("dataSourceRef");
        errors.extend(validate_data_source(&source.name, kind, group, &path));
    }
    errors.extend(validate_class(attributes, path));
    errors
}

fn validate_size(spec: &PersistentVolumeClaimSpec, path: &Path) -> Option<FieldError> {
    let requests = spec.resources.as_ref().and_then(|it| it.requests.as_ref());
    let Some(size) = requests.and_then(|requests| requests.get("storage")) else {
        return Some(FieldError::required(path, ""));
    };
    match Quantity::parse(&size.0) {
        Err(error) => Some(FieldError::invalid(path, &size.0, &error.to_string())),
        Ok(amount) if amount.sign() <= 0 => {
            Some(FieldError::invalid(path, &size.0, "must be greater than zero"))
        }
        Ok(_) => None,
    }
}

fn validate_class((field, name): (&str, &Option<String>), path: &Path) -> ErrorList {
    match text(name) {
        "" => ErrorList::new(),
        name => dns_subdomain(name, &path.child(field)),
    }
}

fn validate_data_source(name: &str, kind: &str, group: &str, path: &Path) -> ErrorList {
    let mut errors: ErrorList = required(name, &path.child("name")).into_iter().collect();
    errors.extend(required(kind, &path.child("kind")));
    if group.is_empty() {
        if kind != "PersistentVolumeClaim" {
            let why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            errors.push(FieldError::invalid(path, kind, why));
        }
    } else {
        errors.extend(dns_subdomain(group, &path.child("apiGroup")));
    }
    errors
}
