//! What the body of a request says, whatever it is written in.

use bytes::Bytes;
use lockstep_api::{Status, decode, strategy::Json};
use lockstep_store::rest::Configuration;
use serde_json::Value;
use serde_saphyr::DuplicateKeyPolicy;

/// Turns YAML into JSON.
///
/// # Errors
/// 400 when it is no YAML.
pub fn yaml_to_json(bytes: &[u8]) -> Result<Bytes, Status> {
    let value: Value = serde_saphyr::from_slice(bytes)
        .map_err(|error| Status::bad_request(format!("error converting YAML to JSON: {error}")))?;
    Ok(Bytes::from(value.to_string()))
}

/// Reads a configuration to apply, in YAML or JSON. Members that are there twice are a fault to the
/// strict only.
///
/// # Errors
/// 400 when it is neither.
pub fn configuration(body: &[u8], is_forced: bool) -> Result<Configuration, Status> {
    if let Ok((Value::Object(object), faults)) = decode::patch_body(body) {
        let fault = (!faults.is_empty()).then(|| faults.join(", "));
        return Ok(Configuration { object, is_forced, fault });
    }
    let refused = |error: &dyn std::fmt::Display| {
        Status::bad_request(format!("error decoding YAML: {error}"))
    };
    let text = std::str::from_utf8(body).map_err(|error| refused(&error))?;
    let fault = match serde_saphyr::from_str::<Json>(text) {
        Ok(object) => return Ok(Configuration { object, is_forced, fault: None }),
        Err(fault) => fault.to_string(),
    };
    let lenient = serde_saphyr::options! { duplicate_keys: DuplicateKeyPolicy::LastWins };
    let object = serde_saphyr::from_str_with_options::<Json>(text, lenient);
    let object = object.map_err(|error| refused(&error))?;
    Ok(Configuration { object, is_forced, fault: Some(fault) })
}
