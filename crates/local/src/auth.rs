//! Who is calling, and whether a browser was tricked into calling.
//!
//! One user of the machine is one trust domain: whoever holds the token is the administrator, and
//! may act as anybody else. Service accounts have tokens of their own, see [`signer`].
//! Callers inside the process put a [`User`] into the request's extensions, which no header can do.

mod bearer;
mod disguise;
pub mod signer;

use std::{collections::BTreeMap, net::IpAddr, path::Path};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderMap, Uri, header};
use lockstep_api::{Status, rbac::SUPERUSERS, tokens};
use subtle::ConstantTimeEq;

use crate::files::{self, FileError};
pub use bearer::{bearer, is_bearer_protocol};
pub use disguise::{Disguise, Part, disguise};

/// The group of everybody who is known.
const AUTHENTICATED: &str = "system:authenticated";
/// The group of everybody who is not.
const UNAUTHENTICATED: &str = "system:unauthenticated";

/// The name of somebody who does not say who that is.
const ANONYMOUS: &str = "system:anonymous";

/// Who is calling.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name, as audit and reviews show it.
    pub name: String,
    /// The uid, for those who have one.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// What else is known, for reviews to show.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// The one user of the cluster: may do everything.
    pub fn admin() -> Self {
        Self::of("kubernetes-admin")
    }

    /// Somebody who does not say who that is.
    pub fn anonymous() -> Self {
        let groups = vec![UNAUTHENTICATED.to_owned()];
        Self { name: ANONYMOUS.to_owned(), groups, ..Self::default() }
    }

    /// A part of Lockstep itself, calling in-process.
    pub fn component(name: &str) -> Self {
        Self::of(&format!("system:{name}"))
    }

    fn of(name: &str) -> Self {
        let groups = [SUPERUSERS, AUTHENTICATED];
        let groups = groups.map(str::to_owned).to_vec();
        Self { name: name.to_owned(), groups, ..Self::default() }
    }

    /// A service account, as its token shows it.
    pub fn account(identity: tokens::Identity) -> Self {
        let tokens::Identity { namespace, account, extra, .. } = identity;
        let mut groups = tokens::groups(&namespace);
        groups.push(AUTHENTICATED.to_owned());
        Self { name: tokens::user_name(&namespace, &account.name), uid: account.uid, groups, extra }
    }

    /// Whether the user may do everything, whatever roles there are.
    pub fn is_superuser(&self) -> bool {
        self.groups.iter().any(|group| group == SUPERUSERS)
    }
}

/// The administrator's bearer token: 256 random bits.
#[derive(Clone)]
pub struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(hidden)")
    }
}

impl Token {
    /// A new random token.
    ///
    /// # Panics
    /// When the operating system has no randomness to give: nothing safe could follow.
    pub fn generate() -> Self {
        let mut bits = [0; 32];
        getrandom::fill(&mut bits).expect("the system's random source works");
        Self(URL_SAFE_NO_PAD.encode(bits))
    }

    /// The token of a data folder, made if there is none.
    pub fn open(file: &Path) -> Result<Self, FileError> {
        if let Some(token) = files::read_if_present(file)? {
            let token = token.trim();
            if !token.is_empty() {
                return Ok(Self(token.to_owned()));
            }
        }
        let token = Self::generate();
        files::write_private(file, token.0.as_bytes())?;
        Ok(token)
    }

    /// The token itself, for a kubeconfig.
    pub fn secret(&self) -> &str {
        &self.0
    }

    /// Whether `given` is the token. How long it takes does not depend on how much of a wrong token
    /// is right.
    pub fn is(&self, given: &str) -> bool {
        bool::from(given.as_bytes().ct_eq(self.0.as_bytes()))
    }
}

/// Refuses what only a browser would send: a name of somebody else's that resolves to this machine
/// (DNS rebinding), or a page of another origin. `names` are the names the server goes by. Who
/// brings a token need not be asked: no page knows one unless its user gave it.
pub fn refuse_browsers(uri: &Uri, headers: &HeaderMap, names: &[String]) -> Result<(), Status> {
    let authority = uri.authority().map(ToString::to_string).or_else(|| {
        headers.get(header::HOST).and_then(|value| value.to_str().ok()).map(str::to_owned)
    });
    let Some(authority) = authority else {
        return Err(Status::bad_request("the request names no host"));
    };
    if !is_own_name(host_of(&authority), names) {
        return Err(forbidden(format!("this server does not go by the name {authority:?}")));
    }
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let same = origin
        .to_str()
        .ok()
        .and_then(|origin| origin.split_once("://"))
        .is_some_and(|(_, origin)| origin.eq_ignore_ascii_case(&authority));
    if same {
        return Ok(());
    }
    Err(forbidden("requests from web pages of another origin are refused".to_owned()))
}

fn forbidden(message: String) -> Status {
    let mut status = Status::default();
    (status.code, status.reason, status.message) = (403, "Forbidden".to_owned(), message);
    status
}

/// The host of `host[:port]`.
fn host_of(authority: &str) -> &str {
    if let Some(rest) = authority.strip_prefix('[') {
        return rest.split_once(']').map_or(rest, |(host, _)| host);
    }
    authority.rsplit_once(':').map_or(authority, |(host, _)| host)
}

/// An address cannot be rebound to another machine; a name can, unless it is one of ours.
fn is_own_name(host: &str, names: &[String]) -> bool {
    let host = host.trim_end_matches('.');
    host.parse::<IpAddr>().is_ok()
        || host.eq_ignore_ascii_case("localhost")
        || host.to_ascii_lowercase().ends_with(".localhost")
        || names.iter().any(|name| name.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|&(k, v)| (k.parse().unwrap(), v.parse().unwrap())).collect()
    }

    #[test]
    fn token_is_kept_in_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let first = Token::open(&file).unwrap();
        assert_eq!(first.secret(), Token::open(&file).unwrap().secret());
        assert_eq!(first.secret().len(), 43);
    }

    #[test]
    fn browsers_cannot_be_tricked_into_calling() {
        let names = ["kubernetes.default".to_owned()];
        let cases = [
            ("loopback", "127.0.0.1:6443", None, true),
            ("loopback v6", "[::1]:6443", None, true),
            ("localhost", "localhost:6443", None, true),
            ("own name", "kubernetes.default", None, true),
            ("rebound name", "evil.example:6443", None, false),
            ("name that only starts like ours", "localhost.evil.example", None, false),
            ("same origin", "127.0.0.1:6443", Some("https://127.0.0.1:6443"), true),
            ("another page", "127.0.0.1:6443", Some("http://localhost:3000"), false),
            ("sandboxed page", "127.0.0.1:6443", Some("null"), false),
        ];
        for (name, host, origin, want) in cases {
            let mut map = headers(&[("host", host)]);
            if let Some(origin) = origin {
                map.insert("origin", origin.parse().unwrap());
            }
            let got = refuse_browsers(&"/api".parse().unwrap(), &map, &names);
            assert_eq!(got.is_ok(), want, "{name}: {got:?}");
        }
        let in_uri: Uri = "https://evil.example/api".parse().unwrap();
        assert!(refuse_browsers(&in_uri, &headers(&[("host", "localhost")]), &names).is_err());
    }
}
