//! Whole requests, one after the other, to a server that is in this process.

use std::{
    cell::RefCell,
    convert::Infallible,
    sync::{Arc, LazyLock},
    time::Duration,
};

use axum::body::Body;
use futures::StreamExt;
use http::{HeaderName, HeaderValue, Method, Request, Response, Uri, header};
use lockstep_api::Registry;
use lockstep_local::{
    auth::{Token, User, signer::Signer},
    cluster::{Cluster, Options, QueueingPolicy},
    server::{Limits, Parts, Server, register_reviews},
};
use lockstep_store::Revision;
use serde_json::Value;
use tokio::runtime::Runtime;
use tower::ServiceExt;

use crate::{
    bound::bounded,
    parts::{line, parts},
};

/// How many requests there are at most.
const REQUESTS_MAX: usize = 8;
/// How long an answer may take to begin. Time passes by itself when nothing is left to do: whoever
/// waits for longer waits for ever.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long is listened to what has no end.
const LISTENING: Duration = Duration::from_secs(2);

/// Each part is a request: a line with a method and a path, headers, an empty line, and a body.
pub fn feed(bytes: &[u8]) {
    // Whoever panics takes it along.
    let house = HOUSE.take().unwrap_or_else(House::build);
    house.runtime.block_on(async {
        for part in parts(bytes).take(REQUESTS_MAX) {
            if let Some(request) = request(part) {
                send(&house.server, request).await;
            }
        }
    });
    if house.is_as_built() {
        HOUSE.set(Some(house));
    } else {
        house.server.stop();
    }
}

const NAMESPACE: &[u8] = b"POST /api/v1/namespaces\n\n{\"metadata\":{\"name\":\"default\"}}";

/// The kinds that are served.
static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
    let mut registry = lockstep_api::builtin::registry();
    register_reviews(&mut registry);
    registry
});

thread_local! {
    /// One that no input has changed anything in so far: most do not.
    static HOUSE: RefCell<Option<House>> = const { RefCell::new(None) };
}

/// A server that remembers nothing, and what runs it.
struct House {
    runtime: Runtime,
    server: Server,
    cluster: Cluster,
    /// Of its store, when it was made.
    revision: Revision,
}

impl House {
    fn build() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime is made");
        let (server, cluster) = runtime.block_on(async {
            let (server, cluster) = start();
            send(&server, prepared(NAMESPACE)).await;
            (server, cluster)
        });
        let revision = cluster.snapshot().revision();
        Self { runtime, server, cluster, revision }
    }

    /// Whether nothing was written.
    fn is_as_built(&self) -> bool {
        self.cluster.snapshot().revision() == self.revision
    }
}

fn start() -> (Server, Cluster) {
    let cluster = Cluster::open(Options {
        registry: REGISTRY.clone(),
        data_dir: None,
        limits: lockstep_store::Limits::default(),
        queueing: QueueingPolicy::default(),
    });
    let cluster = cluster.expect("it needs nothing");
    let server = Server::new(Parts {
        cluster: cluster.clone(),
        token: Token::generate(),
        signer: Signer::ephemeral().expect("a key is made"),
        names: Vec::new(),
        limits: Limits::default(),
        logs: None,
        node_name: None,
        controllers: Arc::default(),
    });
    (server, cluster)
}

fn prepared(part: &[u8]) -> Request<Body> {
    request(part).expect("it is a request")
}

/// The request that a part stands for, if a client could send it.
fn request(part: &[u8]) -> Option<Request<Body>> {
    let (head, mut rest) = line(part);
    let (method, path) = head.split_once(' ')?;
    let mut request = Request::new(Body::empty());
    *request.method_mut() = Method::from_bytes(method.as_bytes()).ok()?;
    *request.uri_mut() = path.parse::<Uri>().ok()?;
    loop {
        let (text, after) = line(rest);
        rest = after;
        if text.is_empty() {
            break;
        }
        let (name, value) = text.split_once(':')?;
        let name = HeaderName::from_bytes(name.trim().as_bytes()).ok()?;
        request.headers_mut().append(name, HeaderValue::from_str(value.trim()).ok()?);
    }
    *request.body_mut() = Body::from(rest.to_vec());
    if !request.headers().contains_key(header::HOST) {
        request.extensions_mut().insert(User::admin());
    }
    Some(request)
}

async fn send(server: &Server, request: Request<Body>) {
    let shown = format!("{} {}", request.method(), request.uri());
    let is_head = request.method() == Method::HEAD;
    let answer = server.router().oneshot(request);
    let answer = tokio::time::timeout(PATIENCE, answer).await;
    let answer: Result<Response<Body>, Infallible> =
        answer.unwrap_or_else(|_| panic!("{shown} is never answered"));
    let Ok(answer) = answer;
    let code = answer.status().as_u16();
    let kind = answer.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_json = kind.is_some_and(|kind| kind.starts_with("application/json"));
    let (body, has_ended) = read(answer.into_body()).await;
    let value: Option<Value> =
        (is_json && has_ended && !is_head).then(|| serde_json::from_slice(&body).ok()).flatten();
    let status = value.as_ref().filter(|value| value["kind"] == "Status");
    is_no_fault(&shown, code, status, &body);
    if let Some(status) = status.filter(|_| code >= 400) {
        assert_eq!(status["code"], code, "{shown}");
        assert!(status["message"].as_str().is_some_and(|text| !text.is_empty()), "{shown}");
    }
}

/// Whatever a client sends, it is no fault of the server; but for what upstream says is, such as an
/// object that says nothing of the number it would be scaled by, and for a revision that is not
/// reached.
fn is_no_fault(shown: &str, code: u16, status: Option<&Value>, body: &[u8]) {
    let reason = status.and_then(|status| status["reason"].as_str()).unwrap_or_default();
    let message = status.and_then(|status| status["message"].as_str()).unwrap_or_default();
    let is_without_number =
        message.starts_with("Internal error occurred: the spec replicas field ");
    let is_upstreams = code == 500 && status.is_some() && (reason.is_empty() || is_without_number);
    let is_early = code == 504 && reason == "Timeout";
    assert!(
        code < 500 || is_upstreams || is_early,
        "{shown}: {code} {}",
        String::from_utf8_lossy(body)
    );
}

/// What comes of a body, and whether that is all of it.
async fn read(body: Body) -> (Vec<u8>, bool) {
    let mut all = Vec::new();
    let mut chunks = body.into_data_stream();
    let whole = async {
        while let Some(chunk) = chunks.next().await {
            match chunk {
                Ok(chunk) => all.extend_from_slice(&chunk),
                Err(_) => return false,
            }
        }
        true
    };
    let has_ended = tokio::time::timeout(LISTENING, whole).await.unwrap_or(false);
    bounded(|| (all, has_ended))
}
