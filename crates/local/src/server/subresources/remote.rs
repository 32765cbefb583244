//! Talks between a client and a process, over the channels of a WebSocket.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use lockstep_api::Status;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio_tungstenite::tungstenite::{
    Bytes, Message,
    protocol::{CloseFrame, frame::coding::CloseCode},
};

use crate::{
    node::{
        runtime::{
            ExecError,
            talk::{End, Ended, InputEnd, Talk},
        },
        shim::wire::Streams,
    },
    server::{
        App,
        protocols::channels::{Channels, ERR, Heard, OUT, STATUS, V1, V1_TEXT, V4, V4_TEXT, V5},
        query::Query,
        websocket::{self, HEARTBEAT, Socket},
    },
};

/// What is spoken, also with those who name nothing.
pub(super) const PROTOCOLS: [&str; 6] = [V5, V4, V4_TEXT, V1, V1_TEXT, ""];

/// How much is read from a process at once.
const CHUNK: usize = 32 << 10;
/// How many messages may wait for the client.
const QUEUE: usize = 4;
/// How long to wait for more of what a process wrote after it has ended: what it left behind may
/// hold on to its streams for ever.
const LINGER: Duration = Duration::from_millis(500);

/// The streams a request asks for.
///
/// # Errors
/// It asks for none.
pub(super) fn streams(query: &Query, is_terminal: bool) -> Result<Streams, Status> {
    let streams = Streams {
        input: query.flag("stdin"),
        out: query.flag("stdout"),
        // A terminal has only one output.
        err: query.flag("stderr") && !is_terminal,
    };
    if streams == Streams::default() {
        let message = "you must specify at least 1 of stdin, stdout, stderr";
        return Err(Status::bad_request(message));
    }
    Ok(streams)
}

/// Why a process cannot be talked to, in the words of a kubelet.
pub(super) fn refusal(error: &ExecError, container: &str) -> Status {
    match error {
        ExecError::NotRunning { .. } => Status::internal(format!(
            "unable to upgrade connection: container not found ({container:?})"
        )),
        other => Status::internal(format!("error executing command in container: {other}")),
    }
}

/// Carries a talk until one of both sides has enough of it.
pub(super) async fn serve(
    app: Arc<App>,
    socket: Socket,
    protocol: &'static str,
    talk: Result<Talk, Status>,
) {
    let (mut sink, mut incoming) = socket.split();
    let (outgoing, mut queue) = mpsc::channel(QUEUE);
    let write = async {
        while let Some(message) = queue.recv().await {
            let is_last = matches!(message, Message::Close(_));
            if sink.send(message).await.is_err() || is_last {
                return;
            }
        }
    };
    let mut stop = app.stop.subscribe();
    let channels = Channels::of(protocol);
    let talk = async {
        let status = match talk {
            Ok(talk) => converse(talk, channels, &mut incoming, &outgoing).await,
            Err(status) => Some(refused(&status)),
        };
        let Some(status) = status else { return };
        let normal = CloseFrame { code: CloseCode::Normal, reason: "".into() };
        if let Some(text) = last_words(channels, &status) {
            let _ = outgoing.send(channels.message(STATUS, text.as_bytes())).await;
        }
        let _ = outgoing.send(Message::Close(Some(normal))).await;
        // The writer ends when it has written that.
        std::future::pending().await
    };
    tokio::select! {
        () = write => {}
        () = talk => {}
        () = beat(&outgoing) => {}
        () = crate::server::listen::stopped(&mut stop) => {}
    }
    websocket::part(incoming).await;
}

/// Lets the client hear something now and then.
async fn beat(outgoing: &mpsc::Sender<Message>) {
    loop {
        tokio::time::sleep(HEARTBEAT).await;
        if outgoing.send(Message::Pong(Bytes::new())).await.is_err() {
            return;
        }
    }
}

/// Copies in both directions. Gives back how the process ended; nothing when the client went first.
async fn converse(
    talk: Talk,
    channels: Channels,
    incoming: &mut (impl futures::Stream<Item = websocket::Heard> + Unpin),
    outgoing: &mpsc::Sender<Message>,
) -> Option<Value> {
    let Talk { input, out, err, mut ending, input_end } = talk;
    // Some clients take this as the sign that everything is set up.
    let first = if out.is_some() { OUT } else { ERR };
    outgoing.send(channels.message(first, &[])).await.ok()?;
    // Not held open by it: the end of the input must be one.
    let seat = input.as_ref().or(out.as_ref()).map(Arc::downgrade);
    let (over, is_over) = watch::channel(false);
    let copied = async {
        let out = copy(out, (channels, OUT), outgoing, is_over.clone());
        let err = copy(err, (channels, ERR), outgoing, is_over.clone());
        tokio::join!(out, err);
    };
    let ended = async {
        let ended = ending.wait().await;
        over.send_replace(true);
        ended
    };
    tokio::select! {
        ((), ended) = async { tokio::join!(copied, ended) } => Some(outcome(ended)),
        () = listen(incoming, channels, (input, input_end), seat) => None,
    }
}

/// Copies one stream of a process to its channel.
async fn copy(
    end: Option<Arc<End>>,
    (channels, channel): (Channels, u8),
    outgoing: &mpsc::Sender<Message>,
    mut over: watch::Receiver<bool>,
) {
    let Some(end) = end else { return };
    let mut chunk = vec![0; CHUNK];
    loop {
        let is_over = *over.borrow_and_update();
        let read = tokio::select! {
            read = end.read(&mut chunk) => read,
            changed = over.changed(), if !is_over => match changed {
                Ok(()) => continue,
                Err(_) => return,
            },
            () = tokio::time::sleep(LINGER), if is_over => return,
        };
        match read {
            Ok(count) if count > 0 => {
                if outgoing.send(channels.message(channel, &chunk[..count])).await.is_err() {
                    return;
                }
            }
            _ => return,
        }
    }
}

/// Does what the client says, until it goes.
async fn listen(
    incoming: &mut (impl futures::Stream<Item = websocket::Heard> + Unpin),
    channels: Channels,
    (mut input, mut input_end): (Option<Arc<End>>, InputEnd),
    seat: Option<Weak<End>>,
) {
    while let Some(Ok(message)) = incoming.next().await {
        let bytes: Bytes = match message {
            Message::Binary(bytes) => bytes,
            Message::Text(text) => text.into(),
            Message::Close(_) => return,
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => continue,
        };
        // What cannot be read is no reason to end: that would end the command.
        let Some(opened) = channels.opened(&bytes) else { continue };
        match channels.hear(&opened) {
            Heard::Input(bytes) => {
                // A process that reads no more leaves what is written unread, and goes on.
                if let Some(end) = &input
                    && end.write_all(bytes).await.is_err()
                {
                    input = None;
                }
            }
            Heard::InputEnd => {
                if input.take().is_some() {
                    input_end.tell().await;
                }
            }
            Heard::Size { columns, rows } => {
                if let Some(seat) = seat.as_ref().and_then(Weak::upgrade) {
                    seat.resize(columns, rows);
                }
            }
            Heard::Nothing => {}
        }
    }
}

/// How a talk ended, as the client is told.
fn outcome(ended: Ended) -> Value {
    match ended {
        // Whoever is attached to a container asks elsewhere how it ended.
        Ended::Command(0) | Ended::Container => json!({"metadata": {}, "status": "Success"}),
        Ended::Command(code) => json!({
            "metadata": {},
            "status": "Failure",
            "message": "command terminated with non-zero exit code",
            "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
        }),
        Ended::Lost => refused(&Status::internal("the connection to the container was lost")),
    }
}

/// What a client hears of how it ended: in the oldest protocols, why it failed.
fn last_words(channels: Channels, status: &Value) -> Option<String> {
    if channels.has_status() {
        return Some(status.to_string());
    }
    let is_success = status["status"] == "Success";
    (!is_success).then(|| status["message"].as_str().unwrap_or_default().to_owned())
}

/// Why there is no talk, as the client is told: without saying that it is a Status, which is clear.
fn refused(status: &Status) -> Value {
    let mut value = serde_json::to_value(status).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.remove("kind");
        fields.remove("apiVersion");
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_told_how_it_ended() {
        let success = json!({"metadata": {}, "status": "Success"});
        assert_eq!(outcome(Ended::Command(0)), success);
        assert_eq!(outcome(Ended::Container), success);
        let failure = outcome(Ended::Command(7));
        assert_eq!(failure["reason"], "NonZeroExitCode");
        assert_eq!(failure["details"]["causes"][0]["message"], "7");
        assert_eq!(last_words(Channels::of(V1), &success), None);
        let words = last_words(Channels::of(V1), &failure);
        assert_eq!(words.as_deref(), Some("command terminated with non-zero exit code"));
        assert_eq!(last_words(Channels::of(V4), &success), Some(success.to_string()));
        let lost = outcome(Ended::Lost);
        assert_eq!((&lost["code"], lost.get("kind")), (&json!(500), None));
    }

    #[test]
    fn at_least_one_stream_is_asked_for() {
        let cases = [
            ("", false, None),
            ("stdin=false&stdout=0", false, None),
            ("stderr=true", true, None),
            ("stderr=true", false, Some((false, false, true))),
            ("stdin&stdout=1&stderr=true", false, Some((true, true, true))),
            ("stdin=true&stdout=true&stderr=true", true, Some((true, true, false))),
        ];
        for (query, is_terminal, want) in cases {
            let asked = streams(&Query::parse(query), is_terminal);
            let asked = asked.ok().map(|it| (it.input, it.out, it.err));
            assert_eq!(asked, want, "{query}");
        }
    }
}
