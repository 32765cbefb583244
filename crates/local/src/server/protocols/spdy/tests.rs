use proptest::prelude::*;

use super::*;

/// Two streams, the end of the first, and a ping, as Go's framer writes them.
const RECORDED: &str = "\
800300010000003d0000000100000000000078f9e3c6a7c202253a060606ce2248fc6482d22da30138e59514a5\
26e6420b17d65450d0430aea2250a266b23000000000ffff0000000101000000800300010000001c0000000300\
0000000000826a4555082a851231d4a1190f000000ffff800300060000000400000001";

fn headers(port: &str) -> Vec<(String, String)> {
    let pairs = [("streamtype", "data"), ("port", port), ("requestid", "0")];
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}

fn decode(decoder: &mut Decoder, bytes: &[u8]) -> Result<Vec<Frame>, SpdyError> {
    decoder.push(bytes);
    let mut frames = Vec::new();
    while let Some(frame) = decoder.frame()? {
        frames.push(frame);
    }
    Ok(frames)
}

fn frames() -> Vec<Frame> {
    vec![
        Frame::Open { stream: 1, is_fin: false, headers: headers("80") },
        Frame::Reply { stream: 1 },
        Frame::Data { stream: 1, is_fin: false, bytes: Bytes::from_static(b"hello") },
        Frame::Open { stream: 3, is_fin: true, headers: headers("8080") },
        Frame::Ping(7),
        Frame::Reset { stream: 3, code: REFUSED_STREAM },
        Frame::Data { stream: 1, is_fin: true, bytes: Bytes::new() },
        Frame::GoAway,
    ]
}

#[test]
fn what_is_written_is_read() {
    let mut encoder = Encoder::new();
    let bytes: Vec<u8> = frames().iter().flat_map(|frame| encoder.write(frame)).collect();
    assert_eq!(decode(&mut Decoder::new(), &bytes).unwrap(), frames());
    // One byte at a time, data comes in parts.
    let mut decoder = Decoder::new();
    let mut seen = Vec::new();
    for byte in bytes {
        seen.extend(decode(&mut decoder, &[byte]).unwrap());
    }
    let data: Vec<u8> = seen
        .iter()
        .filter_map(|frame| match frame {
            Frame::Data { bytes, .. } => Some(bytes.to_vec()),
            _ => None,
        })
        .flatten()
        .collect();
    assert_eq!(data, b"hello");
    let is_data = |frame: &Frame| matches!(frame, Frame::Data { .. });
    seen.retain(|frame| !is_data(frame));
    let want: Vec<Frame> = frames().into_iter().filter(|frame| !is_data(frame)).collect();
    assert_eq!(seen, want);
}

#[test]
fn frames_of_other_writers_are_read() {
    let digits = RECORDED.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    let bytes: Vec<u8> = digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect();
    let read = decode(&mut Decoder::new(), &bytes).unwrap();
    let named = |kind: &str| {
        let mut want = headers("80");
        want[0].1 = kind.to_owned();
        want.sort();
        want
    };
    let opened: Vec<_> = read
        .iter()
        .filter_map(|frame| match frame {
            Frame::Open { stream, headers, .. } => {
                let mut headers = headers.clone();
                headers.sort();
                Some((*stream, headers))
            }
            _ => None,
        })
        .collect();
    assert_eq!(opened, [(1, named("error")), (3, named("data"))]);
}

#[test]
fn what_is_not_spdy_is_refused() {
    let cases: [(&[u8], SpdyError); 4] = [
        (&[0x80, 2, 0, 1, 0, 0, 0, 0], SpdyError::Version(2)),
        (&[0x80, 3, 0, 1, 0, 0xff, 0, 0], SpdyError::TooLong(0xff_0000)),
        (&[0x80, 3, 0, 6, 0, 0, 0, 1, 0], SpdyError::TooShort),
        (&[0x80, 3, 0, 2, 0, 0, 0, 6, 0, 0, 0, 1, 1, 1], SpdyError::Headers),
    ];
    for (bytes, want) in cases {
        assert_eq!(decode(&mut Decoder::new(), bytes), Err(want), "{bytes:?}");
    }
    // Settings and windows mean nothing here.
    let bytes = [0x80, 3, 0, 4, 0, 0, 0, 4, 0, 0, 0, 0, 0x80, 3, 0, 6, 0, 0, 0, 4, 0, 0, 0, 9];
    assert_eq!(decode(&mut Decoder::new(), &bytes), Ok(vec![Frame::Ping(9)]));
}

#[test]
fn headers_that_grow_without_end_are_refused() {
    let long = vec![("a".to_owned(), "b".repeat(40 << 10))];
    let frame = Frame::Open { stream: 1, is_fin: false, headers: long };
    let bytes = Encoder::new().write(&frame);
    assert_eq!(decode(&mut Decoder::new(), &bytes), Err(SpdyError::Headers));
}

proptest! {
    #[test]
    fn whatever_comes_is_read_or_refused(bytes: Vec<u8>, cut in 0_usize..64) {
        let mut encoder = Encoder::new();
        let mut all: Vec<u8> = frames().iter().flat_map(|frame| encoder.write(frame)).collect();
        all.truncate(cut.min(all.len()));
        all.extend(bytes);
        let _ = decode(&mut Decoder::new(), &all);
    }
}
