//! What a workload was given.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::Toleration,
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::Time},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{NAME, POD_SET_NAME};
use crate::custom::published;

/// Admission is what a workload was given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["clusterQueue", "podSetAssignments"]))]
pub struct Admission {
    /// The ClusterQueue whose quota is used.
    #[schemars(length(max = 253), regex(pattern = NAME))]
    pub cluster_queue: String,
    /// What each pod set was given.
    #[schemars(length(max = 18))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub pod_set_assignments: Vec<PodSetAssignment>,
}

/// PodSetAssignment is what a pod set was given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSetAssignment {
    /// The pod set.
    #[schemars(length(max = 63), regex(pattern = POD_SET_NAME), extend("default" = "main"))]
    pub name: String,
    /// The flavor of each resource.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub flavors: BTreeMap<String, String>,
    /// How much of each resource all pods use together.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "published::quantities")]
    pub resource_usage: BTreeMap<String, Quantity>,
    /// How many pods were admitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub count: Option<i32>,
    /// Which domains of the topology the pods were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "published::anything")]
    pub topology_assignment: Option<Value>,
    /// Whether the domains are still to be chosen: Pending or Ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Pending", "Ready"]))]
    pub delayed_topology_request: Option<String>,
}

/// AdmissionCheckState is what one check says of an admission.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["lastTransitionTime", "message", "name", "state"]))]
pub struct AdmissionCheckState {
    /// The check.
    #[schemars(length(max = 316))]
    pub name: String,
    /// Pending, Ready, Retry or Rejected.
    #[schemars(extend("enum" = ["Pending", "Ready", "Retry", "Rejected"]))]
    pub state: String,
    /// When the state last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "published::time")]
    pub last_transition_time: Option<Time>,
    /// Why, in a sentence.
    #[schemars(length(max = 32768))]
    pub message: String,
    /// After how many seconds to try again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requeue_after_seconds: Option<i32>,
    /// How often it was tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub retry_count: Option<i32>,
    /// What the check wants of the pods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 18), extend("x-kubernetes-list-type" = "atomic"))]
    pub pod_set_updates: Vec<PodSetUpdate>,
}

/// PodSetUpdate is what a check wants of the pods of a set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["name"]))]
pub struct PodSetUpdate {
    /// The pod set.
    #[schemars(length(max = 63), regex(pattern = POD_SET_NAME))]
    pub name: String,
    /// Labels to add.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations to add.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Labels of nodes to ask for.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Tolerations to add.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "published::tolerations")]
    pub tolerations: Vec<Toleration>,
}
