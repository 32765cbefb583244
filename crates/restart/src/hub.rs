//! Where orchestrators listen: one hub for a process, one gang for each job it leads.

mod connection;
mod gang;
mod mailbox;
mod roster;
mod store;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::Interest;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

use crate::ticket::Key;
use crate::wire::{Hello, PROTOCOL, Refusal};
pub(crate) use connection::SILENT_MAX;
pub use gang::{Description, Gang, Happening};
pub(crate) use gang::{Input, Way};
pub(crate) use mailbox::Carrier;
pub use roster::Seat;
pub use store::{Memory, RecordStore, Written};

/// How many connections may be waiting to be taken: as many as the system allows by default.
const BACKLOG: u32 = 4096;
/// How many connections may be there that have not said who they are.
const STRANGERS_MAX: usize = 2048;
/// How long one may take to do so.
const HELLO_WITHIN: Duration = Duration::from_secs(10);
/// How many of them may be in a handshake of TLS. Thousands at once would all come to its end at
/// the same time, and that later than they wait for it: each costs a good part of a millisecond.
const HANDSHAKES_MAX: usize = 128;
/// How long one may have waited for its turn. An agent gives up after five seconds
/// ([`crate::agent`]): a handshake that is begun shortly before that is wasted, and if the oldest
/// are always served first, so are all of them. It comes again, to the end of the line.
const TURN_WITHIN: Duration = Duration::from_secs(3);

/// Lets this process have as many connections as it may, and says how many files that is: most
/// machines start programs with a limit of a thousand, which they may raise. What it starts is
/// given the same limit.
pub fn raise_open_files() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => raised.current,
        Err(error) => {
            tracing::warn!(%error, "the limit of open files stays {:?}", limit.current);
            limit.current
        }
    }
}

/// Where agents connect to.
pub struct Hub {
    key: Key,
    gangs: RwLock<HashMap<String, Gang>>,
    strangers: Semaphore,
    handshakes: Semaphore,
}

impl Hub {
    /// A hub that takes tickets of this key.
    pub fn new(key: Key) -> Arc<Self> {
        Arc::new(Self {
            key,
            gangs: RwLock::default(),
            strangers: Semaphore::new(STRANGERS_MAX),
            handshakes: Semaphore::new(HANDSHAKES_MAX),
        })
    }

    /// The key that it takes tickets of.
    pub const fn key(&self) -> &Key {
        &self.key
    }

    /// From now on agents of this job are let in.
    pub fn add(&self, job: &str, gang: Gang) {
        self.gangs.write().unwrap_or_else(PoisonError::into_inner).insert(job.to_owned(), gang);
    }

    /// From now on they are not, unless somebody else leads the job by now.
    pub fn remove(&self, job: &str, gang: &Gang) {
        let mut gangs = self.gangs.write().unwrap_or_else(PoisonError::into_inner);
        if gangs.get(job).is_some_and(|led| led.is(gang)) {
            gangs.remove(job);
        }
    }

    /// A socket that listens for agents.
    pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    }

    /// Takes connections, for ever.
    pub async fn serve(self: Arc<Self>, listener: TcpListener, tls: Option<TlsAcceptor>) {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    let hub = Arc::clone(&self);
                    let tls = tls.clone();
                    tokio::spawn(async move { hub.welcome(stream, peer, tls).await });
                }
                Err(error) => {
                    // Out of descriptors, most likely: some have to be closed first.
                    tracing::warn!(%error, "an agent could not connect");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    async fn welcome(&self, stream: TcpStream, peer: SocketAddr, tls: Option<TlsAcceptor>) {
        // A frame is small and waited for.
        let _ = stream.set_nodelay(true);
        let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, 10_000);
        let served = match tls {
            None => connection::serve(self, stream).await,
            Some(tls) => self.welcome_encrypted(stream, &tls).await,
        };
        if let Err(error) = served {
            tracing::debug!(%peer, %error, "a connection ended");
        }
    }

    async fn welcome_encrypted(&self, stream: TcpStream, tls: &TlsAcceptor) -> io::Result<()> {
        let came = Instant::now();
        // In turn, and with one permit for all of it: whoever has been through the costly part is
        // not sent away because others wait for it.
        let Ok(permit) = self.strangers.acquire().await else { return Ok(()) };
        let accepting = async {
            // Who says nothing takes no turn.
            stream.ready(Interest::READABLE).await?;
            let _turn = self.handshakes.acquire().await;
            let is_gone = stream.ready(Interest::READABLE).await?.is_read_closed();
            if is_gone || came.elapsed() > TURN_WITHIN {
                // Thousands may have given up meanwhile, and each would cost as much.
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            tls.accept(stream).await
        };
        let stream = tokio::time::timeout(HELLO_WITHIN, accepting).await??;
        connection::serve_encrypted(self, stream, permit).await
    }

    /// Which place of which gang an agent speaks for.
    fn admit(&self, hello: &Hello) -> Result<(Gang, Seat), Refusal> {
        admit(&self.key, hello, |job| {
            self.gangs.read().unwrap_or_else(PoisonError::into_inner).get(job).cloned()
        })
    }
}

/// Which place of which gang a ticket and a pod speak for.
pub(crate) fn admit(
    key: &Key,
    hello: &Hello,
    gang: impl FnOnce(&str) -> Option<Gang>,
) -> Result<(Gang, Seat), Refusal> {
    if hello.protocol != PROTOCOL {
        return Err(Refusal::Protocol(PROTOCOL));
    }
    let ticket = key.check(&hello.ticket, SystemTime::now()).ok_or(Refusal::Ticket)?;
    let gang = gang(&ticket.job).ok_or(Refusal::Job)?;
    let seat = gang.seat(&hello.pod).ok_or(Refusal::Pod)?;
    if seat.generation != ticket.generation {
        return Err(Refusal::Ticket);
    }
    Ok((gang, seat))
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::{PrivateKeyDer, ServerName};
    use tokio_rustls::TlsConnector;

    use super::*;

    fn both_ends() -> (TlsAcceptor, TlsConnector) {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let server = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let mut roots = rustls::RootCertStore::empty();
        roots.add(made.cert.der().clone()).unwrap();
        let client = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        (Arc::new(server).into(), Arc::new(client).into())
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_waited_too_long_for_a_handshake_is_sent_away_before_it() {
        let (acceptor, connector) = both_ends();
        let hub = Hub::new(Key::new(&[7; 32]));
        let listener = Hub::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(Arc::clone(&hub).serve(listener, Some(acceptor)));
        let all = u32::try_from(HANDSHAKES_MAX).unwrap();
        for (waits, is_served) in [(TURN_WITHIN / 2, true), (TURN_WITHIN * 2, false)] {
            let turns = hub.handshakes.acquire_many(all).await.unwrap();
            let stream = TcpStream::connect(address).await.unwrap();
            let name = ServerName::try_from("127.0.0.1").unwrap();
            let shaking = tokio::spawn(connector.connect(name, stream));
            tokio::time::sleep(waits).await;
            assert!(!shaking.is_finished(), "others are at it");
            drop(turns);
            assert_eq!(shaking.await.unwrap().is_ok(), is_served, "after {waits:?}");
        }
    }
}
