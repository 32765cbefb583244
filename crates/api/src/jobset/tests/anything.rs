use proptest::prelude::*;
use serde_json::{Value, json};

use super::JOBSET;
use crate::{
    builtin,
    decode::{self, FieldValidation},
    strategy::{Strategy as _, WriteContext},
};

/// Any JSON, with names that a JobSet knows.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z]{0,3}|InOrder|Indexed|\\(".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 6, |inner| {
        let names = prop::sample::select(vec![
            "replicatedJobs",
            "name",
            "template",
            "spec",
            "metadata",
            "dependsOn",
            "replicas",
            "failurePolicy",
            "rules",
            "coordinator",
            "replicatedJob",
            "jobIndex",
            "volumeClaimPolicies",
            "templates",
            "network",
            "subdomain",
            "startupPolicy",
            "startupPolicyOrder",
            "completions",
            "parallelism",
            "containers",
            "volumeMounts",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(names, inner, 0..6).prop_map(|members| {
                members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            }),
        ]
    })
}

proptest! {
    #[test]
    fn no_jobset_makes_validation_panic(spec in any_json(), old in any_json()) {
        let registry = builtin::registry();
        let resource = registry.get(super::super::GROUP, "v1alpha2", "jobsets").unwrap();
        let object = |spec: &Value| {
            let body = json!({"metadata": {"name": "js"}, "spec": spec}).to_string();
            decode::object(resource, body.as_bytes(), FieldValidation::Ignore).ok()
        };
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        let context = WriteContext { now, uid: "u-1".into(), user: "me".into() };
        if let (Some(new), Some(old)) = (object(&spec), object(&old)) {
            let (mut new, mut old) = (new.object, old.object);
            for object in [&mut new, &mut old] {
                JOBSET.fill_defaults(object);
                JOBSET.prepare_create(object, &context);
            }
            let _ = JOBSET.validate_create(&new);
            let _ = JOBSET.warnings(&new, None);
            JOBSET.prepare_update(&mut new, &old, &context);
            let _ = JOBSET.validate_update(&new, &old);
        }
    }
}
