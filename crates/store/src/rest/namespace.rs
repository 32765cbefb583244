//! What the state of a namespace allows.

use std::sync::Arc;

use lockstep_api::{Resource, Status, json, status::Cause};

use super::{Plan, Scene, metadata};
use crate::{
    change::{Check, Expect, Write},
    object::Object,
};

/// Namespaces that may not be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Whether something may be created in the namespace of the request. The answer is what must still
/// be true when it goes in.
pub(super) fn admit_create(scene: &Scene<'_>, name: &str) -> Result<Option<Check>, Status> {
    let namespaces = scene.catalog.registry().get("", "v1", "namespaces");
    let Some(namespaces) = namespaces.filter(|_| scene.resource.is_namespaced()) else {
        return Ok(None);
    };
    let Some(namespace) = scene.view.get(&namespaces.table, scene.namespace) else {
        return Err(Status::not_found(namespaces, scene.namespace));
    };
    if namespace.meta.is_deleting() {
        return Err(terminating(scene, name));
    }
    Ok(Some(Check::Object {
        table: Arc::clone(&namespaces.table),
        key: scene.namespace.into(),
        expect: Expect::Revision(namespace.revision()),
    }))
}

fn terminating(scene: &Scene<'_>, name: &str) -> Status {
    let namespace = scene.namespace;
    let why = format!(
        "unable to create new content in namespace {namespace} because it is being terminated"
    );
    let mut status = Status::forbidden(scene.resource, name, &why);
    if let Some(details) = &mut status.details {
        details.causes.push(Cause {
            reason: "NamespaceTerminating".to_owned(),
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".to_owned(),
        });
    }
    status
}

/// Whether an object of this kind and name may be deleted at all.
pub(super) fn admit_delete(scene: &Scene<'_>, name: &str) -> Result<(), Status> {
    if is_namespace(scene.resource) && IMMORTAL.contains(&name) {
        return Err(Status::forbidden(scene.resource, name, "this namespace may not be deleted"));
    }
    Ok(())
}

/// Whether objects of this kind are namespaces.
pub(super) fn is_namespace(resource: &Resource) -> bool {
    resource.group.is_empty() && resource.plural == "namespaces"
}

/// What the deletion of a namespace comes to while the namespace controller has not let go of it:
/// the first request marks it, later ones change nothing.
pub(super) fn begin_deletion(scene: &Scene<'_>, old: &Arc<Object>) -> Option<Plan> {
    if !is_namespace(scene.resource) {
        return None;
    }
    let mut object = old.json();
    if json::list(&object, &["spec", "finalizers"]).is_empty() {
        return None;
    }
    if old.meta.is_deleting() {
        return Some(Plan::unchanged(old));
    }
    let meta = metadata::metadata(&mut object);
    metadata::mark_deleting(meta, scene.context.now, 0);
    // It has no grace at all, not even one of no seconds.
    meta.remove("deletionGracePeriodSeconds");
    json::object_mut(&mut object, "status").insert("phase".to_owned(), "Terminating".into());
    let write = Write::Put(scene.draft(object, old.managed()));
    Some(Plan::of(scene.op(&old.meta.name, Expect::Revision(old.revision()), write)))
}
