//! What is spoken on connections that were HTTP before: SPDY for ports, channels for processes.

use bytes::Bytes;
use lockstep_local::server::protocols::{
    channels::{Channels, Heard, V1_TEXT, V4, V5},
    spdy::{Decoder, Encoder, Frame, SpdyError},
    streams::{Step, Streams},
};

use crate::bound::{bounded, bounded_and_stretched};

/// The bytes are what comes over the wire as they are, a message on channels, and lines of which
/// each stands for a frame.
pub fn feed(bytes: &[u8]) {
    let _ = bounded_and_stretched(bytes, |bytes| decoded(&[bytes]));
    is_same_in_pieces(bytes);
    for protocol in [V4, V5] {
        let heard = bounded_and_stretched(bytes, |bytes| {
            matches!(Channels::of(protocol).hear(bytes), Heard::Input(_))
        });
        assert_eq!(heard, bytes.first() == Some(&0));
    }
    assert_eq!(Channels::of(V4).message(1, bytes).into_data()[1..], *bytes);
    let text = Channels::of(V1_TEXT);
    let _ = bounded_and_stretched(bytes, |bytes| text.opened(bytes).map(drop));
    let opened = text.opened(&text.message(1, bytes).into_data()).map(|it| it[1..].to_vec());
    assert_eq!(opened.as_deref(), Some(bytes));
    let frames: Vec<Frame> = bytes.split(|byte| *byte == b'\n').filter_map(frame).collect();
    is_written_and_read(&frames);
    is_kept_in_order(frames);
}

/// A line as a frame: `open 1 name=value name=value`, `data 1 text`, `end 1 text`, `reply 1`,
/// `reset 1 5`, `ping 1`, `bye`.
fn frame(line: &[u8]) -> Option<Frame> {
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split(' ');
    let verb = words.next()?;
    if verb == "bye" {
        return Some(Frame::GoAway);
    }
    let number: u32 = words.next()?.parse().ok()?;
    let stream = number & 0x7fff_ffff;
    let bytes = || Bytes::copy_from_slice(words.clone().next().unwrap_or_default().as_bytes());
    Some(match verb {
        "open" => {
            let pairs = words.map(|word| word.split_once('=').unwrap_or((word, "")));
            let headers = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
            Frame::Open { stream, is_fin: false, headers: headers.take(64).collect() }
        }
        "data" => Frame::Data { stream, is_fin: false, bytes: bytes() },
        "end" => Frame::Data { stream, is_fin: true, bytes: bytes() },
        "reply" => Frame::Reply { stream },
        "reset" => Frame::Reset { stream, code: words.next()?.parse().ok()? },
        "ping" => Frame::Ping(number),
        _ => return None,
    })
}

/// All frames of what comes in, piece by piece; what belongs together is put together again.
fn decoded(pieces: &[&[u8]]) -> (Vec<Frame>, Option<SpdyError>) {
    let mut decoder = Decoder::new();
    let mut frames: Vec<Frame> = Vec::new();
    let mut open = None;
    for piece in pieces {
        decoder.push(piece);
        loop {
            match decoder.frame() {
                Ok(None) => break,
                Ok(Some(Frame::Data { stream, is_fin, bytes })) if open == Some(stream) => {
                    let Some(Frame::Data { bytes: known, is_fin: end, .. }) = frames.last_mut()
                    else {
                        panic!("data goes on after something else")
                    };
                    *known = [&known[..], &bytes].concat().into();
                    *end = is_fin;
                    open = (!is_fin).then_some(stream);
                }
                Ok(Some(frame)) => {
                    open = match &frame {
                        Frame::Data { stream, is_fin: false, .. } => Some(*stream),
                        _ => None,
                    };
                    frames.push(frame);
                }
                Err(error) => return (frames, Some(error)),
            }
        }
    }
    (frames, None)
}

/// How it comes makes no difference.
fn is_same_in_pieces(bytes: &[u8]) {
    let whole = decoded(&[bytes]);
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(decoded(&single), whole);
    let some: Vec<&[u8]> = bytes.chunks(7).collect();
    assert_eq!(decoded(&some), whole);
}

/// What was written is read.
fn is_written_and_read(frames: &[Frame]) {
    let mut encoder = Encoder::new();
    let mut decoder = Decoder::new();
    for frame in frames {
        let bytes = bounded(|| encoder.write(frame));
        decoder.push(&bytes);
        let read = decoder.frame().unwrap_or_else(|error| panic!("{frame:?}: {error}"));
        assert_eq!(read.as_ref(), Some(frame));
        assert_eq!(decoder.frame(), Ok(None));
    }
}

/// Nothing is connected twice, and nothing goes where nothing was connected.
fn is_kept_in_order(frames: Vec<Frame>) {
    let mut streams = Streams::default();
    let mut connected = std::collections::BTreeMap::new();
    for frame in frames {
        for step in bounded(|| streams.hear(frame)) {
            match step {
                Step::Connect { data, error, port } => {
                    assert!(port > 0 && data != error);
                    assert!(connected.insert(data, error).is_none(), "{data} twice");
                }
                Step::Input { data, .. } | Step::InputEnd { data } => {
                    assert!(connected.contains_key(&data), "{data} is not connected");
                }
                Step::Drop { data } => {
                    assert!(connected.remove(&data).is_some(), "{data} is not connected");
                }
                Step::Send(_) => {}
                Step::Leave => return,
            }
        }
    }
}
