//! Probes by HTTP.

use std::time::Duration;

use http::Uri;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::HTTPGetAction;
use lockstep_control::plan::pod::ProbeOutcome;
use tokio::time::Instant;

use super::{ANSWER_MAX, Target, dial, join, port_number, tls, user_agent, words};

/// How often a redirect to the same host is followed.
const REDIRECTS_MAX: usize = 10;

/// Where to ask.
#[derive(Clone)]
struct Url {
    is_tls: bool,
    host: String,
    port: u16,
    path: String,
    /// Whether the port is written, as it always is at first.
    shows_port: bool,
}

impl Url {
    fn text(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        let joined = join(&self.host, self.port);
        let authority = if self.shows_port { joined.as_str() } else { self.host.as_str() };
        format!("{scheme}://{authority}{}", self.path)
    }

    /// Where a redirect leads, if that is the same host.
    fn follow(&self, location: &str) -> Option<Self> {
        if location.starts_with('/') && !location.starts_with("//") {
            return Some(Self { path: location.to_owned(), ..self.clone() });
        }
        let uri: Uri = location.parse().ok()?;
        let is_tls = match uri.scheme_str()? {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let host = uri.host()?.trim_start_matches('[').trim_end_matches(']').to_owned();
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let port = uri.port_u16();
        let default = if is_tls { 443 } else { 80 };
        let shows_port = port.is_some();
        let next = Self { is_tls, host, port: port.unwrap_or(default), path, shows_port };
        (next.host == self.host).then_some(next)
    }
}

/// Asks once; redirects on the same host are followed, others count as an answer.
pub(super) async fn get(target: &Target<'_>, get: &HTTPGetAction, limit: Duration) -> ProbeOutcome {
    let port = match port_number(&get.port, target.container) {
        Ok(port) => port,
        Err(error) => return ProbeOutcome::Error(error),
    };
    let host = get.host.as_deref().filter(|host| !host.is_empty()).unwrap_or(target.pod_ip);
    let path = get.path.as_deref().unwrap_or_default();
    let mut url = Url {
        is_tls: get.scheme.as_deref().is_some_and(|it| it.eq_ignore_ascii_case("HTTPS")),
        host: host.to_owned(),
        port,
        path: if path.starts_with('/') { path.to_owned() } else { format!("/{path}") },
        shows_port: true,
    };
    let deadline = Instant::now().checked_add(limit);
    let deadline = deadline.unwrap_or_else(|| Instant::now() + Duration::from_secs(86_400));
    for _ in 0..REDIRECTS_MAX {
        let (head, body) = match ask(&url, get, deadline).await {
            Ok(answer) => answer,
            Err(why) => return ProbeOutcome::Failure(format!("Get {:?}: {why}", url.text())),
        };
        let code = head.status.as_u16();
        let location = head.headers.get(http::header::LOCATION);
        let location = location.and_then(|location| location.to_str().ok());
        match (code, location) {
            (301 | 302 | 303 | 307 | 308, Some(location)) => match url.follow(location) {
                Some(next) => url = next,
                None => {
                    let body = String::from_utf8_lossy(&body);
                    let told = format!("Probe terminated redirects, Response body: {body}");
                    return ProbeOutcome::Warning(told);
                }
            },
            (200..400, _) => return ProbeOutcome::Success,
            _ => {
                let message = format!("HTTP probe failed with statuscode: {code}");
                return ProbeOutcome::Failure(message);
            }
        }
    }
    let message = format!("Get {:?}: stopped after {REDIRECTS_MAX} redirects", url.text());
    ProbeOutcome::Failure(message)
}

type Answer = (http::response::Parts, Vec<u8>);

async fn ask(url: &Url, get: &HTTPGetAction, deadline: Instant) -> Result<Answer, String> {
    const WAITED: &str = "(Client.Timeout exceeded while awaiting headers)";
    let stream = dial(&url.host, url.port, deadline).await.map_err(|error| {
        if error.ends_with("i/o timeout") { format!("{error} {WAITED}") } else { error }
    })?;
    let request = request(url, get).map_err(|error| error.to_string())?;
    let exchange = async {
        if !url.is_tls {
            return exchange(TokioIo::new(stream), request).await;
        }
        let name = rustls::pki_types::ServerName::try_from(url.host.clone())
            .map_err(|error| error.to_string())?;
        let accept = tls::accept_any().map_err(|error| error.to_string())?;
        let stream = accept.connect(name, stream).await.map_err(|error| words(&error))?;
        exchange(TokioIo::new(stream), request).await
    };
    match tokio::time::timeout_at(deadline, exchange).await {
        Ok(answer) => answer,
        Err(_) => Err(format!("context deadline exceeded {WAITED}")),
    }
}

fn request(url: &Url, get: &HTTPGetAction) -> Result<http::Request<Empty<Bytes>>, http::Error> {
    let mut request = http::Request::get(&url.path).body(Empty::<Bytes>::new())?;
    let headers = request.headers_mut();
    let authority = if url.shows_port { join(&url.host, url.port) } else { url.host.clone() };
    for (name, value) in [
        (http::header::USER_AGENT, user_agent()),
        (http::header::ACCEPT, "*/*".to_owned()),
        (http::header::HOST, authority),
        (http::header::CONNECTION, "close".to_owned()),
    ] {
        headers.insert(name, value.parse()?);
    }
    for header in get.http_headers.iter().flatten() {
        let name: http::HeaderName = header.name.parse()?;
        headers.insert(name, header.value.parse()?);
    }
    Ok(request)
}

async fn exchange<S>(stream: S, request: http::Request<Empty<Bytes>>) -> Result<Answer, String>
where
    S: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::handshake(stream).await.map_err(|error| why(&error))?;
    let connection = tokio::spawn(connection);
    let response = sender.send_request(request).await.map_err(|error| why(&error))?;
    let (head, body) = response.into_parts();
    // What is too long or breaks off has still been an answer.
    let body = Limited::new(body, ANSWER_MAX).collect().await;
    connection.abort();
    Ok((head, body.map(|body| body.to_bytes().to_vec()).unwrap_or_default()))
}

/// Why there was no answer: a connection that just ends is `EOF` in Go.
fn why(error: &hyper::Error) -> String {
    if error.is_incomplete_message() {
        return "EOF".to_owned();
    }
    let source =
        std::error::Error::source(error).and_then(|it| it.downcast_ref::<std::io::Error>());
    source.map_or_else(|| error.to_string(), words)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::super::tests::container;
    use super::*;
    use crate::node::runtime::ContainerId;

    /// Answers one request after the other with these heads, and gives back what it was asked.
    async fn serve(answers: Vec<String>) -> (u16, tokio::task::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let task = tokio::spawn(async move {
            let mut asked = Vec::new();
            for answer in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut buffer = vec![0; 4096];
                let count = stream.read(&mut buffer).await.unwrap();
                asked.push(String::from_utf8_lossy(&buffer[..count]).into_owned());
                if answer == "silence" {
                    std::future::pending::<()>().await;
                }
                let answer = answer.replace("PORT", &port.to_string());
                let head = format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\n\r\n");
                if answer != "nothing" {
                    stream.write_all(head.as_bytes()).await.unwrap();
                }
            }
            asked
        });
        (port, task)
    }

    async fn probe(port: u16) -> ProbeOutcome {
        let id = ContainerId { pod_uid: "u".to_owned(), container: "c".to_owned(), attempt: 0 };
        let container = container();
        let target = Target { id: &id, container: &container, pod_ip: "127.0.0.1" };
        let action = HTTPGetAction {
            port: IntOrString::Int(port.into()),
            path: Some("/health".to_owned()),
            ..HTTPGetAction::default()
        };
        get(&target, &action, Duration::from_secs(1)).await
    }

    async fn answered(answers: &[&str]) -> (ProbeOutcome, Vec<String>) {
        let (port, task) = serve(answers.iter().map(|&it| it.to_owned()).collect()).await;
        let outcome = probe(port).await;
        (outcome, task.await.unwrap())
    }

    #[tokio::test]
    async fn http_answers_below_400_are_successes() {
        let (outcome, asked) = answered(&["204 No Content"]).await;
        assert_eq!(outcome, ProbeOutcome::Success);
        assert!(asked[0].starts_with("GET /health HTTP/1.1"), "{asked:?}");
        assert!(asked[0].contains("user-agent: kube-probe/1.36\r\n"), "{asked:?}");
        let (outcome, _) = answered(&["503 No"]).await;
        let want = "HTTP probe failed with statuscode: 503".to_owned();
        assert_eq!(outcome, ProbeOutcome::Failure(want));
    }

    #[tokio::test]
    async fn redirects_are_followed_on_the_same_host_only() {
        for location in ["/other", "http://127.0.0.1:PORT/other"] {
            let (outcome, asked) =
                answered(&[&format!("302 Found\r\nlocation: {location}"), "200 OK"]).await;
            assert_eq!(outcome, ProbeOutcome::Success);
            assert!(asked[1].starts_with("GET /other"), "{location}");
        }
        let (outcome, _) = answered(&["302 Found\r\nlocation: http://elsewhere/"]).await;
        let want = "Probe terminated redirects, Response body: ".to_owned();
        assert_eq!(outcome, ProbeOutcome::Warning(want), "other hosts are not asked");
    }

    #[tokio::test]
    async fn failures_name_what_was_asked_as_a_kubelet_does() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let url = |port| format!("Get \"http://127.0.0.1:{port}/health\": ");
        let refused = format!("dial tcp 127.0.0.1:{port}: connect: connection refused");
        assert_eq!(probe(port).await, ProbeOutcome::Failure(url(port) + &refused));
        let (port, _task) = serve(vec!["nothing".to_owned()]).await;
        assert_eq!(probe(port).await, ProbeOutcome::Failure(url(port) + "EOF"));
        let (port, _task) = serve(vec!["silence".to_owned()]).await;
        let late = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
        assert_eq!(probe(port).await, ProbeOutcome::Failure(url(port) + late));
    }
}
