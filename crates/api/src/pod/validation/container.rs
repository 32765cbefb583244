//! Containers.

use k8s_openapi::api::core::v1::Container;

use crate::{
    field::{ErrorList, FieldError, Path},
    meta::invalid,
    names,
};

/// Says what is wrong with a container.
pub(super) fn validate(container: &Container, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let name = path.child("name");
    if container.name.is_empty() {
        errors.push(FieldError::required(&name, ""));
    } else {
        errors.extend(invalid(&name, &container.name, names::dns1123_label(&container.name)));
    }
    if container.image.as_deref().unwrap_or_default().is_empty() {
        errors.push(FieldError::required(&path.child("image"), ""));
    }
    errors
}
