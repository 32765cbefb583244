//! DELETE: the end of an object, at once or when all who hold on to it have let go.

use std::sync::Arc;

use jiff::Timestamp;
use lockstep_api::{
    Resource, Status,
    meta::{FINALIZER_FOREGROUND, FINALIZER_ORPHAN},
    strategy::{Json, Propagation},
};
use serde_json::Value;

use super::{Plan, Scene, definition, metadata, namespace, not_found};
use crate::{
    change::{Expect, Write},
    object::Object,
};

/// What a delete request asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// Seconds of grace; the kind decides when absent.
    pub grace_period_seconds: Option<i64>,
    /// What happens to the dependents.
    pub propagation: Option<Propagation>,
    /// The uid the object must have.
    pub uid: Option<String>,
    /// The resourceVersion the object must have.
    pub resource_version: Option<String>,
}

/// How far a deletion gets at once.
enum Stage {
    /// Grace was given before and still runs.
    Pending,
    /// Grace begins, or is cut short, and these are the seconds left.
    Graceful(i64),
    /// No grace.
    Now,
}

/// Plans the deletion of the object `name`. When the answer is an op that deletes, the object is
/// gone; otherwise it goes later.
pub fn delete(scene: &Scene<'_>, name: &str, options: &DeleteOptions) -> Result<Plan, Status> {
    namespace::admit_delete(scene, name)?;
    let old = scene.find(name).ok_or_else(|| not_found(scene, name))?;
    check_preconditions(scene.resource, old, options)?;
    if let Some(plan) = namespace::begin_deletion(scene, old) {
        return Ok(plan);
    }
    if let Some(plan) = definition::begin_deletion(scene, old)? {
        return Ok(plan);
    }
    let mut plan = delete_as(scene, old, scene.shown(old), options);
    if options.propagation.is_none() {
        let warning = scene.strategy().warning_on_default_propagation();
        plan.warnings.extend(warning.map(str::to_owned));
    }
    Ok(plan)
}

/// Plans the deletion of `old`, which `object` is a newer version of.
pub(super) fn delete_as(
    scene: &Scene<'_>,
    old: &Arc<Object>,
    mut object: Json,
    options: &DeleteOptions,
) -> Plan {
    match stage(scene, &mut object, old, options) {
        Stage::Pending => replace(scene, old, object),
        Stage::Graceful(grace) => finish(scene, old, object, grace, options),
        Stage::Now => {
            mark_without_grace(metadata::metadata(&mut object), old, scene.context.now);
            finish(scene, old, object, 0, options)
        }
    }
}

fn finish(
    scene: &Scene<'_>,
    old: &Arc<Object>,
    mut object: Json,
    grace: i64,
    options: &DeleteOptions,
) -> Plan {
    let finalizers = finalizers_for(scene, old, options);
    let meta = metadata::metadata(&mut object);
    if finalizers.is_empty() {
        meta.remove("finalizers");
    } else {
        let listed = finalizers.iter().map(|name| Value::from(name.as_str())).collect();
        meta.insert("finalizers".to_owned(), Value::Array(listed));
    }
    if finalizers.is_empty() && grace == 0 {
        // Kinds without grace go as they are; the others are seen to have been marked.
        let is_marked = scene.strategy().grace_period(&object, None).is_some();
        let last = is_marked.then(|| scene.draft(object, old.managed()));
        let expect = Expect::Revision(old.revision());
        return Plan::of(scene.op(&old.meta.name, expect, Write::Delete(last)));
    }
    replace(scene, old, object)
}

/// Writes `object` unless it is what is there already.
fn replace(scene: &Scene<'_>, old: &Arc<Object>, object: Json) -> Plan {
    let draft = scene.draft(object, old.managed());
    if draft.is_same_as(old) {
        return Plan::unchanged(old);
    }
    let expect = Expect::Revision(old.revision());
    Plan::of(scene.op(&old.meta.name, expect, Write::Put(draft)))
}

/// Marks an object that only finalizers hold. A time set before is kept unless it lies ahead.
fn mark_without_grace(meta: &mut Json, old: &Object, now: Timestamp) {
    let earlier = old.meta.deletion.filter(|at| *at <= now);
    metadata::mark_deleting(meta, earlier.unwrap_or(now), 0);
}

/// Marks `object` as far as grace goes.
fn stage(scene: &Scene<'_>, object: &mut Json, old: &Object, options: &DeleteOptions) -> Stage {
    let now = scene.context.now;
    // A negative grace is taken for the shortest there is.
    let requested = options.grace_period_seconds.map(|seconds| match seconds {
        ..0 => 1,
        seconds => seconds.min(metadata::GRACE_MAX),
    });
    let Some(decided) = scene.strategy().grace_period(object, requested) else {
        return Stage::Now;
    };
    let decided = decided.min(metadata::GRACE_MAX);
    let Some(deletion) = old.meta.deletion else {
        metadata::mark_deleting(metadata::metadata(object), now, decided);
        return Stage::Graceful(decided);
    };
    // Being deleted already: the grace may only get shorter.
    let given = match old.meta.deletion_grace_seconds.unwrap_or_default() {
        0 => return Stage::Now,
        given => given.max(1),
    };
    let Some(requested) = requested.filter(|requested| *requested < given) else {
        return Stage::Pending;
    };
    let until = metadata::shifted(metadata::shifted(deletion, -given), requested);
    // All of the grace asked for may have gone by: one second is the least that is still grace.
    let (until, grace) = match (until < now, requested) {
        (true, 0) => (now, 0),
        (true, _) => (now, 1),
        (false, _) => (until, requested),
    };
    let meta = metadata::metadata(object);
    meta.insert("deletionTimestamp".to_owned(), metadata::seconds(until).into());
    meta.insert("deletionGracePeriodSeconds".to_owned(), grace.into());
    Stage::Graceful(grace)
}

/// The finalizers the object has from now on: its own, and that of the garbage collector when it
/// has work to do first. The request decides, else the object's finalizers, else the kind.
fn finalizers_for(scene: &Scene<'_>, old: &Object, options: &DeleteOptions) -> Vec<String> {
    let has = |name: &str| old.meta.finalizers.iter().any(|finalizer| &**finalizer == name);
    let propagation = match options.propagation {
        Some(asked) => asked,
        None if has(FINALIZER_ORPHAN) => Propagation::Orphan,
        None if has(FINALIZER_FOREGROUND) => Propagation::Foreground,
        None => scene.strategy().default_propagation(),
    };
    let wanted = match propagation {
        Propagation::Background => None,
        Propagation::Foreground => Some(FINALIZER_FOREGROUND),
        Propagation::Orphan => Some(FINALIZER_ORPHAN),
    };
    let is_collectors = |name: &str| name == FINALIZER_FOREGROUND || name == FINALIZER_ORPHAN;
    // One that is there already stays where it is, so that asking twice changes nothing.
    let kept = old.meta.finalizers.iter().map(|name| &**name);
    let mut names: Vec<String> = kept
        .filter(|name| !is_collectors(name) || Some(*name) == wanted)
        .map(ToOwned::to_owned)
        .collect();
    if let Some(wanted) = wanted.filter(|wanted| !names.iter().any(|name| name == wanted)) {
        names.push(wanted.to_owned());
    }
    names
}

pub(super) fn check_preconditions(
    resource: &Resource,
    old: &Object,
    options: &DeleteOptions,
) -> Result<(), Status> {
    let conflict = |why: String| {
        let name = &*old.meta.name;
        let mut status = Status::conflict(resource, name, &why);
        // Here upstream names the kind, not the resource.
        status.message =
            format!("Operation cannot be fulfilled on {} {name:?}: {why}", resource.group_kind());
        if let Some(details) = &mut status.details {
            details.kind = resource.kind.to_string();
        }
        status
    };
    if let Some(uid) = options.uid.as_deref().filter(|uid| *uid != &*old.meta.uid) {
        return Err(conflict(format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object \
             might have been deleted and then recreated",
            old.meta.uid
        )));
    }
    let current = old.revision().to_string();
    if let Some(asked) = options.resource_version.as_deref().filter(|asked| *asked != current) {
        return Err(conflict(format!(
            "the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion \
             in record ({current}). The object might have been modified"
        )));
    }
    Ok(())
}
