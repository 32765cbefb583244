use serde_json::{Value, json};

use super::{JOBSET, created, group, manifest, update_faults};
use crate::{gates::Gates, strategy::Strategy};

fn check(old: &Value, cases: &[(Value, &[&str])]) {
    let old = created(old);
    for (new, want) in cases {
        assert_eq!(update_faults(new, &old, Gates::ALL), *want, "{new}");
    }
}

/// The group with a pod template changed by `change`.
fn changed(name: &str, change: impl Fn(&mut Value)) -> Value {
    let mut group = group(name);
    change(&mut group["template"]["spec"]);
    group
}

// rule: jobset 1.5
#[test]
fn a_manifest_can_be_applied_again() {
    let spec = json!({"failurePolicy": {"rules": [{"action": "FailJobSet"}]}, "suspend": true});
    let old = manifest(spec.clone());
    check(&old, &[(manifest(spec), &[])]);
}

// rule: jobset 1.2, jobset 1.3, jobset Q1
#[test]
fn what_never_changes_may_come_and_go() {
    let before = json!({"failurePolicy": {"maxRestarts": 1}});
    let mut waiting = group("workers");
    waiting["dependsOn"] = json!([{"name": "driver", "status": "Ready"}]);
    let mut complete = waiting.clone();
    complete["dependsOn"][0]["status"] = "Complete".into();
    let is = |field: &str| format!("spec.{field}: Invalid value: Value is immutable");
    check(
        &manifest(before.clone()),
        &[
            (manifest(json!({"failurePolicy": {"maxRestarts": 2}})), &[&is("failurePolicy")]),
            (manifest(json!({})), &[]),
            (
                manifest(
                    json!({"network": {"subdomain": "x"}, "failurePolicy": {"maxRestarts": 1}}),
                ),
                &[&is("network")],
            ),
            (manifest(json!({"successPolicy": {"operator": "Any"}})), &[&is("successPolicy")]),
            (
                manifest(json!({"startupPolicy": {"startupPolicyOrder": "InOrder"}})),
                &[&is("startupPolicy")],
            ),
            (manifest(json!({"coordinator": {"replicatedJob": "anything"}})), &[]),
            (manifest(json!({"ttlSecondsAfterFinished": 7, "suspend": true})), &[]),
        ],
    );
    check(
        &manifest(json!({"replicatedJobs": [group("driver"), waiting]})),
        &[(
            manifest(json!({"replicatedJobs": [group("driver"), complete]})),
            &["spec.replicatedJobs[1].dependsOn: Invalid value: Value is immutable"],
        )],
    );
}

// rule: jobset 1.5
#[test]
fn groups_never_change() {
    let old = created(&manifest(json!({"managedBy": "acme.io/a"})));
    let groups =
        |groups: Value| manifest(json!({"replicatedJobs": groups, "managedBy": "acme.io/a"}));
    let image = changed("workers", |spec| {
        spec["template"]["spec"]["containers"][0]["image"] = "other".into();
    });
    for (what, new) in [
        ("added", groups(json!([group("driver"), group("workers"), group("more")]))),
        ("removed", groups(json!([group("driver")]))),
        ("moved", groups(json!([group("workers"), group("driver")]))),
        ("image", groups(json!([group("driver"), image]))),
    ] {
        let found = update_faults(&new, &old, Gates::ALL);
        assert_eq!(found.len(), 1, "{what}: {found:?}");
        assert!(found[0].starts_with("spec.replicatedJobs: Invalid value: [{"), "{what}");
        assert!(found[0].ends_with("}]: field is immutable"), "{what}");
    }
    let found = update_faults(&manifest(json!({"managedBy": "acme.io/b"})), &old, Gates::ALL);
    assert_eq!(found, ["spec.managedBy: Invalid value: \"acme.io/b\": field is immutable"]);
    let found = update_faults(&manifest(json!({})), &old, Gates::ALL);
    assert_eq!(found, ["spec.managedBy: Invalid value: null: field is immutable"]);
}

// rule: jobset 1.5
#[test]
fn pods_of_a_suspended_set_may_be_placed_anew() {
    let placed = changed("workers", |spec| {
        spec["template"]["metadata"] = json!({"labels": {"a": "b"}, "annotations": {"c": "d"}});
        let pod = &mut spec["template"]["spec"];
        pod["nodeSelector"] = json!({"zone": "z"});
        pod["tolerations"] = json!([{"key": "k", "operator": "Exists"}]);
        pod["schedulingGates"] = json!([{"name": "g"}]);
    });
    let new = |suspend: bool| {
        manifest(json!({"suspend": suspend, "replicatedJobs": [group("driver"), placed]}))
    };
    for (was, is, count) in [(true, true, 0), (true, false, 0), (false, true, 0), (false, false, 1)]
    {
        let old = created(&manifest(json!({"suspend": was})));
        let found = update_faults(&new(is), &old, Gates::ALL);
        assert_eq!(found.len(), count, "{was} {is} {found:?}");
    }
    let old = created(&manifest(json!({"suspend": true})));
    for change in [
        |spec: &mut Value| spec["template"]["spec"]["affinity"] = json!({"podAffinity": {}}),
        |spec: &mut Value| spec["template"]["spec"]["containers"][0]["image"] = "x".into(),
        |spec: &mut Value| {
            spec["template"]["spec"]["containers"][0]["resources"] =
                json!({"limits": {"cpu": "1"}});
        },
    ] {
        let groups = json!([group("driver"), changed("workers", change)]);
        let new = manifest(json!({"suspend": true, "replicatedJobs": groups}));
        assert_eq!(update_faults(&new, &old, Gates::ALL).len(), 1, "{new}");
    }
}

// rule: jobset 1.5
#[test]
fn indexed_jobs_grow_and_shrink_as_a_whole() {
    let sized = |parallelism: i32, completions: i32| {
        let group_now = changed("workers", |spec| {
            spec["parallelism"] = parallelism.into();
            spec["completions"] = completions.into();
        });
        manifest(json!({"replicatedJobs": [group("driver"), group_now]}))
    };
    let path = "spec.replicatedJobs[1].template.spec";
    let below = |field: &str| format!("{path}.{field}: Invalid value: 0: {field} must be >= 1");
    check(
        &manifest(json!({})),
        &[
            (sized(4, 4), &[]),
            (
                sized(4, 2),
                &[&format!(
                    "{path}.completions: Invalid value: 2: completions must be equal to parallelism \
                 for Elastic Indexed Jobs"
                )],
            ),
            (sized(0, 0), &[&below("parallelism"), &below("completions")]),
        ],
    );
    let mut old = created(&manifest(json!({})));
    let off = Gates { elastic_job_set: false, ..Gates::ALL };
    assert_eq!(update_faults(&sized(4, 4), &old, off).len(), 1);
    old.insert(
        "status".to_owned(),
        json!({"conditions": [{"type": "Failed", "status": "True"}], "restarts": 0}),
    );
    assert_eq!(
        update_faults(&sized(4, 4), &old, Gates::ALL),
        [format!(
            "{path}: Forbidden: Cannot mutate parallelism or completions when JobSet is in a \
             terminal state (Completed or Failed)"
        )]
    );
    let plain = |size: i32| {
        let group_now = changed("workers", |spec| {
            spec["completionMode"] = "NonIndexed".into();
            spec["parallelism"] = size.into();
        });
        manifest(json!({"replicatedJobs": [group("driver"), group_now]}))
    };
    let found = update_faults(&plain(3), &created(&plain(2)), Gates::ALL);
    assert_eq!(found.len(), 1);
    assert!(found[0].ends_with(": field is immutable"), "{found:?}");
}

// rule: jobset 1.9
#[test]
fn a_status_is_checked_by_its_schema() {
    let condition = |members: Value| {
        let mut condition = json!({
            "type": "Completed", "status": "True", "reason": "AllJobsCompleted",
            "message": "jobset completed successfully",
            "lastTransitionTime": "2026-11-15T12:00:00Z",
        });
        super::merge(&mut condition, members);
        condition
    };
    let counted = json!({"name": "a", "ready": 0, "succeeded": 0, "failed": 0, "active": 0,
                         "suspended": 0});
    let path = "status.conditions[0]";
    let cases: [(Value, &[&str]); 7] = [
        (json!({"restarts": 1, "replicatedJobsStatus": [counted]}), &[]),
        (json!({"conditions": [condition(json!({}))], "restarts": 0}), &[]),
        (
            json!({"conditions": [condition(json!({"reason": ""}))]}),
            &[
                &format!(
                    "{path}.reason: Invalid value: \"\": {path}.reason in body should be at least \
                     1 chars long"
                ),
                &format!(
                    "{path}.reason: Invalid value: \"\": {path}.reason in body should match \
                     '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$'"
                ),
            ],
        ),
        (
            json!({"conditions": [condition(json!({"status": "Maybe", "message": null}))]}),
            &[
                &format!("{path}.message: Required value"),
                &format!(
                    "{path}.status: Unsupported value: \"Maybe\": supported values: \"True\", \
                     \"False\", \"Unknown\""
                ),
            ],
        ),
        (
            json!({"conditions": [condition(json!({})), condition(json!({}))]}),
            &["status.conditions[1]: Duplicate value: {\"type\":\"Completed\"}"],
        ),
        (
            json!({"replicatedJobsStatus": [{"name": "a", "ready": 0, "succeeded": 0,
                   "failed": 0, "active": 0}]}),
            &["status.replicatedJobsStatus[0].suspended: Required value"],
        ),
        (
            json!({"currentInPlaceRestartAttempt": -1}),
            &["status.currentInPlaceRestartAttempt: Invalid value: -1: \
               status.currentInPlaceRestartAttempt in body should be greater than or equal to 0"],
        ),
    ];
    let old = created(&manifest(json!({})));
    for (status, want) in cases {
        let mut new = old.clone();
        new.insert("status".to_owned(), status.clone());
        let found = JOBSET.validate_status_update(&new, &old);
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, want, "{status}");
    }
}
