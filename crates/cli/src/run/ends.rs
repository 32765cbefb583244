//! How a container ended, in words.

use jiff::Timestamp;
use lockstep_api::reasons::container::{COMPLETED, ERROR, OOM_KILLED, START_ERROR, STATUS_UNKNOWN};
use serde_json::Value;

/// The signals of Linux, from 1 on.
const SIGNALS: [&str; 31] = [
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
];

/// A container that ended badly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct End {
    /// Which container.
    pub(crate) container: String,
    /// Its exit code.
    pub(crate) code: i64,
    /// The node's word for it.
    pub(crate) reason: String,
    /// What the container or the node left to say, on one line.
    pub(crate) message: String,
    /// When.
    pub(crate) at: Option<Timestamp>,
}

impl End {
    /// Reads a container status, if the container ended and not well.
    pub(crate) fn of(status: &Value) -> Option<Self> {
        Self::read(status, "state")
    }

    /// Reads how the run before the one of now ended, if not well.
    pub(crate) fn before(status: &Value) -> Option<Self> {
        Self::read(status, "lastState")
    }

    fn read(status: &Value, state: &str) -> Option<Self> {
        let ended = &status[state]["terminated"];
        let code = ended["exitCode"].as_i64().filter(|&code| code != 0)?;
        // That a container which was never there cannot be found says nothing about how it ended.
        if is_unknown(ended) {
            return None;
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Some(Self {
            container: text(&status["name"]),
            code,
            reason: text(&ended["reason"]),
            message: one_line(&text(&ended["message"])),
            at: ended["finishedAt"].as_str().and_then(|text| text.parse().ok()),
        })
    }

    /// The exit code, and the signal it stands for: `exit code 137 (SIGKILL)`.
    pub(crate) fn code(&self) -> String {
        match signal(self.code) {
            Some(name) => format!("exit code {} ({name})", self.code),
            None => format!("exit code {}", self.code),
        }
    }

    /// The whole story in one line.
    pub(crate) fn words(&self) -> String {
        let name = &self.container;
        let said =
            if self.message.is_empty() { String::new() } else { format!(": {}", self.message) };
        match self.reason.as_str() {
            START_ERROR => format!("container {name} could not be started: {START_ERROR}{said}"),
            OOM_KILLED => {
                format!(
                    "container {name} used too much memory: {OOM_KILLED}, {}{said}",
                    self.code()
                )
            }
            "" | ERROR | COMPLETED => format!("container {name} ended with {}{said}", self.code()),
            reason => format!("container {name} ended with {}, {reason}{said}", self.code()),
        }
    }
}

/// Whether what ended was never started, so that it wrote nothing.
pub(crate) fn has_never_started(ended: &Value) -> bool {
    ended["reason"] == START_ERROR || is_unknown(ended)
}

/// Whether nobody knows of a container that it ever was there.
fn is_unknown(ended: &Value) -> bool {
    let has_id = ended["containerID"].as_str().is_some_and(|id| !id.is_empty());
    ended["reason"] == STATUS_UNKNOWN && !ended["startedAt"].is_string() && !has_id
}

/// The signal an exit code stands for.
fn signal(code: i64) -> Option<&'static str> {
    let number = usize::try_from(code.checked_sub(129)?).ok()?;
    SIGNALS.get(number).copied()
}

/// The last line that says something: programs end with what went wrong.
pub(crate) fn one_line(text: &str) -> String {
    let said = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
    said.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_end_says_what_it_means() {
        let cases = [
            (json!({"exitCode": 3}), "container c ended with exit code 3"),
            (json!({"exitCode": 1, "reason": "Error"}), "container c ended with exit code 1"),
            (
                json!({"exitCode": 143, "reason": "Error", "message": "a\nbye\n"}),
                "container c ended with exit code 143 (SIGTERM): bye",
            ),
            (
                json!({"exitCode": 137, "reason": "OOMKilled"}),
                "container c used too much memory: OOMKilled, exit code 137 (SIGKILL)",
            ),
            (
                json!({"exitCode": 127, "reason": "StartError", "message": "no such file"}),
                "container c could not be started: StartError: no such file",
            ),
            (
                json!({"exitCode": 255, "reason": "ContainerStatusUnknown",
                    "startedAt": "2026-01-01T00:00:00Z"}),
                "container c ended with exit code 255, ContainerStatusUnknown",
            ),
        ];
        for (ended, want) in cases {
            let status = json!({"name": "c", "state": {"terminated": ended}});
            assert_eq!(End::of(&status).expect("it ended badly").words(), want);
        }
        let unborn =
            json!({"exitCode": 137, "reason": "ContainerStatusUnknown", "startedAt": null});
        assert!(has_never_started(&unborn));
        let unborn = json!({"terminated": unborn});
        let fine = json!({"terminated": {"exitCode": 0}});
        for fine in [fine, unborn, json!({"running": {}}), json!({})] {
            assert_eq!(End::of(&json!({"name": "c", "state": fine})), None);
        }
    }

    #[test]
    fn exit_codes_name_their_signals() {
        let cases = [(129, Some("SIGHUP")), (139, Some("SIGSEGV")), (159, Some("SIGSYS"))];
        for (code, want) in cases.into_iter().chain([(128, None), (160, None), (1, None)]) {
            assert_eq!(signal(code), want, "{code}");
        }
    }
}
