//! Secrets of the type `kubernetes.io/service-account-token` get a token of the account that they
//! name, and go with that account.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k8s_openapi::{
    ByteString,
    api::{
        authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec},
        core::v1::{Secret, ServiceAccount},
    },
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
    runtime::watcher,
};
use serde_json::json;
use tokio::task::JoinHandle;
use tracing::{debug, warn};

use crate::observe::{Change, Inbox, ObjectKey};

const TYPE: &str = "kubernetes.io/service-account-token";
const ACCOUNT: &str = "kubernetes.io/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";
/// Such tokens hold as long as their Secrets are there: the longest that can be asked for.
const SECONDS: i64 = 1 << 32;
/// How often something that fails is tried.
const ATTEMPTS: usize = 5;
const PAUSE: Duration = Duration::from_millis(500);

/// What there is to look at.
enum Event {
    /// A Secret is new or has changed.
    Put(Arc<Secret>),
    /// An account is gone.
    AccountGone(ObjectKey),
}

/// Starts the controller; `root_ca` is the certificate of the cluster's authority.
pub fn spawn(client: Client, root_ca: Arc<str>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut inbox = Inbox::new();
        let of_type = watcher::Config::default().fields(&format!("type={TYPE}"));
        inbox.watch(Api::all(client.clone()), of_type.clone(), |change| match change {
            Change::Put(secret) => Some(Event::Put(secret)),
            Change::Gone(_) | Change::Listing | Change::Synced => None,
        });
        let accounts: Api<ServiceAccount> = Api::all(client.clone());
        inbox.watch(accounts, watcher::Config::default(), |change| match change {
            Change::Gone(key) => Some(Event::AccountGone(key)),
            Change::Put(_) | Change::Listing | Change::Synced => None,
        });
        let controller = Controller { client, root_ca };
        loop {
            for event in inbox.next(None).await.into_iter().flatten() {
                for _ in 0..ATTEMPTS {
                    match controller.handle(&event).await {
                        Ok(()) => break,
                        Err(error) => warn!(%error, "the Secret of an account is tried again"),
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    })
}

struct Controller {
    client: Client,
    root_ca: Arc<str>,
}

impl Controller {
    async fn handle(&self, event: &Event) -> Result<(), kube::Error> {
        match event {
            Event::Put(secret) if secret.metadata.deletion_timestamp.is_none() => {
                self.settle(secret).await
            }
            Event::Put(_) => Ok(()),
            Event::AccountGone(account) => {
                let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &account.namespace);
                let of_type = kube::api::ListParams::default().fields(&format!("type={TYPE}"));
                for secret in secrets.list(&of_type).await? {
                    if secret.annotations().get(ACCOUNT) == Some(&account.name) {
                        self.settle(&secret).await?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Fills in what is missing, or deletes a Secret whose account is not there.
    async fn settle(&self, secret: &Secret) -> Result<(), kube::Error> {
        let namespace = secret.namespace().unwrap_or_default();
        let annotations = secret.annotations();
        let Some(account) = annotations.get(ACCOUNT) else { return Ok(()) };
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), &namespace);
        let found = accounts.get_opt(account).await?.and_then(|found| found.uid());
        let is_of_other = |uid: &String| {
            annotations.get(ACCOUNT_UID).is_some_and(|known| !known.is_empty() && known != uid)
        };
        let Some(uid) = found.filter(|uid| !is_of_other(uid)) else {
            return self.delete(secret, account).await;
        };
        let mut data = self.missing(secret, &namespace);
        if secret.data.as_ref().is_none_or(|data| !data.contains_key("token")) {
            let token = self.token(&namespace, account, secret).await?;
            data.insert("token", ByteString(token.into_bytes()));
        }
        if data.is_empty() && annotations.get(ACCOUNT_UID) == Some(&uid) {
            return Ok(());
        }
        let patch = json!({
            // What was seen is what is changed.
            "metadata": {
                "annotations": { ACCOUNT_UID: uid },
                "resourceVersion": secret.resource_version(),
            },
            "data": data,
        });
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &namespace);
        let patched =
            api.patch(&secret.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await;
        ignore_changes(patched.map(drop))
    }

    /// What belongs into a Secret beside the token, as far as it is not there.
    fn missing(&self, secret: &Secret, namespace: &str) -> BTreeMap<&'static str, ByteString> {
        let known = secret.data.as_ref();
        let wanted = [("ca.crt", &*self.root_ca), ("namespace", namespace)];
        let wanted = wanted.map(|(key, value)| (key, ByteString(value.as_bytes().to_vec())));
        let is_missing = |(key, value): &(&'static str, ByteString)| {
            known.and_then(|data| data.get(*key)) != Some(value)
        };
        wanted.into_iter().filter(is_missing).collect()
    }

    /// A token that counts as long as the Secret is there.
    async fn token(
        &self,
        namespace: &str,
        account: &str,
        secret: &Secret,
    ) -> Result<String, kube::Error> {
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                expiration_seconds: Some(SECONDS),
                bound_object_ref: Some(BoundObjectReference {
                    api_version: Some("v1".to_owned()),
                    kind: Some("Secret".to_owned()),
                    name: secret.metadata.name.clone(),
                    uid: secret.metadata.uid.clone(),
                }),
                ..TokenRequestSpec::default()
            }),
            ..TokenRequest::default()
        };
        let body = serde_json::to_vec(&request).map_err(kube::Error::SerdeError)?;
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
        let request = http::Request::post(path)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(body)
            .map_err(kube::Error::HttpError)?;
        let answer: TokenRequest = self.client.request(request).await?;
        Ok(answer.status.and_then(|status| status.token).unwrap_or_default())
    }

    async fn delete(&self, secret: &Secret, account: &str) -> Result<(), kube::Error> {
        let (namespace, name) = (secret.namespace().unwrap_or_default(), secret.name_any());
        debug!(namespace, name, account, "the account of a token is not there");
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &namespace);
        let preconditions =
            Preconditions { uid: secret.uid(), resource_version: secret.resource_version() };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        ignore_changes(api.delete(&name, &params).await.map(drop))
    }
}

/// Who has changed or deleted what was looked at is heard of again.
fn ignore_changes(result: Result<(), kube::Error>) -> Result<(), kube::Error> {
    match result {
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        other => other,
    }
}
