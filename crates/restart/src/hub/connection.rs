//! One connection of an agent.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::time::timeout;

use super::gang::Input;
use super::mailbox::Mailbox;
use super::{HELLO_WITHIN, Hub};
use crate::wire::{Down, Hello, Refusal, Up, frame, read};

/// How long an agent may be silent: three of its signs of life.
const SILENT_MAX: Duration = Duration::from_secs(30);
/// How long a frame may take to be sent to an agent that does not read.
const SEND_WITHIN: Duration = Duration::from_secs(10);
/// How much is read at once: some frames. There is a buffer of this size for each agent.
const READ_AHEAD: usize = 256;

/// Serves an agent until it goes, or is sent away.
pub(super) async fn serve<S>(hub: &Hub, stream: S) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let (reader, mut writer) = tokio::io::split(stream);
    let mut reader = BufReader::with_capacity(READ_AHEAD, reader);
    let mut buffer = Vec::new();
    let Ok(permit) = hub.strangers.try_acquire() else {
        return refuse(&mut writer, Refusal::Full).await;
    };
    let hello = timeout(HELLO_WITHIN, hello(&mut reader, &mut buffer)).await??;
    drop(permit);
    let (gang, seat) = match hub.admit(&hello) {
        Ok(admitted) => admitted,
        Err(refusal) => {
            tracing::debug!(pod = hello.pod, %refusal, "an agent was not let in");
            return refuse(&mut writer, refusal).await;
        }
    };
    drop(hello);
    let (link, mailbox) = (hub.next_link(), Arc::new(Mailbox::default()));
    gang.send(Input::Connected { link, seat, mailbox: Arc::clone(&mailbox) }).await;
    let reading = async {
        loop {
            let next = timeout(SILENT_MAX, read(&mut reader, &mut buffer)).await??;
            match next {
                Some(Up::Status(status)) => gang.send(Input::Heard { link, status }).await,
                Some(Up::Hello(_)) => return Err(io::ErrorKind::InvalidData.into()),
                None => return Ok(()),
            }
        }
    };
    let writing = async {
        while let Some(frame) = mailbox.take().await {
            timeout(SEND_WITHIN, send(&mut writer, &frame)).await??;
        }
        Ok(())
    };
    // Either end of it ends it.
    let ended = tokio::select! {
        ended = reading => ended,
        ended = writing => ended,
    };
    gang.send(Input::Lost { link }).await;
    ended
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

async fn refuse(writer: &mut (impl AsyncWrite + Unpin), refusal: Refusal) -> io::Result<()> {
    timeout(SEND_WITHIN, send(writer, &frame(&Down::Refused(refusal)))).await??;
    writer.shutdown().await
}

async fn send(writer: &mut (impl AsyncWrite + Unpin), frame: &[u8]) -> io::Result<()> {
    writer.write_all(frame).await?;
    writer.flush().await
}
