//! What writes are charged to the ResourceQuotas of their namespace.

use std::sync::Arc;

use lockstep_api::{
    Resource, Status, amounts, json,
    quota::{Counted, Quota, Request, charge},
    strategy::Json,
};

use super::{Scene, update};
use crate::{change::Op, object::Object};

/// Who owns what a write was charged: upstream's API server does it.
const MANAGER: &str = "kube-apiserver";

/// Charges a write of `object`, through the subresource `sub` or as a whole. The ops belong into
/// the very change of the write: they stand for the versions of the quotas it was allowed by, so
/// that two writers cannot both have the last there is.
///
/// # Errors
/// Why a quota does not allow it.
pub(super) fn charges(
    scene: &Scene<'_>,
    sub: Option<&str>,
    object: &Json,
    old: Option<&Json>,
    name: &str,
) -> Result<Vec<Op>, Status> {
    let counted = Counted::of(&scene.resource.group, &scene.resource.plural);
    let Some(counted) = counted.filter(|counted| counted.may_grow(sub, object, old)) else {
        return Ok(Vec::new());
    };
    let Some((kind, found)) = quotas(scene) else { return Ok(Vec::new()) };
    let read: Vec<Quota> = found.iter().map(|quota| Quota::read(&quota.json())).collect();
    let is_status = sub == Some("status");
    let request = Request { counted: &counted, object, old, is_status, now: scene.context.now };
    let charges =
        charge(&read, &request).map_err(|why| Status::forbidden(scene.resource, name, &why))?;
    let scene = Scene { resource: kind, manager: scene.manager.and(Some(MANAGER)), ..*scene };
    let mut ops = Vec::new();
    for charge in charges {
        let quota = found[charge.at];
        let mut object = scene.shown(quota);
        let used = amounts::written(&charge.used);
        json::object_mut(&mut object, "status").insert("used".to_owned(), used);
        ops.extend(update(&scene, Some("status"), &quota.meta.name, object)?.change.ops);
    }
    Ok(ops)
}

/// The kind of quotas and those of the namespace, if it has any.
fn quotas<'a>(scene: &Scene<'a>) -> Option<(&'a Arc<Resource>, Vec<&'a Arc<Object>>)> {
    if scene.namespace.is_empty() {
        return None;
    }
    let kind = scene.catalog.registry().get("", "v1", "resourcequotas")?;
    let found = scene.view.range(&kind.table, Some(scene.namespace), None);
    let found: Vec<_> = found.map(|(_, quota)| quota).collect();
    (!found.is_empty()).then_some((kind, found))
}

#[cfg(test)]
mod tests;
