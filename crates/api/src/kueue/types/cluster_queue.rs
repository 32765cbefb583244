//! ClusterQueue: a pool of quota, and who may use it how.

use k8s_openapi::apimachinery::pkg::{
    api::resource::Quantity,
    apis::meta::v1::{Condition, LabelSelector, ObjectMeta},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::NAME;
use crate::custom::published;

/// ClusterQueue is a pool of quota that workloads of many namespaces share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ClusterQueue {
    /// Standard object's metadata.
    #[schemars(schema_with = "published::object_meta")]
    pub metadata: ObjectMeta,
    /// What is wanted.
    pub spec: ClusterQueueSpec,
    /// What has been seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ClusterQueueStatus>,
}

/// ClusterQueueSpec is what is wanted of a ClusterQueue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.cohortName) && has(self.resourceGroups) ? \
             self.resourceGroups.all(rg, rg.flavors.all(f, f.resources.all(r, \
             !has(r.borrowingLimit)))) : true",
    "message": "borrowingLimit must be nil when cohort is empty",
}]))]
pub struct ClusterQueueSpec {
    /// Quota, by groups of resources that come in the same flavors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
    pub resource_groups: Vec<ResourceGroup>,
    /// Queues with one name here share what they do not use.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253), regex(pattern = NAME))]
    pub cohort_name: String,
    /// Whether one that does not fit holds up those behind it: StrictFIFO, or BestEffortFIFO.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["StrictFIFO", "BestEffortFIFO"], "default" = "BestEffortFIFO"))]
    pub queueing_strategy: String,
    /// Workloads of which namespaces are taken. Absent: of none. Empty: of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "published::label_selector")]
    pub namespace_selector: Option<LabelSelector>,
    /// Whether a later flavor is tried before borrowing or preempting in an earlier one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = {"whenCanBorrow": "MayStopSearch",
                                   "whenCanPreempt": "TryNextFlavor"}))]
    pub flavor_fungibility: Option<FlavorFungibility>,
    /// Who may be preempted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = {"reclaimWithinCohort": "Never", "withinClusterQueue": "Never",
                                   "borrowWithinCohort": {"policy": "Never"}}))]
    pub preemption: Option<ClusterQueuePreemption>,
    /// Checks that admissions must pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admission_checks_strategy: Option<AdmissionChecksStrategy>,
    /// None: the queue works. Hold: nobody new is admitted. HoldAndDrain: and those that run are
    /// evicted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["None", "Hold", "HoldAndDrain"], "default" = "None"))]
    pub stop_policy: Option<String>,
    /// The share of the queue among those of its cohort.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fair_sharing: Option<FairSharing>,
    /// How admissions are ordered by what LocalQueues have used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admission_scope: Option<AdmissionScope>,
    /// Whether workloads try several flavors at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "published::anything")]
    pub concurrent_admission_policy: Option<Value>,
}

/// ResourceGroup is quota of resources that come in the same flavors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["coveredResources", "flavors"], "x-kubernetes-validations" = [{
    "rule": "self.flavors.all(x, size(x.resources) == size(self.coveredResources))",
    "message": "flavors must have the same number of resources as the coveredResources",
}]))]
pub struct ResourceGroup {
    /// The resources.
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub covered_resources: Vec<String>,
    /// Quota by flavor, in the order in which flavors are tried.
    #[schemars(length(min = 1, max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub flavors: Vec<FlavorQuotas>,
}

/// FlavorQuotas is quota of one flavor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["name", "resources"]))]
pub struct FlavorQuotas {
    /// The ResourceFlavor.
    #[schemars(length(max = 253), regex(pattern = NAME))]
    pub name: String,
    /// Quota by resource, in the order of coveredResources.
    #[schemars(length(min = 1, max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub resources: Vec<ResourceQuota>,
}

/// ResourceQuota is quota of one resource in one flavor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["name", "nominalQuota"]))]
pub struct ResourceQuota {
    /// The resource.
    #[schemars(length(max = 317))]
    pub name: String,
    /// How much of it the queue has.
    #[schemars(schema_with = "published::quantity")]
    pub nominal_quota: Quantity,
    /// How much of it may be borrowed from others of the cohort. Absent: what there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "published::quantity")]
    pub borrowing_limit: Option<Quantity>,
    /// How much of it others of the cohort may borrow. Absent: what is not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "published::quantity")]
    pub lending_limit: Option<Quantity>,
}

/// FlavorFungibility says whether a later flavor is tried before borrowing or preempting.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.preference) || (self.whenCanBorrow == 'TryNextFlavor' && \
             self.whenCanPreempt == 'TryNextFlavor')",
    "message": "preference can only be set when both whenCanBorrow and whenCanPreempt are \
                TryNextFlavor",
}]))]
pub struct FlavorFungibility {
    /// What to do when a flavor would have to be borrowed.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["MayStopSearch", "TryNextFlavor"], "default" = "MayStopSearch"))]
    pub when_can_borrow: String,
    /// What to do when others would have to be preempted.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["MayStopSearch", "TryNextFlavor"], "default" = "TryNextFlavor"))]
    pub when_can_preempt: String,
    /// What is preferred when both are possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["BorrowingOverPreemption", "PreemptionOverBorrowing"]))]
    pub preference: Option<String>,
}

/// ClusterQueuePreemption says who may be preempted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!(self.reclaimWithinCohort == 'Never' && has(self.borrowWithinCohort) && \
             self.borrowWithinCohort.policy != 'Never')",
    "message": "reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never",
}]))]
pub struct ClusterQueuePreemption {
    /// Whose quota others of the cohort have borrowed may take it back from: Never, LowerPriority
    /// or Any.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["Never", "LowerPriority", "Any"], "default" = "Never"))]
    pub reclaim_within_cohort: String,
    /// Whether one that would have to borrow may preempt others of the cohort.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = {"policy": "Never"}))]
    pub borrow_within_cohort: Option<BorrowWithinCohort>,
    /// Who may be preempted in the queue itself: Never, LowerPriority or
    /// LowerOrNewerEqualPriority.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["Never", "LowerPriority", "LowerOrNewerEqualPriority"],
                      "default" = "Never"))]
    pub within_cluster_queue: String,
}

/// BorrowWithinCohort says whether one that would have to borrow may preempt others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct BorrowWithinCohort {
    /// Never or LowerPriority.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["Never", "LowerPriority"], "default" = "Never"))]
    pub policy: String,
    /// Only those of this priority or a lower one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_priority_threshold: Option<i32>,
}

/// AdmissionChecksStrategy lists checks that admissions must pass.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AdmissionChecksStrategy {
    /// The checks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub admission_checks: Vec<AdmissionCheckStrategyRule>,
}

/// AdmissionCheckStrategyRule is one check that admissions must pass.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["name"]))]
pub struct AdmissionCheckStrategyRule {
    /// The check.
    #[schemars(length(max = 316))]
    pub name: String,
    /// For which flavors. Empty: for all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "set"))]
    pub on_flavors: Vec<String>,
}

/// FairSharing is the share of a queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct FairSharing {
    /// How much of what is shared, compared with others.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "published::quantity")]
    pub weight: Option<Quantity>,
}

/// AdmissionScope says how admissions are ordered by what LocalQueues have used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["admissionMode"]))]
pub struct AdmissionScope {
    /// UsageBasedAdmissionFairSharing or NoAdmissionFairSharing.
    #[schemars(extend("enum" = ["UsageBasedAdmissionFairSharing", "NoAdmissionFairSharing"]))]
    pub admission_mode: String,
}

/// ClusterQueueStatus is what has been seen of a ClusterQueue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterQueueStatus {
    /// What is true of the queue.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "published::conditions", length(max = 16))]
    pub conditions: Vec<Condition>,
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
    /// How many workloads wait.
    pub pending_workloads: i32,
    /// How many workloads hold quota.
    pub reserving_workloads: i32,
    /// How many workloads are admitted and have not finished.
    pub admitted_workloads: i32,
    /// How much more than its share the queue uses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fair_sharing: Option<FairSharingStatus>,
}

/// FairSharingStatus says how much more than its share a queue uses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["weightedShare"]))]
pub struct FairSharingStatus {
    /// In thousandths of what could be shared.
    pub weighted_share: i64,
}

/// FlavorUsage is what is used of a flavor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["name", "resources"]))]
pub struct FlavorUsage {
    /// The flavor.
    #[schemars(length(max = 253))]
    pub name: String,
    /// What is used of each resource.
    #[schemars(length(max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub resources: Vec<ResourceUsage>,
}

/// ResourceUsage is what is used of a resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["name"]))]
pub struct ResourceUsage {
    /// The resource.
    #[schemars(length(max = 317))]
    pub name: String,
    /// How much is used.
    #[schemars(schema_with = "published::quantity")]
    pub total: Quantity,
    /// How much of that is borrowed from others of the cohort.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "published::quantity")]
    pub borrowed: Option<Quantity>,
}
