//! Secret: bytes under keys, with a type that may demand certain keys.

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use serde_json::Value;

use crate::{
    duration::age,
    field::{ErrorList, FieldError, Path},
    json::{at, object_mut, set_default, text},
    kinds::{
        config_map::{BYTES_MAX, decoded, frozen, members},
        each, immutable,
    },
    names,
    strategy::{Column, Json, MetadataCheck, Strategy, WriteContext, keep},
    table::{self, AGE, NAME, column},
};

const COLUMNS: &[Column] = &[
    NAME,
    column("Type", "What the secret is for."),
    column("Data", "How many keys there are."),
    AGE,
];

const SERVICE_ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";

/// Secret.
#[derive(Debug)]
pub struct SecretStrategy;

impl Strategy for SecretStrategy {
    /// Sets the type, and folds `stringData` into `data`: it is write-only.
    fn fill_defaults(&self, object: &mut Json) {
        if text(object, &["type"]).is_empty() {
            object.remove("type");
        }
        set_default(object, "type", "Opaque");
        if let Some(Value::Object(plain)) = object.remove("stringData") {
            let data = object_mut(object, "data");
            for (key, value) in plain {
                let encoded = STANDARD.encode(value.as_str().unwrap_or_default());
                data.insert(key, encoded.into());
            }
        }
    }

    fn validate_create(&self, object: &Json) -> ErrorList {
        let mut errors = ErrorList::new();
        let path = Path::new("data");
        let mut bytes = 0;
        for (key, value) in members(object, "data") {
            let path = path.key(key);
            errors.extend(each(&path, key, names::config_map_key(key)));
            bytes += decoded(value).map_or(value.len(), |plain| plain.len());
        }
        if bytes > BYTES_MAX {
            errors.push(FieldError::too_long(&path, BYTES_MAX));
        }
        errors.extend(validate_type(object));
        errors
    }

    fn prepare_update(&self, object: &mut Json, old: &Json, _context: &WriteContext) {
        if text(object, &["type"]).is_empty() {
            keep(object, old, "type");
        }
    }

    fn validate_update(&self, object: &Json, old: &Json) -> ErrorList {
        let mut errors: ErrorList = immutable(object, old, "type").into_iter().collect();
        errors.extend(frozen(object, old, &["data"]));
        errors.extend(self.validate_create(object));
        errors
    }

    fn metadata_check(&self) -> MetadataCheck {
        MetadataCheck::Both
    }

    fn validate_name(&self, name: &str, is_prefix: bool) -> Vec<String> {
        names::name_is_dns_subdomain(name, is_prefix)
    }

    fn selectable_fields(&self) -> &'static [&'static str] {
        &["type"]
    }

    fn field_value(&self, object: &Json, _field: &str) -> String {
        text(object, &["type"]).to_owned()
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn row(&self, object: &Json, now: Timestamp) -> Vec<Value> {
        vec![
            table::name(object),
            text(object, &["type"]).into(),
            members(object, "data").count().into(),
            age(object, now).into(),
        ]
    }
}

/// What the type of a secret demands of its keys.
fn validate_type(object: &Json) -> ErrorList {
    let data = Path::new("data");
    let value_of = |key: &str| members(object, "data").find(|(k, _)| *k == key).map(|(_, v)| v);
    let missing = |keys: &[&str]| -> ErrorList {
        let absent = keys.iter().filter(|key| value_of(key).is_none());
        absent.map(|key| FieldError::required(&data.key(key), "")).collect()
    };
    match text(object, &["type"]) {
        "kubernetes.io/service-account-token" => {
            let annotations = ["metadata", "annotations", SERVICE_ACCOUNT_NAME];
            if text(object, &annotations).is_empty() {
                let path = Path::new("metadata").child("annotations").key(SERVICE_ACCOUNT_NAME);
                return vec![FieldError::required(&path, "")];
            }
            ErrorList::new()
        }
        "kubernetes.io/dockercfg" => validate_json(object, ".dockercfg"),
        "kubernetes.io/dockerconfigjson" => validate_json(object, ".dockerconfigjson"),
        "kubernetes.io/basic-auth" => match missing(&["username", "password"]) {
            both if both.len() == 2 => both,
            _ => ErrorList::new(),
        },
        "kubernetes.io/ssh-auth" if value_of("ssh-privatekey").unwrap_or_default().is_empty() => {
            vec![FieldError::required(&data.key("ssh-privatekey"), "")]
        }
        "kubernetes.io/tls" => missing(&["tls.crt", "tls.key"]),
        _ => ErrorList::new(),
    }
}

/// Checks that `data[key]` holds a JSON object.
fn validate_json(object: &Json, key: &str) -> ErrorList {
    let path = Path::new("data").key(key);
    let Some(value) = at(object, &["data", key]).and_then(Value::as_str) else {
        return vec![FieldError::required(&path, "")];
    };
    match serde_json::from_slice::<Option<Json>>(&decoded(value).unwrap_or_default()) {
        Ok(_) => ErrorList::new(),
        // The contents must not show up in an error; where the parser stopped may.
        Err(why) => vec![FieldError::invalid(
            &path,
            "<secret contents redacted>",
            &format!("not a JSON object (line {}, column {})", why.line(), why.column()),
        )],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn string_data_is_folded_into_data() {
        let mut secret =
            json!({"data": {"a": "MQ==", "b": "Mg=="}, "stringData": {"b": "3", "c": ""}});
        SecretStrategy.fill_defaults(secret.as_object_mut().unwrap());
        assert_eq!(secret, json!({"type": "Opaque", "data": {"a": "MQ==", "b": "Mw==", "c": ""}}));
    }

    #[test]
    fn types_demand_their_keys() {
        let none: [&str; 0] = [];
        let cases = [
            (json!({"type": "x"}), none.as_slice()),
            (json!({"type": "kubernetes.io/basic-auth", "data": {"password": ""}}), &none),
            (
                json!({"type": "kubernetes.io/basic-auth"}),
                &["data[username]: Required value", "data[password]: Required value"],
            ),
            (
                json!({"type": "kubernetes.io/ssh-auth", "data": {"ssh-privatekey": ""}}),
                &["data[ssh-privatekey]: Required value"],
            ),
            (
                json!({"type": "kubernetes.io/tls", "data": {"tls.crt": "eA=="}}),
                &["data[tls.key]: Required value"],
            ),
            (
                json!({"type": "kubernetes.io/service-account-token"}),
                &["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
            ),
            (
                json!({"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "e30="}}),
                &none,
            ),
            (
                json!({"type": "kubernetes.io/dockercfg", "data": {".dockercfg": "eA=="}}),
                &["data[.dockercfg]: Invalid value: \"<secret contents redacted>\": not a JSON \
                   object (line 1, column 1)"],
            ),
        ];
        for (secret, want) in cases {
            let errors = SecretStrategy.validate_create(secret.as_object().unwrap());
            let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(texts, want, "{secret}");
        }
    }

    #[test]
    fn the_type_never_changes() {
        let old = json!({"type": "Opaque"});
        let new = json!({"type": "other"});
        let errors =
            SecretStrategy.validate_update(new.as_object().unwrap(), old.as_object().unwrap());
        assert_eq!(errors[0].to_string(), "type: Invalid value: \"other\": field is immutable");
    }
}
