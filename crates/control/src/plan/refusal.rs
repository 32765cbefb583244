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
