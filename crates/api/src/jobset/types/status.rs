//! What has been seen of a JobSet.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::custom::published;

/// JobSetStatus is what has been seen of a JobSet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct JobSetStatus {
    /// What is true of the set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "published::conditions")]
    pub conditions: Vec<Condition>,
    /// How often the set was restarted.
    pub restarts: i32,
    /// How often the set was restarted, of the restarts that count.
    #[serde(skip_serializing_if = "is_zero")]
    pub restarts_count_towards_max: i32,
    /// Completed or Failed, once the set is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub terminal_state: String,
    /// How far each replicated job is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub replicated_jobs_status: Vec<ReplicatedJobStatus>,
    /// Pods whose attempt is this one or a lower one must restart in place.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub previous_in_place_restart_attempt: Option<i32>,
    /// Pods whose attempt is this one may run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub current_in_place_restart_attempt: Option<i32>,
    /// What lockstep keeps beyond what JobSet has. Other controllers neither write nor read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lockstep: Option<LockstepStatus>,
}

/// LockstepStatus is what lockstep keeps beyond what JobSet has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct LockstepStatus {
    /// How often each rule of the failure policy has restarted something.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub rule_restarts: BTreeMap<String, i32>,
    /// Jobs that have ended in this attempt and that their own time to live takes away, or has
    /// taken away. They still count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub ended_jobs: Vec<EndedJobs>,
    /// The last restarts, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub last_restarts: Vec<RestartRecord>,
    /// How the workers of a set that restarts in place are doing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_place: Option<InPlaceStatus>,
}

/// InPlaceStatus says how the workers of a set that restarts in place are doing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct InPlaceStatus {
    /// How often the workers were started anew; 0 is their first start.
    pub epoch: i32,
    /// How often they were restarted, counted or not.
    pub restarts: i32,
    /// Where they are: Forming, Running, Stopping, Recreating, Suspended, Surrendered, Succeeding
    /// or Failed.
    pub phase: String,
    /// What they wait for, when they have been waiting for some time.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub waiting: String,
    /// What the workers do, those that do the same together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub workers: Vec<InPlaceWorkers>,
    /// The last restarts in place, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub last_restarts: Vec<InPlaceRestart>,
}

/// InPlaceWorkers are workers that do the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct InPlaceWorkers {
    /// What they do: Completed, Failed, Missing, Running, Starting, Stopping, Succeeded or Waiting.
    pub state: String,
    /// The epoch they were started for; absent for those that were not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<i32>,
    /// How many they are.
    pub count: i32,
    /// Which, by the numbers of their places in the set, such as 0,2-5.
    pub places: String,
}

/// InPlaceRestart is one restart in place, and how long each part of it took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct InPlaceRestart {
    /// The epoch it led to.
    pub epoch: i32,
    /// When all workers were running again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "published::time")]
    pub time: Option<Time>,
    /// The worker that failed first.
    pub worker: String,
    /// What had happened to it.
    pub cause: String,
    /// Microseconds from the failure until it was heard of.
    pub detected_micros: i64,
    /// From then until the restart was decided and written down.
    pub decided_micros: i64,
    /// From then until nothing was left to stop.
    pub stopped_micros: i64,
    /// From then until all workers waited at the barrier.
    pub gathered_micros: i64,
    /// From then until the release was written down.
    pub released_micros: i64,
    /// From then until all workers were running.
    pub running_micros: i64,
}

/// EndedJobs says which Jobs of one replicated job have ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["name"]))]
pub struct EndedJobs {
    /// The name of the replicated job.
    pub name: String,
    /// The indexes of Jobs that are complete, such as 0,2-5.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub succeeded: String,
    /// The indexes of Jobs that have failed and were left so.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub failed: String,
}

/// RestartRecord says what led to a restart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RestartRecord {
    /// The attempt of the whole set that was running, from 0.
    pub attempt: i32,
    /// When it was decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "published::time")]
    pub time: Option<Time>,
    /// The rule of the failure policy that matched; absent when none did.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rule: String,
    /// What was done.
    pub action: String,
    /// The Job that failed.
    pub job: String,
    /// Why it failed, as its condition says.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The message of that condition.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl InPlaceRestart {
    /// How long all of it took, in microseconds.
    pub fn total_micros(&self) -> i64 {
        self.parts().into_iter().map(|(_, micros)| micros).sum()
    }

    /// Its parts by name, each with how long it took in microseconds.
    pub const fn parts(&self) -> [(&'static str, i64); 6] {
        [
            ("detected", self.detected_micros),
            ("decided", self.decided_micros),
            ("stopped", self.stopped_micros),
            ("barrier", self.gathered_micros),
            ("released", self.released_micros),
            ("running", self.running_micros),
        ]
    }
}

/// ReplicatedJobStatus says how far one replicated job is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["active", "failed", "name", "ready", "succeeded", "suspended"]))]
pub struct ReplicatedJobStatus {
    /// The name of the replicated job.
    pub name: String,
    /// How many Jobs have all of their pods ready or succeeded.
    pub ready: i32,
    /// How many Jobs are complete.
    pub succeeded: i32,
    /// How many Jobs have failed.
    pub failed: i32,
    /// How many Jobs have pods that run.
    pub active: i32,
    /// How many Jobs are suspended.
    pub suspended: i32,
    /// How often each Job was restarted by itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), extend("x-kubernetes-list-type" = "atomic"))]
    pub job_restarts: Vec<i32>,
    /// How often each Job was restarted by itself, of the restarts that count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), extend("x-kubernetes-list-type" = "atomic"))]
    pub job_restarts_count_towards_max: Vec<i32>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_zero(number: &i32) -> bool {
    *number == 0
}
