//! What pods take from elsewhere: objects of the API and facts about their node.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, PodSpec, Secret, Service};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// What is known when a container is started. What is not in a map does not exist.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Config maps of the pod's namespace, by name.
    pub config_maps: BTreeMap<String, ConfigMap>,
    /// Secrets of the pod's namespace, by name.
    pub secrets: BTreeMap<String, Secret>,
    /// Volume claims of the pod's namespace, by name.
    pub claims: BTreeMap<String, PersistentVolumeClaim>,
    /// Services, of any namespace.
    pub services: Vec<Service>,
    /// Service account tokens by audience and requested seconds; the empty audience is the API
    /// server's.
    pub tokens: BTreeMap<(String, i64), String>,
    /// Facts about the node.
    pub node: NodeFacts,
    /// The address of the pod.
    pub pod_ip: String,
}

/// What pods can learn about their node.
#[derive(Clone, Debug, Default)]
pub struct NodeFacts {
    /// Its address.
    pub host_ip: String,
    /// What it can give to pods: limits that are not set default to this.
    pub allocatable: BTreeMap<String, Quantity>,
}

/// Names of objects a pod needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// Config maps.
    pub config_maps: BTreeSet<String>,
    /// Secrets.
    pub secrets: BTreeSet<String>,
    /// Volume claims.
    pub claims: BTreeSet<String>,
    /// Service account tokens by audience and requested seconds.
    pub tokens: BTreeSet<(String, i64)>,
}

/// The lifetime of a token whose volume asks for none.
pub const TOKEN_SECONDS_DEFAULT: i64 = 3600;

impl References {
    /// Whether nothing that may change is needed.
    pub fn is_empty(&self) -> bool {
        self.config_maps.is_empty() && self.secrets.is_empty() && self.tokens.is_empty()
    }
}

/// What has to be in [`Sources`] for the environment of `pod`'s containers.
pub fn references_of_containers(pod: &Pod) -> References {
    let mut found = References::default();
    if let Some(spec) = &pod.spec {
        of_containers(spec, &mut found);
    }
    found
}

/// What has to be in [`Sources`] for the volumes of `pod`.
pub fn references_of_volumes(pod: &Pod) -> References {
    let mut found = References::default();
    if let Some(spec) = &pod.spec {
        of_volumes(spec, &mut found);
    }
    found
}

fn of_containers(spec: &PodSpec, found: &mut References) {
    for container in spec.init_containers.iter().flatten().chain(&spec.containers) {
        for from in container.env_from.iter().flatten() {
            found.config_maps.extend(from.config_map_ref.as_ref().map(|found| found.name.clone()));
            found.secrets.extend(from.secret_ref.as_ref().map(|found| found.name.clone()));
        }
        let sources = container.env.iter().flatten().filter_map(|var| var.value_from.as_ref());
        for from in sources {
            let config_map = from.config_map_key_ref.as_ref().map(|found| found.name.clone());
            found.config_maps.extend(config_map);
            found.secrets.extend(from.secret_key_ref.as_ref().map(|found| found.name.clone()));
        }
    }
}

fn of_volumes(spec: &PodSpec, found: &mut References) {
    for volume in spec.volumes.iter().flatten() {
        found.config_maps.extend(volume.config_map.as_ref().map(|source| source.name.clone()));
        found.secrets.extend(volume.secret.as_ref().and_then(|source| source.secret_name.clone()));
        let claim = volume.persistent_volume_claim.as_ref();
        found.claims.extend(claim.map(|source| source.claim_name.clone()));
        let projected = volume.projected.iter().flat_map(|projected| &projected.sources);
        for source in projected.flatten() {
            found.config_maps.extend(source.config_map.as_ref().map(|found| found.name.clone()));
            found.secrets.extend(source.secret.as_ref().map(|found| found.name.clone()));
            found.tokens.extend(source.service_account_token.as_ref().map(|token| {
                let seconds = token.expiration_seconds.unwrap_or(TOKEN_SECONDS_DEFAULT);
                (token.audience.clone().unwrap_or_default(), seconds)
            }));
        }
    }
}
