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
/// What clients are told of a kind that comes to its end. The rest still works: objects have to get
/// rid of their finalizers.
const ENDING: &[&str] = &["delete", "deletecollection", "get", "list", "watch"];
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
    let schema = Arc::new(schema(definition, storage));
    let of_stored = |version: &Value| {
        let is_stored = version["name"] == storage["name"];
        (!is_stored).then(|| Arc::clone(&schema))
    };
    Some(Served {
        stored: resource(definition, storage, None),
        versions: served.map(|version| resource(definition, version, of_stored(version))).collect(),
        generation: integer(definition, &["metadata", "generation"]).unwrap_or_default(),
    })
}

fn resource(definition: &Json, version: &Value, stored: Option<Arc<Schema>>) -> Resource {
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
    let strategy = strategy(definition, version, stored);
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

/// What objects of a version look like.
fn schema(definition: &Json, version: &Value) -> Schema {
    let mut schema = Schema::read(&version["schema"]["openAPIV3Schema"]);
    defaults::prune(&mut schema);
    if definition["spec"]["preserveUnknownFields"] == true {
        schema.keeps_unknown = true;
    }
    schema
}

fn strategy(definition: &Json, version: &Value, stored: Option<Arc<Schema>>) -> CustomStrategy {
    let group = text(definition, &["spec", "group"]);
    let name = version["name"].as_str().unwrap_or_default();
    let kind = text(definition, &["status", "acceptedNames", "kind"]);
    let api_version = format!("{group}/{name}");
    let fields = version["selectableFields"].as_array().into_iter().flatten();
    let fields = fields.filter_map(|field| field["jsonPath"].as_str());
    let selectable: Vec<String> =
        fields.map(|path| path.strip_prefix('.').unwrap_or(path).to_owned()).collect();
    let mut published = version["schema"]["openAPIV3Schema"].clone();
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
        schema: schema(definition, version),
        stored,
        published,
        has_status: version["subresources"]["status"].is_object(),
        scale: Scale::read(version),
        columns: Columns::read(version),
        selectable,
        deprecation,
        api_version,
        listed_verbs: is_true(definition, "Terminating").then_some(ENDING),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A definition of two versions, of which the second is stored.
    fn definition(conditions: Value) -> Json {
        let version = |name: &str, known: &str, default: &str| {
            json!({"name": name, "served": true, "storage": name == "v2", "schema": {
                "openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object",
                    "properties": {
                        "both": {"type": "string"}, known: {"type": "string"},
                        "filled": {"type": "string", "default": default}}}}}}})
        };
        let value = json!({
            "metadata": {"name": "foos.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "versions": [
                version("v1", "first", "one"), version("v2", "second", "two")]},
            "status": {"acceptedNames": {"plural": "foos", "kind": "Foo"},
                       "conditions": conditions},
        });
        let Value::Object(object) = value else { unreachable!("it is one") };
        object
    }

    #[test]
    fn objects_are_stored_as_one_version_knows_them() {
        let established = json!([{"type": "Established", "status": "True"}]);
        let served = of(&definition(established)).unwrap();
        let [first, second] = &served.versions[..] else { panic!("there are two versions") };
        let object = |spec: Value| json!({"spec": spec}).as_object().cloned().unwrap();
        let given = || object(json!({"both": "b", "first": "f", "second": "s"}));
        let stored = first.strategy.to_stored(given());
        assert_eq!(stored, object(json!({"both": "b", "second": "s"})));
        assert_eq!(second.strategy.to_stored(given()), given(), "it was pruned before");
        let shown = |resource: &Resource| resource.strategy.from_stored(stored.clone());
        assert_eq!(shown(first), object(json!({"both": "b", "filled": "two"})));
        assert_eq!(shown(second), object(json!({"both": "b", "second": "s", "filled": "two"})));
    }

    #[test]
    fn less_is_told_of_kinds_that_come_to_their_end() {
        let established = json!({"type": "Established", "status": "True"});
        let terminating = json!({"type": "Terminating", "status": "True"});
        let listed = |conditions: Value| {
            let served = of(&definition(conditions)).unwrap();
            served.versions[0].strategy.listed_verbs()
        };
        assert_eq!(listed(json!([established])), None);
        assert_eq!(listed(json!([established, terminating])), Some(ENDING));
    }
}
