use serde_json::{Value, json};

use super::{change_faults, faults};
use crate::kueue::{CLUSTER_QUEUE, LOCAL_QUEUE, PRIORITY_CLASS, RESOURCE_FLAVOR};

/// A group of one flavor and one resource with this quota.
fn cpu(quota: Value) -> Value {
    let mut quota = quota;
    quota["name"] = "cpu".into();
    json!({"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [quota]}]})
}

fn group(flavors: &[&str], resources: &[&str]) -> Value {
    let quotas: Vec<Value> =
        resources.iter().map(|name| json!({"name": name, "nominalQuota": "1"})).collect();
    let flavors: Vec<Value> =
        flavors.iter().map(|name| json!({"name": name, "resources": quotas})).collect();
    json!({"coveredResources": resources, "flavors": flavors})
}

/// Said beside faults that keep rules from being looked at.
const UNCHECKED: &str = "<nil>: Invalid value: null: some validation rules were not checked \
                         because the object was invalid; correct the existing errors to complete \
                         validation";

fn check(cases: &[(Value, &[&str])]) {
    for (spec, want) in cases {
        assert_eq!(faults(&CLUSTER_QUEUE, json!({"spec": spec})), *want, "{spec}");
    }
}

// rule: queueing 1.4.1
#[test]
fn quota_is_not_negative_and_limits_need_a_cohort() {
    let first = "spec.resourceGroups[0].flavors[0].resources[0]";
    let quota = |more: Value| {
        let mut quota = more;
        quota["nominalQuota"] = "5".into();
        json!([cpu(quota)])
    };
    check(&[
        (json!({"resourceGroups": quota(json!({}))}), &[]),
        (
            json!({"resourceGroups": [cpu(json!({"nominalQuota": "-1"}))]}),
            &[&format!(
                "{first}.nominalQuota: Invalid value: \"-1\": must be greater than or equal to 0"
            )],
        ),
        (
            json!({"resourceGroups": quota(json!({"borrowingLimit": "1"}))}),
            &["spec: Invalid value: borrowingLimit must be nil when cohort is empty"],
        ),
        (
            json!({"cohortName": "", "resourceGroups": quota(json!({"borrowingLimit": "1"}))}),
            &["spec.cohortName: Invalid value: \"\": spec.cohortName in body should match \
                 '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'"],
        ),
        (
            json!({"resourceGroups": quota(json!({"lendingLimit": "1"}))}),
            &[&format!(
                "{first}.lendingLimit: Invalid value: \"1\": must be nil when cohort is empty"
            )],
        ),
        (
            json!({"cohortName": "c", "resourceGroups": quota(json!({"lendingLimit": "6"}))}),
            &[&format!(
                "{first}.lendingLimit: Invalid value: \"6\": must be less than or equal to the \
                 nominalQuota"
            )],
        ),
        (
            json!({"cohortName": "c", "resourceGroups":
                quota(json!({"borrowingLimit": "-1", "lendingLimit": "-1"}))}),
            &[
                &format!(
                    "{first}.borrowingLimit: Invalid value: \"-1\": must be greater than or equal \
                     to 0"
                ),
                &format!(
                    "{first}.lendingLimit: Invalid value: \"-1\": must be greater than or equal to \
                     0"
                ),
            ],
        ),
        (
            json!({"cohortName": "c", "resourceGroups":
                quota(json!({"borrowingLimit": "0", "lendingLimit": "5"}))}),
            &[],
        ),
    ]);
}

// rule: queueing 1.4.1
#[test]
fn each_flavor_lists_the_covered_resources_in_their_order() {
    let swapped = json!({"coveredResources": ["cpu", "memory"], "flavors": [{"name": "f",
        "resources": [{"name": "memory", "nominalQuota": 1}, {"name": "cpu", "nominalQuota": 1}]}]});
    let fewer = json!({"coveredResources": ["cpu", "memory"], "flavors": [{"name": "f",
        "resources": [{"name": "cpu", "nominalQuota": 1}]}]});
    let name = "spec.resourceGroups[0].flavors[0].resources";
    let why = "must match the name in coveredResources";
    check(&[
        (
            json!({"resourceGroups": [swapped]}),
            &[
                &format!("{name}[0].name: Invalid value: \"memory\": {why}"),
                &format!("{name}[1].name: Invalid value: \"cpu\": {why}"),
            ],
        ),
        (
            json!({"resourceGroups": [fewer]}),
            &["spec.resourceGroups[0]: Invalid value: flavors must have the same number of \
               resources as the coveredResources"],
        ),
        (
            json!({"resourceGroups": [group(&["f"], &["cpu"]), group(&["f"], &["cpu"])]}),
            &[
                "spec.resourceGroups[1].coveredResources[0]: Duplicate value: \"cpu\"",
                "spec.resourceGroups[1].flavors[0].name: Duplicate value: \"f\"",
            ],
        ),
        (
            json!({"resourceGroups": [group(&["f", "f"], &["cpu"])]}),
            &["spec.resourceGroups[0].flavors[1]: Duplicate value: {\"name\":\"f\"}"],
        ),
        (
            json!({"resourceGroups": [group(&["f"], &["@cpu"])]}),
            &[
                "spec.resourceGroups[0].coveredResources[0]: Invalid value: \"@cpu\": name part must \
               consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
               alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
               validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            ],
        ),
    ]);
}

// rule: queueing 1.4.1
#[test]
fn there_are_not_too_many_flavors_and_resources() {
    let names = |prefix: &str, count: usize| -> Vec<String> {
        (0..count).map(|n| format!("{prefix}{n}")).collect()
    };
    let group_of = |at: usize, flavors: usize, resources: usize| {
        let flavors = names(&format!("f{at}-"), flavors);
        let resources = names(&format!("r{at}-"), resources);
        let text = |of: &[String]| of.to_vec();
        let (flavors, resources) = (text(&flavors), text(&resources));
        let flavors: Vec<&str> = flavors.iter().map(String::as_str).collect();
        let resources: Vec<&str> = resources.iter().map(String::as_str).collect();
        group(&flavors, &resources)
    };
    let five = |flavors, resources| -> Vec<Value> {
        (0..5).map(|at| group_of(at, flavors, resources)).collect()
    };
    check(&[
        (
            json!({"resourceGroups": five(60, 1)}),
            &["spec.resourceGroups: Invalid value: 300: total number of flavors across all \
               resourceGroups must be ≤ 256, got 300"],
        ),
        (
            json!({"resourceGroups": five(1, 60)}),
            &["spec.resourceGroups: Invalid value: 300: total number of covered resources across \
               all resourceGroups must be ≤ 256, got 300"],
        ),
        (
            json!({"resourceGroups": [group_of(0, 32, 32)]}),
            &[
                "spec.resourceGroups[0]: Invalid value: 1024: number of flavor-resource combinations \
               in a resourceGroup must be ≤ 512, got 1024",
            ],
        ),
    ]);
    let many = vec![group(&["f"], &["cpu"]); 17];
    let got = faults(&CLUSTER_QUEUE, json!({"spec": {"resourceGroups": many}}));
    assert_eq!(got[0], "spec.resourceGroups: Too many: 17: must have at most 16 items");
}

// rule: queueing 1.4.1
#[test]
fn policies_have_their_values_and_fit_together() {
    let values = |field: &str, value: &str, known: &str| {
        format!("spec.{field}: Unsupported value: \"{value}\": supported values: {known}")
    };
    let fifo = values("queueingStrategy", "LIFO", "\"StrictFIFO\", \"BestEffortFIFO\"");
    let stop = values("stopPolicy", "Stop", "\"None\", \"Hold\", \"HoldAndDrain\"");
    let borrow =
        values("flavorFungibility.whenCanBorrow", "Borrow", "\"MayStopSearch\", \"TryNextFlavor\"");
    let within = values(
        "preemption.withinClusterQueue",
        "Any",
        "\"Never\", \"LowerPriority\", \"LowerOrNewerEqualPriority\"",
    );
    let next = "TryNextFlavor";
    check(&[
        (json!({"queueingStrategy": "LIFO"}), &[&fifo, UNCHECKED]),
        (json!({"stopPolicy": "Stop"}), &[&stop, UNCHECKED]),
        (json!({"flavorFungibility": {"whenCanBorrow": "Borrow"}}), &[&borrow, UNCHECKED]),
        (json!({"preemption": {"withinClusterQueue": "Any"}}), &[&within, UNCHECKED]),
        (
            json!({"flavorFungibility": {"preference": "PreemptionOverBorrowing"}}),
            &["spec.flavorFungibility: Invalid value: preference can only be set when both \
               whenCanBorrow and whenCanPreempt are TryNextFlavor"],
        ),
        (
            json!({"flavorFungibility": {"preference": "PreemptionOverBorrowing",
                "whenCanBorrow": next, "whenCanPreempt": next}}),
            &[],
        ),
        (
            json!({"preemption": {"borrowWithinCohort": {"policy": "LowerPriority"}}}),
            &["spec.preemption: Invalid value: reclaimWithinCohort=Never and \
               borrowWithinCohort.Policy!=Never"],
        ),
        (
            json!({"preemption": {"reclaimWithinCohort": "Any",
                "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": 5}}}),
            &[],
        ),
        (
            json!({"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}),
            &["spec.namespaceSelector.matchExpressions[0].values: Required value: must be \
               specified when `operator` is 'In' or 'NotIn'"],
        ),
        (
            json!({"resourceGroups": [group(&["f"], &["cpu"])],
                "admissionChecksStrategy": {"admissionChecks": [
                    {"name": "a", "onFlavors": ["f", "g"]}]}}),
            &["spec.admissionChecksStrategy.admissionChecks[0].onFlavors[1]: Unsupported value: \
               \"g\": supported values: \"f\""],
        ),
    ]);
}

// rule: queueing 1.4.1, queueing 1.5.1
#[test]
fn a_share_is_nothing_or_more_than_nothing() {
    let sharing = |weight: &str| json!({"spec": {"fairSharing": {"weight": weight}}});
    let negative = "spec.fairSharing: Invalid value: \"-1\": must be greater than or equal to 0";
    let tiny = "spec.fairSharing: Invalid value: \"1n\": When not 0, weight must be > 10e-9";
    for kind in [&CLUSTER_QUEUE, &LOCAL_QUEUE] {
        assert_eq!(faults(kind, sharing("-1")), [negative]);
        assert_eq!(faults(kind, sharing("1n")), [tiny]);
        for fine in ["0", "2n", "1", "2500m"] {
            assert_eq!(faults(kind, sharing(fine)), Vec::<String>::new(), "{fine}");
        }
    }
}

// rule: queueing 1.5.1
#[test]
fn a_local_queue_stays_at_its_cluster_queue() {
    let queue = |name: &str| json!({"spec": {"clusterQueue": name}});
    assert_eq!(
        change_faults(&LOCAL_QUEUE, &queue("a"), &queue("b")),
        ["spec.clusterQueue: Invalid value: field is immutable"]
    );
    let stopped = json!({"spec": {"clusterQueue": "a", "stopPolicy": "Hold"}});
    assert_eq!(change_faults(&LOCAL_QUEUE, &queue("a"), &stopped), Vec::<String>::new());
    let got = faults(&LOCAL_QUEUE, json!({"spec": {"clusterQueue": "a", "stopPolicy": "Halt"}}));
    assert_eq!(
        got,
        [
            "spec.stopPolicy: Unsupported value: \"Halt\": supported values: \"None\", \"Hold\", \
          \"HoldAndDrain\"",
            UNCHECKED
        ]
    );
}

// rule: queueing 1.6.1
#[test]
fn flavors_have_few_labels_taints_and_tolerations_that_mean_something() {
    let labels = |count: usize| -> Value {
        (0..count).map(|n| (format!("l{n}"), json!("v"))).collect::<serde_json::Map<_, _>>().into()
    };
    let spec = |spec: Value| faults(&RESOURCE_FLAVOR, json!({"spec": spec}));
    assert_eq!(spec(json!({"nodeLabels": labels(8)})), Vec::<String>::new());
    let got = spec(json!({"nodeLabels": labels(9)}));
    assert_eq!(got[0], "spec.nodeLabels: Too many: 9: must have at most 8 items");
    let taint = |effect: &str| json!({"key": "k", "value": "v", "effect": effect});
    let cases = [
        (
            json!({"nodeTaints": [taint("Sometimes")]}),
            "spec.nodeTaints: Invalid value: supported taint effect values: 'NoSchedule', \
             'PreferNoSchedule', 'NoExecute'",
        ),
        (
            json!({"nodeTaints": [taint("NoSchedule"), taint("NoSchedule")]}),
            "spec.nodeTaints[1]: Duplicate value: {\"effect\":\"NoSchedule\",\"key\":\"k\",\
             \"value\":\"v\"}: taints must be unique by key and effect pair",
        ),
        (
            json!({"tolerations": [{"operator": "Equal"}]}),
            "spec.tolerations: Invalid value: operator must be Exists when 'key' is empty, which \
             means 'match all values and all keys'",
        ),
        (
            json!({"tolerations": [{"key": "k", "tolerationSeconds": 5, "effect": "NoSchedule"}]}),
            "spec.tolerations: Invalid value: effect must be 'NoExecute' when 'tolerationSeconds' \
             is set",
        ),
        (
            json!({"tolerations": [{"key": "k", "operator": "Like"}]}),
            "spec.tolerations: Invalid value: supported toleration values: 'Equal'(default), \
             'Exists'",
        ),
        (
            json!({"tolerations": [{"key": "k", "operator": "Exists", "value": "v"}]}),
            "spec.tolerations: Invalid value: a value must be empty when 'operator' is 'Exists'",
        ),
        (
            json!({"topologyName": "t"}),
            "spec: Invalid value: at least one nodeLabel is required when topology is set",
        ),
    ];
    for (said, want) in cases {
        assert_eq!(spec(said.clone()), [want], "{said}");
    }
    let with = |name: &str, label: &str| json!({"spec": {"topologyName": name, "nodeLabels": {"a": label}}});
    assert_eq!(
        change_faults(&RESOURCE_FLAVOR, &with("t", "b"), &with("t", "c")),
        ["spec: Invalid value: resourceFlavorSpec are immutable when topologyName is set"]
    );
    let plain = json!({"spec": {"nodeLabels": {"a": "b"}}});
    assert_eq!(change_faults(&RESOURCE_FLAVOR, &plain, &with("t", "b")), Vec::<String>::new());
}

#[test]
fn a_class_has_a_value() {
    assert_eq!(faults(&PRIORITY_CLASS, json!({"value": -5})), Vec::<String>::new());
    assert_eq!(faults(&PRIORITY_CLASS, json!({}))[0], "value: Required value");
    let long = json!({"value": 1, "description": "d".repeat(2049)});
    assert_eq!(
        faults(&PRIORITY_CLASS, long)[0],
        "description: Too long: may not be more than 2048 bytes"
    );
}

// rule: queueing 2.1.3
#[test]
fn times_that_cannot_be_read_are_refused_at_every_level() {
    let bad = json!({"metadata": {"annotations": {"lockstep.dev/requeuing-backoff-base-seconds":
        "1m"}}});
    for kind in [&CLUSTER_QUEUE, &LOCAL_QUEUE, &RESOURCE_FLAVOR] {
        assert_eq!(
            faults(kind, bad.clone()),
            ["metadata.annotations[lockstep.dev/requeuing-backoff-base-seconds]: Invalid value: \
              \"1m\": must be a whole number of seconds, 0 or more, such as 60"]
        );
    }
}
