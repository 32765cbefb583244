//! PATCH.

use axum::{body::Body, response::Response};
use lockstep_api::Status;

use crate::server::{
    call::{Address, Call},
    error::wrong_method,
};

/// Patches.
pub(crate) async fn patch(
    _call: &Call,
    _address: &Address,
    _sub: Option<&str>,
    _body: Body,
) -> Result<Response, Status> {
    Err(wrong_method())
}
