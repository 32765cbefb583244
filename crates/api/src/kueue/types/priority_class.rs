//! WorkloadPriorityClass: a priority by name.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::custom::published;

/// WorkloadPriorityClass is a priority of workloads, which is not that of their pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["value"]))]
pub struct WorkloadPriorityClass {
    /// Standard object's metadata.
    #[schemars(schema_with = "published::object_meta")]
    pub metadata: ObjectMeta,
    /// The priority. Higher ones come first. When it changes, workloads of the class follow.
    pub value: i32,
    /// For whom the class is.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 2048))]
    pub description: String,
}
