//! The configuration file of `up` and `run`.

use std::fs;

use lockstep_local::Configuration;

/// Reads the configuration file `path`, for an option.
pub(crate) fn read(path: &str) -> Result<Configuration, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    Configuration::parse(&text).map_err(|error| error.to_string())
}
