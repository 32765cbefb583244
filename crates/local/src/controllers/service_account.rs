//! Every namespace has a service account called `default`.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use tokio::task::JoinHandle;
use tracing::{debug, warn};

use crate::observe::{Change, Inbox};

const NAME: &str = "default";

/// Starts the controller.
pub fn spawn(client: Client) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut inbox = Inbox::new();
        let only_default = watcher::Config::default().fields("metadata.name=default");
        let namespaces: Api<Namespace> = Api::all(client.clone());
        inbox.watch(namespaces, watcher::Config::default(), |change| match change {
            Change::Put(namespace) if is_active(&namespace) => Some(namespace.name_any()),
            Change::Put(_) | Change::Gone(_) | Change::Listing | Change::Synced => None,
        });
        let accounts: Api<ServiceAccount> = Api::all(client.clone());
        inbox.watch(accounts, only_default, |change| match change {
            Change::Gone(key) => Some(key.namespace),
            Change::Put(_) | Change::Listing | Change::Synced => None,
        });
        loop {
            for namespace in inbox.next(None).await.into_iter().flatten() {
                ensure(&client, &namespace).await;
            }
        }
    })
}

fn is_active(namespace: &Namespace) -> bool {
    namespace.metadata.deletion_timestamp.is_none()
}

/// Creates the account unless it is there or the namespace is going away.
async fn ensure(client: &Client, namespace: &str) {
    let api: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let account = ServiceAccount {
        metadata: ObjectMeta { name: Some(NAME.to_owned()), ..ObjectMeta::default() },
        ..ServiceAccount::default()
    };
    for _ in 0..5 {
        match api.create(&PostParams::default(), &account).await {
            Ok(_) => return debug!(namespace, "service account created"),
            Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404 | 409) => return,
            Err(error) => {
                warn!(namespace, %error, "service account not created, trying again");
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        }
    }
}
