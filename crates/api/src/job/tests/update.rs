use serde_json::{Value, json};

use super::{JOB, changed, created, object, texts};
use crate::{
    gates::Gates,
    job::JobStrategy,
    strategy::{Json, Strategy},
};

fn indexed(spec: Value) -> Json {
    let mut whole =
        object(json!({"completionMode": "Indexed", "completions": 2, "parallelism": 2}));
    whole.extend(object(spec));
    created(whole.into())
}

// rule: job 1.1, job 1.5
#[test]
fn little_of_a_job_may_change() {
    let plain = created(json!({"completions": 2, "parallelism": 2}));
    let plain_policy = r#"{"Rules":[{"Action":"Count","OnExitCodes":{"ContainerName":null,"Operator":"In","Values":[1]},"OnPodConditions":null}]}"#;
    let count = json!({"action": "Count", "onExitCodes": {"operator": "In", "values": [1]}});
    let limited = indexed(json!({"backoffLimitPerIndex": 1, "maxFailedIndexes": 1}));
    let with_policy = indexed(json!({"podFailurePolicy": {"rules": []}}));
    let immutable = |field: &str, shown: &str| {
        vec![format!("spec.{field}: Invalid value: {shown}: field is immutable")]
    };
    let cases = [
        (
            &plain,
            json!({"parallelism": 5, "suspend": true, "backoffLimit": 1, "manualSelector": true,
                "activeDeadlineSeconds": 3, "ttlSecondsAfterFinished": 3,
                "podReplacementPolicy": "Failed"}),
            vec![],
        ),
        (&plain, json!({"completions": 3}), immutable("completions", "3")),
        (&plain, json!({"completions": null}), immutable("completions", "null")),
        (&plain, json!({"managedBy": "a.b/c"}), immutable("managedBy", "\"a.b/c\"")),
        (
            &plain,
            json!({"podFailurePolicy": {"rules": [count]}, "podReplacementPolicy": "Failed"}),
            immutable("podFailurePolicy", plain_policy),
        ),
        (&with_policy, json!({"podFailurePolicy": null}), immutable("podFailurePolicy", "null")),
        (&limited, json!({"backoffLimitPerIndex": 2}), immutable("backoffLimitPerIndex", "2")),
        (
            &limited,
            json!({"backoffLimitPerIndex": null, "maxFailedIndexes": null}),
            immutable("backoffLimitPerIndex", "null"),
        ),
        (&limited, json!({"maxFailedIndexes": 2}), vec![]),
        (&limited, json!({"maxFailedIndexes": null}), vec![]),
        (
            &indexed(json!({})),
            json!({"completionMode": "NonIndexed"}),
            immutable("completionMode", "\"NonIndexed\""),
        ),
    ];
    for (old, spec, want) in cases {
        let new = changed(old, spec.clone());
        assert_eq!(texts(&JOB.validate_update(&new, old)), want, "{spec}");
    }
    let new = changed(&plain, json!({"selector": {"matchLabels": {"job-name": "j"}}}));
    assert_eq!(
        texts(&JOB.validate_update(&new, &plain)),
        immutable("selector", r#"{"matchLabels":{"job-name":"j"}}"#)
    );
}

// rule: job 1.5
#[test]
fn an_indexed_job_grows_and_shrinks_as_a_whole() {
    let tandem = "can only be modified in tandem with spec.parallelism";
    let uneven = indexed(json!({"parallelism": 1}));
    let even = indexed(json!({}));
    let cases = [
        (&even, json!({"completions": 3, "parallelism": 3}), None),
        (&even, json!({"completions": 0, "parallelism": 0}), None),
        (&uneven, json!({"completions": 3, "parallelism": 3}), None),
        (&even, json!({"parallelism": 1}), None),
        (&even, json!({"parallelism": 9}), None),
        (&even, json!({"completions": 3}), Some(format!("Invalid value: 3: {tandem}"))),
        (
            &even,
            json!({"completions": 3, "parallelism": 4}),
            Some(format!("Invalid value: 3: {tandem}")),
        ),
        (
            &even,
            json!({"completions": null}),
            Some("Required value: when completion mode is Indexed".to_owned()),
        ),
    ];
    for (old, spec, want) in cases {
        let new = changed(old, spec.clone());
        let want: Vec<String> =
            want.into_iter().map(|text| format!("spec.completions: {text}")).collect();
        assert_eq!(texts(&JOB.validate_update(&new, old)), want, "{spec}");
    }
}

/// A Job whose template may change, with two containers and one init container.
fn suspended() -> Json {
    created(json!({"suspend": true, "template": {"spec": {
        "restartPolicy": "Never",
        "containers": [{"name": "a", "image": "i"}, {"name": "b", "image": "i"}],
        "initContainers": [{"name": "c", "image": "i"}, {"name": "d", "image": "i"}],
        "affinity": {"nodeAffinity": {}},
    }}}))
}

fn edited(job: &Json, edit: impl FnOnce(&mut Value)) -> Json {
    let mut job = job.clone();
    edit(&mut job["spec"]["template"]);
    job
}

// rule: job 1.5
#[test]
fn a_suspended_job_may_be_placed_anew() {
    let old = suspended();
    let resources = json!({"requests": {"cpu": "1"}});
    type Edit<'a> = &'a dyn Fn(&mut Value);
    let allowed: [(&str, Edit<'_>); 9] = [
        ("labels", &|t| t["metadata"]["labels"]["a"] = json!("b")),
        ("annotations", &|t| t["metadata"]["annotations"] = json!({"a": "b"})),
        ("finalizers", &|t| t["metadata"]["finalizers"] = json!(["a.b/c"])),
        ("nodeSelector", &|t| t["spec"]["nodeSelector"] = json!({"a": "b"})),
        ("tolerations", &|t| t["spec"]["tolerations"] = json!([{"operator": "Exists"}])),
        ("schedulingGates", &|t| t["spec"]["schedulingGates"] = json!([{"name": "a"}])),
        ("affinity", &|t| drop(t["spec"].as_object_mut().unwrap().remove("affinity"))),
        ("resources", &|t| t["spec"]["containers"][1]["resources"] = resources.clone()),
        ("of init", &|t| t["spec"]["initContainers"][0]["resources"] = resources.clone()),
    ];
    for (name, edit) in allowed {
        let new = edited(&old, edit);
        assert_eq!(texts(&JOB.validate_update(&new, &old)), [""; 0], "{name}");
        assert_eq!(texts(&JOB.validate_update(&old, &new)), [""; 0], "{name}, undone");
    }
    let refused: [(&str, Edit<'_>); 6] = [
        ("image", &|t| t["spec"]["containers"][0]["image"] = json!("other")),
        ("with resources", &|t| {
            t["spec"]["containers"][0]["image"] = json!("other");
            t["spec"]["containers"][0]["resources"] = resources.clone();
        }),
        ("fewer", &|t| drop(t["spec"]["containers"].as_array_mut().unwrap().pop())),
        ("fewer init", &|t| drop(t["spec"]["initContainers"].as_array_mut().unwrap().pop())),
        ("reordered", &|t| t["spec"]["containers"].as_array_mut().unwrap().reverse()),
        ("reordered init", &|t| t["spec"]["initContainers"].as_array_mut().unwrap().reverse()),
    ];
    for (name, edit) in refused {
        let got = texts(&JOB.validate_update(&edited(&old, edit), &old));
        assert_eq!(got.len(), 1, "{name}: {got:?}");
        assert!(got[0].starts_with("spec.template.spec: Invalid value: {"), "{name}: {got:?}");
        assert!(got[0].ends_with("}: field is immutable"), "{name}: {got:?}");
    }
    // An affinity that says more than where nodes are stays.
    let pods = edited(&old, |t| t["spec"]["affinity"] = json!({"podAffinity": {}}));
    let none = edited(&old, |t| drop(t["spec"].as_object_mut().unwrap().remove("affinity")));
    assert_eq!(texts(&JOB.validate_update(&none, &pods)).len(), 1);
}

// rule: job 1.5, job 6.1.15
#[test]
fn the_stored_job_decides_whether_its_template_may_change() {
    let start = "2026-11-15T12:00:00Z";
    let is_suspended = json!([{"type": "Suspended", "status": "True"}]);
    let cases = [
        ("never started", true, json!({}), true),
        ("never started, terminating", true, json!({"terminating": 3}), true),
        ("not suspended", false, json!({}), false),
        ("being resumed", false, json!({"conditions": is_suspended}), false),
        ("still running", true, json!({"startTime": start, "active": 1}), false),
        (
            "some pods still run",
            true,
            json!({"startTime": start, "conditions": is_suspended, "active": 1}),
            false,
        ),
        ("stopping", true, json!({"startTime": start}), false),
        ("stopped", true, json!({"startTime": start, "conditions": is_suspended}), true),
    ];
    for (name, is_suspended, status, is_mutable) in cases {
        let mut old = changed(&suspended(), json!({"suspend": is_suspended}));
        old.insert("status".to_owned(), status);
        // The new object may be resumed in the same breath.
        let new = changed(
            &edited(&old, |t| t["spec"]["nodeSelector"] = json!({"a": "b"})),
            json!({"suspend": false}),
        );
        let got = texts(&JOB.validate_update(&new, &old));
        if is_mutable {
            assert_eq!(got, [""; 0], "{name}");
        } else {
            assert_eq!(got.len(), 1, "{name}: {got:?}");
            assert!(got[0].starts_with("spec.template: Invalid value: {"), "{name}: {got:?}");
            assert!(got[0].ends_with("}: field is immutable"), "{name}: {got:?}");
        }
    }
}

// rule: job 1.3
#[test]
fn changed_labels_still_have_to_be_those_of_the_job() {
    let old = suspended();
    let new = edited(&old, |t| {
        t["metadata"]["labels"].as_object_mut().unwrap().remove("batch.kubernetes.io/job-name");
    });
    assert_eq!(
        texts(&JOB.validate_update(&new, &old)),
        [
            "spec.template.metadata.labels[batch.kubernetes.io/job-name]: Required value: must be 'j'"
        ]
    );
    // Jobs from before there were such labels need none.
    let ancient = |job: &Json| {
        let mut job = edited(job, |t| {
            let labels = t["metadata"]["labels"].as_object_mut().unwrap();
            labels.retain(|label, _| !label.starts_with("batch."));
        });
        job["spec"]["selector"] = json!({"matchLabels": {"controller-uid": "u-1"}});
        job
    };
    let old = ancient(&old);
    let new = changed(&old, json!({"parallelism": 3}));
    assert_eq!(texts(&JOB.validate_update(&new, &old)), [""; 0]);
}

// rule: job 1.2.1
#[test]
fn a_feature_that_is_off_takes_its_field_from_new_jobs_only() {
    let off = JobStrategy::new(Gates { job_success_policy: false, ..Gates::ALL });
    let policy = json!({"rules": [{"succeededCount": 1}]});
    let old = indexed(json!({"successPolicy": policy}));
    let mut new = old.clone();
    off.prepare_create(&mut new, &super::context());
    assert_eq!(new["spec"].get("successPolicy"), None);
    let mut kept = old.clone();
    off.prepare_update(&mut kept, &old, &super::context());
    assert_eq!(kept["spec"]["successPolicy"], policy);
    let mut added = old.clone();
    off.prepare_update(&mut added, &indexed(json!({})), &super::context());
    assert_eq!(added["spec"].get("successPolicy"), None);
}
