//! URLs, as Go's `net/url` reads them.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::quote::quoted;

/// The parts of a URL that somebody asks for.
#[derive(Debug, Default)]
pub(super) struct Url<'a> {
    /// In lower case.
    pub(super) scheme: String,
    pub(super) user: Option<&'a str>,
    pub(super) host: &'a str,
    pub(super) query: &'a str,
    pub(super) fragment: &'a str,
}

/// Reads a URL, or says why it is none.
pub(super) fn parse(given: &str) -> Result<Url<'_>, String> {
    let (text, fragment) = given.split_once('#').unwrap_or((given, ""));
    let fault = |text: &str, why: String| format!("parse {}: {why}", quoted(text));
    let url = without_fragment(text).map_err(|why| fault(text, why))?;
    match escape_fault(fragment) {
        Some(why) => Err(fault(given, why)),
        None => Ok(Url { fragment, ..url }),
    }
}

fn without_fragment(text: &str) -> Result<Url<'_>, String> {
    if text.bytes().any(|byte| byte.is_ascii_control()) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    let is_inside = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let (scheme, rest) = match text.find(|c| !is_inside(c)) {
        Some(0) if text.starts_with(':') => return Err("missing protocol scheme".to_owned()),
        Some(at) if text[at..].starts_with(':') && text.starts_with(char::is_alphabetic) => {
            (&text[..at], &text[at + 1..])
        }
        _ => ("", text),
    };
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let url = Url { scheme: scheme.to_lowercase(), query, ..Url::default() };
    if !rest.starts_with('/') {
        if scheme.is_empty() && rest.split('/').next().is_some_and(|first| first.contains(':')) {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
        // What is no path is not looked at.
        if !scheme.is_empty() {
            return Ok(url);
        }
    }
    let is_path = scheme.is_empty() && rest.starts_with("///");
    let authority = rest.strip_prefix("//").filter(|_| !is_path);
    let (authority, path) = match authority {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None => ("", rest),
    };
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let of_host = host_fault(&url.scheme, host).or_else(|| user.and_then(user_fault));
    match of_host.or_else(|| escape_fault(path)) {
        Some(why) => Err(why),
        None => Ok(Url { user, host, ..url }),
    }
}

fn user_fault(user: &str) -> Option<String> {
    let is_inside = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    match user.chars().all(is_inside) {
        true => escape_fault(user),
        false => Some("net/url: invalid userinfo".to_owned()),
    }
}

fn host_fault(scheme: &str, host: &str) -> Option<String> {
    let port_fault = |port: &str| {
        let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
        let is_fit = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
        (!is_fit).then(|| format!("invalid port {} after host", quoted(port)))
    };
    if !host.contains('[') {
        let is_strict = matches!(scheme, "http" | "https");
        let colon = if is_strict { host.find(':') } else { host.rfind(':') };
        let port = colon.and_then(|at| host.get(at..));
        return port.and_then(port_fault).or_else(|| name_fault(host));
    }
    let literal = || "invalid IP-literal".to_owned();
    if host.rfind('[') != Some(0) {
        return Some(literal());
    }
    let Some((address, port)) = host[1..].rsplit_once(']') else {
        return Some("missing ']' in host".to_owned());
    };
    if let Some(why) = port_fault(port) {
        return Some(why);
    }
    let (address, _) = address.split_once("%25").unwrap_or((address, ""));
    if address.parse::<Ipv4Addr>().is_ok() {
        return Some(literal());
    }
    let is_fit = address.parse::<Ipv6Addr>().is_ok();
    let why = || format!("invalid host: ParseAddr({}): unable to parse IP", quoted(address));
    name_fault(address).or_else(|| (!is_fit).then(why))
}

/// What a name may not have in it: escapes are for what is not ASCII.
fn name_fault(name: &str) -> Option<String> {
    let is_fit = |c: char| {
        !c.is_ascii() || c.is_ascii_alphanumeric() || "-_.~!$&'()*+,;=:[]<>\"%".contains(c)
    };
    for (at, c) in name.char_indices() {
        let rest = name.get(at..).unwrap_or_default();
        if !is_fit(c) {
            return Some(format!("invalid character {} in host name", quoted(&c.to_string())));
        }
        if c == '%' {
            let is_plain = rest.as_bytes().get(1).is_some_and(|digit| (b'0'..b'8').contains(digit));
            let why = escape_fault(rest.get(..3).unwrap_or(rest));
            if why.is_some() || is_plain && !rest.starts_with("%25") {
                return why.or_else(|| Some(bad_escape(rest)));
            }
        }
    }
    None
}

/// Why a text cannot be freed of its escapes, if that is so.
fn escape_fault(text: &str) -> Option<String> {
    let mut escapes = text.match_indices('%').filter_map(|(at, _)| text.get(at..));
    let is_broken = |escape: &&str| {
        let mut digits = escape.bytes().skip(1);
        let mut is_digit = || digits.next().is_some_and(|byte| byte.is_ascii_hexdigit());
        !(is_digit() && is_digit())
    };
    // The second of two signs is no digit, so that a whole escape never has one in it.
    escapes.find(is_broken).map(bad_escape)
}

fn bad_escape(text: &str) -> String {
    let start: String = text.chars().take(3).collect();
    format!("invalid URL escape {}", quoted(&start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_go_cannot_read_is_no_url() {
        let cases = [
            ("https://exa mple.com", "invalid character \" \" in host name"),
            ("https://[::1", "missing ']' in host"),
            ("https://a[::1]", "invalid IP-literal"),
            ("https://[10.0.0.1]", "invalid IP-literal"),
            ("https://[::1]x", "invalid port \"x\" after host"),
            ("https://a:b", "invalid port \":b\" after host"),
            ("https://a:1:2", "invalid port \":1:2\" after host"),
            ("https://a/%zz", "invalid URL escape \"%zz\""),
            ("https://a/%2", "invalid URL escape \"%2\""),
            ("https://a%41", "invalid URL escape \"%41\""),
            ("https://u<@a", "net/url: invalid userinfo"),
            ("https://a\n", "net/url: invalid control character in URL"),
            (":a", "missing protocol scheme"),
            ("1a:b", "first path segment in URL cannot contain colon"),
        ];
        for (text, want) in cases {
            let why = parse(text).unwrap_err();
            assert_eq!(why, format!("parse {}: {want}", quoted(text)), "{text}");
        }
        let fine = [
            "https://example.com:443/a%20b?c=%zz",
            "https://[fe80::1%25en0]:80/",
            "HTTPS://u:p@a",
            "https:a b",
            "https://é/%C3%A9",
            "a/b:c",
            "",
            "*",
        ];
        for text in fine {
            assert!(parse(text).is_ok(), "{text}: {:?}", parse(text));
        }
    }
}
