//! Channels: the first byte of a message says which stream the rest belongs to.

use serde::Deserialize;
use tokio_tungstenite::tungstenite::Message;

/// The protocol in which a client can say that its input has ended.
pub const V5: &str = "v5.channel.k8s.io";
/// The one before.
pub const V4: &str = "v4.channel.k8s.io";

const INPUT: u8 = 0;
/// Standard output.
pub const OUT: u8 = 1;
/// Standard error.
pub const ERR: u8 = 2;
/// How it ended.
pub const STATUS: u8 = 3;
const SIZE: u8 = 4;
const END: u8 = 255;

/// How the channels of a protocol are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channels {
    /// Whether a channel can end by itself.
    has_end: bool,
}

/// What a client says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard<'a> {
    /// Something for the process to read.
    Input(&'a [u8]),
    /// There is no more to read.
    InputEnd,
    /// How large the client's terminal is.
    Size {
        /// Characters in a line.
        columns: u16,
        /// Lines.
        rows: u16,
    },
    /// Nothing that means anything.
    Nothing,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Size {
    width: u16,
    height: u16,
}

impl Channels {
    /// Those of a protocol.
    pub fn of(protocol: &str) -> Self {
        Self { has_end: protocol == V5 }
    }

    /// Reads one message.
    pub fn hear(self, message: &[u8]) -> Heard<'_> {
        match message.split_first() {
            Some((&INPUT, bytes)) => Heard::Input(bytes),
            Some((&SIZE, text)) => match serde_json::from_slice(text) {
                Ok(Size { width, height }) => Heard::Size { columns: width, rows: height },
                Err(_) => Heard::Nothing,
            },
            Some((&END, [INPUT])) if self.has_end => Heard::InputEnd,
            _ => Heard::Nothing,
        }
    }
}

/// Makes a message.
pub fn message(channel: u8, bytes: &[u8]) -> Message {
    let mut message = Vec::with_capacity(bytes.len() + 1);
    message.push(channel);
    message.extend_from_slice(bytes);
    Message::Binary(message.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_byte_says_what_is_meant() {
        let cases: [(&[u8], Heard<'_>); 10] = [
            (b"", Heard::Nothing),
            (b"\0hello", Heard::Input(b"hello")),
            (b"\0", Heard::Input(b"")),
            (b"\x01hello", Heard::Nothing),
            (b"\x04{\"Width\":80,\"Height\":24}", Heard::Size { columns: 80, rows: 24 }),
            (b"\x04{\"Width\":80}", Heard::Nothing),
            (b"\x04{\"Width\":80,\"Height\":-1}", Heard::Nothing),
            (b"\xff\0", Heard::InputEnd),
            (b"\xff\x01", Heard::Nothing),
            (b"\xff", Heard::Nothing),
        ];
        for (message, want) in cases {
            assert_eq!(Channels::of(V5).hear(message), want, "{message:?}");
        }
        assert_eq!(Channels::of(V4).hear(b"\xff\0"), Heard::Nothing);
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read(message: Vec<u8>) {
            let _ = Channels::of(V5).hear(&message);
        }
    }
}
