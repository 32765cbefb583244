//! Answers: bytes that are stored are sent as they are, unless a person or YAML was asked for.

use axum::{body::Body, response::Response};
use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use lockstep_api::Resource;
use serde_json::Value;

use super::negotiate::{Encoding, Output};

/// Upstream's limit on the text of all warnings of one answer: proxies cut longer headers.
const WARNINGS_LENGTH_MAX: usize = 4096;

/// An answer with a JSON value.
pub(crate) fn value(code: StatusCode, value: &Value, output: Output) -> Response {
    let text = match (output.encoding, output.is_pretty) {
        (Encoding::Yaml, _) => serde_saphyr::to_string(value).unwrap_or_default(),
        (Encoding::Json, true) => serde_json::to_string_pretty(value).unwrap_or_default(),
        (Encoding::Json, false) => value.to_string(),
    };
    typed(code, output.content_type(), Bytes::from(text))
}

/// An answer with encoded JSON.
pub(crate) fn json(code: StatusCode, bytes: Bytes, output: Output) -> Response {
    if output.encoding == Encoding::Json && !output.is_pretty {
        return typed(code, output.content_type(), bytes);
    }
    let parsed: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    value(code, &parsed, output)
}

/// An answer of a media type.
pub(crate) fn typed(code: StatusCode, content_type: &'static str, body: Bytes) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// What is written in front of a stored object, which begins with `{` and carries neither.
pub(crate) fn type_header(resource: &Resource) -> Bytes {
    typed_header(&resource.api_version(), &resource.kind)
}

/// `{"apiVersion":"...","kind":"...",`
pub(crate) fn typed_header(api_version: &str, kind: &str) -> Bytes {
    Bytes::from(format!(
        "{{\"apiVersion\":{},\"kind\":{},",
        Value::from(api_version),
        Value::from(kind)
    ))
}

/// Writes a stored object as it is served.
pub(crate) fn put_with_type(to: &mut BytesMut, type_header: &[u8], stored: &[u8]) {
    to.put_slice(type_header);
    to.put_slice(stored.strip_prefix(b"{").unwrap_or(stored));
}

/// Adds `Warning: 299 - "text"` headers, each text once, not more than clients take.
pub(crate) fn add_warnings(headers: &mut HeaderMap, warnings: &[String]) {
    let mut written = 0;
    let mut seen: Vec<&str> = Vec::new();
    for text in warnings {
        if seen.contains(&text.as_str()) {
            continue;
        }
        seen.push(text);
        let mut quoted = String::from("299 - \"");
        for character in text.chars().filter(|c| !c.is_control()) {
            if matches!(character, '"' | '\\') {
                quoted.push('\\');
            }
            quoted.push(character);
        }
        quoted.push('"');
        written += quoted.len();
        if written > WARNINGS_LENGTH_MAX {
            return;
        }
        if let Ok(value) = HeaderValue::from_bytes(quoted.as_bytes()) {
            headers.append(HeaderName::from_static("warning"), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_quoted_deduplicated_and_bounded() {
        let mut headers = HeaderMap::new();
        let texts = ["unknown field \"a\\b\"".to_owned(), "x\ny".to_owned(), "x\ny".to_owned()];
        add_warnings(&mut headers, &texts);
        let got: Vec<_> = headers.get_all("warning").iter().map(|v| v.to_str().unwrap()).collect();
        assert_eq!(got, [r#"299 - "unknown field \"a\\b\"""#, r#"299 - "xy""#]);
        let mut headers = HeaderMap::new();
        let many: Vec<String> = (0..1000).map(|i| format!("warning number {i}")).collect();
        add_warnings(&mut headers, &many);
        let length: usize = headers.get_all("warning").iter().map(HeaderValue::len).sum();
        assert!(length <= WARNINGS_LENGTH_MAX);
    }

    #[test]
    fn stored_objects_get_their_type_in_front() {
        let header = typed_header("batch/v1", "Job");
        let mut served = BytesMut::new();
        put_with_type(&mut served, &header, br#"{"metadata":{}}"#);
        assert_eq!(&served[..], br#"{"apiVersion":"batch/v1","kind":"Job","metadata":{}}"#);
    }
}
