//! The volume claims of a JobSet.

use k8s_openapi::{
    api::core::v1::PersistentVolumeClaim, apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use lockstep_api::{
    jobset::{VolumeClaimPolicy, WhenDeleted, names},
    labels::jobset::JOBSET_NAME,
};

use super::{Step, build, pass::Pass};

/// Creates the claims that are not there. One that is there is left as it is, whoever made it.
pub(super) fn ensure(pass: &mut Pass<'_>) {
    let policies = pass.spec().volume_claim_policies.iter();
    let claims: Vec<_> = policies.flat_map(|policy| missing(pass, policy)).collect();
    if !claims.is_empty() {
        pass.steps.push(Step::CreateClaims(claims));
    }
}

fn missing(pass: &Pass<'_>, policy: &VolumeClaimPolicy) -> Vec<PersistentVolumeClaim> {
    let set = &pass.jobset().metadata;
    let set_name = set.name.as_deref().unwrap_or_default();
    let retention = policy.retention_policy.as_ref().and_then(|policy| policy.when_deleted);
    let is_ours = retention == Some(WhenDeleted::Delete);
    let mut claims = Vec::new();
    for template in &policy.templates {
        let name = names::claim(template.metadata.name.as_deref().unwrap_or_default(), set_name);
        if pass.view.has_claim(&name) {
            continue;
        }
        let mut labels = template.metadata.labels.clone().unwrap_or_default();
        labels.insert(JOBSET_NAME.to_owned(), set_name.to_owned());
        let metadata = ObjectMeta {
            name: Some(name),
            namespace: set.namespace.clone(),
            labels: Some(labels),
            annotations: template.metadata.annotations.clone(),
            // What is to stay does not belong to the set.
            owner_references: is_ours.then(|| vec![build::owner(pass.jobset())]),
            ..ObjectMeta::default()
        };
        let spec = template.spec.clone();
        claims.push(PersistentVolumeClaim { metadata, spec, status: None });
    }
    claims
}
