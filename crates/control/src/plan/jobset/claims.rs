//! The volume claims of a JobSet.

use k8s_openapi::{
    api::core::v1::PersistentVolumeClaim, apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use lockstep_api::{
    jobset::{KIND, VolumeClaimPolicy, WhenDeleted, names},
    labels::jobset::JOBSET_NAME,
};

use super::{Step, build, pass::Pass};

/// Why a claim that is there already cannot be used: it is about to go, with an earlier set of this
/// name. Others are left as they are, whoever made them.
pub fn leaving(found: &PersistentVolumeClaim, set_uid: &str) -> Option<String> {
    let meta = &found.metadata;
    let name = meta.name.as_deref().unwrap_or_default();
    if meta.deletion_timestamp.is_some() {
        return Some(format!("persistentvolumeclaim {name} is being deleted"));
    }
    let mut owners = meta.owner_references.iter().flatten();
    let other = owners.find(|owner| owner.kind == KIND && owner.uid != set_uid)?;
    Some(format!(
        "persistentvolumeclaim {name} belongs to another JobSet {} (uid {}) and goes with it",
        other.name, other.uid
    ))
}

/// Creates the claims that are not there. One that is there is left as it is.
pub(super) fn ensure(pass: &mut Pass<'_>) {
    let policies = pass.spec().volume_claim_policies.iter();
    let claims = policies.map(|policy| missing(pass, policy));
    let claims: Vec<_> = claims.filter(|claims| !claims.is_empty()).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    // rule: jobset 3.10
    #[test]
    fn a_claim_that_goes_with_an_earlier_set_is_not_used() {
        let claim = |meta: serde_json::Value| {
            let claim = serde_json::json!({"metadata": meta, "spec": {}});
            serde_json::from_value::<PersistentVolumeClaim>(claim).unwrap()
        };
        let owner = |uid: &str| {
            serde_json::json!([{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
                "name": "s", "uid": uid}])
        };
        let cases = [
            (serde_json::json!({"name": "data-s"}), false),
            (serde_json::json!({"name": "data-s", "ownerReferences": owner("mine")}), false),
            (serde_json::json!({"name": "data-s", "ownerReferences": owner("before")}), true),
            (
                serde_json::json!({"name": "data-s", "deletionTimestamp": "2026-01-01T00:00:00Z"}),
                true,
            ),
        ];
        for (meta, is_leaving) in cases {
            let told = leaving(&claim(meta.clone()), "mine");
            assert_eq!(told.is_some(), is_leaving, "{meta}: {told:?}");
        }
    }
}
