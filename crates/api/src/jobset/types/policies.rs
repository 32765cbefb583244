//! When a JobSet is complete, what a failure leads to, and in which order it starts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// SuccessPolicy says when a JobSet is complete.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["operator"]))]
pub struct SuccessPolicy {
    /// How many of the Jobs must be complete.
    pub operator: SuccessOperator,
    /// The names of the replicated jobs whose Jobs count. Empty: all of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub target_replicated_jobs: Vec<String>,
}

/// How many Jobs must be complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SuccessOperator {
    /// All of them.
    #[default]
    All,
    /// One of them.
    Any,
    /// A value this code does not know.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// FailurePolicy says what happens when a Job fails.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct FailurePolicy {
    /// How many restarts there may be, of those that count.
    #[serde(skip_serializing_if = "is_zero")]
    pub max_restarts: i32,
    /// How Jobs are replaced when the set is restarted.
    #[serde(default = "recreate", skip_serializing_if = "Option::is_none")]
    pub restart_strategy: Option<RestartStrategy>,
    /// What to do about which failure: the first rule that matches decides. Without a match the set
    /// is restarted, as long as there are restarts left.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<FailurePolicyRule>,
}

/// How Jobs are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RestartStrategy {
    /// Each Job as soon as the one it replaces is gone.
    Recreate,
    /// None before all old ones are gone.
    BlockingRecreate,
    /// Containers are restarted, pods stay.
    InPlaceRestart,
    /// A value this code does not know.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// FailurePolicyRule says what one kind of failure leads to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["name", "action"]))]
pub struct FailurePolicyRule {
    /// The name of the rule, unique within the policy.
    pub name: String,
    /// What is done. RestartReplicatedJob and FailJob are extensions: manifests that use them work
    /// nowhere else.
    pub action: Action,
    /// The reasons of failed Jobs that match. Empty: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub on_job_failure_reasons: Vec<String>,
    /// Regular expressions as Go reads them (RE2), one of which must be found in the message of
    /// the failed Job; those that do not compile are skipped. Empty: all messages match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub on_job_failure_message_patterns: Vec<String>,
    /// The names of the replicated jobs whose Jobs match. Empty: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub target_replicated_jobs: Vec<String>,
}

/// What a failure leads to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Action {
    /// The set fails at once.
    FailJobSet,
    /// The set is restarted, if there are restarts left.
    #[default]
    RestartJobSet,
    /// The set is restarted, and it does not count.
    RestartJobSetAndIgnoreMaxRestarts,
    /// The Job is restarted, if there are restarts left.
    RestartJob,
    /// The Job is restarted, and it does not count.
    RestartJobAndIgnoreMaxRestarts,
    /// All Jobs of the replicated job are restarted, if there are restarts left.
    RestartReplicatedJob,
    /// The Job stays failed and the others go on.
    FailJob,
    /// A value this code does not know.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

impl Action {
    /// The value in manifests.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FailJobSet => "FailJobSet",
            Self::RestartJobSet => "RestartJobSet",
            Self::RestartJobSetAndIgnoreMaxRestarts => "RestartJobSetAndIgnoreMaxRestarts",
            Self::RestartJob => "RestartJob",
            Self::RestartJobAndIgnoreMaxRestarts => "RestartJobAndIgnoreMaxRestarts",
            Self::RestartReplicatedJob => "RestartReplicatedJob",
            Self::FailJob => "FailJob",
            Self::Unknown => "Unknown",
        }
    }
}

/// StartupPolicy says in which order replicated jobs start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["startupPolicyOrder"]))]
pub struct StartupPolicy {
    /// The order.
    pub startup_policy_order: StartupOrder,
}

/// An order of starting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum StartupOrder {
    /// All at once.
    #[default]
    AnyOrder,
    /// As listed, each when the one before is ready.
    InOrder,
    /// A value this code does not know.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

#[expect(clippy::unnecessary_wraps, reason = "the field is optional")]
const fn recreate() -> Option<RestartStrategy> {
    Some(RestartStrategy::Recreate)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_zero(number: &i32) -> bool {
    *number == 0
}
