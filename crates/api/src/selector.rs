//! Which objects are meant: label selectors and field selectors, parsed, printed and matched as the
//! Kubernetes API does it, error texts included.

mod field;
mod label;
mod meta;
mod parse;

pub use crate::meta::validate_label_selector;
pub use field::FieldSelector;
pub use label::{LabelSelector, Operator, Requirement};

/// Why a selector cannot be understood. A request that carries such a selector is a bad request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(pub String);

impl From<SelectorError> for crate::Status {
    fn from(error: SelectorError) -> Self {
        Self::bad_request(error.0)
    }
}
