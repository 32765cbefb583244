//! Everything that is not about objects: health, version, metrics, and what there is.

use std::sync::Arc;

use axum::{extract::Request, response::Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use lockstep_api::{KUBERNETES_VERSION, tokens::ISSUER};
use serde_json::json;

use super::{
    App, discovery,
    error::{self, page_not_found, wrong_method},
    negotiate::{self, Output},
    query::Query,
    respond,
};
use crate::auth::signer::ALGORITHM;

/// Answers a request that is not about objects.
pub(crate) fn answer(
    app: &Arc<App>,
    request: &Request,
    query: &Query,
    segments: &[String],
) -> Response {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let output = negotiate::output(request.headers(), query).unwrap_or(Output::JSON);
    let found = match segments.as_slice() {
        [] => Some(index(output)),
        ["version"] => Some(version(output)),
        ["healthz" | "livez" | "readyz"] => Some(health(app, segments[0], query)),
        ["healthz" | "livez" | "readyz", check] => single_check(app, check),
        ["metrics"] => Some(respond::typed(
            StatusCode::OK,
            "text/plain; version=0.0.4; charset=utf-8",
            Bytes::from(app.metrics.text()),
        )),
        ["api" | "apis", ..] => discovery::answer(app, request.headers(), &segments, output),
        [".well-known", "openid-configuration"] => Some(issuer(request.headers())),
        ["openid", "v1", "jwks"] => {
            let keys = Bytes::from(app.signer.public_keys().to_string());
            Some(kept(respond::typed(StatusCode::OK, "application/jwk-set+json", keys)))
        }
        ["openapi", "v2"] => Some(app.documents.swagger(&app.cluster.catalog(), request.headers())),
        ["openapi", "v3", path @ ..] => {
            let catalog = app.cluster.catalog();
            app.documents.answer(&catalog, request.headers(), query, path, output)
        }
        _ => None,
    };
    match found {
        Some(_) if !is_read => error::response(&wrong_method(), output),
        Some(response) => response,
        None if segments[0] == "api" || is_group_served(app, &segments) => {
            error::response(&lockstep_api::Status::no_such_resource(), output)
        }
        None => page_not_found(),
    }
}

/// Whether a path is one below `/apis` of a group that is served.
fn is_group_served(app: &App, segments: &[&str]) -> bool {
    matches!(segments, ["apis", group, ..] if app.cluster.catalog().registry().has_group(group))
}

/// Who signs the tokens of service accounts, and where the key to check them is.
fn issuer(headers: &HeaderMap) -> Response {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let value = json!({
        "issuer": ISSUER,
        "jwks_uri": format!("https://{host}/openid/v1/jwks"),
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [ALGORITHM],
    });
    let body = Bytes::from(value.to_string());
    kept(respond::typed(StatusCode::OK, "application/json", body))
}

/// An answer that clients may keep for an hour.
fn kept(mut response: Response) -> Response {
    let hour = HeaderValue::from_static("public, max-age=3600");
    response.headers_mut().insert(header::CACHE_CONTROL, hour);
    response
}

fn index(output: Output) -> Response {
    let paths = [
        "/.well-known/openid-configuration",
        "/api",
        "/apis",
        "/healthz",
        "/livez",
        "/metrics",
        "/openapi/v2",
        "/openapi/v3",
        "/openid/v1/jwks",
        "/readyz",
        "/version",
    ];
    respond::value(StatusCode::OK, &json!({ "paths": paths }), output)
}

fn version(output: Output) -> Response {
    let mut numbers = KUBERNETES_VERSION.trim_start_matches('v').split('.');
    let platform = format!("{}/{}", std::env::consts::OS, go_architecture());
    let value = json!({
        "major": numbers.next(),
        "minor": numbers.next(),
        "gitVersion": format!("{KUBERNETES_VERSION}+lockstep"),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "rustc",
        "platform": platform,
    });
    respond::value(StatusCode::OK, &value, output)
}

/// The architecture by the name Go, and so every Kubernetes client, knows it.
pub(crate) fn go_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

const CHECKS: [&str; 2] = ["ping", "journal"];

fn is_healthy(app: &App, check: &str) -> bool {
    check != "journal" || app.cluster.read_only_reason().is_none()
}

fn health(app: &App, name: &str, query: &Query) -> Response {
    let excluded: Vec<&str> = query.all("exclude").collect();
    let verdict = |check: &str| match () {
        () if excluded.contains(&check) => format!("[+]{check} excluded: ok\n"),
        () if is_healthy(app, check) => format!("[+]{check} ok\n"),
        () => format!("[-]{check} failed: reason withheld\n"),
    };
    let report: String = CHECKS.into_iter().map(verdict).collect();
    let has_failed = report.contains("[-]");
    if has_failed {
        let report = format!("{report}{name} check failed\n");
        return text(StatusCode::INTERNAL_SERVER_ERROR, report);
    }
    match query.first("verbose") {
        None => text(StatusCode::OK, "ok".to_owned()),
        Some(_) => text(StatusCode::OK, format!("{report}{name} check passed\n")),
    }
}

fn single_check(app: &App, check: &str) -> Option<Response> {
    let check = CHECKS.into_iter().find(|&known| known == check)?;
    Some(match is_healthy(app, check) {
        true => text(StatusCode::OK, "ok".to_owned()),
        false => {
            let why = app.cluster.read_only_reason().unwrap_or_default();
            text(StatusCode::INTERNAL_SERVER_ERROR, format!("internal server error: {why}\n"))
        }
    })
}

fn text(code: StatusCode, text: String) -> Response {
    respond::typed(code, "text/plain; charset=utf-8", Bytes::from(text))
}
