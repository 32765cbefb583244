//! Why a request came to nothing, in kubectl's words.

use std::error::Error as _;

use lockstep_api::Status;

use crate::{catalog::Resource, exit::Exit};

/// A request that was refused, or never got there.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The API server said why.
    Status(Box<Status>),
    /// Something answered that is no API server, or not a healthy one.
    Http {
        /// The HTTP status.
        code: u16,
        /// What came with it.
        body: String,
    },
    /// The answer makes no sense.
    Garbled(String),
    /// Nothing answered.
    Unreachable(Box<kube::Error>),
}

/// A refusal in words, for those who only pass it on.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refused {
    message: String,
    code: u16,
}

impl Refused {
    /// Whether the request was at fault, not the server.
    pub(crate) fn is_callers_fault(&self) -> bool {
        matches!(self.code, 400..=499) && !matches!(self.code, 401 | 408 | 429)
    }

    /// How the process ends when nobody can do anything about it.
    pub(crate) fn exit(&self) -> Exit {
        match self.code {
            // Malformed, invalid or too large: what was sent is wrong, whoever is asked.
            400 | 413 | 422 => Exit::Usage,
            0 | 500.. => Exit::Cluster,
            _ => Exit::Failed,
        }
    }
}

impl Refusal {
    /// The HTTP code of the answer; 0 when there was none.
    pub(crate) fn code(&self) -> u16 {
        match self {
            Self::Status(status) => status.code,
            Self::Http { code, .. } => *code,
            Self::Garbled(_) | Self::Unreachable(_) => 0,
        }
    }

    /// What a server says of an object that does not exist.
    pub(crate) fn gone(resource: &Resource, name: &str) -> Self {
        let plural = match resource.group.as_str() {
            "" => resource.plural.clone(),
            group => format!("{}.{group}", resource.plural),
        };
        let mut status = Status::default();
        status.code = 404;
        "NotFound".clone_into(&mut status.reason);
        status.message = format!("{plural} {name:?} not found");
        Self::Status(Box::new(status))
    }

    /// Whether the object asked for does not exist.
    pub(crate) fn is_not_found(&self) -> bool {
        self.code() == 404
    }

    /// The error for a person; `doing` says what was tried, as in `error when creating "p.yaml"`.
    pub(crate) fn into_error(self, doing: Option<&str>) -> anyhow::Error {
        Refused { message: self.explain(doing), code: self.code() }.into()
    }

    /// The whole message, prefix included.
    pub(crate) fn explain(&self, doing: Option<&str>) -> String {
        let doing = doing.map(|what| format!("{what}: ")).unwrap_or_default();
        match self {
            Self::Status(status) => explain_status(status, &doing),
            Self::Http { code, body } => {
                format!("Error from server: {doing}HTTP {code}: {}", body.trim())
            }
            Self::Garbled(why) => format!("error: {doing}the server's answer is unreadable: {why}"),
            Self::Unreachable(error) => format!("error: {doing}{}", explain_transport(error)),
        }
    }
}

impl From<kube::Error> for Refusal {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => {
                // Both types mirror one wire format, so the way from one to the other is the wire.
                let wire = serde_json::to_value(&*status).unwrap_or_default();
                match serde_json::from_value(wire) {
                    Ok(status) => Self::Status(Box::new(status)),
                    Err(_) => Self::Garbled(status.message.clone()),
                }
            }
            other => Self::Unreachable(Box::new(other)),
        }
    }
}

impl From<Refusal> for anyhow::Error {
    fn from(refusal: Refusal) -> Self {
        refusal.into_error(None)
    }
}

fn explain_status(status: &Status, doing: &str) -> String {
    match (status.code, status.reason.as_str()) {
        (401, _) => "error: You must be logged in to the server (Unauthorized)".to_owned(),
        (422, "Invalid") => {
            let causes: Vec<String> = status
                .details
                .iter()
                .flat_map(|details| &details.causes)
                .map(|cause| format!("* {}: {}", cause.field, cause.message))
                .collect();
            let (object, why) =
                status.message.split_once(" is invalid: ").unwrap_or((&status.message, ""));
            // The server says which group the kind is of; kubectl does not.
            let details = status.details.as_deref();
            let named = details.filter(|it| !it.kind.is_empty() && !it.name.is_empty());
            let object = named.map_or_else(
                || object.to_owned(),
                |details| format!("{} {:?}", details.kind, details.name),
            );
            match (causes.len(), why) {
                (_, "") => format!("The {}", status.message),
                (2.., _) => format!("The {object} is invalid: \n{}", causes.join("\n")),
                _ => format!("The {object} is invalid: {why}"),
            }
        }
        (_, "") => format!("Error from server: {doing}{}", status.message),
        (_, reason) => format!("Error from server ({reason}): {doing}{}", status.message),
    }
}

/// The innermost cause: what a person can act on. The layers above only say "client error".
pub(crate) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    loop {
        // An error of the system may wrap another one, which it does not call its source.
        let wrapped = innermost.downcast_ref::<std::io::Error>().and_then(|error| error.get_ref());
        innermost = match (wrapped, innermost.source()) {
            (Some(wrapped), _) => wrapped,
            (None, Some(source)) => source,
            (None, None) => break,
        };
    }
    let why = innermost.to_string();
    // With a page of its library's manual for whoever wrote the program.
    if why.contains("close_notify") { "the server closed the connection".to_owned() } else { why }
}

fn explain_transport(error: &kube::Error) -> String {
    let why = innermost(error);
    if why.contains("onnection refused") {
        return format!("the server does not answer ({why}): is `lockstep up` running?");
    }
    if why.contains("certificate") || why.contains("UnknownIssuer") {
        return format!("the server's certificate is not trusted: {why}");
    }
    match error.source() {
        Some(_) => format!("cannot reach the server: {why}"),
        None => format!("cannot reach the server: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use lockstep_api::status::{Cause, Details};

    use super::*;

    fn status(code: u16, reason: &str, message: &str) -> Status {
        let wire = serde_json::json!({"code": code, "reason": reason, "message": message});
        serde_json::from_value(wire).expect("a Status")
    }

    #[test]
    fn refusals_read_as_kubectl_prints_them() {
        let cause = |field: &str, message: &str| Cause {
            reason: "FieldValueInvalid".into(),
            message: message.into(),
            field: field.into(),
        };
        let mut invalid = status(422, "Invalid", "Pod \"p\" is invalid: [a: x, b: y]");
        invalid.details = Some(Box::new(Details {
            causes: vec![cause("a", "x"), cause("b", "y")],
            ..Details::default()
        }));
        let mut grouped = status(422, "Invalid", "Job.batch \"j\" is invalid: a: x");
        grouped.details = Some(Box::new(Details {
            kind: "Job".to_owned(),
            name: "j".to_owned(),
            causes: vec![cause("a", "x")],
            ..Details::default()
        }));
        let one = status(422, "Invalid", "Pod \"p\" is invalid: a: x");
        for (status, doing, want) in [
            (
                status(404, "NotFound", "pods \"p\" not found"),
                None,
                "Error from server (NotFound): pods \"p\" not found",
            ),
            (
                status(409, "AlreadyExists", "pods \"p\" already exists"),
                Some("error when creating \"p.yaml\""),
                "Error from server (AlreadyExists): error when creating \"p.yaml\": pods \"p\" already exists",
            ),
            (
                status(401, "Unauthorized", "Unauthorized"),
                None,
                "error: You must be logged in to the server (Unauthorized)",
            ),
            (one, None, "The Pod \"p\" is invalid: a: x"),
            (grouped, None, "The Job \"j\" is invalid: a: x"),
            (invalid, None, "The Pod \"p\" is invalid: \n* a: x\n* b: y"),
            (status(500, "", "oops"), None, "Error from server: oops"),
        ] {
            assert_eq!(Refusal::Status(Box::new(status)).explain(doing), want);
        }
    }

    #[test]
    fn what_is_told_is_the_cause_and_no_address_of_a_manual() {
        use std::io::{Error, ErrorKind};
        let inner = Error::other("peer closed without close_notify: https://docs.rs/x");
        let outer = Error::new(ErrorKind::UnexpectedEof, Error::other(inner));
        assert_eq!(innermost(&outer), "the server closed the connection");
        assert_eq!(innermost(&Error::from(ErrorKind::TimedOut)), "timed out");
    }
}
