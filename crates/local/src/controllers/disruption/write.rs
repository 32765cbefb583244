//! Writing the status of a budget.

use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

/// Writes what was planned, if the budget is still what it was planned for. Otherwise the watch
/// tells of what it is now, and there is another pass.
pub(super) async fn status(
    client: &Client,
    budget: &PodDisruptionBudget,
    status: &PodDisruptionBudgetStatus,
) -> kube::Result<()> {
    let namespace = budget.namespace().unwrap_or_default();
    let api: Api<PodDisruptionBudget> = Api::namespaced(client.clone(), &namespace);
    let patch = Patch::Merge(patch(budget, status));
    match api.patch_status(&budget.name_any(), &PatchParams::default(), &patch).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        Err(error) => Err(error),
    }
}

fn patch(budget: &PodDisruptionBudget, status: &PodDisruptionBudgetStatus) -> Value {
    let mut value = json!(status);
    // What is not named in a patch stays: those who are not evicted any more are.
    let before = budget.status.as_ref().and_then(|before| before.disrupted_pods.as_ref());
    let now = status.disrupted_pods.as_ref();
    for name in before.into_iter().flat_map(std::collections::BTreeMap::keys) {
        if now.is_none_or(|now| !now.contains_key(name)) {
            value["disruptedPods"][name] = Value::Null;
        }
    }
    json!({
        "metadata": {"uid": budget.uid(), "resourceVersion": budget.resource_version()},
        "status": value,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_are_evicted_no_longer_are_taken_out() {
        let moment = "2026-11-15T12:00:00Z";
        let budget: PodDisruptionBudget = serde_json::from_value(json!({
            "metadata": {"name": "b", "uid": "u", "resourceVersion": "7"},
            "status": {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1,
                "expectedPods": 2, "disruptedPods": {"a": moment, "b": moment}},
        }))
        .unwrap();
        let status: PodDisruptionBudgetStatus = serde_json::from_value(json!({
            "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2,
            "disruptedPods": {"b": moment},
        }))
        .unwrap();
        let patch = patch(&budget, &status);
        assert_eq!(patch["metadata"], json!({"uid": "u", "resourceVersion": "7"}));
        assert_eq!(patch["status"]["disruptedPods"], json!({"a": null, "b": moment}));
        assert_eq!(patch["status"]["disruptionsAllowed"], 1);
    }
}
