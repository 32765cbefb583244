//! The tokens that pods have in their volumes. One is asked for when a pod starts, kept, and asked
//! for again when four fifths of its time are over, or when its account is another one by now:
//! whoever reads the file finds one that counts.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};
use tracing::warn;

/// No token is kept for longer, whatever its time.
const KEPT_SECONDS_MAX: i64 = 24 * 3600;

/// The tokens of all pods, by the uid of the pod.
#[derive(Default)]
pub(super) struct Tokens(Mutex<HashMap<String, Vec<Kept>>>);

#[derive(Clone)]
struct Kept {
    audience: String,
    seconds: i64,
    token: String,
    /// The account that it is one of. Nobody lets one in with it when that has gone.
    account_uid: String,
    refresh_at: Timestamp,
}

impl Tokens {
    /// A token for a pod's service account; `None` when the account does not exist.
    pub(super) async fn token(
        &self,
        client: &Client,
        pod: &Pod,
        audience: &str,
        seconds: i64,
    ) -> kube::Result<Option<String>> {
        let uid = pod.uid().unwrap_or_default();
        let Some(account_uid) = account_uid(client, pod).await? else {
            self.forget(&uid);
            return Ok(None);
        };
        let kept = self.kept(&uid, audience, seconds);
        let kept = kept.filter(|kept| kept.account_uid == account_uid);
        let now = Timestamp::now();
        if let Some(kept) = kept.as_ref().filter(|kept| now < kept.refresh_at) {
            return Ok(Some(kept.token.clone()));
        }
        match ask(client, pod, audience, seconds).await {
            Ok(Some(token)) => {
                let refresh_at = refresh_at(now, seconds);
                let audience = audience.to_owned();
                let new = Kept { audience, seconds, token: token.clone(), account_uid, refresh_at };
                self.keep(uid, new);
                Ok(Some(token))
            }
            Ok(None) => Ok(None),
            Err(error) => match kept {
                // It still counts for a while.
                Some(kept) => {
                    warn!(pod = %pod.name_any(), %error, "token not refreshed, trying again");
                    Ok(Some(kept.token))
                }
                None => Err(error),
            },
        }
    }

    /// Forgets the tokens of a pod.
    pub(super) fn forget(&self, pod_uid: &str) {
        self.lock().remove(pod_uid);
    }

    fn kept(&self, uid: &str, audience: &str, seconds: i64) -> Option<Kept> {
        let all = self.lock();
        let same = |kept: &&Kept| kept.audience == audience && kept.seconds == seconds;
        all.get(uid)?.iter().find(same).cloned()
    }

    fn keep(&self, uid: String, new: Kept) {
        let mut all = self.lock();
        let own = all.entry(uid).or_default();
        own.retain(|kept| kept.audience != new.audience || kept.seconds != new.seconds);
        own.push(new);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<Kept>>> {
        // No code that can panic runs while the lock is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When a token that lives for `seconds` is asked for again.
fn refresh_at(issued: Timestamp, seconds: i64) -> Timestamp {
    let kept = (seconds - seconds / 5).min(KEPT_SECONDS_MAX);
    issued.saturating_add(SignedDuration::from_secs(kept)).unwrap_or(Timestamp::MAX)
}

/// The name of the account a pod runs as.
fn account(pod: &Pod) -> &str {
    let spec = pod.spec.as_ref();
    spec.and_then(|spec| spec.service_account_name.as_deref()).unwrap_or("default")
}

/// The uid of the account a pod runs as; `None` when there is none.
async fn account_uid(client: &Client, pod: &Pod) -> kube::Result<Option<String>> {
    let namespace = pod.namespace().unwrap_or_default();
    let api: Api<ServiceAccount> = Api::namespaced(client.clone(), &namespace);
    let found = api.get_metadata_opt(account(pod)).await?;
    Ok(found.map(|found| found.uid().unwrap_or_default()))
}

async fn ask(
    client: &Client,
    pod: &Pod,
    audience: &str,
    seconds: i64,
) -> kube::Result<Option<String>> {
    let audiences = if audience.is_empty() { Vec::new() } else { vec![audience.to_owned()] };
    let request = TokenRequest {
        spec: Some(TokenRequestSpec {
            audiences: Some(audiences),
            expiration_seconds: Some(seconds),
            bound_object_ref: Some(BoundObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Pod".to_owned()),
                name: Some(pod.name_any()),
                uid: pod.uid(),
            }),
        }),
        ..TokenRequest::default()
    };
    let namespace = pod.namespace().unwrap_or_default();
    let api: Api<ServiceAccount> = Api::namespaced(client.clone(), &namespace);
    match api.create_token_request(account(pod), &PostParams::default(), &request).await {
        Ok(answer) => Ok(answer.status.and_then(|status| status.token)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_asked_for_again_before_they_expire() {
        let cases = [
            ("ten minutes", 600, 480),
            ("what every pod has", 3607, 2886),
            ("a day", 24 * 3600, 69_120),
            ("a week", 7 * 24 * 3600, KEPT_SECONDS_MAX),
        ];
        for (name, seconds, want) in cases {
            let got = refresh_at(Timestamp::UNIX_EPOCH, seconds);
            assert_eq!(got.as_second(), want, "{name}");
        }
    }

    #[tokio::test]
    async fn a_token_is_kept_for_no_longer_than_its_account() {
        use crate::embedded::{Embedded, Options};
        let embedded = Embedded::start(Options::default()).await.unwrap();
        let client = embedded.client();
        let accounts: Api<ServiceAccount> = Api::default_namespaced(client.clone());
        let mut bot = ServiceAccount::default();
        bot.metadata.name = Some("bot".to_owned());
        let create = async || accounts.create(&PostParams::default(), &bot).await.unwrap();
        create().await;
        let pod = serde_json::json!({"metadata": {"name": "p"}, "spec": {
            "serviceAccountName": "bot", "containers": [{"name": "c", "image": "i"}]}});
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let pod = pods.create(&PostParams::default(), &pod).await.unwrap();
        let tokens = Tokens::default();
        let ask = async || tokens.token(&client, &pod, "", 600).await.unwrap();
        let first = ask().await;
        assert!(first.is_some());
        assert_eq!(ask().await, first, "it is kept");
        accounts.delete("bot", &kube::api::DeleteParams::default()).await.unwrap();
        assert_eq!(ask().await, None);
        create().await;
        let second = ask().await;
        assert!(second.is_some());
        assert_ne!(second, first, "it is another account");
        embedded.shutdown().await;
    }
}
