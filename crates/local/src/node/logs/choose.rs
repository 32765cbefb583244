//! Which instance of a container a request for logs means, and what to say when there is none.
//! Pure.

use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus};

use crate::node::runtime::ContainerId;

/// Why there is no log: a bad request, in the words of a kubelet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// The node has not reported the container yet.
    #[error("container \"{container}\" in pod \"{pod}\" is not available")]
    NotAvailable {
        /// The container.
        container: String,
        /// Its pod.
        pod: String,
    },
    /// No instance came before the current one.
    #[error("previous terminated container \"{container}\" in pod \"{pod}\" not found")]
    NoPrevious {
        /// The container.
        container: String,
        /// Its pod.
        pod: String,
    },
    /// It has not been started.
    #[error("container \"{container}\" in pod \"{pod}\" is waiting to start: {reason}")]
    Waiting {
        /// The container.
        container: String,
        /// Its pod.
        pod: String,
        /// Why it waits.
        reason: String,
    },
    /// It has not been started, and nobody said why.
    #[error("container \"{container}\" in pod \"{pod}\" is waiting to start - no logs yet")]
    NotStarted {
        /// The container.
        container: String,
        /// Its pod.
        pod: String,
    },
    /// It ended without ever having run.
    #[error("container \"{container}\" in pod \"{pod}\" is terminated")]
    Terminated {
        /// The container.
        container: String,
        /// Its pod.
        pod: String,
    },
}

/// The instance whose log is meant, by what the pod's status says about the container.
pub fn choose(
    status: Option<&ContainerStatus>,
    pod_uid: &str,
    pod: &str,
    container: &str,
    previous: bool,
) -> Result<ContainerId, LogError> {
    let names = || (container.to_owned(), pod.to_owned());
    let Some(status) = status else {
        let (container, pod) = names();
        return Err(LogError::NotAvailable { container, pod });
    };
    let restarts = u32::try_from(status.restart_count).unwrap_or(0);
    let id = |attempt| ContainerId {
        pod_uid: pod_uid.to_owned(),
        container: container.to_owned(),
        attempt,
    };
    let last = status.last_state.as_ref().and_then(|state| state.terminated.as_ref());
    let state = status.state.as_ref();
    let running = state.and_then(|state| state.running.as_ref());
    let terminated = state.and_then(|state| state.terminated.as_ref());
    // While it waits for a restart, the last instance is the one that was counted last.
    let last_attempt = if running.is_some() || terminated.is_some() {
        restarts.saturating_sub(1)
    } else {
        restarts
    };
    let of = |terminated: &ContainerStateTerminated, otherwise| {
        let named = terminated.container_id.as_deref().and_then(ContainerId::from_url);
        named.unwrap_or_else(|| id(otherwise))
    };
    if previous {
        let (container, pod) = names();
        let last = last.ok_or(LogError::NoPrevious { container, pod })?;
        return Ok(of(last, last_attempt));
    }
    match (running, terminated, last) {
        (Some(_), _, _) => Ok(id(restarts)),
        (None, Some(ended), _) if ended.container_id.is_some() => Ok(of(ended, restarts)),
        (None, _, Some(last)) => Ok(of(last, last_attempt)),
        (None, Some(_), None) => {
            let (container, pod) = names();
            Err(LogError::Terminated { container, pod })
        }
        (None, None, None) => {
            let (container, pod) = names();
            let waiting = state.and_then(|state| state.waiting.as_ref());
            match waiting.and_then(|waiting| waiting.reason.clone()) {
                Some(reason) => Err(LogError::Waiting { container, pod, reason }),
                None => Err(LogError::NotStarted { container, pod }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_instance_is_the_one_a_kubelet_would_read() {
        let ended = |attempt: u32| json!({"terminated": {"exitCode": 1, "containerID": format!("proc://u/c/{attempt}")}});
        let running = json!({"running": {}});
        let back_off = json!({"waiting": {"reason": "CrashLoopBackOff"}});
        let creating = json!({"waiting": {"reason": "ContainerCreating"}});
        let not_run = json!({"terminated": {"exitCode": 128, "reason": "StartError"}});
        let none = json!({});
        type Case<'a> = (&'a str, &'a Value, &'a Value, u32, bool, Result<u32, &'a str>);
        let cases: [Case<'_>; 9] = [
            ("first run", &running, &none, 0, false, Ok(0)),
            ("after restarts", &running, &ended(1), 2, false, Ok(2)),
            ("before restarts", &running, &ended(1), 2, true, Ok(1)),
            ("ended", &ended(0), &none, 0, false, Ok(0)),
            ("backing off", &back_off, &ended(2), 2, false, Ok(2)),
            ("backing off, previous", &back_off, &ended(2), 2, true, Ok(2)),
            (
                "no previous",
                &running,
                &none,
                0,
                true,
                Err("previous terminated container \"c\" in pod \"p\" not found"),
            ),
            (
                "not yet",
                &creating,
                &none,
                0,
                false,
                Err("container \"c\" in pod \"p\" is waiting to start: ContainerCreating"),
            ),
            ("never", &not_run, &none, 0, false, Err("container \"c\" in pod \"p\" is terminated")),
        ];
        for (name, state, last, restarts, previous, want) in cases {
            let status = json!({"name": "c", "image": "i", "imageID": "", "ready": false,
                "restartCount": restarts, "state": state, "lastState": last});
            let status: ContainerStatus = serde_json::from_value(status).unwrap();
            let chosen = choose(Some(&status), "u", "p", "c", previous);
            let chosen = chosen.map(|id| id.attempt).map_err(|error| error.to_string());
            assert_eq!(chosen, want.map_err(str::to_owned), "{name}");
        }
        let error = choose(None, "u", "p", "c", false).unwrap_err().to_string();
        assert_eq!(error, "container \"c\" in pod \"p\" is not available");
    }
}
