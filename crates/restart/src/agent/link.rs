//! The connection to whoever leads. It is always being made or kept; nothing waits for it.

use std::io;
use std::time::{Duration, Instant};

use lockstep_control::plan::restart::Worker;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, watch};

use crate::dial::{Address, Trust, dial};
use crate::seal::Sealed;
use crate::ticket::Ticket;
use crate::valkey::Server;
use crate::wire::{Down, Hello, PROTOCOL, Refusal, Status, Up, frame, read};

/// How an agent reaches whoever leads.
#[derive(Clone)]
pub enum Via {
    /// It listens here.
    Hub(Address, Trust),
    /// It is on this bus, and leads this job there.
    Bus(Box<Server>, String),
}

impl Via {
    /// A bus. Which job is led there the ticket says; `None` if it does not.
    pub fn bus(server: Server, ticket: &str) -> Option<Self> {
        Some(Self::Bus(Box::new(server), Ticket::read(ticket)?.job))
    }
}

/// What a connection brings.
pub(super) enum News {
    /// Somebody is there.
    Connected,
    /// Somebody says what to do.
    Order(Sealed),
}

/// How long the first wait for another try may be, and the longest. Each is drawn from the whole
/// span, so that thousands that lose their leader at once do not come back at once.
const WAIT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// The longest for an agent whose worker is down: it is what all others wait for.
const URGENT_WAIT: Duration = Duration::from_millis(500);
/// How long a connection has to last for its end to be no reason to wait longer than at first.
/// Nothing need be said on it: an agent that is where it should be is told nothing.
const LASTING: Duration = Duration::from_secs(10);

/// Keeps an agent connected.
pub(super) struct Link {
    pub(super) via: Via,
    pub(super) ticket: String,
    pub(super) pod: String,
    pub(super) session: u64,
    pub(super) latest: watch::Receiver<Option<Status>>,
    pub(super) tell: mpsc::Sender<News>,
}

impl Link {
    /// Connects, and again, for as long as the agent lives.
    pub(super) async fn run(mut self) {
        let mut longest = WAIT.0;
        loop {
            let mut has_heard = false;
            let ended = self.once(&mut has_heard).await;
            if self.tell.is_closed() {
                return;
            }
            longest = if has_heard { WAIT.0 } else { (longest * 2).min(WAIT.1) };
            let limit = if self.is_urgent() { longest.min(URGENT_WAIT) } else { longest };
            let wait = limit.mul_f64(fastrand::f64());
            match ended {
                Ok(()) => tracing::debug!(?wait, "the orchestrator has closed the connection"),
                Err(error) => tracing::debug!(%error, ?wait, "there is no orchestrator"),
            }
            tokio::time::sleep(wait).await;
        }
    }

    fn is_urgent(&self) -> bool {
        self.latest
            .borrow()
            .as_ref()
            .is_some_and(|status| !matches!(status.worker, Worker::Running(_)))
    }

    async fn once(&mut self, has_heard: &mut bool) -> io::Result<()> {
        match self.via.clone() {
            Via::Hub(address, trust) => {
                let stream = dial(&address, &trust).await?;
                let begun = Instant::now();
                let ended = self.talk(stream, has_heard).await;
                *has_heard |= begun.elapsed() >= LASTING;
                ended
            }
            Via::Bus(server, job) => self.talk_on_bus(&server, &job, has_heard).await,
        }
    }

    async fn talk<S>(&mut self, stream: S, has_heard: &mut bool) -> io::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let (reader, mut writer) = tokio::io::split(stream);
        let mut reader = BufReader::with_capacity(256, reader);
        let (ticket, pod) = (self.ticket.clone(), self.pod.clone());
        let hello = Up::Hello(Hello { protocol: PROTOCOL, ticket, pod });
        writer.write_all(&frame(&hello)).await?;
        writer.flush().await?;
        // What was said before was said to somebody else.
        self.latest.mark_unchanged();
        if self.tell.send(News::Connected).await.is_err() {
            return Ok(());
        }
        let (latest, tell) = (&mut self.latest, &self.tell);
        let writing = async {
            while latest.changed().await.is_ok() {
                let status = latest.borrow_and_update().clone();
                if let Some(status) = status {
                    writer.write_all(&frame(&Up::Status(status))).await?;
                    writer.flush().await?;
                }
            }
            Ok(())
        };
        let reading = async {
            let mut buffer = Vec::new();
            while let Some(message) = read(&mut reader, &mut buffer).await? {
                match message {
                    Down::Order(order) => {
                        *has_heard = true;
                        if tell.send(News::Order(order)).await.is_err() {
                            return Ok(());
                        }
                    }
                    Down::Refused(refusal) => return Err(refused(&refusal)),
                }
            }
            Ok(())
        };
        tokio::select! {
            ended = reading => ended,
            ended = writing => ended,
        }
    }
}

pub(super) fn refused(refusal: &Refusal) -> io::Error {
    // What will not change by waiting is worth a word.
    match refusal {
        Refusal::Protocol(_) | Refusal::Ticket => tracing::error!("not let in: {refusal}"),
        Refusal::Job | Refusal::Pod | Refusal::Full => {}
    }
    io::Error::new(io::ErrorKind::ConnectionRefused, refusal.to_string())
}
