//! The configuration file: what an administrator may decide about the controllers.

mod documents;
pub mod kueue;
mod process;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use lockstep_api::Gates;
use serde::Deserialize;
use serde::de::IgnoredAny;

pub use kueue::Queueing;
pub use process::{ClientConnection, Health, LeaderElection, MetricsAddress, Process};

/// What the configuration file says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Configuration {
    /// Which features are on.
    pub feature_gates: FeatureGates,
    /// How the process of an operator works; others do not ask.
    pub process: Process,
    /// What is decided about queueing. It is large, and configurations are handed through futures.
    pub queueing: Box<Queueing>,
    /// Parts of the file that are known and have no effect yet.
    pub unheeded: Vec<String>,
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
    /// It names a gate of Kueue there is none of.
    #[error("featureGates: Kueue has no gate {name:?}")]
    UnknownQueueingGate {
        /// The name in the file.
        name: String,
    },
    /// Two documents say the same.
    #[error("the configuration says {part} in two documents: say it in one")]
    SaidTwice {
        /// What they say.
        part: String,
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
    #[serde(rename = "apiVersion")]
    _api_version: IgnoredAny,
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
        if let Some(said) = self.kind.as_deref().filter(|said| *said != KIND) {
            return Some(format!("kind: {said:?} must be {KIND:?}"));
        }
        self.leader_election.as_ref().and_then(LeaderElection::fault)
    }

    /// What is known and has no effect yet.
    fn unheeded(&self) -> Vec<String> {
        let cert_dir = self.metrics.as_ref().is_some_and(|metrics| metrics.cert_dir.is_some());
        let parts = [
            ("internalCertManagement", self.internal_cert_management.is_some()),
            ("metrics.certDir", cert_dir),
            ("tls", self.tls.is_some()),
            ("webhook", self.webhook.is_some()),
        ];
        let there = parts.into_iter().filter(|(_, is_there)| *is_there);
        there.map(|(name, _)| name.to_owned()).collect()
    }
}

impl Configuration {
    /// Reads the text of a configuration file; an empty one changes nothing. It may have a document
    /// for JobSets and one for queues.
    ///
    /// # Errors
    /// When the text is no YAML, or says something that nobody here understands.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let mut configuration = Self::default();
        let mut seen: Vec<&str> = Vec::new();
        let documents = documents::of(text)?;
        for document in &documents {
            let said = document.api_version.as_deref().unwrap_or(API_VERSION);
            let group = said.split('/').next().unwrap_or_default();
            if seen.contains(&group) {
                return Err(ConfigError::SaidTwice { part: group.to_owned() });
            }
            seen.push(group);
            match said {
                API_VERSION => configuration.add_job_sets(documents::parse(&document.text)?)?,
                kueue::V1BETA1 => {
                    configuration.add_queueing(&document.text, kueue::Version::V1Beta1)?;
                }
                kueue::V1BETA2 => {
                    configuration.add_queueing(&document.text, kueue::Version::V1Beta2)?;
                }
                other => {
                    return Err(ConfigError::Invalid(format!(
                        "apiVersion: {other:?} must be {API_VERSION:?}, {:?} or {:?}",
                        kueue::V1BETA1,
                        kueue::V1BETA2
                    )));
                }
            }
        }
        Ok(configuration)
    }

    /// Takes in a document of the JobSet controller.
    fn add_job_sets(&mut self, file: File) -> Result<(), ConfigError> {
        if let Some(fault) = file.fault() {
            return Err(ConfigError::Invalid(fault));
        }
        self.unheeded.extend(file.unheeded());
        let process = Process {
            leader_election: file.leader_election.unwrap_or_default(),
            metrics: file.metrics.unwrap_or_default(),
            health: file.health.unwrap_or_default(),
            client_connection: file.client_connection.unwrap_or_default(),
        };
        self.process.add(process)?;
        let gates = &mut self.feature_gates;
        for (name, is_on) in file.feature_gates.into_iter().flatten() {
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
        Ok(())
    }

    /// Takes in a document of Kueue.
    fn add_queueing(&mut self, text: &str, version: kueue::Version) -> Result<(), ConfigError> {
        let said = kueue::parse(text, version)?;
        *self.queueing = said.queueing;
        self.unheeded.extend(said.unheeded);
        self.process.add(said.process)
    }
}
