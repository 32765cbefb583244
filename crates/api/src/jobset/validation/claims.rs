//! Whether volume claims can be made, and whether somebody mounts them.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Container, PersistentVolumeClaimSpec, PodSpec};

use crate::{
    field::{ErrorList, FieldError, Path},
    jobset::{JobSetSpec, ReplicatedJob, WhenDeleted, names::claim},
    json::{at, text},
    kinds::{each, view},
    names,
    strategy::Json,
};

const NAME_MAX: usize = 63;

/// Says what is wrong with volume claim policies.
pub(super) fn validate(jobset: &str, object: &Json, spec: &JobSetSpec) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut known = BTreeSet::new();
    let path = Path::new("spec").child("volumeClaimPolicies");
    for (i, policy) in spec.volume_claim_policies.iter().enumerate() {
        for (j, template) in policy.templates.iter().enumerate() {
            let name = template.metadata.name.as_deref().unwrap_or_default();
            let path = path.index(i).child("template").index(j).child("name");
            if !known.insert(name) {
                let why = "names must be unique for VolumeClaimPolicies template";
                errors.push(FieldError::invalid(&path, name, why));
            }
            errors.extend(each(&path, name, names::dns1123_subdomain(name)));
            if claim(name, jobset).len() > NAME_MAX {
                let why = "VolumeClaimPolicies template name is too long";
                errors.push(FieldError::invalid(&path, name, why));
            }
            errors.extend(validate_mounts(name, object, spec));
        }
    }
    errors
}

/// Says what is wrong with policies whose claims exist already; `find` gives the claim of a name.
/// Its spec must be that of the template, to the letter, and it must not be deleted with the set.
pub(crate) fn validate_existing(object: &Json, find: impl Fn(&str) -> Option<Json>) -> ErrorList {
    let spec: JobSetSpec = view(object, "spec", &mut ErrorList::new());
    let (jobset, namespace) =
        (text(object, &["metadata", "name"]), text(object, &["metadata", "namespace"]));
    let path = Path::new("spec").child("volumeClaimPolicies");
    let mut errors = ErrorList::new();
    for (i, policy) in spec.volume_claim_policies.iter().enumerate() {
        let kept = policy.retention_policy.as_ref().and_then(|policy| policy.when_deleted);
        for (j, template) in policy.templates.iter().enumerate() {
            let name = claim(template.metadata.name.as_deref().unwrap_or_default(), jobset);
            let Some(existing) = find(&name) else { continue };
            let path = path.index(i);
            let wanted: PersistentVolumeClaimSpec = template.spec.clone().unwrap_or_default();
            let there: PersistentVolumeClaimSpec = view(&existing, "spec", &mut ErrorList::new());
            if wanted != there {
                let path = path.child("template").index(j).child("spec");
                let shown = serde_json::to_value(&wanted).unwrap_or_default();
                let why =
                    format!("spec does not match existing PVC {name} in namespace {namespace}");
                errors.push(FieldError::invalid(&path, shown, &why));
            }
            if kept != Some(WhenDeleted::Retain) {
                let shown = kept.and_then(|kept| serde_json::to_value(kept).ok());
                let path = path.child("retentionPolicy").child("whenDeleted");
                let why = "retentionPolicy must be retain when PVC exists";
                errors.push(FieldError::invalid(&path, shown, why));
            }
        }
    }
    errors
}

fn validate_mounts(name: &str, object: &Json, spec: &JobSetSpec) -> ErrorList {
    let path = Path::new("spec").child("replicatedJobs");
    let mut errors = ErrorList::new();
    for (i, job) in spec.replicated_jobs.iter().enumerate() {
        let volumes = pod_spec(job).and_then(|pod| pod.volumes.as_ref());
        for (k, volume) in volumes.into_iter().flatten().enumerate() {
            if volume.name == name {
                let pod = ["template", "spec", "template", "spec", "volumes"];
                let path = pod.iter().fold(path.index(i), |path, field| path.child(field));
                let why =
                    format!("volume name conflicts with VolumeClaimPolicy template name: {name}");
                errors.push(FieldError::invalid(&path.index(k).child("name"), name, &why));
            }
        }
    }
    if !spec.replicated_jobs.iter().any(|job| mounts(job, name)) {
        let shown = at(object, &["spec", "replicatedJobs"]);
        let why = format!(
            "replicatedJob containers don't have a matching volumeMount: {name} from \
             VolumeClaimPolicies"
        );
        errors.push(FieldError::invalid(&path, shown, &why));
    }
    errors
}

/// Whether a container of the Job's pods mounts a volume of this name.
fn mounts(job: &ReplicatedJob, name: &str) -> bool {
    let Some(pod) = pod_spec(job) else { return false };
    let containers = pod.init_containers.iter().flatten().chain(&pod.containers);
    let mut mounts = containers.flat_map(|one: &Container| one.volume_mounts.iter().flatten());
    mounts.any(|mount| mount.name == name)
}

fn pod_spec(job: &ReplicatedJob) -> Option<&PodSpec> {
    job.template.spec.as_ref()?.template.spec.as_ref()
}
