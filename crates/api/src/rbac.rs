//! Who may do what: roles and bindings, evaluated.
//!
//! Rules only ever allow. A request is answered by the first rule that covers it, in the order in
//! which an API server looks: bindings of the whole cluster first, then those of the namespace.

mod grant;
mod renewed;

pub use grant::{Refusal, may_grant};
pub use renewed::renewed;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    json::{list, text},
    quote::quoted,
    selector::LabelSelector,
    strategy::Json,
};

/// The group all RBAC kinds belong to.
pub const GROUP: &str = "rbac.authorization.k8s.io";

/// The group whose members may do everything, whatever roles there are.
pub const SUPERUSERS: &str = "system:masters";

/// How many single requests a rule may stand for to be compared with other rules.
const PARTS_MAX: usize = 100_000;

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub struct Who<'a> {
    /// The user's name.
    pub name: &'a str,
    /// The user's groups.
    pub groups: &'a [String],
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// Something about objects.
    Resource {
        /// `get`, `list`, `create`, ...
        verb: &'a str,
        /// API group, empty for core.
        group: &'a str,
        /// Plural name of the kind.
        resource: &'a str,
        /// What is below the object; empty for the object itself.
        subresource: &'a str,
        /// Empty for cluster-scoped kinds and for all namespaces.
        namespace: &'a str,
        /// Empty when no object is named.
        name: &'a str,
    },
    /// Another path.
    Path {
        /// The method in lower case.
        verb: &'a str,
        /// The path.
        path: &'a str,
    },
}

/// The roles and bindings there are.
pub trait Roles {
    /// All ClusterRoleBindings, in the order of their names.
    fn cluster_bindings(&self) -> Vec<&Json>;
    /// All RoleBindings of a namespace, in the order of their names.
    fn bindings(&self, namespace: &str) -> Vec<&Json>;
    /// The rules of a ClusterRole, or of a Role when a namespace is given.
    fn rules(&self, namespace: Option<&str>, name: &str) -> Option<&[Value]>;
}

/// Why a request is allowed, or nothing when it is not.
pub fn allowed_by(roles: &impl Roles, who: Who<'_>, request: &Request<'_>) -> Option<String> {
    if who.groups.iter().any(|group| group == SUPERUSERS) {
        return Some(String::new());
    }
    let mut why = None;
    visit(roles, who, request.namespace(), &mut |source, rule| {
        if why.is_none() && covers(rule, request) {
            why = Some(format!("RBAC: allowed by {source}"));
        }
    });
    why
}

/// All rules that hold for somebody in a namespace, and those of the whole cluster.
pub fn rules_for(roles: &impl Roles, who: Who<'_>, namespace: &str) -> Vec<Value> {
    let mut rules = Vec::new();
    visit(roles, who, namespace, &mut |_, rule| rules.push(rule.clone()));
    rules
}

/// What somebody is told who may not do something.
pub fn refusal(who: Who<'_>, request: &Request<'_>) -> String {
    let user = quoted(who.name);
    match *request {
        Request::Path { verb, path } => format!("User {user} cannot {verb} path {}", quoted(path)),
        Request::Resource { verb, group, resource, subresource, namespace, .. } => {
            let resource = match subresource {
                "" => quoted(resource),
                sub => quoted(&format!("{resource}/{sub}")),
            };
            let place = match namespace {
                "" => "at the cluster scope".to_owned(),
                namespace => format!("in the namespace {}", quoted(namespace)),
            };
            let group = quoted(group);
            format!("User {user} cannot {verb} resource {resource} in API group {group} {place}")
        }
    }
}

/// What somebody is told who wants to give away, in a namespace, rights of `rules` that are not
/// theirs; nothing when all of them are.
pub fn overreach(
    roles: &impl Roles,
    who: Who<'_>,
    namespace: &str,
    rules: &[Value],
) -> Option<String> {
    if who.groups.iter().any(|group| group == SUPERUSERS) {
        return None;
    }
    let owned = rules_for(roles, who, namespace);
    let missing = missing(&owned, rules);
    if missing.is_empty() {
        return None;
    }
    let missing: BTreeSet<String> = missing.iter().map(described).collect();
    let groups: Vec<String> = who.groups.iter().map(|group| quoted(group)).collect();
    Some(format!(
        "user {} (groups=[{}]) is attempting to grant RBAC permissions not currently held:\n{}",
        quoted(who.name),
        groups.join(" "),
        missing.into_iter().collect::<Vec<_>>().join("\n")
    ))
}

/// What of `rules` is not in those that are `owned`: what is missing of one resource is one rule.
pub fn missing(owned: &[Value], rules: &[Value]) -> Vec<Value> {
    let mut verbs_of: BTreeMap<[String; 3], Vec<&str>> = BTreeMap::new();
    let mut missing = Vec::new();
    for rule in rules.iter().filter(|rule| !includes(owned, rule)) {
        if !is_countable(rule) {
            missing.push(rule.clone());
            continue;
        }
        let is_owned = |part: &Request<'_>| owned.iter().any(|owned| covers(owned, part));
        for part in parts(rule).into_iter().filter(|part| !is_owned(part)) {
            match part {
                Request::Path { verb, path } => {
                    missing.push(json!({"nonResourceURLs": [path], "verbs": [verb]}));
                }
                Request::Resource { verb, group, resource, subresource, name, .. } => {
                    let resource = match subresource {
                        "" => resource.to_owned(),
                        sub => format!("{resource}/{sub}"),
                    };
                    // What is missing twice is told twice, as upstream does.
                    let verbs = verbs_of.entry([group.to_owned(), resource, name.to_owned()]);
                    verbs.or_default().push(verb);
                }
            }
        }
    }
    missing.extend(verbs_of.into_iter().map(|([group, resource, name], verbs)| {
        let mut rule = json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
        if !name.is_empty() {
            rule["resourceNames"] = json!([name]);
        }
        rule
    }));
    missing
}

/// `{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}`.
fn described(rule: &Value) -> String {
    let names = [
        ("APIGroups", "apiGroups"),
        ("Resources", "resources"),
        ("NonResourceURLs", "nonResourceURLs"),
        ("ResourceNames", "resourceNames"),
        ("Verbs", "verbs"),
    ];
    let part = |(shown, key): (&str, &str)| {
        let words: Vec<String> = strings(rule, key).map(quoted).collect();
        (!words.is_empty()).then(|| format!("{shown}:[{}]", words.join(" ")))
    };
    format!("{{{}}}", names.into_iter().filter_map(part).collect::<Vec<_>>().join(", "))
}

/// Whether `rules` together allow all that `rule` does. One that stands for more requests than can
/// be looked at is taken for one that does not.
fn includes(rules: &[Value], rule: &Value) -> bool {
    is_countable(rule)
        && parts(rule).iter().all(|part| rules.iter().any(|owned| covers(owned, part)))
}

/// Whether a rule stands for no more requests than can be looked at.
fn is_countable(rule: &Value) -> bool {
    let count = |key| strings(rule, key).count();
    let objects = count("resourceNames").max(1);
    let below = count("apiGroups").saturating_mul(count("resources")).saturating_mul(objects);
    let all = below.saturating_add(count("nonResourceURLs")).saturating_mul(count("verbs"));
    all <= PARTS_MAX
}

/// The single requests that a rule is about. One that names no objects is about all of them, which
/// only a rule that names none either covers.
fn parts(rule: &Value) -> Vec<Request<'_>> {
    let mut names: Vec<&str> = strings(rule, "resourceNames").collect();
    if names.is_empty() {
        names.push("");
    }
    let mut all = Vec::new();
    for verb in strings(rule, "verbs") {
        all.extend(strings(rule, "nonResourceURLs").map(|path| Request::Path { verb, path }));
        for group in strings(rule, "apiGroups") {
            for resource in strings(rule, "resources") {
                let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
                let namespace = "";
                all.extend(names.iter().map(|name| Request::Resource {
                    verb,
                    group,
                    resource,
                    subresource,
                    namespace,
                    name,
                }));
            }
        }
    }
    all
}

/// The rules of a ClusterRole that is put together from others: those its selectors match, in the
/// order of their names, each rule once.
pub fn aggregated(role: &Json, others: &[Json]) -> Option<Vec<Value>> {
    let aggregation = role.get("aggregationRule")?.as_object()?;
    let selectors: Vec<LabelSelector> = list(aggregation, &["clusterRoleSelectors"])
        .iter()
        .filter_map(|selector| meta::LabelSelector::deserialize(selector).ok())
        .filter_map(|selector| LabelSelector::from_meta(Some(&selector)).ok())
        .collect();
    let name = |of: &Json| text(of, &["metadata", "name"]).to_owned();
    let is_meant = |other: &&Json| {
        name(other) != name(role) && selectors.iter().any(|one| one.matches_object(other))
    };
    let mut meant: Vec<&Json> = others.iter().filter(is_meant).collect();
    meant.sort_by_key(|other| name(other));
    let mut rules: Vec<Value> = Vec::new();
    for rule in meant.into_iter().flat_map(|other| list(other, &["rules"])) {
        if !rules.contains(rule) {
            rules.push(rule.clone());
        }
    }
    Some(rules)
}

impl Request<'_> {
    fn namespace(&self) -> &str {
        match self {
            Self::Resource { namespace, .. } => namespace,
            Self::Path { .. } => "",
        }
    }
}

/// Shows every rule that holds for somebody, with where it comes from.
fn visit(roles: &impl Roles, who: Who<'_>, namespace: &str, see: &mut impl FnMut(&str, &Value)) {
    let mut visit_all = |bindings: Vec<&Json>, namespace: &str| {
        for binding in bindings {
            let Some(subject) = subject_of(binding, who, namespace) else { continue };
            let (kind, role) =
                (text(binding, &["roleRef", "kind"]), text(binding, &["roleRef", "name"]));
            let place = (kind == "Role").then_some(namespace);
            let Some(rules) = roles.rules(place, role) else { continue };
            let source = source(binding, subject, namespace);
            rules.iter().for_each(|rule| see(&source, rule));
        }
    };
    visit_all(roles.cluster_bindings(), "");
    if !namespace.is_empty() {
        visit_all(roles.bindings(namespace), namespace);
    }
}

/// The subject of a binding that somebody is.
fn subject_of<'a>(binding: &'a Json, who: Who<'_>, namespace: &str) -> Option<&'a Json> {
    let subjects = binding.get("subjects")?.as_array()?;
    subjects.iter().filter_map(Value::as_object).find(|of| is(of, who, namespace))
}

fn is(subject: &Json, who: Who<'_>, binding_namespace: &str) -> bool {
    let name = text(subject, &["name"]);
    match text(subject, &["kind"]) {
        "User" => who.name == name,
        "Group" => who.groups.iter().any(|group| group == name),
        "ServiceAccount" => {
            let namespace = match text(subject, &["namespace"]) {
                "" => binding_namespace,
                namespace => namespace,
            };
            let account = who.name.strip_prefix("system:serviceaccount:");
            !namespace.is_empty()
                && account.and_then(|account| account.split_once(':')) == Some((namespace, name))
        }
        _ => false,
    }
}

/// `RoleBinding "b/n" of Role "r" to User "u"`.
fn source(binding: &Json, subject: &Json, namespace: &str) -> String {
    let name = text(binding, &["metadata", "name"]);
    let (kind, name) = match namespace {
        "" => ("ClusterRoleBinding", quoted(name)),
        namespace => ("RoleBinding", quoted(&format!("{name}/{namespace}"))),
    };
    let role = quoted(text(binding, &["roleRef", "name"]));
    let subject_name = text(subject, &["name"]);
    let whom = match (text(subject, &["kind"]), text(subject, &["namespace"])) {
        ("ServiceAccount", "") => quoted(&format!("{subject_name}/{namespace}")),
        ("ServiceAccount", own) => quoted(&format!("{subject_name}/{own}")),
        _ => quoted(subject_name),
    };
    let (role_kind, subject_kind) = (text(binding, &["roleRef", "kind"]), text(subject, &["kind"]));
    format!("{kind} {name} of {role_kind} {role} to {subject_kind} {whom}")
}

/// Whether a rule covers a request.
fn covers(rule: &Value, request: &Request<'_>) -> bool {
    match *request {
        Request::Path { verb, path } => has(rule, "verbs", verb) && covers_path(rule, path),
        Request::Resource { verb, group, resource, subresource, name, .. } => {
            has(rule, "verbs", verb)
                && has(rule, "apiGroups", group)
                && strings(rule, "resources")
                    .any(|known| covers_resource(known, resource, subresource))
                && {
                    let mut names = strings(rule, "resourceNames").peekable();
                    names.peek().is_none() || names.any(|known| known == name)
                }
        }
    }
}

/// `*`, `pods`, `pods/log`, or `*/scale` for a subresource of any kind.
fn covers_resource(known: &str, resource: &str, subresource: &str) -> bool {
    if known == "*" {
        return true;
    }
    match subresource {
        "" => known == resource,
        sub => match known.split_once('/') {
            Some(("*", below)) => below == sub,
            Some((above, below)) => above == resource && below == sub,
            None => false,
        },
    }
}

fn covers_path(rule: &Value, path: &str) -> bool {
    strings(rule, "nonResourceURLs").any(|known| match known.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => known == path,
    })
}

/// Whether a list of a rule has a word, or all of them.
fn has(rule: &Value, key: &str, word: &str) -> bool {
    strings(rule, key).any(|known| known == "*" || known == word)
}

fn strings<'a>(rule: &'a Value, key: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    rule.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests;
