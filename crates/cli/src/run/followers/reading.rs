//! Reading one log to its end, also when the server goes away in the middle and comes back.

use std::{sync::Arc, time::Duration};

use futures::{AsyncBufRead, AsyncReadExt};
use tokio::{sync::mpsc, time::sleep};

use super::Piece;
use crate::{
    catalog::escape,
    cluster::Cluster,
    refusal::{self, Refusal},
    run::{
        lines::take_lines,
        model::{LogSource, Run, locate, log_of},
    },
};

const PIECE: usize = 32 * 1024;

/// How long a log that broke off is left alone: first, and after many attempts.
const WAIT_FIRST: Duration = Duration::from_millis(200);
const WAIT_MAX: Duration = Duration::from_secs(5);

/// How often the end of a log is believed less than the pod that says it still runs. Its status may
/// only be late.
const LOOKS_MAX: u32 = 5;

/// A log as it comes.
pub(super) type Log = Box<dyn AsyncBufRead + Send + Unpin>;

/// A log that is being read.
pub(super) struct Reading {
    cluster: Cluster,
    source: Arc<LogSource>,
    sender: mpsc::Sender<Piece>,
    /// Whether pieces need not be whole lines.
    is_raw: bool,
    /// Whether the server can go away while this program stays.
    is_remote: bool,
    /// How many bytes have come: so many are skipped when it is read again from its beginning.
    received: u64,
    pending: Vec<u8>,
}

/// Why reading stopped.
enum Stop {
    End,
    Unheard,
}

/// What became of the container since its log ended or broke off.
enum Fate {
    /// This run of it is there.
    There(Run),
    /// It is no more, so that there is nothing to read.
    Gone,
    /// Nobody knows at the moment.
    Unknown,
}

impl Reading {
    /// Reads nothing yet.
    pub(super) fn new(
        cluster: Cluster,
        source: Arc<LogSource>,
        sender: mpsc::Sender<Piece>,
        (is_raw, is_remote): (bool, bool),
    ) -> Self {
        let (received, pending) = (0, Vec::new());
        Self { cluster, source, sender, is_raw, is_remote, received, pending }
    }

    /// Reads until the container has ended and all of it is read, until it is gone, or until nobody
    /// listens.
    ///
    /// # Errors
    /// Why it could not be read, or not to its end.
    pub(super) async fn read_whole(mut self, first: Result<Log, Refusal>) -> Result<(), String> {
        let mut opened = first;
        let mut wait = WAIT_FIRST;
        loop {
            let before = self.received;
            let broken = match opened {
                Ok(log) => match self.read(log).await {
                    Ok(Stop::Unheard) => return Ok(()),
                    Ok(Stop::End) => None,
                    Err(why) => Some(why),
                },
                Err(refusal) if is_final(&refusal) => {
                    return self.finish(Some(refusal.explain(None))).await;
                }
                Err(refusal) => Some(refusal.explain(None)),
            };
            if !self.is_remote {
                return self.finish(broken).await;
            }
            if self.received > before {
                wait = WAIT_FIRST;
            }
            let Some(run) = self.find(broken.is_none(), &mut wait).await else {
                return self.finish(broken).await;
            };
            let path = log_of(&self.source.container, run.is_previous);
            opened = self.cluster.stream(&path, "*/*").await.map(|log| Box::new(log) as Log);
        }
    }

    /// Looks until it is known what to read; nothing when nothing is left to read.
    async fn find(&self, is_whole: bool, wait: &mut Duration) -> Option<Run> {
        let mut was_away = false;
        let mut looks = 0;
        loop {
            match self.look().await {
                Fate::Gone => return None,
                // The end of a log that came while the server was there is the end.
                Fate::There(run) if run.has_ended && is_whole && !was_away => return None,
                Fate::There(run) if run.has_ended || was_away || !is_whole => {
                    self.pause(wait).await;
                    return Some(run);
                }
                Fate::There(run) => {
                    looks += 1;
                    if looks > LOOKS_MAX {
                        return Some(run);
                    }
                }
                Fate::Unknown => was_away = true,
            }
            self.pause(wait).await;
            if self.sender.is_closed() {
                return None;
            }
        }
    }

    async fn pause(&self, wait: &mut Duration) {
        sleep(*wait).await;
        *wait = (*wait * 2).min(WAIT_MAX);
    }

    async fn look(&self) -> Fate {
        let container = &self.source.container;
        let path = format!(
            "/api/v1/namespaces/{}/pods/{}",
            escape(&container.namespace),
            escape(&container.pod)
        );
        match self.cluster.get(&path).await {
            Ok(pod) if pod["metadata"]["uid"] == container.uid.as_str() => {
                locate(&pod, &container.name, self.source.run).map_or(Fate::Gone, Fate::There)
            }
            Ok(_) => Fate::Gone,
            Err(refusal) if refusal.is_not_found() => Fate::Gone,
            Err(_) => Fate::Unknown,
        }
    }

    async fn read(&mut self, mut log: Log) -> Result<Stop, String> {
        let mut known = self.received;
        let mut buffer = vec![0; PIECE];
        loop {
            let count = log.read(&mut buffer).await.map_err(|error| {
                let why = refusal::innermost(&error);
                format!("error: the log ended too early: {why}")
            })?;
            if count == 0 {
                return Ok(Stop::End);
            }
            let skipped = usize::try_from(known).unwrap_or(usize::MAX).min(count);
            known -= skipped as u64;
            let new = &buffer[skipped..count];
            self.received += new.len() as u64;
            self.pending.extend_from_slice(new);
            let piece = if self.is_raw {
                std::mem::take(&mut self.pending)
            } else {
                take_lines(&mut self.pending)
            };
            if !self.send(piece).await {
                return Ok(Stop::Unheard);
            }
        }
    }

    /// Hands over the last line, which may have no end.
    async fn finish(mut self, broken: Option<String>) -> Result<(), String> {
        let mut rest = std::mem::take(&mut self.pending);
        if !rest.is_empty() {
            rest.push(b'\n');
        }
        self.send(rest).await;
        broken.map_or(Ok(()), Err)
    }

    /// Hands over a piece; whether somebody listens.
    async fn send(&self, piece: Vec<u8>) -> bool {
        let piece = Piece::Written(Arc::clone(&self.source), piece);
        match &piece {
            Piece::Written(_, bytes) if bytes.is_empty() => true,
            _ => self.sender.send(piece).await.is_ok(),
        }
    }
}

/// Whether asking again is no use: the server knows what is asked for, and says no.
fn is_final(refusal: &Refusal) -> bool {
    matches!(refusal.code(), 400..=499) && !matches!(refusal.code(), 401 | 408 | 429)
}
