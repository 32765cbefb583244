//! Bodies in protobuf.

use lockstep_api::decode::{self, FieldValidation};
use serde_json::Value;

use crate::{bound::bounded_and_stretched, kinds::resource_of, targets::json::is_read_again};

/// How much longer JSON may be than what it was made of: numbers and names of fields are a byte or
/// two in protobuf.
const GROWTH_MAX: usize = 512;

const MAGIC: &[u8] = b"k8s\0";

/// Takes a body in protobuf, without what each begins with.
pub fn feed(bytes: &[u8]) {
    let whole = [MAGIC, bytes].concat();
    let Ok(text) = bounded_and_stretched(&whole, decode::protobuf_to_json) else { return };
    assert!(text.len() <= 4096 + whole.len() * GROWTH_MAX, "{} bytes", text.len());
    let value: Value = serde_json::from_slice(&text).expect("it is JSON");
    assert!(value.is_object(), "{value}");
    let resource = resource_of(&text);
    if let Ok(decoded) = decode::object(resource, &text, FieldValidation::Warn) {
        is_read_again(resource, &decoded.object);
    }
}
