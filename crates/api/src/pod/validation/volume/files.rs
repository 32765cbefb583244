//! Sources that are files: host paths, secrets, config maps, the downward API.

use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, DownwardAPIVolumeFile, DownwardAPIVolumeSource, GitRepoVolumeSource,
    HostPathVolumeSource, KeyToPath, SecretVolumeSource,
};

use super::super::{
    env,
    rules::{
        descending_path, file_mode, list, no_backsteps, option, required, text, unreserved_path,
    },
};
use crate::field::{ErrorList, FieldError, Path};

/// What a file may hold of the pod.
const FIELDS: [&str; 5] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];

pub(super) fn host_path(source: &HostPathVolumeSource, path: &Path) -> ErrorList {
    const TYPES: [&str; 8] = [
        "",
        "BlockDevice",
        "CharDevice",
        "Directory",
        "DirectoryOrCreate",
        "File",
        "FileOrCreate",
        "Socket",
    ];
    if source.path.is_empty() {
        return vec![FieldError::required(&path.child("path"), "")];
    }
    let mut errors: ErrorList =
        no_backsteps(&source.path, &path.child("path")).into_iter().collect();
    errors.extend(option(text(&source.type_), &TYPES, &path.child("type")));
    errors
}

pub(super) fn git_repo(source: &GitRepoVolumeSource, path: &Path) -> ErrorList {
    let mut errors: ErrorList =
        required(&source.repository, &path.child("repository")).into_iter().collect();
    errors.extend(descending_path(text(&source.directory), &path.child("directory")));
    errors
}

pub(super) fn secret(source: &SecretVolumeSource, path: &Path) -> ErrorList {
    let mut errors: ErrorList =
        required(text(&source.secret_name), &path.child("secretName")).into_iter().collect();
    errors.extend(file_mode(source.default_mode, &path.child("defaultMode")));
    errors.extend(items(list(&source.items), path));
    errors
}

pub(super) fn config_map(source: &ConfigMapVolumeSource, path: &Path) -> ErrorList {
    let mut errors: ErrorList = required(&source.name, &path.child("name")).into_iter().collect();
    errors.extend(file_mode(source.default_mode, &path.child("defaultMode")));
    errors.extend(items(list(&source.items), path));
    errors
}

pub(super) fn downward(source: &DownwardAPIVolumeSource, path: &Path) -> ErrorList {
    let mut errors: ErrorList =
        file_mode(source.default_mode, &path.child("defaultMode")).into_iter().collect();
    // Items are reported at the source, as upstream has it.
    errors.extend(list(&source.items).iter().flat_map(|file| downward_file(file, path)));
    errors
}

pub(super) fn downward_file(file: &DownwardAPIVolumeFile, path: &Path) -> ErrorList {
    let mut errors: ErrorList = required(&file.path, &path.child("path")).into_iter().collect();
    errors.extend(unreserved_path(&file.path, &path.child("path")));
    match (&file.field_ref, &file.resource_field_ref) {
        (Some(field), resource) => {
            errors.extend(env::field_ref(field, &FIELDS, &path.child("fieldRef")));
            if resource.is_some() {
                let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.push(FieldError::invalid(path, "resource", why));
            }
        }
        (None, Some(resource)) => {
            errors.extend(env::resource_field_ref(resource, true, &path.child("resourceFieldRef")));
        }
        (None, None) => {
            let why = "one of fieldRef and resourceFieldRef is required";
            errors.push(FieldError::required(path, why));
        }
    }
    errors.extend(file_mode(file.mode, &path.child("mode")));
    errors
}

fn items(items: &[KeyToPath], path: &Path) -> ErrorList {
    let items = items.iter().enumerate();
    items.flat_map(|(at, item)| key_to_path(item, &path.child("items").index(at))).collect()
}

pub(super) fn key_to_path(item: &KeyToPath, path: &Path) -> ErrorList {
    let mut errors: ErrorList = required(&item.key, &path.child("key")).into_iter().collect();
    errors.extend(required(&item.path, &path.child("path")));
    errors.extend(unreserved_path(&item.path, &path.child("path")));
    errors.extend(file_mode(item.mode, &path.child("mode")));
    errors
}
