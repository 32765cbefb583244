//! What can be done with objects.

mod create;
mod delete;
mod get;
mod list;
mod patch;
mod update;
mod watch;

pub(crate) use create::create;
pub(crate) use delete::{asked, delete, delete_collection};
pub(crate) use get::{fresh, get};
pub(crate) use list::list;
pub(crate) use patch::{APPLY, JSON, MERGE, patch};
pub(crate) use update::update;
pub(crate) use watch::watch;

use axum::response::Response;
use http::StatusCode;
use lockstep_store::Object;

use super::{call::Call, present::Presenter, respond};

/// The answer to a request about one object: the object as it is now, and what the user should
/// know.
pub(crate) fn shown(
    call: &Call,
    presenter: &Presenter,
    code: StatusCode,
    object: &Object,
    warnings: &[String],
) -> Response {
    let mut response = respond::json(code, presenter.single(object), call.output);
    respond::add_warnings(response.headers_mut(), warnings);
    response
}
