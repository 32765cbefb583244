//! Which kind an input is about.

use std::sync::{Arc, LazyLock};

use lockstep_api::{Resource, builtin, strategy::Json};
use lockstep_store::rest::Catalog;
use serde_json::Value;

/// The kinds that are served.
pub(crate) static CATALOG: LazyLock<Catalog> = LazyLock::new(|| Catalog::new(builtin::registry()));

/// The kind that an input says it is of; a pod if it says nothing that is known.
pub(crate) fn resource_of(bytes: &[u8]) -> &'static Arc<Resource> {
    let registry = CATALOG.registry();
    let named = member(bytes, b"kind").and_then(|kind| {
        let version = member(bytes, b"apiVersion").unwrap_or_default();
        let is_meant = |resource: &&Arc<Resource>| resource.kind.as_bytes() == kind;
        let same: Vec<_> = registry.iter().filter(is_meant).collect();
        let exact = same.iter().find(|resource| resource.api_version().as_bytes() == version);
        exact.or_else(|| same.first()).copied()
    });
    named.unwrap_or_else(|| registry.get("", "v1", "pods").expect("pods are served"))
}

/// The text after the first member of a name, found without reading all of it: most inputs are no
/// JSON.
fn member<'a>(bytes: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let at = bytes.windows(name.len()).position(|window| window == name)?;
    let is_between = |byte: &u8| matches!(byte, b'"' | b':' | b' ' | b'\n');
    let rest = &bytes[at + name.len()..];
    let rest = &rest[rest.iter().position(|byte| !is_between(byte))?..];
    let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\n' | b',' | b'}'));
    Some(&rest[..end.unwrap_or(rest.len())])
}

/// The JSON of an object, with what it is.
pub(crate) fn encoded(resource: &Resource, object: &Json) -> Vec<u8> {
    let mut object = object.clone();
    object.insert("apiVersion".to_owned(), resource.api_version().into());
    object.insert("kind".to_owned(), resource.kind.to_string().into());
    Value::Object(object).to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_say_what_they_are_in_json_and_in_yaml() {
        let kind = |text: &str| format!("{:?}", resource_of(text.as_bytes()));
        assert_eq!(kind(r#"{"kind": "Job", "apiVersion":"batch/v1"}"#), "batch/v1/jobs");
        assert_eq!(
            kind("apiVersion: kueue.x-k8s.io/v1beta1\nkind: LocalQueue\n"),
            "kueue.x-k8s.io/v1beta1/localqueues"
        );
        assert_eq!(kind("kind: Lease"), "coordination.k8s.io/v1/leases");
        assert_eq!(kind("nonsense"), "v1/pods");
    }
}
