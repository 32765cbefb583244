//! Connections to whoever is to be reached.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// Where somebody listens: a name or an address, and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The name or address.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// Whether and how the other end has to prove itself.
#[derive(Clone)]
pub enum Trust {
    /// It has not: for networks in which nobody else can listen.
    Anyone,
    /// With a certificate that this accepts.
    Tls(Arc<rustls::ClientConfig>),
}

/// How long it may take to connect.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// How long what was sent may go unacknowledged by the other end's system, in milliseconds.
const UNACKNOWLEDGED_MAX: u32 = 10_000;

/// A connection, with TLS or without.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Connects.
pub(crate) async fn dial(address: &Address, trust: &Trust) -> io::Result<Box<dyn Stream>> {
    let Address { host, port } = address;
    let connecting = TcpStream::connect((host.as_str(), *port));
    let stream = timeout(CONNECT_WITHIN, connecting).await??;
    // A frame is small and waited for.
    stream.set_nodelay(true)?;
    let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, UNACKNOWLEDGED_MAX);
    match trust {
        Trust::Anyone => Ok(Box::new(stream)),
        Trust::Tls(config) => {
            let name = ServerName::try_from(host.clone())
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
            let connector = TlsConnector::from(Arc::clone(config));
            let stream = timeout(CONNECT_WITHIN, connector.connect(name, stream)).await??;
            Ok(Box::new(stream))
        }
    }
}
