//! What the tables of this module share, and properties of the whole.

use serde_json::{Value, json};

use super::*;
use crate::pod::{fill_pod, fill_pod_spec};

/// The errors as people read them.
pub(super) fn shown(errors: &ErrorList) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

/// What is wrong with a new pod of this spec, once it was filled in.
pub(super) fn errors_of(spec: Value) -> Vec<String> {
    let mut pod = json!({"metadata": {"name": "p"}, "spec": spec}).as_object().unwrap().clone();
    fill_pod(&mut pod);
    shown(&validate_create(&pod))
}

/// Asserts what is wrong with a new pod of this spec.
pub(super) fn assert_spec(spec: Value, want: &[&str]) {
    assert_eq!(errors_of(spec.clone()), want, "{spec}");
}

/// Asserts what is wrong with a plain pod that has these fields beside.
pub(super) fn check(extra: Value, want: &[&str]) {
    let mut spec = json!({"containers": [{"name": "c", "image": "i"}]});
    for (key, value) in extra.as_object().unwrap() {
        spec[key] = value.clone();
    }
    assert_spec(spec, want);
}

/// Asserts what is wrong with a pod of one such container.
pub(super) fn assert_container(container: Value, want: &[&str]) {
    let mut container = container;
    container["name"] = json!("c");
    container["image"] = json!("i");
    assert_spec(json!({"containers": [container]}), want);
}

/// Asserts what is wrong with a template of this spec.
pub(super) fn assert_template(spec: Value, want: &[&str]) {
    let mut template = json!({"spec": spec}).as_object().unwrap().clone();
    fill_pod_spec(template["spec"].as_object_mut().unwrap());
    assert_eq!(shown(&validate_template(&template, &Path::new("spec.template"))), want, "{spec}");
}

#[test]
fn a_plain_pod_is_accepted() {
    assert_spec(
        json!({"containers": [{"name": "c", "image": "busybox", "command": ["true"]}]}),
        &[],
    );
}

#[test]
fn templates_have_sound_labels_and_annotations() {
    let mut template = json!({
        "metadata": {"labels": {"a": "b c"}, "annotations": {"/": ""}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    })
    .as_object()
    .unwrap()
    .clone();
    fill_pod_spec(template["spec"].as_object_mut().unwrap());
    let got = shown(&validate_template(&template, &Path::new("spec.template")));
    assert_eq!(got.len(), 4, "{got:#?}");
    assert!(got[0].starts_with("spec.template.labels: Invalid value: \"b c\""));
    assert!(got[1].starts_with("spec.template.annotations: Invalid value: \"/\""));
}

#[test]
fn what_the_types_refuse_is_an_error() {
    let pod = json!({"spec": {"containers": 7}}).as_object().unwrap().clone();
    let got = shown(&validate_create(&pod));
    assert_eq!(got.len(), 1);
    assert!(got[0].starts_with("spec: Invalid value"), "{got:?}");
}

#[test]
fn tokens_belong_to_an_account() {
    let errors = errors_of(json!({
        "containers": [{"name": "c", "image": "i"}],
        "volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}],
    }));
    assert_eq!(
        errors,
        [
            "spec.volumes[0].projected.sources[0].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set"
        ]
    );
}
