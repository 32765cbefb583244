//! Which Valkey, and connections to it.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, ConnectionAddr, ErrorKind, IntoConnectionInfo, ProtocolVersion,
    PushInfo, PushKind, RedisConnectionInfo, RedisError, Value,
};
use rustls::ClientConfig;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::dial::{Address, Trust, dial};

/// How long Valkey may take to answer. One that was stopped for less is only slow.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Why there is nothing to be had from Valkey.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody listens there, or not as expected.
    #[error("cannot connect to Valkey")]
    Connect(#[source] std::io::Error),
    /// It does not let this user in, or not do this. Waiting does not help.
    #[error("Valkey does not allow it")]
    Denied(#[source] RedisError),
    /// It did not answer, or something that was not expected.
    #[error("Valkey has not answered")]
    Answer(#[source] RedisError),
    /// It did not greet in time.
    #[error("Valkey says nothing")]
    Silent,
    /// The connection has ended.
    #[error("the connection to Valkey was lost")]
    Lost,
    /// More was said than there is room for: what is stored has to be read again.
    #[error("Valkey was faster than its reader")]
    Behind,
    /// What is stored is none of ours.
    #[error("the record in Valkey is not one of this version")]
    Garbled,
}

impl From<RedisError> for Error {
    fn from(error: RedisError) -> Self {
        let is_denied = match error.code() {
            Some(code) => ["WRONGPASS", "NOAUTH", "NOPERM"].contains(&code),
            None => {
                let kinds = [ErrorKind::AuthenticationFailed, ErrorKind::RESP3NotSupported];
                kinds.contains(&error.kind())
            }
        };
        if is_denied { Self::Denied(error) } else { Self::Answer(error) }
    }
}

/// What is wrong with the address of a Valkey.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadServer {
    /// It is no address. It is not repeated, since there may be a password in it.
    #[error(
        "the address of the bus cannot be understood: {0}; one looks like valkey://host:6379 or \
         valkeys://user:password@host:6379"
    )]
    Address(String),
    /// TLS is asked for, but not who may be trusted.
    #[error("the bus is to be reached with TLS: the certificates of its authority are needed")]
    NoAuthority,
    /// The other way round.
    #[error(
        "there are certificates for the bus, but it is to be reached without TLS: use valkeys://"
    )]
    NoTls,
}

/// A Valkey server, and how to get in.
#[derive(Clone)]
pub struct Server {
    address: Address,
    trust: Trust,
    settings: RedisConnectionInfo,
}

impl Server {
    /// The server at a URL: `valkey://` or `redis://`, with TLS `valkeys://` or `rediss://`; then
    /// who must have signed its certificate is needed too.
    pub fn new(url: &str, tls: Option<Arc<ClientConfig>>) -> Result<Self, BadServer> {
        let wrong = |why: &str| BadServer::Address(why.to_owned());
        let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("it has no scheme"))?;
        let trust = match (scheme, tls) {
            ("valkey" | "redis", None) => Trust::Anyone,
            ("valkeys" | "rediss", Some(tls)) => Trust::Tls(tls),
            ("valkey" | "redis", Some(_)) => return Err(BadServer::NoTls),
            ("valkeys" | "rediss", None) => return Err(BadServer::NoAuthority),
            _ => return Err(wrong("its scheme is not valkey or valkeys")),
        };
        if rest.contains(['?', '#']) {
            return Err(wrong("it has options"));
        }
        let parsed = format!("valkey://{rest}").into_connection_info();
        let parsed = parsed.map_err(|error| BadServer::Address(error.to_string()))?;
        let ConnectionAddr::Tcp(host, port) = parsed.addr().clone() else {
            return Err(wrong("it has no host"));
        };
        let settings = parsed
            .redis_settings()
            .clone()
            // One connection both listens and speaks.
            .set_protocol(ProtocolVersion::RESP3)
            .set_skip_set_lib_name();
        Ok(Self { address: Address { host, port }, trust, settings })
    }

    /// The same server for this user instead of the one in the URL.
    #[must_use]
    pub fn with_user(mut self, user: &str) -> Self {
        self.settings = self.settings.set_username(user);
        self
    }

    /// The same server with this password instead of the one in the URL.
    #[must_use]
    pub fn with_password(mut self, password: &str) -> Self {
        self.settings = self.settings.set_password(password);
        self
    }

    /// Connects and listens to these channels, with room for so many messages.
    pub(super) async fn connect(
        &self,
        channels: &[&str],
        room: usize,
    ) -> Result<Connection, Error> {
        let stream = dial(&self.address, &self.trust).await.map_err(Error::Connect)?;
        let (sender, pushes) = broadcast::channel(room);
        let config = AsyncConnectionConfig::new()
            .set_response_timeout(Some(ANSWER_WITHIN))
            .set_push_sender(sender);
        let greeting = MultiplexedConnection::new_with_config(&self.settings, stream, config);
        let greeted = timeout(ANSWER_WITHIN, greeting).await.map_err(|_| Error::Silent)?;
        let (mut commands, driver) = greeted?;
        let driver = Driver(tokio::spawn(driver));
        if !channels.is_empty() {
            commands.subscribe(channels).await?;
        }
        Ok(Connection { commands, listener: Listener { pushes, driver } })
    }
}

/// A connection: one end to speak, one to listen.
pub(super) struct Connection {
    pub(super) commands: MultiplexedConnection,
    pub(super) listener: Listener,
}

impl Connection {
    /// Whether it is known to have ended.
    pub(super) fn is_over(&self) -> bool {
        self.listener.driver.0.is_finished()
    }
}

/// The end to listen. The connection ends with it.
pub(super) struct Listener {
    pushes: broadcast::Receiver<PushInfo>,
    driver: Driver,
}

impl Listener {
    /// Waits for the next message on any of the channels.
    pub(super) async fn next(&mut self) -> Result<Vec<u8>, Error> {
        loop {
            let push = match self.pushes.recv().await {
                Ok(push) => push,
                Err(RecvError::Lagged(_)) => return Err(Error::Behind),
                Err(RecvError::Closed) => return Err(Error::Lost),
            };
            match (push.kind, push.data.into_iter().nth(1)) {
                (PushKind::Disconnection, _) => return Err(Error::Lost),
                (PushKind::Message, Some(Value::BulkString(message))) => return Ok(message),
                _ => {}
            }
        }
    }
}

/// The task that reads and writes.
struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_refused_without_repeating_a_password() {
        let server = Server::new("valkey://me:p%40ss@[::1]:7000/2", None).unwrap();
        assert_eq!(server.address, Address { host: "::1".into(), port: 7000 });
        assert_eq!(server.settings.username(), Some("me"));
        assert_eq!(server.settings.password(), Some("p@ss"));
        assert_eq!(server.settings.db(), 2);
        let other = server.with_user("you").with_password("word");
        assert_eq!(other.settings.username(), Some("you"));
        assert_eq!(other.settings.password(), Some("word"));
        assert_eq!(Server::new("redis://host", None).unwrap().address.port, 6379);
        for bad in [
            "",
            "host:6379",
            "http://host",
            "valkey://",
            "valkey://:secret@host:port",
            "valkey://host/x",
            "valkey+unix:///run/valkey",
            "valkey://host/?protocol=resp2",
            "valkey://u:secret@0.0.0.0",
        ] {
            let Err(error) = Server::new(bad, None) else { panic!("{bad} is taken") };
            assert!(matches!(error, BadServer::Address(_)), "{bad}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    #[test]
    fn tls_is_what_the_address_says() {
        let tls = Arc::new(
            ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_root_certificates(rustls::RootCertStore::empty())
                .with_no_client_auth(),
        );
        let told = |url, tls| Server::new(url, tls).err();
        assert_eq!(told("valkeys://host", None), Some(BadServer::NoAuthority));
        assert_eq!(told("valkey://host", Some(Arc::clone(&tls))), Some(BadServer::NoTls));
        assert_eq!(told("rediss://host", Some(tls)), None);
    }
}
