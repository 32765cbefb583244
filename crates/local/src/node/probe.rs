//! Probes and hooks: asking a container how it is.

mod tls;

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::{
    Container, ExecAction, HTTPGetAction, LifecycleHandler, Probe, TCPSocketAction,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use lockstep_control::plan::pod::ProbeOutcome;
use tokio::net::TcpStream;

use super::runtime::{ContainerId, ExecError, Runtime};

/// As much of an answer as is read.
const ANSWER_MAX: usize = 10 * 1024;

/// How often a redirect to the same host is followed.
const REDIRECTS_MAX: usize = 10;

/// Who is asked.
pub struct Target<'a> {
    /// Which instance of the container.
    pub id: &'a ContainerId,
    /// Its description.
    pub container: &'a Container,
    /// The address of its pod.
    pub pod_ip: &'a str,
}

/// Probes a container once.
pub async fn probe(runtime: &Arc<Runtime>, target: &Target<'_>, probe: &Probe) -> ProbeOutcome {
    let seconds = probe.timeout_seconds.and_then(|it| u64::try_from(it).ok()).unwrap_or(1).max(1);
    let timeout = Duration::from_secs(seconds);
    if let Some(exec) = &probe.exec {
        return run_command(runtime, target, exec, timeout).await;
    }
    if let Some(get) = &probe.http_get {
        return within(timeout, http_get(target, get)).await;
    }
    if let Some(socket) = &probe.tcp_socket {
        return within(timeout, connect_once(target, socket)).await;
    }
    if probe.grpc.is_some() {
        return ProbeOutcome::Error(
            "grpc probes are not supported by this node; use httpGet, tcpSocket or exec".to_owned(),
        );
    }
    ProbeOutcome::Error(format!("missing probe handler for {}", target.container.name))
}

/// Runs a hook; `true` when it ended well.
pub async fn hook(
    runtime: &Arc<Runtime>,
    target: &Target<'_>,
    hook: &LifecycleHandler,
    limit: Option<Duration>,
) -> bool {
    // Without a limit a hook may take as long as it likes; a year stands for that.
    let limit = limit.unwrap_or(Duration::from_secs(365 * 24 * 3600));
    if let Some(exec) = &hook.exec {
        return run_command(runtime, target, exec, limit).await == ProbeOutcome::Success;
    }
    if let Some(get) = &hook.http_get {
        return within(limit, http_get(target, get)).await == ProbeOutcome::Success;
    }
    if let Some(sleep) = &hook.sleep {
        let wait = Duration::from_secs(u64::try_from(sleep.seconds).unwrap_or(0));
        tokio::time::sleep(wait.min(limit)).await;
        return true;
    }
    // A tcpSocket hook is deprecated and does nothing anywhere.
    true
}

/// The number of a port that is given by number or by name.
pub fn port_number(port: &IntOrString, container: &Container) -> Result<u16, String> {
    let number = match port {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(name) => {
            let ports = container.ports.as_deref().unwrap_or_default();
            let named = ports.iter().find(|port| port.name.as_deref() == Some(name));
            named.map(|port| port.container_port).or_else(|| name.parse().ok())
        }
    };
    let number = number.ok_or_else(|| {
        let IntOrString::String(name) = port else { return "no port".to_owned() };
        format!("couldn't find port: {name:?} in container {}", container.name)
    })?;
    u16::try_from(number)
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| format!("invalid port number: {number}"))
}

async fn within(limit: Duration, work: impl Future<Output = ProbeOutcome>) -> ProbeOutcome {
    let timed_out =
        || ProbeOutcome::Failure("context deadline exceeded (timed out while waiting)".to_owned());
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| timed_out())
}

async fn run_command(
    runtime: &Arc<Runtime>,
    target: &Target<'_>,
    exec: &ExecAction,
    timeout: Duration,
) -> ProbeOutcome {
    let command = exec.command.as_deref().unwrap_or_default();
    match runtime.exec(target.id, command, timeout).await {
        Ok(outcome) if outcome.code == 0 => ProbeOutcome::Success,
        Ok(outcome) => {
            let end = outcome.output.len().min(ANSWER_MAX);
            let output = String::from_utf8_lossy(&outcome.output[..end]).into_owned();
            ProbeOutcome::Failure(output)
        }
        Err(error @ ExecError::TimedOut { .. }) => ProbeOutcome::Failure(error.to_string()),
        Err(error) => ProbeOutcome::Error(error.to_string()),
    }
}

async fn connect_once(target: &Target<'_>, socket: &TCPSocketAction) -> ProbeOutcome {
    let port = match port_number(&socket.port, target.container) {
        Ok(port) => port,
        Err(error) => return ProbeOutcome::Error(error),
    };
    let host = socket.host.as_deref().filter(|host| !host.is_empty()).unwrap_or(target.pod_ip);
    match TcpStream::connect((host, port)).await {
        Ok(_) => ProbeOutcome::Success,
        Err(error) => ProbeOutcome::Failure(format!("dial tcp {host}:{port}: connect: {error}")),
    }
}

async fn http_get(target: &Target<'_>, get: &HTTPGetAction) -> ProbeOutcome {
    let port = match port_number(&get.port, target.container) {
        Ok(port) => port,
        Err(error) => return ProbeOutcome::Error(error),
    };
    let host = get.host.as_deref().filter(|host| !host.is_empty()).unwrap_or(target.pod_ip);
    let path = get.path.as_deref().filter(|path| !path.is_empty()).unwrap_or("/");
    let mut path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let is_tls = get.scheme.as_deref().is_some_and(|it| it.eq_ignore_ascii_case("HTTPS"));
    for _ in 0..REDIRECTS_MAX {
        let answer = match ask(host, port, is_tls, &path, get).await {
            Ok(answer) => answer,
            Err(error) => return ProbeOutcome::Failure(format!("Get {path:?}: {error}")),
        };
        let status = answer.status();
        let location = answer.headers().get(http::header::LOCATION);
        match location.and_then(|location| location.to_str().ok()) {
            // Redirects on the same host are followed; others count as an answer.
            Some(next) if status.is_redirection() && next.starts_with('/') => {
                next.clone_into(&mut path)
            }
            _ if (200..400).contains(&status.as_u16()) => return ProbeOutcome::Success,
            _ => {
                let code = status.as_u16();
                let message = format!("HTTP probe failed with statuscode: {code}");
                return ProbeOutcome::Failure(message);
            }
        }
    }
    ProbeOutcome::Failure(format!("Get {path:?}: stopped after {REDIRECTS_MAX} redirects"))
}

async fn ask(
    host: &str,
    port: u16,
    is_tls: bool,
    path: &str,
    get: &HTTPGetAction,
) -> Result<http::Response<()>, Box<dyn std::error::Error + Send + Sync>> {
    let mut request = http::Request::get(path).body(Empty::<Bytes>::new())?;
    let headers = request.headers_mut();
    let version = lockstep_api::KUBERNETES_VERSION.trim_start_matches('v');
    let minor = version.rsplit_once('.').map_or(version, |(minor, _)| minor);
    headers.insert(http::header::USER_AGENT, format!("kube-probe/{minor}").parse()?);
    headers.insert(http::header::ACCEPT, "*/*".parse()?);
    headers.insert(http::header::HOST, format!("{host}:{port}").parse()?);
    headers.insert(http::header::CONNECTION, "close".parse()?);
    for header in get.http_headers.iter().flatten() {
        let name: http::HeaderName = header.name.parse()?;
        headers.insert(name, header.value.parse()?);
    }
    let stream = TcpStream::connect((host, port)).await?;
    if is_tls {
        let name = rustls::pki_types::ServerName::try_from(host.to_owned())?;
        let stream = tls::accept_any()?.connect(name, stream).await?;
        return exchange(TokioIo::new(stream), request).await;
    }
    exchange(TokioIo::new(stream), request).await
}

async fn exchange<S>(
    stream: S,
    request: http::Request<Empty<Bytes>>,
) -> Result<http::Response<()>, Box<dyn std::error::Error + Send + Sync>>
where
    S: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::handshake(stream).await?;
    let connection = tokio::spawn(connection);
    let response = sender.send_request(request).await?;
    let (head, body) = response.into_parts();
    // What is too long or breaks off has still been an answer.
    let _ = Limited::new(body, ANSWER_MAX).collect().await;
    connection.abort();
    Ok(http::Response::from_parts(head, ()))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ContainerPort;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    fn container() -> Container {
        let port = ContainerPort {
            name: Some("web".to_owned()),
            container_port: 8080,
            ..ContainerPort::default()
        };
        Container { name: "c".to_owned(), ports: Some(vec![port]), ..Container::default() }
    }

    #[test]
    fn ports_are_found_by_number_and_by_name() {
        let cases = [
            (IntOrString::Int(80), Ok(80)),
            (IntOrString::String("web".to_owned()), Ok(8080)),
            (IntOrString::String("81".to_owned()), Ok(81)),
            (
                IntOrString::String("nope".to_owned()),
                Err("couldn't find port: \"nope\" in container c".to_owned()),
            ),
            (IntOrString::Int(70_000), Err("invalid port number: 70000".to_owned())),
        ];
        for (port, want) in cases {
            assert_eq!(port_number(&port, &container()), want, "{port:?}");
        }
    }

    /// Answers one request after the other with these heads, and gives back what it was asked.
    async fn serve(answers: Vec<&'static str>) -> (u16, tokio::task::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let task = tokio::spawn(async move {
            let mut asked = Vec::new();
            for answer in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut buffer = vec![0; 4096];
                let count = stream.read(&mut buffer).await.unwrap();
                asked.push(String::from_utf8_lossy(&buffer[..count]).into_owned());
                let head = format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\n\r\n");
                stream.write_all(head.as_bytes()).await.unwrap();
            }
            asked
        });
        (port, task)
    }

    async fn get(answers: Vec<&'static str>) -> (ProbeOutcome, Vec<String>) {
        let (port, task) = serve(answers).await;
        let id = ContainerId { pod_uid: "u".to_owned(), container: "c".to_owned(), attempt: 0 };
        let container = container();
        let target = Target { id: &id, container: &container, pod_ip: "127.0.0.1" };
        let action = HTTPGetAction {
            port: IntOrString::Int(port.into()),
            path: Some("/health".to_owned()),
            ..HTTPGetAction::default()
        };
        let outcome = http_get(&target, &action).await;
        (outcome, task.await.unwrap())
    }

    #[tokio::test]
    async fn http_answers_below_400_are_successes() {
        let (outcome, asked) = get(vec!["204 No Content"]).await;
        assert_eq!(outcome, ProbeOutcome::Success);
        assert!(asked[0].starts_with("GET /health HTTP/1.1"), "{asked:?}");
        assert!(asked[0].contains("user-agent: kube-probe/1.36\r\n"), "{asked:?}");
        let (outcome, _) = get(vec!["503 No"]).await;
        let want = "HTTP probe failed with statuscode: 503".to_owned();
        assert_eq!(outcome, ProbeOutcome::Failure(want));
        let (outcome, asked) = get(vec!["302 Found\r\nlocation: /other", "200 OK"]).await;
        assert_eq!(outcome, ProbeOutcome::Success);
        assert!(asked[1].starts_with("GET /other"));
        let (outcome, _) = get(vec!["302 Found\r\nlocation: http://elsewhere/"]).await;
        assert_eq!(outcome, ProbeOutcome::Success, "other hosts are not asked");
    }

    #[tokio::test]
    async fn a_port_nobody_listens_on_is_a_failure() {
        let id = ContainerId { pod_uid: "u".to_owned(), container: "c".to_owned(), attempt: 0 };
        let container = container();
        let target = Target { id: &id, container: &container, pod_ip: "127.0.0.1" };
        let socket = TCPSocketAction { port: IntOrString::Int(1), host: None };
        let outcome = connect_once(&target, &socket).await;
        assert!(matches!(outcome, ProbeOutcome::Failure(_)), "{outcome:?}");
    }
}
