//! The volumes of a pod: folders of this machine, filled before its containers start and kept up to
//! date while they run.

mod atomic;
mod claim;
mod host_path;
mod ownership;
mod payload;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use k8s_openapi::api::core::v1::{Container, EmptyDirVolumeSource, Pod, Volume, VolumeMount};

use self::payload::Payload;
use super::dirs::{MEMORY, NodeDirs};
use super::env::Environment;
use super::runtime::Mount;
use super::sources::Sources;

/// Why a volume cannot be used: the event is `FailedMount`, and trying again may help.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("MountVolume.SetUp failed for volume \"{volume}\" : {message}")]
pub struct MountError {
    /// The name of the volume.
    pub volume: String,
    /// What is wrong.
    pub message: String,
}

/// A volume that can be mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedVolume {
    /// Its name in the pod.
    pub name: String,
    /// Its content.
    pub path: PathBuf,
    /// Whether containers may never write to it.
    pub is_read_only: bool,
}

/// Makes the volumes of `pod`. Doing it again brings them up to date.
pub fn prepare(
    pod: &Pod,
    sources: &Sources,
    dirs: &NodeDirs,
) -> Result<Vec<PreparedVolume>, MountError> {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    volumes
        .iter()
        .map(|volume| {
            let failed = |message| MountError { volume: volume.name.clone(), message };
            prepare_one(pod, volume, sources, dirs).map_err(failed)
        })
        .collect()
}

/// Brings the volumes of a running pod up to date that show objects of the API. Returns whether
/// anything changed.
pub fn refresh(pod: &Pod, sources: &Sources, dirs: &NodeDirs) -> Result<bool, MountError> {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    let mut has_changed = false;
    for volume in volumes {
        let failed = |message| MountError { volume: volume.name.clone(), message };
        let payload = payload::of(pod, volume, sources).map_err(failed)?;
        if let Some(payload) = payload {
            has_changed |= write(pod, volume, &payload, dirs).map_err(failed)?;
        }
    }
    Ok(has_changed)
}

/// What `container` mounts where.
pub fn mounts(
    container: &Container,
    prepared: &[PreparedVolume],
    environment: &Environment,
    dirs: &NodeDirs,
) -> Result<Vec<Mount>, MountError> {
    let by_name: BTreeMap<_, _> =
        prepared.iter().map(|volume| (volume.name.as_str(), volume)).collect();
    let mounts = container.volume_mounts.iter().flatten();
    mounts
        .map(|mount| {
            let failed = |message| MountError { volume: mount.name.clone(), message };
            let volume = by_name
                .get(mount.name.as_str())
                .ok_or_else(|| failed(format!("the pod has no volume {:?}", mount.name)))?;
            Ok(Mount {
                volume: mount.name.clone(),
                source: source(volume, mount, environment, dirs.data()).map_err(failed)?,
                // Relative paths are relative to the root, as other runtimes have it.
                target: Path::new("/").join(&mount.mount_path),
                read_only: volume.is_read_only || mount.read_only == Some(true),
            })
        })
        .collect()
}

/// Removes all volumes of a pod.
pub fn remove(dirs: &NodeDirs, pod_uid: &str) {
    remove_memory(dirs, pod_uid);
    let dir = dirs.volumes(pod_uid);
    if dir.is_dir()
        && let Err(error) = fs::remove_dir_all(&dir)
    {
        tracing::warn!(path = %dir.display(), %error, "cannot remove volumes of a pod");
    }
}

/// Removes what a pod has in memory; its other volumes go with its folder.
pub fn remove_memory(dirs: &NodeDirs, pod_uid: &str) {
    let all = dirs.memory();
    let dir = all.join(pod_uid);
    if dir.is_dir() && is_own(&all) {
        let _ = fs::remove_dir_all(dir);
        // Stays while other pods have something in it.
        let _ = fs::remove_dir(all);
    }
}

/// Removes what all pods of a cluster have in memory.
pub fn remove_all_memory(dirs: &NodeDirs) {
    let all = dirs.memory();
    if is_own(&all) {
        let _ = fs::remove_dir_all(all);
    }
}

/// Whether a folder of a place that all users share is really ours: its name can be foreseen.
fn is_own(dir: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    fs::symlink_metadata(dir).is_ok_and(|meta| meta.is_dir() && meta.uid() == own)
}

fn prepare_one(
    pod: &Pod,
    volume: &Volume,
    sources: &Sources,
    dirs: &NodeDirs,
) -> Result<PreparedVolume, String> {
    let prepared =
        |path, is_read_only| PreparedVolume { name: volume.name.clone(), path, is_read_only };
    if let Some(payload) = payload::of(pod, volume, sources)? {
        write(pod, volume, &payload, dirs)?;
        return Ok(prepared(folder(pod, volume, dirs), true));
    }
    if let Some(empty) = &volume.empty_dir {
        return Ok(prepared(empty_dir(pod, volume, empty, dirs)?, false));
    }
    if let Some(wanted) = &volume.host_path {
        let path = host_path::check(Path::new(&wanted.path), wanted.type_.as_deref(), dirs.data())?;
        return Ok(prepared(path, false));
    }
    if let Some(source) = &volume.persistent_volume_claim {
        let path = claim::folder(pod, &source.claim_name, sources, dirs)?;
        return Ok(prepared(path, source.read_only == Some(true)));
    }
    if volume.ephemeral.is_some() {
        return Err(
            "ephemeral volumes are not supported by this node; use an emptyDir volume or a \
                    persistentVolumeClaim"
                .to_owned(),
        );
    }
    // Whatever else there is, its one field besides the name says what.
    let kind = serde_json::to_value(volume)
        .ok()
        .and_then(|value| value.as_object()?.keys().find(|key| *key != "name").cloned());
    match kind {
        Some(kind) => Err(format!("{kind} volumes are not supported by this node")),
        None => {
            Ok(prepared(empty_dir(pod, volume, &EmptyDirVolumeSource::default(), dirs)?, false))
        }
    }
}

fn empty_dir(
    pod: &Pod,
    volume: &Volume,
    empty: &EmptyDirVolumeSource,
    dirs: &NodeDirs,
) -> Result<PathBuf, String> {
    let in_memory = empty.medium.as_deref() == Some("Memory");
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let mut dir = folder(pod, volume, dirs);
    if in_memory && rustix::fs::access(MEMORY, rustix::fs::Access::WRITE_OK).is_ok() {
        let all = dirs.memory();
        make_dir(&all, 0o700)?;
        if is_own(&all) {
            let parent = all.join(uid);
            make_dir(&parent, 0o700)?;
            dir = parent.join(&volume.name);
        }
    }
    make_dir(&dir, 0o777)?;
    if let Some(group) = ownership::wanted(pod) {
        ownership::give(&dir, group, ownership::WRITE)
            .map_err(|error| format!("cannot give {} to its group: {error}", dir.display()))?;
    }
    Ok(dir)
}

fn write(pod: &Pod, volume: &Volume, payload: &Payload, dirs: &NodeDirs) -> Result<bool, String> {
    let dir = folder(pod, volume, dirs);
    make_dir(&dir, 0o755)?;
    let failed = |error: io::Error| format!("cannot write {}: {error}", dir.display());
    let Some(group) = ownership::wanted(pod) else {
        return atomic::write(&dir, payload).map_err(failed);
    };
    let mut payload = payload.clone();
    payload.values_mut().for_each(|file| file.mode |= ownership::READ);
    let has_changed = atomic::write(&dir, &payload).map_err(failed)?;
    if has_changed {
        ownership::give(&dir, group, ownership::READ).map_err(failed)?;
    }
    Ok(has_changed)
}

/// What a mount shows of its volume.
fn source(
    volume: &PreparedVolume,
    mount: &VolumeMount,
    environment: &Environment,
    data_dir: &Path,
) -> Result<PathBuf, String> {
    let expression = mount.sub_path_expr.as_deref().filter(|path| !path.is_empty());
    let sub_path = match expression {
        Some(expression) => {
            let path = environment.expand(expression);
            if path.contains("$(") {
                return Err(format!("subPathExpr {expression:?} refers to an unknown variable"));
            }
            path
        }
        None => mount.sub_path.clone().unwrap_or_default(),
    };
    if sub_path.is_empty() {
        return Ok(volume.path.clone());
    }
    let relative = Path::new(&sub_path);
    if !relative.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Err(format!("subPath {sub_path:?} must stay inside the volume"));
    }
    let path = volume.path.join(relative);
    let failed = |error: io::Error| format!("failed to create subPath {sub_path:?}: {error}");
    // The path could lead out through a link that a container made, so it is resolved before
    // anything is created, and again for what is handed on.
    let root = volume.path.canonicalize().map_err(failed)?;
    let mut nearest = path.as_path();
    while !nearest.exists() {
        nearest = nearest.parent().unwrap_or(&root);
    }
    let is_inside = |path: &Path| path.canonicalize().is_ok_and(|path| path.starts_with(&root));
    let is_ours = |path: &Path| {
        // A folder above the data directory must not lead into it; a volume in it may be used.
        let is_hidden = |path: PathBuf| self::is_inside(&path, data_dir);
        !self::is_inside(&root, data_dir) && path.canonicalize().is_ok_and(is_hidden)
    };
    if is_ours(nearest) {
        return Err(format!("subPath {sub_path:?} belongs to the cluster itself"));
    }
    if !is_inside(nearest) {
        return Err(format!("subPath {sub_path:?} leads out of the volume"));
    }
    if nearest != path {
        if volume.is_read_only {
            return Err(format!("subPath {sub_path:?} does not exist in the volume"));
        }
        fs::create_dir_all(&path).map_err(failed)?;
    }
    if !is_inside(&path) {
        return Err(format!("subPath {sub_path:?} leads out of the volume"));
    }
    path.canonicalize().map_err(failed)
}

/// Whether `path`, which is resolved, is in the data directory.
fn is_inside(path: &Path, data_dir: &Path) -> bool {
    let data_dir = data_dir.canonicalize().unwrap_or_else(|_| data_dir.to_owned());
    path.starts_with(data_dir)
}

fn folder(pod: &Pod, volume: &Volume, dirs: &NodeDirs) -> PathBuf {
    dirs.volumes(pod.metadata.uid.as_deref().unwrap_or_default()).join(&volume.name)
}

fn make_dir(dir: &Path, mode: u32) -> Result<(), String> {
    let make = || {
        if dir.is_dir() {
            return Ok(());
        }
        super::runtime::make_private_dir(dir.parent().unwrap_or(dir))?;
        fs::create_dir_all(dir)?;
        // Set afterwards, because the umask takes from what mkdir is given.
        fs::set_permissions(dir, fs::Permissions::from_mode(mode))
    };
    make().map_err(|error: io::Error| format!("cannot create {}: {error}", dir.display()))
}

#[cfg(test)]
mod tests;
