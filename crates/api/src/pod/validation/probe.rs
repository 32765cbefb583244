//! Probes and lifecycle hooks.

use k8s_openapi::api::core::v1::{
    ExecAction, GRPCAction, HTTPGetAction, Lifecycle, LifecycleHandler, Probe, SleepAction,
    TCPSocketAction,
};

use super::{
    container::Context,
    ports,
    rules::{list, non_negative, number, option, text},
};
use crate::{
    field::{ErrorList, FieldError, Path},
    names,
};

/// What a probe or a hook does; exactly one of these.
#[derive(Default)]
struct Handler<'a> {
    exec: Option<&'a ExecAction>,
    http_get: Option<&'a HTTPGetAction>,
    tcp_socket: Option<&'a TCPSocketAction>,
    grpc: Option<&'a GRPCAction>,
    sleep: Option<&'a SleepAction>,
}

/// Says what is wrong with a liveness or startup probe.
pub(super) fn validate_single(probe: Option<&Probe>, grace: Option<i64>, path: &Path) -> ErrorList {
    let Some(probe) = probe else { return ErrorList::new() };
    let mut errors = validate(probe, grace, path);
    let threshold = probe.success_threshold.unwrap_or_default();
    if threshold != 1 {
        let path = path.child("successThreshold");
        errors.push(FieldError::invalid(&path, threshold, "must be 1"));
    }
    errors
}

/// Says what is wrong with a readiness probe.
pub(super) fn validate_readiness(
    probe: Option<&Probe>,
    grace: Option<i64>,
    path: &Path,
) -> ErrorList {
    let Some(probe) = probe else { return ErrorList::new() };
    let mut errors = validate(probe, grace, path);
    if let Some(seconds) = probe.termination_grace_period_seconds {
        let path = path.child("terminationGracePeriodSeconds");
        errors.push(FieldError::invalid(&path, seconds, "must not be set for readinessProbes"));
    }
    errors
}

/// Says what is wrong with the hooks of a container.
pub(super) fn validate_lifecycle(
    lifecycle: &Lifecycle,
    context: &Context<'_>,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let hooks = [("postStart", &lifecycle.post_start), ("preStop", &lifecycle.pre_stop)];
    for (field, hook) in hooks {
        if let Some(hook) = hook {
            errors.extend(handler(&of_hook(hook), context.grace, &path.child(field)));
        }
    }
    if let Some(signal) = &lifecycle.stop_signal {
        errors.extend(stop_signal(signal, context.os, &path.child("stopSignal")));
    }
    errors
}

fn validate(probe: &Probe, grace: Option<i64>, path: &Path) -> ErrorList {
    let mut errors = handler(
        &Handler {
            exec: probe.exec.as_ref(),
            http_get: probe.http_get.as_ref(),
            tcp_socket: probe.tcp_socket.as_ref(),
            grpc: probe.grpc.as_ref(),
            sleep: None,
        },
        grace,
        path,
    );
    let numbers = [
        ("initialDelaySeconds", probe.initial_delay_seconds),
        ("timeoutSeconds", probe.timeout_seconds),
        ("periodSeconds", probe.period_seconds),
        ("successThreshold", probe.success_threshold),
        ("failureThreshold", probe.failure_threshold),
    ];
    for (field, value) in numbers {
        errors.extend(non_negative(value.unwrap_or_default().into(), &path.child(field)));
    }
    if let Some(seconds) = probe.termination_grace_period_seconds.filter(|s| *s <= 0) {
        let path = path.child("terminationGracePeriodSeconds");
        errors.push(FieldError::invalid(&path, seconds, "must be greater than 0"));
    }
    errors
}

fn of_hook(hook: &LifecycleHandler) -> Handler<'_> {
    Handler {
        exec: hook.exec.as_ref(),
        http_get: hook.http_get.as_ref(),
        tcp_socket: hook.tcp_socket.as_ref(),
        grpc: None,
        sleep: hook.sleep.as_ref(),
    }
}

fn handler(handler: &Handler<'_>, grace: Option<i64>, path: &Path) -> ErrorList {
    let given: [(&str, Option<ErrorList>); 5] = [
        ("exec", handler.exec.map(|it| exec(it, &path.child("exec")))),
        ("httpGet", handler.http_get.map(|it| http_get(it, &path.child("httpGet")))),
        (
            "tcpSocket",
            handler
                .tcp_socket
                .map(|it| ports::number_or_name(&it.port, &path.child("tcpSocket").child("port"))),
        ),
        (
            "grpc",
            handler.grpc.map(|it| {
                number(it.port.into(), &path.child("grpc").child("port"), names::port_number)
            }),
        ),
        ("sleep", handler.sleep.map(|it| sleep(it, grace, &path.child("sleep")))),
    ];
    let mut errors = ErrorList::new();
    let mut is_first = true;
    for (field, faults) in given {
        let Some(faults) = faults else { continue };
        if is_first {
            errors.extend(faults);
        } else {
            let why = "may not specify more than 1 handler type";
            errors.push(FieldError::forbidden(&path.child(field), why));
        }
        is_first = false;
    }
    if is_first {
        errors.push(FieldError::required(path, "must specify a handler type"));
    }
    errors
}

fn exec(action: &ExecAction, path: &Path) -> ErrorList {
    if list(&action.command).is_empty() {
        return vec![FieldError::required(&path.child("command"), "")];
    }
    ErrorList::new()
}

fn http_get(action: &HTTPGetAction, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if text(&action.path).is_empty() {
        errors.push(FieldError::required(&path.child("path"), ""));
    }
    errors.extend(ports::number_or_name(&action.port, &path.child("port")));
    errors.extend(option(text(&action.scheme), &["HTTP", "HTTPS"], &path.child("scheme")));
    for header in list(&action.http_headers) {
        let path = path.child("httpHeaders");
        let faults = names::http_header_name(&header.name);
        errors.extend(crate::meta::invalid(&path, &header.name, faults));
    }
    errors
}

fn sleep(action: &SleepAction, grace: Option<i64>, path: &Path) -> ErrorList {
    match grace {
        Some(grace) if !(0..=grace).contains(&action.seconds) => {
            let why = format!(
                "must be non-negative and less than terminationGracePeriodSeconds ({grace})"
            );
            vec![FieldError::invalid(path, action.seconds, &why)]
        }
        _ => ErrorList::new(),
    }
}

fn stop_signal(signal: &str, os: Option<&str>, path: &Path) -> Option<FieldError> {
    match os {
        None => {
            let why = "may not be set for containers with empty `spec.os.name`";
            Some(FieldError::forbidden(path, why))
        }
        Some("windows") => option(signal, &["SIGKILL", "SIGTERM"], path),
        Some("linux") => {
            let known = linux_signals();
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            option(signal, &known, path)
        }
        Some(_) => None,
    }
}

/// The signals Linux knows, sorted.
fn linux_signals() -> Vec<String> {
    const NAMED: [&str; 34] = [
        "ABRT", "ALRM", "BUS", "CHLD", "CLD", "CONT", "FPE", "HUP", "ILL", "INT", "IO", "IOT",
        "KILL", "PIPE", "POLL", "PROF", "PWR", "QUIT", "SEGV", "STKFLT", "STOP", "SYS", "TERM",
        "TRAP", "TSTP", "TTIN", "TTOU", "URG", "USR1", "USR2", "VTALRM", "WINCH", "XCPU", "XFSZ",
    ];
    let above = (1..=15).map(|n| format!("SIGRTMIN+{n}"));
    let below = (1..=14).map(|n| format!("SIGRTMAX-{n}"));
    let mut signals: Vec<String> = NAMED.iter().map(|name| format!("SIG{name}")).collect();
    signals.extend(["SIGRTMIN".to_owned(), "SIGRTMAX".to_owned()]);
    signals.extend(above.chain(below));
    signals.sort();
    signals
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::{assert_container, assert_spec};

    #[test]
    fn probes_do_one_thing() {
        let at = "spec.containers[0].livenessProbe";
        let cases = [
            (json!({}), format!("{at}: Required value: must specify a handler type")),
            (json!({"exec": {}}), format!("{at}.exec.command: Required value")),
            (
                json!({"exec": {"command": ["x"]}, "httpGet": {"port": 1}}),
                format!("{at}.httpGet: Forbidden: may not specify more than 1 handler type"),
            ),
            (
                json!({"httpGet": {"port": 0}}),
                format!(
                    "{at}.httpGet.port: Invalid value: 0: must be between 1 and 65535, inclusive"
                ),
            ),
            (
                json!({"httpGet": {"port": "a_b"}}),
                format!(
                    "{at}.httpGet.port: Invalid value: \"a_b\": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
                ),
            ),
            (
                json!({"httpGet": {"port": 1, "scheme": "FTP"}}),
                format!(
                    "{at}.httpGet.scheme: Unsupported value: \"FTP\": supported values: \"HTTP\", \"HTTPS\""
                ),
            ),
            (
                json!({"tcpSocket": {"port": 1}, "periodSeconds": -1}),
                format!(
                    "{at}.periodSeconds: Invalid value: -1: must be greater than or equal to 0"
                ),
            ),
            (
                json!({"grpc": {"port": 1}, "successThreshold": 2}),
                format!("{at}.successThreshold: Invalid value: 2: must be 1"),
            ),
            (
                json!({"grpc": {"port": 1}, "terminationGracePeriodSeconds": 0}),
                format!(
                    "{at}.terminationGracePeriodSeconds: Invalid value: 0: must be greater than 0"
                ),
            ),
        ];
        for (probe, want) in cases {
            assert_container(json!({"livenessProbe": probe}), &[&want]);
        }
        assert_container(
            json!({"readinessProbe": {"grpc": {"port": 1}, "terminationGracePeriodSeconds": 5}}),
            &[
                "spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 5: must not be set for readinessProbes",
            ],
        );
    }

    #[test]
    fn hooks_end_within_the_grace_period() {
        let hook = |lifecycle: Value| json!({"lifecycle": lifecycle});
        assert_container(
            hook(json!({"preStop": {"sleep": {"seconds": 31}}})),
            &[
                "spec.containers[0].lifecycle.preStop.sleep: Invalid value: 31: must be non-negative and less than terminationGracePeriodSeconds (30)",
            ],
        );
        assert_container(hook(json!({"preStop": {"sleep": {"seconds": 0}}})), &[]);
        assert_container(
            hook(json!({"stopSignal": "SIGUSR1"})),
            &[
                "spec.containers[0].lifecycle.stopSignal: Forbidden: may not be set for containers with empty `spec.os.name`",
            ],
        );
        let on_linux = |signal: &str| json!({"os": {"name": "linux"}, "containers": [{"name": "c", "image": "i", "lifecycle": {"stopSignal": signal}}]});
        assert_spec(on_linux("SIGRTMIN+3"), &[]);
        assert_eq!(super::linux_signals().len(), 65);
    }
}
