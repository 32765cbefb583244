//! Who owns the fields of an object after a write.

use std::{borrow::Cow, sync::Arc};

use lockstep_api::{Resource, decode, json, strategy::Json};
use serde_json::Value;

use super::Scene;
use crate::{
    fields::{Place, Set},
    managed::{Stated, Versions, Writer},
    object::Object,
};

const FIELD: &str = "managedFields";

/// Where the owners after a write come from.
pub(super) enum Owners {
    /// From what the write changes, and from what its request says of them.
    Stated(Stated),
    /// They were found already, for a configuration that was applied: that cannot do without.
    Applied(Vec<u8>),
    /// They were found already, for another write.
    Found(Vec<u8>),
}

impl Owners {
    /// What a request says of owners, which is taken out of its object.
    pub(super) fn stated(object: &mut Json) -> Self {
        let meta = object.get_mut("metadata").and_then(Value::as_object_mut);
        let value = meta.and_then(|meta| meta.remove(FIELD));
        Self::Stated(Stated::of(value.as_ref()))
    }

    /// The owners of a new object, which is defaulted and complete.
    pub(super) fn of_new(self, scene: &Scene<'_>, object: &Json) -> Vec<u8> {
        match (self, scene.manager) {
            (Self::Applied(managed) | Self::Found(managed), _) => managed,
            (Self::Stated(_), None) => Vec::new(),
            (Self::Stated(stated), Some(manager)) => write_as(scene, manager, None, |writer| {
                writer.created(&blank(scene.resource), object, stated)
            }),
        }
    }

    /// The owners of an object that had those in `known` and is written, through `sub` or as a
    /// whole. The new version is defaulted and complete.
    pub(super) fn of_changed<'a>(
        self,
        scene: &Scene<'_>,
        sub: Option<&str>,
        (live, new): (&Json, &Json),
        known: &'a [u8],
    ) -> Cow<'a, [u8]> {
        match (self, scene.manager) {
            (Self::Applied(managed) | Self::Found(managed), _) => Cow::Owned(managed),
            (Self::Stated(_), None) => Cow::Borrowed(known),
            (Self::Stated(stated), Some(manager)) => {
                // Only who writes the whole object can say who owns it.
                let stated = if sub.is_none() { stated } else { Stated::Nothing };
                write_as(scene, manager, sub, |writer| writer.updated(live, new, known, stated))
            }
        }
    }
}

/// Lets `then` find the owners after a write of `manager`.
pub(super) fn write_as<T>(
    scene: &Scene<'_>,
    manager: &str,
    sub: Option<&str>,
    then: impl FnOnce(&Writer<'_>) -> T,
) -> T {
    let api_version = scene.resource.api_version();
    let reset = Set::of(scene.strategy().reset_fields(sub));
    then(&Writer {
        manager,
        api_version: &api_version,
        subresource: sub.unwrap_or_default(),
        reset: &reset,
        now: scene.context.now,
        versions: scene,
    })
}

/// An object of a kind with nothing in it but what is always written.
pub(super) fn blank(resource: &Resource) -> Json {
    let mut blank = Json::new();
    decode::complete(resource, &mut blank);
    blank
}

/// An object as its kind shows it, with its owners.
pub(super) fn with_owners(object: &Json, old: &Object) -> Json {
    let mut object = object.clone();
    if let Ok(managed) = serde_json::from_slice::<Value>(old.managed()) {
        json::object_mut(&mut object, "metadata").insert(FIELD.to_owned(), managed);
    }
    object
}

impl Scene<'_> {
    /// The resource that serves the objects of the scene in another version.
    fn served_in(&self, api_version: &str) -> Option<&Arc<Resource>> {
        let is_meant = |resource: &&Arc<Resource>| {
            resource.table == self.resource.table && resource.api_version() == api_version
        };
        self.catalog.registry().iter().find(is_meant)
    }
}

impl Versions for Scene<'_> {
    fn place(&self, api_version: &str) -> Option<Place<'_>> {
        if self.resource.api_version() == api_version {
            return Some(Place::of(self.resource));
        }
        self.served_in(api_version).map(|resource| Place::of(resource))
    }

    fn convert(&self, object: &Json, from: &str, to: &str) -> Option<Json> {
        let (from, to) = (self.served_in(from)?, self.served_in(to)?);
        let stored = from.strategy.to_stored(object.clone());
        Some(to.strategy.from_stored(stored))
    }
}
