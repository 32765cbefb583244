//! The documents by which clients learn what is served.
//!
//! There are two generations: aggregated discovery tells everything in two documents, legacy
//! discovery in one document per group and version. Both are plain functions of the [`Registry`].

use std::cmp::Reverse;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::resource::{Registry, Resource, Scope};

/// The version of aggregated discovery a client asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregated {
    /// `apidiscovery.k8s.io/v2`.
    V2,
    /// `apidiscovery.k8s.io/v2beta1`, for clients before 1.30.
    V2Beta1,
}

impl Aggregated {
    /// `v2` or `v2beta1`.
    pub fn version(self) -> &'static str {
        match self {
            Self::V2 => "v2",
            Self::V2Beta1 => "v2beta1",
        }
    }

    /// The `Content-Type` of the answer. Clients compare it to the letter.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::V2 => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
            Self::V2Beta1 => {
                "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
            }
        }
    }
}

/// What `/api` answers to a client that understands aggregated discovery.
pub fn aggregated_core(registry: &Registry, asked: Aggregated) -> Value {
    let core = groups(registry).into_iter().filter(|group| group.name.is_empty());
    aggregated(core, asked)
}

/// What `/apis` answers to a client that understands aggregated discovery.
pub fn aggregated_groups(registry: &Registry, asked: Aggregated) -> Value {
    let named = groups(registry).into_iter().filter(|group| !group.name.is_empty());
    aggregated(named, asked)
}

/// What `/api` answers otherwise; `address` is where the server is reached, as host and port.
pub fn api_versions(registry: &Registry, address: &str) -> Value {
    let core = groups(registry).into_iter().find(|group| group.name.is_empty());
    let versions: Vec<&str> = core.iter().flat_map(Group::version_names).collect();
    json!({
        "kind": "APIVersions",
        "versions": versions,
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    })
}

/// What `/apis` answers otherwise.
pub fn api_group_list(registry: &Registry) -> Value {
    let named: Vec<Value> = groups(registry)
        .iter()
        .filter(|group| !group.name.is_empty())
        .map(|group| Value::Object(group.legacy()))
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": named})
}

/// What `/apis/{group}` answers.
pub fn api_group(registry: &Registry, name: &str) -> Option<Value> {
    let group = groups(registry).into_iter().find(|g| g.name == name && !name.is_empty())?;
    let mut document = group.legacy();
    document.insert("kind".to_owned(), "APIGroup".into());
    document.insert("apiVersion".to_owned(), "v1".into());
    Some(Value::Object(document))
}

/// What `/api/{version}` and `/apis/{group}/{version}` answer; `stored` is the resource in whose
/// version the objects of a table are stored, if they are.
pub fn api_resource_list<'a>(
    registry: &Registry,
    group: &str,
    version: &str,
    stored: impl Fn(&str) -> Option<&'a Resource>,
) -> Option<Value> {
    let served: Vec<&Resource> = registry
        .iter()
        .map(AsRef::as_ref)
        .filter(|resource| resource.group == group && resource.version == version)
        .collect();
    let first = served.first()?;
    let mut document = Map::new();
    document.insert("kind".to_owned(), "APIResourceList".into());
    if !group.is_empty() {
        document.insert("apiVersion".to_owned(), "v1".into());
    }
    document.insert("groupVersion".to_owned(), first.api_version().into());
    // Clients are told nothing of a version that they cannot ask for.
    let is_served = |stored: &&Resource| {
        let is_same = |it: &Resource| it.table == stored.table && it.version == stored.version;
        registry.iter().any(|it| is_same(it))
    };
    let stored = |resource: &Resource| stored(&resource.table).filter(is_served);
    let resources: Vec<Value> =
        served.iter().flat_map(|resource| legacy(resource, stored(resource))).collect();
    document.insert("resources".to_owned(), resources.into());
    Some(Value::Object(document))
}

/// The versions of one group, the preferred one first.
struct Group<'a> {
    name: &'a str,
    versions: Vec<(&'a str, Vec<&'a Resource>)>,
}

fn groups(registry: &Registry) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for resource in registry.iter() {
        if groups.last().is_none_or(|group| group.name != resource.group) {
            groups.push(Group { name: &resource.group, versions: Vec::new() });
        }
        let versions = &mut groups.last_mut().expect("one was just pushed").versions;
        if versions.last().is_none_or(|(version, _)| *version != resource.version) {
            versions.push((&resource.version, Vec::new()));
        }
        versions.last_mut().expect("one was just pushed").1.push(resource);
    }
    for group in &mut groups {
        group.versions.sort_by_key(|(version, _)| Reverse(priority(version)));
    }
    groups.sort_by_key(|group| Reverse(group_priority(group.name)));
    groups
}

/// Where a group stands among the others, by the numbers that Kubernetes gives them. Clients take a
/// name that several groups have for the one of the first of them, so that `roles` are those of
/// RBAC whatever users define.
fn group_priority(group: &str) -> u32 {
    match group {
        "" => 18_000,
        "apps" => 17_800,
        "events.k8s.io" => 17_750,
        "authentication.k8s.io" => 17_700,
        "authorization.k8s.io" => 17_600,
        "autoscaling" => 17_500,
        "batch" => 17_400,
        "certificates.k8s.io" => 17_300,
        "networking.k8s.io" => 17_200,
        "policy" => 17_100,
        "rbac.authorization.k8s.io" => 17_000,
        "storage.k8s.io" => 16_800,
        "admissionregistration.k8s.io" | "apiextensions.k8s.io" => 16_700,
        "scheduling.k8s.io" => 16_600,
        "coordination.k8s.io" => 16_500,
        "node.k8s.io" => 16_300,
        "discovery.k8s.io" => 16_200,
        "metrics.k8s.io" => 100,
        _ => 1_000,
    }
}

/// Orders versions as Kubernetes does: stable before beta before alpha, then by number; anything
/// else comes last, by name.
pub(crate) fn priority(version: &str) -> (u8, u32, u32, Reverse<&str>) {
    let parse = || {
        let rest = version.strip_prefix('v')?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let major = rest[..digits].parse().ok()?;
        let (stage, minor) = match &rest[digits..] {
            "" => (3, 0),
            tail if tail.starts_with("beta") => (2, tail[4..].parse().ok()?),
            tail if tail.starts_with("alpha") => (1, tail[5..].parse().ok()?),
            _ => return None,
        };
        Some((stage, major, minor, Reverse("")))
    };
    parse().unwrap_or((0, 0, 0, Reverse(version)))
}

impl<'a> Group<'a> {
    fn version_names(&self) -> impl Iterator<Item = &'a str> {
        self.versions.iter().map(|(version, _)| *version)
    }

    /// An entry of `APIGroupList`.
    fn legacy(&self) -> Map<String, Value> {
        let versions: Vec<Value> = self
            .version_names()
            .map(|version| {
                json!({"groupVersion": format!("{}/{version}", self.name), "version": version})
            })
            .collect();
        let mut entry = Map::new();
        entry.insert("name".to_owned(), self.name.into());
        entry.insert("preferredVersion".to_owned(), versions[0].clone());
        entry.insert("versions".to_owned(), versions.into());
        entry
    }
}

fn aggregated<'a>(groups: impl Iterator<Item = Group<'a>>, asked: Aggregated) -> Value {
    let items: Vec<Value> = groups
        .map(|group| {
            let versions: Vec<Value> = group
                .versions
                .iter()
                .map(|(version, resources)| {
                    let resources: Vec<Value> =
                        resources.iter().map(|resource| aggregated_resource(resource)).collect();
                    json!({"version": version, "freshness": "Current", "resources": resources})
                })
                .collect();
            let metadata =
                if group.name.is_empty() { json!({}) } else { json!({"name": group.name}) };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": format!("apidiscovery.k8s.io/{}", asked.version()),
        "metadata": {},
        "items": items,
    })
}

fn aggregated_resource(resource: &Resource) -> Value {
    let scope = match resource.scope {
        Scope::Cluster => "Cluster",
        Scope::Namespaced => "Namespaced",
    };
    // An empty group and version mean those of the document.
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": {"group": "", "version": "", "kind": resource.kind},
        "scope": scope,
        "singularResource": resource.singular,
        "verbs": resource.strategy.listed_verbs().unwrap_or(resource.verbs),
    });
    add_names(&mut entry, resource);
    if !resource.subresources.is_empty() {
        let below: Vec<Value> = resource
            .subresources
            .iter()
            .map(|sub| {
                let (group, version, kind) = match &sub.kind {
                    Some((group, version, kind)) => (&**group, &**version, &**kind),
                    None => ("", "", &*resource.kind),
                };
                json!({
                    "subresource": sub.name,
                    "responseKind": {"group": group, "version": version, "kind": kind},
                    "verbs": sub.verbs,
                })
            })
            .collect();
        entry["subresources"] = below.into();
    }
    entry
}

/// A resource and what lies below it, as entries of an `APIResourceList`.
fn legacy(resource: &Resource, stored: Option<&Resource>) -> Vec<Value> {
    let mut entry = json!({
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.is_namespaced(),
        "kind": resource.kind,
        "verbs": resource.strategy.listed_verbs().unwrap_or(resource.verbs),
    });
    add_names(&mut entry, resource);
    // Reviews and figures are computed, not stored; nobody can watch those.
    if let Some(stored) = stored.filter(|_| resource.verbs.contains(&"watch")) {
        entry["storageVersionHash"] = storage_version_hash(stored).into();
    }
    let mut entries = vec![entry];
    for sub in &resource.subresources {
        let mut entry = json!({
            "name": format!("{}/{}", resource.plural, sub.name),
            "singularName": "",
            "namespaced": resource.is_namespaced(),
            "kind": sub.kind.as_ref().map_or(&resource.kind, |(_, _, kind)| kind),
            "verbs": sub.verbs,
        });
        if let Some((group, version, _)) = &sub.kind
            && (group, version) != (&resource.group, &resource.version)
        {
            entry["group"] = group.as_ref().into();
            entry["version"] = version.as_ref().into();
        }
        entries.push(entry);
    }
    entries
}

/// By what clients see that objects are stored in another version than before.
fn storage_version_hash(stored: &Resource) -> String {
    let named = format!("{}/{}/{}", stored.group, stored.version, stored.kind);
    STANDARD.encode(&Sha256::digest(named)[..8])
}

fn add_names(entry: &mut Value, resource: &Resource) {
    for (key, names) in
        [("shortNames", &resource.short_names), ("categories", &resource.categories)]
    {
        if !names.is_empty() {
            entry[key] = json!(names);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;

    #[test]
    fn stable_versions_come_before_beta_and_alpha() {
        let mut versions =
            ["v1alpha2", "v1", "v2beta1", "foo", "v1beta1", "bar", "v2", "v1alpha10"];
        versions.sort_by_key(|version| Reverse(priority(version)));
        assert_eq!(
            versions,
            ["v2", "v1", "v2beta1", "v1beta1", "v1alpha10", "v1alpha2", "bar", "foo"]
        );
    }

    /// Where all is stored as it is served.
    fn resource_list(registry: &Registry, group: &str, version: &str) -> Option<Value> {
        let stored =
            |table: &str| registry.iter().find(|it| &*it.table == table).map(AsRef::as_ref);
        api_resource_list(registry, group, version, stored)
    }

    #[test]
    fn groups_of_users_come_after_those_of_kubernetes() {
        let list = api_group_list(&builtin::registry());
        let names: Vec<&str> = list["groups"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|it| it["name"].as_str())
            .collect();
        let at = |name: &str| names.iter().position(|known| *known == name).expect(name);
        assert!(at("batch") < at("rbac.authorization.k8s.io"), "{names:?}");
        assert!(at("coordination.k8s.io") < at("jobset.x-k8s.io"), "{names:?}");
        assert!(at("jobset.x-k8s.io") < at("kueue.x-k8s.io"), "{names:?}");
    }

    #[test]
    fn both_generations_name_the_same_resources() {
        let registry = builtin::registry();
        let mut listed = Vec::new();
        for document in [
            aggregated_core(&registry, Aggregated::V2),
            aggregated_groups(&registry, Aggregated::V2),
        ] {
            for group in document["items"].as_array().unwrap() {
                let name = group["metadata"]["name"].as_str().unwrap_or_default();
                for version in group["versions"].as_array().unwrap() {
                    let list = resource_list(&registry, name, version["version"].as_str().unwrap());
                    let legacy: Vec<Value> = list.unwrap()["resources"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .map(|entry| entry["name"].clone())
                        .collect();
                    for resource in version["resources"].as_array().unwrap() {
                        assert!(legacy.contains(&resource["resource"]), "{resource}");
                        listed.push(resource["resource"].clone());
                    }
                }
            }
        }
        assert_eq!(listed.len(), registry.iter().count());
    }

    #[test]
    fn nothing_is_told_of_a_stored_version_that_is_not_served() {
        let registry = builtin::registry();
        let jobs = registry.iter().find(|it| it.kind == "Job").unwrap();
        let other = Resource { version: "v7".into(), ..Resource::clone(jobs) };
        let hash = |stored: &Resource| {
            let list = api_resource_list(&registry, "batch", "v1", |table| {
                (table == &*jobs.table).then_some(stored)
            });
            list.unwrap()["resources"][2].get("storageVersionHash").cloned()
        };
        assert!(hash(jobs).is_some());
        assert_eq!(hash(&other), None);
    }

    #[test]
    fn a_resource_looks_as_kubernetes_publishes_it() {
        let registry = builtin::registry();
        let jobs = json!({
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "batch/v1",
            "resources": [
                {"name": "cronjobs", "singularName": "cronjob", "namespaced": true,
                 "kind": "CronJob", "shortNames": ["cj"], "categories": ["all"],
                 "storageVersionHash": "sd5LIXh4Fjs=",
                 "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update",
                           "watch"]},
                {"name": "cronjobs/status", "singularName": "", "namespaced": true,
                 "kind": "CronJob", "verbs": ["get", "patch", "update"]},
                {"name": "jobs", "singularName": "job", "namespaced": true, "kind": "Job",
                 "categories": ["all"], "storageVersionHash": "mudhfqk/qZY=",
                 "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update",
                           "watch"]},
                {"name": "jobs/status", "singularName": "", "namespaced": true, "kind": "Job",
                 "verbs": ["get", "patch", "update"]},
            ],
        });
        assert_eq!(resource_list(&registry, "batch", "v1"), Some(jobs));
        let batch = json!({
            "kind": "APIGroup", "apiVersion": "v1", "name": "batch",
            "preferredVersion": {"groupVersion": "batch/v1", "version": "v1"},
            "versions": [{"groupVersion": "batch/v1", "version": "v1"}],
        });
        assert_eq!(api_group(&registry, "batch"), Some(batch));
        assert_eq!(api_group(&registry, "nobody"), None);
        assert_eq!(resource_list(&registry, "batch", "v7"), None);
        let leases = json!({
            "resource": "leases", "singularResource": "lease", "scope": "Namespaced",
            "responseKind": {"group": "", "version": "", "kind": "Lease"},
            "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update",
                      "watch"],
        });
        let groups = aggregated_groups(&registry, Aggregated::V2);
        let items = groups["items"].as_array().unwrap();
        let group = items.iter().find(|g| g["metadata"]["name"] == "coordination.k8s.io").unwrap();
        assert_eq!(group["versions"][0]["resources"][0], leases);
    }

    #[test]
    fn subresources_of_another_kind_name_its_group() {
        let list = resource_list(&builtin::registry(), "", "v1").unwrap();
        let resources = list["resources"].as_array().unwrap();
        let eviction = resources.iter().find(|r| r["name"] == "pods/eviction").unwrap();
        assert_eq!((&eviction["group"], &eviction["version"]), (&json!("policy"), &json!("v1")));
        let binding = resources.iter().find(|r| r["name"] == "pods/binding").unwrap();
        assert_eq!(binding.get("group"), None);
        assert_eq!(list.get("apiVersion"), None);
    }
}
