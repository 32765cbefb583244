//! The OpenAPI documents: in version 3 one per group and version and the index that names them, in
//! version 2 one for all.
//!
//! `kubectl explain`, server-side validation and dry-run depend on them. Schemas are the published
//! ones, copied as text; paths are made from the [`Registry`], so that they say what is really
//! served.

mod paths;
pub mod v2;

use std::{collections::BTreeMap, fmt::Write, sync::LazyLock};

use serde_json::{Value, json};

use crate::{
    refused,
    resource::{Registry, Resource},
    schema,
};

/// The published schemas, one per line, written by `cargo xtask openapi`.
static PUBLISHED: &str = include_str!("../openapi/schemas.json");

/// The schemas of custom kinds, one per line, written by `cargo xtask crds`.
static CUSTOM: &str = include_str!("../openapi/custom-schemas.json");

/// What stands before the name of a schema where it is referred to.
pub(crate) const REFERENCE: &str = "#/components/schemas/";

static SCHEMAS: LazyLock<BTreeMap<&str, &str>> = LazyLock::new(|| {
    PUBLISHED
        .lines()
        .chain(CUSTOM.lines())
        .filter_map(|line| {
            let (name, schema) = line.strip_prefix('"')?.split_once("\":")?;
            Some((name, schema.strip_suffix(',').unwrap_or(schema)))
        })
        .collect()
});

/// The schema `name`, if there is one.
pub(crate) fn published(name: &str) -> Option<Value> {
    serde_json::from_str(SCHEMAS.get(name)?).ok()
}

/// The names of the schemas of custom kinds.
pub(crate) fn custom_names() -> impl Iterator<Item = &'static str> {
    CUSTOM.lines().filter_map(|line| Some(line.strip_prefix('"')?.split_once("\":")?.0))
}

/// One OpenAPI document.
#[derive(Clone, Debug)]
pub struct Document {
    /// `api/v1` or `apis/batch/v1`.
    pub path: String,
    /// Changes when the document does.
    pub hash: String,
    /// The document.
    pub body: String,
}

/// All documents, in the order of the registry.
pub fn documents(registry: &Registry) -> Vec<Document> {
    let mut versions: Vec<(&str, &str)> =
        registry.iter().map(|resource| (&*resource.group, &*resource.version)).collect();
    versions.dedup();
    versions.iter().map(|(group, version)| document(registry, group, version)).collect()
}

/// What `/openapi/v3` answers.
pub fn index(documents: &[Document]) -> Value {
    let paths: serde_json::Map<String, Value> = documents
        .iter()
        .map(|Document { path, hash, .. }| {
            let url = format!("/openapi/v3/{path}?hash={hash}");
            (path.clone(), json!({"serverRelativeURL": url}))
        })
        .collect();
    json!({"paths": paths})
}

fn document(registry: &Registry, group: &str, version: &str) -> Document {
    let served: Vec<&Resource> = registry
        .iter()
        .map(AsRef::as_ref)
        .filter(|resource| resource.group == group && resource.version == version)
        .collect();
    let paths = paths::of(&served).to_string();
    let mut body = String::from(r#"{"openapi":"3.0.0","info":{"title":"Kubernetes","version":""#);
    body.push_str(crate::KUBERNETES_VERSION);
    body.push_str(r#""},"paths":"#);
    body.push_str(&paths);
    body.push_str(r#","components":{"schemas":{"#);
    for (at, (name, schema)) in closure(&paths, &served).iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        let _ = write!(body, "{comma}\"{name}\":{schema}");
    }
    for (name, schema) in served.iter().filter_map(|resource| refused::schema(resource)) {
        let comma = if body.ends_with('{') { "" } else { "," };
        let _ = write!(body, "{comma}\"{name}\":{schema}");
    }
    let _ = write!(body, "}},\"securitySchemes\":{}}}}}", security_schemes());
    let path = match group {
        "" => format!("api/{version}"),
        group => format!("apis/{group}/{version}"),
    };
    Document { path, hash: hash(&body), body }
}

fn security_schemes() -> Value {
    json!({"BearerToken": {
        "description": "Bearer Token authentication",
        "in": "header",
        "name": "authorization",
        "type": "apiKey",
    }})
}

/// The schemas that `paths` refers to, those they refer to, and so on; and those of the kinds
/// served, even where no path names them.
fn closure(paths: &str, served: &[&Resource]) -> BTreeMap<&'static str, &'static str> {
    let mut taken = BTreeMap::new();
    let mut open: Vec<&'static str> = references(paths).collect();
    open.extend(served.iter().filter_map(|r| schema::name_of(&r.group, &r.version, &r.kind)));
    while let Some(name) = open.pop() {
        let Some((name, schema)) = SCHEMAS.get_key_value(name) else { continue };
        if taken.insert(*name, *schema).is_none() {
            open.extend(references(schema));
        }
    }
    taken
}

fn references(text: &str) -> impl Iterator<Item = &'static str> {
    text.split(REFERENCE).skip(1).filter_map(|rest| {
        let (name, _) = rest.split_once('"')?;
        SCHEMAS.get_key_value(name).map(|(name, _)| *name)
    })
}

/// FNV-1a, 64 bits. It only has to tell one release's document from another's.
fn hash(text: &str) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{hash:016X}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;

    #[test]
    fn documents_are_whole_and_refer_to_nothing_outside() {
        let registry = builtin::registry();
        let documents = documents(&registry);
        for Document { path, body, .. } in &documents {
            let document: Value = serde_json::from_str(body).expect(path);
            let schemas = document["components"]["schemas"].as_object().unwrap();
            for rest in body.split(REFERENCE).skip(1) {
                let name = rest.split('"').next().unwrap();
                assert!(schemas.contains_key(name), "{path} lacks {name}");
            }
        }
        let index = index(&documents);
        let paths: Vec<&String> = index["paths"].as_object().unwrap().keys().collect();
        assert_eq!(
            paths,
            [
                "api/v1",
                "apis/batch/v1",
                "apis/coordination.k8s.io/v1",
                "apis/discovery.k8s.io/v1",
                "apis/events.k8s.io/v1",
                "apis/jobset.x-k8s.io/v1alpha2",
                "apis/kueue.x-k8s.io/v1beta1",
                "apis/kueue.x-k8s.io/v1beta2",
                "apis/rbac.authorization.k8s.io/v1",
                "apis/scheduling.k8s.io/v1"
            ]
        );
    }

    /// kubectl looks for these two to decide whether the server validates fields and knows dry-run.
    #[test]
    fn every_patch_takes_field_validation_and_dry_run() {
        let registry = builtin::registry();
        for Document { path, body, .. } in documents(&registry) {
            let document: Value = serde_json::from_str(&body).unwrap();
            let mut patched = Vec::new();
            for item in document["paths"].as_object().unwrap().values() {
                let patch = &item["patch"];
                if patch.is_null() {
                    continue;
                }
                patched.push(patch["x-kubernetes-group-version-kind"]["kind"].clone());
                let parameters = patch["parameters"].as_array().unwrap();
                for name in ["dryRun", "fieldValidation", "fieldManager", "force"] {
                    assert!(parameters.iter().any(|p| p["name"] == name), "{path} {name}");
                }
            }
            for resource in registry.iter().filter(|r| r.verbs.contains(&"patch")) {
                if path.ends_with(&resource.api_version()) && !resource.group.is_empty() {
                    assert!(patched.contains(&json!(resource.kind)), "{resource:?}");
                }
            }
        }
    }

    #[test]
    fn kinds_carry_the_mark_by_which_clients_find_them() {
        let documents = documents(&builtin::registry());
        let core: Value = serde_json::from_str(&documents[0].body).unwrap();
        let pod = &core["components"]["schemas"]["io.k8s.api.core.v1.Pod"];
        let mark = json!([{"group": "", "kind": "Pod", "version": "v1"}]);
        assert_eq!(pod["x-kubernetes-group-version-kind"], mark);
        assert!(pod["description"].is_string());
    }
}
