//! Reviews: questions about who may do what, answered by the roles there are. Nothing is stored.

use std::sync::Arc;

use axum::{body::Body, response::Response};
use http::StatusCode;
use jiff::Timestamp;
use lockstep_api::{
    Registry, Resource, Scope, Status, Strategy, decode,
    field::{ErrorKind, ErrorList, FieldError, Path},
    json::{at, list, text},
    rbac::Request,
    strategy::{Column, Json},
    table,
    tokens::ISSUER,
};
use serde_json::{Map, Value, json};

use super::{
    authenticate::{self, Known},
    authorize::Bound,
    call::{Address, Call},
    options::MutationOptions,
    respond,
    respond::typed_header,
};
use crate::auth::User;

const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";

/// Adds the kinds of reviews to what is served.
pub fn register(registry: &mut Registry) {
    use Scope::{Cluster, Namespaced};
    let kinds = [
        (AUTHENTICATION, "selfsubjectreviews", "SelfSubjectReview", Cluster),
        (AUTHENTICATION, "tokenreviews", "TokenReview", Cluster),
        (AUTHORIZATION, "localsubjectaccessreviews", "LocalSubjectAccessReview", Namespaced),
        (AUTHORIZATION, "selfsubjectaccessreviews", "SelfSubjectAccessReview", Cluster),
        (AUTHORIZATION, "selfsubjectrulesreviews", "SelfSubjectRulesReview", Cluster),
        (AUTHORIZATION, "subjectaccessreviews", "SubjectAccessReview", Cluster),
    ];
    for (group, plural, kind, scope) in kinds {
        registry.insert(Resource {
            group: group.into(),
            version: "v1".into(),
            plural: plural.into(),
            singular: kind.to_lowercase().into(),
            kind: kind.into(),
            short_names: Vec::new(),
            categories: Vec::new(),
            scope,
            verbs: &["create"],
            subresources: Vec::new(),
            table: Arc::from(plural),
            strategy: Arc::new(ReviewStrategy),
        });
    }
}

/// Whether a resource is one of the reviews.
pub(crate) fn is_review(resource: &Resource) -> bool {
    matches!(&*resource.group, AUTHENTICATION | AUTHORIZATION)
}

/// Answers a review with what was asked and what is so.
pub(crate) async fn answer(call: &Call, address: &Address, body: Body) -> Result<Response, Status> {
    let resource = &address.resource;
    let output = call.plain_output()?;
    let body = call.json_body(body).await?;
    let options = MutationOptions::read(&call.query, "CreateOptions")?;
    let decoded = decode::object(resource, &body, options.field_validation)?;
    let mut asked = decoded.object;
    if resource.is_namespaced() {
        place(&mut asked, address.namespace())?;
    }
    check(resource, &asked)?;
    let mut answer = Map::new();
    let namespace = asked.get("metadata").and_then(|meta| meta.get("namespace"));
    let meta = match namespace.filter(|_| resource.is_namespaced()) {
        Some(namespace) => json!({ "namespace": namespace }),
        None => json!({}),
    };
    answer.insert("metadata".to_owned(), meta);
    if let Some(spec) = asked.get("spec") {
        answer.insert("spec".to_owned(), spec.clone());
    }
    answer.insert("status".to_owned(), status(call, resource, &asked)?);
    let stored = Value::Object(answer).to_string();
    let mut bytes = bytes::BytesMut::new();
    let header = typed_header(&resource.api_version(), &resource.kind);
    respond::put_with_type(&mut bytes, &header, stored.as_bytes());
    let mut response = respond::json(StatusCode::CREATED, bytes.freeze(), output);
    respond::add_warnings(response.headers_mut(), &decoded.warnings);
    Ok(response)
}

/// A question about a namespace is about the one it is asked in.
fn place(asked: &mut Json, namespace: &str) -> Result<(), Status> {
    match text(asked, &["metadata", "namespace"]) {
        "" => {
            let meta = asked.entry("metadata").or_insert_with(|| json!({}));
            if let Some(meta) = meta.as_object_mut() {
                meta.insert("namespace".to_owned(), namespace.into());
            }
            Ok(())
        }
        same if same == namespace => Ok(()),
        _ => Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        )),
    }
}

/// Refuses questions that have no answer.
fn check(resource: &Resource, asked: &Json) -> Result<(), Status> {
    if &*resource.plural == "selfsubjectrulesreviews" {
        let is_named = !text(asked, &["spec", "namespace"]).is_empty();
        return if is_named { Ok(()) } else { Err(Status::bad_request("no namespace on request")) };
    }
    if &*resource.group != AUTHORIZATION {
        return Ok(());
    }
    let spec = Path::new("spec");
    let (about, path) = (at(asked, &["spec", "resourceAttributes"]), asked_path(asked));
    let mut errors = ErrorList::new();
    match (about, path) {
        (None, None) => errors.push(FieldError::invalid(
            &spec.child("resourceAttributes"),
            Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )),
        (Some(_), Some((path, verb))) => errors.push(FieldError {
            kind: ErrorKind::Invalid,
            path: spec.child("nonResourceAttributes"),
            // Upstream shows its own fields, which have other names.
            body: format!(
                "Invalid value: {{\"Path\":{path:?},\"Verb\":{verb:?}}}: cannot be specified in \
                 combination with resourceAttributes"
            ),
        }),
        (Some(_), None) | (None, Some(_)) => {}
    }
    let is_of_others = &*resource.plural != "selfsubjectaccessreviews";
    let is_nobody =
        text(asked, &["spec", "user"]).is_empty() && list(asked, &["spec", "groups"]).is_empty();
    if is_of_others && is_nobody {
        let why = "at least one of user or group must be specified";
        errors.push(FieldError::invalid(&spec.child("user"), "", why));
    }
    let namespace = text(asked, &["spec", "resourceAttributes", "namespace"]);
    if resource.is_namespaced() && namespace != text(asked, &["metadata", "namespace"]) {
        let path = spec.child("resourceAttributes").child("namespace");
        errors.push(FieldError::invalid(&path, namespace, "must match metadata.namespace"));
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid_kind((AUTHORIZATION, ""), "", &errors))
}

/// The path and the verb that a question is about, if it is about no resource.
fn asked_path(asked: &Json) -> Option<(&str, &str)> {
    let attributes = ["spec", "nonResourceAttributes"];
    at(asked, &attributes)?;
    let part = |name| text(asked, &[attributes[0], attributes[1], name]);
    Some((part("path"), part("verb")))
}

fn status(call: &Call, resource: &Resource, asked: &Json) -> Result<Value, Status> {
    Ok(match &*resource.plural {
        "selfsubjectreviews" => json!({ "userInfo": user_info(&call.user) }),
        "tokenreviews" => return token(call, asked),
        "selfsubjectrulesreviews" => rules(call, text(asked, &["spec", "namespace"])),
        "selfsubjectaccessreviews" => access(call, &call.user, asked),
        _ => {
            let groups = list(asked, &["spec", "groups"]).iter().filter_map(Value::as_str);
            let groups = groups.map(str::to_owned).collect();
            let name = text(asked, &["spec", "user"]).to_owned();
            access(call, &User { name, groups, ..User::default() }, asked)
        }
    })
}

/// Who comes with a token.
fn token(call: &Call, asked: &Json) -> Result<Value, Status> {
    let token = text(asked, &["spec", "token"]);
    if token.is_empty() {
        let why = "token is required for TokenReview in authentication";
        return Err(Status::bad_request(why));
    }
    let given = list(asked, &["spec", "audiences"]).iter().filter_map(Value::as_str);
    let mut audiences: Vec<&str> = given.collect();
    if audiences.is_empty() {
        audiences.push(ISSUER);
    }
    Ok(match authenticate::who(&call.app, token, &audiences) {
        Ok(Known { user, audiences }) => json!({
            "authenticated": true, "user": user_info(&user), "audiences": audiences,
        }),
        Err(error) => json!({ "user": {}, "error": error.to_string() }),
    })
}

fn user_info(user: &User) -> Value {
    let mut info = json!({ "username": user.name, "groups": user.groups });
    if !user.uid.is_empty() {
        info["uid"] = user.uid.clone().into();
    }
    if !user.extra.is_empty() {
        info["extra"] = json!(user.extra);
    }
    info
}

/// Whether somebody may do what is asked about.
fn access(call: &Call, user: &User, asked: &Json) -> Value {
    let resource = |key: &str| text(asked, &["spec", "resourceAttributes", key]);
    let other = |key: &str| text(asked, &["spec", "nonResourceAttributes", key]);
    let is_other = at(asked, &["spec", "nonResourceAttributes"]).is_some();
    let request = match is_other {
        true => Request::Path { verb: other("verb"), path: other("path") },
        false => Request::Resource {
            verb: resource("verb"),
            group: resource("group"),
            resource: resource("resource"),
            subresource: resource("subresource"),
            namespace: resource("namespace"),
            name: resource("name"),
        },
    };
    match Bound::of(&call.app).allows(user, &request) {
        Some(why) if why.is_empty() => json!({ "allowed": true }),
        Some(why) => json!({ "allowed": true, "reason": why }),
        None => json!({ "allowed": false }),
    }
}

/// All that the caller may do in a namespace.
fn rules(call: &Call, namespace: &str) -> Value {
    let mut rules = Bound::of(&call.app).rules_for(&call.user, namespace);
    if call.user.is_superuser() {
        rules.insert(0, json!({ "verbs": ["*"], "nonResourceURLs": ["*"] }));
        rules.insert(0, json!({ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }));
    }
    let (other, resource): (Vec<Value>, Vec<Value>) =
        rules.into_iter().partition(|rule| rule.get("nonResourceURLs").is_some());
    json!({ "resourceRules": resource, "nonResourceRules": other, "incomplete": false })
}

/// Reviews are never stored, so there is nothing to decide about them.
struct ReviewStrategy;

impl Strategy for ReviewStrategy {
    fn validate_name(&self, _name: &str, _is_prefix: bool) -> Vec<String> {
        Vec::new()
    }

    fn columns(&self) -> &'static [Column] {
        table::NAME_AND_AGE
    }

    fn row(&self, object: &Json, now: Timestamp) -> Vec<Value> {
        table::name_and_age(object, now)
    }
}
