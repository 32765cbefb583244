//! The configuration file: what an administrator may decide about the controllers.

mod process;

use std::collections::BTreeMap;

use lockstep_api::Gates;
use serde::Deserialize;
use serde::de::IgnoredAny;

pub use process::{ClientConnection, Health, LeaderElection, MetricsAddress, Process};

/// What the configuration file says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Configuration {
    /// Which features are on.
    pub feature_gates: FeatureGates,
    /// How the process of an operator works; others do not ask.
    pub process: Process,
    /// Parts of the file that are known and have no effect yet.
    pub unheeded: Vec<&'static str>,
}

/// Features that can be switched on and off.
pub type FeatureGates = Gates;

/// The gates by the names they have in files.
const GATES: [&str; 5] =
    ["ElasticJobSet", "InPlaceRestart", "JobSuccessPolicy", "RestartJob", "TLSOptions"];

/// Why a configuration file is refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It is no YAML, or has a field nobody knows, or a value of the wrong type.
    #[error("the configuration is not valid: {0}")]
    Invalid(String),
    /// It names a gate there is none of.
    #[error("featureGates: there is no gate {name:?}; the gates are {}", GATES.join(", "))]
    UnknownGate {
        /// The name in the file.
        name: String,
    },
    /// It turns off what is always on.
    #[error("featureGates: {name} is always on and cannot be turned off")]
    LockedGate {
        /// The name in the file.
        name: String,
    },
}

const API_VERSION: &str = "config.jobset.x-k8s.io/v1alpha1";
const KIND: &str = "Configuration";

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct File {
    api_version: Option<String>,
    kind: Option<String>,
    feature_gates: Option<BTreeMap<String, bool>>,
    leader_election: Option<LeaderElection>,
    metrics: Option<MetricsAddress>,
    health: Option<Health>,
    client_connection: Option<ClientConnection>,
    webhook: Option<IgnoredAny>,
    tls: Option<IgnoredAny>,
    internal_cert_management: Option<IgnoredAny>,
}

impl File {
    /// What is wrong with it beyond its form, if anything is.
    fn fault(&self) -> Option<String> {
        for (field, said, want) in
            [("apiVersion", &self.api_version, API_VERSION), ("kind", &self.kind, KIND)]
        {
            if let Some(said) = said.as_deref().filter(|said| *said != want) {
                return Some(format!("{field}: {said:?} must be {want:?}"));
            }
        }
        self.leader_election.as_ref().and_then(LeaderElection::fault)
    }

    /// What is known and has no effect yet.
    fn unheeded(&self) -> Vec<&'static str> {
        let cert_dir = self.metrics.as_ref().is_some_and(|metrics| metrics.cert_dir.is_some());
        let parts = [
            ("internalCertManagement", self.internal_cert_management.is_some()),
            ("metrics.certDir", cert_dir),
            ("tls", self.tls.is_some()),
            ("webhook", self.webhook.is_some()),
        ];
        parts.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| name).collect()
    }
}

impl Configuration {
    /// Reads the text of a configuration file; an empty one changes nothing.
    ///
    /// # Errors
    /// When the text is no YAML, or says something that nobody here understands.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let file: Option<File> = serde_saphyr::from_str(text)
            .map_err(|error| ConfigError::Invalid(error.to_string()))?;
        let file = file.unwrap_or_default();
        if let Some(fault) = file.fault() {
            return Err(ConfigError::Invalid(fault));
        }
        let mut configuration = Self { unheeded: file.unheeded(), ..Self::default() };
        configuration.process = Process {
            leader_election: file.leader_election.unwrap_or_default(),
            metrics: file.metrics.unwrap_or_default(),
            health: file.health.unwrap_or_default(),
            client_connection: file.client_connection.unwrap_or_default(),
        };
        for (name, is_on) in file.feature_gates.into_iter().flatten() {
            let gates = &mut configuration.feature_gates;
            match name.as_str() {
                "ElasticJobSet" => gates.elastic_job_set = is_on,
                "InPlaceRestart" => gates.in_place_restart = is_on,
                "JobSuccessPolicy" => gates.job_success_policy = is_on,
                "RestartJob" => gates.restart_job = is_on,
                "TLSOptions" if is_on => {}
                "TLSOptions" => return Err(ConfigError::LockedGate { name }),
                _ => return Err(ConfigError::UnknownGate { name }),
            }
        }
        Ok(configuration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_does_not_say_stays_as_it_is() {
        for text in ["", "# nothing\n", "featureGates:\n", "featureGates: {}\n", "{}"] {
            assert_eq!(Configuration::parse(text).unwrap(), Configuration::default(), "{text:?}");
        }
        let off = Configuration::parse("featureGates: {JobSuccessPolicy: false}").unwrap();
        assert!(!off.feature_gates.job_success_policy);
        let on = Configuration::parse("featureGates:\n  JobSuccessPolicy: true\n").unwrap();
        assert_eq!(on, Configuration::default());
    }

    // rule: jobset 8.1
    #[test]
    fn a_file_of_the_jobset_controller_is_understood() {
        let text = "
apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
leaderElection: {leaderElect: true, leaseDuration: 1m0s, resourceNamespace: here}
metrics: {bindAddress: ':9090'}
health: {healthProbeBindAddress: ':9091', readinessEndpointName: ready}
clientConnection: {qps: 20.5, burst: 30}
webhook: {port: 9443}
internalCertManagement: {enable: true}
featureGates: {RestartJob: false}
";
        let read = Configuration::parse(text).unwrap();
        assert!(!read.feature_gates.restart_job);
        let Process { leader_election, metrics, health, client_connection } = read.process;
        assert_eq!(leader_election.leader_elect, Some(true));
        assert_eq!(leader_election.lease_duration, Some(std::time::Duration::from_secs(60)));
        assert_eq!(leader_election.resource_namespace.as_deref(), Some("here"));
        assert_eq!(metrics.bind_address.as_deref(), Some(":9090"));
        assert_eq!(health.health_probe_bind_address.as_deref(), Some(":9091"));
        assert_eq!(health.readiness_endpoint_name.as_deref(), Some("ready"));
        assert_eq!(client_connection, ClientConnection { qps: Some(20.5), burst: Some(30) });
        assert_eq!(read.unheeded, ["internalCertManagement", "webhook"]);
    }

    // rule: jobset 8.1
    #[test]
    fn what_nobody_understands_is_refused_by_name() {
        let cases = [
            ("featureGate: {}", "featureGate"),
            ("featureGates: {JobSuccesPolicy: true}", "JobSuccesPolicy"),
            ("featureGates: {JobSuccessPolicy: perhaps}", "featureGates"),
            ("featureGates: {TLSOptions: false}", "always on"),
            ("featureGates: [JobSuccessPolicy]", "featureGates"),
            ("featureGates: {a: true", ""),
            ("- 1", ""),
            ("kind: Deployment", "kind"),
            ("apiVersion: v1", "config.jobset.x-k8s.io/v1alpha1"),
            ("leaderElection: {leaseDuration: 5s}", "renewDeadline"),
            ("leaderElection: {leaseDuration: soon}", "one looks like 15s"),
            ("leaderElection: {renewDeadline: 3s}", "retryPeriod"),
            ("leaderElection: {leaseDuration: 15500ms}", "whole seconds"),
            ("leaderElection: {resourceLock: endpoints}", "resourceLock"),
            ("leaderElection: {resourceNames: a}", "resourceNames"),
            ("clientConnection: {qps: many}", "clientConnection"),
        ];
        for (text, named) in cases {
            let error = Configuration::parse(text).unwrap_err().to_string();
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}
