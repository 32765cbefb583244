//! Probes by the gRPC health protocol: one call with one string, answered by one number.

use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use k8s_openapi::api::core::v1::GRPCAction;
use lockstep_control::plan::pod::{ProbeOutcome, go_duration};
use tokio::time::Instant;

use super::{ANSWER_MAX, dial, join, user_agent};

/// How soon a connection is tried again.
const RETRY: Duration = Duration::from_millis(100);

const PATH: &str = "/grpc.health.v1.Health/Check";

/// The names of the codes of gRPC, in the order of their numbers, as Go prints them.
const CODES: [&str; 17] = [
    "OK",
    "Canceled",
    "Unknown",
    "InvalidArgument",
    "DeadlineExceeded",
    "NotFound",
    "AlreadyExists",
    "PermissionDenied",
    "ResourceExhausted",
    "FailedPrecondition",
    "Aborted",
    "OutOfRange",
    "Unimplemented",
    "Internal",
    "Unavailable",
    "DataLoss",
    "Unauthenticated",
];

/// What a server answered.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    /// The number of a state of health.
    Health(u64),
    /// The number of a code that is not OK, and what it said.
    Refused(usize, String),
}

/// Asks once.
pub(super) async fn check(host: &str, grpc: &GRPCAction, timeout: Duration) -> ProbeOutcome {
    let Some(port) = u16::try_from(grpc.port).ok().filter(|port| *port > 0) else {
        return ProbeOutcome::Error(format!("invalid port number: {}", grpc.port));
    };
    let service = grpc.service.as_deref().unwrap_or_default();
    let (address, shown) = (join(host, port), go_duration(timeout));
    let deadline = Instant::now() + timeout;
    let mut is_connected = false;
    let ask = async {
        loop {
            if let Ok(answer) = ask(host, port, service, deadline, &mut is_connected).await {
                return answer;
            }
            // As gRPC does, a connection that fails is tried again until time is up.
            is_connected = false;
            tokio::time::sleep(RETRY).await;
        }
    };
    let message = match tokio::time::timeout_at(deadline, ask).await {
        Ok(Answer::Health(1)) => return ProbeOutcome::Success,
        Ok(Answer::Health(state)) => {
            format!("service unhealthy (responded with {:?})", state_name(state))
        }
        Ok(Answer::Refused(12, why)) => format!(
            "error: this server does not implement the grpc health protocol \
             (grpc.health.v1.Health): {why}"
        ),
        Ok(Answer::Refused(code, why)) => {
            let code = CODES.get(code).copied().unwrap_or("Unknown");
            format!("error: health rpc probe failed: rpc error: code = {code} desc = {why}")
        }
        Err(_) if is_connected => format!("timeout: health rpc did not complete within {shown}"),
        Err(_) => format!(
            "timeout: failed to connect service {address:?} within {shown}: \
             context deadline exceeded"
        ),
    };
    ProbeOutcome::Failure(message)
}

async fn ask(
    host: &str,
    port: u16,
    service: &str,
    deadline: Instant,
    is_connected: &mut bool,
) -> Result<Answer, Box<dyn std::error::Error + Send + Sync>> {
    let stream = dial(host, port, deadline).await?;
    let (mut sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    let connection = Connection(tokio::spawn(async { drop(connection.await) }));
    *is_connected = true;
    let request = http::Request::post(format!("http://{}{PATH}", join(host, port)))
        .header(http::header::CONTENT_TYPE, "application/grpc")
        .header(http::header::TE, "trailers")
        .header(http::header::USER_AGENT, user_agent())
        .body(Full::new(encode(service)))?;
    let response = sender.send_request(request).await?;
    let (head, body) = response.into_parts();
    if head.status != http::StatusCode::OK {
        return Ok(refused_by_http(head.status));
    }
    let body = Limited::new(body, ANSWER_MAX).collect().await?;
    drop(connection);
    let trailers = body.trailers().cloned().unwrap_or_default();
    // Whoever has nothing to say says so in the headers.
    let of = |name: &str| trailers.get(name).or_else(|| head.headers.get(name));
    let text = |name: &str| of(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let code = text("grpc-status").parse().unwrap_or(2);
    if code != 0 {
        return Ok(Answer::Refused(code, decode_percent(text("grpc-message"))));
    }
    Ok(match decode(&body.to_bytes()) {
        Some(state) => Answer::Health(state),
        None => Answer::Refused(13, "grpc: failed to unmarshal the received message".to_owned()),
    })
}

/// A connection that ends when it is dropped.
struct Connection(tokio::task::JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What an answer without gRPC means.
fn refused_by_http(status: http::StatusCode) -> Answer {
    let code = match status.as_u16() {
        400 => 13,
        401 => 16,
        403 => 7,
        404 => 12,
        429 | 502 | 503 | 504 => 14,
        _ => 2,
    };
    let reason = status.canonical_reason().unwrap_or_default();
    let number = status.as_u16();
    let why = format!("unexpected HTTP status code received from server: {number} ({reason})");
    Answer::Refused(code, why)
}

fn state_name(state: u64) -> String {
    match state {
        0 => "UNKNOWN".to_owned(),
        1 => "SERVING".to_owned(),
        2 => "NOT_SERVING".to_owned(),
        3 => "SERVICE_UNKNOWN".to_owned(),
        other => other.to_string(),
    }
}

/// A message with one string in field 1, in its frame.
fn encode(service: &str) -> Bytes {
    let mut message = Vec::new();
    if !service.is_empty() {
        message.push(0x0a);
        let mut length = service.len();
        while length >= 0x80 {
            message.push(u8::try_from(length & 0x7f).expect("seven bits") | 0x80);
            length >>= 7;
        }
        message.push(u8::try_from(length).expect("less than 128"));
        message.extend_from_slice(service.as_bytes());
    }
    let mut frame = vec![0];
    let length = u32::try_from(message.len()).expect("names of services are short");
    frame.extend_from_slice(&length.to_be_bytes());
    frame.extend(message);
    frame.into()
}

/// The number in field 1 of the message in a frame; 0 when it is not there.
fn decode(frame: &[u8]) -> Option<u64> {
    let (head, message) = frame.split_at_checked(5)?;
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
    let mut rest = message.get(..usize::try_from(length).ok()?)?;
    let mut state = 0;
    while !rest.is_empty() {
        let tag = varint(&mut rest)?;
        match tag & 7 {
            0 => {
                let value = varint(&mut rest)?;
                if tag >> 3 == 1 {
                    state = value;
                }
            }
            1 => rest = rest.get(8..)?,
            2 => {
                let length = usize::try_from(varint(&mut rest)?).ok()?;
                rest = rest.get(length..)?;
            }
            5 => rest = rest.get(4..)?,
            _ => return None,
        }
    }
    Some(state)
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, more) = rest.split_first()?;
        *rest = more;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn decode_percent(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let code = code.and_then(|two| u8::from_str_radix(two, 16).ok());
        match code.filter(|_| byte == b'%') {
            Some(decoded) => {
                bytes.push(decoded);
                rest = &after[2..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use http_body_util::StreamBody;
    use hyper::body::{Frame, Incoming};
    use hyper::service::service_fn;
    use tokio::net::TcpListener;

    use super::*;

    type Frames = Vec<Result<Frame<Bytes>, std::convert::Infallible>>;

    /// Serves one answer for each service that is asked for.
    async fn serve() -> i32 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let answer = service_fn(|request: http::Request<Incoming>| async {
                    assert_eq!(request.uri().path(), PATH);
                    let asked = request.into_body().collect().await.unwrap().to_bytes();
                    let service = String::from_utf8_lossy(asked.get(7..).unwrap_or_default());
                    if service == "late" {
                        std::future::pending::<()>().await;
                    }
                    let frames: Frames = match service.as_ref() {
                        "" => frames(&[8, 1], "0", ""),
                        "bad" => frames(&[8, 2], "0", ""),
                        "odd" => frames(&[], "0", ""),
                        "gone" => frames(&[], "5", "no such%20service"),
                        _ => frames(&[], "12", "unknown method"),
                    };
                    let body = StreamBody::new(futures::stream::iter(frames));
                    Ok::<_, std::convert::Infallible>(http::Response::new(body))
                });
                let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                tokio::spawn(server.serve_connection(TokioIo::new(stream), answer));
            }
        });
        port.into()
    }

    fn frames(message: &[u8], status: &str, why: &str) -> Frames {
        let mut frame = vec![0, 0, 0, 0, u8::try_from(message.len()).unwrap()];
        frame.extend_from_slice(message);
        let mut trailers = http::HeaderMap::new();
        trailers.insert("grpc-status", status.parse().unwrap());
        trailers.insert("grpc-message", why.parse().unwrap());
        vec![Ok(Frame::data(frame.into())), Ok(Frame::trailers(trailers))]
    }

    #[tokio::test]
    async fn services_answer_as_the_health_protocol_says() {
        let port = serve().await;
        let failure = |text: &str| ProbeOutcome::Failure(text.to_owned());
        let cases = [
            ("", ProbeOutcome::Success),
            ("bad", failure("service unhealthy (responded with \"NOT_SERVING\")")),
            ("odd", failure("service unhealthy (responded with \"UNKNOWN\")")),
            (
                "gone",
                failure(
                    "error: health rpc probe failed: rpc error: code = NotFound desc = no such \
                     service",
                ),
            ),
            (
                "else",
                failure(
                    "error: this server does not implement the grpc health protocol \
                     (grpc.health.v1.Health): unknown method",
                ),
            ),
            ("late", failure("timeout: health rpc did not complete within 2s")),
        ];
        for (service, want) in cases {
            let action = GRPCAction { port, service: Some(service.to_owned()) };
            let outcome = check("127.0.0.1", &action, Duration::from_secs(2)).await;
            assert_eq!(outcome, want, "{service}");
        }
    }

    #[tokio::test]
    async fn a_port_nobody_listens_on_times_out() {
        let action = GRPCAction { port: 1, service: None };
        let outcome = check("127.0.0.1", &action, Duration::from_secs(1)).await;
        let want = "timeout: failed to connect service \"127.0.0.1:1\" within 1s: context \
                    deadline exceeded";
        assert_eq!(outcome, ProbeOutcome::Failure(want.to_owned()));
    }

    #[test]
    fn long_names_and_broken_answers_are_handled() {
        let name = "s".repeat(300);
        let frame = encode(&name);
        assert_eq!(frame[..8], [0, 0, 0, 1, 0x2f, 0x0a, 0xac, 0x02]);
        assert_eq!(decode(&[0, 0, 0, 0, 9, 8, 1]), None, "it says more than there is");
        assert_eq!(decode(&[0, 0, 0, 0, 4, 0x12, 1, 7, 8]), None);
        assert_eq!(decode(&[0, 0, 0, 0, 5, 0x12, 1, 7, 8, 3]), Some(3));
    }
}
