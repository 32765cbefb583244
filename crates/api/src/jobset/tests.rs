mod accepted;
mod anything;
mod in_place;
mod refused;
mod updates;

use serde_json::{Value, json};

use super::{API_VERSION, JobSetStrategy, KIND};
use crate::{
    builtin,
    decode::{self, FieldValidation},
    gates::Gates,
    strategy::{Json, Strategy, WriteContext},
};

const JOBSET: JobSetStrategy = JobSetStrategy::new(Gates::ALL);

/// A JobSet with two groups and these members of its spec.
fn manifest(spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "js"},
        "spec": {"replicatedJobs": [group("driver"), group("workers")]},
    });
    merge(&mut object["spec"], spec);
    object
}

fn group(name: &str) -> Value {
    json!({"name": name, "template": {"spec": {
        "parallelism": 2, "completions": 2,
        "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
    }}})
}

/// Puts members over those that are there; null takes one away.
fn merge(object: &mut Value, members: Value) {
    let (Value::Object(object), Value::Object(members)) = (object, members) else { return };
    for (key, value) in members {
        if value.is_null() {
            object.remove(&key);
        } else {
            object.insert(key, value);
        }
    }
}

/// The object as a server takes it, up to validation.
fn created(manifest: &Value) -> Json {
    let registry = builtin::registry();
    let resource = registry.get(super::GROUP, super::VERSION, super::PLURAL).unwrap();
    let body = manifest.to_string();
    let decoded = decode::object(resource, body.as_bytes(), FieldValidation::Strict).unwrap();
    let mut object = decoded.object;
    let now = "2026-11-15T12:00:00Z".parse().unwrap();
    let context = WriteContext { now, uid: "u-1".into(), user: "me".into() };
    JOBSET.fill_defaults(&mut object);
    JOBSET.prepare_create(&mut object, &context);
    decode::complete(resource, &mut object);
    object
}

/// What is wrong with a new object.
fn faults(manifest: &Value) -> Vec<String> {
    faults_with(manifest, Gates::ALL)
}

fn faults_with(manifest: &Value, gates: Gates) -> Vec<String> {
    let errors = JobSetStrategy::new(gates).validate_create(&created(manifest));
    errors.iter().map(ToString::to_string).collect()
}

/// What is wrong with an update of `old`, which was created, to `manifest`.
fn update_faults(manifest: &Value, old: &Json, gates: Gates) -> Vec<String> {
    let registry = builtin::registry();
    let resource = registry.get(super::GROUP, super::VERSION, super::PLURAL).unwrap();
    let body = manifest.to_string();
    let decoded = decode::object(resource, body.as_bytes(), FieldValidation::Strict).unwrap();
    let mut object = decoded.object;
    let now = "2026-11-15T12:00:00Z".parse().unwrap();
    let context = WriteContext { now, uid: "u-1".into(), user: "me".into() };
    let strategy = JobSetStrategy::new(gates);
    strategy.fill_defaults(&mut object);
    strategy.prepare_update(&mut object, old, &context);
    decode::complete(resource, &mut object);
    strategy.validate_update(&object, old).iter().map(ToString::to_string).collect()
}
