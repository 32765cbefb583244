//! ConfigMap: text and binary values under keys that are usable as file names.

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use serde_json::Value;

use crate::{
    duration::age,
    field::{ErrorList, FieldError, Path},
    json::{at, flag},
    kinds::each,
    names,
    strategy::{Column, Json, MetadataCheck, Strategy},
    table::{self, AGE, NAME, column},
};

/// How many bytes the values of a ConfigMap or a Secret may have together.
pub(crate) const BYTES_MAX: usize = 1024 * 1024;

const FROZEN: &str = "field is immutable when `immutable` is set";

const COLUMNS: &[Column] = &[NAME, column("Data", "How many keys there are."), AGE];

/// ConfigMap.
#[derive(Debug)]
pub struct ConfigMapStrategy;

impl Strategy for ConfigMapStrategy {
    fn validate_create(&self, object: &Json) -> ErrorList {
        let mut errors = ErrorList::new();
        let mut bytes = 0;
        for (key, value) in members(object, "data") {
            let path = Path::new("data").key(key);
            errors.extend(each(&path, key, names::config_map_key(key)));
            if at(object, &["binaryData", key]).is_some() {
                let why = "duplicate of key present in binaryData";
                errors.push(FieldError::invalid(&path, key, why));
            }
            bytes += value.len();
        }
        for (key, value) in members(object, "binaryData") {
            let path = Path::new("binaryData").key(key);
            errors.extend(each(&path, key, names::config_map_key(key)));
            bytes += decoded(value).map_or(value.len(), |plain| plain.len());
        }
        if bytes > BYTES_MAX {
            errors.push(FieldError::too_long(&Path::default(), BYTES_MAX));
        }
        errors
    }

    fn validate_update(&self, object: &Json, old: &Json) -> ErrorList {
        let mut errors = frozen(object, old, &["data", "binaryData"]);
        errors.extend(self.validate_create(object));
        errors
    }

    fn metadata_check(&self) -> MetadataCheck {
        MetadataCheck::Both
    }

    fn validate_name(&self, name: &str, is_prefix: bool) -> Vec<String> {
        names::name_is_dns_subdomain(name, is_prefix)
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn row(&self, object: &Json, now: Timestamp) -> Vec<Value> {
        let keys = members(object, "data").count() + members(object, "binaryData").count();
        vec![table::name(object), keys.into(), age(object, now).into()]
    }
}

/// The text members of the map `field`.
pub(crate) fn members<'a>(
    object: &'a Json,
    field: &str,
) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
    let map = object.get(field).and_then(Value::as_object);
    map.into_iter().flatten().map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
}

/// The bytes behind a base64 text, if it is one. Line breaks inside are ignored, as Go does.
pub(crate) fn decoded(text: &str) -> Option<Vec<u8>> {
    if text.contains(['\n', '\r']) {
        STANDARD.decode(text.replace(['\n', '\r'], "")).ok()
    } else {
        STANDARD.decode(text).ok()
    }
}

/// What an update does to an object that is marked immutable.
pub(crate) fn frozen(object: &Json, old: &Json, fields: &[&str]) -> ErrorList {
    let mut errors = ErrorList::new();
    if !flag(old, &["immutable"]) {
        return errors;
    }
    if !flag(object, &["immutable"]) {
        errors.push(FieldError::forbidden(&Path::new("immutable"), FROZEN));
    }
    for &field in fields {
        if !members(object, field).eq(members(old, field)) {
            errors.push(FieldError::forbidden(&Path::new(field), FROZEN));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn texts(errors: &ErrorList) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn keys_are_file_names_and_unique_over_both_maps() {
        let cases = [
            (json!({"data": {"a.b-c_d": "x"}, "binaryData": {"e": "eA=="}}), vec![]),
            (json!({}), vec![]),
            (
                json!({"data": {"a": "x"}, "binaryData": {"a": "eA=="}}),
                vec!["data[a]: Invalid value: \"a\": duplicate of key present in binaryData"],
            ),
            (
                json!({"data": {"..": "x"}}),
                vec!["data[..]: Invalid value: \"..\": must not be '..'"],
            ),
        ];
        for (object, want) in cases {
            let errors = ConfigMapStrategy.validate_create(object.as_object().unwrap());
            assert_eq!(texts(&errors), want, "{object}");
        }
        let object = json!({"data": {"a/b": "x"}});
        let errors = ConfigMapStrategy.validate_create(object.as_object().unwrap());
        assert!(errors[0].to_string().starts_with("data[a/b]: Invalid value: \"a/b\": a valid"));
    }

    #[test]
    fn all_values_together_have_at_most_one_mebibyte() {
        let half = "x".repeat(BYTES_MAX / 2);
        let binary = STANDARD.encode(&half);
        let fits = json!({"data": {"a": half}, "binaryData": {"b": binary}});
        assert!(ConfigMapStrategy.validate_create(fits.as_object().unwrap()).is_empty());
        let too_long = json!({"data": {"a": half, "c": "1"}, "binaryData": {"b": binary}});
        let errors = ConfigMapStrategy.validate_create(too_long.as_object().unwrap());
        assert_eq!(errors[0].body, "Too long: may not be more than 1048576 bytes");
    }

    #[test]
    fn an_immutable_map_keeps_its_data() {
        let old = json!({"immutable": true, "data": {"a": "1"}});
        let cases = [
            (json!({"immutable": true, "data": {"a": "1"}}), vec![]),
            (json!({"immutable": true, "data": {"a": "1"}, "binaryData": {}}), vec![]),
            (
                json!({"data": {"a": "1"}}),
                vec!["immutable: Forbidden: field is immutable when `immutable` is set"],
            ),
            (
                json!({"immutable": true, "data": {"a": "2"}, "binaryData": {"b": "eA=="}}),
                vec![
                    "data: Forbidden: field is immutable when `immutable` is set",
                    "binaryData: Forbidden: field is immutable when `immutable` is set",
                ],
            ),
        ];
        for (new, want) in cases {
            let (new, old) = (new.as_object().unwrap(), old.as_object().unwrap());
            assert_eq!(texts(&ConfigMapStrategy.validate_update(new, old)), want);
        }
    }
}
