//! Headers, which are compressed over the whole connection.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};

use super::{SpdyError, dictionary::dictionary};

/// A frame with more headers of a stream.
pub(super) const HEADERS: u16 = 8;
/// As many bytes of headers as are read.
const BYTES_MAX: usize = 16 << 10;

/// Headers as they are known.
type Headers = Vec<(String, String)>;

/// Reads the headers of one direction.
pub(super) struct Inflate(Decompress);

impl Inflate {
    pub(super) fn new() -> Self {
        Self(Decompress::new(true))
    }

    /// Reads the headers of one frame.
    pub(super) fn read(&mut self, mut compressed: &[u8]) -> Result<Headers, SpdyError> {
        let mut plain = Vec::with_capacity(BYTES_MAX);
        let mut is_told = false;
        while !compressed.is_empty() {
            let before = self.0.total_in();
            let done = self.0.decompress_vec(compressed, &mut plain, FlushDecompress::Sync);
            let taken = usize::try_from(self.0.total_in() - before).unwrap_or(usize::MAX);
            compressed = compressed.get(taken..).ok_or(SpdyError::Headers)?;
            match done {
                Ok(_) if taken == 0 => return Err(SpdyError::Headers),
                Ok(_) => {}
                Err(error) if error.needs_dictionary().is_some() && !is_told => {
                    is_told = true;
                    self.0.set_dictionary(&dictionary()).map_err(|_| SpdyError::Headers)?;
                }
                Err(_) => return Err(SpdyError::Headers),
            }
        }
        parse(&plain).ok_or(SpdyError::Headers)
    }
}

/// Writes the headers of one direction.
pub(super) struct Deflate(Compress);

impl Deflate {
    pub(super) fn new() -> Self {
        let mut compress = Compress::new(Compression::fast(), true);
        // It can only fail after something was written.
        let _ = compress.set_dictionary(&dictionary());
        Self(compress)
    }

    /// The headers of one frame.
    pub(super) fn write(&mut self, headers: &[(String, String)]) -> Vec<u8> {
        let mut plain = length(headers.len()).to_vec();
        for text in headers.iter().flat_map(|(name, value)| [name, value]) {
            plain.extend_from_slice(&length(text.len()));
            plain.extend_from_slice(text.as_bytes());
        }
        let mut compressed = Vec::with_capacity(plain.len() + 64);
        let mut rest = plain.as_slice();
        loop {
            let before = self.0.total_in();
            let room = compressed.capacity() - compressed.len();
            let done = self.0.compress_vec(rest, &mut compressed, FlushCompress::Sync);
            let taken = usize::try_from(self.0.total_in() - before).unwrap_or(usize::MAX);
            rest = rest.get(taken..).unwrap_or_default();
            // There is more as long as the room was not enough.
            let is_full = compressed.len() == compressed.capacity() && room > 0;
            if done.is_err() || (rest.is_empty() && !is_full) {
                return compressed;
            }
            compressed.reserve(plain.len() + 64);
        }
    }
}

fn length(count: usize) -> [u8; 4] {
    u32::try_from(count).expect("headers are short").to_be_bytes()
}

fn parse(plain: &[u8]) -> Option<Headers> {
    let mut rest = plain;
    let count = take_number(&mut rest)?;
    let mut headers = Vec::new();
    for _ in 0..count {
        let name = take_text(&mut rest)?;
        let value = take_text(&mut rest)?;
        headers.push((name, value));
    }
    rest.is_empty().then_some(headers)
}

fn take_number(rest: &mut &[u8]) -> Option<usize> {
    let (number, after) = rest.split_first_chunk::<4>()?;
    *rest = after;
    usize::try_from(u32::from_be_bytes(*number)).ok()
}

fn take_text(rest: &mut &[u8]) -> Option<String> {
    let length = take_number(rest)?;
    let (text, after) = rest.split_at_checked(length)?;
    *rest = after;
    String::from_utf8(text.to_vec()).ok()
}
