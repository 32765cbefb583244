//! Tokens of service accounts: what they say, how long they may live, and whether what they say
//! still holds. Signing them is somebody else's business.

use std::{collections::BTreeMap, fmt};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::field::{ErrorList, FieldError, Path};

/// Who issues the tokens of a cluster, and whom they are for unless something else is asked.
pub const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// How long a token lives that nobody asked a time for.
pub const SECONDS_DEFAULT: i64 = 3600;

/// What the volume that every pod gets asks for. It is known by the odd number: see
/// `SECONDS_EXTENDED`.
pub const SECONDS_IN_PODS: i64 = 3607;

/// How long tokens of such volumes really live: programs that never read the file again go on
/// working, while those that do get a new one every hour.
const SECONDS_EXTENDED: i64 = 365 * 24 * 3600;

const SECONDS_MIN: i64 = 600;
const SECONDS_MAX: i64 = 1 << 32;

/// How far clocks may be apart, and how long what was deleted still counts.
const LEEWAY_SECONDS: i64 = 60;

/// An object that a token speaks of, this very one and no later one of the same name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// Its name.
    pub name: String,
    /// Its uid; empty when nothing but the name was known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

/// What a token says. Members are in the order of their names, as other issuers write them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    aud: Vec<String>,
    exp: i64,
    iat: i64,
    iss: String,
    jti: String,
    #[serde(rename = "kubernetes.io")]
    kubernetes: Kubernetes,
    nbf: i64,
    sub: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Kubernetes {
    namespace: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node: Option<Reference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pod: Option<Reference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    secret: Option<Reference>,
    serviceaccount: Reference,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    warnafter: Option<i64>,
}

/// With what a token ends, whatever its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// With a pod. The node is only told, and may be unknown.
    Pod {
        /// The pod.
        pod: Reference,
        /// Where it runs.
        node: Option<Reference>,
    },
    /// With a secret.
    Secret(Reference),
    /// With a node.
    Node(Reference),
}

/// What a token is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The namespace of the account.
    pub namespace: String,
    /// The account.
    pub account: Reference,
    /// What the token is bound to.
    pub bound: Option<Bound>,
    /// Whom it is for.
    pub audiences: Vec<String>,
    /// How long it was asked to live.
    pub seconds: i64,
}

/// What is wrong with the time that somebody asks for.
pub fn validate_seconds(seconds: i64) -> ErrorList {
    let path = Path::new("spec").child("expirationSeconds");
    let fault = |why: &str| vec![FieldError::invalid(&path, seconds, why)];
    match seconds {
        ..SECONDS_MIN => fault("may not specify a duration less than 10 minutes"),
        SECONDS_MIN..=SECONDS_MAX => Vec::new(),
        _ => fault("may not specify a duration larger than 2^32 seconds"),
    }
}

impl Claims {
    /// What a new token says. `id` is its own name, used once.
    pub fn new(grant: Grant, id: String, now: Timestamp) -> Self {
        let now = now.as_second();
        let is_for_us = grant.audiences.iter().all(|audience| audience == ISSUER);
        let is_extended = is_for_us
            && grant.seconds == SECONDS_IN_PODS
            && matches!(grant.bound, Some(Bound::Pod { .. }));
        let lives = if is_extended { SECONDS_EXTENDED } else { grant.seconds };
        let (mut pod, mut node, mut secret) = (None, None, None);
        match grant.bound {
            None => {}
            Some(Bound::Pod { pod: of, node: on }) => (pod, node) = (Some(of), on),
            Some(Bound::Secret(of)) => secret = Some(of),
            Some(Bound::Node(of)) => node = Some(of),
        }
        Self {
            aud: grant.audiences,
            exp: now.saturating_add(lives),
            iat: now,
            iss: ISSUER.to_owned(),
            jti: id,
            nbf: now,
            sub: user_name(&grant.namespace, &grant.account.name),
            kubernetes: Kubernetes {
                namespace: grant.namespace,
                node,
                pod,
                secret,
                serviceaccount: grant.account,
                warnafter: is_extended.then(|| now.saturating_add(grant.seconds)),
            },
        }
    }

    /// Who comes with a token that says this, and for which of `audiences` it is.
    ///
    /// # Errors
    /// When the token is for others, its time is over, or what it is bound to is gone.
    pub fn identity(
        &self,
        audiences: &[&str],
        now: Timestamp,
        objects: &impl Objects,
    ) -> Result<Identity, Invalid> {
        if self.iss != ISSUER {
            return Err(Invalid::Issuer(self.iss.clone()));
        }
        let shared: Vec<String> = audiences
            .iter()
            .filter(|wanted| self.aud.iter().any(|own| own == *wanted))
            .map(|&wanted| wanted.to_owned())
            .collect();
        if shared.is_empty() {
            let wanted = audiences.iter().map(|&wanted| wanted.to_owned()).collect();
            return Err(Invalid::Audience { own: self.aud.clone(), wanted });
        }
        let seconds = now.as_second();
        if seconds + LEEWAY_SECONDS < self.nbf {
            return Err(Invalid::NotYet);
        }
        if seconds - LEEWAY_SECONDS > self.exp {
            return Err(Invalid::Expired);
        }
        if seconds + LEEWAY_SECONDS < self.iat {
            return Err(Invalid::FromTheFuture);
        }
        self.check_objects(now, objects)?;
        Ok(Identity {
            namespace: self.kubernetes.namespace.clone(),
            account: self.kubernetes.serviceaccount.clone(),
            extra: self.extra(),
            audiences: shared,
        })
    }

    fn check_objects(&self, now: Timestamp, objects: &impl Objects) -> Result<(), Invalid> {
        let Kubernetes { namespace, node, pod, secret, serviceaccount: account, .. } =
            &self.kubernetes;
        let is_over = |found: &Found| {
            found.deleted_at.is_some_and(|at| at.as_second() < now.as_second() - LEEWAY_SECONDS)
        };
        let missing = || Invalid::AccountNotFound(account.name.clone());
        let found =
            objects.find(Kind::ServiceAccount, namespace, &account.name).ok_or_else(missing)?;
        if found.uid != account.uid {
            return Err(Invalid::AccountUid { found: found.uid, claimed: account.uid.clone() });
        }
        if is_over(&found) {
            let (namespace, name) = (namespace.clone(), account.name.clone());
            return Err(Invalid::AccountDeleted { namespace, name });
        }
        // The node of a pod is only told.
        let node = node.as_ref().filter(|_| pod.is_none());
        let bound = [
            (Kind::Secret, namespace.as_str(), secret.as_ref()),
            (Kind::Pod, namespace.as_str(), pod.as_ref()),
            (Kind::Node, "", node),
        ];
        for (kind, namespace, wanted) in bound {
            let Some(wanted) = wanted else { continue };
            let found = objects.find(kind, namespace, &wanted.name).ok_or(Invalid::Invalidated)?;
            if found.uid != wanted.uid {
                let claimed = wanted.uid.clone();
                return Err(Invalid::BoundUid { kind, found: found.uid, claimed });
            }
            if is_over(&found) {
                return Err(Invalid::Invalidated);
            }
        }
        Ok(())
    }

    /// What reviews show beside the name and the groups.
    fn extra(&self) -> BTreeMap<String, Vec<String>> {
        let mut extra = BTreeMap::new();
        let mut add = |key: &str, value: &str| {
            if !value.is_empty() {
                let key = format!("authentication.kubernetes.io/{key}");
                extra.insert(key, vec![value.to_owned()]);
            }
        };
        if !self.jti.is_empty() {
            add("credential-id", &format!("JTI={}", self.jti));
        }
        if let Some(pod) = &self.kubernetes.pod {
            add("pod-name", &pod.name);
            add("pod-uid", &pod.uid);
        }
        if let Some(node) = &self.kubernetes.node {
            add("node-name", &node.name);
            add("node-uid", &node.uid);
        }
        extra
    }
}

/// The kinds that tokens speak of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `ServiceAccount`.
    ServiceAccount,
    /// `Pod`.
    Pod,
    /// `Secret`.
    Secret,
    /// `Node`.
    Node,
}

impl Kind {
    /// The resource.
    pub fn plural(self) -> &'static str {
        match self {
            Self::ServiceAccount => "serviceaccounts",
            Self::Pod => "pods",
            Self::Secret => "secrets",
            Self::Node => "nodes",
        }
    }
}

/// An object that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its uid.
    pub uid: String,
    /// When it ends, if somebody deleted it.
    pub deleted_at: Option<Timestamp>,
}

/// The objects there are.
pub trait Objects {
    /// One of them.
    fn find(&self, kind: Kind, namespace: &str, name: &str) -> Option<Found>;
}

/// Who comes with a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The namespace of the account.
    pub namespace: String,
    /// The account.
    pub account: Reference,
    /// What else is known: the token's own name, the pod it is for.
    pub extra: BTreeMap<String, Vec<String>>,
    /// Those who asked and whom the token is for.
    pub audiences: Vec<String>,
}

/// What a service account is called as a user.
pub fn user_name(namespace: &str, account: &str) -> String {
    format!("system:serviceaccount:{namespace}:{account}")
}

/// The groups of every service account of a namespace.
pub fn groups(namespace: &str) -> Vec<String> {
    vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]
}

/// Why a token that we signed does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// Another cluster's.
    #[error("token issuer {0:?} is invalid")]
    Issuer(String),
    /// For somebody else.
    #[error("token audiences {} is invalid for the target audiences {}", Words(own), Words(wanted))]
    Audience {
        /// Whom it is for.
        own: Vec<String>,
        /// Who asks.
        wanted: Vec<String>,
    },
    /// Its time is over.
    #[error("service account token has expired")]
    Expired,
    /// Its time has not come.
    #[error("service account token is not valid yet")]
    NotYet,
    /// A clock is wrong.
    #[error("service account token is issued in the future")]
    FromTheFuture,
    /// The account is gone.
    #[error("serviceaccounts {0:?} not found")]
    AccountNotFound(String),
    /// Another account has the name now.
    #[error("service account UID ({found}) does not match claim ({claimed})")]
    AccountUid {
        /// The uid of the account there is.
        found: String,
        /// That of the token.
        claimed: String,
    },
    /// The account is about to go.
    #[error("service account {namespace}/{name} has been deleted")]
    AccountDeleted {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// What it is bound to is gone.
    #[error("service account token has been invalidated")]
    Invalidated,
    /// Another object has the name of what it is bound to.
    #[error(
        "{0} UID ({found}) does not match service account {1} ref claim ({claimed})",
        word(*kind), word(*kind)
    )]
    BoundUid {
        /// The kind of what it is bound to.
        kind: Kind,
        /// The uid of the object there is.
        found: String,
        /// That of the token.
        claimed: String,
    },
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::ServiceAccount => "service account",
        Kind::Pod => "pod",
        Kind::Secret => "secret",
        Kind::Node => "node",
    }
}

/// `["a" "b"]`
struct Words<'a>(&'a [String]);

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.0.iter().map(|word| format!("{word:?}")).collect();
        write!(f, "[{}]", words.join(" "))
    }
}

#[cfg(test)]
mod tests;
