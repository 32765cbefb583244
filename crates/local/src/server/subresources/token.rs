//! POST of a TokenRequest: a service account gets a token.

use axum::{body::Body, response::Response};
use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use lockstep_api::{
    ErrorList, FieldError, Path, Status,
    decode::{self, Gvk},
    json::{self, at, list, text},
    strategy::Json,
    tokens::{self, Bound, Claims, Grant, Kind, Reference},
};
use lockstep_store::Object;
use serde_json::{Value, json};

use crate::server::{
    call::{Address, Call},
    options::MutationOptions,
    respond,
};

const KIND: Gvk<'static> =
    Gvk { group: "authentication.k8s.io", version: "v1", kind: "TokenRequest" };

/// Issues a token for the account of the path.
pub(crate) async fn issue(call: &Call, address: &Address, body: Body) -> Result<Response, Status> {
    let output = call.plain_output()?;
    let body = call.json_body(body).await?;
    let options = MutationOptions::read(&call.query, "CreateOptions")?;
    let decode::Decoded { object: mut request, warnings } =
        decode::kind(KIND, &body, options.field_validation)?;
    check_names(&request, address)?;
    let account = call.app.cluster.get(&address.resource, address.namespace(), &address.name)?;
    let asked = text(&request, &["metadata", "uid"]);
    if !asked.is_empty() && asked != &*account.meta.uid {
        let why = format!(
            "the UID in the token request ({asked}) does not match the UID of the service account \
             ({})",
            account.meta.uid
        );
        return Err(Status::conflict_on("TokenRequest.authentication.k8s.io", &address.name, &why));
    }
    let seconds = json::integer(&request, &["spec", "expirationSeconds"]);
    let seconds = seconds.unwrap_or(tokens::SECONDS_DEFAULT);
    let errors = tokens::validate_seconds(seconds);
    if !errors.is_empty() {
        return Err(invalid("", &errors));
    }
    let mut audiences: Vec<String> = list(&request, &["spec", "audiences"])
        .iter()
        .filter_map(|audience| audience.as_str().map(str::to_owned))
        .collect();
    if audiences.is_empty() {
        audiences.push(tokens::ISSUER.to_owned());
    }
    let bound = match at(&request, &["spec", "boundObjectRef"]).and_then(Value::as_object) {
        Some(wanted) => Some(bound(call, address, wanted)?),
        None => None,
    };
    let now = Timestamp::now();
    let grant = Grant {
        namespace: address.namespace().to_owned(),
        account: reference(&account),
        bound,
        audiences: audiences.clone(),
        seconds,
    };
    let claims = Claims::new(grant, uuid::Uuid::new_v4().to_string(), now);
    fill(&mut request, &account, &audiences, seconds, now);
    request.insert(
        "status".to_owned(),
        json!({
            "token": call.app.signer.sign(&claims),
            "expirationTimestamp": whole(
                now.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
            ),
        }),
    );
    let mut response = respond::value(StatusCode::CREATED, &Value::Object(request), output);
    respond::add_warnings(response.headers_mut(), &warnings);
    Ok(response)
}

/// What the body says about itself must be what the path says.
fn check_names(request: &Json, address: &Address) -> Result<(), Status> {
    let parts = [
        ("name", address.name.as_str(), "must match the service account name if specified"),
        ("namespace", address.namespace(), "must match the service account namespace if specified"),
    ];
    for (key, wanted, why) in parts {
        let given = text(request, &["metadata", key]);
        if !given.is_empty() && given != wanted {
            let path = Path::new("metadata").child(key);
            let errors = vec![FieldError::invalid(&path, given, why)];
            return Err(invalid(&address.name, &errors));
        }
    }
    Ok(())
}

fn invalid(name: &str, errors: &ErrorList) -> Status {
    Status::invalid_kind((KIND.group, KIND.kind), name, errors)
}

/// What the token is to end with.
fn bound(call: &Call, address: &Address, wanted: &Json) -> Result<Bound, Status> {
    let (api_version, kind) = (text(wanted, &["apiVersion"]), text(wanted, &["kind"]));
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let (name, namespace) = (text(wanted, &["name"]), address.namespace());
    let found = match (group, kind) {
        ("", "Pod") => find(call, Kind::Pod, namespace, name)?,
        ("", "Secret") => find(call, Kind::Secret, namespace, name)?,
        ("", "Node") => find(call, Kind::Node, "", name)?,
        _ => {
            return Err(Status::bad_request(format!(
                "cannot bind token to object of type {group}/{version}, Kind={kind}"
            )));
        }
    };
    let bound = match kind {
        "Secret" => Bound::Secret(reference(&found)),
        "Node" => Bound::Node(reference(&found)),
        _ => {
            let pod = found.json();
            if text(&pod, &["spec", "serviceAccountName"]) != address.name {
                return Err(Status::bad_request(format!(
                    "cannot bind token for serviceaccount {:?} to pod running with different \
                     serviceaccount name.",
                    address.name
                )));
            }
            let node = match text(&pod, &["spec", "nodeName"]) {
                "" => None,
                // A node that is gone is still told by its name.
                node => Some(match find(call, Kind::Node, "", node) {
                    Ok(found) => reference(&found),
                    Err(_) => Reference { name: node.to_owned(), uid: String::new() },
                }),
            };
            Bound::Pod { pod: reference(&found), node }
        }
    };
    let uid = text(wanted, &["uid"]);
    if !uid.is_empty() && uid != &*found.meta.uid {
        let why = format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The \
             object might have been deleted and then recreated"
        );
        return Err(Status::conflict_on(kind, name, &why));
    }
    Ok(bound)
}

fn find(
    call: &Call,
    kind: Kind,
    namespace: &str,
    name: &str,
) -> Result<std::sync::Arc<Object>, Status> {
    let catalog = call.app.cluster.catalog();
    let registry = catalog.registry();
    let resource = registry.get("", "v1", kind.plural()).ok_or_else(Status::no_such_resource)?;
    call.app.cluster.get(resource, namespace, name)
}

fn reference(object: &Object) -> Reference {
    Reference { name: object.meta.name.to_string(), uid: object.meta.uid.to_string() }
}

/// Writes into the request what it leaves open.
fn fill(request: &mut Json, account: &Object, audiences: &[String], seconds: i64, now: Timestamp) {
    let spec = json::object_mut(request, "spec");
    spec.insert("audiences".to_owned(), json!(audiences));
    spec.insert("expirationSeconds".to_owned(), seconds.into());
    spec.entry("boundObjectRef").or_insert(Value::Null);
    let meta = json::object_mut(request, "metadata");
    let own = [
        ("name", account.meta.name.to_string()),
        ("namespace", account.meta.namespace.to_string()),
        ("uid", account.meta.uid.to_string()),
        ("creationTimestamp", whole(now)),
    ];
    meta.extend(own.map(|(key, value)| (key.to_owned(), value.into())));
    request.insert("kind".to_owned(), KIND.kind.into());
    request.insert("apiVersion".to_owned(), format!("{}/{}", KIND.group, KIND.version).into());
}

/// A time without fractions of a second.
fn whole(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}
