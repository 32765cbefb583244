//! What is served: the legacy lists, or all of it at once for clients that ask for that.

use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use lockstep_api::discovery;

use super::{
    App,
    negotiate::{self, Output},
    respond,
};

/// Answers `/api`, `/api/v1`, `/apis`, `/apis/{group}` and `/apis/{group}/{version}`; nothing when
/// there is no such group or version.
pub(crate) fn answer(
    app: &App,
    headers: &HeaderMap,
    segments: &[&str],
    output: Output,
) -> Option<Response> {
    let catalog = app.cluster.catalog();
    let registry = catalog.registry();
    if let (["api" | "apis"], Some(asked)) = (segments, negotiate::aggregated_discovery(headers)) {
        let value = match segments[0] {
            "api" => discovery::aggregated_core(registry, asked),
            _ => discovery::aggregated_groups(registry, asked),
        };
        let body = Bytes::from(value.to_string());
        return Some(respond::typed(StatusCode::OK, asked.content_type(), body));
    }
    let stored = |table: &str| catalog.stored(table).map(AsRef::as_ref);
    let value = match segments {
        ["api"] => {
            let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
            discovery::api_versions(registry, host.unwrap_or_default())
        }
        ["api", version] => discovery::api_resource_list(registry, "", version, stored)?,
        ["apis"] => discovery::api_group_list(registry),
        ["apis", group] => discovery::api_group(registry, group)?,
        ["apis", "", _] => return None,
        ["apis", group, version] => discovery::api_resource_list(registry, group, version, stored)?,
        _ => return None,
    };
    Some(respond::value(StatusCode::OK, &value, output))
}
