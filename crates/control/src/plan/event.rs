//! What users are told.

/// An event to record on an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Whether it is a `Warning` rather than `Normal`.
    pub is_warning: bool,
    /// Why, in CamelCase.
    pub reason: String,
    /// For people.
    pub message: String,
}

impl Event {
    pub(crate) fn normal(reason: &str, message: impl Into<String>) -> Self {
        Self { is_warning: false, reason: reason.to_owned(), message: message.into() }
    }

    pub(crate) fn warning(reason: &str, message: impl Into<String>) -> Self {
        Self { is_warning: true, ..Self::normal(reason, message) }
    }
}
