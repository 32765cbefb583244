//! Pods and their service accounts.

use std::time::Duration;

use lockstep_api::{Resource, Status, json::text, pod, strategy::Json};
use lockstep_store::{object, rest::Scene};

use crate::Cluster;

const ACCOUNTS: &str = "serviceaccounts";
const DEFAULT: &str = "default";

/// How long the first pods of a namespace wait for the account that a controller is about to make.
const PATIENCE: Duration = Duration::from_secs(2);

/// Gives a new pod what its account brings along.
///
/// # Errors
/// 403 when there is no such account.
pub(super) fn admit(scene: &Scene<'_>, pod: &mut Json) -> Result<(), Status> {
    let account = text(pod, &["spec", "serviceAccountName"]);
    let Some(found) = scene.view.get(ACCOUNTS, &object::key(scene.namespace, account)) else {
        // The name of a pod that is to be generated is not settled when plugins are asked.
        let name = match text(pod, &["metadata", "generateName"]) {
            "" => text(pod, &["metadata", "name"]),
            prefix => prefix,
        };
        let why = format!(
            "error looking up service account {}/{account}: serviceaccount {account:?} not found",
            scene.namespace
        );
        return Err(Status::forbidden(scene.resource, name, &why));
    };
    pod::add_account(pod, &found.json(), &scene.context.uid);
    Ok(())
}

impl Cluster {
    /// Waits for the account `default` of a namespace that was made a moment ago, when a pod with
    /// that account is created. Others must be there.
    pub(in crate::cluster) async fn wait_for_account(
        &self,
        resource: &Resource,
        namespace: &str,
        pod: &Json,
    ) {
        let is_pod = resource.group.is_empty() && resource.plural == "pods";
        if !is_pod || !matches!(text(pod, &["spec", "serviceAccountName"]), "" | DEFAULT) {
            return;
        }
        let is_settled = || {
            let snapshot = self.snapshot();
            let place = snapshot.get("namespaces", namespace);
            place.is_none_or(|place| place.meta.is_deleting())
                || snapshot.get(ACCOUNTS, &object::key(namespace, DEFAULT)).is_some()
        };
        if is_settled() {
            return;
        }
        let tables = self.0.core.tables.load_full();
        let Some(sender) = tables.get(ACCOUNTS) else { return };
        let mut changes = sender.subscribe();
        let settled = async { while !is_settled() && changes.changed().await.is_ok() {} };
        let _late = tokio::time::timeout(PATIENCE, settled).await;
    }
}
