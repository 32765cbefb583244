//! Bodies in JSON, of all kinds.

use lockstep_api::{
    Resource,
    decode::{self, FieldValidation},
    strategy::Json,
};

use crate::{
    bound::bounded_and_stretched,
    kinds::{encoded, resource_of},
};

/// Takes a body in JSON.
pub fn feed(bytes: &[u8]) {
    let resource = resource_of(bytes);
    let read = |bytes: &[u8]| decode::object(resource, bytes, FieldValidation::Warn);
    let read = bounded_and_stretched(bytes, read);
    let strict = decode::object(resource, bytes, FieldValidation::Strict);
    match read {
        Ok(decoded) => {
            assert_eq!(strict.is_ok(), decoded.warnings.is_empty(), "{:?}", decoded.warnings);
            is_read_again(resource, &decoded.object);
            is_filled_once(resource, decoded.object);
        }
        Err(status) => {
            assert_eq!(status.code, 400);
            assert!(strict.is_err(), "the strict take what others do not");
        }
    }
}

/// What was decoded is encoded and decoded to itself.
pub(crate) fn is_read_again(resource: &Resource, object: &Json) {
    let text = encoded(resource, object);
    let again = decode::object(resource, &text, FieldValidation::Strict);
    let again = again.unwrap_or_else(|status| panic!("{}: {status:?}", shown(&text)));
    assert_eq!(&again.object, object);
}

/// What was filled in leaves nothing to fill in, and is written and read as it is.
fn is_filled_once(resource: &Resource, mut object: Json) {
    resource.strategy.fill_defaults(&mut object);
    let mut twice = object.clone();
    resource.strategy.fill_defaults(&mut twice);
    assert_eq!(twice, object, "there is more to fill in");
    decode::complete(resource, &mut object);
    let text = encoded(resource, &object);
    let again = decode::object(resource, &text, FieldValidation::Strict);
    let mut again = again.unwrap_or_else(|status| panic!("{}: {status:?}", shown(&text))).object;
    decode::complete(resource, &mut again);
    assert_eq!(again, object);
}

fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}
