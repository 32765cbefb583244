//! One line of a log file.

use jiff::Timestamp;

use super::LogStream;

/// A line as the shim wrote it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// As it is in the file.
    pub(super) time_text: &'a [u8],
    pub(super) stream: LogStream,
    /// Whether the text goes on in the next line.
    pub(super) is_partial: bool,
    pub(super) text: &'a [u8],
}

impl<'a> Line<'a> {
    /// Takes a line apart; `None` if it is not one of ours, as after a crash in the middle of
    /// writing.
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        let mut parts = line.splitn(4, |byte| *byte == b' ');
        let (time_text, stream, tag) = (parts.next()?, parts.next()?, parts.next()?);
        let text = parts.next()?;
        let stream = match stream {
            b"stdout" => LogStream::Stdout,
            b"stderr" => LogStream::Stderr,
            _ => return None,
        };
        let is_partial = match tag {
            b"F" => false,
            b"P" => true,
            _ => return None,
        };
        Some(Self { time_text, stream, is_partial, text })
    }

    pub(super) fn time(&self) -> Option<Timestamp> {
        std::str::from_utf8(self.time_text).ok()?.parse().ok()
    }
}
