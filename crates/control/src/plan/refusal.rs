//! Requests that came to nothing.

/// A request that was refused, or not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// What kind of no it was.
    pub kind: RefusalKind,
    /// What the API said, or what went wrong on the way.
    pub message: String,
}

/// The kinds of no that make a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// There is no such object, or it is another one of the same name by now.
    NotFound,
    /// The object has changed since it was seen.
    Conflict,
    /// There is an object of that name already.
    AlreadyExists,
    /// The namespace is being deleted.
    NamespaceTerminating,
    /// The API said no for another reason: nothing has changed.
    Refused,
    /// Anything else: it may have been carried out or not.
    Other,
}

impl RefusalKind {
    /// What an answer of the API means: its code, its reason and its message; `causes` are the
    /// reasons of its causes.
    pub fn of<'a>(
        code: u16,
        reason: &str,
        message: &str,
        mut causes: impl Iterator<Item = &'a str>,
    ) -> Self {
        match (code, reason) {
            _ if causes.any(|cause| cause == "NamespaceTerminating") => Self::NamespaceTerminating,
            (404, _) => Self::NotFound,
            (_, "AlreadyExists") => Self::AlreadyExists,
            (409, _) if is_of_another(message) => Self::NotFound,
            (409, _) => Self::Conflict,
            // A patch that does not fit was made for another version, and is applied before
            // versions are compared.
            (422, reason) if is_unfit(reason, message) => Self::Conflict,
            // Whoever waited too long for it does not know what it did.
            (408, _) => Self::Other,
            (400..=499, _) => Self::Refused,
            _ => Self::Other,
        }
    }
}

/// Whether a conflict says that the object is another one of the same name: in the words for
/// writes, or in those for deletions.
fn is_of_another(message: &str) -> bool {
    message.contains("UID in precondition") || message.contains("UID in the precondition")
}

/// Whether a patch does not fit: the embedded API server says what was wrong with it and gives no
/// reason, others say only this.
fn is_unfit(reason: &str, message: &str) -> bool {
    reason.is_empty() || message == "the server rejected our request due to an error in our request"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_understood() {
        let uid = "the UID in the precondition (a) does not match the UID in record (b)";
        let unfit = "the server rejected our request due to an error in our request";
        let cases = [
            (404, "NotFound", "", "", RefusalKind::NotFound),
            (409, "AlreadyExists", "", "", RefusalKind::AlreadyExists),
            (409, "Conflict", "the object has been modified", "", RefusalKind::Conflict),
            (409, "Conflict", uid, "", RefusalKind::NotFound),
            (403, "Forbidden", "", "NamespaceTerminating", RefusalKind::NamespaceTerminating),
            (403, "Forbidden", "", "", RefusalKind::Refused),
            (422, "Invalid", "", "FieldValueInvalid", RefusalKind::Refused),
            (422, "", "Unable to remove nonexistent key: labels", "", RefusalKind::Conflict),
            (422, "Invalid", unfit, "", RefusalKind::Conflict),
            (408, "Timeout", "", "", RefusalKind::Other),
            (500, "InternalError", "", "", RefusalKind::Other),
        ];
        for (code, reason, message, cause, want) in cases {
            let causes = Some(cause).filter(|cause| !cause.is_empty()).into_iter();
            assert_eq!(RefusalKind::of(code, reason, message, causes), want, "{code} {reason}");
        }
    }
}
