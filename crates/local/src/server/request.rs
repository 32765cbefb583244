//! What a request is about, read from its method, path and query.

use http::Method;
use lockstep_api::selector::FieldSelector;

use super::query::{Query, decode};

/// What is asked of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Verb {
    /// One object.
    Get,
    /// A collection.
    List,
    /// Changes of a collection.
    Watch,
    /// A new object.
    Create,
    /// An object replaced.
    Update,
    /// An object changed.
    Patch,
    /// An object removed.
    Delete,
    /// A collection removed.
    DeleteCollection,
    /// A method the API has no meaning for.
    Unknown,
}

impl Verb {
    /// The verb as discovery, RBAC and metrics spell it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Unknown => "",
        }
    }
}

/// A path below a group and version: a collection, an object, or something below an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResourcePath {
    /// API group, empty for core.
    pub(crate) group: String,
    /// API version.
    pub(crate) version: String,
    /// The namespace; for the resource `namespaces` itself, absent.
    pub(crate) namespace: Option<String>,
    /// Plural name.
    pub(crate) resource: String,
    /// The object's name.
    pub(crate) name: Option<String>,
    /// What lies below the object.
    pub(crate) subresource: Option<String>,
    /// Whether the path goes on below the subresource.
    pub(crate) is_deeper: bool,
    /// The one object of a collection that is asked about, by its name.
    pub(crate) selected: Option<String>,
    /// What is asked.
    pub(crate) verb: Verb,
}

/// What a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Objects.
    Resource(ResourcePath),
    /// Everything else, by path segments: `/version`, `/apis/batch/v1`, ...
    Other(Vec<String>),
    /// A path that cannot be decoded.
    Malformed,
}

/// Reads what a request is about.
pub(crate) fn target(method: &Method, path: &str, query: &Query) -> Target {
    let Some(path) = decode(path, false) else { return Target::Malformed };
    let segments: Vec<String> = match path.trim_matches('/') {
        "" => Vec::new(),
        trimmed => trimmed.split('/').map(str::to_owned).collect(),
    };
    let below = match segments.first().map(String::as_str) {
        Some("api") if segments.len() > 2 => 2,
        Some("apis") if segments.len() > 3 => 3,
        _ => return Target::Other(segments),
    };
    let group = if below == 2 { String::new() } else { segments[1].clone() };
    let version = segments[below - 1].clone();
    let mut rest = &segments[below..];
    // The old way to ask for a watch: /api/v1/watch/namespaces/default/pods.
    let is_old_watch = rest[0] == "watch" && rest.len() > 1 && method == Method::GET;
    if is_old_watch {
        rest = &rest[1..];
    }
    let mut namespace = None;
    if rest[0] == "namespaces"
        && rest.len() > 2
        && !matches!(rest[2].as_str(), "status" | "finalize")
    {
        namespace = Some(rest[1].clone());
        rest = &rest[2..];
    }
    let name = rest.get(1).cloned();
    let verb = if is_old_watch { Verb::Watch } else { verb_of(method, name.is_some(), query) };
    let selected = match verb {
        Verb::List | Verb::Watch => selected(query),
        _ => None,
    };
    Target::Resource(ResourcePath {
        group,
        version,
        namespace,
        resource: rest[0].clone(),
        name,
        subresource: rest.get(2).cloned(),
        is_deeper: rest.len() > 3,
        selected,
        verb,
    })
}

/// The name that a field selector asks for: whoever may see one object may also list and watch it.
fn selected(query: &Query) -> Option<String> {
    let selector = FieldSelector::parse_any(query.first("fieldSelector")?).ok()?;
    selector.exact("metadata.name").map(str::to_owned)
}

fn verb_of(method: &Method, has_name: bool, query: &Query) -> Verb {
    match *method {
        Method::GET | Method::HEAD if has_name => Verb::Get,
        Method::GET | Method::HEAD if query.flag("watch") => Verb::Watch,
        Method::GET | Method::HEAD => Verb::List,
        Method::POST => Verb::Create,
        Method::PUT => Verb::Update,
        Method::PATCH => Verb::Patch,
        Method::DELETE if has_name => Verb::Delete,
        Method::DELETE => Verb::DeleteCollection,
        _ => Verb::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(method: &str, path: &str) -> String {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        match target(&method.parse().unwrap(), path, &Query::parse(query)) {
            Target::Resource(p) => format!(
                "{} {}/{} ns={} {}/{}/{}{}",
                p.verb.name(),
                p.group,
                p.version,
                p.namespace.as_deref().unwrap_or("-"),
                p.resource,
                p.name.as_deref().unwrap_or("-"),
                p.subresource.as_deref().unwrap_or("-"),
                if p.is_deeper { "/..." } else { "" },
            ),
            Target::Other(segments) => segments.join("|"),
            Target::Malformed => "malformed".to_owned(),
        }
    }

    #[test]
    fn paths_and_methods_say_what_is_asked() {
        let cases = [
            ("GET", "/", ""),
            ("GET", "/version/", "version"),
            ("GET", "/api/v1", "api|v1"),
            ("GET", "/apis/batch/v1/", "apis|batch|v1"),
            ("GET", "/healthz/ping", "healthz|ping"),
            ("GET", "/api/v1/pods", "list /v1 ns=- pods/-/-"),
            ("HEAD", "/api/v1/pods", "list /v1 ns=- pods/-/-"),
            ("GET", "/api/v1/pods?watch=1", "watch /v1 ns=- pods/-/-"),
            ("GET", "/api/v1/pods?watch=false", "list /v1 ns=- pods/-/-"),
            ("GET", "/api/v1/namespaces", "list /v1 ns=- namespaces/-/-"),
            ("GET", "/api/v1/namespaces/a", "get /v1 ns=- namespaces/a/-"),
            ("PUT", "/api/v1/namespaces/a/finalize", "update /v1 ns=- namespaces/a/finalize"),
            ("PATCH", "/api/v1/namespaces/a/status", "patch /v1 ns=- namespaces/a/status"),
            ("POST", "/api/v1/namespaces/a/pods", "create /v1 ns=a pods/-/-"),
            ("DELETE", "/api/v1/namespaces/a/pods", "deletecollection /v1 ns=a pods/-/-"),
            ("DELETE", "/api/v1/namespaces/a/pods/p", "delete /v1 ns=a pods/p/-"),
            ("GET", "/api/v1/namespaces/a/pods/p/log", "get /v1 ns=a pods/p/log"),
            ("GET", "/api/v1/namespaces/a/pods/p/proxy/x", "get /v1 ns=a pods/p/proxy/..."),
            ("GET", "/apis/batch/v1/namespaces/a/jobs", "list batch/v1 ns=a jobs/-/-"),
            ("GET", "/api/v1/watch/namespaces/a/pods", "watch /v1 ns=a pods/-/-"),
            ("GET", "/api/v1/watch/pods", "watch /v1 ns=- pods/-/-"),
            ("BREW", "/api/v1/pods", " /v1 ns=- pods/-/-"),
            ("GET", "/api/v1/pods/%zz", "malformed"),
            ("GET", "/api/v1/po%64s", "list /v1 ns=- pods/-/-"),
            ("GET", "/api/v1/namespaces//pods", "list /v1 ns= pods/-/-"),
            ("GET", "/a+b", "a+b"),
        ];
        for (method, path, want) in cases {
            assert_eq!(short(method, path), want, "{method} {path}");
        }
    }
}
