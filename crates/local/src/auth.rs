//! Who is calling, and whether a browser was tricked into calling.
//!
//! One user of the machine is one trust domain: whoever holds the token is the administrator, and
//! may act as anybody else. Service accounts have tokens of their own, see [`signer`].
//! Callers inside the process put a [`User`] into the request's extensions, which no header can do.

pub mod signer;

use std::{borrow::Cow, collections::BTreeMap, net::IpAddr, path::Path};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderMap, Uri, header};
use lockstep_api::{Status, rbac::SUPERUSERS, tokens};
use subtle::ConstantTimeEq;

use crate::{
    files::{self, FileError},
    server::query,
};

/// The API group of what users consist of.
const AUTHENTICATION: &str = "authentication.k8s.io";
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

/// How the token begins among the protocols of a WebSocket.
const BEARER_PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";

/// The token that a request brings: in its header, or, as pages in browsers must, among the
/// protocols of a WebSocket.
pub fn bearer(headers: &HeaderMap) -> Option<Cow<'_, str>> {
    let in_header = || {
        let given = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
        let (scheme, token) = given.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    };
    let in_protocol = || {
        let values = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
        let mut words = values.filter_map(|value| value.to_str().ok()).flat_map(|v| v.split(','));
        let token = words.find_map(|word| word.trim().strip_prefix(BEARER_PROTOCOL))?;
        String::from_utf8(URL_SAFE_NO_PAD.decode(token).ok()?).ok()
    };
    in_header().map(Cow::Borrowed).or_else(|| in_protocol().map(Cow::Owned))
}

/// Whether a protocol of a WebSocket is none, but a token.
pub fn is_bearer_protocol(name: &str) -> bool {
    name.starts_with(BEARER_PROTOCOL)
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

/// The user a request wants to act as (`kubectl --as`), and what the caller must be allowed to
/// impersonate for that.
#[derive(Debug, PartialEq, Eq)]
pub struct Disguise {
    /// The user to act as.
    pub user: User,
    /// What that user consists of.
    pub parts: Vec<Part>,
}

/// Something of a user that the caller must be allowed to impersonate.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The API group of the resource.
    pub group: &'static str,
    /// What it is: `users`, `groups`, `serviceaccounts`, `uids` or `userextras`.
    pub resource: &'static str,
    /// Which of the `userextras`.
    pub subresource: String,
    /// The namespace of a service account.
    pub namespace: String,
    /// The name, or the value.
    pub name: String,
}

/// Reads who a request wants to act as, if anybody.
///
/// # Errors
/// 400 when it names groups or other parts of somebody without a name.
pub fn disguise(headers: &HeaderMap) -> Result<Option<Disguise>, Status> {
    let all = |name: &str| -> Vec<String> {
        headers.get_all(name).iter().filter_map(|v| v.to_str().ok()).map(str::to_owned).collect()
    };
    let Some(name) = all("impersonate-user").into_iter().find(|name| !name.is_empty()) else {
        return match headers.keys().find(|name| name.as_str().starts_with("impersonate-")) {
            None => Ok(None),
            Some(header) => Err(Status::bad_request(format!(
                "{header} was given without impersonate-user: name the user to act as as well \
                 (kubectl: --as)"
            ))),
        };
    };
    let part = |resource, name: &str| Part { resource, name: name.to_owned(), ..Part::default() };
    let mut parts = Vec::new();
    let account = name.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
    let mut groups = all("impersonate-group");
    parts.extend(account.is_none().then(|| part("users", &name)));
    parts.extend(groups.iter().map(|group| part("groups", group)));
    if let Some((namespace, account)) = account {
        let namespace = namespace.to_owned();
        parts.insert(0, Part { namespace, ..part("serviceaccounts", account) });
    }
    if let (Some((namespace, _)), true) = (account, groups.is_empty()) {
        groups = tokens::groups(namespace);
    }
    let uid = all("impersonate-uid").into_iter().next().unwrap_or_default();
    if !uid.is_empty() {
        parts.push(Part { group: AUTHENTICATION, ..part("uids", &uid) });
    }
    let extra = extra(headers);
    for (key, values) in &extra {
        parts.extend(values.iter().map(|value| {
            let subresource = key.clone();
            Part { group: AUTHENTICATION, subresource, ..part("userextras", value) }
        }));
    }
    let implied = if name == ANONYMOUS { UNAUTHENTICATED } else { AUTHENTICATED };
    if !groups.iter().any(|group| group == implied) {
        groups.push(implied.to_owned());
    }
    let user = User { name, uid, groups, extra };
    Ok(Some(Disguise { user, parts }))
}

/// What else is said of the user to act as, by keys that may have escapes in them.
fn extra(headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix("impersonate-extra-")
            && let Ok(value) = value.to_str()
        {
            let key = query::decode(key, false).unwrap_or_else(|| key.to_owned());
            extra.entry(key).or_default().push(value.to_owned());
        }
    }
    extra
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
    fn only_the_token_opens_the_door() {
        let token = Token::generate();
        let right = format!("Bearer {}", token.secret());
        let longer = format!("{right}x");
        let basic = format!("Basic {}", token.secret());
        let cases = [
            ("right", Some(right.as_str()), true),
            ("scheme in lower case", Some(&right.replace("Bearer", "bearer")), true),
            ("too long", Some(&longer), false),
            ("too short", Some(&right[..right.len() - 1]), false),
            ("empty", Some("Bearer "), false),
            ("no scheme", Some(token.secret()), false),
            ("wrong scheme", Some(&basic), false),
            ("nothing", None, false),
        ];
        for (name, header, want) in cases {
            let map = header.map(|h| headers(&[("authorization", h)])).unwrap_or_default();
            assert_eq!(bearer(&map).is_some_and(|given| token.is(&given)), want, "{name}");
        }
    }

    #[test]
    fn a_page_brings_its_token_among_the_protocols() {
        let token = URL_SAFE_NO_PAD.encode("secret");
        let with =
            |text: &str| bearer(&headers(&[("sec-websocket-protocol", text)])).map(Cow::into_owned);
        let prefix = BEARER_PROTOCOL;
        assert_eq!(with(&format!("v4.channel.k8s.io, {prefix}{token}")).as_deref(), Some("secret"));
        assert_eq!(with(&format!("{prefix}~")), None);
        assert_eq!(with("v4.channel.k8s.io"), None);
    }

    #[test]
    fn headers_say_who_a_request_wants_to_act_as() {
        let part = |resource: &'static str, namespace: &str, name: &str| Part {
            resource,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            ..Part::default()
        };
        let cases = [
            (
                vec![("impersonate-user", "ann")],
                ("ann", vec!["system:authenticated"]),
                vec![part("users", "", "ann")],
            ),
            (
                vec![("impersonate-user", "ann"), ("impersonate-group", "ops")],
                ("ann", vec!["ops", "system:authenticated"]),
                vec![part("users", "", "ann"), part("groups", "", "ops")],
            ),
            (
                vec![("impersonate-user", "system:serviceaccount:red:bot")],
                (
                    "system:serviceaccount:red:bot",
                    vec![
                        "system:serviceaccounts",
                        "system:serviceaccounts:red",
                        "system:authenticated",
                    ],
                ),
                vec![part("serviceaccounts", "red", "bot")],
            ),
        ];
        for (given, (name, groups), parts) in cases {
            let got = disguise(&headers(&given)).unwrap().unwrap();
            assert_eq!((got.user.name.as_str(), got.parts), (name, parts));
            assert_eq!(got.user.groups, groups);
        }
        let given = [
            ("impersonate-user", "ann"),
            ("impersonate-uid", "u-1"),
            ("impersonate-extra-example.com%2fteam", "red"),
            ("impersonate-extra-languages", "python"),
            ("impersonate-extra-languages", "rust"),
        ];
        let mut map = HeaderMap::new();
        for (name, value) in given {
            map.append(name, value.parse().unwrap());
        }
        let got = disguise(&map).unwrap().unwrap();
        assert_eq!(got.user.extra["languages"], ["python", "rust"]);
        assert_eq!(got.user.extra["example.com/team"], ["red"]);
        let about = |part: &Part| format!("{}/{} {}", part.resource, part.subresource, part.name);
        let parts: Vec<String> = got.parts.iter().skip(1).map(about).collect();
        let want = [
            "uids/ u-1",
            "userextras/example.com/team red",
            "userextras/languages python",
            "userextras/languages rust",
        ];
        assert_eq!(parts, want);
        assert_eq!(got.parts[2].group, "authentication.k8s.io");
        assert_eq!(disguise(&headers(&[("accept", "*/*")])).unwrap(), None);
        let refused = disguise(&headers(&[("impersonate-group", "x")])).unwrap_err();
        assert_eq!(refused.code, 400, "groups of nobody");
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
