//! WebSockets as clients open them that are no kube-rs: pages in browsers, older ones.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use futures::{SinkExt, StreamExt};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{Message, protocol::Role},
};

use super::connections::{Cluster, PATIENCE};

const POD: &str = "/api/v1/namespaces/default/pods/p";
const WATCH: &str = "/api/v1/namespaces/default/pods?watch=1&timeoutSeconds=1";

type Socket = WebSocketStream<TokioIo<hyper::upgrade::Upgraded>>;

/// Opens a WebSocket: it, and the protocol that the answer names.
async fn open(cluster: &Cluster, path: &str, protocols: &str) -> (Socket, String) {
    let mut request = http::Request::get(path)
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("origin", "http://localhost")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA==");
    if !protocols.is_empty() {
        request = request.header("sec-websocket-protocol", protocols);
    }
    let request = request.body(kube::client::Body::empty()).unwrap();
    let response = cluster.client.send(request).await.unwrap();
    assert_eq!(response.status(), 101, "{path}");
    let named = response.headers().get("sec-websocket-protocol");
    let named = named.map_or("", |value| value.to_str().unwrap()).to_owned();
    let socket = TokioIo::new(hyper::upgrade::on(response).await.unwrap());
    (WebSocketStream::from_raw_socket(socket, Role::Client, None).await, named)
}

/// Opens a WebSocket of one protocol, and reads it to its end.
async fn heard(cluster: &Cluster, path: &str, protocol: &str) -> Vec<Message> {
    let (socket, named) = open(cluster, path, protocol).await;
    assert_eq!(named, protocol);
    read_to_end(socket).await
}

async fn read_to_end(socket: Socket) -> Vec<Message> {
    let messages = socket.filter_map(|message| async { message.ok() });
    let is_said = |message: &Message| matches!(message, Message::Binary(_) | Message::Text(_));
    let read = messages.filter(|message| futures::future::ready(is_said(message))).collect();
    tokio::time::timeout(PATIENCE, read).await.expect("it ends")
}

fn exec(script: &str, streams: &str) -> String {
    format!("{POD}/exec?{streams}&container=c&command=sh&command=-c&command={script}")
}

#[tokio::test]
async fn the_oldest_protocols_are_spoken_too() {
    let cluster = Cluster::start().await;
    cluster.run("p", "echo first; exec sleep 1000", json!({})).await;
    let exec = |script: &str| exec(script, "stdout=1&stderr=1");
    let binary = |bytes: &'static [u8]| Message::Binary(bytes.into());
    for protocol in ["channel.k8s.io", ""] {
        // What ended well is said by an end without a word.
        let messages = heard(&cluster, &exec("echo+hi"), protocol).await;
        assert_eq!(messages, [binary(b"\x01"), binary(b"\x01hi\n")], "{protocol}");
    }
    let messages = heard(&cluster, &exec("exit+3"), "channel.k8s.io").await;
    let words = binary(b"\x03command terminated with non-zero exit code");
    assert_eq!(messages, [binary(b"\x01"), words]);
    let messages = heard(&cluster, &exec("echo+hi"), "base64.channel.k8s.io").await;
    assert_eq!(messages, [Message::Text("1".into()), Message::Text("1aGkK".into())]);
    let messages = heard(&cluster, &exec("echo+hi"), "v4.base64.channel.k8s.io").await;
    assert_eq!(messages.len(), 3, "{messages:?}");
    let log = format!("{POD}/log?container=c");
    for (protocol, want) in [
        ("", binary(b"first\n")),
        ("binary.k8s.io", binary(b"first\n")),
        ("base64.binary.k8s.io", Message::Text("Zmlyc3QK".into())),
    ] {
        let messages = heard(&cluster, &log, protocol).await;
        assert_eq!(messages.last(), Some(&want), "{protocol}");
        assert!(messages[..messages.len() - 1].iter().all(|it| it.is_empty()), "{messages:?}");
    }
    let messages = heard(&cluster, WATCH, "").await;
    let Some(Message::Text(text)) = messages.first() else { panic!("{messages:?}") };
    let event: Value = serde_json::from_str(text).unwrap();
    assert_eq!(
        (&event["type"], &event["object"]["metadata"]["name"]),
        (&json!("ADDED"), &json!("p"))
    );
    Box::pin(cluster.embedded.shutdown()).await;
}

/// What most clients spoke before 1.30, and some still do.
#[tokio::test]
async fn the_fourth_protocol_says_in_json_how_it_ended() {
    let cluster = Cluster::start().await;
    cluster.run("p", "exec sleep 1000", json!({})).await;
    for (script, code) in
        [("read+it%3Becho+got+$it%3Becho+bad+$it+%3E%262%3Bexit+3", 3), ("read+it", 0)]
    {
        let path = exec(script, "stdin=1&stdout=1&stderr=1");
        let (mut socket, named) = open(&cluster, &path, "v4.channel.k8s.io").await;
        assert_eq!(named, "v4.channel.k8s.io");
        // That input ends cannot be said in it: this means nothing.
        for said in [&b"\xff\x00"[..], b"\x00h", b"\x00i\n"] {
            socket.send(Message::Binary(said.into())).await.unwrap();
        }
        let messages = read_to_end(socket).await;
        let channel = |number: u8| -> Vec<u8> {
            let of = messages.iter().filter_map(|message| match message {
                Message::Binary(bytes) => bytes.strip_prefix(&[number]),
                _ => None,
            });
            of.flatten().copied().collect()
        };
        let (out, err) = if code == 0 { ("", "") } else { ("got hi\n", "bad hi\n") };
        assert_eq!((channel(1), channel(2)), (out.into(), err.into()), "{messages:?}");
        let status: Value = serde_json::from_slice(&channel(3)).unwrap();
        if code == 0 {
            assert_eq!(status["status"], "Success");
            continue;
        }
        let words = "command terminated with non-zero exit code";
        assert!(status["message"].as_str().unwrap().starts_with(words), "{status}");
        assert_eq!(status["reason"], "NonZeroExitCode");
        let cause = json!({"reason": "ExitCode", "message": code.to_string()});
        assert_eq!(status["details"]["causes"], json!([cause]));
    }
    Box::pin(cluster.embedded.shutdown()).await;
}

#[tokio::test]
async fn a_watch_is_answered_in_a_protocol_that_was_asked_for() {
    let cluster = Cluster::start().await;
    // Browsers go when they hear of none of theirs.
    let messages = heard(&cluster, WATCH, "base64.binary.k8s.io").await;
    assert!(messages.iter().all(|message| matches!(message, Message::Text(_))), "{messages:?}");
    let token = URL_SAFE_NO_PAD.encode("not looked at, for the header has one");
    let asked = format!("base64url.bearer.authorization.k8s.io.{token}, a.example.com, b");
    let (_, named) = open(&cluster, WATCH, &asked).await;
    assert_eq!(named, "a.example.com");
    cluster.embedded.shutdown().await;
}

#[tokio::test]
async fn what_cannot_be_read_does_not_end_a_command() {
    let cluster = Cluster::start().await;
    cluster.run("p", "exec sleep 1000", json!({})).await;
    let path = exec("cat", "stdin=1&stdout=1");
    let (mut socket, _) = open(&cluster, &path, "base64.channel.k8s.io").await;
    for text in ["", "0~~~", "/aGkK", "0aGkK"] {
        socket.send(Message::Text(text.into())).await.unwrap();
    }
    let answered = async {
        while let Some(message) = socket.next().await {
            if message.unwrap() == Message::Text("1aGkK".into()) {
                return;
            }
        }
        panic!("it ended before it answered");
    };
    tokio::time::timeout(PATIENCE, answered).await.expect("it answers");
    drop(socket);
    cluster.embedded.shutdown().await;
}

#[tokio::test]
async fn the_newest_protocol_is_spoken_with_who_names_it_at_all() {
    let cluster = Cluster::start().await;
    cluster.run("p", "exec sleep 1000", json!({})).await;
    let asked = "channel.k8s.io, v4.channel.k8s.io, v5.channel.k8s.io";
    let (_, named) = open(&cluster, &exec("true", "stdout=1"), asked).await;
    assert_eq!(named, "v5.channel.k8s.io");
    cluster.embedded.shutdown().await;
}
