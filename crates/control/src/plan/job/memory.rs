//! What is known of a Job beyond what the API shows.

use std::collections::BTreeSet;

/// What the driver remembers of one Job between passes. Losing it costs a request or a repeated
/// event, never correctness.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Names that pods of somebody else have.
    pub(crate) names_taken: BTreeSet<String>,
    /// Uids of pods that only our own requests have shown, and that a listing should have shown.
    pub(crate) doubtful: BTreeSet<String>,
    /// Whether users have been told that the completion mode is not known.
    pub(crate) told_unknown_mode: bool,
    /// What failed last: it comes last in the next pass, so that it holds nothing else up.
    pub(crate) failed_last: Option<Stage>,
}

/// The stages of a pass that do not need each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Creating or deleting pods.
    Pods,
    /// Removing finalizers of pods that are counted.
    Finalizers,
}
