//! Several sources in one directory.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{
    ClusterTrustBundleProjection, DownwardAPIProjection, KeyToPath, PodCertificateProjection,
    ProjectedVolumeSource, ServiceAccountTokenProjection, VolumeProjection,
};

use super::{
    super::rules::{file_mode, list, option, required, text, unreserved_path},
    files,
};
use crate::{
    field::{ErrorList, FieldError, Path},
    meta::{invalid, validate_label_selector},
    names,
};

const TOKEN_SECONDS_MIN: i64 = 10 * 60;
const TOKEN_SECONDS_MAX: i64 = 1 << 32;

/// Says what is wrong with a projected volume.
pub(super) fn validate(source: &ProjectedVolumeSource, path: &Path) -> ErrorList {
    let mut errors: ErrorList =
        file_mode(source.default_mode, &path.child("defaultMode")).into_iter().collect();
    let mut taken = Taken { paths: BTreeSet::new(), volume: path };
    for (at, source) in list(&source.sources).iter().enumerate() {
        errors.extend(projection(source, &mut taken, &path.child("sources").index(at)));
    }
    errors
}

/// The paths used so far.
struct Taken<'a> {
    paths: BTreeSet<String>,
    volume: &'a Path,
}

impl Taken<'_> {
    /// Takes `path`, or says that it is taken; the error shows `shown`.
    fn take(&mut self, path: &str, shown: &str) -> Option<FieldError> {
        let is_new = self.paths.insert(path.to_owned());
        (!is_new).then(|| FieldError::invalid(self.volume, shown, "conflicting duplicate paths"))
    }
}

fn projection(source: &VolumeProjection, taken: &mut Taken<'_>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut sources = 0;
    if let Some(secret) = &source.secret {
        sources += 1;
        errors.extend(keys(&secret.name, list(&secret.items), taken, &path.child("secret")));
    }
    if let Some(map) = &source.config_map {
        sources += 1;
        errors.extend(keys(&map.name, list(&map.items), taken, &path.child("configMap")));
    }
    if let Some(downward) = &source.downward_api {
        sources += 1;
        errors.extend(downward_files(downward, taken, &path.child("downwardAPI")));
    }
    if let Some(it) = &source.service_account_token {
        sources += 1;
        errors.extend(token(it, taken.volume, &path.child("serviceAccountToken")));
    }
    if let Some(bundle) = &source.cluster_trust_bundle {
        sources += 1;
        errors.extend(trust_bundle(bundle, taken, &path.child("clusterTrustBundle")));
    }
    if let Some(it) = &source.pod_certificate {
        sources += 1;
        errors.extend(certificate(it, taken, &path.child("podCertificate")));
    }
    if sources > 1 {
        let why = "may not specify more than 1 volume type per source";
        errors.push(FieldError::forbidden(path, why));
    }
    errors
}

fn keys(name: &str, items: &[KeyToPath], taken: &mut Taken<'_>, path: &Path) -> ErrorList {
    let mut errors: ErrorList = required(name, &path.child("name")).into_iter().collect();
    for (at, item) in items.iter().enumerate() {
        errors.extend(files::key_to_path(item, &path.child("items").index(at)));
        if !item.path.is_empty() {
            errors.extend(taken.take(&item.path, name));
        }
    }
    errors
}

fn downward_files(source: &DownwardAPIProjection, taken: &mut Taken<'_>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for file in list(&source.items) {
        errors.extend(files::downward_file(file, path));
        if !file.path.is_empty() {
            errors.extend(taken.take(&file.path, &file.path));
        }
    }
    errors
}

fn token(token: &ServiceAccountTokenProjection, volume: &Path, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let seconds = token.expiration_seconds.unwrap_or_default();
    let seconds_path = path.child("expirationSeconds");
    if seconds < TOKEN_SECONDS_MIN {
        let why = "may not specify a duration less than 10 minutes";
        errors.push(FieldError::invalid(&seconds_path, seconds, why));
    }
    if seconds > TOKEN_SECONDS_MAX {
        let why = "may not specify a duration larger than 2^32 seconds";
        errors.push(FieldError::invalid(&seconds_path, seconds, why));
    }
    if token.path.is_empty() {
        errors.push(FieldError::required(&volume.child("path"), ""));
    } else {
        errors.extend(unreserved_path(&token.path, &volume.child("path")));
    }
    errors
}

fn trust_bundle(
    bundle: &ClusterTrustBundleProjection,
    taken: &mut Taken<'_>,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    match (&bundle.name, &bundle.signer_name) {
        (Some(_), Some(_)) => {
            let why = "only one of name and signerName may be used";
            errors.push(FieldError::invalid(path, bundle, why));
        }
        (Some(name), None) => {
            let name_path = path.child("name");
            if name.is_empty() {
                errors.push(FieldError::required(&name_path, "must be a valid object name"));
            }
            // A bundle of a signer is called `signer:path:name`; only the last part is free.
            let own = name.rsplit(':').next().unwrap_or(name);
            for fault in names::dns1123_subdomain(own) {
                let why = format!("not a valid clustertrustbundlename: {fault}");
                errors.push(FieldError::invalid(&name_path, name, &why));
            }
            if let Some(selector) = &bundle.label_selector {
                let path = path.child("labelSelector");
                let why = "labelSelector must be unset if name is specified";
                errors.push(FieldError::invalid(&path, selector, why));
            }
        }
        (None, Some(signer)) => {
            errors.extend(signer_name(signer, &path.child("signerName")));
            if let Some(selector) = &bundle.label_selector {
                errors.extend(validate_label_selector(selector, &path.child("labelSelector")));
            }
        }
        (None, None) => {
            let why = "either name or signerName must be specified";
            errors.push(FieldError::required(path, why));
        }
    }
    errors.extend(required(&bundle.path, &path.child("path")));
    errors.extend(unreserved_path(&bundle.path, &path.child("path")));
    errors.extend(taken.take(&bundle.path, &bundle.path));
    errors
}

fn certificate(source: &PodCertificateProjection, taken: &mut Taken<'_>, path: &Path) -> ErrorList {
    const KEYS: [&str; 6] =
        ["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];
    let mut errors = signer_name(&source.signer_name, &path.child("signerName"));
    errors.extend(option(&source.key_type, &KEYS, &path.child("keyType")));
    if let Some(seconds) = source.max_expiration_seconds {
        let is_ours = source.signer_name.starts_with("kubernetes.io/");
        let most = if is_ours { 86_400 } else { 91 * 86_400 };
        let path = path.child("maxExpirationSeconds");
        if seconds < 3600 {
            let why = "if provided, maxExpirationSeconds must be >= 3600";
            errors.push(FieldError::invalid(&path, seconds, why));
        }
        if seconds > most {
            let why = format!("if provided, maxExpirationSeconds must be <= {most}");
            errors.push(FieldError::invalid(&path, seconds, &why));
        }
    }
    let files = [
        ("credentialBundlePath", &source.credential_bundle_path),
        ("keyPath", &source.key_path),
        ("certificateChainPath", &source.certificate_chain_path),
    ];
    let given: Vec<(&str, &str)> =
        files.iter().map(|(f, p)| (*f, text(p))).filter(|(_, p)| !p.is_empty()).collect();
    for (field, file) in &given {
        errors.extend(unreserved_path(file, &path.child(field)));
        errors.extend(taken.take(file, file));
    }
    if given.is_empty() {
        let why = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath";
        errors.push(FieldError::required(path, why));
    }
    errors
}

fn signer_name(name: &str, path: &Path) -> ErrorList {
    if name.is_empty() {
        return vec![FieldError::required(path, "must be a valid signer name")];
    }
    let Some((domain, rest)) = name.split_once('/') else {
        let why = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return vec![FieldError::invalid(path, name, why)];
    };
    let mut errors = invalid(path, domain, names::dns1123_subdomain(domain));
    for part in rest.split('.') {
        errors.extend(invalid(path, rest, names::dns1123_label(part)));
    }
    errors
}
