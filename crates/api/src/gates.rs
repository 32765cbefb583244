//! Features that can be turned off.

/// Which features are on. All are, unless somebody turns them off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gates {
    /// `JobSuccessPolicy`: `spec.successPolicy` of Jobs. Where it is off, new Jobs lose the field;
    /// Jobs that have it keep it.
    pub job_success_policy: bool,
}

impl Gates {
    /// Everything is on.
    pub const ALL: Self = Self { job_success_policy: true };
}

impl Default for Gates {
    fn default() -> Self {
        Self::ALL
    }
}
