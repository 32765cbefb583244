//! Features that can be turned off, under the names Kubernetes gives them.

/// Which features are on. All are, unless somebody turns them off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gates {
    /// `JobSuccessPolicy`: `spec.successPolicy` of Jobs. Where it is off, new Jobs lose the field;
    /// Jobs that have it keep it.
    pub job_success_policy: bool,
}

/// A name no feature has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown feature gate {name:?}: there is only \"JobSuccessPolicy\"")]
pub struct UnknownGate {
    /// The name.
    pub name: String,
}

impl Gates {
    /// Everything is on.
    pub const ALL: Self = Self { job_success_policy: true };

    /// Turns a feature on or off by its name.
    ///
    /// # Errors
    /// When no feature has that name.
    pub fn set(&mut self, name: &str, is_on: bool) -> Result<(), UnknownGate> {
        match name {
            "JobSuccessPolicy" => self.job_success_policy = is_on,
            _ => return Err(UnknownGate { name: name.to_owned() }),
        }
        Ok(())
    }
}

impl Default for Gates {
    fn default() -> Self {
        Self::ALL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_turned_off_by_name() {
        let mut gates = Gates::default();
        assert!(gates.job_success_policy);
        gates.set("JobSuccessPolicy", false).unwrap();
        assert!(!gates.job_success_policy);
        let error = gates.set("jobSuccessPolicy", true).unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown feature gate \"jobSuccessPolicy\": there is only \"JobSuccessPolicy\""
        );
        assert!(!gates.job_success_policy);
    }
}
