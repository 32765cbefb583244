//! Every namespace has a service account called `default`, and a ConfigMap with the certificate by
//! which programs in pods know the API server.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use lockstep_api::pod::ROOT_CA;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::task::JoinHandle;
use tracing::{debug, warn};

use crate::observe::{Change, Inbox};

const NAME: &str = "default";
const DESCRIPTION: &str = "kubernetes.io/description";

/// Upstream's words.
const ABOUT_CA: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when \
                        using internal endpoints such as the internal service IP or \
                        kubernetes.default.svc. No other usage is guaranteed across distributions \
                        of Kubernetes clusters.";

/// What is missing in a namespace, or wrong.
enum Wanted {
    /// Everything, as far as it is not there.
    All,
    /// The account.
    Account,
    /// The certificate.
    Certificate,
    /// The certificate that is there is not ours.
    Change,
}

/// Starts the controller; `root_ca` is the certificate of the cluster's authority.
pub fn spawn(client: Client, root_ca: Arc<str>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut inbox = Inbox::new();
        let only = |name: &str| watcher::Config::default().fields(&format!("metadata.name={name}"));
        let namespaces: Api<Namespace> = Api::all(client.clone());
        inbox.watch(namespaces, watcher::Config::default(), |change| match change {
            Change::Put(namespace) if is_active(&namespace) => {
                Some((namespace.name_any(), Wanted::All))
            }
            Change::Put(_) | Change::Gone(_) | Change::Listing | Change::Synced => None,
        });
        let accounts: Api<ServiceAccount> = Api::all(client.clone());
        inbox.watch(accounts, only(NAME), |change| match change {
            Change::Gone(key) => Some((key.namespace, Wanted::Account)),
            Change::Put(_) | Change::Listing | Change::Synced => None,
        });
        let certificates: Api<ConfigMap> = Api::all(client.clone());
        let own = Arc::clone(&root_ca);
        inbox.watch(certificates, only(ROOT_CA), move |change| match change {
            Change::Gone(key) => Some((key.namespace, Wanted::Certificate)),
            Change::Put(map) if map.data != Some(data(&own)) => {
                Some((map.namespace().unwrap_or_default(), Wanted::Change))
            }
            Change::Put(_) | Change::Listing | Change::Synced => None,
        });
        loop {
            for (namespace, wanted) in inbox.next(None).await.into_iter().flatten() {
                let (account, map) = (account(), certificate(&root_ca));
                match wanted {
                    // The certificate first: pods wait for the account, and then need both.
                    Wanted::All => {
                        ensure(&client, &namespace, &map).await;
                        ensure(&client, &namespace, &account).await;
                    }
                    Wanted::Account => ensure(&client, &namespace, &account).await,
                    Wanted::Certificate => ensure(&client, &namespace, &map).await,
                    Wanted::Change => restore(&client, &namespace, &root_ca).await,
                }
            }
        }
    })
}

fn is_active(namespace: &Namespace) -> bool {
    namespace.metadata.deletion_timestamp.is_none()
}

fn account() -> ServiceAccount {
    let metadata = ObjectMeta { name: Some(NAME.to_owned()), ..ObjectMeta::default() };
    ServiceAccount { metadata, ..ServiceAccount::default() }
}

/// The ConfigMap with a certificate.
pub(crate) fn certificate(root_ca: &str) -> ConfigMap {
    let annotations = BTreeMap::from([(DESCRIPTION.to_owned(), ABOUT_CA.to_owned())]);
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(ROOT_CA.to_owned()),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        data: Some(data(root_ca)),
        ..ConfigMap::default()
    }
}

fn data(root_ca: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("ca.crt".to_owned(), root_ca.to_owned())])
}

/// Creates an object unless it is there or the namespace is going away.
async fn ensure<K>(client: &Client, namespace: &str, object: &K)
where
    K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + Serialize
        + DeserializeOwned,
    K::DynamicType: Default,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    let name = object.name_any();
    for _ in 0..5 {
        match api.create(&PostParams::default(), object).await {
            Ok(_) => return debug!(namespace, name, "created in a new namespace"),
            Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404 | 409) => return,
            Err(error) => {
                warn!(namespace, name, %error, "not created, trying again");
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        }
    }
}

/// Writes the certificate again that somebody changed, or that is of an earlier authority.
async fn restore(client: &Client, namespace: &str, root_ca: &str) {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let change = json!([{ "op": "add", "path": "/data", "value": data(root_ca) }]);
    let patch = serde_json::from_value(change).map(Patch::<ConfigMap>::Json);
    let Ok(patch) = patch else { return };
    match api.patch(ROOT_CA, &PatchParams::default(), &patch).await {
        Ok(_) => debug!(namespace, "certificate written again"),
        // Whoever changes or deletes it is heard of again.
        Err(error) => debug!(namespace, %error, "certificate not written again"),
    }
}
