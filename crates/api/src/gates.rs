//! Features that can be turned off.

/// Which features are on. All are, unless somebody turns them off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gates {
    /// `JobSuccessPolicy`: `spec.successPolicy` of Jobs. Where it is off, new Jobs lose the field;
    /// Jobs that have it keep it.
    pub job_success_policy: bool,
    /// `InPlaceRestart`: `restartStrategy: InPlaceRestart` of JobSets.
    pub in_place_restart: bool,
    /// `RestartJob`: actions of JobSets that restart one Job.
    pub restart_job: bool,
    /// `ElasticJobSet`: parallelism and completions of Indexed Jobs of JobSets may change.
    pub elastic_job_set: bool,
}

impl Gates {
    /// Everything is on.
    pub const ALL: Self = Self {
        job_success_policy: true,
        in_place_restart: true,
        restart_job: true,
        elastic_job_set: true,
    };
}

impl Default for Gates {
    fn default() -> Self {
        Self::ALL
    }
}
