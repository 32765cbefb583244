//! Storage elsewhere. None of it is mounted here, but templates meant for other clusters are
//! checked as those would check them.

use k8s_openapi::api::core::v1::{
    AzureDiskVolumeSource, CSIVolumeSource, FCVolumeSource, FlexVolumeSource, FlockerVolumeSource,
    ISCSIVolumeSource, NFSVolumeSource, QuobyteVolumeSource, StorageOSVolumeSource, Volume,
};

use super::{
    super::rules::{dns_label, list, option, required, required_label, text},
    Source,
};
use crate::{
    field::{ErrorList, FieldError, Path},
    meta::invalid,
    names,
};

const UP_TO_255: &str = "must be between 0 and 255, inclusive";

/// All remote sources of a volume, with their places in upstream's order.
pub(super) fn sources(volume: &Volume, path: &Path) -> Vec<Source> {
    let at = |field: &str| path.child(field);
    let mut all = disks(volume, path);
    all.extend([
        (6, "nfs", volume.nfs.as_ref().map(|it| nfs(it, &at("nfs")))),
        (7, "iscsi", volume.iscsi.as_ref().map(|it| iscsi(it, &at("iscsi")))),
        (
            8,
            "glusterfs",
            volume.glusterfs.as_ref().map(|it| {
                let path = at("glusterfs");
                needed(&[("endpoints", &it.endpoints), ("path", &it.path)], &path)
            }),
        ),
        (9, "flocker", volume.flocker.as_ref().map(|it| flocker(it, &at("flocker")))),
        (13, "cephFS", volume.cephfs.as_ref().map(|it| monitors(&it.monitors, &at("cephfs")))),
        (14, "quobyte", volume.quobyte.as_ref().map(|it| quobyte(it, &at("quobyte")))),
        (16, "fc", volume.fc.as_ref().map(|it| fibre_channel(it, &at("fc")))),
        (17, "flexVolume", volume.flex_volume.as_ref().map(|it| flex(it, &at("flexVolume")))),
        (
            19,
            "azureFile",
            volume.azure_file.as_ref().map(|it| {
                let path = at("azureFile");
                needed(&[("secretName", &it.secret_name), ("shareName", &it.share_name)], &path)
            }),
        ),
        (23, "azureDisk", volume.azure_disk.as_ref().map(|it| azure_disk(it, &at("azureDisk")))),
        (24, "storageos", volume.storageos.as_ref().map(|it| storage_os(it, &at("storageos")))),
        (
            26,
            "scaleIO",
            volume.scale_io.as_ref().map(|it| {
                let name = text(&it.volume_name);
                let fields = [
                    ("gateway", it.gateway.as_str()),
                    ("system", &it.system),
                    ("volumeName", name),
                ];
                needed(&fields, &at("scaleIO"))
            }),
        ),
        (27, "csi", volume.csi.as_ref().map(|it| csi(it, &at("csi")))),
    ]);
    all
}

fn disks(volume: &Volume, path: &Path) -> Vec<Source> {
    let at = |field: &str| path.child(field);
    vec![
        (
            3,
            "gcePersistentDisk",
            volume
                .gce_persistent_disk
                .as_ref()
                .map(|it| disk(("pdName", &it.pd_name), it.partition, &at("persistentDisk"))),
        ),
        (
            4,
            "awsElasticBlockStore",
            volume.aws_elastic_block_store.as_ref().map(|it| {
                disk(("volumeID", &it.volume_id), it.partition, &at("awsElasticBlockStore"))
            }),
        ),
        (
            11,
            "rbd",
            volume.rbd.as_ref().map(|it| {
                let mut errors = monitors(&it.monitors, &at("rbd"));
                errors.extend(required(&it.image, &at("rbd").child("image")));
                errors
            }),
        ),
        (
            12,
            "cinder",
            volume.cinder.as_ref().map(|it| {
                let path = at("cinder");
                let mut errors = needed(&[("volumeID", &it.volume_id)], &path);
                if let Some(secret) = &it.secret_ref {
                    let path = path.child("secretRef").child("name");
                    errors.extend(required(&secret.name, &path));
                }
                errors
            }),
        ),
        (
            20,
            "vsphereVolume",
            volume
                .vsphere_volume
                .as_ref()
                .map(|it| needed(&[("volumePath", &it.volume_path)], &at("vsphereVolume"))),
        ),
        (
            21,
            "photonPersistentDisk",
            volume
                .photon_persistent_disk
                .as_ref()
                .map(|it| needed(&[("pdID", &it.pd_id)], &at("photonPersistentDisk"))),
        ),
        (
            22,
            "portworxVolume",
            volume
                .portworx_volume
                .as_ref()
                .map(|it| needed(&[("volumeID", &it.volume_id)], &at("portworxVolume"))),
        ),
    ]
}

fn needed(fields: &[(&str, &str)], path: &Path) -> ErrorList {
    fields.iter().filter_map(|(field, value)| required(value, &path.child(field))).collect()
}

fn monitors(monitors: &[String], path: &Path) -> ErrorList {
    let error = || FieldError::required(&path.child("monitors"), "");
    monitors.is_empty().then(error).into_iter().collect()
}

fn disk(id: (&str, &str), partition: Option<i32>, path: &Path) -> ErrorList {
    let mut errors = needed(&[id], path);
    if let Some(partition) = partition.filter(|partition| !(0..=255).contains(partition)) {
        let why = "must be between 1 and 255, inclusive";
        errors.push(FieldError::invalid(&path.child("partition"), partition, why));
    }
    errors
}

fn nfs(source: &NFSVolumeSource, path: &Path) -> ErrorList {
    let mut errors = needed(&[("server", &source.server), ("path", &source.path)], path);
    if !source.path.starts_with('/') {
        let why = "must be an absolute path";
        errors.push(FieldError::invalid(&path.child("path"), &source.path, why));
    }
    errors
}

fn iscsi(source: &ISCSIVolumeSource, path: &Path) -> ErrorList {
    let mut errors = needed(&[("targetPortal", &source.target_portal)], path);
    if source.iqn.is_empty() {
        errors.push(FieldError::required(&path.child("iqn"), ""));
    } else {
        errors.extend(initiator(&source.iqn, &path.child("iqn")));
    }
    if !(0..=255).contains(&source.lun) {
        errors.push(FieldError::invalid(&path.child("lun"), source.lun, UP_TO_255));
    }
    let wants_secret =
        source.chap_auth_discovery == Some(true) || source.chap_auth_session == Some(true);
    if wants_secret && source.secret_ref.is_none() {
        errors.push(FieldError::required(&path.child("secretRef"), ""));
    }
    if let Some(name) = &source.initiator_name {
        errors.extend(initiator(name, &path.child("initiatorname")));
    }
    errors
}

/// An initiator's name is made of the volume's and the portal's, and has a limit of its own.
pub(super) fn long_initiator(volume: &Volume, path: &Path) -> Option<FieldError> {
    let source = volume.iscsi.as_ref().filter(|it| it.initiator_name.is_some())?;
    (volume.name.len() + 1 + source.target_portal.len() > 64).then(|| {
        let why = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters \
                   if iscsi.initiatorName is specified.";
        FieldError::invalid(&path.child("name"), &volume.name, why)
    })
}

fn initiator(name: &str, path: &Path) -> Option<FieldError> {
    let is_id = |text: &str, length: usize| {
        text.len() == length + 1 && text[1..].bytes().all(|b| b.is_ascii_alphanumeric())
    };
    let is_sound = match name.get(..3) {
        Some("iqn") => is_qualified_initiator(name),
        Some("eui") => name.is_ascii() && is_id(&name[3..], 16),
        Some("naa") => name.is_ascii() && is_id(&name[3..], 32),
        _ => {
            let why = "must be valid format starting with iqn, eui, or naa";
            return Some(FieldError::invalid(path, name, why));
        }
    };
    (!is_sound).then(|| FieldError::invalid(path, name, "must be valid format"))
}

/// `iqn.2001-04.com.example:storage`.
fn is_qualified_initiator(name: &str) -> bool {
    let Some((authority, target)) = name.split_once(':') else { return false };
    let parts: Vec<&str> = authority.splitn(3, '.').collect();
    let [_, date, domain] = parts[..] else { return false };
    let is_date = date.len() == 7
        && date
            .bytes()
            .enumerate()
            .all(|(at, b)| if at == 4 { b == b'-' } else { b.is_ascii_digit() });
    let is_domain = !domain.is_empty()
        && domain.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.');
    is_date
        && is_domain
        && !target.is_empty()
        && !target.contains(|c: char| c.is_whitespace() || ",;*&$|".contains(c))
}

fn flocker(source: &FlockerVolumeSource, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let (name, uuid) = (text(&source.dataset_name), text(&source.dataset_uuid));
    if name.is_empty() && uuid.is_empty() {
        let why = "one of datasetName and datasetUUID is required";
        errors.push(FieldError::required(path, why));
    }
    if !name.is_empty() && !uuid.is_empty() {
        let why = "datasetName and datasetUUID can not be specified simultaneously";
        errors.push(FieldError::invalid(path, "resource", why));
    }
    if name.contains('/') {
        errors.push(FieldError::invalid(&path.child("datasetName"), name, "must not contain '/'"));
    }
    errors
}

fn quobyte(source: &QuobyteVolumeSource, path: &Path) -> ErrorList {
    let why = "must be a host:port pair or multiple pairs separated by commas";
    let mut errors = ErrorList::new();
    if source.registry.is_empty() {
        errors.push(FieldError::required(&path.child("registry"), why));
    } else if text(&source.tenant).len() >= 65 {
        let why = "must be a UUID and may not exceed a length of 64 characters";
        errors.push(FieldError::required(&path.child("tenant"), why));
    } else {
        for pair in source.registry.split(',') {
            let is_pair = pair.rsplit_once(':').is_some_and(|(host, _)| {
                !host.contains(':') || (host.starts_with('[') && host.ends_with(']'))
            });
            if !is_pair {
                errors.push(FieldError::invalid(&path.child("registry"), &source.registry, why));
            }
        }
    }
    errors.extend(required(&source.volume, &path.child("volume")));
    errors
}

fn fibre_channel(source: &FCVolumeSource, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let (names, ids) = (list(&source.target_wwns), list(&source.wwids));
    if names.is_empty() && ids.is_empty() {
        let why = "must specify either targetWWNs or wwids, but not both";
        errors.push(FieldError::required(&path.child("targetWWNs"), why));
    }
    if !names.is_empty() && !ids.is_empty() {
        let why = "targetWWNs and wwids can not be specified simultaneously";
        errors.push(FieldError::invalid(&path.child("targetWWNs"), names, why));
    }
    if !names.is_empty() {
        match source.lun {
            None => {
                let why = "lun is required if targetWWNs is specified";
                errors.push(FieldError::required(&path.child("lun"), why));
            }
            Some(lun) if !(0..=255).contains(&lun) => {
                errors.push(FieldError::invalid(&path.child("lun"), lun, UP_TO_255));
            }
            Some(_) => {}
        }
    }
    errors
}

fn flex(source: &FlexVolumeSource, path: &Path) -> ErrorList {
    let mut errors = needed(&[("driver", &source.driver)], path);
    for key in source.options.iter().flatten().map(|(key, _)| key) {
        let namespace = key.split_once('/').map_or(key.as_str(), |(namespace, _)| namespace);
        let namespace = format!(".{}", namespace.to_lowercase());
        if namespace.ends_with(".kubernetes.io") || namespace.ends_with(".k8s.io") {
            let why = "kubernetes.io and k8s.io namespaces are reserved";
            errors.push(FieldError::invalid(&path.child("options").key(key), key, why));
        }
    }
    errors
}

fn azure_disk(source: &AzureDiskVolumeSource, path: &Path) -> ErrorList {
    let fields = [("diskName", source.disk_name.as_str()), ("diskURI", source.disk_uri.as_str())];
    let mut errors = needed(&fields, path);
    if let Some(mode) = &source.caching_mode {
        errors.extend(option(mode, &["None", "ReadOnly", "ReadWrite"], &path.child("cachingMode")));
    }
    if let Some(kind) = &source.kind {
        errors.extend(option(kind, &["Dedicated", "Managed", "Shared"], &path.child("kind")));
        let (start, form) = if kind == "Managed" {
            let form = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/\
                        microsoft.compute/disks/{disk-id}";
            ("/subscriptions/", form)
        } else {
            let form =
                "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
            ("https://", form)
        };
        if !source.disk_uri.starts_with(start) {
            let path = path.child("diskURI");
            errors.push(FieldError::not_supported(&path, &source.disk_uri, &[form]));
        }
    }
    errors
}

fn storage_os(source: &StorageOSVolumeSource, path: &Path) -> ErrorList {
    let mut errors = required_label(text(&source.volume_name), &path.child("volumeName"));
    let namespace = text(&source.volume_namespace);
    if !namespace.is_empty() {
        errors.extend(dns_label(namespace, &path.child("volumeNamespace")));
    }
    if let Some(secret) = &source.secret_ref {
        errors.extend(required(&secret.name, &path.child("secretRef").child("name")));
    }
    errors
}

fn csi(source: &CSIVolumeSource, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let driver_path = path.child("driver");
    if source.driver.is_empty() {
        errors.push(FieldError::required(&driver_path, ""));
    } else {
        if source.driver.len() > 63 {
            errors.push(FieldError::too_long(&driver_path, 63));
        }
        let faults = names::dns1123_subdomain(&source.driver.to_lowercase());
        errors.extend(invalid(&driver_path, &source.driver, faults));
    }
    if let Some(secret) = &source.node_publish_secret_ref {
        if secret.name.is_empty() {
            let path = path.child("nodePublishSecretRef").child("name");
            errors.push(FieldError::required(&path, ""));
        } else {
            let faults = names::dns1123_subdomain(&secret.name);
            errors.extend(invalid(&path.child("name"), &secret.name, faults));
        }
    }
    errors
}
