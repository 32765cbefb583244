//! Kueue's configuration as it is written. Everything upstream knows is known here, so that a typo
//! is told from a setting; what nobody heeds is only looked at for its form.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use lockstep_api::duration::parse_go;
use serde::{Deserialize, Deserializer, de, de::IgnoredAny};

use crate::config::process::{ClientConnection, Health, LeaderElection};

/// The file, of both versions.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct File {
    #[serde(rename = "apiVersion")]
    _api_version: IgnoredAny,
    pub(super) kind: Option<String>,
    pub(super) namespace: Option<String>,
    pub(super) manage_jobs_without_queue_name: bool,
    pub(super) managed_jobs_namespace_selector: Option<Selector>,
    pub(super) wait_for_pods_ready: Option<Wait>,
    pub(super) integrations: Option<Integrations>,
    pub(super) resources: Option<Resources>,
    pub(super) object_retention_policies: Option<Retention>,
    pub(super) feature_gates: Option<BTreeMap<String, bool>>,
    pub(super) client_connection: Option<ClientConnection>,
    pub(super) leader_election: Option<LeaderElection>,
    pub(super) health: Option<Health>,
    pub(super) metrics: Option<Metrics>,
    pub(super) fair_sharing: Option<FairSharing>,
    pub(super) admission_fair_sharing: Option<AdmissionFairSharing>,
    pub(super) internal_cert_management: Option<Certificates>,
    pub(super) webhook: Option<Webhook>,
    pub(super) pprof_bind_address: Option<IgnoredAny>,
    pub(super) controller: Option<Controller>,
    pub(super) tls: Option<Tls>,
    pub(super) visibility_server: Option<Visibility>,
    pub(super) multi_kueue: Option<MultiKueue>,
    /// Of v1beta1 only.
    pub(super) queue_visibility: Option<QueueVisibility>,
}

/// `waitForPodsReady`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct Wait {
    /// Of v1beta1 only.
    pub(super) enable: Option<bool>,
    pub(super) timeout: Option<Span>,
    pub(super) block_admission: Option<bool>,
    pub(super) recovery_timeout: Option<Span>,
    pub(super) requeuing_strategy: Option<Requeuing>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct Requeuing {
    pub(super) timestamp: Option<String>,
    pub(super) backoff_limit_count: Option<i32>,
    pub(super) backoff_base_seconds: Option<i32>,
    pub(super) backoff_max_seconds: Option<i32>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct Integrations {
    pub(super) frameworks: Option<Vec<String>>,
    pub(super) external_frameworks: Option<Vec<String>>,
    pub(super) label_keys_to_copy: Vec<String>,
    /// Of v1beta1 only.
    pub(super) pod_options: Option<PodOptions>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct PodOptions {
    #[serde(rename = "namespaceSelector")]
    _namespace_selector: IgnoredAny,
    #[serde(rename = "podSelector")]
    _pod_selector: IgnoredAny,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct Resources {
    pub(super) quota_check_strategy: Option<String>,
    pub(super) exclude_resource_prefixes: Vec<String>,
    pub(super) transformations: Vec<Transformation>,
    pub(super) device_class_mappings: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct Transformation {
    pub(super) input: String,
    pub(super) strategy: Option<String>,
    pub(super) multiply_by: Option<String>,
    #[serde(deserialize_with = "amounts")]
    pub(super) outputs: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct Retention {
    pub(super) workloads: Option<WorkloadRetention>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct WorkloadRetention {
    pub(super) after_finished: Option<Span>,
    pub(super) after_deactivated_by_kueue: Option<Span>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct Metrics {
    pub(super) bind_address: Option<String>,
    pub(super) enable_cluster_queue_resources: bool,
    pub(super) custom_labels: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct FairSharing {
    /// Of v1beta1 only.
    pub(super) enable: Option<bool>,
    pub(super) preemption_strategies: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct AdmissionFairSharing {
    pub(super) usage_half_life_time: Option<Span>,
    pub(super) usage_sampling_interval: Option<Span>,
    #[serde(rename = "resourceWeights")]
    _resource_weights: BTreeMap<String, f64>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct Certificates {
    #[serde(rename = "enable")]
    _enable: Option<bool>,
    #[serde(rename = "webhookServiceName")]
    _service: Option<String>,
    #[serde(rename = "webhookSecretName")]
    _secret: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct Webhook {
    #[serde(rename = "port")]
    _port: Option<u16>,
    #[serde(rename = "host")]
    _host: Option<String>,
    #[serde(rename = "certDir")]
    _cert_dir: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct Controller {
    #[serde(rename = "groupKindConcurrency")]
    _group_kind_concurrency: BTreeMap<String, u32>,
    #[serde(rename = "cacheSyncTimeout")]
    _cache_sync_timeout: IgnoredAny,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct Tls {
    #[serde(rename = "minVersion")]
    _min_version: Option<String>,
    #[serde(rename = "cipherSuites")]
    _cipher_suites: Vec<String>,
    #[serde(rename = "curvePreferences")]
    _curve_preferences: IgnoredAny,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct Visibility {
    #[serde(rename = "bindAddress")]
    _bind_address: Option<String>,
    #[serde(rename = "bindPort")]
    _bind_port: Option<u16>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct MultiKueue {
    pub(super) gc_interval: Option<Span>,
    pub(super) worker_lost_timeout: Option<Span>,
    #[serde(rename = "origin")]
    _origin: Option<String>,
    #[serde(rename = "dispatcherName")]
    _dispatcher_name: Option<String>,
    #[serde(rename = "externalFrameworks")]
    _external_frameworks: IgnoredAny,
    #[serde(rename = "clusterProfile")]
    _cluster_profile: IgnoredAny,
    #[serde(rename = "incrementalDispatcherConfig")]
    _incremental_dispatcher_config: IgnoredAny,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct QueueVisibility {
    #[serde(rename = "clusterQueues")]
    _cluster_queues: IgnoredAny,
    #[serde(rename = "updateIntervalSeconds")]
    _update_interval_seconds: Option<i32>,
}

/// A selector of labels.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct Selector {
    pub(super) match_labels: Option<BTreeMap<String, String>>,
    pub(super) match_expressions: Option<Vec<Requirement>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct Requirement {
    pub(super) key: String,
    pub(super) operator: String,
    pub(super) values: Option<Vec<String>>,
}

/// A duration as Go writes it, `1m30s`, which may be below zero.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) text: String,
    pub(super) value: SignedDuration,
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let value = parse_go(&text).ok_or_else(|| {
            let right = "one looks like 5m or 1h30m, with the units h, m, s, ms, us and ns";
            de::Error::custom(format!("{text:?} is no duration; {right}"))
        })?;
        Ok(Self { text, value })
    }
}

/// Quantities by name, with or without quotes.
fn amounts<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Amount {
        Whole(i64),
        Part(f64),
        Text(String),
    }
    let amounts = Option::<BTreeMap<String, Amount>>::deserialize(deserializer)?;
    let text = |amount| match amount {
        Amount::Whole(number) => number.to_string(),
        Amount::Part(number) => number.to_string(),
        Amount::Text(text) => text,
    };
    Ok(amounts.into_iter().flatten().map(|(name, amount)| (name, text(amount))).collect())
}
