//! Where the agents of workers that restart in place find their orchestrator.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use lockstep_operator::{
    jobset::Keys,
    process::{AgentSource, Door, Way, Wiring},
};
use lockstep_restart::{hub::Hub, place::Place, ticket::Key};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::{Options, StartError};
use crate::{auth::Token, files, tls::Authority};

/// Listens for agents, if there is a program that can be one. With a data folder the port stays the
/// same, as do the certificate and the key of the tickets: containers that outlive this process
/// find the next one.
pub(super) fn open(
    options: &Options,
    (authority, token): (&Authority, &Token),
    now: Timestamp,
) -> Result<Option<Door>, StartError> {
    let Some(program) = &options.agent else { return Ok(None) };
    let listener = listen(options.data_dir.as_deref())?;
    let address = listener.local_addr().map_err(StartError::Node)?;
    let tls = authority.server_config(&[], &[], now)?;
    // What the administrator's token is made of is secret already.
    let key = Key::new(format!("in-place-restart {}", token.secret()).as_bytes());
    let hub = Hub::new(key.clone());
    let keys = Keys { tickets: key, bus_password: None };
    let serving = Arc::clone(&hub).serve(listener, Some(TlsAcceptor::from(tls)));
    let wiring = Wiring {
        way: Way::Orchestrator { address: address.to_string(), ca: authority.pem().to_owned() },
        agent: AgentSource::Path(program.to_string_lossy().into_owned()),
    };
    Ok(Some(Door { place: Place::Hub(hub), keys, wiring, serving: Some(tokio::spawn(serving)) }))
}

fn listen(folder: Option<&Path>) -> Result<TcpListener, StartError> {
    let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let bind = |port| Hub::bind(at(port));
    let file = folder.map(|folder| folder.join("in-place-restart-port"));
    let kept = match &file {
        Some(file) => files::read_if_present(file)?.and_then(|text| text.trim().parse().ok()),
        None => None,
    };
    let listener = kept.map_or_else(|| bind(0), |port| bind(port).or_else(|_| bind(0)));
    let listener = listener.map_err(|source| StartError::Listen { address: at(0), source })?;
    if let Some(file) = &file {
        let port = listener.local_addr().map_err(StartError::Node)?.port();
        files::write_private(file, port.to_string().as_bytes())?;
    }
    Ok(listener)
}
