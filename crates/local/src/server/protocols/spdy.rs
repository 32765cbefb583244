//! SPDY/3.1, as much of it as clients speak that forward ports: frames from bytes and back.
//!
//! No maintained crate has it. Whatever comes in, nothing here panics, and no more is kept than one
//! control frame and the headers in it: data is passed on as it comes.

mod dictionary;
mod headers;

use bytes::{Buf as _, Bytes, BytesMut};

use self::headers::{Deflate, Inflate};

const VERSION: u16 = 3;
/// Control frames of clients have some hundred bytes.
const CONTROL_BYTES_MAX: usize = 64 << 10;
const FIN: u8 = 1;

const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const PING: u16 = 6;
const GOAWAY: u16 = 7;

/// A stream was refused.
pub const REFUSED_STREAM: u32 = 3;

/// Something that one side says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// There is a new stream.
    Open {
        /// Its number.
        stream: u32,
        /// Whether nothing will be sent on it.
        is_fin: bool,
        /// What it is for.
        headers: Vec<(String, String)>,
    },
    /// A stream is accepted.
    Reply {
        /// Its number.
        stream: u32,
    },
    /// A part of a stream. What is sent as one may come in parts.
    Data {
        /// The number of the stream.
        stream: u32,
        /// Whether it was the last one.
        is_fin: bool,
        /// The part.
        bytes: Bytes,
    },
    /// A stream is given up.
    Reset {
        /// Its number.
        stream: u32,
        /// Why.
        code: u32,
    },
    /// To be answered with the same.
    Ping(u32),
    /// There will be no more streams.
    GoAway,
}

/// Why what came in is not SPDY.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpdyError {
    /// Of another version.
    #[error("a frame of version {0} of SPDY")]
    Version(u16),
    /// Longer than anybody needs.
    #[error("a control frame of {0} bytes")]
    TooLong(usize),
    /// It ends before what it must have.
    #[error("a control frame that is too short")]
    TooShort,
    /// Headers that are no headers.
    #[error("headers that cannot be read")]
    Headers,
}

/// Reads frames.
pub struct Decoder {
    buffer: BytesMut,
    /// The data frame that has begun and not ended.
    data: Option<Rest>,
    inflate: Inflate,
}

/// What is still to come of a data frame.
struct Rest {
    stream: u32,
    is_fin: bool,
    left: usize,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// A reader of a new connection.
    pub fn new() -> Self {
        Self { buffer: BytesMut::new(), data: None, inflate: Inflate::new() }
    }

    /// Takes what came in. All frames in it must be taken before the next.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next frame that is known here; nothing when more must come in first.
    ///
    /// # Errors
    /// It is no SPDY.
    pub fn frame(&mut self) -> Result<Option<Frame>, SpdyError> {
        loop {
            if let Some(rest) = &mut self.data {
                let count = rest.left.min(self.buffer.len());
                if count == 0 && rest.left > 0 {
                    return Ok(None);
                }
                rest.left -= count;
                let bytes = self.buffer.split_to(count).freeze();
                let is_fin = rest.is_fin && rest.left == 0;
                let frame = Frame::Data { stream: rest.stream, is_fin, bytes };
                if rest.left == 0 {
                    self.data = None;
                }
                return Ok(Some(frame));
            }
            let Some(&[a, b, c, d, flags, e, f, g]) = self.buffer.first_chunk::<8>() else {
                return Ok(None);
            };
            let word = u32::from_be_bytes([a, b, c, d]);
            let length = u32::from_be_bytes([0, e, f, g]) as usize;
            let is_fin = flags & FIN != 0;
            if word >> 31 == 0 {
                self.buffer.advance(8);
                self.data = Some(Rest { stream: word, is_fin, left: length });
                continue;
            }
            if length > CONTROL_BYTES_MAX {
                return Err(SpdyError::TooLong(length));
            }
            let Some(payload) = self.buffer.get(8..8 + length) else { return Ok(None) };
            let (version, kind) = (u16::from_be_bytes([a & 0x7f, b]), u16::from_be_bytes([c, d]));
            if version != VERSION {
                return Err(SpdyError::Version(version));
            }
            let frame = control(&mut self.inflate, kind, is_fin, payload)?;
            self.buffer.advance(8 + length);
            if let Some(frame) = frame {
                return Ok(Some(frame));
            }
        }
    }
}

/// Reads a control frame; nothing for what has no meaning here: settings, windows, headers that
/// come late.
fn control(
    inflate: &mut Inflate,
    kind: u16,
    is_fin: bool,
    payload: &[u8],
) -> Result<Option<Frame>, SpdyError> {
    let word = |at: usize| -> Result<u32, SpdyError> {
        let bytes = payload.get(at..at + 4).and_then(|bytes| bytes.first_chunk::<4>());
        bytes.map(|bytes| u32::from_be_bytes(*bytes)).ok_or(SpdyError::TooShort)
    };
    let stream = |at| word(at).map(|word| word & 0x7fff_ffff);
    Ok(match kind {
        SYN_STREAM => {
            let headers = payload.get(10..).ok_or(SpdyError::TooShort)?;
            let headers = inflate.read(headers)?;
            Some(Frame::Open { stream: stream(0)?, is_fin, headers })
        }
        SYN_REPLY => {
            // They are read for what those after them refer to.
            inflate.read(payload.get(4..).ok_or(SpdyError::TooShort)?)?;
            Some(Frame::Reply { stream: stream(0)? })
        }
        headers::HEADERS => {
            inflate.read(payload.get(4..).ok_or(SpdyError::TooShort)?)?;
            None
        }
        RST_STREAM => Some(Frame::Reset { stream: stream(0)?, code: word(4)? }),
        PING => Some(Frame::Ping(word(0)?)),
        GOAWAY => Some(Frame::GoAway),
        _ => None,
    })
}

/// Writes frames.
pub struct Encoder {
    deflate: Deflate,
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Encoder {
    /// A writer of a new connection.
    pub fn new() -> Self {
        Self { deflate: Deflate::new() }
    }

    /// The bytes of a frame, which must be those that follow the ones before.
    pub fn write(&mut self, frame: &Frame) -> Vec<u8> {
        match frame {
            Frame::Open { stream, is_fin, headers } => {
                let mut payload = stream.to_be_bytes().to_vec();
                // No stream it belongs to, the lowest priority.
                payload.extend([0; 6]);
                payload.extend(self.deflate.write(headers));
                control_frame(SYN_STREAM, u8::from(*is_fin), &payload)
            }
            Frame::Reply { stream } => {
                let mut payload = stream.to_be_bytes().to_vec();
                payload.extend(self.deflate.write(&[]));
                control_frame(SYN_REPLY, 0, &payload)
            }
            Frame::Data { stream, is_fin, bytes } => {
                let mut frame = Vec::with_capacity(bytes.len() + 8);
                frame.extend_from_slice(&(stream & 0x7fff_ffff).to_be_bytes());
                frame.extend_from_slice(&head(u8::from(*is_fin), bytes.len()));
                frame.extend_from_slice(bytes);
                frame
            }
            Frame::Reset { stream, code } => {
                control_frame(RST_STREAM, 0, &[stream.to_be_bytes(), code.to_be_bytes()].concat())
            }
            Frame::Ping(id) => control_frame(PING, 0, &id.to_be_bytes()),
            Frame::GoAway => control_frame(GOAWAY, 0, &[0; 8]),
        }
    }
}

fn control_frame(kind: u16, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = (VERSION | 1 << 15).to_be_bytes().to_vec();
    frame.extend_from_slice(&kind.to_be_bytes());
    frame.extend_from_slice(&head(flags, payload.len()));
    frame.extend_from_slice(payload);
    frame
}

/// Flags and length.
fn head(flags: u8, length: usize) -> [u8; 4] {
    let length = u32::try_from(length).ok().filter(|length| *length < 1 << 24);
    let [_, a, b, c] = length.expect("what is sent at once is far below 16 MiB").to_be_bytes();
    [flags, a, b, c]
}

#[cfg(test)]
mod tests;
