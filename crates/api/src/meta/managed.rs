//! The rules for `metadata.managedFields`.

use serde_json::Value;

use crate::{
    field::{ErrorList, FieldError, Path},
    json,
    strategy::Json,
};

const MANAGER_MAX: usize = 128;
const SUBRESOURCE_MAX: usize = 256;

/// Says what is wrong with the record of who set which field.
pub(super) fn validate(meta: &Json, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (at, entry) in json::list(meta, &["managedFields"]).iter().enumerate() {
        let path = path.index(at);
        let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
        let operation = text("operation");
        if !matches!(operation, "Apply" | "Update") {
            let why = "must be `Apply` or `Update`";
            errors.push(FieldError::invalid(&path.child("operation"), operation, why));
        }
        let fields_type = text("fieldsType");
        if !matches!(fields_type, "" | "FieldsV1") {
            let why = "must be `FieldsV1`";
            errors.push(FieldError::invalid(&path.child("fieldsType"), fields_type, why));
        }
        let (manager, manager_path) = (text("manager"), path.child("manager"));
        if manager.len() > MANAGER_MAX {
            errors.push(FieldError::too_long(&manager_path, MANAGER_MAX));
        }
        if let Some((position, odd)) = manager.char_indices().find(|(_, c)| c.is_control()) {
            let why = format!("invalid character U+{:04X} (at position {position})", odd as u32);
            errors.push(FieldError::invalid(&manager_path, manager, &why));
        }
        if text("subresource").len() > SUBRESOURCE_MAX {
            errors.push(FieldError::too_long(&path.child("subresource"), SUBRESOURCE_MAX));
        }
    }
    errors
}
