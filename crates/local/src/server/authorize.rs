//! Whether a caller may do what it asks for, by the roles and bindings there are.

use std::sync::Arc;

use http::Method;
use lockstep_api::{
    Status,
    json::{list, text},
    rbac::{self, Request, Roles, Who},
    strategy::Json,
};
use lockstep_store::{object, snapshot::Snapshot};
use serde_json::Value;

use super::{
    App,
    request::{ResourcePath, Target, Verb},
    subresources::is_connection,
};
use crate::{auth::User, cluster::Guard};

/// The roles and bindings of one moment.
pub(crate) struct Bound(Arc<Snapshot>);

impl Bound {
    /// Those of now.
    pub(crate) fn of(app: &App) -> Self {
        Self(app.cluster.snapshot())
    }

    /// Why somebody may do something; nothing when not.
    pub(crate) fn allows(&self, user: &User, request: &Request<'_>) -> Option<String> {
        rbac::allowed_by(self, who(user), request)
    }

    /// What somebody may do in a namespace.
    pub(crate) fn rules_for(&self, user: &User, namespace: &str) -> Vec<Value> {
        rbac::rules_for(self, who(user), namespace)
    }

    fn all(&self, table: &str, namespace: Option<&str>) -> Vec<Json> {
        self.0.range(table, namespace, None).map(|(_, object)| object.json()).collect()
    }
}

impl Roles for Bound {
    fn cluster_bindings(&self) -> Vec<Json> {
        self.all("clusterrolebindings", None)
    }

    fn bindings(&self, namespace: &str) -> Vec<Json> {
        self.all("rolebindings", Some(namespace))
    }

    fn rules(&self, namespace: Option<&str>, name: &str) -> Option<Vec<Value>> {
        let (table, namespace) = namespace.map_or(("clusterroles", ""), |place| ("roles", place));
        let role = self.0.get(table, &object::key(namespace, name))?.json();
        Some(list(&role, &["rules"]).to_vec())
    }
}

/// How a user is known to roles.
pub(crate) fn who(user: &User) -> Who<'_> {
    Who { name: &user.name, groups: &user.groups }
}

/// Refuses a request that no rule covers.
///
/// # Errors
/// 403 with who cannot do what.
pub(crate) fn check(
    app: &App,
    user: &User,
    method: &Method,
    target: &Target,
) -> Result<(), Status> {
    if user.is_superuser() {
        return Ok(());
    }
    let path;
    let request = match target {
        Target::Malformed => return Ok(()),
        Target::Resource(path) => about(path),
        Target::Other(segments) => {
            path = format!("/{}", segments.join("/"));
            Request::Path { verb: method_verb(method), path: &path }
        }
    };
    match Bound::of(app).allows(user, &request) {
        Some(_) => Ok(()),
        None => Err(refused(user, &request)),
    }
}

/// Whether somebody may also do what opening a connection to a pod comes to. A client that upgrades
/// can only GET, and who may look at pods must not run commands in them because of that.
///
/// # Errors
/// 403 with who cannot do what.
pub(crate) fn check_connection(app: &App, user: &User, target: &Target) -> Result<(), Status> {
    match target {
        Target::Resource(path) if is_connection(path) && path.verb != Verb::Create => {
            let path = ResourcePath { verb: Verb::Create, ..path.clone() };
            check(app, user, &Method::POST, &Target::Resource(path))
        }
        _ => Ok(()),
    }
}

/// The 403 about a request.
pub(crate) fn refused(user: &User, request: &Request<'_>) -> Status {
    let why = rbac::refusal(who(user), request);
    match *request {
        Request::Path { .. } => Status::denied(format!("forbidden: {why}")),
        Request::Resource { group, resource, name, .. } => {
            Status::not_allowed((group, resource), name, &why)
        }
    }
}

/// Keeps those who write roles and bindings from giving away what is not theirs; not needed for
/// those who may do everything.
pub(crate) fn guard(app: &Arc<App>, user: &User) -> Option<Guard> {
    if user.is_superuser() {
        return None;
    }
    let (app, user) = (Arc::clone(app), user.clone());
    Some(Guard::new(move |resource, object| {
        if *resource.group != *rbac::GROUP {
            return Ok(());
        }
        let (bound, object) = (Bound::of(&app), object.json());
        let namespace = text(&object, &["metadata", "namespace"]);
        let role = text(&object, &["roleRef", "name"]);
        let is_binding = object.contains_key("roleRef");
        let (verb, plural, name, rules) = if is_binding {
            let is_of_namespace = text(&object, &["roleRef", "kind"]) == "Role";
            let plural = if is_of_namespace { "roles" } else { "clusterroles" };
            let rules = bound.rules(is_of_namespace.then_some(namespace), role);
            let missing = || Status::not_allowed((rbac::GROUP, plural), role, "it does not exist");
            ("bind", plural, role, rules.ok_or_else(missing)?)
        } else {
            let rules = list(&object, &["rules"]).to_vec();
            ("escalate", &*resource.plural, text(&object, &["metadata", "name"]), rules)
        };
        let group = rbac::GROUP;
        let request =
            Request::Resource { verb, group, resource: plural, subresource: "", namespace, name };
        if bound.allows(&user, &request).is_some() {
            return Ok(());
        }
        match rbac::overreach(&bound, who(&user), namespace, &rules) {
            None => Ok(()),
            Some(why) => {
                let name = text(&object, &["metadata", "name"]);
                Err(Status::forbidden(resource, name, &why))
            }
        }
    }))
}

fn about(path: &ResourcePath) -> Request<'_> {
    // What is asked about a namespace itself is asked in it.
    let name = path.name.as_deref().unwrap_or_default();
    let is_namespace = path.group.is_empty() && path.resource == "namespaces";
    let namespace = match &path.namespace {
        Some(namespace) => namespace,
        None if is_namespace => name,
        None => "",
    };
    Request::Resource {
        verb: path.verb.name(),
        group: &path.group,
        resource: &path.resource,
        subresource: path.subresource.as_deref().unwrap_or_default(),
        namespace,
        name,
    }
}

fn method_verb(method: &Method) -> &'static str {
    match *method {
        Method::GET => "get",
        Method::HEAD => "head",
        Method::POST => "post",
        Method::PUT => "put",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        Method::OPTIONS => "options",
        _ => "",
    }
}
