//! What one watcher sees of the history: events turned by its selectors into what it is told.

use std::sync::Arc;

use lockstep_api::Resource;

use crate::{
    Revision,
    log::Event,
    object::{self, Object, Selectors},
};

/// What a watcher is told about an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventType {
    /// It is there now, or matches now.
    Added,
    /// It is another version.
    Modified,
    /// It is gone, or matches no longer.
    Deleted,
}

impl EventType {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// One thing a watcher is told.
#[derive(Clone, Debug)]
pub struct Notice {
    /// What happened.
    pub kind: EventType,
    /// The object, at the revision of the event.
    pub object: Arc<Object>,
}

/// Which objects of a table a list or a watch is about.
#[derive(Clone, Debug)]
pub struct Filter {
    /// The resource, in the version the client reads.
    pub resource: Arc<Resource>,
    /// One namespace, or all.
    pub namespace: Option<Box<str>>,
    /// The selectors.
    pub selectors: Selectors,
}

impl Filter {
    /// Everything of a kind, in one namespace or in all.
    pub fn new(resource: &Arc<Resource>, namespace: Option<&str>, selectors: Selectors) -> Self {
        Self { resource: Arc::clone(resource), namespace: namespace.map(Into::into), selectors }
    }

    /// The key of the only object that can be selected, if there is just one.
    pub(crate) fn only_key(&self) -> Option<String> {
        let fields = &self.selectors.fields;
        let name = fields.exact("metadata.name")?;
        if !self.resource.is_namespaced() {
            return Some(name.to_owned());
        }
        let namespace = self.namespace.as_deref().or_else(|| fields.exact("metadata.namespace"))?;
        Some(object::key(namespace, name))
    }

    /// Whether an object is selected.
    pub fn selects(&self, object: &Object) -> bool {
        self.namespace.as_deref().is_none_or(|namespace| *namespace == *object.meta.namespace)
            && object.matches(&self.selectors, &self.resource)
    }

    /// What the watcher is told about `event`, if it concerns it at all.
    pub fn notice(&self, event: &Event) -> Option<Notice> {
        let matched = event.before.as_deref().is_some_and(|before| self.selects(before));
        let matches = !event.is_deletion && self.selects(&event.object);
        let kind = match (matched, matches) {
            (false, false) => return None,
            (false, true) => EventType::Added,
            (true, true) => EventType::Modified,
            (true, false) => EventType::Deleted,
        };
        let object = match &event.before {
            // It lives on but is out of sight: the watcher is told the last state it could see.
            Some(before) if kind == EventType::Deleted && !event.is_deletion => {
                Arc::new(before.at_revision(event.revision))
            }
            _ => Arc::clone(&event.object),
        };
        Some(Notice { kind, object })
    }
}

/// Where a watch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchStart {
    /// With the objects that are there now, as additions, then what happens.
    Now,
    /// With what happened after this revision.
    After(Revision),
}
