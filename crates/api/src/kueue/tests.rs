mod converted;
mod jobs;
mod queues;
mod shown;
mod workloads;

use serde_json::{Value, json};

use super::{GROUP, Kind, VERSION};
use crate::{
    builtin,
    decode::{self, FieldValidation},
    resource::Resource,
    strategy::{Json, WriteContext},
};

/// The resource of a kind in a version.
fn resource(kind: &Kind, version: &str) -> Resource {
    let registry = builtin::registry();
    (**registry.get(GROUP, version, kind.plural).expect("it is served")).clone()
}

fn context() -> WriteContext {
    let now = "2026-11-15T12:00:00Z".parse().unwrap();
    WriteContext { now, uid: "u-1".into(), user: "me".into() }
}

fn decoded(resource: &Resource, members: Value) -> Json {
    let mut manifest = json!({
        "apiVersion": resource.api_version(), "kind": resource.kind, "metadata": {"name": "x"},
    });
    merge(&mut manifest, members);
    let body = manifest.to_string();
    decode::object(resource, body.as_bytes(), FieldValidation::Strict).unwrap().object
}

/// The object as a server takes it, up to validation.
fn created(kind: &Kind, members: Value) -> Json {
    created_in(&resource(kind, VERSION), members)
}

fn created_in(resource: &Resource, members: Value) -> Json {
    let mut object = decoded(resource, members);
    resource.strategy.fill_defaults(&mut object);
    resource.strategy.prepare_create(&mut object, &context());
    decode::complete(resource, &mut object);
    object
}

/// What is wrong with a new object.
fn faults(kind: &Kind, members: Value) -> Vec<String> {
    let resource = resource(kind, VERSION);
    let object = created_in(&resource, members);
    resource.strategy.validate_create(&object).iter().map(ToString::to_string).collect()
}

/// What is wrong with changing an object: of a change of the whole, and of one of the status.
fn change_faults(kind: &Kind, old: &Value, new: &Value) -> Vec<String> {
    let resource = resource(kind, VERSION);
    let whole = |members: &Value| {
        let mut object = decoded(&resource, members.clone());
        resource.strategy.fill_defaults(&mut object);
        decode::complete(&resource, &mut object);
        object
    };
    let (new, old) = (whole(new), whole(old));
    let errors = match new.get("spec") == old.get("spec") {
        true => resource.strategy.validate_status_update(&new, &old),
        false => resource.strategy.validate_update(&new, &old),
    };
    errors.iter().map(ToString::to_string).collect()
}

/// Puts members over those that are there; null takes one away.
fn merge(object: &mut Value, members: Value) {
    match (object, members) {
        (Value::Object(object), Value::Object(members)) => {
            for (key, value) in members {
                if value.is_null() {
                    object.remove(&key);
                } else {
                    merge(object.entry(key).or_insert(Value::Null), value);
                }
            }
        }
        (slot, value) => *slot = value,
    }
}
