use serde_json::json;

use super::*;
use crate::{definition::served, resource::Resource};

/// The versions of a kind: what each is called, and what `spec` is in it. The last one is stored.
fn versions(of: &[(&str, Value)]) -> Vec<Resource> {
    let stored = of.last().map(|(name, _)| *name);
    let version = |(name, spec): &(&str, Value)| {
        json!({"name": name, "served": true, "storage": Some(*name) == stored,
               "subresources": {"status": {}}, "schema": {"openAPIV3Schema": {
                   "type": "object", "properties": {
                       "spec": spec, "status": {"type": "object", "properties": {
                           "n": {"type": "integer"}}}}}}})
    };
    let value = json!({
        "metadata": {"name": "foos.example.com"},
        "spec": {"group": "example.com", "versions": of.iter().map(version).collect::<Vec<_>>()},
        "status": {"acceptedNames": {"plural": "foos", "kind": "Foo"},
                   "conditions": [{"type": "Established", "status": "True"}]},
    });
    served::of(value.as_object().unwrap()).unwrap().versions
}

fn object(value: Value) -> Json {
    value.as_object().cloned().unwrap()
}

#[test]
fn a_status_is_taken_whatever_is_embedded_beside_it() {
    let spec = json!({"type": "object", "properties": {"pod": {
        "type": "object", "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true}}});
    let kind = &versions(&[("v1", spec)])[0].strategy;
    let with = |n: Value| {
        object(json!({"metadata": {"name": "x"}, "spec": {"pod": {"kind": "Pod"}},
                      "status": {"n": n}}))
    };
    assert_eq!(kind.validate_status_update(&with(json!(2)), &with(json!(1))), []);
    assert_eq!(kind.validate_status_update(&with(json!("x")), &with(json!(1))).len(), 1);
    assert_eq!(kind.validate_update(&with(json!(1)), &with(json!(1))).len(), 1);
}

#[test]
fn nulls_of_another_version_are_not_shown() {
    let with = |is_nullable: bool| {
        json!({"type": "object", "properties": {
            "note": {"type": "string", "nullable": is_nullable}}})
    };
    let versions = versions(&[("v1", with(false)), ("v2", with(true))]);
    let shown =
        |at: usize| versions[at].strategy.from_stored(object(json!({"spec": {"note": null}})));
    assert_eq!(shown(0), object(json!({"spec": {}})));
    assert_eq!(shown(1), object(json!({"spec": {"note": null}})));
}
