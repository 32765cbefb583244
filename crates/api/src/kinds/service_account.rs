//! ServiceAccount: who a pod is.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    json::at,
    names,
    strategy::{Column, Json, MetadataCheck, Strategy, WriteContext},
    table::{NAME_AND_AGE, name_and_age},
};

const ENFORCE_MOUNTABLE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";

/// ServiceAccount.
#[derive(Debug)]
pub struct ServiceAccountStrategy;

impl Strategy for ServiceAccountStrategy {
    fn prepare_create(&self, object: &mut Json, _context: &WriteContext) {
        keep_only_names(object);
    }

    fn prepare_update(&self, object: &mut Json, _old: &Json, _context: &WriteContext) {
        keep_only_names(object);
    }

    fn warnings(&self, object: &Json, old: Option<&Json>) -> Vec<String> {
        let is_set =
            |of: &Json| at(of, &["metadata", "annotations", ENFORCE_MOUNTABLE_SECRETS]).is_some();
        if is_set(object) && !old.is_some_and(is_set) {
            vec![format!(
                "metadata.annotations[{ENFORCE_MOUNTABLE_SECRETS}]: deprecated in v1.32+; prefer \
                 separate namespaces to isolate access to mounted secrets"
            )]
        } else {
            Vec::new()
        }
    }

    fn metadata_check(&self) -> MetadataCheck {
        MetadataCheck::Both
    }

    fn validate_name(&self, name: &str, is_prefix: bool) -> Vec<String> {
        names::name_is_dns_subdomain(name, is_prefix)
    }

    fn delete_returns_object(&self) -> bool {
        true
    }

    fn columns(&self) -> &'static [Column] {
        NAME_AND_AGE
    }

    fn row(&self, object: &Json, now: Timestamp) -> Vec<Value> {
        name_and_age(object, now)
    }
}

/// Secrets are referred to by name only: the rest of a reference could name another namespace.
fn keep_only_names(object: &mut Json) {
    for secret in object.get_mut("secrets").and_then(Value::as_array_mut).into_iter().flatten() {
        *secret = match secret.get("name") {
            Some(name) => json!({"name": name}),
            None => json!({}),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_to_secrets_keep_only_the_name() {
        let mut account = json!({"secrets": [{"name": "a", "namespace": "other"}, {}]});
        keep_only_names(account.as_object_mut().unwrap());
        assert_eq!(account, json!({"secrets": [{"name": "a"}, {}]}));
    }

    #[test]
    fn a_deprecated_annotation_is_warned_about_once() {
        let with = json!({"metadata": {"annotations": {ENFORCE_MOUNTABLE_SECRETS: "true"}}});
        let with = with.as_object().unwrap();
        assert_eq!(ServiceAccountStrategy.warnings(with, None).len(), 1);
        assert!(ServiceAccountStrategy.warnings(with, Some(with)).is_empty());
    }
}
