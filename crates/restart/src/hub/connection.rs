//! One connection of an agent.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, WriteHalf};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::SemaphorePermit;
use tokio::time::{Instant, Sleep, sleep, timeout};

use super::gang::{Input, Way};
use super::mailbox::Mailbox;
use super::{HELLO_WITHIN, Hub};
use crate::wire::{Down, Hello, Refusal, Up, frame, read};

/// How long an agent may be silent: three of its signs of life.
pub(crate) const SILENT_MAX: Duration = Duration::from_secs(30);
/// How long a frame may take to be sent to an agent that does not read.
const SEND_WITHIN: Duration = Duration::from_secs(10);
/// How much is read at once: some frames. There is a buffer of this size for each agent.
const READ_AHEAD: usize = 256;

/// Serves an agent until it goes, or is sent away.
pub(super) async fn serve(hub: &Hub, stream: TcpStream) -> io::Result<()> {
    let (reader, writer) = stream.into_split();
    let pen = Pen::<TcpStream>::Shared(Arc::new(writer));
    match hub.strangers.try_acquire() {
        Ok(permit) => converse(hub, reader, pen, permit).await,
        Err(_) => pen.refuse(Refusal::Full).await,
    }
}

/// The same, where all that is written has to be encrypted first.
pub(super) async fn serve_encrypted<S>(
    hub: &Hub,
    stream: S,
    permit: SemaphorePermit<'_>,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Send,
{
    let (reader, writer) = tokio::io::split(stream);
    converse(hub, reader, Pen::Own(writer), permit).await
}

/// The permit is given back when the agent has said who it is.
async fn converse<R, S>(
    hub: &Hub,
    reader: R,
    mut pen: Pen<S>,
    permit: SemaphorePermit<'_>,
) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    S: AsyncWrite + Send,
{
    let mut reader = BufReader::with_capacity(READ_AHEAD, reader);
    let mut buffer = Vec::new();
    let hello = timeout(HELLO_WITHIN, hello(&mut reader, &mut buffer)).await??;
    drop(permit);
    let (gang, seat) = match hub.admit(&hello) {
        Ok(admitted) => admitted,
        Err(refusal) => {
            tracing::debug!(pod = hello.pod, %refusal, "an agent was not let in");
            return pen.refuse(refusal).await;
        }
    };
    drop(hello);
    let (link, mailbox) = (gang.next_link(), Arc::new(Mailbox::new(pen.shared())));
    let way = Way { alone: Arc::<Mailbox>::clone(&mailbox), is_on_air: false };
    gang.tell(Input::Connected { link, seat, way }).await?;
    let reading = async {
        let mut patience = Patience { heard: Instant::now(), timer: pin!(sleep(SILENT_MAX)) };
        loop {
            match patience.with(read(&mut reader, &mut buffer)).await? {
                Some(Up::Status(status)) => gang.tell(Input::Heard { link, status }).await?,
                Some(Up::Hello(_)) => return Err(io::ErrorKind::InvalidData.into()),
                None => return Ok(()),
            }
        }
    };
    let writing = async {
        while let Some(frame) = mailbox.take().await {
            timeout(SEND_WITHIN, pen.write(&frame)).await??;
        }
        Ok(())
    };
    // Either end of it ends it.
    let ended = tokio::select! {
        ended = reading => ended,
        ended = writing => ended,
    };
    mailbox.end();
    gang.tell(Input::Lost { link }).await.and(ended)
}

async fn hello<R>(reader: &mut R, buffer: &mut Vec<u8>) -> io::Result<Hello>
where
    R: AsyncRead + Unpin,
{
    match read(reader, buffer).await? {
        Some(Up::Hello(hello)) => Ok(hello),
        Some(Up::Status(_)) => Err(io::ErrorKind::InvalidData.into()),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// What writes to a connection.
enum Pen<S> {
    /// Its mailbox may write as well.
    Shared(Arc<OwnedWriteHalf>),
    /// Nobody else may.
    Own(WriteHalf<S>),
}

impl<S: AsyncWrite> Pen<S> {
    fn shared(&self) -> Option<Arc<OwnedWriteHalf>> {
        match self {
            Self::Shared(writer) => Some(Arc::clone(writer)),
            Self::Own(_) => None,
        }
    }

    async fn write(&mut self, frame: &[u8]) -> io::Result<()> {
        match self {
            Self::Shared(writer) => {
                let mut left = frame;
                while !left.is_empty() {
                    writer.writable().await?;
                    match writer.try_write(left) {
                        Ok(count) => left = &left[count..],
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(())
            }
            Self::Own(writer) => {
                writer.write_all(frame).await?;
                writer.flush().await
            }
        }
    }

    async fn refuse(mut self, refusal: Refusal) -> io::Result<()> {
        timeout(SEND_WITHIN, self.write(&frame(&Down::Refused(refusal)))).await??;
        match self {
            // Closed with the last of its owners.
            Self::Shared(_) => Ok(()),
            Self::Own(mut writer) => writer.shutdown().await,
        }
    }
}

/// Waits for an agent for as long as it may be silent.
struct Patience<'a> {
    heard: Instant,
    /// Set anew when it fires, not with each message: timers are shared by all connections.
    timer: Pin<&'a mut Sleep>,
}

impl Patience<'_> {
    async fn with<T>(&mut self, next: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        let mut next = pin!(next);
        std::future::poll_fn(|context| {
            if let Poll::Ready(next) = next.as_mut().poll(context) {
                self.heard = Instant::now();
                return Poll::Ready(next);
            }
            while self.timer.as_mut().poll(context).is_ready() {
                let end = self.heard + SILENT_MAX;
                if end <= Instant::now() {
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
                self.timer.as_mut().reset(end);
            }
            Poll::Pending
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_says_something_now_and_then_is_waited_for() {
        let mut patience = Patience { heard: Instant::now(), timer: pin!(sleep(SILENT_MAX)) };
        for _ in 0..10 {
            let next = async {
                sleep(SILENT_MAX * 2 / 3).await;
                Ok(())
            };
            patience.with(next).await.unwrap();
        }
        let begun = Instant::now();
        let silent = patience.with(std::future::pending::<io::Result<()>>()).await;
        assert_eq!(silent.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() < SILENT_MAX + Duration::from_millis(10));
    }
}
