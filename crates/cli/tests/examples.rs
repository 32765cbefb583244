//! Every example runs as its first lines say.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::{Value, json};

fn run(example: &str, options: &[&str]) -> Output {
    run_file(&Path::new("examples").join(example), options)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn run_file(file: &Path, options: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .args(["run", "--timeout", "120s", "--node-name", "here"])
        .arg(file)
        .args(options)
        .current_dir(root())
        .output()
        .expect("lockstep runs")
}

fn succeeds_with(example: &str, wanted: &str) {
    let output = run(example, &[]);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{example}: {}\n{out}\n{err}", output.status);
    // Workers write in any order.
    let mut lines: Vec<&str> = out.lines().collect();
    if wanted.lines().count() > 1 && wanted.starts_with('[') {
        lines.sort_unstable();
    }
    assert_eq!(lines, wanted.lines().collect::<Vec<_>>(), "{example}\n{err}");
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The Job of a run that printed its objects, and how the run ended.
fn job_of(example: &str) -> (Value, Output) {
    let output = run(example, &["-o", "json", "-q"]);
    let list: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    assert_eq!(list["kind"], "List", "{}", text(&output.stderr));
    let job = list["items"].as_array().into_iter().flatten().find(|item| item["kind"] == "Job");
    (job.cloned().unwrap_or_default(), output)
}

/// `type reason message` of each condition.
fn conditions(job: &Value) -> Vec<String> {
    let conditions = job["status"]["conditions"].as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let shown = |it: &Value| {
        format!("{} {}: {}", text(&it["type"]), text(&it["reason"]), text(&it["message"]))
    };
    conditions.map(shown).collect()
}

#[test]
fn hello_pod() {
    succeeds_with("hello-pod.yaml", "hello from hello on here\n");
}

#[test]
fn config_and_secrets() {
    let wanted = "good morning\nlayers = 12\nwidth = 768\nthe token is there\n";
    succeeds_with("config-and-secrets.yaml", wanted);
}

#[test]
fn init_and_sidecar() {
    succeeds_with("init-and-sidecar.yaml", "[pipeline/worker] the sum is 15\n");
}

#[test]
fn retry_until_it_works() {
    succeeds_with("retry-until-it-works.yaml", "attempt 1\nattempt 2\n");
}

#[test]
fn leader_decides() {
    let (job, output) = job_of("leader-decides.yaml");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let why = "SuccessPolicy: Matched rules at index 0";
    let want = [format!("SuccessCriteriaMet {why}"), format!("Complete {why}")];
    assert_eq!(conditions(&job), want);
    assert_eq!(job["status"]["completedIndexes"], "0");
    assert_eq!(job["status"]["succeeded"], 1);
    assert!(text(&output.stderr).contains("[leader-decides-0] the leader is done\n"));
    let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let items = list["items"].as_array().expect("items");
    let pods: Vec<&Value> = items.iter().filter(|item| item["kind"] == "Pod").collect();
    assert_eq!(pods.len(), 10, "those that the policy ended are there too");
    let has_ended =
        |pod: &&&Value| !pod["status"]["containerStatuses"][0]["state"]["terminated"].is_null();
    assert_eq!(pods.iter().filter(has_ended).count(), 10, "with how they ended");
}

#[test]
fn leader_or_enough_workers() {
    let (job, output) = job_of("leader-or-enough-workers.yaml");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let why = "SuccessPolicy: Matched rules at index 1";
    let want = [format!("SuccessCriteriaMet {why}"), format!("Complete {why}")];
    assert_eq!(conditions(&job), want);
    assert_eq!(job["status"]["completedIndexes"], "1-5");
}

#[test]
fn fail_fast_by_exit_code() {
    let (job, output) = job_of("fail-fast-by-exit-code.yaml");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let conditions = conditions(&job);
    assert!(conditions[1].starts_with("Failed PodFailurePolicy: Container main for pod default/"));
    for want in [
        "job/fail-fast failed: PodFailurePolicy\n  rule     spec.podFailurePolicy.rules[0]: ",
        "failed with exit code 42 matching FailJob rule at index 0\n  pod      fail-fast-1-",
        ", index 1, on node here\n  ended    container main ended with exit code 42\n",
        "  log      | the configuration makes no sense\n",
    ] {
        assert!(said.contains(want), "{want}\n{said}");
    }
}

#[test]
fn back_off_per_index() {
    let (job, output) = job_of("back-off-per-index.yaml");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let why = "FailedIndexes: Job has failed indexes";
    let want = [format!("FailureTarget {why}"), format!("Failed {why}")];
    assert_eq!(conditions(&job), want);
    let status = &job["status"];
    let found = (&status["completedIndexes"], &status["failedIndexes"], &status["succeeded"]);
    assert_eq!(found, (&"0,2".into(), &"1".into(), &2.into()));
    assert!(said.contains("index 1, on node here\n"), "{said}");
}

#[test]
fn all_reduce() {
    // There is no server of sockets in a shell: where there is no python3, there is no gang.
    if Command::new("python3").arg("-c").arg("").output().is_err() {
        println!("skipped: there is no python3");
        return;
    }
    let rank =
        |rank: u32| format!("[all-reduce-{rank}] rank {rank} of 4: {} of 30\n", (rank + 1).pow(2));
    succeeds_with("all-reduce.yaml", &(0..4).map(rank).collect::<String>());
}

#[test]
fn pytorch_ddp() {
    // Where there is no PyTorch, it can only be checked that this is valid; `cargo xtask e2e` runs
    // it.
    let output = run("pytorch-ddp.yaml", &["--dry-run"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

/// Everything of a run that printed its objects, and how the run ended.
fn objects_of(example: &str) -> (Vec<Value>, Output) {
    objects_in(&Path::new("examples").join(example))
}

fn objects_in(file: &Path) -> (Vec<Value>, Output) {
    items_of(run_file(file, &["-o", "json", "-q"]))
}

fn items_of(output: Output) -> (Vec<Value>, Output) {
    let list: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let items = list["items"].as_array().cloned().unwrap_or_default();
    assert_eq!(items[0]["kind"], "JobSet", "{}", text(&output.stderr));
    (items, output)
}

/// `type=status reason: message` of the conditions of a JobSet, those that it ends with.
fn ends_with(set: &Value, want: &[&str]) {
    let conditions = set["status"]["conditions"].as_array().into_iter().flatten();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let shown = conditions.map(|it| {
        let [kind, status, reason, message] =
            ["type", "status", "reason", "message"].map(|field| word(&it[field]));
        format!("{kind}={status} {reason}: {message}")
    });
    let mut shown: Vec<String> = shown.collect();
    shown.sort_unstable();
    assert_eq!(shown, want);
}

/// Restarts, and those of them that count.
fn restarts(set: &Value) -> (i64, i64) {
    let number = |field: &str| set["status"][field].as_i64().unwrap_or_default();
    (number("restarts"), number("restartsCountTowardsMax"))
}

const COMPLETED: &str = "Completed=True AllJobsCompleted: jobset completed successfully";
const RESTARTED: &str = "RestartingJobSet=False JobSetCompleted: jobset completed successfully";

#[test]
fn jobset_fail_fast() {
    let (items, output) = objects_of("jobset-fail-fast.yaml");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let why = "applying FailJobSet failure policy action (first failed job: \
               fail-jobset-example-buggy-job-0)";
    let failed = format!("Failed=True FailJobSetFailurePolicyAction: {why}");
    ends_with(&items[0], &[&failed, "RestartingJobSet=False JobSetFailed: jobset failed"]);
    assert_eq!(restarts(&items[0]), (1, 1), "the maintenance is one restart, the bug is none");
    assert_eq!(items[0]["status"]["terminalState"], "Failed");
    for want in [
        "jobset/fail-jobset-example failed: FailJobSetFailurePolicyAction\n  rule     \
         spec.failurePolicy.rules[0] (failurePolicyRule0: FailJobSet), for the reason \
         PodFailurePolicy: ",
        "  attempts 0: job/fail-jobset-example-buggy-job-0 failed (BackoffLimitExceeded): no rule \
         matches, so RestartJobSet\n",
        "  job      fail-jobset-example-buggy-job-0, replicated job buggy-job, attempt 1\n",
        ", index 0, on node here\n  ended    container main ended with exit code 1\n",
        "  log      | attempt 1: I have a bug\n",
    ] {
        assert!(said.contains(want), "{want}\n{said}");
    }
}

#[test]
fn jobset_restart() {
    let (items, output) = objects_of("jobset-restart.yaml");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    ends_with(&items[0], &[COMPLETED, RESTARTED]);
    assert_eq!(restarts(&items[0]), (1, 1));
    let attempts = |kind: &str| -> Vec<String> {
        let of_kind = items.iter().filter(|item| item["kind"] == kind);
        let label = "jobset.sigs.k8s.io/restart-attempt";
        let mut found: Vec<String> = of_kind
            .map(|it| it["metadata"]["labels"][label].as_str().unwrap_or_default().to_owned())
            .collect();
        found.sort_unstable();
        found
    };
    assert_eq!(attempts("Job"), ["0", "1"], "the Job of the first attempt is there too");
    assert_eq!(attempts("Pod"), ["0", "0", "0", "0", "1", "1", "1", "1"]);
    let done = "[restart-jobset-example-buggy-job-0-2#1] worker 2 is done in attempt 1\n";
    assert!(text(&output.stderr).contains(done), "{}", text(&output.stderr));
}

/// What is told of each pod of a run: its place, its uid and its address.
fn pods(items: &[Value]) -> Vec<(String, String, String)> {
    let of_kind = items.iter().filter(|item| item["kind"] == "Pod");
    let place =
        |pod: &Value| pod["metadata"]["labels"][INDEX].as_str().expect("an index").to_owned();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut pods: Vec<_> = of_kind
        .map(|pod| (place(pod), text(&pod["metadata"]["uid"]), text(&pod["status"]["podIP"])))
        .collect();
    pods.sort();
    pods
}

const INDEX: &str = "batch.kubernetes.io/job-completion-index";
const IN_PLACE: &str = "alpha.jobset.sigs.k8s.io/inplace-restarts";

#[test]
fn in_place() {
    // Restarts are no errors, so that a quiet run would not tell of them.
    let (items, output) = items_of(run_file(Path::new("examples/in-place.yaml"), &["-o", "json"]));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    ends_with(&items[0], &[COMPLETED]);
    assert_eq!(restarts(&items[0]), (0, 0), "nothing was made anew");
    assert_eq!(items[0]["metadata"]["annotations"][IN_PLACE], "1");
    assert_eq!(pods(&items).len(), 8, "the pods of the start are those of the end: {said}");
    let told = &items[0]["status"]["lockstep"]["inPlace"];
    assert_eq!((&told["epoch"], &told["restarts"]), (&json!(1), &json!(1)));
    let restart = &told["lastRestarts"][0];
    assert_eq!(restart["worker"], "in-place-workers-0-3");
    assert_eq!(restart["cause"], "exited with code 1");
    let note = "jobset/in-place restarted 8 workers in place in ";
    let told: Vec<&str> = said.lines().skip_while(|line| !line.starts_with(note)).take(2).collect();
    assert_eq!(told.len(), 2, "{said}");
    let cause = " (epoch 1): in-place-workers-0-3 exited with code 1; 1 of 3 restarts used, 2 left";
    assert!(told[0].ends_with(cause), "{}", told[0]);
    assert!(told[1].starts_with("  detected ") && told[1].contains(" ms, running "), "{}", told[1]);
    for worker in 0..8 {
        for line in ["epoch 0: on from step 0", "epoch 1: done"] {
            let line = format!("[in-place-workers-0-{worker}#0] {line}\n");
            assert!(said.contains(&line), "{line}\n{said}");
        }
    }
    assert!(said.contains("[in-place-workers-0-3#0] epoch 1: on from step 4\n"), "{said}");
}

#[test]
fn in_place_gang() {
    if Command::new("python3").arg("-c").arg("").output().is_err() {
        println!("skipped: there is no python3");
        return;
    }
    let file = Path::new("examples/in-place-gang.yaml");
    let (items, output) = items_of(run_file(file, &["-o", "json"]));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    ends_with(&items[0], &[COMPLETED]);
    assert_eq!(restarts(&items[0]), (0, 0), "nothing was made anew");
    assert_eq!(items[0]["metadata"]["annotations"][IN_PLACE], "1");
    assert_eq!(pods(&items).len(), 4, "the pods of the start are those of the end: {said}");
    // Some may have been stopped between a step and its checkpoint.
    let on = ["epoch 1: on from step 4", "epoch 1: on from step 3"];
    let on = on.into_iter().find(|on| said.contains(on)).unwrap_or_else(|| panic!("{said}"));
    for rank in 0..4 {
        let of = format!("[gang-workers-0-{rank}#0] ");
        for line in ["epoch 0: on from step 0", on, &format!("rank {rank} of 4: 360")] {
            assert!(said.contains(&format!("{of}{line}\n")), "{of}{line}\n{said}");
        }
    }
}

#[test]
fn pytorch_in_place() {
    // As above: `cargo xtask e2e` runs it.
    let output = run("pytorch-in-place.yaml", &["--dry-run"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn in_place_without_its_annotation() {
    let manifest = std::fs::read_to_string(root().join("examples/in-place.yaml")).unwrap();
    let asks = "    alpha.jobset.sigs.k8s.io/inplace-timeout: \"60s\"\n";
    assert!(manifest.contains(asks));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("anew.yaml");
    std::fs::write(&file, manifest.replace(asks, "    nothing: asked\n")).unwrap();
    let (items, output) = objects_in(&file);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(restarts(&items[0]), (1, 1));
    assert_eq!(items[0]["metadata"]["annotations"].get(IN_PLACE), None);
    let pods = pods(&items);
    assert_eq!(pods.len(), 16, "all of them were made anew");
    let third = pods.iter().filter(|(place, ..)| place == "3").collect::<Vec<_>>();
    assert_ne!(third[0].1, third[1].1);
}

#[test]
fn jobset_ignore_max_restarts() {
    let (items, output) = objects_of("jobset-ignore-max-restarts.yaml");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    ends_with(&items[0], &[COMPLETED, RESTARTED]);
    assert_eq!(restarts(&items[0]), (3, 1));
}

#[test]
fn jobset_different_policies() {
    let (items, output) = objects_of("jobset-different-policies.yaml");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    ends_with(&items[0], &[COMPLETED, RESTARTED]);
    assert_eq!(restarts(&items[0]), (3, 1));
}

#[test]
fn jobset_parameter_server() {
    let (items, output) = objects_of("jobset-parameter-server.yaml");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(restarts(&items[0]), (3, 3), "three restarts, then it is over");
    assert_eq!(items[0]["status"]["terminalState"], "Failed");
    assert!(said.contains("(parameterServer: RestartJobSet), for replicated job server"), "{said}");
}

#[test]
fn jobset_shared_volume() {
    let (items, output) = objects_of("jobset-shared-volume.yaml");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    ends_with(&items[0], &[COMPLETED]);
    assert!(said.contains("[checkpoints-evaluate-0-0] 4 checkpoints\n"), "{said}");
}

/// When a pod was ready, and when the Jobs of a replicated job were made: seconds of the same form.
fn moments(
    items: &[Value],
    kind: &str,
    group: &str,
    found: impl Fn(&Value) -> Value,
) -> Vec<String> {
    let label = "jobset.sigs.k8s.io/replicatedjob-name";
    let of_group = items.iter().filter(|item| item["kind"] == kind);
    let of_group = of_group.filter(|item| item["metadata"]["labels"][label] == group);
    of_group.map(|item| found(item).as_str().unwrap_or_default().to_owned()).collect()
}

fn started(items: &[Value], group: &str) -> Vec<String> {
    moments(items, "Pod", group, |pod| {
        pod["status"]["containerStatuses"][0]["state"]["terminated"]["startedAt"].clone()
    })
}

fn made(items: &[Value], group: &str) -> Vec<String> {
    moments(items, "Job", group, |job| job["metadata"]["creationTimestamp"].clone())
}

const IN_ORDER: [&str; 4] = [
    COMPLETED,
    "JobSetStartupPolicyCompleted=True StartupPolicyInOrder: startup policy successful",
    "StartupPolicyCompleted=True InOrderStartupPolicyCompleted: in order startup policy has \
     completed",
    "StartupPolicyInProgress=False InOrderStartupPolicyInProgress: in order startup policy is in \
     progress",
];

#[test]
fn jobset_driver_first() {
    let (items, output) = objects_of("jobset-driver-first.yaml");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    ends_with(&items[0], &IN_ORDER);
    // The driver sleeps for a second before it is ready.
    let (driver, workers) = (started(&items, "driver"), made(&items, "workers"));
    assert_eq!((driver.len(), workers.len()), (1, 1));
    assert!(driver[0] < workers[0], "{driver:?} {workers:?}");
}

#[test]
fn jobset_in_order() {
    let (items, output) = objects_of("jobset-in-order.yaml");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    ends_with(&items[0], &IN_ORDER);
    let queue = started(&items, "messagequeue");
    let (drivers, workers) = (started(&items, "driver"), made(&items, "worker"));
    assert_eq!((queue.len(), drivers.len(), workers.len()), (1, 4, 2));
    assert!(queue.iter().max() <= made(&items, "driver").iter().min(), "{queue:?}");
    assert!(drivers.iter().max() <= workers.iter().min(), "{drivers:?} {workers:?}");
}

#[test]
fn jobset_depends_on() {
    let (items, output) = objects_of("jobset-depends-on.yaml");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    ends_with(&items[0], &[COMPLETED]);
    let workers = moments(&items, "Job", "workers", |job| job["status"]["completionTime"].clone());
    assert_eq!(workers.len(), 2);
    assert!(workers.iter().max() <= made(&items, "report").iter().min(), "{workers:?}");
}

#[test]
fn jobset_leader_decides() {
    let (items, output) = objects_of("jobset-leader-decides.yaml");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    ends_with(&items[0], &[COMPLETED]);
    assert!(said.contains("[crawl-leader-0-0] the leader is done\n"), "{said}");
    let leader = "[crawl-workers-1-1] my leader is crawl-leader-0-0.crawl\n";
    assert!(said.contains(leader), "{said}");
}
