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
    streams::{Step, Streams},
};
use crate::server::{
    spdy::{Decoder, Encoder, Frame},
    websocket::{self, Socket},
};

/// How many frames may wait, for the client and for each connection.
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
                match decoder.next() {
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
    inputs: HashMap<u32, (Option<mpsc::Sender<Bytes>>, AbortHandle)>,
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
                    let (input, received) = mpsc::channel(QUEUE);
                    let (target, frames) = (self.target.clone(), self.frames.clone());
                    let handle = self.connections.spawn(async move {
                        forward(&target, port, (data, error), received, &frames).await;
                        (data, error)
                    });
                    self.inputs.insert(data, (Some(input), handle));
                }
                Step::Input { data, bytes } => {
                    // A connection that takes no more has ended, or is about to.
                    if let Some((Some(input), _)) = self.inputs.get(&data) {
                        let _ = input.send(bytes).await;
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
    input: mpsc::Receiver<Bytes>,
    frames: &mpsc::Sender<Frame>,
) {
    let fin = |stream, bytes| Frame::Data { stream, is_fin: true, bytes };
    let why = match target.connect(port).await {
        Ok(stream) => {
            copy(stream, data, input, frames).await;
            Bytes::new()
        }
        Err(why) => Bytes::from(why),
    };
    for frame in [fin(error, why), fin(data, Bytes::new())] {
        if frames.send(frame).await.is_err() {
            return;
        }
    }
}

/// Copies in both directions, until nothing more comes from the port.
async fn copy(
    mut stream: tokio::net::TcpStream,
    data: u32,
    mut input: mpsc::Receiver<Bytes>,
    frames: &mpsc::Sender<Frame>,
) {
    let (mut reader, mut writer) = stream.split();
    let write = async {
        while let Some(bytes) = input.recv().await {
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
        () = async { write.await; std::future::pending().await } => {}
        () = read => {}
    }
}
