//! The configuration file of `up`, `run` and `operator`.

use std::fs;

use lockstep_local::Configuration;

use crate::output;

/// Reads the configuration file `path`, for an option.
pub(crate) fn read(path: &str) -> Result<Configuration, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    Configuration::parse(&text).map_err(|error| error.to_string())
}

/// Says on stderr, once, what of a file is known and has no effect yet. It is no line of the log:
/// that shows errors alone in a run.
pub(crate) fn warn(configuration: Option<&Configuration>) {
    for part in configuration.into_iter().flat_map(|said| &said.unheeded) {
        output::note(format!("warning: --config: {part} has no effect yet"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_read_or_understood_is_refused_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.yaml");
        let path = path.to_str().unwrap();
        assert!(read(path).unwrap_err().contains("No such file"));
        fs::write(path, "featureGates: {Unheard: true}\n").unwrap();
        assert!(read(path).unwrap_err().contains("the gates are "));
        fs::write(path, "featureGates: {JobSuccessPolicy: false}\n").unwrap();
        assert!(!read(path).unwrap().feature_gates.job_success_policy);
    }
}
