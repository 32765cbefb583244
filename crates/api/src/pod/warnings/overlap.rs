//! Files of one volume that get in each other's way.

use k8s_openapi::api::core::v1::{
    DownwardAPIVolumeFile, KeyToPath, ProjectedVolumeSource, Volume, VolumeProjection,
};

use super::{list, text};

/// A file and, in a projected volume, what it comes from.
#[derive(Clone, PartialEq, Eq)]
struct File {
    path: String,
    source: String,
}

impl File {
    fn shown(&self) -> String {
        if self.source.is_empty() {
            format!("{:?}", self.path)
        } else {
            format!("{:?} ({})", self.path, self.source)
        }
    }
}

pub(super) fn warnings(volumes: &[Volume]) -> Vec<String> {
    let mut warnings = Vec::new();
    for volume in volumes {
        let mut say = |what: &str, files: Vec<File>| {
            warnings.extend(overlaps(files).into_iter().map(|body| {
                format!("volume {:?} ({what}): overlapping paths: {body}", volume.name)
            }));
        };
        if let Some(source) = &volume.config_map {
            say(&format!("ConfigMap {:?}", source.name), keys(list(&source.items), ""));
        }
        if let Some(source) = &volume.secret {
            let what = format!("Secret {:?}", text(&source.secret_name));
            say(&what, keys(list(&source.items), ""));
        }
        if let Some(source) = &volume.downward_api {
            say("DownwardAPI", downward(list(&source.items), ""));
        }
        if let Some(source) = &volume.projected {
            let empty = VolumeProjection::default();
            for _ in list(&source.sources).iter().filter(|source| **source == empty) {
                warnings
                    .push(format!("volume {:?} (Projected) has no sources provided", volume.name));
            }
            warnings.extend(overlaps(projected(source)).into_iter().map(|body| {
                format!("volume {:?} (Projected): overlapping paths: {body}", volume.name)
            }));
        }
    }
    warnings
}

fn keys(items: &[KeyToPath], source: &str) -> Vec<File> {
    let file = |item: &KeyToPath| File { path: item.path.clone(), source: source.to_owned() };
    items.iter().map(file).collect()
}

fn downward(items: &[DownwardAPIVolumeFile], source: &str) -> Vec<File> {
    let file =
        |item: &DownwardAPIVolumeFile| File { path: item.path.clone(), source: source.to_owned() };
    items.iter().map(file).collect()
}

fn projected(source: &ProjectedVolumeSource) -> Vec<File> {
    let mut files = Vec::new();
    for source in list(&source.sources) {
        if let Some(map) = source.config_map.as_ref().filter(|it| it.items.is_some()) {
            files.extend(keys(list(&map.items), &format!("ConfigMap {:?}", map.name)));
        } else if let Some(secret) = source.secret.as_ref().filter(|it| it.items.is_some()) {
            files.extend(keys(list(&secret.items), &format!("Secret {:?}", secret.name)));
        } else if let Some(fields) = source.downward_api.as_ref().filter(|it| it.items.is_some()) {
            files.extend(downward(list(&fields.items), "DownwardAPI"));
        } else if let Some(token) = &source.service_account_token {
            let source = "ServiceAccountToken".to_owned();
            files.push(File { path: token.path.clone(), source });
        } else if let Some(bundle) = &source.cluster_trust_bundle {
            let name = bundle.name.as_ref().or(bundle.signer_name.as_ref());
            let source = format!("ClusterTrustBundle {:?}", name.map_or("", String::as_str));
            files.push(File { path: bundle.path.clone(), source });
        } else if let Some(it) = &source.pod_certificate {
            let parts = [
                (&it.certificate_chain_path, "PodCertificate chain"),
                (&it.key_path, "PodCertificate key"),
                (&it.credential_bundle_path, "PodCertificate credential bundle"),
            ];
            let given = parts.iter().filter(|(path, _)| !text(path).is_empty());
            files.extend(given.map(|(path, source)| File {
                path: text(path).to_owned(),
                source: (*source).to_owned(),
            }));
        }
    }
    files
}

fn overlaps(files: Vec<File>) -> Vec<String> {
    let mut found = Vec::new();
    let mut seen: Vec<File> = Vec::new();
    for mut file in files {
        file.path.truncate(file.path.trim_end_matches('/').len());
        if !file.path.is_empty() {
            let collide = |other: &&File| {
                contains(&other.path, &file.path) || contains(&file.path, &other.path)
            };
            for other in seen.iter().filter(collide) {
                found.push(format!("{} with {}", file.shown(), other.shown()));
            }
        }
        seen.push(file);
    }
    found
}

/// Whether `inner` is `outer` or lies below it.
fn contains(outer: &str, inner: &str) -> bool {
    !outer.is_empty()
        && inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
