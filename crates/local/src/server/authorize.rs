//! Whether a caller may do what it asks for, by the roles and bindings there are.

mod parsed;

use std::sync::Arc;

use http::Method;
use lockstep_api::{
    Resource, Status,
    json::text,
    rbac::{self, Refusal, Request, Who},
    strategy::Json,
};
use lockstep_store::Object;
use serde_json::Value;

use super::{
    App,
    request::{ResourcePath, Target, Verb},
    subresources::is_connection,
};
use crate::{auth::User, cluster::Guard};
pub(crate) use parsed::{Parsed, RoleCache};

/// The roles and bindings of one moment.
pub(crate) struct Bound(Arc<Parsed>);

impl Bound {
    /// Those of now.
    pub(crate) fn of(app: &App) -> Self {
        Self(app.roles.at(&app.cluster.snapshot()))
    }

    /// Why somebody may do something; nothing when not.
    pub(crate) fn allows(&self, user: &User, request: &Request<'_>) -> Option<String> {
        rbac::allowed_by(&*self.0, who(user), request)
    }

    /// What somebody may do in a namespace.
    pub(crate) fn rules_for(&self, user: &User, namespace: &str) -> Vec<Value> {
        rbac::rules_for(&*self.0, who(user), namespace)
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
        // A client that upgrades can only GET. Who may look at pods must not run commands in them
        // because of that; and who may run commands needs no other right for it.
        Target::Resource(path) if is_connection(path) => about(path, Verb::Create),
        Target::Resource(path) => about(path, path.verb),
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

/// Keeps those who may change objects from making new ones by that, and those who write roles and
/// bindings from giving away what is not theirs; not needed for those who may do everything.
pub(crate) fn guard(app: &Arc<App>, user: &User) -> Option<Guard> {
    if user.is_superuser() {
        return None;
    }
    let (app, user) = (Arc::clone(app), user.clone());
    Some(Guard::new(move |resource, object, old| {
        if old.is_none() {
            may_create(&app, &user, resource, object)?;
        }
        if *resource.group != *rbac::GROUP {
            return Ok(());
        }
        let (bound, object) = (Bound::of(&app), object.json());
        let old = old.map(Object::json);
        if old.as_ref().is_some_and(|old| is_only_about_owners(old.clone(), object.clone())) {
            return Ok(());
        }
        let (plural, old) = (&resource.plural, old.as_ref());
        rbac::may_grant(&*bound.0, who(&user), plural, old, &object).map_err(
            |refusal| match refusal {
                Refusal::NoSuchRole { plural, name } => {
                    let catalog = app.cluster.catalog();
                    match catalog.registry().get(rbac::GROUP, "v1", &plural) {
                        Some(roles) => Status::not_found(roles, &name),
                        None => Status::no_such_resource(),
                    }
                }
                Refusal::Overreach(why) => {
                    Status::forbidden(resource, text(&object, &["metadata", "name"]), &why)
                }
            },
        )
    }))
}

/// Whether a change is none but of who owns an object and who has still to do with its end, which
/// gives nothing away.
fn is_only_about_owners(mut old: Json, mut new: Json) -> bool {
    for object in [&mut old, &mut new] {
        if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            for field in ["finalizers", "managedFields", "ownerReferences", "resourceVersion"] {
                meta.remove(field);
            }
        }
    }
    old == new
}

/// An update or a configuration of something that is not there creates it, which is another right.
fn may_create(app: &App, user: &User, resource: &Resource, object: &Object) -> Result<(), Status> {
    let request = Request::Resource {
        verb: Verb::Create.name(),
        group: &resource.group,
        resource: &resource.plural,
        subresource: "",
        namespace: &object.meta.namespace,
        name: &object.meta.name,
    };
    match Bound::of(app).allows(user, &request) {
        Some(_) => Ok(()),
        None => Err(refused(user, &request)),
    }
}

fn about(path: &ResourcePath, verb: Verb) -> Request<'_> {
    // What is asked about a namespace itself is asked in it.
    let name = path.name.as_ref().or(path.selected.as_ref()).map_or("", String::as_str);
    let is_namespace = path.group.is_empty() && path.resource == "namespaces";
    let namespace = match &path.namespace {
        Some(namespace) => namespace,
        None if is_namespace => path.name.as_deref().unwrap_or_default(),
        None => "",
    };
    Request::Resource {
        verb: verb.name(),
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
