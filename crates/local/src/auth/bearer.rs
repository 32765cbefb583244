//! The token that a request brings: in its header, or, as pages in browsers must, among the
//! protocols of a WebSocket.

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderMap, header};
use lockstep_api::Status;

use crate::server::websocket::{is_asked_for, protocols};

/// How the token begins among the protocols of a WebSocket.
const PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";

/// The token that a request brings, if any. One in the header goes first.
///
/// # Errors
/// 401 when what is said among the protocols is no token, or more than one, or when no other
/// protocol is left to be answered with.
pub fn bearer(headers: &HeaderMap) -> Result<Option<Cow<'_, str>>, Status> {
    match in_header(headers) {
        Some(token) => Ok(Some(Cow::Borrowed(token))),
        None if is_asked_for(headers) => Ok(in_protocols(headers)?.map(Cow::Owned)),
        None => Ok(None),
    }
}

/// Whether a protocol of a WebSocket is none, but a token.
pub fn is_bearer_protocol(name: &str) -> bool {
    name.starts_with(PROTOCOL)
}

fn in_header(headers: &HeaderMap) -> Option<&str> {
    let given = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = given.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn in_protocols(headers: &HeaderMap) -> Result<Option<String>, Status> {
    let mut tokens = protocols(headers).filter_map(|name| name.strip_prefix(PROTOCOL));
    let Some(token) = tokens.next() else { return Ok(None) };
    let has_others = protocols(headers).any(|name| !is_bearer_protocol(name));
    let decoded = URL_SAFE_NO_PAD.decode(token).ok();
    let token = decoded.and_then(|token| String::from_utf8(token).ok());
    match token {
        _ if tokens.next().is_some() => Err(Status::unauthorized()),
        None => Err(Status::unauthorized()),
        Some(token) if token.is_empty() => Ok(None),
        Some(token) if has_others => Ok(Some(token)),
        Some(_) => Err(Status::unauthorized()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Token;

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
            assert_eq!(bearer(&map).unwrap().is_some_and(|given| token.is(&given)), want, "{name}");
        }
    }

    #[test]
    fn a_page_brings_one_token_among_other_protocols() {
        let token = format!("{PROTOCOL}{}", URL_SAFE_NO_PAD.encode("secret"));
        let upgrade = [("connection", "upgrade"), ("upgrade", "websocket")];
        let with = |text: &str, others: &[(&'static str, &str)]| {
            let protocols = ("sec-websocket-protocol", text);
            let headers = headers(&[others, &[protocols]].concat());
            let found = bearer(&headers);
            found.map(|token| token.map(Cow::into_owned)).map_err(|status| status.code)
        };
        let cases = [
            (format!("v4.channel.k8s.io, {token}"), Ok(Some("secret"))),
            (format!("{token},v4.channel.k8s.io"), Ok(Some("secret"))),
            ("v4.channel.k8s.io".to_owned(), Ok(None)),
            (format!("v4.channel.k8s.io, {PROTOCOL}"), Ok(None)),
            (token.clone(), Err(401)),
            (format!("v4.channel.k8s.io, {token}, {token}"), Err(401)),
            (format!("v4.channel.k8s.io, {PROTOCOL}~"), Err(401)),
            (format!("v4.channel.k8s.io, {PROTOCOL}_w"), Err(401)),
        ];
        for (text, want) in cases {
            let want = want.map(|token| token.map(str::to_owned));
            assert_eq!(with(&text, &upgrade), want, "{text}");
        }
        let text = format!("v4.channel.k8s.io, {token}");
        assert_eq!(with(&text, &[]), Ok(None), "no request for a WebSocket");
        let in_header = [upgrade.as_slice(), &[("authorization", "Bearer other")]].concat();
        assert_eq!(with(&text, &in_header), Ok(Some("other".to_owned())));
    }
}
