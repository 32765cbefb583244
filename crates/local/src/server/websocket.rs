//! WebSockets: from a request that wants one to a connection that is one.

use std::time::Duration;

use axum::{body::Body, response::Response};
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::BytesMut;
use futures::{SinkExt, StreamExt};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use lockstep_api::Status;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Message, handshake::derive_accept_key, protocol::Role, protocol::WebSocketConfig,
    },
};

use super::{call::Call, error::failure};
use crate::auth::is_bearer_protocol;

/// The longest message that is read; clients send some ten KiB at a time.
const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// How long a client may take to say goodbye.
const GOODBYE_TIME_MAX: Duration = Duration::from_secs(2);
/// How often an idle client hears something: kubectl gives up a connection on which its pings stay
/// unanswered, and they do while it waits with what it sends.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(5);

/// An open WebSocket.
pub(crate) type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// A request for a WebSocket that will be granted.
pub(crate) struct Offer {
    upgrade: OnUpgrade,
    key: HeaderValue,
    /// The protocol to be spoken on it.
    pub(crate) protocol: &'static str,
    /// The protocol that is named in the answer, if any.
    named: Option<HeaderValue>,
}

impl Offer {
    /// What a request asks for: the first protocol that is `spoken` if it is among those it names,
    /// else the first of those that are. A request that names none asks for the one without a name.
    ///
    /// # Errors
    /// It is no request for a WebSocket, or for nothing that is spoken.
    pub(crate) fn of(call: &Call, spoken: &[&'static str]) -> Result<Self, Status> {
        let asked = Asked::of(&call.headers)?;
        let protocol = asked.choose(spoken)?;
        let upgrade = call.upgrade.clone().ok_or_else(required)?;
        let named = (!protocol.is_empty()).then(|| HeaderValue::from_static(protocol));
        Ok(Self { upgrade, key: asked.key, protocol, named })
    }

    /// What a request asks for, where all protocols are as good. The first it names is named in the
    /// answer: browsers go when none is.
    ///
    /// # Errors
    /// It is no request for a WebSocket.
    pub(crate) fn any(call: &Call) -> Result<Self, Status> {
        let asked = Asked::of(&call.headers)?;
        let upgrade = call.upgrade.clone().ok_or_else(required)?;
        let named = asked.protocols.first().and_then(|name| HeaderValue::from_str(name).ok());
        Ok(Self { upgrade, key: asked.key, protocol: "", named })
    }

    /// The answer that begins it. Once the client has it, `serve` is called in a task of its own.
    pub(crate) fn accept<F>(self, serve: impl FnOnce(Socket) -> F + Send + 'static) -> Response
    where
        F: Future<Output = ()> + Send,
    {
        let Self { upgrade, key, named, .. } = self;
        tokio::spawn(async move {
            match upgrade.await {
                Ok(upgraded) => {
                    let io = TokioIo::new(upgraded);
                    let config = WebSocketConfig::default()
                        .max_message_size(Some(MESSAGE_BYTES_MAX))
                        .max_frame_size(Some(MESSAGE_BYTES_MAX));
                    let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config));
                    serve(socket.await).await;
                }
                Err(error) => tracing::debug!(%error, "the client went before its WebSocket"),
            }
        });
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        if let Ok(accept) = HeaderValue::from_str(&derive_accept_key(key.as_bytes())) {
            headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
        }
        if let Some(protocol) = named {
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, protocol);
        }
        response
    }
}

/// Whether a request would go on as a WebSocket.
pub(crate) fn is_asked_for(headers: &HeaderMap) -> bool {
    let has = |name: HeaderName, wanted: &str| {
        words(headers, name).any(|word| word.eq_ignore_ascii_case(wanted))
    };
    has(header::CONNECTION, "upgrade") && has(header::UPGRADE, "websocket")
}

/// What a WebSocket is spoken on that only carries what would be the body of an answer.
pub(crate) const PLAIN_PROTOCOLS: [&str; 3] = ["", "binary.k8s.io", "base64.binary.k8s.io"];

/// How the parts of a body are messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carried {
    /// Each chunk is one, of bytes or of Base64, as the protocol says.
    Chunks,
    /// Each line is one, of text.
    Lines,
}

/// Sends a body over a WebSocket, until it ends or the client goes.
pub(crate) async fn carry(socket: Socket, protocol: &'static str, body: Body, carried: Carried) {
    let (mut sink, mut incoming) = socket.split();
    let mut chunks = body.into_data_stream();
    let send = async {
        // A sign that it has begun, as there may be nothing to say for long.
        if carried == Carried::Chunks {
            sink.send(carried_message(protocol, &[])).await?;
        }
        let mut rest = BytesMut::new();
        while let Some(Ok(chunk)) = chunks.next().await {
            match carried {
                Carried::Chunks => sink.send(carried_message(protocol, &chunk)).await?,
                Carried::Lines => {
                    rest.extend_from_slice(&chunk);
                    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                        let line = rest.split_to(end + 1);
                        let text = String::from_utf8_lossy(&line).into_owned();
                        sink.send(Message::Text(text.into())).await?;
                    }
                }
            }
        }
        sink.send(Message::Close(None)).await
    };
    let gone = async { while let Some(Ok(_)) = incoming.next().await {} };
    let is_sent = tokio::select! {
        sent = send => sent.is_ok(),
        () = gone => false,
    };
    if is_sent {
        part(incoming).await;
    }
}

fn carried_message(protocol: &str, bytes: &[u8]) -> Message {
    match protocol {
        "base64.binary.k8s.io" => Message::Text(STANDARD.encode(bytes).into()),
        _ => Message::Binary(bytes.to_vec().into()),
    }
}

/// Hears a client out that was told that it is over, so that what it was sent is not cut off.
pub(crate) async fn part(mut incoming: impl futures::Stream<Item = Heard> + Unpin) {
    let goodbye = async { while let Some(Ok(_)) = incoming.next().await {} };
    let _ = tokio::time::timeout(GOODBYE_TIME_MAX, goodbye).await;
}

/// What comes from a client.
pub(crate) type Heard = Result<Message, tokio_tungstenite::tungstenite::Error>;

/// What the head of a request asks for.
#[derive(Debug)]
struct Asked {
    key: HeaderValue,
    protocols: Vec<String>,
}

impl Asked {
    fn of(headers: &HeaderMap) -> Result<Self, Status> {
        let has = |name: HeaderName, wanted: &str| {
            words(headers, name).any(|word| word.eq_ignore_ascii_case(wanted))
        };
        if !has(header::CONNECTION, "upgrade") || !headers.contains_key(header::UPGRADE) {
            return Err(required());
        }
        if !has(header::UPGRADE, "websocket") {
            let message = "only WebSockets are spoken here: SPDY is for clients before 1.30";
            return Err(Status::bad_request(format!("Upgrade request required: {message}")));
        }
        if !has(header::SEC_WEBSOCKET_VERSION, "13") {
            return Err(Status::bad_request("only version 13 of WebSockets is spoken here"));
        }
        let key = headers.get(header::SEC_WEBSOCKET_KEY).cloned();
        let key = key.ok_or_else(|| Status::bad_request("the key of the WebSocket is missing"))?;
        let named = protocols(headers).filter(|name| !is_bearer_protocol(name));
        Ok(Self { key, protocols: named.map(str::to_owned).collect() })
    }

    fn choose(&self, spoken: &[&'static str]) -> Result<&'static str, Status> {
        let is_spoken = |asked: &str| spoken.iter().find(|protocol| **protocol == asked).copied();
        let preferred = spoken.first().filter(|best| self.protocols.iter().any(|it| it == *best));
        let chosen = match (preferred, self.protocols.as_slice()) {
            (Some(preferred), _) => Some(*preferred),
            (None, []) => is_spoken(""),
            (None, asked) => asked.iter().find_map(|asked| is_spoken(asked)),
        };
        chosen.ok_or_else(|| {
            let message = format!(
                "unable to upgrade: unable to negotiate protocol: client supports [{}], server \
                 accepts [{}]",
                self.protocols.join(" "),
                spoken.join(" ")
            );
            failure(403, "Forbidden", message)
        })
    }
}

/// The protocols that a request names.
pub(crate) fn protocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    words(headers, header::SEC_WEBSOCKET_PROTOCOL)
}

/// The words of all headers of a name, which are lists.
fn words(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    let texts = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(',')).map(str::trim).filter(|word| !word.is_empty())
}

fn required() -> Status {
    Status::bad_request("Upgrade request required")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_names_no_protocol_asks_for_the_one_without_a_name() {
        let of = |protocols: &[&str]| {
            let protocols = protocols.iter().map(ToString::to_string).collect();
            let asked = Asked { key: HeaderValue::from_static("x"), protocols };
            asked.choose(&PLAIN_PROTOCOLS).ok()
        };
        assert_eq!(of(&[]), Some(""));
        assert_eq!(of(&["binary.k8s.io"]), Some("binary.k8s.io"));
        assert_eq!(of(&["channel.k8s.io"]), None);
    }

    #[test]
    fn upgrades_are_granted_to_who_speaks_what_is_spoken() {
        let ws = "connection: keep-alive, Upgrade\nupgrade: websocket\nsec-websocket-version: 13";
        let spdy = "connection: Upgrade\nupgrade: SPDY/3.1";
        let key = "\nsec-websocket-key: x";
        let cases = [
            (String::new(), Err((400, "Upgrade request required"))),
            ("upgrade: websocket".to_owned(), Err((400, "Upgrade request required"))),
            (spdy.to_owned(), Err((400, "Upgrade request required: only WebSockets"))),
            (format!("{ws}0{key}"), Err((400, "only version 13"))),
            (ws.to_owned(), Err((400, "the key of the WebSocket is missing"))),
            (format!("{ws}{key}"), Err((403, "unable to upgrade: unable to negotiate protocol"))),
            (format!("{ws}{key}\nsec-websocket-protocol: d"), Err((403, "unable to upgrade"))),
            (format!("{ws}{key}\nsec-websocket-protocol: d, c, b"), Ok("c")),
            (format!("{ws}{key}\nsec-websocket-protocol: d, c, b, a"), Ok("a")),
            (format!("{ws}{key}\nsec-websocket-protocol: d\nsec-websocket-protocol: b"), Ok("b")),
        ];
        for (text, want) in cases {
            let mut headers = HeaderMap::new();
            for line in text.lines() {
                let (name, value) = line.split_once(": ").unwrap();
                let name: HeaderName = name.parse().unwrap();
                headers.append(name, value.parse().unwrap());
            }
            let chosen = Asked::of(&headers).and_then(|asked| asked.choose(&["a", "b", "c"]));
            match (chosen, want) {
                (Ok(chosen), Ok(want)) => assert_eq!(chosen, want, "{text}"),
                (Err(status), Err((code, message))) => {
                    assert_eq!(status.code, code, "{text}");
                    assert!(status.message.starts_with(message), "{text}: {}", status.message);
                }
                (chosen, _) => panic!("{text}: {chosen:?}"),
            }
        }
    }
}
