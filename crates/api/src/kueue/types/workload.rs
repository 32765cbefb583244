//! Workload: what a job asks for as a whole, and what it was given.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::PodTemplateSpec,
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{Condition, ObjectMeta, Time},
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Admission, AdmissionCheckState, NAME, POD_SET_NAME};
use crate::custom::published;

/// Workload is what a job asks for as a whole: admitted with all of it, or not at all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = super::expressions::add)]
pub struct Workload {
    /// Standard object's metadata.
    #[schemars(schema_with = "published::object_meta")]
    pub metadata: ObjectMeta,
    /// What is wanted.
    pub spec: WorkloadSpec,
    /// What has been seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<WorkloadStatus>,
}

/// WorkloadSpec is what a job asks for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.priorityClassRef) || has(self.priority)",
    "message": "priority should not be nil when priorityClassRef is set",
}]))]
pub struct WorkloadSpec {
    /// Groups of equal pods, all of which are admitted together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 18))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub pod_sets: Vec<PodSet>,
    /// The LocalQueue the workload waits in. It cannot change while quota is reserved.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253), regex(pattern = NAME))]
    pub queue_name: String,
    /// Where the priority comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority_class_ref: Option<PriorityClassRef>,
    /// Higher ones come first. Absent: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Whether the workload may be admitted. A running one that is made inactive is evicted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = true))]
    pub active: Option<bool>,
    /// For how many seconds in all the workload may be admitted; then it is deactivated.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub maximum_execution_time_seconds: Option<i32>,
    /// Gates that keep the workload from preempting others until they are open.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub preemption_gates: Vec<PreemptionGate>,
}

/// PreemptionGate keeps a workload from preempting others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["name"]))]
pub struct PreemptionGate {
    /// The name of the gate.
    #[schemars(length(max = 253))]
    pub name: String,
}

/// PriorityClassRef names the class a priority comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["group", "kind", "name"], "x-kubernetes-validations" = [
    {
        "rule": "(self.group == 'scheduling.k8s.io') ? self.kind == 'PriorityClass' : true",
        "message": "only the PriorityClass kind is allowed for the scheduling.k8s.io group",
    },
    {
        "rule": "(self.group == 'kueue.x-k8s.io') ? self.kind == 'WorkloadPriorityClass' : true",
        "message": "only the WorkloadPriorityClass kind is allowed for the kueue.x-k8s.io group",
    },
]))]
pub struct PriorityClassRef {
    /// kueue.x-k8s.io or scheduling.k8s.io.
    #[schemars(extend("enum" = ["kueue.x-k8s.io", "scheduling.k8s.io"]))]
    pub group: String,
    /// WorkloadPriorityClass or PriorityClass.
    #[schemars(extend("enum" = ["WorkloadPriorityClass", "PriorityClass"]))]
    pub kind: String,
    /// The name of the class.
    #[schemars(length(min = 1, max = 253), regex(pattern = NAME))]
    pub name: String,
}

/// PodSet is a group of equal pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["template"], "x-kubernetes-validations" = [{
    "rule": "has(self.minCount) ? self.minCount <= self.count : true",
    "message": "minCount should be positive and less or equal to count",
}]))]
pub struct PodSet {
    /// The name of the group.
    #[schemars(length(min = 1, max = 63), regex(pattern = POD_SET_NAME))]
    #[schemars(extend("default" = "main"))]
    pub name: String,
    /// What each pod looks like.
    #[schemars(schema_with = "published::pod_template")]
    pub template: PodTemplateSpec,
    /// How many pods there are.
    #[schemars(range(min = 0), extend("default" = 1))]
    pub count: i32,
    /// With how few pods the workload may be admitted, where that may be fewer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub min_count: Option<i32>,
    /// Where in the topology of the cluster the pods should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology_request: Option<PodSetTopologyRequest>,
}

/// PodSetTopologyRequest says where in the topology of the cluster pods should be.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSetTopologyRequest {
    /// All pods must be in one domain of this level.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub required: Option<String>,
    /// All pods should be in one domain of this level.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub preferred: Option<String>,
    /// Pods may be anywhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unconstrained: Option<bool>,
    /// The label with the index of a pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 317))]
    pub pod_index_label: Option<String>,
    /// The label with the index of the group of a pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 317))]
    pub sub_group_index_label: Option<String>,
    /// How many such groups there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sub_group_count: Option<i32>,
    /// Pod sets with one name here go together.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub pod_set_group_name: Option<String>,
    /// Slices of pods must each be in one domain of this level.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub pod_set_slice_required_topology: Option<String>,
    /// How many pods such a slice has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_set_slice_size: Option<i32>,
}

/// WorkloadStatus is what has been seen of a workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct WorkloadStatus {
    /// What is true of the workload.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "published::conditions", length(max = 16))]
    pub conditions: Vec<Condition>,
    /// What the workload was given. Absent unless quota is reserved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admission: Option<Admission>,
    /// How often the workload was put back into its queue, and when it may be tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requeue_state: Option<RequeueState>,
    /// Pods that are not needed any more, though the workload still runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub reclaimable_pods: Vec<ReclaimablePod>,
    /// What others say of the admission.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub admission_checks: Vec<AdmissionCheckState>,
    /// What a pending workload asked for when it was last tried.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub resource_requests: Vec<PodSetRequest>,
    /// For how many seconds the workload was admitted before it was evicted, all times together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accumulated_past_execution_time_seconds: Option<i32>,
    /// What has happened to the workload, counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduling_stats: Option<SchedulingStats>,
    /// Nodes the workload runs on that are not well.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub unhealthy_nodes: Vec<UnhealthyNode>,
    /// Clusters that may be given the workload.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), extend("x-kubernetes-list-type" = "set"))]
    pub nominated_cluster_names: Vec<String>,
    /// The cluster that was given the workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub cluster_name: Option<String>,
}

/// UnhealthyNode is a node that is not well.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["name"]))]
pub struct UnhealthyNode {
    /// The name of the node.
    pub name: String,
}

/// RequeueState says how often a workload was put back, and when it may be tried again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RequeueState {
    /// How often it was put back because its pods were not ready in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub count: Option<i32>,
    /// Before then it is not tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "published::time")]
    pub requeue_at: Option<Time>,
}

/// ReclaimablePod says how many pods of a group are not needed any more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["count", "name"]))]
pub struct ReclaimablePod {
    /// The pod set.
    #[schemars(length(max = 63))]
    pub name: String,
    /// How many.
    #[schemars(range(min = 0))]
    pub count: i32,
}

/// PodSetRequest is what a pod set asks for in all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["name"]))]
pub struct PodSetRequest {
    /// The pod set.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// How much of each resource all its pods ask for together.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "published::quantities")]
    pub resources: BTreeMap<String, Quantity>,
}

/// SchedulingStats is what has happened to a workload, counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct SchedulingStats {
    /// Evictions by reason and cause.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map",
                      "x-kubernetes-list-map-keys" = ["reason", "underlyingCause"]))]
    pub evictions: Vec<EvictionCount>,
}

/// EvictionCount says how often a workload was evicted for a reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["count", "reason", "underlyingCause"]))]
pub struct EvictionCount {
    /// The reason.
    #[schemars(length(max = 316))]
    pub reason: String,
    /// What was behind it.
    #[schemars(length(max = 316))]
    pub underlying_cause: String,
    /// How often.
    #[schemars(range(min = 1))]
    pub count: i32,
}
