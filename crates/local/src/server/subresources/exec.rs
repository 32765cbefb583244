//! Runs a command in a container.

use std::sync::Arc;

use axum::response::Response;
use lockstep_api::Status;
use tokio::sync::OwnedSemaphorePermit;

use super::{pod, remote};
use crate::{
    node::runtime::{ExecError, talk},
    server::{
        call::{Address, Call},
        websocket::Offer,
    },
};

/// Runs a command whose streams are the channels of a WebSocket.
pub(super) fn exec(
    call: &Call,
    address: &Address,
    permit: Option<OwnedSemaphorePermit>,
) -> Result<Response, Status> {
    let pod = pod::read(call, address)?;
    let container = pod::container(&pod, call.query.text("container"))?.name.clone();
    let place = pod::running(call, &pod, &container)?;
    let is_terminal = call.query.flag("tty");
    let offer = Offer::of(call, &remote::PROTOCOLS)?;
    let streams = remote::streams(&call.query, is_terminal)?;
    let command: Vec<String> = call.query.all("command").map(str::to_owned).collect();
    if command.is_empty() {
        return Err(Status::bad_request("you must specify at least one command for the container"));
    }
    let (app, protocol) = (Arc::clone(&call.app), offer.protocol);
    Ok(offer.accept(move |socket| async move {
        let _held = permit;
        let talk = match &place {
            Some((dirs, id)) => talk::run(dirs, id, command, is_terminal, streams).await,
            None => Err(ExecError::NotRunning { id: container.clone() }),
        };
        let talk = talk.map_err(|error| remote::refusal(&error, &container));
        remote::serve(app, socket, protocol, talk).await;
    }))
}
