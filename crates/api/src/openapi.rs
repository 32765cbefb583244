//! The OpenAPI documents: in version 3 one per group and version and the index that names them, in
//! version 2 one for all.
//!
//! `kubectl explain`, server-side validation and dry-run depend on them. Schemas are the published
//! ones, copied as text; paths are made from the [`Registry`], so that they say what is really
//! served.

mod defined;
mod paths;
pub mod v2;

use std::{borrow::Cow, collections::BTreeMap, fmt::Write, sync::LazyLock};

use serde_json::{Value, json};

use crate::{
    refused,
    resource::{Registry, Resource, Text},
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

/// A group and a version of it: there is one document for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    group: Text,
    version: Text,
}

impl Version {
    /// `api/v1` or `apis/batch/v1`.
    pub fn path(&self) -> String {
        match &*self.group {
            "" => format!("api/{}", self.version),
            group => format!("apis/{group}/{}", self.version),
        }
    }

    /// Whether there are kinds in it that users have defined.
    pub fn is_defined(&self, registry: &Registry) -> bool {
        self.served(registry).any(|resource| resource.strategy.schema().is_some())
    }

    fn served<'a>(&'a self, registry: &'a Registry) -> impl Iterator<Item = &'a Resource> {
        let resources = registry.iter().map(AsRef::as_ref);
        resources.filter(|it: &&Resource| it.group == self.group && it.version == self.version)
    }
}

/// The versions that there are documents for, in the order of the registry.
pub fn versions(registry: &Registry) -> Vec<Version> {
    let mut versions: Vec<Version> = registry
        .iter()
        .map(|it| Version { group: it.group.clone(), version: it.version.clone() })
        .collect();
    versions.dedup();
    versions
}

/// All documents, in the order of the registry.
pub fn documents(registry: &Registry) -> Vec<Document> {
    versions(registry).iter().map(|version| document(registry, version)).collect()
}

/// What `/openapi/v3` answers, given the paths and hashes of the documents.
pub fn index<'a>(documents: impl IntoIterator<Item = (&'a str, &'a str)>) -> Value {
    let paths: serde_json::Map<String, Value> = documents
        .into_iter()
        .map(|(path, hash)| {
            let url = format!("/openapi/v3/{path}?hash={hash}");
            (path.to_owned(), json!({"serverRelativeURL": url}))
        })
        .collect();
    json!({"paths": paths})
}

/// The document of a version.
pub fn document(registry: &Registry, version: &Version) -> Document {
    let served: Vec<&Resource> = version.served(registry).collect();
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
    Document { path: version.path(), hash: hash(&body), body }
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
fn closure(paths: &str, served: &[&Resource]) -> BTreeMap<Cow<'static, str>, Cow<'static, str>> {
    let mut taken = BTreeMap::new();
    let mut open: Vec<&'static str> = references(paths).collect();
    for (name, schema) in served.iter().flat_map(|resource| defined::schemas(resource)) {
        let schema = schema.to_string();
        open.extend(references(&schema));
        taken.insert(Cow::Owned(name), Cow::Owned(schema));
    }
    open.extend(served.iter().filter_map(|r| schema::name_of(&r.group, &r.version, &r.kind)));
    while let Some(name) = open.pop() {
        let Some((name, schema)) = SCHEMAS.get_key_value(name) else { continue };
        if taken.insert(Cow::Borrowed(*name), Cow::Borrowed(*schema)).is_none() {
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
        let index = index(documents.iter().map(|it| (&*it.path, &*it.hash)));
        let paths: Vec<&String> = index["paths"].as_object().unwrap().keys().collect();
        assert_eq!(
            paths,
            [
                "api/v1",
                "apis/apiextensions.k8s.io/v1",
                "apis/batch/v1",
                "apis/coordination.k8s.io/v1",
                "apis/discovery.k8s.io/v1",
                "apis/events.k8s.io/v1",
                "apis/jobset.x-k8s.io/v1alpha2",
                "apis/kueue.x-k8s.io/v1beta1",
                "apis/kueue.x-k8s.io/v1beta2",
                "apis/policy/v1",
                "apis/rbac.authorization.k8s.io/v1",
                "apis/scheduling.k8s.io/v1"
            ]
        );
    }

    /// kubectl sends a strategic merge patch where one is taken, and a merge patch elsewhere.
    #[test]
    fn only_built_in_kinds_take_strategic_merge_patches() {
        let registry = builtin::registry();
        for (group, version, path, want) in [
            ("batch", "v1", "/apis/batch/v1/namespaces/{namespace}/jobs/{name}", true),
            (
                "jobset.x-k8s.io",
                "v1alpha2",
                "/apis/jobset.x-k8s.io/v1alpha2/namespaces/{namespace}/jobsets/{name}",
                false,
            ),
            (
                "kueue.x-k8s.io",
                "v1beta1",
                "/apis/kueue.x-k8s.io/v1beta1/clusterqueues/{name}",
                false,
            ),
        ] {
            let documents = documents(&registry);
            let place = format!("apis/{group}/{version}");
            let document = documents.iter().find(|it| *it.path == *place).expect(&place);
            let document: Value = serde_json::from_str(&document.body).unwrap();
            let taken = &document["paths"][path]["patch"]["requestBody"]["content"];
            assert!(taken["application/merge-patch+json"].is_object(), "{path}");
            let strategic = &taken["application/strategic-merge-patch+json"];
            assert_eq!(strategic.is_object(), want, "{path}");
        }
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
