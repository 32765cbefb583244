//! Where the agents connect to.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;

/// How many connections come from one address. A port is not free again for a minute after its
/// connection was closed from here: there must be many more of them than are made in that time.
const PER_ADDRESS: u32 = 500;

pub(super) struct Target {
    pub(super) address: SocketAddr,
    pub(super) ticket: String,
    pub(super) tls: Option<TlsConnector>,
}

impl Target {
    pub(super) fn new(address: &str, ca: &str, ticket: &str) -> Self {
        let tls = (ca != "-").then(|| connector(Path::new(ca)));
        Self { address: address.parse().unwrap(), ticket: ticket.to_owned(), tls }
    }
}

/// Connects the client of this number, from one of several addresses of this machine.
pub(in super::super) async fn from_address(
    number: u32,
    address: SocketAddr,
) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    let own = u8::try_from(2 + number / PER_ADDRESS).unwrap();
    socket.bind((Ipv4Addr::new(127, 0, 0, own), 0).into())?;
    let stream = socket.connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn connector(ca: &Path) -> TlsConnector {
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(ca).unwrap() {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}
