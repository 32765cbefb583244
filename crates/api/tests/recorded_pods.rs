//! What Kubernetes 1.36.4 says about some hundred random pods, recorded from its own code, must be
//! what we say.
//!
//! Each line of `golden/pods.jsonl` has a pod, for updates also the one before, and the errors, or
//! the warnings of a pod without errors. Errors are sorted, since Go visits maps in random order;
//! explanations of regular expressions and diffs are cut off.

use std::collections::BTreeSet;

use lockstep_api::{
    ErrorList, Path, meta, names,
    pod::{self, validation},
    strategy::MetadataCheck,
};
use serde_json::{Map, Value};

fn filled(value: &Value) -> Map<String, Value> {
    let mut object = value.as_object().expect("pods are objects").clone();
    pod::fill_pod(&mut object);
    object
}

fn errors(case: &Value) -> ErrorList {
    let pod = filled(&case["pod"]);
    match case["mode"].as_str() {
        Some("create") => {
            let mut errors = meta::validate_create(&pod, true, names::name_is_dns_subdomain);
            errors.extend(meta::validate_qualified_finalizers(&pod));
            errors.extend(validation::validate_create(&pod));
            errors
        }
        Some("template") => validation::validate_template(&pod, &Path::new("template")),
        Some("update") => {
            let old = filled(&case["old"]);
            let mut errors = meta::validate_update(&pod, &old, MetadataCheck::Both, true);
            errors.extend(validation::validate_update(&pod, &old));
            errors
        }
        other => unreachable!("unknown mode {other:?}"),
    }
}

fn texts(value: &Value) -> BTreeSet<String> {
    let list = value.as_array().into_iter().flatten();
    list.map(|text| text.as_str().expect("texts").to_owned()).collect()
}

#[test]
fn recorded_answers_are_ours() {
    let mut cases = 0;
    for (number, line) in include_str!("golden/pods.jsonl").lines().enumerate() {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let shortened = |text: String| {
            let line = text.lines().next().unwrap_or_default();
            line.split(" (e.g. '").next().unwrap_or_default().to_owned()
        };
        let found: BTreeSet<String> =
            errors(&case).iter().map(|error| shortened(error.to_string())).collect();
        assert_eq!(found, texts(&case["errors"]), "line {}: {}", number + 1, case["pod"]);
        if let Some(warnings) = case.get("warnings") {
            let found = pod::warnings_for_template(&filled(&case["pod"]), "");
            let found: BTreeSet<String> = found.into_iter().collect();
            assert_eq!(found, texts(warnings), "line {}: {}", number + 1, case["pod"]);
        }
        cases += 1;
    }
    assert!(cases > 200, "only {cases} cases");
}
