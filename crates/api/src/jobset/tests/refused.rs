use serde_json::{Value, json};

use super::{JOBSET, created, faults, faults_with, group, manifest, merge};
use crate::{
    builtin,
    decode::{self, FieldValidation},
    gates::Gates,
    jobset::validate_existing_claims,
    strategy::Strategy,
};

/// A group with these members.
fn group_with(name: &str, members: Value) -> Value {
    let mut group = group(name);
    merge(&mut group, members);
    group
}

fn check(cases: &[(Value, &[&str])]) {
    for (spec, want) in cases {
        assert_eq!(faults(&manifest(spec.clone())), *want, "{spec}");
    }
}

const UNCHECKED: &str = "<nil>: Invalid value: null: some validation rules were not checked \
                         because the object was invalid; correct the existing errors to complete \
                         validation";

// rule: jobset 1.2, jobset 1.3, jobset 1.4, jobset 1.7
#[test]
fn what_does_not_fit_the_schema_is_refused() {
    let nameless = group_with("a", json!({"name": null}));
    check(&[
        (
            json!({"replicatedJobs": [nameless]}),
            &["spec.replicatedJobs[0].name: Required value", UNCHECKED],
        ),
        (
            json!({"replicatedJobs": [{"name": "a"}]}),
            &["spec.replicatedJobs[0].template: Required value", UNCHECKED],
        ),
        (
            json!({"replicatedJobs": [{"name": "a", "template": {"spec": {}}}]}),
            &["spec.replicatedJobs[0].template.spec.template: Required value", UNCHECKED],
        ),
        (
            json!({"replicatedJobs": [group_with("a", json!({"replicas": -1}))]}),
            &["spec.replicatedJobs[0].replicas: Invalid value: -1: \
               spec.replicatedJobs[0].replicas in body should be greater than or equal to 0"],
        ),
        (
            json!({"replicatedJobs": [group("a"), group("b"), group("a")]}),
            &["spec.replicatedJobs[2]: Duplicate value: {\"name\":\"a\"}"],
        ),
        (
            json!({"successPolicy": {"operator": "Most"}}),
            &[
                "spec.successPolicy.operator: Unsupported value: \"Most\": supported values: \
                 \"All\", \"Any\"",
                UNCHECKED,
            ],
        ),
        (
            json!({"failurePolicy": {"restartStrategy": "Recycle", "rules": [{"name": "a"}]}}),
            &[
                "spec.failurePolicy.restartStrategy: Unsupported value: \"Recycle\": supported \
               values: \"Recreate\", \"BlockingRecreate\", \"InPlaceRestart\"",
                "spec.failurePolicy.rules[0].action: Required value",
                UNCHECKED,
            ],
        ),
        (
            json!({"failurePolicy": {"rules": [{"name": "a", "action": "Panic"}]}}),
            &[
                "spec.failurePolicy.rules[0].action: Unsupported value: \"Panic\": supported \
                 values: \"FailJobSet\", \"RestartJobSet\", \
                 \"RestartJobSetAndIgnoreMaxRestarts\", \"RestartJob\", \
                 \"RestartJobAndIgnoreMaxRestarts\", \"RestartReplicatedJob\", \"FailJob\"",
                UNCHECKED,
            ],
        ),
    ]);
}

// rule: jobset 1.2, jobset 1.3, jobset 1.7
#[test]
fn values_and_sizes_outside_of_the_schema_are_refused() {
    let six = ["a", "b", "c", "d", "e", "f"].map(|name| json!({"name": name, "status": "Ready"}));
    check(&[
        (
            json!({"startupPolicy": {"startupPolicyOrder": "Backwards"}}),
            &[
                "spec.startupPolicy.startupPolicyOrder: Unsupported value: \"Backwards\": supported \
               values: \"AnyOrder\", \"InOrder\"",
                UNCHECKED,
            ],
        ),
        (
            json!({"ttlSecondsAfterFinished": -5}),
            &["spec.ttlSecondsAfterFinished: Invalid value: -5: spec.ttlSecondsAfterFinished in \
               body should be greater than or equal to 0"],
        ),
        (
            json!({"replicatedJobs": [group("a"), group_with("b", json!({
                "dependsOn": [{"name": "a", "status": "Done"}]}))]}),
            &[
                "spec.replicatedJobs[1].dependsOn[0].status: Unsupported value: \"Done\": supported \
               values: \"Ready\", \"Complete\"",
                UNCHECKED,
            ],
        ),
        (
            json!({"replicatedJobs": [group("a"), group_with("b", json!({
                "dependsOn": six}))]}),
            &[
                "spec.replicatedJobs[1].dependsOn: Too many: 6: must have at most 5 items",
                UNCHECKED,
            ],
        ),
        (
            json!({"volumeClaimPolicies": vec![json!({"templates": []}); 51]}),
            &["spec.volumeClaimPolicies: Too many: 51: must have at most 50 items", UNCHECKED],
        ),
    ]);
}

// rule: jobset 1.2, jobset 1.7, jobset Q2
#[test]
fn the_rules_of_the_definition_are_checked() {
    let order = json!({"startupPolicyOrder": "InOrder"});
    let waiting = group_with("b", json!({"dependsOn": [{"name": "a", "status": "Ready"}]}));
    let claims = |templates: Value| json!({"volumeClaimPolicies": [templates], "replicatedJobs": [group("a")]});
    check(&[
        (
            json!({"startupPolicy": order, "replicatedJobs": [group("a"), waiting]}),
            &["spec: Invalid value: StartupPolicy and DependsOn APIs are mutually exclusive"],
        ),
        (
            json!({"startupPolicy": order, "replicatedJobs": null}),
            &["spec: Invalid value: \"object\": no such key: replicatedJobs evaluating rule: \
               StartupPolicy and DependsOn APIs are mutually exclusive"],
        ),
        (
            claims(json!({"templates": [{"metadata": {"name": "a", "namespace": "n"}}]})),
            &["spec.volumeClaimPolicies[0]: Invalid value: namespace cannot be set for \
               VolumeClaimPolicies templates"],
        ),
        (
            claims(json!({"retentionPolicy": {}})),
            &["spec.volumeClaimPolicies[0]: Invalid value: \"object\": no such key: templates \
               evaluating rule: namespace cannot be set for VolumeClaimPolicies templates"],
        ),
        (
            claims(json!({"templates": [{"spec": {}}]})),
            &["spec.volumeClaimPolicies[0]: Invalid value: \"object\": no such key: metadata \
               evaluating rule: namespace cannot be set for VolumeClaimPolicies templates"],
        ),
    ]);
}

const DNS1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or \
                       '-', start with an alphabetic character, and end with an alphanumeric \
                       character (e.g. 'my-name',  or 'abc-123', regex used for validation is \
                       '[a-z]([-a-z0-9]*[a-z0-9])?')";

// rule: jobset 1.2, jobset 1.3, jobset 1.8
#[test]
fn names_must_fit_into_those_made_of_them() {
    let long = "a".repeat(64);
    let job = "b".repeat(58);
    let pod = "b".repeat(51);
    let named = |name: &str| json!({"replicatedJobs": [group(name)]});
    let subdomain = format!("spec.network.subdomain: Invalid value: {long:?}: ");
    check(&[
        (
            json!({"network": {"subdomain": long}}),
            &[&format!(
                "{subdomain}.spec.network.subdomain is too long, must be less than 63 characters"
            )],
        ),
        (
            json!({"network": {"subdomain": "1a"}}),
            &[&format!("spec.network.subdomain: Invalid value: \"1a\": {DNS1035}")],
        ),
        (
            named(&job),
            &[&format!(
                "spec.replicatedJobs[0].name: Invalid value: \"js-{job}-0\": JobSet name is \
                     too long, pod names generated for this JobSet will exceed 63 characters"
            )],
        ),
        (
            named(&format!("{job}b")),
            &[
                &format!(
                    "spec.replicatedJobs[0].name: Invalid value: \"js-{job}b-0\": JobSet name is \
                     too long, job names generated for this JobSet will exceed 63 characters"
                ),
                &format!(
                    "spec.replicatedJobs[0].name: Invalid value: \"js-{job}b-0\": JobSet name is \
                     too long, pod names generated for this JobSet will exceed 63 characters"
                ),
            ],
        ),
        (
            named(&pod),
            &[&format!(
                "spec.replicatedJobs[0].name: Invalid value: \"js-{pod}-0\": JobSet name is too \
                 long, pod names generated for this JobSet will exceed 63 characters"
            )],
        ),
        (named(&pod[..50]), &[]),
        (
            json!({"replicatedJobs": [group_with("a", json!({"groupName": long}))]}),
            &[&format!(
                "spec.replicatedJobs[0].groupName: Invalid value: {long:?}: \
                 .spec.replicatedJob[].groupName is too long, must be less than 63 characters"
            )],
        ),
        (
            json!({"replicatedJobs": [group_with("a", json!({"groupName": "A"}))]}),
            &[&format!("spec.replicatedJobs[0].groupName: Invalid value: \"A\": {DNS1035}")],
        ),
        (
            json!({"managedBy": "nobody"}),
            &[
                "spec.managedBy: Invalid value: \"nobody\": must be a domain-prefixed path (such as \
               \"acme.io/foo\")",
            ],
        ),
        (
            json!({"managedBy": format!("acme.io/{long}")}),
            &["spec.managedBy: Too long: may not be more than 63 bytes"],
        ),
    ]);
}

// rule: jobset 1.2, jobset 1.3, jobset 1.8, jobset Q28
#[test]
fn groups_are_known_and_small_enough() {
    let many = json!({"replicas": 65536});
    let mut big = group_with("a", many);
    big["template"]["spec"]["parallelism"] = 32768.into();
    let waiting =
        |name: &str| group_with("b", json!({"dependsOn": [{"name": name, "status": "Ready"}]}));
    check(&[
        (
            json!({"replicatedJobs": [big]}),
            &["<nil>: Internal error: the product of replicas and parallelism must not exceed \
               2147483647 for replicatedJob 'a'"],
        ),
        (
            json!({"replicatedJobs": [group_with("a", json!({"dependsOn": []}))]}),
            &["<nil>: Internal error: DependsOn can't be set for the first ReplicatedJob"],
        ),
        (
            json!({"replicatedJobs": [group("a"), waiting("c"), group("c")]}),
            &["<nil>: Internal error: replicatedJob: b cannot depend on replicatedJob: c"],
        ),
        (
            json!({"successPolicy": {"operator": "Any", "targetReplicatedJobs": ["x", "driver"]}}),
            &["<nil>: Internal error: invalid replicatedJob name 'x' does not appear in \
               .spec.ReplicatedJobs"],
        ),
    ]);
}

// rule: jobset 1.4
#[test]
fn rules_of_failure_policies_are_checked() {
    let long = "r".repeat(129);
    let rules = |rules: Value| json!({"failurePolicy": {"rules": rules}});
    let bad_name = |name: &str| {
        format!(
            "<nil>: Internal error: invalid failure policy rule name '{name}', a failure policy \
             rule name must start with an alphabetic character, optionally followed by a string \
             of alphanumeric characters or '_,:', and must end with an alphanumeric character or \
             '_'"
        )
    };
    let fail = |name: &str| json!({"name": name, "action": "FailJobSet"});
    check(&[
        (
            rules(json!([fail(&long)])),
            &["<nil>: Internal error: invalid failure policy rule name of length 129, the rule \
               name must be at least 1 characters long and at most 128 characters long"],
        ),
        (rules(json!([fail("1a")])), &[&bad_name("1a")]),
        (rules(json!([fail("a,")])), &[&bad_name("a,")]),
        (rules(json!([fail("a-b")])), &[&bad_name("a-b")]),
        (rules(json!([fail("a,b:c_")])), &[]),
        (
            rules(json!([fail("a"), fail("b"), fail("a")])),
            &[
                "<nil>: Internal error: rule names are not unique, rules with indices [0 2] all have \
               the same name 'a'",
            ],
        ),
        (
            rules(json!([{"name": "a", "action": "FailJobSet", "targetReplicatedJobs": ["x"],
                          "onJobFailureReasons": ["Boredom"]}])),
            &[
                "<nil>: Internal error: invalid replicatedJob name 'x' in failure policy does not \
               appear in .spec.ReplicatedJobs",
                "<nil>: Internal error: invalid job failure reason 'Boredom' in failure policy is \
               not a recognized job failure reason",
            ],
        ),
        (
            json!({"replicatedJobs": [group_with("a", json!({"replicas": 1025}))],
                   "failurePolicy": {"rules": [{"name": "a", "action": "RestartJob"}]}}),
            &[
                "<nil>: Internal error: JobSet cannot have a failure policy rule with RestartJob or \
               RestartJobAndIgnoreMaxRestarts action and a replicated job with replicas > 1024",
            ],
        ),
        (
            json!({"replicatedJobs": [group_with("a", json!({"replicas": 1025}))],
                   "failurePolicy": {"rules": [{"name": "a", "action": "RestartReplicatedJob"}]}}),
            &["<nil>: Internal error: JobSet cannot have a failure policy rule with \
               RestartReplicatedJob action and a replicated job with replicas > 1024"],
        ),
    ]);
}

// rule: jobset 0.2, jobset 1.2, jobset 1.4
#[test]
fn features_that_are_off_are_refused() {
    let off =
        Gates { restart_job: false, in_place_restart: false, elastic_job_set: false, ..Gates::ALL };
    let cases = [
        (
            json!({"failurePolicy": {"restartStrategy": "InPlaceRestart"}}),
            "<nil>: Internal error: InPlaceRestart restart strategy cannot be set when \
             InPlaceRestart feature gate is disabled",
        ),
        (
            json!({"failurePolicy": {"rules": [{"name": "-", "action": "RestartJob"}]}}),
            "<nil>: Internal error: RestartJob and RestartJobAndIgnoreMaxRestarts failure policy \
             actions are not allowed when RestartJob feature gate is disabled",
        ),
        (
            json!({"failurePolicy": {"rules": [{"name": "a", "action": "RestartReplicatedJob"}]}}),
            "<nil>: Internal error: RestartReplicatedJob failure policy action is not allowed when \
             RestartJob feature gate is disabled",
        ),
    ];
    for (spec, want) in cases {
        assert_eq!(faults_with(&manifest(spec), off), [want]);
    }
}

// rule: jobset 1.3, jobset 4.2
#[test]
fn in_place_restart_needs_pods_that_stay() {
    let spec = json!({
        "failurePolicy": {"restartStrategy": "InPlaceRestart"},
        "replicatedJobs": [{"name": "w", "template": {"spec": {
            "podReplacementPolicy": "TerminatingOrFailed", "completions": 2,
            "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}}}],
    });
    let path = "spec.replicatedJobs[0].template.spec";
    assert_eq!(
        faults(&manifest(spec)),
        [
            format!(
                "{path}.backoffLimit: Invalid value: null: replicatedJob w: must be set to \
                 2147483647 (MaxInt32) when in-place restart is enabled"
            ),
            format!(
                "{path}.podReplacementPolicy: Invalid value: \"TerminatingOrFailed\": \
                 replicatedJob w: must be set to Failed when in-place restart is enabled"
            ),
            format!(
                "{path}.completions: Invalid value: 2: replicatedJob w: completions and \
                 parallelism must be set and equal to each other when in-place restart is enabled"
            ),
        ]
    );
}

// rule: jobset 1.6, jobset Q22
#[test]
fn a_coordinator_is_a_pod_of_the_set() {
    let coordinator = |value: Value| json!({"coordinator": value});
    let mut plain = group("driver");
    plain["template"]["spec"]["completionMode"] = "NonIndexed".into();
    let named = "a".repeat(40);
    check(&[
        (
            coordinator(json!({"replicatedJob": "x"})),
            &["<nil>: Internal error: coordinator replicatedJob x does not exist"],
        ),
        (
            coordinator(json!({"replicatedJob": "driver", "jobIndex": 1})),
            &["<nil>: Internal error: coordinator job index 1 is invalid for replicatedJob driver"],
        ),
        (
            coordinator(json!({"replicatedJob": "driver", "jobIndex": -1})),
            &["<nil>: Internal error: coordinator job index -1 is invalid for replicatedJob \
               driver"],
        ),
        (
            coordinator(json!({"replicatedJob": "driver", "podIndex": 2})),
            &[
                "<nil>: Internal error: coordinator pod index 2 is invalid for replicatedJob driver \
               job index 0",
            ],
        ),
        (
            json!({"replicatedJobs": [plain], "coordinator": {"replicatedJob": "driver"}}),
            &[
                "<nil>: Internal error: job for coordinator pod must be indexed completion mode, and \
               completions number must be set",
            ],
        ),
        (
            json!({"replicatedJobs": [group(&named)], "network": {"subdomain": named},
                   "coordinator": {"replicatedJob": named}}),
            &[&format!(
                "<nil>: Internal error: spec will lead to invalid label value \
                 \"js-{named}-0-0.{named}\" for coordinator label \
                 \"jobset.sigs.k8s.io/coordinator\" (long JobSet / ReplicatedJob / SubDomain \
                 name?): must be no more than 63 bytes"
            )],
        ),
    ]);
}

// rule: jobset 1.7
#[test]
fn claims_are_named_once_and_mounted() {
    let long = "d".repeat(61);
    let claims = |names: &[&str]| {
        let templates: Vec<Value> =
            names.iter().map(|name| json!({"metadata": {"name": name}})).collect();
        let mounts: Vec<Value> = names
            .iter()
            .enumerate()
            .map(|(at, name)| json!({"name": name, "mountPath": format!("/{at}")}))
            .collect();
        let mut job = group("a");
        job["template"]["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] =
            mounts.into();
        json!({"replicatedJobs": [job], "volumeClaimPolicies": [{"templates": templates}]})
    };
    let path = "spec.volumeClaimPolicies[0].template";
    let mut clash = claims(&["data"]);
    clash["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["volumes"] =
        json!([{"name": "x", "emptyDir": {}}, {"name": "data", "emptyDir": {}}]);
    check(&[
        (
            claims(&["data", "data"]),
            &[&format!(
                "{path}[1].name: Invalid value: \"data\": names must be unique for \
                 VolumeClaimPolicies template"
            )],
        ),
        (
            claims(&[&long]),
            &[&format!(
                "{path}[0].name: Invalid value: {long:?}: VolumeClaimPolicies template name is \
                 too long"
            )],
        ),
        (
            clash,
            &[
                "spec.replicatedJobs[0].template.spec.template.spec.volumes[1].name: Invalid value: \
               \"data\": volume name conflicts with VolumeClaimPolicy template name: data",
            ],
        ),
    ]);
    let mut unmounted = claims(&["data"]);
    unmounted["replicatedJobs"] = json!([group("a")]);
    let found = faults(&manifest(unmounted));
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("spec.replicatedJobs: Invalid value: [{"), "{found:?}");
    let end = "replicatedJob containers don't have a matching volumeMount: data from \
               VolumeClaimPolicies";
    assert!(found[0].ends_with(end), "{found:?}");
}

#[test]
fn limits_of_rules_name_a_rule_and_a_number() {
    let mut object = manifest(json!({"failurePolicy": {"rules": [
        {"name": "workers", "action": "RestartJobSet"}]}}));
    object["metadata"]["annotations"] = json!({
        "lockstep.dev/max-restarts.workers": "3", "other": "x",
    });
    assert_eq!(faults(&object), Vec::<String>::new());
    object["metadata"]["annotations"] = json!({
        "lockstep.dev/max-restarts.workers": "-1", "lockstep.dev/max-restarts.x": "1",
    });
    assert_eq!(
        faults(&object),
        [
            "metadata.annotations[lockstep.dev/max-restarts.workers]: Invalid value: \"-1\": must \
             be a number of restarts, such as \"3\"",
            "metadata.annotations[lockstep.dev/max-restarts.x]: Invalid value: \"1\": must end \
             with the name of a rule of spec.failurePolicy",
        ]
    );
}

#[test]
fn values_of_the_wrong_type_are_refused_with_their_path() {
    let registry = builtin::registry();
    let resource = registry.get(super::super::GROUP, "v1alpha2", "jobsets").unwrap();
    let body = manifest(json!({"suspend": "yes"})).to_string();
    let refused = decode::object(resource, body.as_bytes(), FieldValidation::Strict).unwrap_err();
    assert_eq!(refused.code, 400);
    assert_eq!(
        refused.message,
        "JobSet in version \"v1alpha2\" cannot be handled as a JobSet: json: cannot unmarshal \
         string into Go struct field JobSetSpec.spec.suspend of type bool"
    );
}

#[test]
fn a_created_set_passes_its_own_update() {
    let old = created(&manifest(json!({})));
    assert_eq!(JOBSET.validate_update(&old, &old), vec![]);
}

// rule: jobset 1.7, jobset Q15
#[test]
fn claims_that_exist_must_be_what_is_wanted_and_be_kept() {
    let spec = json!({"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}});
    let set = |kept: &str| {
        let mut object = manifest(json!({"volumeClaimPolicies": [{
            "templates": [{"metadata": {"name": "data"}, "spec": spec}],
            "retentionPolicy": {"whenDeleted": kept},
        }]}));
        object["metadata"]["namespace"] = json!("ns");
        object.as_object().unwrap().clone()
    };
    let faults = |kept: &str, existing: &Value| -> Vec<String> {
        let find = |name: &str| {
            assert_eq!(name, "data-js");
            json!({"spec": existing}).as_object().cloned()
        };
        let errors = validate_existing_claims(&set(kept), find);
        errors.iter().map(ToString::to_string).collect()
    };
    assert!(validate_existing_claims(&set("Delete"), |_| None).is_empty(), "there is none");
    assert!(faults("Retain", &spec).is_empty());
    assert_eq!(
        faults("Delete", &spec),
        ["spec.volumeClaimPolicies[0].retentionPolicy.whenDeleted: Invalid value: \"Delete\": \
          retentionPolicy must be retain when PVC exists"]
    );
    // What was filled in since counts: the template has to spell it out.
    let mut bound = spec.clone();
    bound["volumeName"] = json!("pvc-1");
    let found = faults("Retain", &bound);
    assert_eq!(found.len(), 1);
    let (path, why) = found[0].split_once(": Invalid value: ").unwrap();
    assert_eq!(path, "spec.volumeClaimPolicies[0].template[0].spec");
    assert!(why.ends_with(": spec does not match existing PVC data-js in namespace ns"), "{why}");
}
