//! Volumes: exactly one source each, and what each source needs.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Volume;

use super::{
    PodKind,
    rules::{required_label, text},
};
use crate::{
    field::{ErrorList, FieldError, Path},
    quantity::Quantity,
};

mod claim;
mod files;
mod projected;
mod remote;

pub(crate) use claim::validate_claim_spec;

const ONE_ONLY: &str = "may not specify more than 1 volume type";

/// Says what is wrong with the volumes of a pod (`pod_name` when it has one), and which are sound.
pub(super) fn validate<'a>(
    volumes: &'a [Volume],
    pod_name: &str,
    kind: PodKind,
    path: &Path,
) -> (BTreeMap<&'a str, &'a Volume>, ErrorList) {
    let mut errors = ErrorList::new();
    let mut sound = BTreeMap::new();
    let made: BTreeSet<String> = volumes
        .iter()
        .filter(|volume| !pod_name.is_empty() && volume.ephemeral.is_some())
        .map(|volume| format!("{pod_name}-{}", volume.name))
        .collect();
    for (at, volume) in volumes.iter().enumerate() {
        let path = path.index(at);
        let mut faults = validate_source(volume, pod_name, kind, &path);
        faults.extend(required_label(&volume.name, &path.child("name")));
        if sound.contains_key(volume.name.as_str()) {
            faults.push(FieldError::duplicate(&path.child("name"), &volume.name));
        }
        if faults.is_empty() {
            sound.insert(volume.name.as_str(), volume);
        }
        errors.extend(faults);
        if let Some(claim) = &volume.persistent_volume_claim
            && made.contains(&claim.claim_name)
        {
            let path = path.child("persistentVolumeClaim").child("claimName");
            let why = "must not reference a PVC that gets created for an ephemeral volume";
            errors.push(FieldError::invalid(&path, &claim.claim_name, why));
        }
    }
    (sound, errors)
}

fn validate_source(volume: &Volume, pod_name: &str, kind: PodKind, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut is_first = true;
    let all = local_sources(volume, path)
        .into_iter()
        .chain(remote::sources(volume, path))
        .chain(late_sources(volume, pod_name, kind, path));
    let mut given: Vec<(usize, &str, ErrorList)> = all
        .filter_map(|(place, field, faults)| faults.map(|faults| (place, field, faults)))
        .collect();
    // The first in the order in which upstream looks at them is the one that stands.
    given.sort_by_key(|(place, ..)| *place);
    for (_, field, faults) in given {
        if is_first {
            errors.extend(faults);
        } else {
            errors.push(FieldError::forbidden(&path.child(field), ONE_ONLY));
        }
        if field == "iscsi" {
            errors.extend(remote::long_initiator(volume, path));
        }
        is_first = false;
    }
    if is_first {
        errors.push(FieldError::required(path, "must specify a volume type"));
    }
    errors
}

/// A source: its place in the order, the field named when there is one too many, what is wrong
/// with it when it is there.
type Source = (usize, &'static str, Option<ErrorList>);

fn local_sources(volume: &Volume, path: &Path) -> Vec<Source> {
    let at = |field: &str| path.child(field);
    vec![
        (
            0,
            "emptyDir",
            volume.empty_dir.as_ref().map(|source| {
                let limit = source.size_limit.as_ref().map(|limit| Quantity::parse(&limit.0));
                let is_sound = limit.is_none_or(|limit| limit.is_ok_and(|limit| limit.sign() >= 0));
                let error = || {
                    let why = "SizeLimit field must be a valid resource quantity";
                    FieldError::forbidden(&at("emptyDir").child("sizeLimit"), why)
                };
                (!is_sound).then(error).into_iter().collect()
            }),
        ),
        (1, "hostPath", volume.host_path.as_ref().map(|it| files::host_path(it, &at("hostPath")))),
        (2, "gitRepo", volume.git_repo.as_ref().map(|it| files::git_repo(it, &at("gitRepo")))),
        (5, "secret", volume.secret.as_ref().map(|it| files::secret(it, &at("secret")))),
        (
            10,
            "persistentVolumeClaim",
            volume.persistent_volume_claim.as_ref().map(|it| {
                let path = at("persistentVolumeClaim").child("claimName");
                super::rules::required(&it.claim_name, &path).into_iter().collect()
            }),
        ),
        (
            15,
            // Upstream misspells the field here, and only here.
            "downwarAPI",
            volume.downward_api.as_ref().map(|it| files::downward(it, &at("downwardAPI"))),
        ),
        (
            18,
            "configMap",
            volume.config_map.as_ref().map(|it| files::config_map(it, &at("configMap"))),
        ),
        (
            25,
            "projected",
            volume.projected.as_ref().map(|it| projected::validate(it, &at("projected"))),
        ),
    ]
}

fn late_sources(volume: &Volume, pod_name: &str, kind: PodKind, path: &Path) -> Vec<Source> {
    let ephemeral = volume.ephemeral.as_ref().map(|source| {
        let mut errors = claim::validate(source, &path.child("ephemeral"));
        if !pod_name.is_empty() && !volume.name.is_empty() {
            let name = format!("{pod_name}-{}", volume.name);
            for fault in crate::names::dns1123_subdomain(&name) {
                let why = format!("PVC name {name:?}: {fault}");
                errors.push(FieldError::invalid(&path.child("name"), &volume.name, &why));
            }
        }
        errors
    });
    let image = volume.image.as_ref().map(|source| {
        const POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
        let path = path.child("image");
        let mut errors = ErrorList::new();
        if kind == PodKind::Pod {
            errors
                .extend(super::rules::required(text(&source.reference), &path.child("reference")));
        }
        let policy = text(&source.pull_policy);
        errors.extend(super::rules::choice(policy, &POLICIES, &path.child("pullPolicy")));
        errors
    });
    vec![(28, "ephemeral", ephemeral), (29, "image", image)]
}

#[cfg(test)]
mod tests;
