//! LocalQueue: the door of a namespace to a ClusterQueue.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FairSharing, FairSharingStatus, FlavorUsage, NAME};
use crate::custom::published;

/// LocalQueue is where workloads of a namespace wait for a ClusterQueue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LocalQueue {
    /// Standard object's metadata.
    #[schemars(schema_with = "published::object_meta")]
    pub metadata: ObjectMeta,
    /// What is wanted.
    pub spec: LocalQueueSpec,
    /// What has been seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<LocalQueueStatus>,
}

/// LocalQueueSpec is what is wanted of a LocalQueue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct LocalQueueSpec {
    /// The ClusterQueue behind it. It cannot change.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253), regex(pattern = NAME))]
    #[schemars(extend("x-kubernetes-validations" = [
        {"rule": "self == oldSelf", "message": "field is immutable"},
    ]))]
    pub cluster_queue: String,
    /// None: the queue works. Hold: nobody new is admitted. HoldAndDrain: and those that run are
    /// evicted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["None", "Hold", "HoldAndDrain"], "default" = "None"))]
    pub stop_policy: Option<String>,
    /// The share of the queue among those of its ClusterQueue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fair_sharing: Option<FairSharing>,
}

/// LocalQueueStatus is what has been seen of a LocalQueue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct LocalQueueStatus {
    /// What is true of the queue.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "published::conditions", length(max = 16))]
    pub conditions: Vec<Condition>,
    /// How many workloads wait.
    pub pending_workloads: i32,
    /// How many workloads hold quota.
    pub reserving_workloads: i32,
    /// How many workloads are admitted and have not finished.
    pub admitted_workloads: i32,
    /// What is reserved, by flavor.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub flavors_reservation: Vec<FlavorUsage>,
    /// What is used by admitted workloads, by flavor.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub flavors_usage: Vec<FlavorUsage>,
    /// How much more than its share the queue uses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fair_sharing: Option<FairSharingStatus>,
}
