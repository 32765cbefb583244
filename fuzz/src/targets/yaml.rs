//! Bodies in YAML: objects, and configurations to apply.

use lockstep_api::decode::{self, FieldValidation};
use lockstep_local::server::body;

use super::json::is_read_again;
use crate::{bound::bounded_and_stretched, kinds::resource_of};

/// Takes a body in YAML.
pub fn feed(bytes: &[u8]) {
    if let Ok(text) = bounded_and_stretched(bytes, body::yaml_to_json) {
        // What it is turned into is JSON, and as YAML it means the same.
        let value: serde_json::Value = serde_json::from_slice(&text).expect("it is JSON");
        let again = body::yaml_to_json(&text).expect("JSON is YAML");
        let again: serde_json::Value = serde_json::from_slice(&again).expect("it is JSON");
        assert_eq!(again, value);
        let resource = resource_of(bytes);
        if let Ok(decoded) = decode::object(resource, &text, FieldValidation::Ignore) {
            is_read_again(resource, &decoded.object);
        }
    }
    let read = bounded_and_stretched(bytes, |bytes| body::configuration(bytes, false));
    if let Ok(configuration) = read {
        let text = serde_json::Value::Object(configuration.object.clone()).to_string();
        let again = body::configuration(text.as_bytes(), false).expect("JSON is read");
        assert_eq!(again.object, configuration.object);
        assert!(again.doubled.is_empty(), "nothing is there twice any more");
    }
}
