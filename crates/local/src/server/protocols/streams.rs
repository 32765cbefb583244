//! What the streams of a tunnel mean: two for each connection, found by the number they share.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::spdy::{Frame, REFUSED_STREAM};

/// How many streams a client may have open: two for each of its connections.
const STREAMS_MAX: usize = 4096;

/// Something to be done because of what a client said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Say this to the client.
    Send(Frame),
    /// Connect to a port for these two streams.
    Connect {
        /// The stream of what is carried.
        data: u32,
        /// The stream of what goes wrong.
        error: u32,
        /// The port.
        port: u16,
    },
    /// Pass this on to the port of a stream.
    Input {
        /// The stream.
        data: u32,
        /// What came on it.
        bytes: Bytes,
    },
    /// Nothing more will come for the port of a stream.
    InputEnd {
        /// The stream.
        data: u32,
    },
    /// The client wants to hear no more of a stream.
    Drop {
        /// The stream.
        data: u32,
    },
    /// The client goes.
    Leave,
}

/// The streams of one tunnel.
#[derive(Debug, Default)]
pub struct Streams {
    /// Which sort each open stream is.
    open: BTreeMap<u32, Sort>,
    /// Streams for errors, by request, whose data stream has not come.
    waiting: BTreeMap<String, u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    /// Data, and where errors of it are told.
    Data {
        error: u32,
    },
    Error,
}

impl Streams {
    /// What a frame comes to.
    pub fn hear(&mut self, frame: Frame) -> Vec<Step> {
        match frame {
            Frame::Open { stream, headers, .. } => self.opened(stream, &headers),
            Frame::Data { stream, is_fin, bytes } => {
                if !matches!(self.open.get(&stream), Some(Sort::Data { .. })) {
                    return Vec::new();
                }
                let mut steps = Vec::new();
                if !bytes.is_empty() {
                    steps.push(Step::Input { data: stream, bytes });
                }
                if is_fin {
                    steps.push(Step::InputEnd { data: stream });
                }
                steps
            }
            Frame::Reset { stream, .. } => {
                self.waiting.retain(|_, waiting| *waiting != stream);
                match self.open.remove(&stream) {
                    Some(Sort::Data { error }) => {
                        // The client waits for its end before it lets the connection go.
                        self.open.remove(&error);
                        let bytes = Bytes::new();
                        let end = Frame::Data { stream: error, is_fin: true, bytes };
                        vec![Step::Drop { data: stream }, Step::Send(end)]
                    }
                    Some(Sort::Error) | None => Vec::new(),
                }
            }
            // Even numbers would be ours, and we ask for nothing.
            Frame::Ping(id) if id % 2 == 1 => vec![Step::Send(Frame::Ping(id))],
            Frame::Ping(_) | Frame::Reply { .. } => Vec::new(),
            Frame::GoAway => vec![Step::Leave],
        }
    }

    /// Notes that both streams of a connection have ended on our side.
    pub fn closed(&mut self, data: u32, error: u32) {
        self.open.remove(&data);
        self.open.remove(&error);
    }

    fn opened(&mut self, stream: u32, headers: &[(String, String)]) -> Vec<Step> {
        let header = |wanted: &str| {
            let found = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
            found.map(|(_, value)| value.as_str())
        };
        let refused = vec![Step::Send(Frame::Reset { stream, code: REFUSED_STREAM })];
        if self.open.len() >= STREAMS_MAX || self.open.contains_key(&stream) {
            return refused;
        }
        let request = header("requestid").unwrap_or_default();
        let port = header("port").and_then(|port| port.parse().ok()).filter(|port| *port > 0_u16);
        let reply = Step::Send(Frame::Reply { stream });
        match (header("streamtype"), port) {
            (Some("error"), Some(_)) => {
                self.open.insert(stream, Sort::Error);
                self.waiting.insert(request.to_owned(), stream);
                vec![reply]
            }
            (Some("data"), Some(port)) => match self.waiting.remove(request) {
                Some(error) => {
                    self.open.insert(stream, Sort::Data { error });
                    vec![reply, Step::Connect { data: stream, error, port }]
                }
                // Clients open the stream for errors first.
                None => refused,
            },
            _ => refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(stream: u32, kind: &str, port: &str, request: &str) -> Frame {
        let pairs = [("streamtype", kind), ("port", port), ("requestid", request)];
        let headers = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        Frame::Open { stream, is_fin: false, headers }
    }

    fn data(stream: u32, bytes: &'static [u8], is_fin: bool) -> Frame {
        Frame::Data { stream, is_fin, bytes: Bytes::from_static(bytes) }
    }

    #[test]
    fn two_streams_of_one_request_are_a_connection() {
        let mut streams = Streams::default();
        let reply = |stream| Step::Send(Frame::Reply { stream });
        let refused = |stream| vec![Step::Send(Frame::Reset { stream, code: REFUSED_STREAM })];
        let hi = Bytes::from_static(b"hi");
        let cases = [
            ("errors first", open(1, "error", "80", "0"), vec![reply(1)]),
            ("errors of another", open(3, "error", "81", "1"), vec![reply(3)]),
            (
                "the data",
                open(5, "data", "80", "0"),
                vec![reply(5), Step::Connect { data: 5, error: 1, port: 80 }],
            ),
            ("a number twice", open(5, "error", "80", "7"), refused(5)),
            ("nobody's data", open(7, "data", "80", "0"), refused(7)),
            ("no port", open(9, "error", "0", "2"), refused(9)),
            ("no sort", open(9, "", "80", "2"), refused(9)),
            ("something to say", data(5, b"hi", false), vec![Step::Input { data: 5, bytes: hi }]),
            ("the end of errors", data(1, b"", true), vec![]),
            ("the end", data(5, b"", true), vec![Step::InputEnd { data: 5 }]),
            ("no stream", data(99, b"hi", true), vec![]),
            ("a ping", Frame::Ping(3), vec![Step::Send(Frame::Ping(3))]),
            ("an answer to a ping", Frame::Ping(2), vec![]),
            (
                "enough",
                Frame::Reset { stream: 5, code: 5 },
                vec![Step::Drop { data: 5 }, Step::Send(data(1, b"", true))],
            ),
            ("enough again", Frame::Reset { stream: 5, code: 5 }, vec![]),
            ("before the data", Frame::Reset { stream: 3, code: 5 }, vec![]),
            ("so there is none", open(11, "data", "81", "1"), refused(11)),
            ("goodbye", Frame::GoAway, vec![Step::Leave]),
        ];
        for (name, frame, want) in cases {
            assert_eq!(streams.hear(frame), want, "{name}");
        }
    }

    #[test]
    fn streams_are_not_without_number() {
        let mut streams = Streams::default();
        let count = u32::try_from(STREAMS_MAX).unwrap();
        for number in 0..count {
            let request = number.to_string();
            assert_eq!(streams.hear(open(2 * number + 1, "error", "80", &request)).len(), 1);
        }
        let one_more = streams.hear(open(2 * count + 1, "error", "80", "x"));
        assert!(matches!(one_more[..], [Step::Send(Frame::Reset { .. })]));
        streams.closed(0, 1);
        let again = streams.hear(open(2 * count + 1, "error", "80", "x"));
        assert!(matches!(again[..], [Step::Send(Frame::Reply { .. })]));
    }
}
