//! The volume behind a claim: one folder for all pods that use it, which stays when they go.

use std::path::PathBuf;

use k8s_openapi::api::core::v1::Pod;

use super::{make_dir, ownership};
use crate::node::{dirs::NodeDirs, sources::Sources};

/// The folder of a claim, which must be bound.
pub(super) fn folder(
    pod: &Pod,
    name: &str,
    sources: &Sources,
    dirs: &NodeDirs,
) -> Result<PathBuf, String> {
    let Some(claim) = sources.claims.get(name) else {
        return Err(format!("persistentvolumeclaim \"{name}\" not found"));
    };
    if claim.metadata.deletion_timestamp.is_some() {
        return Err(format!("persistentvolumeclaim \"{name}\" is being deleted"));
    }
    let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
    let uid = claim.metadata.uid.as_deref().unwrap_or_default();
    if phase != Some("Bound") || uid.is_empty() {
        return Err(format!("persistentvolumeclaim \"{name}\" is not bound"));
    }
    let dir = dirs.claims().join(uid);
    make_dir(&dir, 0o777)?;
    if let Some(group) = ownership::wanted(pod) {
        ownership::give(&dir, group, ownership::WRITE)
            .map_err(|error| format!("cannot give {} to its group: {error}", dir.display()))?;
    }
    Ok(dir)
}
