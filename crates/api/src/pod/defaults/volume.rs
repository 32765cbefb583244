//! What is filled in for a volume.

use serde_json::{Value, json};

use super::{
    super::{object_mut, objects_mut},
    canonical_quantity, container, resource_list, set_default_text,
};
use crate::{json::set_default, strategy::Json};

/// Readable by all, writable by the owner.
const FILE_MODE: i32 = 0o644;

/// Fills in one volume.
pub(super) fn fill(volume: &mut Json) {
    let has_source = volume.iter().any(|(key, value)| key != "name" && !value.is_null());
    if !has_source {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
    for key in ["configMap", "downwardAPI", "projected", "secret"] {
        if let Some(source) = object_mut(volume, key) {
            set_default(source, "defaultMode", FILE_MODE);
        }
    }
    if let Some(downward) = object_mut(volume, "downwardAPI") {
        fill_downward(downward);
    }
    for source in
        object_mut(volume, "projected").into_iter().flat_map(|p| objects_mut(p, "sources"))
    {
        fill_projection(source);
    }
    if let Some(directory) = object_mut(volume, "emptyDir") {
        canonical_quantity(directory, "sizeLimit");
    }
    if let Some(path) = object_mut(volume, "hostPath") {
        set_default(path, "type", "");
    }
    if let Some(image) = object_mut(volume, "image") {
        let policy = container::pull_policy(image.get("reference"));
        set_default_text(image, "pullPolicy", policy);
    }
    if let Some(template) =
        object_mut(volume, "ephemeral").and_then(|e| object_mut(e, "volumeClaimTemplate"))
    {
        // The spec is no pointer upstream, so it is always there.
        set_default(template, "spec", json!({}));
        object_mut(template, "spec").into_iter().for_each(fill_claim);
    }
    fill_remote(volume);
}

fn fill_downward(source: &mut Json) {
    for item in objects_mut(source, "items") {
        container::fill_env_source(item);
    }
}

fn fill_projection(source: &mut Json) {
    if let Some(downward) = object_mut(source, "downwardAPI") {
        fill_downward(downward);
    }
    if let Some(token) = object_mut(source, "serviceAccountToken") {
        set_default(token, "expirationSeconds", 3600);
    }
}

fn fill_claim(spec: &mut Json) {
    set_default(spec, "volumeMode", "Filesystem");
    set_default(spec, "resources", json!({}));
    if let Some(resources) = object_mut(spec, "resources") {
        resource_list(resources, "limits");
        resource_list(resources, "requests");
    }
}

/// Storage that is never mounted here is filled in all the same: templates are served back.
fn fill_remote(volume: &mut Json) {
    if let Some(disk) = object_mut(volume, "azureDisk") {
        set_default(disk, "cachingMode", "ReadWrite");
        set_default(disk, "fsType", "ext4");
        set_default(disk, "readOnly", Value::Bool(false));
        set_default(disk, "kind", "Shared");
    }
    let texts: [(&str, &[(&str, &str)]); 3] = [
        ("iscsi", &[("iscsiInterface", "default")]),
        ("rbd", &[("pool", "rbd"), ("user", "admin"), ("keyring", "/etc/ceph/keyring")]),
        ("scaleIO", &[("storageMode", "ThinProvisioned"), ("fsType", "xfs")]),
    ];
    for (source, fields) in texts {
        if let Some(source) = object_mut(volume, source) {
            for (key, value) in fields {
                set_default_text(source, key, value);
            }
        }
    }
}
