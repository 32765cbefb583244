//! ClusterRoles that are put together from others have the rules of those.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
    runtime::watcher,
};
use lockstep_api::{rbac, strategy::Json};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tracing::{debug, warn};

use crate::observe::{Change, Inbox};

/// Starts the controller.
pub fn spawn(client: Client) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut inbox = Inbox::new();
        let api: Api<ClusterRole> = Api::all(client);
        inbox.watch(api.clone(), watcher::Config::default(), Some);
        let mut roles: BTreeMap<String, Arc<ClusterRole>> = BTreeMap::new();
        let mut is_complete = false;
        loop {
            for change in inbox.next(None).await.into_iter().flatten() {
                match change {
                    Change::Put(role) => drop(roles.insert(role.name_any(), role)),
                    Change::Gone(key) => drop(roles.remove(&key.name)),
                    Change::Listing => is_complete = false,
                    Change::Synced => is_complete = true,
                }
            }
            // Half of a list would take rules away from roles that have them.
            if is_complete {
                amend(&api, &roles).await;
            }
        }
    })
}

/// Writes the rules of all that do not have the right ones.
async fn amend(api: &Api<ClusterRole>, roles: &BTreeMap<String, Arc<ClusterRole>>) {
    let objects: Vec<Json> = roles.values().filter_map(|role| object(role)).collect();
    for (name, role) in roles {
        let Some(wanted) = object(role).and_then(|role| rbac::aggregated(&role, &objects)) else {
            continue;
        };
        let current = json!(role.rules.as_deref().unwrap_or_default());
        if current == Value::from(wanted.clone()) {
            continue;
        }
        // What was seen may be old: the write of somebody else comes first, and is seen next.
        let version = role.resource_version();
        let patch = json!({ "metadata": { "resourceVersion": version }, "rules": wanted });
        match api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await {
            Ok(_) => debug!(name, "rules of a cluster role put together"),
            Err(error) => warn!(name, %error, "rules of a cluster role not put together"),
        }
    }
}

fn object(role: &ClusterRole) -> Option<Json> {
    match serde_json::to_value(role) {
        Ok(Value::Object(object)) => Some(object),
        _ => None,
    }
}
