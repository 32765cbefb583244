//! The resources that a definition makes.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    defaults, is_true, kind::CustomStrategy, printed::Columns, scale::Scale, schema::Schema,
};
use crate::{
    discovery::priority,
    json::{at, integer, list, text},
    resource::{Resource, Scope, Subresource, Text},
    strategy::Json,
};

const ALL: &[&str] =
    &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const BELOW: &[&str] = &["get", "patch", "update"];

/// The resources of a definition.
#[derive(Clone, Debug)]
pub struct Served {
    /// The version in which objects are stored, whether it is served or not.
    pub stored: Resource,
    /// The versions that are served.
    pub versions: Vec<Resource>,
    /// The generation of the definition.
    pub generation: i64,
}

/// The table in which objects of a definition are kept, which is called as the definition is: no
/// built-in one has a dot in its name.
pub fn table(definition: &Json) -> &str {
    text(definition, &["metadata", "name"])
}

/// The resources that a definition makes; none before its names are accepted.
pub fn of(definition: &Json) -> Option<Served> {
    if !is_true(definition, "Established") {
        return None;
    }
    let versions = list(definition, &["spec", "versions"]);
    let storage = versions.iter().find(|version| version["storage"] == true)?;
    let served = versions.iter().filter(|version| version["served"] == true);
    Some(Served {
        stored: resource(definition, storage),
        versions: served.map(|version| resource(definition, version)).collect(),
        generation: integer(definition, &["metadata", "generation"]).unwrap_or_default(),
    })
}

fn resource(definition: &Json, version: &Value) -> Resource {
    let group = text(definition, &["spec", "group"]);
    let name = version["name"].as_str().unwrap_or_default();
    let accepted = |key: &str| -> Text {
        text(definition, &["status", "acceptedNames", key]).to_owned().into()
    };
    let many = |key: &str| -> Vec<Text> {
        let names = at(definition, &["status", "acceptedNames", key]).and_then(Value::as_array);
        let names = names.into_iter().flatten().filter_map(Value::as_str);
        names.map(|name| name.to_owned().into()).collect()
    };
    let strategy = strategy(definition, version, group, name);
    let mut subresources = Vec::new();
    if strategy.scale.is_some() {
        let kind = ("autoscaling".into(), "v1".into(), "Scale".into());
        let scale = Subresource { name: "scale".into(), kind: Some(kind), verbs: BELOW };
        subresources.push(scale);
    }
    if strategy.has_status {
        subresources.insert(0, Subresource { name: "status".into(), kind: None, verbs: BELOW });
    }
    Resource {
        group: group.to_owned().into(),
        version: name.to_owned().into(),
        plural: accepted("plural"),
        singular: accepted("singular"),
        kind: accepted("kind"),
        short_names: many("shortNames"),
        categories: many("categories"),
        scope: match text(definition, &["spec", "scope"]) {
            "Cluster" => Scope::Cluster,
            _ => Scope::Namespaced,
        },
        verbs: ALL,
        subresources,
        table: table(definition).into(),
        strategy: Arc::new(strategy),
    }
}

fn strategy(definition: &Json, version: &Value, group: &str, name: &str) -> CustomStrategy {
    let kind = text(definition, &["status", "acceptedNames", "kind"]);
    let api_version = format!("{group}/{name}");
    let fields = version["selectableFields"].as_array().into_iter().flatten();
    let fields = fields.filter_map(|field| field["jsonPath"].as_str());
    let selectable: Vec<String> =
        fields.map(|path| path.strip_prefix('.').unwrap_or(path).to_owned()).collect();
    let mut published = version["schema"]["openAPIV3Schema"].clone();
    let mut schema = Schema::read(&published);
    defaults::prune(&mut schema);
    if definition["spec"]["preserveUnknownFields"] == true {
        schema.keeps_unknown = true;
    }
    if let (Value::Object(published), false) = (&mut published, selectable.is_empty()) {
        let fields = selectable.iter().map(|path| json!({"fieldPath": path})).collect();
        published.insert("x-kubernetes-selectable-fields".to_owned(), Value::Array(fields));
    }
    let deprecation = (version["deprecated"] == true).then(|| {
        let given = version["deprecationWarning"].as_str().map(str::to_owned);
        given.unwrap_or_else(|| {
            let instead = successor(definition, name);
            let instead = instead.map(|it| format!("; use {group}/{it} {kind}"));
            format!("{api_version} {kind} is deprecated{}", instead.unwrap_or_default())
        })
    });
    CustomStrategy {
        kind: kind.to_owned(),
        list_kind: text(definition, &["status", "acceptedNames", "listKind"]).to_owned(),
        schema,
        published,
        has_status: version["subresources"]["status"].is_object(),
        scale: Scale::read(version),
        columns: Columns::read(version),
        selectable,
        deprecation,
        api_version,
    }
}

/// The version that is to be used instead of one that is deprecated: the first of those served that
/// are not, if it comes before.
fn successor<'a>(definition: &'a Json, deprecated: &str) -> Option<&'a str> {
    let versions = list(definition, &["spec", "versions"]).iter();
    let kept = versions.filter(|it| it["served"] == true && it["deprecated"] != true);
    let names = kept.filter_map(|version| version["name"].as_str());
    let first = names.max_by_key(|name| priority(name))?;
    (priority(first) > priority(deprecated)).then_some(first)
}
