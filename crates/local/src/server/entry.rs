//! The way of every request: is the caller who it should be, what is it about, who answers, and
//! what is noted about it.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Instant};

use axum::{
    body::Body,
    extract::{Request, State},
    response::Response,
};
use futures::FutureExt;
use http::{HeaderValue, Method, header};
use hyper::upgrade::OnUpgrade;
use lockstep_api::{Status, rbac};
use tracing::error;

use super::{
    App, authenticate, authorize,
    authorize::Bound,
    call::Call,
    dispatch,
    error::{failure, response},
    limits::URI_BYTES_MAX,
    metrics::Subject,
    negotiate::{self, Output},
    nonresource,
    query::Query,
    request::{Target, Verb, target},
    subresources,
};
use crate::auth::{User, bearer, disguise, refuse_browsers};

/// Answers one request.
pub(crate) async fn handle(State(app): State<Arc<App>>, request: Request) -> Response {
    let started = Instant::now();
    let method = request.method().clone();
    let query = Query::parse(request.uri().query().unwrap_or_default());
    let target = target(&method, request.uri().path(), &query);
    let subject = Subject::of(&app, &target);
    let answer = AssertUnwindSafe(answer(&app, request, query, target)).catch_unwind().await;
    let mut response = answer.unwrap_or_else(|_| {
        error!(%method, "a request made its handler panic");
        response(&Status::internal("the server made a mistake; see its log"), Output::JSON)
    });
    let headers = response.headers_mut();
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache, private"));
    if let Ok(id) = HeaderValue::from_str(&uuid::Uuid::new_v4().to_string()) {
        headers.insert("audit-id", id);
    }
    if method == Method::HEAD {
        *response.body_mut() = Body::empty();
    }
    app.metrics.answered(subject, response.status().as_u16(), started.elapsed());
    response
}

async fn answer(app: &Arc<App>, mut request: Request, query: Query, target: Target) -> Response {
    let user = match identify(app, &mut request) {
        Ok(user) => user,
        Err(status) => return response(&status, Output::JSON),
    };
    if let Err(status) = authorize::check(app, &user.user, request.method(), &target) {
        return response(&status, Output::JSON);
    }
    let path = match target {
        Target::Malformed => {
            let status = Status::bad_request("the path of the request cannot be decoded");
            return response(&status, Output::JSON);
        }
        Target::Other(segments) => {
            return nonresource::answer(app, &request, &query, &segments);
        }
        Target::Resource(path) => path,
    };
    let output = match negotiate::output(request.headers(), &query) {
        Ok(output) => output,
        // A log is plain text, whatever else the client can read.
        Err(_) if path.subresource.as_deref() == Some("log") => Output::JSON,
        Err(_) if subresources::is_connection(&path) => Output::JSON,
        Err(status) => return response(&status, Output::JSON),
    };
    let is_stream = path.verb == Verb::Watch
        || (path.subresource.is_some() && query.flag("follow"))
        || subresources::is_connection(&path);
    if is_stream && app.is_stopping() {
        // A stream that ends at once would be opened again at once; an error makes clients wait.
        return response(&Status::unavailable("the server is shutting down"), output);
    }
    // In-process callers are part of the server: making them wait could stall it.
    let permit = match user.is_local {
        true => None,
        false => match app.gate.enter(is_stream) {
            Ok(permit) => Some(permit),
            Err(status) => return response(&status, output),
        },
    };
    let (mut parts, body) = request.into_parts();
    let upgrade = parts.extensions.remove::<OnUpgrade>();
    let component = match user.is_local {
        true => user.user.name.strip_prefix("system:").map(str::to_owned),
        false => None,
    };
    let (app, user, headers) = (Arc::clone(app), user.user, parts.headers);
    let call = Call { app, user, component, query, headers, output, upgrade };
    match dispatch::resource(call, path, body, permit).await {
        Ok(answer) => answer,
        Err(status) => response(&status, output),
    }
}

struct Caller {
    user: User,
    is_local: bool,
}

fn identify(app: &App, request: &mut Request) -> Result<Caller, Status> {
    if let Some(user) = request.extensions_mut().remove::<User>() {
        return Ok(Caller { user, is_local: true });
    }
    let length = request.uri().path_and_query().map_or(0, |text| text.as_str().len());
    if length > URI_BYTES_MAX {
        return Err(failure(414, "RequestURITooLong", "the path of the request is too long"));
    }
    if bearer(request.headers())?.is_none() {
        refuse_browsers(request.uri(), request.headers(), &app.names)?;
    }
    let user = authenticate::caller(app, request.uri().path(), request.headers())?;
    let user = match disguise(request.headers())? {
        None => user,
        Some(disguise) => {
            for part in &disguise.parts {
                let request = rbac::Request::Resource {
                    verb: "impersonate",
                    group: part.group,
                    resource: part.resource,
                    subresource: &part.subresource,
                    namespace: &part.namespace,
                    name: &part.name,
                };
                if Bound::of(app).allows(&user, &request).is_none() {
                    return Err(authorize::refused(&user, &request));
                }
            }
            disguise.user
        }
    };
    Ok(Caller { user, is_local: false })
}
