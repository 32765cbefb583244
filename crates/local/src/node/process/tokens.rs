//! The tokens that pods have in their volumes. One is asked for when a pod starts, kept, and asked
//! for again when four fifths of its time are over: whoever reads the file finds one that counts.

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
        let kept = self.kept(&uid, audience, seconds);
        let now = Timestamp::now();
        if let Some(kept) = kept.as_ref().filter(|kept| now < kept.refresh_at) {
            return Ok(Some(kept.token.clone()));
        }
        match ask(client, pod, audience, seconds).await {
            Ok(Some(token)) => {
                let refresh_at = refresh_at(now, seconds);
                let audience = audience.to_owned();
                let new = Kept { audience, seconds, token: token.clone(), refresh_at };
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

async fn ask(
    client: &Client,
    pod: &Pod,
    audience: &str,
    seconds: i64,
) -> kube::Result<Option<String>> {
    let spec = pod.spec.as_ref();
    let account = spec.and_then(|spec| spec.service_account_name.as_deref()).unwrap_or("default");
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
    match api.create_token_request(account, &PostParams::default(), &request).await {
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
}
