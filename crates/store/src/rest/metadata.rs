//! The metadata rules that all kinds share.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp, Unit};
use lockstep_api::{
    ErrorList, Status, json, meta,
    strategy::{Json, WriteContext},
};
use serde_json::Value;

use super::Scene;

/// What generated suffixes are made of: no vowels, so no words; no 0, 1 or 3, so no doubts.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH: usize = 5;
const GENERATED_LENGTH_MAX: usize = 63;

/// The longest grace there is, some seventy years: with any more the calendar would end first.
pub(super) const GRACE_MAX: i64 = 1 << 31;

/// The metadata of an object, made if it is not there.
pub(super) fn metadata(object: &mut Json) -> &mut Json {
    json::object_mut(object, "metadata")
}

/// A timestamp as the API writes it: UTC, whole seconds.
pub(super) fn seconds(at: Timestamp) -> String {
    let whole = at.round(Unit::Second).unwrap_or(at);
    // Rounding may go up; a time in the future would look like a lie.
    let whole = if whole > at { shifted(whole, -1) } else { whole };
    whole.to_string()
}

/// `at` moved by some seconds, as far as the calendar goes.
pub(super) fn shifted(at: Timestamp, seconds: i64) -> Timestamp {
    let end = if seconds < 0 { Timestamp::MIN } else { Timestamp::MAX };
    at.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(end)
}

/// What is said of an object that names another namespace than its address.
pub(super) fn other_namespace() -> Status {
    Status::bad_request(
        "the namespace of the provided object does not match the namespace sent on the request",
    )
}

/// Makes the namespace of the object that of the request.
pub(super) fn settle_namespace(object: &mut Json, scene: &Scene<'_>) -> Result<(), Status> {
    let meta = metadata(object);
    let wanted = if scene.resource.is_namespaced() { scene.namespace } else { "" };
    let given = json::text(meta, &["namespace"]);
    if !given.is_empty() && !wanted.is_empty() && given != wanted {
        return Err(other_namespace());
    }
    if wanted.is_empty() {
        meta.remove("namespace");
    } else {
        meta.insert("namespace".to_owned(), wanted.into());
    }
    Ok(())
}

/// What is wrong with finalizers, for kinds that are strict about them.
pub(super) fn finalizer_faults(scene: &Scene<'_>, object: &Json) -> ErrorList {
    if scene.strategy().needs_qualified_finalizers() {
        meta::validate_qualified_finalizers(object)
    } else {
        ErrorList::new()
    }
}

/// When owners that an object has twice are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// In the object of a request.
    Sent,
    /// In what a request has made of an object.
    Made,
}

/// Takes out owners that are there already, and says so.
pub(super) fn unite_owners(object: &mut Json, found: Found) -> Option<String> {
    let owners = object.get_mut("metadata")?.get_mut("ownerReferences")?.as_array_mut()?;
    if owners.len() < 2 {
        return None;
    }
    let (mut known, mut doubled) = (BTreeSet::new(), Vec::new());
    owners.retain(|owner| {
        let is_new = known.insert(owner.to_string());
        if !is_new {
            let uid = owner.get("uid").and_then(Value::as_str).unwrap_or_default();
            doubled.push(uid.to_owned());
        }
        is_new
    });
    if doubled.is_empty() {
        return None;
    }
    let when = match found {
        Found::Sent => "",
        Found::Made => " after mutating admission happens",
    };
    Some(format!(
        ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner \
         references in 1.20+, and may reject such requests as early as 1.24; please fix your \
         requests; duplicate UID(s) observed: {}",
        doubled.join(", ")
    ))
}

/// Clears what only the server may set, and sets it.
pub(super) fn fill_system_fields(object: &mut Json, context: &WriteContext) {
    let meta = metadata(object);
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields"] {
        meta.remove(field);
    }
    meta.insert("creationTimestamp".to_owned(), seconds(context.now).into());
    meta.insert("uid".to_owned(), context.uid.clone().into());
}

/// Says in `meta` that the object is to be gone after `grace` seconds.
pub(super) fn mark_deleting(meta: &mut Json, now: Timestamp, grace: i64) {
    // Controllers must not act on the spec of an object that is going away, so it counts as
    // changed.
    let generation = json::integer(meta, &["generation"]).unwrap_or_default();
    if !meta.contains_key("deletionTimestamp") && generation > 0 {
        meta.insert("generation".to_owned(), (generation + 1).into());
    }
    let at = seconds(shifted(now, grace));
    meta.insert("deletionTimestamp".to_owned(), at.into());
    meta.insert("deletionGracePeriodSeconds".to_owned(), grace.into());
}

/// Drops empty members that mean the same as absent ones, so that an unchanged object stays the
/// same to the byte.
pub(super) fn normalize(object: &mut Json) {
    let meta = metadata(object);
    meta.remove("managedFields");
    meta.remove("selfLink");
    meta.retain(|_, value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    });
}

/// The name made from `prefix` for the `attempt`-th time; `seed` is where its randomness comes
/// from.
pub(super) fn generated_name(prefix: &str, seed: &str, attempt: u64) -> String {
    let mut cut = prefix.len().min(GENERATED_LENGTH_MAX - SUFFIX_LENGTH);
    while !prefix.is_char_boundary(cut) {
        cut -= 1;
    }
    let mut state = mix(hash(seed) ^ attempt);
    let mut name = prefix[..cut].to_owned();
    for _ in 0..SUFFIX_LENGTH {
        state = mix(state);
        let at = usize::try_from(state % 27).expect("a number below 27 fits");
        name.push(char::from(ALPHABET[at]));
    }
    name
}

/// A number that depends on all of `seed`.
pub(super) fn hash(seed: &str) -> u64 {
    seed.bytes().fold(0, |state, byte| mix(state ^ u64::from(byte)))
}

/// One round of splitmix64.
fn mix(state: u64) -> u64 {
    let z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
