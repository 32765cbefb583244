//! Ports as channels: two for each, of which the first is its data and the second what went wrong.

use futures::{SinkExt, StreamExt, future::join_all};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::mpsc,
};
use tokio_tungstenite::tungstenite::{
    Message,
    protocol::{CloseFrame, frame::coding::CloseCode},
};

use super::{
    CHUNK, Target, beat,
    pipe::{Exit, GivenUp, STUCK, pipe},
};
use crate::server::websocket::{self, Socket};

/// How many messages may wait for the client.
const QUEUE: usize = 16;

/// Carries what goes to and comes from `ports`, until all have ended or the client goes.
pub(super) async fn serve(socket: Socket, target: Target, ports: Vec<u16>) {
    let (mut sink, mut incoming) = socket.split();
    let (outgoing, mut queue) = mpsc::channel::<Message>(QUEUE);
    let write = async {
        while let Some(message) = queue.recv().await {
            let is_last = matches!(message, Message::Close(_));
            if sink.send(message).await.is_err() || is_last {
                return;
            }
        }
    };
    let (mut inputs, mut forwards) = (Vec::new(), Vec::new());
    for (port, index) in ports.into_iter().zip((0..=254).step_by(2)) {
        let (input, received, given_up) = pipe();
        inputs.push(Some(input));
        forwards.push(forward(&target, port, index, (received, given_up), &outgoing));
    }
    let forward = async {
        join_all(forwards).await;
        let normal = CloseFrame { code: CloseCode::Normal, reason: "".into() };
        let _ = outgoing.send(Message::Close(Some(normal))).await;
        std::future::pending().await
    };
    let listen = async {
        while let Some(Ok(message)) = incoming.next().await {
            let Message::Binary(mut bytes) = message else { continue };
            let Some(&channel) = bytes.first() else { continue };
            let input = inputs.get_mut(usize::from(channel / 2));
            // Nobody has anything to say about errors of the other side.
            let Some(slot) = input.filter(|_| channel % 2 == 0) else { continue };
            let Some(input) = slot else { continue };
            if !input.push(bytes.split_off(1)).await {
                *slot = None;
            }
        }
    };
    tokio::select! {
        () = write => {}
        () = forward => {}
        () = listen => {}
        () = beat(&outgoing) => {}
    }
    websocket::part(incoming).await;
}

/// Carries what goes to and comes from one port.
async fn forward(
    target: &Target,
    port: u16,
    channel: u8,
    (mut input, given_up): (Exit, GivenUp),
    outgoing: &mpsc::Sender<Message>,
) {
    // A client knows by it which port is which.
    for channel in [channel, channel + 1] {
        if outgoing.send(message(channel, &port.to_le_bytes())).await.is_err() {
            return;
        }
    }
    let mut stream = match target.connect(port).await {
        Ok(stream) => stream,
        Err(why) => {
            let _ = outgoing.send(message(channel + 1, why.as_bytes())).await;
            return;
        }
    };
    let (mut reader, mut writer) = stream.split();
    let write = async {
        while let Some(bytes) = input.next().await {
            if writer.write_all(&bytes).await.is_err() {
                return;
            }
        }
    };
    let read = async {
        let mut chunk = vec![0; CHUNK];
        while let Ok(count @ 1..) = reader.read(&mut chunk).await {
            if outgoing.send(message(channel, &chunk[..count])).await.is_err() {
                return;
            }
        }
    };
    let is_stuck = tokio::select! {
        // A peer that reads no more may still have something to say.
        () = async { write.await; std::future::pending().await } => false,
        () = read => false,
        () = given_up.wait() => true,
    };
    if is_stuck {
        let why = target.failure(port, STUCK);
        let _ = outgoing.send(message(channel + 1, why.as_bytes())).await;
    }
}

fn message(channel: u8, bytes: &[u8]) -> Message {
    let mut message = Vec::with_capacity(bytes.len() + 1);
    message.push(channel);
    message.extend_from_slice(bytes);
    Message::Binary(message.into())
}
