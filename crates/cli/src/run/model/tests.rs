use serde_json::json;

use super::*;
use crate::exit::Exit;

fn pod(name: &str, status: Value) -> Value {
    let metadata = json!({"namespace": "default", "name": name, "uid": name});
    json!({"kind": "Pod", "metadata": metadata, "status": status})
}

fn worker(name: &str, index: u32, status: Value) -> Value {
    let mut pod = pod(name, status);
    let owner = json!({"kind": "Job", "name": "train", "uid": "train", "controller": true});
    pod["metadata"]["ownerReferences"] = json!([owner]);
    pod["metadata"]["labels"] =
        json!({"batch.kubernetes.io/job-completion-index": index.to_string()});
    pod
}

fn job(spec: Value, status: Value) -> Value {
    let metadata = json!({"namespace": "default", "name": "train", "uid": "train"});
    json!({"kind": "Job", "metadata": metadata, "spec": spec, "status": status})
}

fn run_of(names: &[&str]) -> Model {
    let mut model = Model::new(true);
    names.iter().for_each(|name| model.add(&pod(name, json!({}))));
    model.set_prefixes(names.len() > 1);
    model
}

fn run_of_job() -> Model {
    let mut model = Model::new(true);
    let containers = json!([{"name": "c"}]);
    let template = json!({"spec": {"containers": containers}});
    let spec = json!({"completions": 2, "parallelism": 2, "completionMode": "Indexed",
        "template": template});
    model.add(&job(spec, json!({})));
    model.set_prefixes(true);
    model
}

fn texts(seen: &Seen) -> Vec<&str> {
    seen.notes.iter().map(|note| note.text.as_str()).collect()
}

fn event(kind: &str, name: &str, reason: &str, message: &str) -> Value {
    json!({"involvedObject": {"kind": kind, "namespace": "default", "name": name, "uid": name},
        "type": "Warning", "reason": reason, "message": message})
}

#[test]
fn a_run_is_over_when_nothing_can_happen_any_more() {
    let running = json!({"phase": "Running"});
    let succeeded = json!({"phase": "Succeeded"});
    let failed = json!({"phase": "Failed"});
    let unplaced = json!({"phase": "Pending", "conditions": [{"reason": "Unschedulable"}]});
    let cases = [
        ("both run", &running, &running, State::Going),
        ("one runs", &succeeded, &running, State::Going),
        ("one failed, one runs", &failed, &running, State::Going),
        ("both succeeded", &succeeded, &succeeded, State::Over(Exit::Success)),
        ("one failed", &succeeded, &failed, State::Over(Exit::Failed)),
        ("one waits for the other's room", &unplaced, &running, State::Going),
        ("nobody makes room for one", &unplaced, &succeeded, State::Stalled),
    ];
    for (name, a, b, want) in cases {
        let mut model = run_of(&["a", "b"]);
        model.see_pod(&pod("a", a.clone()));
        model.see_pod(&pod("b", b.clone()));
        assert_eq!(model.state(), want, "{name}");
    }
}

#[test]
fn each_run_of_a_container_is_followed_once() {
    let mut model = run_of(&["a"]);
    let status = |restarts: i64| {
        json!({"phase": "Running", "containerStatuses": [
            {"name": "c", "restartCount": restarts, "state": {"running": {}}}]})
    };
    assert_eq!(model.see_pod(&pod("a", status(0))).logs.len(), 1);
    assert_eq!(model.see_pod(&pod("a", status(0))).logs.len(), 0);
    assert_eq!(model.see_pod(&pod("a", status(1))).logs.len(), 1);
    assert_eq!(model.see_pod(&pod("other", status(0))).logs.len(), 0, "not ours");
}

#[test]
fn runs_that_come_and_go_between_two_looks_are_printed_too() {
    let status = |restarts: i64, state: &str| {
        json!({"phase": "Running", "containerStatuses": [{"name": "c",
            "restartCount": restarts, "state": {state: {}}, "lastState": {"terminated": {}}}]})
    };
    let mut model = run_of(&["a"]);
    let mut asked = |status| -> Vec<String> {
        let logs = model.see_pod(&pod("a", status)).logs.into_iter();
        logs.map(|log| log.path.split_once('&').expect("two parameters").1.into()).collect()
    };
    assert_eq!(asked(status(0, "waiting")), ["previous=true"]);
    assert_eq!(asked(status(1, "running")), ["follow=true"], "run 0 is printed");
    assert_eq!(asked(status(3, "terminated")), ["previous=true", "follow=true"]);
    assert!(asked(status(3, "waiting")).is_empty());
}

#[test]
fn a_container_that_never_started_has_no_log() {
    let ended = json!({"terminated": {"reason": "StartError", "exitCode": 127}});
    let status = json!({"phase": "Failed", "containerStatuses": [{"name": "c", "state": ended}]});
    assert!(run_of(&["a"]).see_pod(&pod("a", status)).logs.is_empty());
}

#[test]
fn a_pod_that_disappears_has_failed() {
    let mut model = run_of(&["a"]);
    model.pod_gone("default", "other", "other");
    assert_eq!(model.state(), State::Going);
    model.pod_gone("default", "a", "a");
    assert_eq!(model.state(), State::Over(Exit::Failed));
}

#[test]
fn notes_say_what_a_pod_waits_for() {
    let waits = json!({"phase": "Pending", "containerStatuses": [{"name": "c", "state":
        {"waiting": {"reason": "CreateContainerConfigError", "message": "no command"}}}]});
    let failed = json!({"phase": "Failed", "containerStatuses": [{"name": "c", "state":
        {"terminated": {"exitCode": 3}}}]});
    let mut model = run_of(&["a"]);
    let seen = model.see_pod(&pod("a", waits.clone()));
    assert_eq!(texts(&seen), ["pod/a waits: CreateContainerConfigError: no command"]);
    assert!(seen.notes[0].is_error);
    assert!(model.see_pod(&pod("a", waits)).notes.is_empty(), "said once");
    assert_eq!(model.state(), State::Over(Exit::Failed));
    let seen = model.see_pod(&pod("a", failed));
    assert_eq!(texts(&seen), ["pod/a failed: container c ended with exit code 3"]);
}

#[test]
fn a_mount_that_fails_is_told_and_again_when_it_changes() {
    let mut model = run_of(&["a"]);
    model.see_pod(&pod("a", json!({"phase": "Pending"})));
    let said = |model: &mut Model, message: &str| {
        let seen = model.see_event(&event("Pod", "a", "FailedMount", message));
        assert!(seen.notes.iter().all(|note| note.is_error));
        texts(&seen).join("\n")
    };
    assert_eq!(said(&mut model, "no x"), "pod/a waits: FailedMount: no x");
    assert_eq!(model.state(), State::Stalled);
    assert_eq!(said(&mut model, "no x"), "");
    assert_eq!(said(&mut model, "no y"), "pod/a waits: FailedMount: no y");
    let seen = model.see_pod(&pod("a", json!({"phase": "Pending"})));
    assert!(seen.notes.is_empty(), "a change of something else does not hide it");
    assert_eq!(model.unfinished(), ["pod/a waits: FailedMount: no y"]);
    model.see_pod(&pod("a", json!({"phase": "Running"})));
    assert_eq!(model.unfinished(), ["pod/a is running"]);
}

#[test]
fn what_events_say_of_an_earlier_pod_of_that_name_is_not_believed() {
    let mut model = run_of(&["a"]);
    let mut old = event("Pod", "a", "FailedMount", "no x");
    old["involvedObject"]["uid"] = json!("older");
    assert!(model.see_event(&old).notes.is_empty());
    assert_eq!(model.unfinished(), ["pod/a is starting"]);
}

#[test]
fn a_job_decides_what_its_pods_mean() {
    let mut model = run_of_job();
    let failed = json!({"phase": "Failed", "containerStatuses": [{"name": "c", "state":
        {"terminated": {"exitCode": 3}}}]});
    let seen = model.see_pod(&worker("train-0-x", 0, failed));
    assert_eq!(texts(&seen), ["pod/train-0-x failed: container c ended with exit code 3"]);
    assert!(!seen.notes[0].is_error, "the Job may still succeed");
    assert_eq!(model.state(), State::Going);
    let over = |kind: &str| json!({"conditions": [{"type": kind, "status": "True", "reason": "R", "message": "m"}]});
    let seen = model.see_job(&job(json!({}), over("Complete")));
    assert_eq!(texts(&seen), ["job/train succeeded (R: m)"]);
    assert_eq!(model.state(), State::Over(Exit::Success));
    let mut model = run_of_job();
    model.see_job(&job(json!({}), over("Failed")));
    assert_eq!(model.state(), State::Over(Exit::Failed));
    let mut model = run_of_job();
    model.job_gone("default", "train", "train");
    assert_eq!(model.state(), State::Over(Exit::Failed));
}

#[test]
fn a_job_is_stuck_when_all_its_pods_are() {
    let stuck = json!({"phase": "Pending", "containerStatuses": [{"name": "c", "state":
        {"waiting": {"reason": "CreateContainerConfigError", "message": "no map"}}}]});
    let mut model = run_of_job();
    let seen = model.see_pod(&worker("train-0-x", 0, stuck.clone()));
    assert_eq!(texts(&seen), ["pod/train-0-x waits: CreateContainerConfigError: no map"]);
    model.see_pod(&worker("train-1-x", 1, json!({"phase": "Running"})));
    assert_eq!(model.state(), State::Going, "one still runs");
    let seen = model.see_pod(&worker("train-1-x", 1, stuck.clone()));
    assert!(seen.notes.is_empty(), "the same trouble is told once");
    assert_eq!(model.state(), State::Over(Exit::Failed));
    let job = &model.jobs[&("default".to_owned(), "train".to_owned())];
    let why = "pod/train-0-x and 1 more: waits: CreateContainerConfigError: no map";
    assert_eq!(model.why_waits(job).as_deref(), Some(why));
    let mut shared = Model::new(false);
    shared.add(&pod("a", stuck));
    assert_eq!(shared.state(), State::Going, "somebody else may help");
}

#[test]
fn a_suspended_job_says_so_and_ends_a_private_run() {
    let mut model = run_of_job();
    let suspended = json!({"conditions": [{"type": "Suspended", "status": "True"}]});
    let seen = model.see_job(&job(json!({"suspend": true}), suspended));
    assert_eq!(texts(&seen), ["job/train is suspended: set spec.suspend to false to start it"]);
    assert_eq!(model.state(), State::Over(Exit::Failed));
    assert!(model.has_stopped());
}

#[test]
fn a_job_whose_pods_are_refused_says_why() {
    let mut model = run_of_job();
    let refused = event("Job", "train", "FailedCreate", "Error creating: no");
    let seen = model.see_event(&refused);
    assert_eq!(texts(&seen), ["job/train cannot create its pods: Error creating: no"]);
    assert!(model.see_event(&refused).notes.is_empty());
    let why = "job/train: 0/2 done, 0 active; cannot create its pods: Error creating: no";
    assert_eq!(model.unfinished(), [why]);
    assert_eq!(model.state(), State::Going, "it is tried again");
}

#[test]
fn a_job_whose_pods_are_always_refused_is_given_up() {
    for why in [
        "Error creating: pods \"train-0-\" is forbidden: no PriorityClass with name nope was found",
        "Error creating: Pod \"train-0-x\" is invalid: spec.containers: Required value",
    ] {
        let mut model = run_of_job();
        model.see_event(&event("Job", "train", "FailedCreate", why));
        assert_eq!(model.state(), State::Stalled, "{why}");
        model.see_pod(&worker("train-1-x", 1, json!({"phase": "Running"})));
        assert_eq!(model.state(), State::Going, "another pod still runs");
    }
}

#[test]
fn a_pod_that_takes_the_name_of_another_is_another() {
    let mut model = run_of_job();
    let failed = json!({"phase": "Failed", "containerStatuses": [{"name": "c", "restartCount": 0,
        "state": {"terminated": {"exitCode": 3}}}]});
    let first = worker("train-0-x", 0, failed.clone());
    let mut second = first.clone();
    second["metadata"]["uid"] = json!("second");
    for pod in [&first, &second] {
        let seen = model.see_pod(pod);
        assert_eq!(texts(&seen), ["pod/train-0-x failed: container c ended with exit code 3"]);
        assert_eq!(seen.logs[0].container.uid, pod["metadata"]["uid"]);
        assert!(model.see_pod(pod).logs.is_empty());
    }
    second["status"] = json!({"phase": "Running"});
    model.see_pod(&second);
    model.pod_gone("default", "train-0-x", "train-0-x");
    assert_eq!(model.running().count(), 1, "only the first is gone");
    let mut foreign = second.clone();
    foreign["metadata"]["uid"] = json!("third");
    foreign["metadata"]["ownerReferences"][0]["uid"] = json!("older");
    assert!(model.see_pod(&foreign).logs.is_empty(), "of another Job of that name");
}

#[test]
fn a_run_of_a_container_is_found_again() {
    let at = |restarts: i64, state: &str, run| {
        let pod = pod(
            "a",
            json!({"containerStatuses": [{"name": "c", "restartCount": restarts,
            "state": {state: {}}, "lastState": {"terminated": {}}}]}),
        );
        locate(&pod, "c", run).map(|run| (run.is_previous, run.has_ended))
    };
    assert_eq!(at(0, "running", 0), Some((false, false)));
    assert_eq!(at(0, "terminated", 0), Some((false, true)));
    assert_eq!(at(0, "waiting", 0), Some((true, true)));
    assert_eq!(at(1, "running", 0), Some((true, true)));
    assert_eq!(at(2, "running", 0), None);
    assert_eq!(locate(&pod("a", json!({})), "c", 0), None);
}

#[test]
fn a_wait_after_failures_that_are_not_counted_is_told() {
    let mut model = run_of_job();
    let idle = json!({"startTime": "2026-01-01T00:00:00Z"});
    model.see_job(&job(json!({"completions": 2}), idle.clone()));
    let name = ("default".to_owned(), "train".to_owned());
    assert_eq!(model.why_waits(&model.jobs[&name]), None, "it only begins");
    model.see_pod(&worker("train-0-x", 0, json!({"phase": "Failed"})));
    let why = model.why_waits(&model.jobs[&name]);
    assert_eq!(why.as_deref(), Some("waits before it tries again (back-off)"));
}

#[test]
fn a_worker_keeps_its_name_and_colour_over_all_its_pods() {
    let mut model = run_of_job();
    let running = json!({"phase": "Running", "containerStatuses": [
        {"name": "c", "state": {"running": {}}}]});
    let mut label = |name: &str, index| {
        let logs = model.see_pod(&worker(name, index, running.clone())).logs;
        (logs[0].label.clone(), logs[0].worker)
    };
    assert_eq!(label("train-1-x", 1), ("train-1".to_owned(), 1));
    assert_eq!(label("train-1-y", 1), ("train-1".to_owned(), 1));
    let mut other = worker("train-0-z", 0, running.clone());
    other["metadata"]["ownerReferences"][0]["uid"] = json!("older");
    assert!(model.see_pod(&other).logs.is_empty(), "of another Job of that name");
}

#[test]
fn failures_without_end_are_counted_only() {
    let mut model = run_of_job();
    let notes: usize = (0..100)
        .map(|at| {
            let failed = worker(&format!("train-0-{at}"), 0, json!({"phase": "Failed"}));
            model.see_pod(&failed).notes.len()
        })
        .sum();
    assert_eq!(notes, FAILURES_TOLD + 1);
}

#[test]
fn what_is_ended_on_purpose_is_no_trouble() {
    let mut model = run_of_job();
    model.begin_stop();
    let suspended = json!({"active": 2, "conditions": [{"type": "Suspended", "status": "True"}]});
    let seen = model.see_job(&job(json!({"suspend": true}), suspended));
    assert!(seen.notes.is_empty(), "{seen:?}");
    assert!(!model.has_stopped(), "its pods are still there");
    let ending = json!({"terminating": 1,
        "conditions": [{"type": "Suspended", "status": "True"}]});
    model.see_job(&job(json!({"suspend": true}), ending));
    assert!(!model.has_stopped(), "one is not counted out yet");
    let unstarted = model.see_pod(&worker("train-0-x", 0, json!({"phase": "Failed"})));
    assert!(unstarted.notes.is_empty(), "{unstarted:?}");
    let suspended = json!({"conditions": [{"type": "Suspended", "status": "True"}]});
    model.see_job(&job(json!({"suspend": true}), suspended));
    assert!(model.has_stopped());
}
