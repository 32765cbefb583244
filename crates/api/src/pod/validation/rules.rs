//! Small rules that many fields share.

use crate::{
    field::{ErrorList, FieldError, Path},
    meta::invalid,
    names,
};

/// A text that may be absent.
pub(in crate::pod) fn text(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or_default()
}

/// A list that may be absent.
pub(in crate::pod) fn list<T>(value: &Option<Vec<T>>) -> &[T] {
    value.as_deref().unwrap_or_default()
}

/// An RFC 1123 label.
pub(super) fn dns_label(value: &str, path: &Path) -> ErrorList {
    invalid(path, value, names::dns1123_label(value))
}

/// An RFC 1123 subdomain.
pub(super) fn dns_subdomain(value: &str, path: &Path) -> ErrorList {
    invalid(path, value, names::dns1123_subdomain(value))
}

/// A name with an optional domain before a slash.
pub(super) fn qualified(value: &str, path: &Path) -> ErrorList {
    invalid(path, value, names::qualified_name(value))
}

/// A text that must not be empty.
pub(super) fn required(value: &str, path: &Path) -> Option<FieldError> {
    value.is_empty().then(|| FieldError::required(path, ""))
}

/// An RFC 1123 label that must be there.
pub(super) fn required_label(value: &str, path: &Path) -> ErrorList {
    if value.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    dns_label(value, path)
}

/// One of a few words that must be there.
pub(super) fn choice(value: &str, supported: &[&str], path: &Path) -> Option<FieldError> {
    if value.is_empty() {
        return Some(FieldError::required(path, ""));
    }
    option(value, supported, path)
}

/// One of a few words.
pub(super) fn option(value: &str, supported: &[&str], path: &Path) -> Option<FieldError> {
    let is_known = supported.contains(&value);
    (!is_known).then(|| FieldError::not_supported(path, value, supported))
}

/// A number that is not below zero.
pub(super) fn non_negative(value: i64, path: &Path) -> Option<FieldError> {
    (value < 0).then(|| FieldError::invalid(path, value, "must be greater than or equal to 0"))
}

/// A number above zero.
pub(super) fn positive(value: i64, path: &Path) -> Option<FieldError> {
    (value <= 0).then(|| FieldError::invalid(path, value, "must be greater than zero"))
}

/// A number that a function of [`names`] judges.
pub(super) fn number(value: i64, path: &Path, judge: fn(i64) -> names::Faults) -> ErrorList {
    judge(value).iter().map(|fault| FieldError::invalid(path, value, fault)).collect()
}

/// The permissions of a file.
pub(super) fn file_mode(mode: Option<i32>, path: &Path) -> Option<FieldError> {
    let mode = mode.filter(|mode| !(0..=0o777).contains(mode))?;
    let why = "must be a number between 0 and 0777 (octal), both inclusive";
    Some(FieldError::invalid(path, mode, why))
}

/// A path that does not climb.
pub(super) fn no_backsteps(value: &str, path: &Path) -> Option<FieldError> {
    let climbs = value.split('/').any(|part| part == "..");
    climbs.then(|| FieldError::invalid(path, value, "must not contain '..'"))
}

/// A path below the current directory.
pub(super) fn descending_path(value: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if value.starts_with('/') {
        errors.push(FieldError::invalid(path, value, "must be a relative path"));
    }
    errors.extend(no_backsteps(value, path));
    errors
}

/// A path below the current directory that leaves names with two leading dots to the system.
pub(super) fn unreserved_path(value: &str, path: &Path) -> ErrorList {
    let mut errors = descending_path(value, path);
    if value.starts_with("..") && !value.starts_with("../") {
        errors.push(FieldError::invalid(path, value, "must not start with '..'"));
    }
    errors
}
