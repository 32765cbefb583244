//! Which resources there are and what they are called.

use std::{borrow::Cow, sync::Arc};

use crate::{schema, strategy::Strategy};

/// Text that is a literal for built-in kinds and owned for kinds defined at run time.
pub type Text = Cow<'static, str>;

/// Whether objects live in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One per cluster.
    Cluster,
    /// One per namespace.
    Namespaced,
}

/// Something below an object's path, such as `status` or `log`.
#[derive(Clone, Debug)]
pub struct Subresource {
    /// The last path segment.
    pub name: Text,
    /// The kind its requests carry when it is not the parent's: (group, version, kind).
    pub kind: Option<(Text, Text, Text)>,
    /// What clients may do, as discovery lists it.
    pub verbs: &'static [&'static str],
}

/// One resource at one version.
#[derive(Clone)]
pub struct Resource {
    /// API group, empty for core.
    pub group: Text,
    /// API version, such as `v1`.
    pub version: Text,
    /// Plural name, as in paths.
    pub plural: Text,
    /// Singular name, as discovery lists it.
    pub singular: Text,
    /// Kind.
    pub kind: Text,
    /// Short names, such as `po`.
    pub short_names: Vec<Text>,
    /// Categories, such as `all`.
    pub categories: Vec<Text>,
    /// Whether objects live in a namespace.
    pub scope: Scope,
    /// What clients may do, as discovery lists it. Empty for resources that exist only through
    /// their subresources.
    pub verbs: &'static [&'static str],
    /// What lies below an object's path.
    pub subresources: Vec<Subresource>,
    /// The store's table. Two resources that are views of one set of objects share it.
    pub table: Arc<str>,
    /// How objects of this kind are filled in, checked and shown.
    pub strategy: Arc<dyn Strategy>,
}

impl std::fmt::Debug for Resource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.api_version(), self.plural)
    }
}

impl Resource {
    /// `v1` or `batch/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// `pods` or `jobs.batch`.
    pub fn group_resource(&self) -> String {
        if self.group.is_empty() {
            self.plural.to_string()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// `Pod` or `Job.batch`.
    pub fn group_kind(&self) -> String {
        if self.group.is_empty() {
            self.kind.to_string()
        } else {
            format!("{}.{}", self.kind, self.group)
        }
    }

    /// The kind of lists: `PodList`, unless a definition has another name for it.
    pub fn list_kind(&self) -> String {
        self.strategy.list_kind().map_or_else(|| format!("{}List", self.kind), str::to_owned)
    }

    /// Whether objects live in a namespace.
    pub fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// Whether strategic merge patches are taken. Only built-in kinds say which of their lists have
    /// keys.
    pub fn takes_strategic_patches(&self) -> bool {
        let schema = schema::of(&self.group, &self.version, &self.kind);
        schema.is_some_and(|schema| schema.has_protobuf())
    }

    /// The subresource `name`, if there is one.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|sub| sub.name == name)
    }
}

/// All resources served, ordered by group, version and plural name.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    sorted: Vec<Arc<Resource>>,
}

impl Registry {
    /// Adds a resource, replacing one at the same path.
    pub fn insert(&mut self, resource: Resource) {
        let resource = Arc::new(resource);
        match self.position(&resource.group, &resource.version, &resource.plural) {
            Ok(at) => self.sorted[at] = resource,
            Err(at) => self.sorted.insert(at, resource),
        }
    }

    /// The resource at `/apis/{group}/{version}/{plural}`.
    pub fn get(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.position(group, version, plural).ok().map(|at| &self.sorted[at])
    }

    /// The resource of a kind.
    pub fn by_kind(&self, group: &str, version: &str, kind: &str) -> Option<&Arc<Resource>> {
        self.iter().find(|r| r.group == group && r.version == version && r.kind == kind)
    }

    /// Whether there is anything of a group.
    pub fn has_group(&self, group: &str) -> bool {
        self.iter().any(|resource| &*resource.group == group)
    }

    /// All resources, ordered by group, version and plural.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Resource>> {
        self.sorted.iter()
    }

    fn position(&self, group: &str, version: &str, plural: &str) -> Result<usize, usize> {
        self.sorted.binary_search_by(|r| {
            (&*r.group, &*r.version, &*r.plural).cmp(&(group, version, plural))
        })
    }
}
