//! Sources of volumes that nothing serves any more.

use k8s_openapi::{api::core::v1::Volume, apimachinery::pkg::api::resource::Quantity as Written};

use super::fraction;
use crate::field::Path;

pub(super) fn warnings(volumes: &[Volume], path: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    for (at, volume) in volumes.iter().enumerate() {
        let path = path.index(at);
        let early = [
            (
                "photonPersistentDisk",
                volume.photon_persistent_disk.is_some(),
                "deprecated in v1.11, non-functional in v1.16+",
            ),
            (
                "gitRepo",
                volume.git_repo.is_some(),
                "deprecated in v1.11, and disabled by default in v1.33+",
            ),
            ("scaleIO", volume.scale_io.is_some(), "deprecated in v1.16, non-functional in v1.22+"),
            ("flocker", volume.flocker.is_some(), "deprecated in v1.22, non-functional in v1.25+"),
            (
                "storageOS",
                volume.storageos.is_some(),
                "deprecated in v1.22, non-functional in v1.25+",
            ),
            ("quobyte", volume.quobyte.is_some(), "deprecated in v1.22, non-functional in v1.25+"),
            (
                "glusterfs",
                volume.glusterfs.is_some(),
                "deprecated in v1.25, non-functional in v1.26+",
            ),
        ];
        let late = [
            ("cephfs", volume.cephfs.is_some(), "deprecated in v1.28, non-functional in v1.31+"),
            ("rbd", volume.rbd.is_some(), "deprecated in v1.28, non-functional in v1.31+"),
        ];
        let say = |(field, is_used, why): (&str, bool, &str)| {
            is_used.then(|| format!("{}: {why}", path.child(field)))
        };
        warnings.extend(early.into_iter().filter_map(say));
        warnings.extend(claimed_fractions(volume, &path));
        warnings.extend(late.into_iter().filter_map(say));
    }
    warnings
}

fn claimed_fractions(volume: &Volume, path: &Path) -> Vec<String> {
    let template = volume.ephemeral.as_ref().and_then(|it| it.volume_claim_template.as_ref());
    let Some(resources) = template.and_then(|it| it.spec.resources.as_ref()) else {
        return Vec::new();
    };
    let path = path.child("ephemeral").child("volumeClaimTemplate").child("spec");
    let path = path.child("resources");
    let storage = |field: &str, amount: Option<&Written>| {
        amount.and_then(|amount| fraction(amount, &path.child(field).key("storage")))
    };
    let of = |amounts: &Option<std::collections::BTreeMap<String, Written>>| {
        amounts.as_ref().and_then(|amounts| amounts.get("storage").cloned())
    };
    let lists = [("requests", of(&resources.requests)), ("limits", of(&resources.limits))];
    lists.iter().filter_map(|(field, amount)| storage(field, amount.as_ref())).collect()
}
