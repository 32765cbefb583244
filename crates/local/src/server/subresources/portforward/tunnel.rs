//! SPDY inside of a WebSocket: as many connections as the client likes.

use std::collections::HashMap;

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::mpsc,
    task::{AbortHandle, JoinSet},
};
use tokio_tungstenite::tungstenite::Message;
use tracing::debug;

use super::{
    CHUNK, Target, beat,
    pipe::{Entrance, Exit, GivenUp, STUCK, pipe},
};
use crate::server::{
    protocols::{
        spdy::{Decoder, Encoder, Frame},
        streams::{Step, Streams},
    },
    websocket::{self, Socket},
};

/// How many frames may wait for the client.
const QUEUE: usize = 16;

/// Carries connections until the client goes.
pub(super) async fn serve(socket: Socket, target: Target) {
    let (mut sink, mut incoming) = socket.split();
    let (frames, mut queue) = mpsc::channel::<Frame>(QUEUE);
    let (outgoing, mut messages) = mpsc::channel::<Message>(QUEUE);
    let encode = async {
        let mut encoder = Encoder::new();
        while let Some(frame) = queue.recv().await {
            let message = Message::Binary(encoder.write(&frame).into());
            if outgoing.send(message).await.is_err() {
                return;
            }
        }
    };
    let write = async {
        while let Some(message) = messages.recv().await {
            if sink.send(message).await.is_err() {
                return;
            }
        }
    };
    let listen = async {
        let mut tunnel = Tunnel::new(target, frames.clone());
        let mut decoder = Decoder::new();
        loop {
            let message = tokio::select! {
                message = incoming.next() => message,
                Some(ended) = tunnel.connections.join_next() => {
                    tunnel.ended(ended.ok());
                    continue;
                }
            };
            let bytes = match message {
                Some(Ok(Message::Binary(bytes))) => bytes,
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                _ => return,
            };
            decoder.push(&bytes);
            loop {
                match decoder.frame() {
                    Ok(Some(frame)) => {
                        if !tunnel.hear(frame).await {
                            return;
                        }
                    }
                    Ok(None) => break,
                    Err(error) => return debug!(%error, "not a tunnel"),
                }
            }
        }
    };
    tokio::select! {
        () = encode => {}
        () = write => {}
        () = listen => {}
        () = beat(&outgoing) => {}
    }
    let _ = sink.close().await;
    websocket::part(incoming).await;
}

/// The connections of one client. All of them end with it.
struct Tunnel {
    target: Target,
    streams: Streams,
    frames: mpsc::Sender<Frame>,
    inputs: HashMap<u32, (Option<Entrance>, AbortHandle)>,
    connections: JoinSet<(u32, u32)>,
}

impl Tunnel {
    fn new(target: Target, frames: mpsc::Sender<Frame>) -> Self {
        let (streams, inputs) = (Streams::default(), HashMap::new());
        Self { target, streams, frames, inputs, connections: JoinSet::new() }
    }

    /// Does what a frame asks for. Returns whether the client stays.
    async fn hear(&mut self, frame: Frame) -> bool {
        for step in self.streams.hear(frame) {
            match step {
                Step::Send(frame) => {
                    if self.frames.send(frame).await.is_err() {
                        return false;
                    }
                }
                Step::Connect { data, error, port } => {
                    let (input, received, given_up) = pipe();
                    let (target, frames) = (self.target.clone(), self.frames.clone());
                    let handle = self.connections.spawn(async move {
                        forward(&target, port, (data, error), (received, given_up), &frames).await;
                        (data, error)
                    });
                    self.inputs.insert(data, (Some(input), handle));
                }
                Step::Input { data, bytes } => {
                    // A connection that takes no more has ended, or is about to.
                    if let Some((slot, _)) = self.inputs.get_mut(&data)
                        && let Some(input) = slot
                        && !input.push(bytes).await
                    {
                        *slot = None;
                    }
                }
                Step::InputEnd { data } => {
                    if let Some((input, _)) = self.inputs.get_mut(&data) {
                        *input = None;
                    }
                }
                Step::Drop { data } => {
                    if let Some((_, connection)) = self.inputs.remove(&data) {
                        connection.abort();
                    }
                }
                Step::Leave => return false,
            }
        }
        true
    }

    fn ended(&mut self, ended: Option<(u32, u32)>) {
        if let Some((data, error)) = ended {
            self.inputs.remove(&data);
            self.streams.closed(data, error);
        }
    }
}

/// Carries one connection.
async fn forward(
    target: &Target,
    port: u16,
    (data, error): (u32, u32),
    input: (Exit, GivenUp),
    frames: &mpsc::Sender<Frame>,
) {
    let fin = |stream, bytes| Frame::Data { stream, is_fin: true, bytes };
    let why = match target.connect(port).await {
        Ok(stream) => match copy(stream, data, input, frames).await {
            Ok(()) => Bytes::new(),
            Err(why) => Bytes::from(target.failure(port, why)),
        },
        Err(why) => Bytes::from(why),
    };
    for frame in [fin(error, why), fin(data, Bytes::new())] {
        if frames.send(frame).await.is_err() {
            return;
        }
    }
}

/// Copies in both directions, until nothing more comes from the port, or it was given up.
async fn copy(
    mut stream: tokio::net::TcpStream,
    data: u32,
    (mut input, given_up): (Exit, GivenUp),
    frames: &mpsc::Sender<Frame>,
) -> Result<(), &'static str> {
    let (mut reader, mut writer) = stream.split();
    let write = async {
        while let Some(bytes) = input.next().await {
            if writer.write_all(&bytes).await.is_err() {
                return;
            }
        }
        let _ = writer.shutdown().await;
    };
    let read = async {
        let mut chunk = vec![0; CHUNK];
        while let Ok(count @ 1..) = reader.read(&mut chunk).await {
            let bytes = Bytes::copy_from_slice(&chunk[..count]);
            let frame = Frame::Data { stream: data, is_fin: false, bytes };
            if frames.send(frame).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = async { write.await; std::future::pending().await } => Ok(()),
        () = read => Ok(()),
        () = given_up.wait() => Err(STUCK),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{net::TcpListener, time::timeout};

    use super::*;
    use crate::node::network::PodAddresses;

    fn open(stream: u32, sort: &str, port: u16, request: &str) -> Frame {
        let port = port.to_string();
        let pairs = [("streamtype", sort), ("port", port.as_str()), ("requestid", request)];
        let headers = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        Frame::Open { stream, is_fin: false, headers }
    }

    fn data(stream: u32, bytes: impl Into<Bytes>) -> Frame {
        Frame::Data { stream, is_fin: false, bytes: bytes.into() }
    }

    #[tokio::test]
    async fn a_port_that_is_not_read_does_not_hold_up_the_others() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let echo = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let ports = [&silent, &echo].map(|it| it.local_addr().unwrap().port());
        tokio::spawn(async move {
            let (mut stream, _) = echo.accept().await.unwrap();
            let (mut reader, mut writer) = stream.split();
            tokio::io::copy(&mut reader, &mut writer).await
        });
        let addresses = PodAddresses::default();
        addresses.note("u", [127, 0, 0, 1].into());
        let target = Target { name: "p_n".to_owned(), uid: "u".to_owned(), addresses };
        let (frames, mut said) = mpsc::channel(1024);
        let mut tunnel = Tunnel::new(target, frames);
        for (at, port) in (0..).zip(ports) {
            let request = at.to_string();
            assert!(tunnel.hear(open(4 * at + 1, "error", port, &request)).await);
            assert!(tunnel.hear(open(4 * at + 3, "data", port, &request)).await);
        }
        let (kept, _) = silent.accept().await.unwrap();
        // More than systems keep for a reader, and than is kept here.
        let much = Bytes::from(vec![0; 1 << 20]);
        let sent = async {
            for _ in 0..32 {
                assert!(tunnel.hear(data(3, much.clone())).await);
            }
            assert!(tunnel.hear(data(7, "hello")).await);
        };
        timeout(Duration::from_secs(60), sent).await.expect("the rest goes on");
        let (mut why, mut answer) = (Bytes::new(), Bytes::new());
        while why.is_empty() || answer.is_empty() {
            let said = timeout(Duration::from_secs(30), said.recv()).await;
            match said.expect("it is told").unwrap() {
                Frame::Data { stream: 1, bytes, .. } => why = bytes,
                Frame::Data { stream: 7, bytes, .. } => answer = bytes,
                _ => {}
            }
        }
        assert_eq!(answer, "hello");
        let why = String::from_utf8_lossy(&why).into_owned();
        assert!(why.contains("does not read what was sent to the port"), "{why}");
        drop(kept);
    }
}
