use serde_json::{Value, json};

use super::*;
use crate::{golden, run::style::columns};

const NOW: &str = "2026-01-01T00:03:07Z";

fn frame(width: usize, height: usize, is_coloured: bool) -> Frame {
    let now = NOW.parse().expect("a moment");
    Frame { width, height, paint: Paint::new(is_coloured), now }
}

fn job(name: &str, spec: Value, mut status: Value) -> Value {
    if status["startTime"].is_null() {
        status["startTime"] = json!("2026-01-01T00:00:55Z");
    }
    json!({"kind": "Job", "metadata": {"namespace": "default", "name": name, "uid": name},
        "spec": spec, "status": status})
}

fn pod(name: &str, owner: Option<(&str, u32)>, status: Value) -> Value {
    let mut metadata = json!({"namespace": "default", "name": name, "uid": name,
        "creationTimestamp": "2026-01-01T00:03:00Z"});
    if let Some((job, index)) = owner {
        metadata["ownerReferences"] =
            json!([{"kind": "Job", "name": job, "uid": job, "controller": true}]);
        metadata["labels"] = json!({"batch.kubernetes.io/job-completion-index": index.to_string()});
    }
    json!({"kind": "Pod", "metadata": metadata, "status": status})
}

fn indexed(completions: u32) -> Value {
    json!({"completionMode": "Indexed", "completions": completions, "parallelism": completions})
}

/// A training of eight workers in the middle of it.
fn training() -> Model {
    let mut model = Model::new(true);
    let status = json!({"active": 5, "ready": 3, "succeeded": 2, "failed": 1,
        "completedIndexes": "0,1"});
    model.add(&job("train", indexed(8), status));
    for index in 2..5 {
        let status = json!({"phase": "Running", "containerStatuses": [
            {"name": "main", "restartCount": index - 2, "state": {"running": {}}}]});
        model.see_pod(&pod(&format!("train-{index}-x"), Some(("train", index)), status));
    }
    model.see_pod(&pod("train-5-x", Some(("train", 5)), json!({"phase": "Pending"})));
    let unplaced = json!({"phase": "Pending", "conditions": [{"reason": "Unschedulable",
        "message": "0/1 nodes are available: 1 Insufficient cpu."}]});
    model.see_pod(&pod("train-6-x", Some(("train", 6)), unplaced));
    model
}

/// One of everything.
fn everything() -> Model {
    let mut model = training();
    let over = |kind: &str| {
        json!({"succeeded": 4, "conditions": [{"type": kind, "status": "True", "reason": "R",
            "message": "m", "lastTransitionTime": "2026-01-01T01:58:00Z"}]})
    };
    model.add(&job("evaluate", indexed(4), over("Complete")));
    model.add(&job("prepare-the-data-with-a-long-name", indexed(4), over("Failed")));
    let succeeding = json!({"succeeded": 1, "terminating": 3, "completedIndexes": "0",
        "conditions": [{"type": "SuccessCriteriaMet", "status": "True", "reason": "SuccessPolicy",
        "message": "Matched rules at index 0"}]});
    model.add(&job("leader", indexed(4), succeeding));
    model.add(&job(
        "asleep",
        json!({"suspend": true}),
        json!({"conditions": [
        {"type": "Suspended", "status": "True"}]}),
    ));
    model.add(&job("queue", json!({"parallelism": 3}), json!({"active": 3, "ready": 3})));
    model.add(&job("again", json!({"completions": 1}), json!({"failed": 2})));
    model.add(&pod("watcher", None, json!({"phase": "Running"})));
    let failed = json!({"phase": "Failed", "containerStatuses": [{"name": "main", "state":
        {"terminated": {"exitCode": 137, "reason": "OOMKilled",
        "finishedAt": "2026-01-01T00:03:02Z"}}}]});
    model.add(&pod("hungry", None, failed));
    model
}

/// A JobSet in its second attempt, one that ended, and one that waits.
fn sets() -> Model {
    use crate::run::jobset::tests::{condition, object, status};
    let mut model = Model::new(true);
    model.add(&object(status(2, 1, 1, 1)));
    let mut over = object(status(0, 0, 0, 0));
    over["metadata"]["name"] = json!("evaluate");
    over["spec"]["failurePolicy"] = Value::Null;
    over["status"]["conditions"] =
        json!([condition("Completed", true, "AllJobsCompleted", "jobset completed successfully")]);
    over["status"]["replicatedJobsStatus"][0]["succeeded"] = json!(2);
    model.add(&over);
    let mut held = object(status(0, 0, 0, 0));
    held["metadata"]["name"] = json!("held");
    held["status"]["replicatedJobsStatus"][1]["failed"] = json!(0);
    model.add(&held);
    model
}

/// A JobSet whose workers restart in place, and do so right now.
fn in_place() -> Model {
    use crate::run::jobset::in_place::tests::{restart, restarting};
    let mut model = Model::new(true);
    let workers = json!([{"state": "Stopping", "epoch": 1, "count": 1, "places": "5"},
        {"state": "Waiting", "count": 5, "places": "0-4"}]);
    model.add(&restarting(json!({"epoch": 2, "restarts": 1, "phase": "Stopping",
        "waiting": "1 workers are being stopped: 5", "workers": workers,
        "lastRestarts": [restart(1)]})));
    model
}

/// A Job and a JobSet that wait in queues, and one that is being stopped.
fn queued() -> Model {
    use crate::{
        queueing::workload::tests::{admitted, condition, object},
        run::jobset::tests::object as set_of,
    };
    let mut model = Model::new(true);
    let asleep = json!({"conditions": [{"type": "Suspended", "status": "True"}]});
    for name in ["train", "tune", "stopped", "new"] {
        let mut one = job(name, indexed(4), asleep.clone());
        one["spec"]["suspend"] = json!(true);
        one["metadata"]["labels"] = json!({"kueue.x-k8s.io/queue-name": "team"});
        one["status"]["startTime"] = Value::Null;
        model.add(&one);
    }
    let waits = |reason: &str, message: &str| json!({"conditions": [condition("lockstep.dev/Waiting", true, reason, message)]});
    let short = "not enough quota in ClusterQueue pool: asks for 4 cpu in flavor spot, 1 free";
    model.see_workload(&object("train", 0, waits("NotEnoughQuota", short)));
    let later = "is not tried again before 2026-01-01T00:06:00Z";
    model.see_workload(&object("tune", 0, waits("BackOff", later)));
    let mut stopping = admitted("4", Some((true, "Started")));
    stopping["conditions"].as_array_mut().expect("conditions").push(condition(
        "Evicted",
        true,
        "Preempted",
        "Preempted to accommodate a workload",
    ));
    model.see_workload(&object("stopped", 0, stopping));
    let mut set = set_of(json!({}));
    set["spec"]["suspend"] = json!(true);
    set["metadata"]["name"] = json!("set");
    set["metadata"]["uid"] = json!("set");
    set["metadata"]["namespace"] = json!("default");
    model.add(&set);
    let mut workload = object("set", 0, waits("NeverFits", "can never fit into ClusterQueue pool"));
    workload["metadata"]["ownerReferences"][0]["kind"] = json!("JobSet");
    model.see_workload(&workload);
    model
}

#[test]
fn the_block_of_jobs_in_queues_looks_like_this() {
    let model = queued();
    let mut screens = String::new();
    for (name, frame) in
        [("100 columns", frame(100, 30, false)), ("no room for details", frame(60, 5, false))]
    {
        screens.push_str(&["--- ", name, "\n", &block(&model, &frame).join("\n"), "\n"].concat());
    }
    screens.push_str("--- line by line\n");
    for set in model.sets.values() {
        screens.push_str(&[plain_set(&model, set).as_str(), "\n"].concat());
    }
    for job in model.lone_jobs() {
        screens.push_str(&[plain(&model, job).as_str(), "\n"].concat());
    }
    golden::check("run-block-queued.txt", &screens);
}

#[test]
fn the_block_of_a_set_that_restarts_in_place_looks_like_this() {
    let mut screens = String::new();
    for (name, frame) in [
        ("100 columns", frame(100, 20, false)),
        ("50 columns", frame(50, 20, false)),
        ("no room for details", frame(100, 5, false)),
    ] {
        screens
            .push_str(&["--- ", name, "\n", &block(&in_place(), &frame).join("\n"), "\n"].concat());
    }
    let model = in_place();
    let set = model.sets.values().next().expect("one set");
    screens.push_str(&["--- line by line\n", &plain_set(&model, set), "\n"].concat());
    golden::check("run-block-in-place.txt", &screens);
}

#[test]
fn the_block_of_sets_looks_like_this() {
    let mut screens = String::new();
    for (name, frame) in [
        ("100 columns", frame(100, 20, false)),
        ("50 columns", frame(50, 20, false)),
        ("no room for details", frame(100, 4, false)),
        ("colours", frame(100, 20, true)),
    ] {
        screens.push_str(&["--- ", name, "\n"].concat());
        for line in block(&sets(), &frame) {
            screens.push_str(&line.replace('\x1b', "^"));
            screens.push('\n');
        }
    }
    screens.push_str("--- line by line\n");
    let model = sets();
    for set in model.sets.values() {
        screens.push_str(&plain_set(&model, set));
        screens.push('\n');
    }
    golden::check("run-block-jobset.txt", &screens);
}

#[test]
fn the_block_looks_like_this() {
    let mut screens = String::new();
    for (name, model, frame) in [
        ("80 columns", training(), frame(80, 12, false)),
        ("40 columns", training(), frame(40, 12, false)),
        ("everything", everything(), frame(100, 30, false)),
        ("no room for details", everything(), frame(100, 12, false)),
        ("no room at all", everything(), frame(60, 4, false)),
        ("colours", training(), frame(80, 12, true)),
    ] {
        screens.push_str(&["--- ", name, "\n"].concat());
        for line in block(&model, &frame) {
            screens.push_str(&line.replace('\x1b', "^"));
            screens.push('\n');
        }
    }
    screens.push_str("--- line by line\n");
    let model = everything();
    for job in model.jobs.values() {
        screens.push_str(&plain(&model, job));
        screens.push('\n');
    }
    golden::check("run-block.txt", &screens);
}

#[test]
fn no_line_is_wider_and_no_block_higher_than_its_frame() {
    let mut model = everything();
    model.sets = sets().sets;
    for width in 0..120 {
        for height in 1..12 {
            for is_coloured in [false, true] {
                let lines = block(&model, &frame(width, height, is_coloured));
                assert!(lines.len() <= height, "{width}x{height}");
                // The strip has brackets and one letter at least.
                let widest = lines.iter().map(|line| columns(line)).max().unwrap_or_default();
                assert!(widest <= width.max(5), "{width}x{height}: {lines:?}");
            }
        }
    }
}

#[test]
fn the_picture_in_the_readme_is_the_block_as_it_is() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).expect("the README");
    let block = block(&training(), &frame(80, 12, false)).join("\n");
    assert!(readme.contains(&block), "the README must show:\n{block}");
}

#[test]
fn time_is_told_as_people_do() {
    let since: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a moment");
    for (until, want) in [
        ("2026-01-01T00:00:00.9Z", "0s"),
        ("2026-01-01T00:00:59Z", "59s"),
        ("2026-01-01T00:01:05Z", "1m05s"),
        ("2026-01-02T01:02:03Z", "25h02m"),
        ("2025-12-31T00:00:00Z", "0s"),
    ] {
        assert_eq!(elapsed(since, until.parse().expect("a moment")), want);
    }
}
