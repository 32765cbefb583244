//! Bodies that Go wrote, bodies written by hand, and bodies that are broken.

use base64::{Engine, engine::general_purpose::STANDARD};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use super::*;
use crate::decode::{FieldValidation, kind};

/// Objects with all of their fields, in both forms, by `cargo xtask openapi`.
const SAMPLES: &str = include_str!("../../../openapi/samples.json");

#[derive(Deserialize)]
struct Sample {
    protobuf: String,
    json: Value,
}

fn samples() -> Vec<(String, Vec<u8>, Value)> {
    let samples: std::collections::BTreeMap<String, Sample> =
        serde_json::from_str(SAMPLES).unwrap();
    samples
        .into_iter()
        .map(|(kind, sample)| (kind, STANDARD.decode(sample.protobuf).unwrap(), sample.json))
        .collect()
}

/// What a body in protobuf says, decoded as if it had come as JSON.
fn decoded(gvk: Gvk<'_>, body: &[u8]) -> Value {
    let json = protobuf_to_json(body).unwrap();
    Value::Object(kind(gvk, &json, FieldValidation::Strict).unwrap().object)
}

#[test]
fn what_go_says_in_protobuf_is_what_it_says_in_json() {
    let samples = samples();
    assert!(samples.len() > 20, "there are samples of all kinds");
    for (name, protobuf, json) in samples {
        let parts: Vec<&str> = name.split('/').collect();
        let gvk = Gvk { group: parts[0], version: parts[1], kind: parts[2] };
        let want = kind(gvk, json.to_string().as_bytes(), FieldValidation::Strict).unwrap();
        let want = Value::Object(want.object);
        let got = decoded(gvk, &protobuf);
        assert_eq!(first_difference(&got, &want, ""), None, "{name}");
    }
}

/// Where two values differ first, since whole objects are too long to compare by eye.
fn first_difference(got: &Value, want: &Value, path: &str) -> Option<String> {
    match (got, want) {
        (Value::Object(a), Value::Object(b)) => {
            let names: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            let at = |map: &Json, name: &str| map.get(name).cloned().unwrap_or(Value::Null);
            names.into_iter().find_map(|name| {
                first_difference(&at(a, name), &at(b, name), &format!("{path}.{name}"))
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let pairs = a.iter().zip(b).enumerate();
            pairs
                .map(|(at, (a, b))| first_difference(a, b, &format!("{path}[{at}]")))
                .find_map(|difference| difference)
        }
        (a, b) => (a != b).then(|| format!("{path}: {a} instead of {b}")),
    }
}

/// A field of bytes.
fn bytes(number: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).unwrap();
    [&[(number << 3) | 2, length], content].concat()
}

fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let meta = [bytes(1, api_version.as_bytes()), bytes(2, kind.as_bytes())].concat();
    [MAGIC.to_vec(), bytes(1, &meta), bytes(2, raw)].concat()
}

#[test]
fn zero_values_that_are_no_pointers_are_left_out_and_pointers_stay() {
    // spec.parallelism is a pointer; status.active is none.
    let (spec, status) = (bytes(2, &[8, 0]), bytes(3, &[4 << 3, 0]));
    let body = envelope("batch/v1", "Job", &[spec, status].concat());
    let job = decoded(Gvk { group: "batch", version: "v1", kind: "Job" }, &body);
    assert_eq!(job["spec"]["parallelism"], json!(0));
    assert_eq!(job["status"].get("active"), None);
}

#[test]
fn fields_of_newer_clients_are_skipped() {
    let raw = [bytes(1, &bytes(1, b"n")), vec![15 << 3, 1], bytes(14, b"new")].concat();
    let body = envelope("v1", "Namespace", &raw);
    let namespace = decoded(Gvk { group: "", version: "v1", kind: "Namespace" }, &body);
    assert_eq!(namespace["metadata"]["name"], json!("n"));
}

/// Typed clients send the options of the group and version that the object is of.
#[test]
fn options_are_of_every_group_and_version() {
    for version in ["v1", "batch/v1", "jobset.x-k8s.io/v1alpha2"] {
        // gracePeriodSeconds is field 1.
        let body = protobuf_to_json(&envelope(version, "DeleteOptions", &[8, 5])).unwrap();
        let options: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(
            (&options["gracePeriodSeconds"], &options["apiVersion"]),
            (&json!(5), &json!(version))
        );
    }
}

#[test]
fn bodies_that_cannot_be_read_are_refused_with_a_reason() {
    let namespace = |raw: &[u8]| envelope("v1", "Namespace", raw);
    let cases: [(Vec<u8>, u16, &str); 7] = [
        (b"{}".to_vec(), 400, "expected prefix [107 56 115 0]"),
        (namespace(&[10, 200, 1]), 400, "cut off"),
        (namespace(&[10]), 400, "cut off"),
        (namespace(&[8, 1]), 400, "field metadata has another wire type"),
        (namespace(&bytes(1, &bytes(1, &[0xff]))), 400, "field name is no UTF-8"),
        (envelope("v1", "Nothing", &[]), 400, "no kind \"Nothing\" is registered"),
        (envelope("jobset.x-k8s.io/v1alpha2", "JobSet", &[]), 415, "application/json"),
    ];
    for (body, code, words) in cases {
        let error = protobuf_to_json(&body).unwrap_err();
        assert_eq!(error.code, code, "{error:?}");
        assert!(error.message.contains(words), "{error:?} should say {words}");
    }
}

proptest! {
    #[test]
    fn broken_bodies_never_panic(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let all = samples();
        let (_, mut body, _) = all[which.index(all.len())].clone();
        for (at, value) in changes {
            let at = at.index(body.len());
            body[at] = value;
        }
        body.truncate(cut.index(body.len()) + 1);
        let _ = protobuf_to_json(&body);
    }
}
