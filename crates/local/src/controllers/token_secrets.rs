//! Secrets of the type `kubernetes.io/service-account-token` get a token of the account that they
//! name, and go with that account.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
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
use lockstep_control::engine::{Backoff, WorkQueue, after};
use serde_json::json;
use tokio::task::JoinHandle;
use tracing::{debug, warn};

use crate::observe::{Change, Inbox};

const TYPE: &str = "kubernetes.io/service-account-token";
const ACCOUNT: &str = "kubernetes.io/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";
/// Such tokens hold as long as their Secrets are there: the longest that can be asked for.
const SECONDS: i64 = 1 << 32;
/// How long to wait after a write that failed; twice as long after each further one.
const PAUSE: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// A Secret: namespace and name.
type Key = (String, String);

/// What there is to look at.
enum Event {
    Secret(Change<Secret>),
    Account(Change<ServiceAccount>),
}

/// Starts the controller; `root_ca` is the certificate of the cluster's authority.
pub fn spawn(client: Client, root_ca: Arc<str>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut inbox = Inbox::new();
        let of_type = watcher::Config::default().fields(&format!("type={TYPE}"));
        inbox.watch(Api::all(client.clone()), of_type, Event::Secret);
        inbox.watch(Api::all(client.clone()), watcher::Config::default(), Event::Account);
        let controller = Controller {
            client,
            root_ca,
            secrets: BTreeMap::new(),
            queue: WorkQueue::new(),
            backoff: Backoff::new(PAUSE, PAUSE_MAX),
        };
        controller.run(inbox).await;
    })
}

struct Controller {
    client: Client,
    root_ca: Arc<str>,
    secrets: BTreeMap<Key, Arc<Secret>>,
    queue: WorkQueue<Key>,
    backoff: Backoff<Key>,
}

impl Controller {
    async fn run(mut self, mut inbox: Inbox<Event>) {
        loop {
            for event in inbox.next(self.queue.next_due()).await {
                self.hear(event);
            }
            while let Some(key) = self.queue.take_due(Timestamp::now()) {
                let settled = match self.secrets.get(&key) {
                    Some(secret) => self.settle(secret).await,
                    None => Ok(()),
                };
                self.queue.done(&key);
                self.note(key, settled);
            }
        }
    }

    fn hear(&mut self, event: Event) {
        let now = Timestamp::now();
        match event {
            Event::Secret(Change::Put(secret)) => {
                let key = (secret.namespace().unwrap_or_default(), secret.name_any());
                self.secrets.insert(key.clone(), secret);
                self.queue.add(key, now);
            }
            Event::Secret(Change::Gone(gone)) => {
                let key = (gone.namespace, gone.name);
                let known = self.secrets.get(&key).and_then(|secret| secret.uid());
                if known.is_some_and(|uid| uid == gone.uid) {
                    self.secrets.remove(&key);
                    self.queue.remove(&key);
                    self.backoff.succeeded(&key);
                }
            }
            Event::Account(Change::Gone(account)) => {
                for (key, secret) in &self.secrets {
                    let is_its = secret.annotations().get(ACCOUNT) == Some(&account.name);
                    if is_its && key.0 == account.namespace {
                        self.queue.add(key.clone(), now);
                    }
                }
            }
            Event::Account(_) | Event::Secret(Change::Listing | Change::Synced) => {}
        }
    }

    /// What has failed is tried again, unless it was refused: then something has to change first.
    fn note(&mut self, key: Key, settled: Result<(), kube::Error>) {
        let Err(error) = settled else { return self.backoff.succeeded(&key) };
        let (namespace, name) = &key;
        if is_refusal(&error) {
            warn!(namespace, name, %error, "the Secret of an account stays as it is");
            return self.backoff.succeeded(&key);
        }
        warn!(namespace, name, %error, "the Secret of an account is tried again");
        let pause = self.backoff.failed(&key);
        self.queue.add(key, after(Timestamp::now(), pause));
    }

    /// Fills in what is missing, or deletes a Secret whose account is not there.
    async fn settle(&self, secret: &Secret) -> Result<(), kube::Error> {
        if secret.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
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
        if !has(secret, "token") {
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
        let mut missing = BTreeMap::new();
        let known = secret.data.as_ref().and_then(|data| data.get("ca.crt"));
        let root_ca = self.root_ca.as_bytes();
        if !root_ca.is_empty() && known.is_none_or(|known| known.0 != root_ca) {
            missing.insert("ca.crt", ByteString(root_ca.to_vec()));
        }
        if !has(secret, "namespace") {
            missing.insert("namespace", ByteString(namespace.as_bytes().to_vec()));
        }
        missing
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

/// Whether there is something at a key of a Secret.
fn has(secret: &Secret, key: &str) -> bool {
    let data = secret.data.as_ref();
    data.and_then(|data| data.get(key)).is_some_and(|value| !value.0.is_empty())
}

/// Whether the same request would be refused again.
fn is_refusal(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else { return false };
    (400..500).contains(&status.code) && status.code != 429
}

/// Who has changed or deleted what was looked at is heard of again.
fn ignore_changes(result: Result<(), kube::Error>) -> Result<(), kube::Error> {
    match result {
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        other => other,
    }
}
