use serde_json::{Value, json};

use super::{JOBSET, created, faults, group, manifest};
use crate::{
    jobset::in_place::span,
    strategy::{Json, Strategy},
};

const TIMEOUT: &str = "alpha.jobset.sigs.k8s.io/inplace-timeout";
const RESTARTS: &str = "alpha.jobset.sigs.k8s.io/inplace-restarts";

/// A set that asks for restarts in place and says `more` in annotations.
fn asking(spec: Value, timeout: &str, more: &[(&str, &str)]) -> Value {
    let mut object = manifest(spec);
    let annotations = &mut object["metadata"]["annotations"];
    *annotations = json!({TIMEOUT: timeout});
    for (key, value) in more {
        annotations[*key] = json!(value);
    }
    object
}

fn worker() -> Value {
    let mut group = group("w");
    let job = &mut group["template"]["spec"];
    job["template"]["spec"]["containers"][0]["command"] = json!(["train"]);
    group
}

#[test]
fn one_annotation_is_enough() {
    let spec = json!({"replicatedJobs": [worker()]});
    for timeout in ["60s", "1m30s", "250ms", "1h"] {
        assert_eq!(faults(&asking(spec.clone(), timeout, &[])), Vec::<String>::new(), "{timeout}");
    }
    let all = [
        (RESTARTS, "0"),
        ("lockstep.dev/inplace-rejoin", "false"),
        ("lockstep.dev/inplace-max-stalled", "3"),
        ("lockstep.dev/inplace-progress-after", "10m"),
    ];
    assert_eq!(faults(&asking(spec, "60s", &all)), Vec::<String>::new());
}

#[test]
fn what_makes_no_sense_is_refused_with_what_would() {
    let spec = json!({"replicatedJobs": [worker()]});
    let at = |key: &str| format!("metadata.annotations[{key}]: Invalid value: ");
    for timeout in ["", "soon", "0s", "-5s", "60"] {
        let want =
            format!("{}{timeout:?}: must be a time above zero, such as \"60s\"", at(TIMEOUT));
        assert_eq!(faults(&asking(spec.clone(), timeout, &[])), [want]);
    }
    let cases = [
        (RESTARTS, "-1", "must be a number, such as \"3\""),
        ("lockstep.dev/inplace-max-stalled", "many", "must be a number, such as \"3\""),
        ("lockstep.dev/inplace-progress-after", "0s", "must be a time above zero, such as \"30s\""),
        ("lockstep.dev/inplace-rejoin", "yes", "must be \"true\" or \"false\""),
    ];
    for (key, value, why) in cases {
        let found = faults(&asking(spec.clone(), "60s", &[(key, value)]));
        assert_eq!(found, [format!("{}{value:?}: {why}", at(key))]);
    }
    let mut alone = manifest(spec);
    alone["metadata"]["annotations"] = json!({RESTARTS: "0"});
    let want =
        format!("{}\"0\": is counted by the controller; {TIMEOUT} asks for it", at(RESTARTS));
    assert_eq!(faults(&alone), [want]);
}

#[test]
fn workers_must_be_such_that_can_restart_together() {
    let with = |change: &dyn Fn(&mut Value)| {
        let mut group = worker();
        change(&mut group);
        faults(&asking(json!({"replicatedJobs": [group]}), "60s", &[]))
    };
    let path = "spec.replicatedJobs[0].template.spec";
    let found = with(&|group| {
        let pod = &mut group["template"]["spec"]["template"]["spec"];
        pod["containers"] = json!([
            {"name": "sidecar", "image": "i", "command": ["log"]},
            {"name": "worker", "image": "i", "args": ["train"]},
        ]);
    });
    let want = format!(
        "{path}.template.spec.containers[1].command: Required value: a worker that restarts in \
         place is started by its agent, which cannot know the command of an image: say here what \
         to run"
    );
    assert_eq!(found, [want]);
    let found = with(&|group| {
        group["template"]["spec"]["parallelism"] = json!(2);
        group["template"]["spec"]["completions"] = json!(8);
    });
    let want = format!(
        "{path}.completions: Invalid value: 8: must be 2, as parallelism is: workers that restart \
         in place run all at once"
    );
    assert_eq!(found, [want]);
    let found = with(&|group| group["template"]["spec"]["completionMode"] = json!("NonIndexed"));
    let want = format!(
        "{path}.completionMode: Invalid value: \"NonIndexed\": must be Indexed: a worker that \
         restarts in place is known by its index"
    );
    assert_eq!(found, [want]);
}

#[test]
fn an_order_and_another_way_to_restart_are_in_the_way() {
    let mut second = worker();
    second["name"] = json!("x");
    second["dependsOn"] = json!([{"name": "w", "status": "Ready"}]);
    let found = faults(&asking(json!({"replicatedJobs": [worker(), second]}), "60s", &[]));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("spec.replicatedJobs[1].dependsOn: Forbidden: workers that"));
    let found = faults(&asking(
        json!({"replicatedJobs": [worker()],
               "startupPolicy": {"startupPolicyOrder": "InOrder"}}),
        "60s",
        &[],
    ));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("spec.startupPolicy.startupPolicyOrder: Invalid value"));
}

#[test]
fn agents_come_with_the_set_or_never() {
    let spec = json!({"replicatedJobs": [worker()]});
    let object = |value: Value| -> Json { created(&value) };
    let (plain, asks) = (object(manifest(spec.clone())), object(asking(spec.clone(), "60s", &[])));
    let slower = object(asking(spec, "90s", &[]));
    let said = |new: &Json, old: &Json| -> Vec<String> {
        JOBSET.validate_update(new, old).iter().map(ToString::to_string).collect()
    };
    assert_eq!(said(&slower, &asks), Vec::<String>::new());
    for (new, old) in [(&asks, &plain), (&plain, &asks)] {
        let found = said(new, old);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("cannot be added or taken away"), "{found:?}");
    }
}

#[test]
fn times_are_read_as_durations_are() {
    assert_eq!(span("90s"), Some(std::time::Duration::from_secs(90)));
    assert_eq!(span("PT1M"), Some(std::time::Duration::from_mins(1)));
    assert_eq!(span("1 day"), None);
}

#[test]
fn an_index_that_fails_alone_would_be_waited_for_for_ever() {
    let with = |change: &dyn Fn(&mut Value)| {
        let mut group = worker();
        group["template"]["spec"]["completionMode"] = json!("Indexed");
        group["template"]["spec"]["template"]["spec"]["restartPolicy"] = json!("Never");
        change(&mut group["template"]["spec"]);
        faults(&asking(json!({"replicatedJobs": [group]}), "60s", &[]))
    };
    let path = "spec.replicatedJobs[0].template.spec";
    let rule =
        |action: &str| json!({"action": action, "onExitCodes": {"operator": "In", "values": [42]}});
    let found = with(&|job| job["backoffLimitPerIndex"] = json!(1));
    let want = format!(
        "{path}.backoffLimitPerIndex: Forbidden: workers that restart in place succeed together or \
         fail together: an index of its own that fails would be waited for for ever"
    );
    assert_eq!(found, std::slice::from_ref(&want));
    let found = with(&|job| {
        job["backoffLimitPerIndex"] = json!(1);
        job["podFailurePolicy"] = json!({"rules": [rule("Ignore"), rule("FailIndex")]});
    });
    let rules = format!(
        "{path}.podFailurePolicy.rules[1].action: Invalid value: \"FailIndex\": workers that \
         restart in place succeed together or fail together: use FailJob, and the failure policy \
         of the set decides"
    );
    assert_eq!(found, [want, rules]);
    let found = with(&|job| job["podFailurePolicy"] = json!({"rules": [rule("FailJob")]}));
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn probes_that_kill_do_not_know_that_a_worker_waits_for_others() {
    let with = |at: usize, probe: &str| {
        let mut group = worker();
        let pod = &mut group["template"]["spec"]["template"]["spec"];
        pod["containers"] = json!([
            {"name": "sidecar", "image": "i", "command": ["log"]},
            {"name": "worker", "image": "i", "command": ["train"]},
        ]);
        pod["containers"][at][probe] = json!({"exec": {"command": ["true"]}});
        faults(&asking(json!({"replicatedJobs": [group]}), "60s", &[]))
    };
    let path = "spec.replicatedJobs[0].template.spec.template.spec.containers[1]";
    for probe in ["livenessProbe", "startupProbe"] {
        let want = format!(
            "{path}.{probe}: Forbidden: would kill a worker that waits for the others to restart \
             in place: a sign of life is LOCKSTEP_HEARTBEAT_FILE or LOCKSTEP_HEARTBEAT_PATTERN with \
             LOCKSTEP_HEARTBEAT_TIMEOUT in its env"
        );
        assert_eq!(with(1, probe), [want]);
        assert_eq!(with(0, probe), Vec::<String>::new(), "of another container");
    }
    assert_eq!(with(1, "readinessProbe"), Vec::<String>::new());
}

#[test]
fn what_an_agent_would_refuse_to_start_with_is_refused_with_the_set() {
    let with = |env: Value| {
        let mut group = worker();
        let pod = &mut group["template"]["spec"]["template"]["spec"];
        pod["containers"][0]["env"] = env;
        faults(&asking(json!({"replicatedJobs": [group]}), "60s", &[]))
    };
    let env = |name: &str, value: &str| json!({"name": format!("LOCKSTEP_{name}"), "value": value});
    let within = env("HEARTBEAT_TIMEOUT", "30s");
    let path = "spec.replicatedJobs[0].template.spec.template.spec.containers[0].env";
    let cases = [
        (json!([env("GRACE", "soon")]), 0, "\"soon\": must be a time, such as \"10s\""),
        (json!([env("GRACE", "-1s")]), 0, "\"-1s\": must be a time, such as \"10s\""),
        (
            json!([env("HEARTBEAT_FILE", "/f"), env("HEARTBEAT_TIMEOUT", "0s")]),
            1,
            "\"0s\": must be a time above zero, such as \"30s\"",
        ),
        (json!([env("HEARTBEAT_PATTERN", "("), within]), 0, "\"(\": must be a regular expression"),
        (
            json!([env("HEARTBEAT_FILE", "/f")]),
            0,
            "\"/f\": needs LOCKSTEP_HEARTBEAT_TIMEOUT beside it",
        ),
        (
            json!([within]),
            0,
            "\"30s\": needs LOCKSTEP_HEARTBEAT_FILE or LOCKSTEP_HEARTBEAT_PATTERN beside it",
        ),
        (
            json!([env("HEARTBEAT_FILE", "/f"), env("HEARTBEAT_PATTERN", "a"), within]),
            1,
            "\"a\": is one sign of life too many: use it, or a file",
        ),
    ];
    for (env, at, why) in cases {
        assert_eq!(with(env), [format!("{path}[{at}].value: Invalid value: {why}")]);
    }
    let elsewhere = json!({"name": "LOCKSTEP_GRACE", "valueFrom": {
        "configMapKeyRef": {"name": "c", "key": "k"}}});
    for right in [
        json!([env("GRACE", "0s")]),
        json!([env("GRACE", "10s"), env("HEARTBEAT_PATTERN", "^step \\d+$"), within]),
        json!([elsewhere]),
    ] {
        assert_eq!(with(right.clone()), Vec::<String>::new(), "{right}");
    }
}

#[test]
fn who_rejoins_is_said_with_the_set_and_never_again() {
    const REJOIN: &str = "lockstep.dev/inplace-rejoin";
    let spec = json!({"replicatedJobs": [worker()]});
    let object = |more: &[(&str, &str)]| -> Json { created(&asking(spec.clone(), "60s", more)) };
    let (nothing, yes, no) =
        (object(&[]), object(&[(REJOIN, "true")]), object(&[(REJOIN, "false")]));
    let said = |new: &Json, old: &Json| -> Vec<String> {
        JOBSET.validate_update(new, old).iter().map(ToString::to_string).collect()
    };
    for (new, old) in [(&yes, &no), (&no, &yes), (&nothing, &no), (&no, &nothing)] {
        let want = format!(
            "metadata.annotations[{REJOIN}]: Forbidden: cannot be changed: workers that were let go \
             cannot come back, and those that wait were told to"
        );
        assert_eq!(said(new, old), [want]);
    }
    assert_eq!(said(&yes, &nothing), Vec::<String>::new(), "that is what it is without it");
    assert_eq!(said(&nothing, &yes), Vec::<String>::new());
}
