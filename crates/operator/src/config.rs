//! The configuration file: what an administrator may decide about the controllers.

use std::collections::BTreeMap;

use lockstep_api::Gates;
use serde::Deserialize;

/// What the configuration file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// Which features are on.
    pub feature_gates: FeatureGates,
}

/// Features that can be switched on and off.
pub type FeatureGates = Gates;

/// The gates by the names they have in files.
const GATES: [&str; 4] = ["ElasticJobSet", "InPlaceRestart", "JobSuccessPolicy", "RestartJob"];

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
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    #[serde(default)]
    feature_gates: Option<BTreeMap<String, bool>>,
}

impl Configuration {
    /// Reads the text of a configuration file; an empty one changes nothing.
    ///
    /// # Errors
    /// When the text is no YAML, or says something that nobody here understands.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let file: Option<File> = serde_saphyr::from_str(text)
            .map_err(|error| ConfigError::Invalid(error.to_string()))?;
        let mut configuration = Self::default();
        for (name, is_on) in file.and_then(|file| file.feature_gates).into_iter().flatten() {
            let gates = &mut configuration.feature_gates;
            match name.as_str() {
                "ElasticJobSet" => gates.elastic_job_set = is_on,
                "InPlaceRestart" => gates.in_place_restart = is_on,
                "JobSuccessPolicy" => gates.job_success_policy = is_on,
                "RestartJob" => gates.restart_job = is_on,
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

    #[test]
    fn what_nobody_understands_is_refused_by_name() {
        let cases = [
            ("featureGate: {}", "featureGate"),
            ("featureGates: {JobSuccesPolicy: true}", "JobSuccesPolicy"),
            ("featureGates: {JobSuccessPolicy: perhaps}", "featureGates"),
            ("featureGates: [JobSuccessPolicy]", "featureGates"),
            ("featureGates: {a: true", ""),
            ("- 1", ""),
        ];
        for (text, named) in cases {
            let error = Configuration::parse(text).unwrap_err().to_string();
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}
