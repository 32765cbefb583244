//! Talks to the main process of a container.

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

/// Makes the streams of the main process channels of a WebSocket.
pub(super) fn attach(
    call: &Call,
    address: &Address,
    permit: Option<OwnedSemaphorePermit>,
) -> Result<Response, Status> {
    let pod = pod::read(call, address)?;
    let spec = pod::container(&pod, call.query.text("container"))?;
    let (container, is_terminal) = (spec.name.clone(), spec.tty == Some(true));
    let place = pod::running(call, &pod, &container)?;
    let offer = Offer::of(call, &remote::PROTOCOLS)?;
    let streams = remote::streams(&call.query, is_terminal)?;
    let (app, protocol) = (Arc::clone(&call.app), offer.protocol);
    Ok(offer.accept(move |socket| async move {
        let _held = permit;
        let talk = match &place {
            Some((dirs, id)) => talk::attach(dirs, id, streams).await,
            None => Err(ExecError::NotRunning { id: container.clone() }),
        };
        let talk = talk.map_err(|error| remote::refusal(&error, &container));
        remote::serve(app, socket, protocol, talk).await;
    }))
}
