//! KEP-349 with real processes: two gangs that would wait for each other for ever.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn run(example: &str, options: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .args(["run", "-q", "-o", "json", "--no-logs"])
        .arg(Path::new("examples").join(example))
        .args(options)
        .current_dir(root())
        .output()
        .expect("lockstep runs")
}

fn deadlock(config: &str, timeout: &str) -> Output {
    let config = format!("examples/{config}");
    let options = ["--capacity", "cpu=10", "--timeout", timeout, "--config", &config];
    run("queue-all-or-nothing.yaml", &options)
}

/// The final objects of a kind.
fn objects(output: &Output, kind: &str) -> Vec<Value> {
    let list: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    assert_eq!(list["kind"], "List", "{}", String::from_utf8_lossy(&output.stderr));
    let items = list["items"].as_array().cloned().unwrap_or_default();
    items.into_iter().filter(|item| item["kind"] == kind).collect()
}

fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let mut all = object["status"]["conditions"].as_array().into_iter().flatten();
    all.find(|condition| condition["type"] == kind).unwrap_or(&Value::Null)
}

#[test]
fn a_job_that_does_not_fit_waits_for_the_one_before() {
    let output = run("queue.yaml", &["--timeout", "120s"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let workloads = objects(&output, "Workload");
    assert_eq!(workloads.len(), 2, "{workloads:?}");
    for workload in workloads {
        assert_eq!(condition(&workload, "Admitted")["status"], "True", "{workload}");
    }
    let jobs = objects(&output, "Job");
    let starts = jobs.iter().filter_map(|job| job["status"]["startTime"].as_str());
    let mut starts: Vec<&str> = starts.collect();
    starts.sort_unstable();
    let [one, other] = starts[..] else { panic!("two Jobs have run: {jobs:?}") };
    assert!(other > one, "one begins when the other has ended: {starts:?}");
}

#[test]
fn kep_349_without_waiting_for_pods_both_gangs_wait_for_ever() {
    let output = deadlock("config/do-not-wait.yaml", "15s");
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    for workload in objects(&output, "Workload") {
        assert!(condition(&workload, "PodsReady").is_null(), "{workload}");
        // The run itself ends them when its time is over.
        assert_eq!(condition(&workload, "Evicted")["reason"], "Deactivated", "{workload}");
    }
}

#[test]
fn kep_349_story_1_with_block_admission_the_gangs_run_one_after_the_other() {
    let output = deadlock("config/one-at-a-time.yaml", "120s");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for workload in objects(&output, "Workload") {
        assert_eq!(condition(&workload, "PodsReady")["status"], "True", "{workload}");
        assert!(condition(&workload, "Evicted").is_null(), "nobody was evicted: {workload}");
    }
    for set in objects(&output, "JobSet") {
        assert_eq!(set["status"]["terminalState"], "Completed", "{set}");
    }
}

#[test]
fn kep_349_story_2_with_a_timeout_both_gangs_finish_through_eviction() {
    let output = deadlock("config/evict-after-5s.yaml", "120s");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let workloads = objects(&output, "Workload");
    let evictions = |workload: &Value| {
        let counts = workload["status"]["schedulingStats"]["evictions"].as_array();
        counts.into_iter().flatten().filter_map(|one| one["count"].as_i64()).sum::<i64>()
    };
    let total: i64 = workloads.iter().map(evictions).sum();
    assert!((1..=4).contains(&total), "{workloads:?}");
    for set in objects(&output, "JobSet") {
        assert_eq!(set["status"]["terminalState"], "Completed", "{set}");
        assert_eq!(set["status"]["restarts"], 0, "an eviction is no restart: {set}");
    }
}

/// A gang that is never ready, and of which the leader decides. When it is told to stop, its
/// workers say goodbye politely.
const POLITE: &str = "apiVersion: batch/v1
kind: Job
metadata: {name: polite}
spec:
  completionMode: Indexed
  completions: 2
  parallelism: 2
  successPolicy: {rules: [{succeededIndexes: '0'}]}
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: x
        command: [sh, -c, 'trap \"exit 0\" TERM; while :; do sleep 0.1; done']
        readinessProbe: {periodSeconds: 1, exec: {command: ['false']}}
        resources: {requests: {cpu: 10m}}
";

const IMPATIENT: &str = "apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
waitForPodsReady:
  timeout: 3s
  requeuingStrategy: {backoffBaseSeconds: 1, backoffLimitCount: 1}
";

#[test]
fn success_policy_and_readmission_exits_during_an_eviction_are_no_successes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("job.yaml"), POLITE).expect("written");
    fs::write(path("config.yaml"), IMPATIENT).expect("written");
    let config = path("config.yaml");
    let options = ["--queue", "machine", "--timeout", "60s", "--config", config.as_str()];
    let output = run(&path("job.yaml"), &options);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "it is deactivated in the end: {said}");
    let pods = objects(&output, "Pod");
    let polite = pods.iter().filter(|pod| pod["status"]["phase"] == "Succeeded");
    assert_eq!(polite.count(), 4, "both started twice, and ended with 0: {pods:#?}");
    let [job] = &objects(&output, "Job")[..] else { panic!("one Job") };
    for kind in ["SuccessCriteriaMet", "Complete", "Failed"] {
        assert!(condition(job, kind).is_null(), "{job:#}");
    }
    assert!(job["status"]["completedIndexes"].is_null(), "{job:#}");
    let [workload] = &objects(&output, "Workload")[..] else { panic!("one Workload") };
    let reason = &condition(workload, "Evicted")["reason"];
    assert_eq!(reason, "DeactivatedDueToRequeuingLimitExceeded", "{workload:#}");
}
