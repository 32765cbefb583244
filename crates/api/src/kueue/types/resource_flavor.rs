//! ResourceFlavor: a kind of nodes.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Taint, Toleration},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::NAME;
use crate::custom::published;

/// ResourceFlavor is a kind of nodes, told by their labels and taints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ResourceFlavor {
    /// Standard object's metadata.
    #[schemars(schema_with = "published::object_meta")]
    pub metadata: ObjectMeta,
    /// Which nodes.
    pub spec: ResourceFlavorSpec,
}

/// ResourceFlavorSpec says which nodes a flavor is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "!has(self.topologyName) || self.nodeLabels.size() >= 1",
        "message": "at least one nodeLabel is required when topology is set",
    },
    {
        "rule": "!has(oldSelf.topologyName) || self == oldSelf",
        "message": "resourceFlavorSpec are immutable when topologyName is set",
    },
]))]
pub struct ResourceFlavorSpec {
    /// Labels of the nodes. Pods that are given the flavor ask for them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 8))]
    pub node_labels: BTreeMap<String, String>,
    /// Taints of the nodes. Only workloads that tolerate them are given the flavor.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "published::taints")]
    pub node_taints: Vec<Taint>,
    /// Tolerations that pods get which are given the flavor.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "published::tolerations")]
    pub tolerations: Vec<Toleration>,
    /// The topology of the nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253), regex(pattern = NAME))]
    pub topology_name: Option<String>,
}
