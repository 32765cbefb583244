//! The shape of a JobSet. The OpenAPI schemas and the CustomResourceDefinition are made of these
//! types (see [`crate::custom`]), their comments included.
//!
//! Nothing here is refused for what it lacks: objects may reach a controller that no webhook has
//! filled in, and values of fields with a fixed set of values may be newer than this code.

mod policies;
mod status;

use k8s_openapi::{
    api::{batch::v1::JobTemplateSpec, core::v1::PersistentVolumeClaim},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::custom::published;

pub use policies::{
    Action, FailurePolicy, FailurePolicyRule, RestartStrategy, StartupOrder, StartupPolicy,
    SuccessOperator, SuccessPolicy,
};
pub use status::{
    EndedJobs, InPlaceRestart, InPlaceStatus, InPlaceWorkers, JobSetStatus, LockstepStatus,
    ReplicatedJobStatus, RestartRecord,
};

/// JobSet runs a group of Jobs as one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct JobSet {
    /// Standard object's metadata.
    #[schemars(schema_with = "published::object_meta")]
    pub metadata: ObjectMeta,
    /// What is wanted.
    pub spec: JobSetSpec,
    /// What has been seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<JobSetStatus>,
}

impl k8s_openapi::Resource for JobSet {
    const API_VERSION: &'static str = super::API_VERSION;
    const GROUP: &'static str = super::GROUP;
    const KIND: &'static str = super::KIND;
    const VERSION: &'static str = super::VERSION;
    const URL_PATH_SEGMENT: &'static str = super::PLURAL;
    type Scope = k8s_openapi::NamespaceResourceScope;
}

impl k8s_openapi::Metadata for JobSet {
    type Ty = ObjectMeta;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// JobSetSpec is what is wanted of a JobSet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!(has(self.startupPolicy) && self.startupPolicy.startupPolicyOrder == 'InOrder' && \
             self.replicatedJobs.exists(x, has(x.dependsOn)))",
    "message": "StartupPolicy and DependsOn APIs are mutually exclusive",
}]))]
pub struct JobSetSpec {
    /// The groups of equal Jobs that make up the set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub replicated_jobs: Vec<ReplicatedJob>,
    /// How the pods reach each other by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = immutable()))]
    pub network: Option<Network>,
    /// When the set is complete. By default when all Jobs are.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = immutable()))]
    pub success_policy: Option<SuccessPolicy>,
    /// What happens when a Job fails. Without it the set fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = immutable()))]
    pub failure_policy: Option<FailurePolicy>,
    /// In which order the replicated jobs start. Deprecated: use dependsOn of a replicated job.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = immutable()))]
    pub startup_policy: Option<StartupPolicy>,
    /// Whether everything is to stand still. Running Jobs are suspended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// The pod that coordinates the others. Its address is put on all Jobs and pods, as label and
    /// annotation jobset.sigs.k8s.io/coordinator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coordinator: Option<Coordinator>,
    /// The controller that manages the set, as a domain-prefixed path. Absent, or
    /// jobset.sigs.k8s.io/jobset-controller: the built-in one. It cannot change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_by: Option<String>,
    /// For how many seconds the set is kept after it has finished. Absent: for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub ttl_seconds_after_finished: Option<i32>,
    /// Volume claims that are made for the set and mounted where a container names them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic",
                      "x-kubernetes-validations" = immutable()))]
    pub volume_claim_policies: Vec<VolumeClaimPolicy>,
}

/// ReplicatedJob is a group of equal Jobs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["name", "template"]))]
pub struct ReplicatedJob {
    /// The name of the group, unique within the set and part of the names of its Jobs.
    pub name: String,
    /// The name of a larger group that this one belongs to.
    #[serde(default = "default_group", skip_serializing_if = "String::is_empty")]
    pub group_name: String,
    /// What each Job looks like.
    #[schemars(schema_with = "published::job_template")]
    pub template: JobTemplateSpec,
    /// How many Jobs there are.
    #[serde(default = "one")]
    #[schemars(range(min = 0))]
    pub replicas: i32,
    /// Groups that must have come far enough before this one starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 5))]
    #[schemars(extend("x-kubernetes-list-type" = "map",
                      "x-kubernetes-list-map-keys" = ["name"],
                      "x-kubernetes-validations" = immutable()))]
    pub depends_on: Option<Vec<DependsOn>>,
}

/// DependsOn names a group and how far it must have come.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["name", "status"]))]
pub struct DependsOn {
    /// The name of a replicated job that is listed before.
    pub name: String,
    /// How far it must have come.
    pub status: DependsOnStatus,
}

/// How far a group must have come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DependsOnStatus {
    /// All of its Jobs are ready, or have been.
    #[default]
    Ready,
    /// All of its Jobs are complete.
    Complete,
    /// A value this code does not know.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// Network says how pods reach each other by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Network {
    /// Whether pods have names of their own, through a headless Service. True by default.
    #[serde(rename = "enableDNSHostnames", skip_serializing_if = "Option::is_none")]
    pub enable_dns_hostnames: Option<bool>,
    /// The name of that Service, and the domain of the pods. By default the name of the JobSet.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subdomain: String,
    /// Whether pods have their names before they are ready. True by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publish_not_ready_addresses: Option<bool>,
}

/// Coordinator names one pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["replicatedJob"]))]
pub struct Coordinator {
    /// The name of its replicated job.
    pub replicated_job: String,
    /// The index of its Job.
    #[serde(skip_serializing_if = "is_zero")]
    pub job_index: i64,
    /// Its completion index.
    #[serde(skip_serializing_if = "is_zero")]
    pub pod_index: i64,
}

/// VolumeClaimPolicy is a list of volume claims that are treated alike.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!self.templates.exists(t, has(t.metadata.namespace) && t.metadata.namespace != '')",
    "message": "namespace cannot be set for VolumeClaimPolicies templates",
}]))]
pub struct VolumeClaimPolicy {
    /// The claims. Each is made once, under its own name followed by that of the JobSet, and
    /// mounted where a container mounts a volume of its name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "published::volume_claims")]
    pub templates: Vec<PersistentVolumeClaim>,
    /// What happens to the claims in the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention_policy: Option<RetentionPolicy>,
}

/// RetentionPolicy says what happens to claims in the end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RetentionPolicy {
    /// What happens to the claims when the JobSet is deleted.
    #[serde(default = "delete", skip_serializing_if = "Option::is_none")]
    pub when_deleted: Option<WhenDeleted>,
}

/// What happens to claims when the JobSet is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WhenDeleted {
    /// They are deleted too.
    Delete,
    /// They stay.
    Retain,
    /// A value this code does not know.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// The rule of a field that never changes, as the API server checks it.
pub(super) fn immutable() -> serde_json::Value {
    serde_json::json!([{"rule": "self == oldSelf", "message": "Value is immutable"}])
}

fn default_group() -> String {
    "default".to_owned()
}

const fn one() -> i32 {
    1
}

#[expect(clippy::unnecessary_wraps, reason = "the field is optional")]
const fn delete() -> Option<WhenDeleted> {
    Some(WhenDeleted::Delete)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_zero(number: &i64) -> bool {
    *number == 0
}
