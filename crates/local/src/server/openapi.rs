//! OpenAPI documents, with the headers that let clients keep them for a year.

use std::{
    io::Write,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use jiff::{Timestamp, ToSpan, fmt::rfc2822::DateTimePrinter, tz::TimeZone};
use lockstep_api::{Registry, openapi};
use lockstep_store::rest::Catalog;
use serde_json::Value;

use super::{
    negotiate::Output,
    query::Query,
    respond::{self, typed},
};

const JSON: &str = "application/json";
/// How the protobuf form of the version 2 document is called, and how clients ask for it: the name
/// once had a character that media types may not have.
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const PROTOBUF_OLD: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// The documents, made when somebody first asks for them, and again when kinds were defined.
#[derive(Default)]
pub(crate) struct Documents(Mutex<Option<Arc<Made>>>);

struct Made {
    catalog: Arc<Catalog>,
    index: Value,
    documents: Vec<Arc<Document>>,
    swagger: OnceLock<[Document; 2]>,
}

struct Document {
    path: String,
    hash: String,
    kind: &'static str,
    body: Bytes,
    compressed: OnceLock<Bytes>,
    /// Whether kinds are in it that users have defined.
    is_defined: bool,
}

impl Document {
    fn new(path: String, hash: String, kind: &'static str, body: impl Into<Bytes>) -> Self {
        let (body, compressed) = (body.into(), OnceLock::new());
        Self { path, hash, kind, body, compressed, is_defined: false }
    }
}

impl Documents {
    /// Answers `/openapi/v3` and `/openapi/v3/{path}`; nothing when there is no such document.
    pub(crate) fn answer(
        &self,
        catalog: &Arc<Catalog>,
        headers: &HeaderMap,
        query: &Query,
        path: &[&str],
        output: Output,
    ) -> Option<Response> {
        let made = self.of(catalog);
        if path.is_empty() {
            return Some(respond::value(StatusCode::OK, &made.index, output));
        }
        let path = path.join("/");
        let document = made.documents.iter().find(|document| document.path == path)?;
        Some(match query.first("hash") {
            // What was asked for is no longer what is there.
            Some(hash) if !hash.is_empty() && hash != document.hash => moved(document),
            given => found(document, headers, given.is_some()),
        })
    }

    /// Answers `/openapi/v2`.
    pub(crate) fn swagger(&self, catalog: &Arc<Catalog>, headers: &HeaderMap) -> Response {
        let made = self.of(catalog);
        let [json, protobuf] = made.swagger.get_or_init(|| swagger(catalog.registry()));
        let wants_protobuf = headers
            .get_all(header::ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .any(|value| value.contains(PROTOBUF) || value.contains(PROTOBUF_OLD));
        found(if wants_protobuf { protobuf } else { json }, headers, false)
    }

    /// The documents of a catalog.
    fn of(&self, catalog: &Arc<Catalog>) -> Arc<Made> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = last.as_ref().filter(|made| Arc::ptr_eq(&made.catalog, catalog)) {
            return Arc::clone(made);
        }
        let made = Arc::new(make(catalog, last.as_deref()));
        *last = Some(Arc::clone(&made));
        made
    }
}

/// Makes the documents of a catalog. Those of versions that nobody can define anything in are as
/// they were `before`.
fn make(catalog: &Arc<Catalog>, before: Option<&Made>) -> Made {
    let registry = catalog.registry();
    let known = |path: &str| before?.documents.iter().find(|document| document.path == path);
    let documents: Vec<Arc<Document>> = openapi::versions(registry)
        .into_iter()
        .map(|version| match known(&version.path()).filter(|it| !it.is_defined) {
            Some(document) if !version.is_defined(registry) => Arc::clone(document),
            _ => {
                let is_defined = version.is_defined(registry);
                let openapi::Document { path, hash, body } = openapi::document(registry, &version);
                Arc::new(Document { is_defined, ..Document::new(path, hash, JSON, body) })
            }
        })
        .collect();
    let pairs = documents.iter().map(|document| (&*document.path, &*document.hash));
    let index = openapi::index(pairs);
    Made { catalog: Arc::clone(catalog), index, documents, swagger: OnceLock::new() }
}

fn swagger(registry: &Registry) -> [Document; 2] {
    let openapi::v2::Swagger { hash, json, protobuf } = openapi::v2::document(registry);
    let tag = format!("{hash}-protobuf");
    [
        Document::new(String::new(), hash, JSON, json),
        Document::new(String::new(), tag, PROTOBUF, protobuf),
    ]
}

fn moved(document: &Document) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    let url = format!("/openapi/v3/{}?hash={}", document.path, document.hash);
    if let Ok(url) = HeaderValue::from_str(&url) {
        response.headers_mut().insert(header::LOCATION, url);
    }
    response
}

fn found(document: &Document, headers: &HeaderMap, is_pinned: bool) -> Response {
    let tag = format!("\"{}\"", document.hash);
    let is_known = headers
        .get(header::IF_NONE_MATCH)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|tags| tags.split(',').any(|one| one.trim() == tag || one.trim() == "*"));
    let wants_gzip = headers
        .get_all(header::ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.split(',').any(|one| one.trim().starts_with("gzip")));
    let mut response = match (is_known, wants_gzip) {
        (true, _) => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        }
        (false, true) => {
            let body = document.compressed.get_or_init(|| gzip(&document.body)).clone();
            let mut response = typed(StatusCode::OK, document.kind, body);
            let gzip = HeaderValue::from_static("gzip");
            response.headers_mut().insert(header::CONTENT_ENCODING, gzip);
            response
        }
        (false, false) => typed(StatusCode::OK, document.kind, document.body.clone()),
    };
    let to = response.headers_mut();
    to.insert(header::VARY, HeaderValue::from_static("Accept-Encoding, Accept"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        to.insert(header::ETAG, tag);
    }
    if is_pinned {
        // The hash is part of the address: what is there can never change.
        let immutable = HeaderValue::from_static("public, immutable");
        to.insert(header::CACHE_CONTROL, immutable);
        if let Some(expires) = in_a_year() {
            to.insert(header::EXPIRES, expires);
        }
    }
    response
}

fn in_a_year() -> Option<HeaderValue> {
    let at = Timestamp::now().to_zoned(TimeZone::UTC).checked_add(1.year()).ok()?;
    let text = DateTimePrinter::new().timestamp_to_rfc9110_string(&at.timestamp()).ok()?;
    HeaderValue::from_str(&text).ok()
}

fn gzip(body: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let written = encoder.write_all(body).and_then(|()| encoder.finish());
    Bytes::from(written.expect("compressing into memory cannot fail"))
}
