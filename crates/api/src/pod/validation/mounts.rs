//! Where volumes appear in a container.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Container, VolumeDevice, VolumeMount};

use super::{
    container::Context,
    rules::{descending_path, list, no_backsteps, option, required, text},
};
use crate::field::{ErrorList, FieldError, Path};

/// Says what is wrong with `volumeMounts`.
pub(super) fn validate(container: &Container, context: &Context<'_>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let devices: BTreeMap<&str, &str> = list(&container.volume_devices)
        .iter()
        .map(|device| (device.name.as_str(), device.device_path.as_str()))
        .collect();
    let mut seen = BTreeSet::new();
    for (at, mount) in list(&container.volume_mounts).iter().enumerate() {
        let item = path.index(at);
        let (name_path, target_path) = (item.child("name"), item.child("mountPath"));
        if mount.name.is_empty() {
            errors.push(FieldError::required(&name_path, ""));
        }
        if !context.volumes.contains_key(mount.name.as_str()) {
            errors.push(FieldError::not_found(&name_path, &mount.name));
        }
        let target = mount.mount_path.as_str();
        if target.is_empty() {
            errors.push(FieldError::required(&target_path, ""));
        }
        if !seen.insert(target) {
            errors.push(FieldError::invalid(&target_path, target, "must be unique"));
        }
        if devices.contains_key(mount.name.as_str()) {
            let why = "must not already exist in volumeDevices";
            errors.push(FieldError::invalid(&name_path, &mount.name, why));
        }
        if devices.values().any(|path| *path == target) {
            let why = "must not already exist as a path in volumeDevices";
            errors.push(FieldError::invalid(&target_path, target, why));
        }
        errors.extend(sub_paths(mount, path, &item));
        if let Some(mode) = &mount.mount_propagation {
            errors.extend(propagation(mode, container, &path.child("mountPropagation")));
        }
        errors.extend(recursive_read_only(mount, &path.child("recursiveReadOnly")));
    }
    errors
}

/// Faults inside a sub-path are reported for the list, as upstream has it.
fn sub_paths(mount: &VolumeMount, path: &Path, item: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let (plain, expression) = (text(&mount.sub_path), text(&mount.sub_path_expr));
    if !plain.is_empty() {
        errors.extend(descending_path(plain, &path.child("subPath")));
    }
    if !expression.is_empty() {
        if !plain.is_empty() {
            let why = "subPathExpr and subPath are mutually exclusive";
            errors.push(FieldError::invalid(&item.child("subPathExpr"), expression, why));
        }
        errors.extend(descending_path(expression, &path.child("subPathExpr")));
    }
    errors
}

fn propagation(mode: &str, container: &Container, path: &Path) -> ErrorList {
    const MODES: [&str; 3] = ["Bidirectional", "HostToContainer", "None"];
    let mut errors: ErrorList = option(mode, &MODES, path).into_iter().collect();
    let security = container.security_context.as_ref();
    let is_privileged = security.and_then(|it| it.privileged).unwrap_or_default();
    if mode == "Bidirectional" && !is_privileged {
        let why = "Bidirectional mount propagation is available only to privileged containers";
        errors.push(FieldError::forbidden(path, why));
    }
    errors
}

fn recursive_read_only(mount: &VolumeMount, path: &Path) -> ErrorList {
    const MODES: [&str; 3] = ["Disabled", "Enabled", "IfPossible"];
    let mut errors = ErrorList::new();
    match mount.recursive_read_only.as_deref() {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            if mount.read_only != Some(true) {
                let why = "may only be specified when readOnly is true";
                errors.push(FieldError::forbidden(path, why));
            }
            if !matches!(mount.mount_propagation.as_deref(), None | Some("None")) {
                let why = "may only be specified when mountPropagation is None or not specified";
                errors.push(FieldError::forbidden(path, why));
            }
        }
        Some(other) => errors.push(FieldError::not_supported(path, other, &MODES)),
    }
    errors
}

/// Says what is wrong with `volumeDevices`.
pub(super) fn validate_devices(
    devices: &[VolumeDevice],
    mounts: &[VolumeMount],
    context: &Context<'_>,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let mounts: BTreeMap<&str, &str> =
        mounts.iter().map(|mount| (mount.name.as_str(), mount.mount_path.as_str())).collect();
    let (mut names, mut targets) = (BTreeSet::new(), BTreeSet::new());
    for (at, device) in devices.iter().enumerate() {
        let item = path.index(at);
        let (name_path, target_path) = (item.child("name"), item.child("devicePath"));
        let (name, target) = (device.name.as_str(), device.device_path.as_str());
        errors.extend(required(name, &name_path));
        if names.contains(name) {
            errors.push(FieldError::invalid(&name_path, name, "must be unique"));
        }
        match context.volumes.get(name) {
            None => errors.push(FieldError::not_found(&name_path, name)),
            Some(v) if v.persistent_volume_claim.is_none() && v.ephemeral.is_none() => {
                let why = "can only use volume source type of PersistentVolumeClaim or Ephemeral \
                           for block mode";
                errors.push(FieldError::invalid(&name_path, name, why));
            }
            Some(_) => {}
        }
        errors.extend(required(target, &target_path));
        if targets.contains(target) {
            errors.push(FieldError::invalid(&target_path, target, "must be unique"));
        }
        if no_backsteps(target, &target_path).is_some() {
            let why = "can not contain backsteps ('..')";
            errors.push(FieldError::invalid(&target_path, target, why));
        } else {
            targets.insert(target);
        }
        if mounts.contains_key(name) {
            let why = "must not already exist in volumeMounts";
            errors.push(FieldError::invalid(&name_path, name, why));
        }
        if mounts.values().any(|path| *path == target) {
            let why = "must not already exist as a path in volumeMounts";
            errors.push(FieldError::invalid(&target_path, target, why));
        }
        if !name.is_empty() {
            names.insert(name);
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::assert_spec;

    fn check(container: Value, want: &[&str]) {
        let mut container = container;
        container["name"] = json!("c");
        container["image"] = json!("i");
        assert_spec(
            json!({
                "volumes": [
                    {"name": "v", "emptyDir": {}},
                    {"name": "p", "persistentVolumeClaim": {"claimName": "x"}},
                ],
                "containers": [container],
            }),
            want,
        );
    }

    #[test]
    fn mounts_name_volumes_and_differ() {
        check(
            json!({"volumeMounts": [
                {"name": "v", "mountPath": "/a"},
                {"name": "w", "mountPath": "/a"},
                {"name": "v", "mountPath": "", "subPath": "/x"},
                {"name": "v", "mountPath": "/b", "subPath": "a", "subPathExpr": "../b"},
                {"name": "v", "mountPath": "/c", "mountPropagation": "Bidirectional", "recursiveReadOnly": "Enabled"},
            ]}),
            &[
                "spec.containers[0].volumeMounts[1].name: Not found: \"w\"",
                "spec.containers[0].volumeMounts[1].mountPath: Invalid value: \"/a\": must be unique",
                "spec.containers[0].volumeMounts[2].mountPath: Required value",
                "spec.containers[0].volumeMounts.subPath: Invalid value: \"/x\": must be a relative path",
                "spec.containers[0].volumeMounts[3].subPathExpr: Invalid value: \"../b\": subPathExpr and subPath are mutually exclusive",
                "spec.containers[0].volumeMounts.subPathExpr: Invalid value: \"../b\": must not contain '..'",
                "spec.containers[0].volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers",
                "spec.containers[0].volumeMounts.recursiveReadOnly: Forbidden: may only be specified when readOnly is true",
                "spec.containers[0].volumeMounts.recursiveReadOnly: Forbidden: may only be specified when mountPropagation is None or not specified",
            ],
        );
    }

    #[test]
    fn devices_are_claims() {
        check(json!({"volumeDevices": [{"name": "p", "devicePath": "/dev/x"}]}), &[]);
        check(
            json!({"volumeDevices": [{"name": "v", "devicePath": "/dev/x"}]}),
            &[
                "spec.containers[0].volumeDevices[0].name: Invalid value: \"v\": can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode",
            ],
        );
        check(
            json!({
                "volumeMounts": [{"name": "p", "mountPath": "/x"}],
                "volumeDevices": [{"name": "p", "devicePath": "/x/../y"}],
            }),
            &[
                "spec.containers[0].volumeMounts[0].name: Invalid value: \"p\": must not already exist in volumeDevices",
                "spec.containers[0].volumeDevices[0].devicePath: Invalid value: \"/x/../y\": can not contain backsteps ('..')",
                "spec.containers[0].volumeDevices[0].name: Invalid value: \"p\": must not already exist in volumeMounts",
            ],
        );
    }
}
