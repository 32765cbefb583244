//! Channels: the first byte of a message says which stream the rest belongs to.
//!
//! In protocols for those who can only send text, that byte is a digit, and the rest is Base64.

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Deserialize;
use tokio_tungstenite::tungstenite::Message;

/// The protocol in which a client can say that its input has ended.
pub const V5: &str = "v5.channel.k8s.io";
/// The one before.
pub const V4: &str = "v4.channel.k8s.io";
/// The same as text.
pub const V4_TEXT: &str = "v4.base64.channel.k8s.io";
/// The first one, which is also spoken with those who name none.
pub const V1: &str = "channel.k8s.io";
/// The same as text.
pub const V1_TEXT: &str = "base64.channel.k8s.io";

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
    /// Whether messages are text.
    is_text: bool,
    /// Whether it is said in JSON how it ended, also when it ended well.
    has_status: bool,
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
        Self {
            has_end: protocol == V5,
            is_text: [V4_TEXT, V1_TEXT].contains(&protocol),
            has_status: [V5, V4, V4_TEXT].contains(&protocol),
        }
    }

    /// Whether it is said in JSON how it ended, also when it ended well. Others hear only of
    /// failures, in words.
    pub fn has_status(self) -> bool {
        self.has_status
    }

    /// A message as if it were none of text; nothing if it is no message.
    pub fn opened(self, message: &[u8]) -> Option<Cow<'_, [u8]>> {
        if !self.is_text {
            return Some(Cow::Borrowed(message));
        }
        let (channel, text) = message.split_first()?;
        let mut opened = vec![channel.checked_sub(b'0')?];
        STANDARD.decode_vec(text, &mut opened).ok()?;
        Some(Cow::Owned(opened))
    }

    /// Makes a message.
    pub fn message(self, channel: u8, bytes: &[u8]) -> Message {
        if self.is_text {
            let mut text = char::from(b'0' + channel).to_string();
            STANDARD.encode_string(bytes, &mut text);
            return Message::Text(text.into());
        }
        let mut message = Vec::with_capacity(bytes.len() + 1);
        message.push(channel);
        message.extend_from_slice(bytes);
        Message::Binary(message.into())
    }

    /// Reads one message that was [opened](Self::opened).
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

    #[test]
    fn messages_of_text_say_the_same() {
        let text = Channels::of(V4_TEXT);
        assert_eq!(text.message(OUT, b"hi"), Message::Text("1aGk=".into()));
        assert_eq!(text.opened(b"0aGk=").as_deref(), Some(&b"\0hi"[..]));
        assert_eq!(text.opened(b"0a"), None);
        assert_eq!(text.opened(b"\0aGk="), None);
        assert_eq!(text.opened(b""), None);
        assert_eq!(Channels::of(V1).message(OUT, b"hi"), Message::Binary(b"\x01hi"[..].into()));
        let with_status =
            [V5, V4, V4_TEXT, V1, V1_TEXT, ""].map(|it| Channels::of(it).has_status());
        assert_eq!(with_status, [true, true, true, false, false, false]);
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read(message: Vec<u8>) {
            let _ = Channels::of(V5).hear(&message);
        }
    }
}
