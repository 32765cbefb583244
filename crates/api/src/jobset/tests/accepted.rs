use serde_json::{Value, json};

use super::{JOBSET, created, faults, group, manifest};
use crate::{builtin, decode, json::at, strategy::Strategy};

// rule: jobset 1.2, jobset 1.3, jobset 1.4
#[test]
fn what_is_left_out_is_filled_in() {
    let object = created(&manifest(json!({
        "failurePolicy": {"rules": [{"action": "FailJobSet"}, {"name": "x", "action": "FailJob"}]},
        "volumeClaimPolicies": [{"templates": [{"metadata": {"name": "data"}}]}],
    })));
    let cases: [(&[&str], Value); 8] = [
        (&["successPolicy"], json!({"operator": "All"})),
        (&["startupPolicy"], json!({"startupPolicyOrder": "AnyOrder"})),
        (&["network"], json!({"enableDNSHostnames": true, "publishNotReadyAddresses": true})),
        (&["failurePolicy", "restartStrategy"], json!("Recreate")),
        (&["suspend"], Value::Null),
        (&["managedBy"], Value::Null),
        (&["ttlSecondsAfterFinished"], Value::Null),
        (&["coordinator"], Value::Null),
    ];
    let spec = object["spec"].as_object().unwrap();
    for (path, want) in cases {
        assert_eq!(at(spec, path).cloned().unwrap_or_default(), want, "{path:?}");
    }
    let job = &spec["replicatedJobs"][0];
    assert_eq!((&job["groupName"], &job["replicas"]), (&json!("default"), &json!(1)));
    assert_eq!(job["template"]["spec"]["completionMode"], "Indexed");
    assert_eq!(job["template"]["spec"]["template"]["spec"]["restartPolicy"], "OnFailure");
    let rules = &spec["failurePolicy"]["rules"];
    assert_eq!((&rules[0]["name"], &rules[1]["name"]), (&json!("failurePolicyRule0"), &json!("x")));
    let retention = &spec["volumeClaimPolicies"][0]["retentionPolicy"];
    assert_eq!(*retention, json!({"whenDeleted": "Delete"}));
}

// rule: jobset 1.3
#[test]
fn what_is_given_is_kept() {
    let mut workers = group("workers");
    workers["replicas"] = 0.into();
    workers["groupName"] = "g".into();
    workers["template"]["spec"]["completionMode"] = "NonIndexed".into();
    workers["template"]["spec"]["template"]["spec"]["restartPolicy"] = "Never".into();
    workers["dependsOn"] = json!([]);
    let ports = json!([{"containerPort": 80}]);
    workers["template"]["spec"]["template"]["spec"]["containers"][0]["ports"] = ports;
    let object = created(&manifest(json!({
        "replicatedJobs": [group("driver"), workers], "suspend": false,
        "network": {"enableDNSHostnames": false, "subdomain": "s"},
    })));
    let job = &object["spec"]["replicatedJobs"][1];
    assert_eq!((&job["replicas"], &job["groupName"]), (&json!(0), &json!("g")));
    assert_eq!(job["dependsOn"], json!([]));
    assert_eq!(job["template"]["spec"]["completionMode"], "NonIndexed");
    let pod = &job["template"]["spec"]["template"]["spec"];
    assert_eq!(pod["restartPolicy"], "Never");
    assert_eq!(pod["containers"][0]["ports"][0]["protocol"], "TCP");
    assert_eq!(object["spec"]["suspend"], false);
    assert_eq!(object["spec"]["network"]["enableDNSHostnames"], false);
}

// rule: jobset 1.1
#[test]
fn metadata_of_templates_is_cut_down() {
    let mut job = group("a");
    job["template"]["metadata"] = json!({"labels": {"a": "b"}, "uid": "x"});
    job["template"]["spec"]["template"]["metadata"] =
        json!({"annotations": {"a": "b"}, "creationTimestamp": null, "generation": 3});
    let registry = builtin::registry();
    let resource = registry.get(super::super::GROUP, "v1alpha2", "jobsets").unwrap();
    let body = manifest(json!({"replicatedJobs": [job]})).to_string();
    let decoded = decode::object(resource, body.as_bytes(), decode::FieldValidation::Warn).unwrap();
    let path = "spec.replicatedJobs[0].template";
    assert_eq!(
        decoded.warnings,
        [
            format!("unknown field \"{path}.metadata.uid\""),
            format!("unknown field \"{path}.spec.template.metadata.creationTimestamp\""),
            format!("unknown field \"{path}.spec.template.metadata.generation\""),
        ]
    );
    let job = &decoded.object["spec"]["replicatedJobs"][0];
    assert_eq!(job["template"]["metadata"], json!({"labels": {"a": "b"}}));
}

// rule: jobset 1.2, jobset 1.3, jobset 1.4, jobset 1.6, jobset 1.7, jobset Q30
#[test]
fn manifests_of_every_feature_are_accepted() {
    let mut mounting = group("workers");
    mounting["template"]["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] =
        json!([{"name": "data", "mountPath": "/data"}]);
    let mut waiting = group("workers");
    waiting["dependsOn"] = json!([{"name": "driver", "status": "Ready"}]);
    let mut itself = group("workers");
    itself["dependsOn"] = json!([{"name": "workers", "status": "Complete"}]);
    let mut in_place = group("workers");
    in_place["template"]["spec"]["backoffLimit"] = i32::MAX.into();
    in_place["template"]["spec"]["podReplacementPolicy"] = "Failed".into();
    let actions = [
        "FailJobSet",
        "RestartJobSet",
        "RestartJobSetAndIgnoreMaxRestarts",
        "RestartJob",
        "RestartJobAndIgnoreMaxRestarts",
        "RestartReplicatedJob",
        "FailJob",
    ];
    let rules: Vec<Value> = actions
        .iter()
        .map(|action| {
            json!({"name": action, "action": action,
            "onJobFailureReasons": ["BackoffLimitExceeded", "DeadlineExceeded", "FailedIndexes",
                "MaxFailedIndexesExceeded", "PodFailurePolicy"],
            "onJobFailureMessagePatterns": ["out of .*"], "targetReplicatedJobs": ["workers"]})
        })
        .collect();
    let cases = [
        json!({}),
        json!({"replicatedJobs": null}),
        json!({"network": {}}),
        json!({"network": {"subdomain": "net"}, "managedBy": "acme.io/controller"}),
        json!({"successPolicy": {"operator": "Any", "targetReplicatedJobs": ["driver"]}}),
        json!({"startupPolicy": {"startupPolicyOrder": "InOrder"}}),
        json!({"failurePolicy": {"maxRestarts": 3, "restartStrategy": "BlockingRecreate",
                                 "rules": rules}}),
        json!({"failurePolicy": {"maxRestarts": -1}}),
        json!({"failurePolicy": {"restartStrategy": "InPlaceRestart"},
               "replicatedJobs": [in_place]}),
        json!({"coordinator": {"replicatedJob": "workers", "podIndex": 1}}),
        json!({"ttlSecondsAfterFinished": 0, "suspend": true}),
        json!({"replicatedJobs": [group("driver"), waiting]}),
        json!({"replicatedJobs": [group("driver"), itself]}),
        json!({"replicatedJobs": [mounting], "volumeClaimPolicies": [
            {"templates": [{"metadata": {"name": "data"}}],
             "retentionPolicy": {"whenDeleted": "Retain"}}]}),
    ];
    for spec in cases {
        assert_eq!(faults(&manifest(spec.clone())), Vec::<String>::new(), "{spec}");
    }
}

#[test]
fn templates_of_which_no_job_can_be_made_are_taken_with_a_warning() {
    let template = |spec: Value| {
        json!({"replicatedJobs": [
            {"name": "good", "template": {"spec": {"template": {"spec": {
                "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}},
            {"name": "bad", "template": {"spec": spec}},
        ]})
    };
    let pod = |policy: &str| json!({"spec": {"restartPolicy": policy, "containers": [{"name": "c", "image": "i"}]}});
    let unordered = json!([{"action": "FailJob",
                            "onExitCodes": {"operator": "In", "values": [137, 42]}}]);
    let cases = [
        (
            json!({"template": pod("Never"), "podFailurePolicy": {"rules": unordered}}),
            "spec.replicatedJobs[1].template.spec.podFailurePolicy.rules[0].onExitCodes.values: \
             Invalid value: [137,42]: must be ordered",
        ),
        (
            json!({"template": pod("Always")}),
            "spec.replicatedJobs[1].template.spec.template.spec.restartPolicy: Required value: \
             valid values: \"OnFailure\", \"Never\"",
        ),
        (
            json!({"template": pod("Never"), "backoffLimit": -1}),
            "spec.replicatedJobs[1].template.spec.backoffLimit: Invalid value: -1: must be \
             greater than or equal to 0",
        ),
    ];
    for (spec, want) in cases {
        let manifest = manifest(template(spec));
        assert_eq!(faults(&manifest), Vec::<String>::new(), "{want}");
        let object = created(&manifest);
        assert_eq!(JOBSET.warnings(&object, None), [want]);
        let lint: Vec<String> = JOBSET.lint(&object).iter().map(ToString::to_string).collect();
        assert_eq!(lint, [want]);
    }
}

#[test]
fn whatever_stands_for_a_template_nothing_panics_over_it() {
    let policies = json!([{"templates": [{"metadata": {"name": "data"}}, 7]}, "x"]);
    for odd in [json!(null), json!("x"), json!(7), json!([])] {
        for template in [
            odd.clone(),
            json!({"metadata": odd, "spec": odd}),
            json!({"spec": {"template": odd}}),
            json!({"spec": {"template": {"metadata": odd, "spec": odd}}}),
            json!({"spec": {"template": {"spec": {"containers": odd, "volumes": odd}}}}),
        ] {
            for claims in [&policies, &odd] {
                let groups = json!([{"name": odd, "template": template}, odd]);
                let spec = json!({"replicatedJobs": groups, "volumeClaimPolicies": claims});
                let object = json!({"metadata": {"name": "js"}, "spec": spec});
                let Value::Object(object) = object else { return };
                JOBSET.lint(&object);
            }
        }
    }
}

#[test]
fn a_template_may_mount_the_claims_of_its_set() {
    let mut one = group("a");
    one["template"]["spec"]["template"]["spec"] = json!({
        "restartPolicy": "Never",
        "containers": [{"name": "c", "image": "i",
                        "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
    });
    let object = created(&manifest(json!({
        "replicatedJobs": [one],
        "volumeClaimPolicies": [{"templates": [{"metadata": {"name": "data"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]}],
    })));
    let said: Vec<String> = JOBSET.lint(&object).iter().map(ToString::to_string).collect();
    assert_eq!(said, Vec::<String>::new());
}

// rule: jobset 1.4
#[test]
fn an_expression_that_does_not_compile_is_taken_with_a_warning() {
    let spec = json!({"failurePolicy": {"rules": [
        {"name": "a", "action": "FailJobSet", "onJobFailureMessagePatterns": ["^ok$", "a(b"]},
    ]}});
    assert_eq!(faults(&manifest(spec.clone())), Vec::<String>::new());
    let object = created(&manifest(spec));
    let want = "spec.failurePolicy.rules[0].onJobFailureMessagePatterns[1]: Invalid value: \
                \"a(b\": must be a regular expression, or it never matches: missing closing ): `a(b`";
    assert_eq!(JOBSET.warnings(&object, None), [want]);
    assert_eq!(JOBSET.warnings(&object, Some(&object)), Vec::<String>::new());
    let lint: Vec<String> = JOBSET.lint(&object).iter().map(ToString::to_string).collect();
    assert_eq!(lint, [want]);
}
