//! What the server serves, and which of it a word means.

use anyhow::Result;

use crate::{cluster::Cluster, exit::usage, refusal::Refusal, suggest};

/// One resource, at the version the server prefers or at the one asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resource {
    /// API group, empty for core.
    pub(crate) group: String,
    /// API version.
    pub(crate) version: String,
    /// Kind.
    pub(crate) kind: String,
    /// Plural name, as in paths.
    pub(crate) plural: String,
    singular: String,
    short_names: Vec<String>,
    categories: Vec<String>,
    /// Whether objects live in a namespace.
    pub(crate) is_namespaced: bool,
    verbs: Vec<String>,
}

impl Resource {
    /// `v1` or `batch/v1`.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// How an object is called in messages and by `-o name`: `pod`, `job.batch`.
    pub(crate) fn prefix(&self) -> String {
        let singular = self.kind.to_lowercase();
        if self.group.is_empty() { singular } else { format!("{singular}.{}", self.group) }
    }

    /// The path of the collection in `namespace`; `None` for all namespaces.
    pub(crate) fn collection(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() {
            format!("/api/{}", self.version)
        } else {
            format!("/apis/{}/{}", self.group, self.version)
        };
        match namespace {
            Some(namespace) if self.is_namespaced => {
                format!("{root}/namespaces/{}/{}", escape(namespace), self.plural)
            }
            _ => format!("{root}/{}", self.plural),
        }
    }

    /// The path of one object.
    pub(crate) fn object(&self, namespace: &str, name: &str) -> String {
        format!("{}/{}", self.collection(Some(namespace)), escape(name))
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let names = [self.plural.as_str(), self.singular.as_str()];
        names.into_iter().chain(self.short_names.iter().map(String::as_str))
    }

    fn can(&self, verb: &str) -> bool {
        self.verbs.iter().any(|known| known == verb)
    }

    fn is_called(&self, word: &str) -> bool {
        self.plural == word
            || self.singular == word
            || self.kind.to_lowercase() == word
            || self.short_names.iter().any(|short| short == word)
    }
}

/// All resources, preferred versions and core first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Catalog {
    resources: Vec<Resource>,
}

impl Catalog {
    /// Asks the server.
    pub(crate) async fn read(cluster: &Cluster) -> Result<Self, Refusal> {
        let client = cluster.client();
        let core = client.list_core_api_versions_aggregated().await.map_err(Refusal::from)?;
        let groups = client.list_api_groups_aggregated().await.map_err(Refusal::from)?;
        let mut resources = Vec::new();
        for group in core.items.into_iter().chain(groups.items) {
            let name = group.metadata.and_then(|meta| meta.name).unwrap_or_default();
            for version in group.versions {
                let known = version.version.unwrap_or_default();
                for found in version.resources {
                    let Some(plural) = found.resource else { continue };
                    let kind = found.response_kind.and_then(|kind| kind.kind).unwrap_or_default();
                    resources.push(Resource {
                        group: name.clone(),
                        version: known.clone(),
                        singular: found
                            .singular_resource
                            .filter(|singular| !singular.is_empty())
                            .unwrap_or_else(|| kind.to_lowercase()),
                        kind,
                        plural,
                        short_names: found.short_names,
                        categories: found.categories,
                        is_namespaced: found.scope.as_deref() == Some("Namespaced"),
                        verbs: found.verbs,
                    });
                }
            }
        }
        Ok(Self { resources })
    }

    /// The resources a word of the command line means: `pods`, `po`, `jobs.batch`, `all`, `po,svc`.
    pub(crate) fn find(&self, words: &str) -> Result<Vec<&Resource>> {
        let mut found: Vec<&Resource> = Vec::new();
        for word in words.split(',') {
            let word = word.to_lowercase();
            let category: Vec<&Resource> = self
                .resources
                .iter()
                .filter(|r| r.categories.contains(&word) && r.can("list"))
                .collect();
            if category.is_empty() {
                found.push(self.one(&word)?);
            } else {
                found.extend(category);
            }
        }
        Ok(found)
    }

    /// The one resource a word means.
    pub(crate) fn one(&self, word: &str) -> Result<&Resource> {
        let lower = word.to_lowercase();
        let (name, rest) = lower.split_once('.').unwrap_or((&lower, ""));
        let (version, group) = match rest.split_once('.') {
            // `pods.v1.` and `jobs.v1.batch` name a version; `jobs.batch` and
            // `leases.coordination.k8s.io` do not.
            Some((first, group)) if is_version(first) => (first, group),
            _ if is_version(rest) => (rest, ""),
            _ => ("", rest),
        };
        let matching = self.resources.iter().find(|resource| {
            resource.is_called(name)
                && (rest.is_empty() || resource.group == group)
                && (version.is_empty() || resource.version == version)
        });
        match matching {
            Some(resource) => Ok(resource),
            None => {
                let known = self.resources.iter().flat_map(Resource::names);
                let hint = suggest::did_you_mean(name, known);
                let message = format!("error: the server doesn't have a resource type {word:?}");
                Err(usage(message + &hint))
            }
        }
    }

    /// What may have been meant by a kind that is not served.
    pub(crate) fn near_kind(&self, api_version: &str, kind: &str) -> String {
        match self.resources.iter().find(|resource| resource.kind == kind) {
            Some(known) if known.api_version() != api_version => {
                format!("; it is served in {:?}", known.api_version())
            }
            _ => suggest::did_you_mean(kind, self.resources.iter().map(|r| r.kind.as_str())),
        }
    }

    /// The resource of an object.
    pub(crate) fn of_kind(&self, api_version: &str, kind: &str) -> Option<&Resource> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.resources.iter().find(|r| r.group == group && r.version == version && r.kind == kind)
    }
}

fn is_version(word: &str) -> bool {
    let rest = word.strip_prefix('v').unwrap_or_default();
    rest.starts_with(|c: char| c.is_ascii_digit())
}

/// A path segment or query value, with everything that could end it escaped.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            const HEX: &[u8; 16] = b"0123456789ABCDEF";
            escaped.push('%');
            escaped.push(char::from(HEX[usize::from(byte >> 4)]));
            escaped.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
    escaped
}

/// A query string of the pairs that have a value.
pub(crate) fn query(pairs: &[(&str, Option<String>)]) -> String {
    let given: Vec<String> = pairs
        .iter()
        .filter_map(|(key, value)| value.as_ref().map(|value| format!("{key}={}", escape(value))))
        .collect();
    if given.is_empty() { String::new() } else { format!("?{}", given.join("&")) }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A resource as a server would list it.
    pub(crate) fn resource(group: &str, kind: &str, plural: &str, short: &[&str]) -> Resource {
        Resource {
            group: group.into(),
            version: "v1".into(),
            kind: kind.into(),
            plural: plural.into(),
            singular: kind.to_lowercase(),
            short_names: short.iter().map(|&s| s.into()).collect(),
            categories: if kind == "Node" { vec![] } else { vec!["all".into()] },
            is_namespaced: kind != "Node",
            verbs: vec!["get".into(), "list".into()],
        }
    }

    fn catalog() -> Catalog {
        Catalog {
            resources: vec![
                resource("", "Event", "events", &["ev"]),
                resource("", "Node", "nodes", &["no"]),
                resource("", "Pod", "pods", &["po"]),
                resource("batch", "Job", "jobs", &[]),
                resource("events.k8s.io", "Event", "events", &["ev"]),
            ],
        }
    }

    #[test]
    fn words_mean_what_they_mean_to_kubectl() {
        for (word, want) in [
            ("pods", Some("/api/v1/namespaces/d/pods")),
            ("pod", Some("/api/v1/namespaces/d/pods")),
            ("po", Some("/api/v1/namespaces/d/pods")),
            ("Pod", Some("/api/v1/namespaces/d/pods")),
            ("pods.v1.", Some("/api/v1/namespaces/d/pods")),
            ("no", Some("/api/v1/nodes")),
            ("jobs.batch", Some("/apis/batch/v1/namespaces/d/jobs")),
            ("jobs.v1.batch", Some("/apis/batch/v1/namespaces/d/jobs")),
            ("ev", Some("/api/v1/namespaces/d/events")),
            ("events.events.k8s.io", Some("/apis/events.k8s.io/v1/namespaces/d/events")),
            ("jobs.v2.batch", None),
            ("nope", None),
            ("", None),
        ] {
            let catalog = catalog();
            let found = catalog.one(word).map(|r| r.collection(Some("d"))).ok();
            assert_eq!(found.as_deref(), want, "{word:?}");
        }
    }

    #[test]
    fn a_category_and_a_comma_mean_several() {
        let catalog = catalog();
        let kinds = |word| -> Vec<String> {
            catalog.find(word).expect(word).iter().map(|r| r.kind.clone()).collect()
        };
        assert_eq!(kinds("all"), ["Event", "Pod", "Job", "Event"]);
        assert_eq!(kinds("po,no"), ["Pod", "Node"]);
    }

    #[test]
    fn what_could_end_a_path_or_a_query_is_escaped() {
        assert_eq!(escape("a/b?c=d&e f"), "a%2Fb%3Fc%3Dd%26e%20f");
        let pairs = [("labelSelector", Some("a in (x)".to_owned())), ("limit", None)];
        assert_eq!(query(&pairs), "?labelSelector=a%20in%20%28x%29");
        assert_eq!(query(&[("limit", None)]), "");
    }
}
