//! Probes and hooks: asking a container how it is, with the answers in the words of a kubelet.

mod grpc;
mod http;
mod tls;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, ExecAction, LifecycleHandler, Probe, TCPSocketAction};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use lockstep_control::plan::pod::{ProbeOutcome, go_duration};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::env;
use super::runtime::{ContainerId, ExecError, Runtime};

/// As much of an answer as is read.
const ANSWER_MAX: usize = 10 * 1024;

/// What a probe calls itself, without its version.
const USER_AGENT: &str = "kube-probe";

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
        return http::get(target, get, timeout).await;
    }
    if let Some(socket) = &probe.tcp_socket {
        return connect_once(target, socket, timeout).await;
    }
    if let Some(grpc) = &probe.grpc {
        return grpc::check(target.pod_ip, grpc, timeout).await;
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
    let is_good = |outcome: &ProbeOutcome| {
        matches!(outcome, ProbeOutcome::Success | ProbeOutcome::Warning(_))
    };
    if let Some(exec) = &hook.exec {
        return is_good(&run_command(runtime, target, exec, limit).await);
    }
    if let Some(get) = &hook.http_get {
        return is_good(&http::get(target, get, limit).await);
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
        IntOrString::Int(number) => *number,
        IntOrString::String(name) => {
            let ports = container.ports.as_deref().unwrap_or_default();
            let named = ports.iter().find(|port| port.name.as_deref() == Some(name));
            named
                .map(|port| port.container_port)
                .or_else(|| name.parse().ok())
                .ok_or_else(|| format!("strconv.Atoi: parsing {name:?}: invalid syntax"))?
        }
    };
    u16::try_from(number)
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| format!("invalid port number: {number}"))
}

async fn run_command(
    runtime: &Arc<Runtime>,
    target: &Target<'_>,
    exec: &ExecAction,
    timeout: Duration,
) -> ProbeOutcome {
    let command = env::expand_static(exec.command.as_deref().unwrap_or_default(), target.container);
    match runtime.exec(target.id, &command, timeout).await {
        Ok(outcome) if outcome.code == 0 => ProbeOutcome::Success,
        Ok(outcome) => {
            let end = outcome.output.len().min(ANSWER_MAX);
            let output = String::from_utf8_lossy(&outcome.output[..end]).into_owned();
            ProbeOutcome::Failure(output)
        }
        Err(ExecError::TimedOut { command, timeout }) => {
            let timeout = go_duration(timeout);
            let message = format!("command timed out: {command:?} timed out after {timeout}");
            ProbeOutcome::Failure(message)
        }
        Err(error) => ProbeOutcome::Error(error.to_string()),
    }
}

async fn connect_once(
    target: &Target<'_>,
    socket: &TCPSocketAction,
    timeout: Duration,
) -> ProbeOutcome {
    let port = match port_number(&socket.port, target.container) {
        Ok(port) => port,
        Err(error) => return ProbeOutcome::Error(error),
    };
    let host = socket.host.as_deref().filter(|host| !host.is_empty()).unwrap_or(target.pod_ip);
    match dial(host, port, Instant::now() + timeout).await {
        Ok(_) => ProbeOutcome::Success,
        Err(message) => ProbeOutcome::Failure(message),
    }
}

/// Connects; why not, in the words of Go's `net.Dial`.
pub(crate) async fn dial(host: &str, port: u16, deadline: Instant) -> Result<TcpStream, String> {
    let address = join(host, port);
    match tokio::time::timeout_at(deadline, TcpStream::connect((host, port))).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) if error.raw_os_error().is_none() => {
            Err(format!("dial tcp: lookup {host}: no such host"))
        }
        Ok(Err(error)) => Err(format!("dial tcp {address}: connect: {}", words(&error))),
        Err(_) => Err(format!("dial tcp {address}: i/o timeout")),
    }
}

/// A host and a port as one text; the host is bracketed where it would be taken for more.
fn join(host: &str, port: u16) -> String {
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V6(_)) => format!("[{host}]:{port}"),
        Ok(IpAddr::V4(_)) | Err(_) => format!("{host}:{port}"),
    }
}

/// What the system says of an error, as Go writes it.
fn words(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

/// What a probe calls itself: `kube-probe/1.36`.
fn user_agent() -> String {
    let version = lockstep_api::KUBERNETES_VERSION.trim_start_matches('v');
    let minor = version.rsplit_once('.').map_or(version, |(minor, _)| minor);
    format!("{USER_AGENT}/{minor}")
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ContainerPort;

    use super::*;

    /// A container with a port called `web`.
    pub(super) fn container() -> Container {
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
                Err("strconv.Atoi: parsing \"nope\": invalid syntax".to_owned()),
            ),
            (IntOrString::Int(70_000), Err("invalid port number: 70000".to_owned())),
        ];
        for (port, want) in cases {
            assert_eq!(port_number(&port, &container()), want, "{port:?}");
        }
    }

    #[tokio::test]
    async fn a_port_nobody_listens_on_is_a_failure() {
        let id = ContainerId { pod_uid: "u".to_owned(), container: "c".to_owned(), attempt: 0 };
        let container = container();
        let target = Target { id: &id, container: &container, pod_ip: "127.0.0.1" };
        let socket = TCPSocketAction { port: IntOrString::Int(1), host: None };
        let outcome = connect_once(&target, &socket, Duration::from_secs(5)).await;
        let want = "dial tcp 127.0.0.1:1: connect: connection refused";
        assert_eq!(outcome, ProbeOutcome::Failure(want.to_owned()));
        assert_eq!(join("::1", 80), "[::1]:80");
    }
}
