//! Who a request wants to act as (`kubectl --as`).

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderValue};
use lockstep_api::{
    Status,
    names::{name_is_dns_label, name_is_dns_subdomain},
    tokens,
};

use super::{ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, User};
use crate::server::query;

/// The API group of what users consist of.
const AUTHENTICATION: &str = "authentication.k8s.io";
/// How headers begin that say something else of the user.
const EXTRA: &str = "impersonate-extra-";

/// The user a request wants to act as, and what the caller must be allowed to impersonate for
/// that.
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
/// 400 when it names groups or other parts of somebody without a name, or something that is no
/// text.
pub fn disguise(headers: &HeaderMap) -> Result<Option<Disguise>, Status> {
    let first = |name: &str| headers.get(name).map_or_else(|| Ok(String::new()), text);
    let (name, uid) = (first("impersonate-user")?, first("impersonate-uid")?);
    let groups = headers.get_all("impersonate-group").iter().map(text);
    let groups = groups.collect::<Result<Vec<_>, _>>()?;
    let extra = extra(headers)?;
    if name.is_empty() {
        if uid.is_empty() && groups.is_empty() && extra.is_empty() {
            return Ok(None);
        }
        return Err(Status::bad_request(
            "a uid, groups or extras to act as were given without impersonate-user: name the user \
             to act as as well (kubectl: --as)",
        ));
    }
    let account = service_account(&name).map(|(namespace, _)| namespace.to_owned());
    let parts = parts(&name, &groups, &uid, &extra);
    let mut groups = match account {
        Some(namespace) if groups.is_empty() => tokens::groups(&namespace),
        _ => groups,
    };
    let has = |group: &str| groups.iter().any(|it| it == group);
    let implied = match &*name {
        ANONYMOUS => Some(UNAUTHENTICATED),
        // Who asks for that is not known, whatever his name is.
        _ if has(UNAUTHENTICATED) => None,
        _ => Some(AUTHENTICATED),
    };
    if let Some(group) = implied.filter(|group| !has(group)) {
        groups.push(group.to_owned());
    }
    let user = User { name, uid, groups, extra };
    Ok(Some(Disguise { user, parts }))
}

/// What the caller must be allowed to impersonate.
fn parts(
    name: &str,
    groups: &[String],
    uid: &str,
    extra: &BTreeMap<String, Vec<String>>,
) -> Vec<Part> {
    let part = |resource, name: &str| Part { resource, name: name.to_owned(), ..Part::default() };
    let mut parts = vec![match service_account(name) {
        Some((namespace, account)) => {
            Part { namespace: namespace.to_owned(), ..part("serviceaccounts", account) }
        }
        None => part("users", name),
    }];
    parts.extend(groups.iter().map(|group| part("groups", group)));
    if !uid.is_empty() {
        parts.push(Part { group: AUTHENTICATION, ..part("uids", uid) });
    }
    for (key, values) in extra {
        parts.extend(values.iter().map(|value| {
            let subresource = key.clone();
            Part { group: AUTHENTICATION, subresource, ..part("userextras", value) }
        }));
    }
    parts
}

/// Namespace and name of the service account that goes by this name of a user.
fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    let is_one = name_is_dns_label(namespace, false).is_empty()
        && name_is_dns_subdomain(name, false).is_empty();
    is_one.then_some((namespace, name))
}

/// What else is said of the user to act as, by keys that may have escapes in them.
fn extra(headers: &HeaderMap) -> Result<BTreeMap<String, Vec<String>>, Status> {
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            let key = query::decode(key, false).unwrap_or_else(|| key.to_owned());
            extra.entry(key).or_default().push(text(value)?);
        }
    }
    Ok(extra)
}

/// The text of a header. What cannot be read must not be left out: the rest would be somebody else.
fn text(value: &HeaderValue) -> Result<String, Status> {
    let text = String::from_utf8(value.as_bytes().to_vec());
    text.map_err(|_| Status::bad_request("a header that says who to act as is not valid UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        headers
    }

    /// The groups somebody is in, and what the caller must be allowed to impersonate.
    fn shown(pairs: &[(&'static str, &str)]) -> (Vec<String>, Vec<String>) {
        let got = disguise(&headers(pairs)).unwrap().unwrap();
        let shown = |it: &Part| format!("{} {}/{}", it.resource, it.namespace, it.name);
        (got.user.groups, got.parts.iter().map(shown).collect())
    }

    #[test]
    fn names_are_of_accounts_only_when_they_could_be() {
        let cases = [
            ("system:serviceaccount:red:bot", "serviceaccounts red/bot"),
            ("system:serviceaccount:red:a.b", "serviceaccounts red/a.b"),
            ("system:serviceaccount:red:bot:x", "users /system:serviceaccount:red:bot:x"),
            ("system:serviceaccount:red:", "users /system:serviceaccount:red:"),
            ("system:serviceaccount::bot", "users /system:serviceaccount::bot"),
            ("system:serviceaccount:Red:bot", "users /system:serviceaccount:Red:bot"),
            ("system:serviceaccount:red", "users /system:serviceaccount:red"),
        ];
        for (name, want) in cases {
            let (groups, parts) = shown(&[("impersonate-user", name)]);
            assert_eq!(parts, [want]);
            let is_account = groups.iter().any(|group| group == "system:serviceaccounts");
            assert_eq!(is_account, want.starts_with("serviceaccounts"), "{name}");
        }
    }

    #[test]
    fn who_is_known_or_not_is_implied_unless_it_is_said() {
        let (known, unknown) = (AUTHENTICATED, UNAUTHENTICATED);
        let cases: [(&str, &[&str], &[&str]); 6] = [
            ("ann", &[], &[known]),
            ("ann", &["ops"], &["ops", known]),
            ("ann", &[known], &[known]),
            ("ann", &[unknown], &[unknown]),
            (ANONYMOUS, &[], &[unknown]),
            (ANONYMOUS, &[known], &[known, unknown]),
        ];
        for (name, groups, want) in cases {
            let mut pairs = vec![("impersonate-user", name)];
            pairs.extend(groups.iter().map(|group| ("impersonate-group", *group)));
            assert_eq!(shown(&pairs).0, want, "{name} {groups:?}");
        }
    }

    #[test]
    fn what_is_said_of_nobody_is_refused_and_the_rest_does_not_count() {
        let code = |pairs: &[(&'static str, &str)]| match disguise(&headers(pairs)) {
            Ok(None) => 200,
            Ok(Some(disguise)) => panic!("{disguise:?}"),
            Err(status) => status.code,
        };
        assert_eq!(code(&[]), 200);
        assert_eq!(code(&[("impersonate-user", "")]), 200);
        assert_eq!(code(&[("impersonate-user", ""), ("impersonate-user", "ann")]), 200);
        assert_eq!(code(&[("impersonate-uid", "")]), 200);
        assert_eq!(code(&[("impersonate-colour", "red")]), 200);
        assert_eq!(code(&[("impersonate-uid", "u")]), 400);
        assert_eq!(code(&[("impersonate-group", "")]), 400);
        assert_eq!(code(&[("impersonate-user", ""), ("impersonate-group", "x")]), 400);
        assert_eq!(code(&[("impersonate-extra-scopes", "")]), 400);
    }

    #[test]
    fn names_may_have_any_letters_and_what_is_no_text_is_refused() {
        let given = [
            ("impersonate-user", "Zoë"),
            ("impersonate-group", "größer"),
            ("impersonate-extra-team", "rød"),
        ];
        let (groups, parts) = shown(&given);
        assert_eq!(groups, ["größer", AUTHENTICATED]);
        assert_eq!(parts, ["users /Zoë", "groups /größer", "userextras /rød"]);
        for name in ["impersonate-user", "impersonate-group", "impersonate-extra-team"] {
            let mut headers = headers(&[("impersonate-user", "ann")]);
            headers.insert(name, HeaderValue::from_bytes(b"a\xff").unwrap());
            assert_eq!(disguise(&headers).unwrap_err().code, 400, "{name}");
        }
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
        let got = disguise(&headers(&given)).unwrap().unwrap();
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
}
