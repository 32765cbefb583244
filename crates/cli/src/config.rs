//! The configuration file of `up` and `run`.

use std::fs;

use lockstep_local::Configuration;

/// Reads the configuration file `path`, for an option.
pub(crate) fn read(path: &str) -> Result<Configuration, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    Configuration::parse(&text).map_err(|error| error.to_string())
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
