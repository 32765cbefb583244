//! What passes between agents and orchestrators: frames of a length and a message.
//!
//! Both ways a message is a whole state. The last one is all there is to know, so that a slow
//! reader is never owed more than one.

use std::io;

use bytes::{BufMut, Bytes, BytesMut};
use lockstep_control::plan::restart::{Held, Report, Restarts, Worker};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::seal::Sealed;

/// The protocol that both ends speak. Another one is refused by name.
pub const PROTOCOL: u16 = 2;

/// How long a frame may be. The longest is a hello with its ticket; a worker that could not be
/// started may have a reason of some length.
pub const FRAME_MAX: usize = 8 * 1024;

/// What an agent says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Up {
    /// Who it is: the first thing on a connection.
    Hello(Hello),
    /// How it is.
    Status(Status),
}

/// Who an agent is. What place it speaks for is not its to say: that follows from its pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The protocol it speaks.
    pub protocol: u16,
    /// What lets it speak for a pod of its job.
    pub ticket: String,
    /// Its pod, by uid.
    pub pod: String,
}

/// A [`Report`] without what the other end knows better.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// See [`Report::session`].
    pub session: u64,
    /// See [`Report::sequence`].
    pub sequence: u64,
    /// See [`Report::fence`].
    pub fence: u64,
    /// See [`Report::held`].
    pub held: Option<Held>,
    /// See [`Report::restarts`].
    pub restarts: Restarts,
    /// See [`Report::worker`].
    pub worker: Worker,
    /// How long ago a worker that has failed did so, in microseconds.
    pub ago: u32,
    /// The orders it has what it holds from, for a leader that does not know of them.
    pub told: Vec<Sealed>,
}

impl From<Report> for Status {
    fn from(report: Report) -> Self {
        let Report { session, sequence, fence, held, restarts, worker, .. } = report;
        Self { session, sequence, fence, held, restarts, worker, ago: 0, told: Vec::new() }
    }
}

/// What an orchestrator says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Down {
    /// The state to be in.
    Order(Sealed),
    /// Not like this, or not now.
    Refused(Refusal),
}

/// Why an agent is not let in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// It speaks another protocol.
    #[error("this orchestrator speaks protocol {0}")]
    Protocol(u16),
    /// Its ticket was not made here, or for something else, or is of the past.
    #[error("the ticket is not valid here")]
    Ticket,
    /// Its job is not led here, or not yet.
    #[error("the job is not led here")]
    Job,
    /// Its pod is not known, or not yet.
    #[error("the pod is not known")]
    Pod,
    /// There is no room.
    #[error("there are too many connections")]
    Full,
}

/// A message as it goes over the wire, made once however many it is for.
pub fn frame<T: Serialize>(message: &T) -> Bytes {
    let mut frame = BytesMut::with_capacity(64);
    frame.put_u32(0);
    let frame = postcard::to_extend(message, frame).expect("a message is plain data");
    let mut frame = frame;
    let length = u32::try_from(frame.len() - 4).expect("a message is short");
    frame[..4].copy_from_slice(&length.to_be_bytes());
    frame.freeze()
}

/// The message of a frame that came as a whole.
pub fn parse<T: DeserializeOwned>(frame: &[u8]) -> Option<T> {
    let (length, message) = frame.split_first_chunk()?;
    let is_whole = u32::from_be_bytes(*length) as usize == message.len();
    (is_whole && message.len() <= FRAME_MAX).then(|| postcard::from_bytes(message).ok())?
}

/// Reads the next message; `None` at the end of the stream. What is too long, or no message at all,
/// is an error: there is no way to find the next frame after it.
pub async fn read<T: DeserializeOwned>(
    reader: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    match reader.read_exact(&mut length).await {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > FRAME_MAX {
        let what = format!("a frame of {length} bytes; at most {FRAME_MAX} are taken");
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    buffer.resize(length, 0);
    reader.read_exact(buffer).await?;
    let message = postcard::from_bytes(buffer)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
    Ok(Some(message))
}

#[cfg(test)]
mod tests {
    use lockstep_control::plan::restart::{Cause, Duty, Order, Rank};

    use super::*;
    use crate::{seal::Sealer, ticket::Key};

    fn status() -> Status {
        let rank = Rank { generation: 1, epoch: 7, duty: Duty::Run };
        Status {
            session: 1 << 60,
            sequence: 3,
            fence: 2,
            held: Some(Held { rank, by: 2 }),
            restarts: Restarts { total: 7, counted: 5 },
            worker: Worker::Failed(7, Cause::Exited(-1)),
            ago: 1500,
            told: Vec::new(),
        }
    }

    #[tokio::test]
    async fn what_is_sent_is_what_arrives() {
        let messages = [
            Up::Hello(Hello { protocol: 1, ticket: "t".repeat(300), pod: "uid".into() }),
            Up::Status(status()),
        ];
        let bytes: Vec<u8> = messages.iter().flat_map(|message| frame(message).to_vec()).collect();
        let (mut reader, mut buffer) = (&bytes[..], Vec::new());
        for message in messages {
            assert_eq!(parse(&frame(&message)), Some(message.clone()));
            assert_eq!(read(&mut reader, &mut buffer).await.unwrap(), Some(message));
        }
        assert_eq!(read::<Up>(&mut reader, &mut buffer).await.unwrap(), None);
    }

    #[tokio::test]
    async fn garbage_is_an_error_and_takes_no_memory() {
        let mut buffer = Vec::new();
        let cases: [&[u8]; 4] = [
            b"\xff\xff\xff\xff",
            b"GET / HTTP/1.1\r\n\r\n",
            b"\0\0\0\x02\xff\xff",
            b"\0\0\0\x09abc",
        ];
        for case in cases {
            assert!(read::<Up>(&mut &case[..], &mut buffer).await.is_err(), "{case:?}");
            assert!(buffer.capacity() <= FRAME_MAX, "{case:?}");
            assert_eq!(parse::<Up>(case), None, "{case:?}");
        }
    }

    #[test]
    fn an_order_is_small() {
        let rank = Rank { generation: 3, epoch: 100, duty: Duty::Hold };
        let restarts = Restarts::default();
        let order = Order { fence: 12, rank, by: 12, restarts, is_rejoining: true };
        let sealed = Sealer::new(Key::new(&[7; 32]), "job").seal(order);
        assert!(frame(&Down::Order(sealed)).len() <= 32);
    }
}
