//! Who comes with a token: the administrator, or a service account that is still there.

use std::sync::Arc;

use http::HeaderMap;
use jiff::Timestamp;
use lockstep_api::{
    Status,
    tokens::{Found, ISSUER, Invalid, Kind, Objects},
};
use lockstep_store::{object, snapshot::Snapshot};

use super::App;
use crate::auth::{User, bearer};

/// Somebody whose token counts.
pub(crate) struct Known {
    /// Who that is.
    pub(crate) user: User,
    /// Those who asked and whom the token is for.
    pub(crate) audiences: Vec<String>,
}

/// Why a token does not count.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unknown {
    /// None of ours.
    #[error("invalid bearer token")]
    Token,
    /// One of ours that counts no more, or not here.
    #[error("[invalid bearer token, {0}]")]
    Invalid(#[from] Invalid),
}

/// What those may ask for who do not say who they are, if a role lets them: whether the server is
/// well, as those do who watch over it.
const ANONYMOUS_PATHS: [&str; 5] = ["/healthz", "/livez", "/readyz", "/version", "/version/"];

/// Finds out who sent these headers.
///
/// # Errors
/// 401, without a reason: that is for the log and for reviews.
pub(crate) fn caller(app: &App, path: &str, headers: &HeaderMap) -> Result<User, Status> {
    let Some(token) = bearer(headers)? else {
        let is_open = ANONYMOUS_PATHS.contains(&path);
        return if is_open { Ok(User::anonymous()) } else { Err(Status::unauthorized()) };
    };
    match who(app, &token, &[ISSUER]) {
        Ok(known) => Ok(known.user),
        Err(error) => {
            tracing::debug!(%error, "a request was refused");
            Err(Status::unauthorized())
        }
    }
}

/// Finds out whose token this is, for one of `audiences` at least.
///
/// # Errors
/// When it counts for nothing, or not for them.
pub(crate) fn who(app: &App, token: &str, audiences: &[&str]) -> Result<Known, Unknown> {
    if app.token.is(token) {
        if !audiences.contains(&ISSUER) {
            return Err(Unknown::Token);
        }
        return Ok(Known { user: User::admin(), audiences: vec![ISSUER.to_owned()] });
    }
    let claims = app.signer.read(token).ok_or(Unknown::Token)?;
    let identity = claims.identity(audiences, Timestamp::now(), &Now(app.cluster.snapshot()))?;
    let audiences = identity.audiences.clone();
    Ok(Known { user: User::account(identity), audiences })
}

/// What there is now.
struct Now(Arc<Snapshot>);

impl Objects for Now {
    fn find(&self, kind: Kind, namespace: &str, name: &str) -> Option<Found> {
        let found = self.0.get(kind.plural(), &object::key(namespace, name))?;
        Some(Found { uid: found.meta.uid.to_string(), deleted_at: found.meta.deletion })
    }
}
