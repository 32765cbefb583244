//! Every example runs as its first lines say.

use std::{
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

fn run(example: &str, options: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .args(["run", "--timeout", "120s", "--node-name", "here"])
        .arg(format!("examples/{example}"))
        .args(options)
        .current_dir(root)
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

#[test]
fn examples_of_jobsets_are_valid() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for example in [
        "jobset-fail-fast.yaml",
        "jobset-restart.yaml",
        "jobset-ignore-max-restarts.yaml",
        "jobset-different-policies.yaml",
        "jobset-parameter-server.yaml",
        "jobset-driver-first.yaml",
        "jobset-in-order.yaml",
        "jobset-depends-on.yaml",
        "jobset-leader-decides.yaml",
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_lockstep"))
            .args(["validate", &format!("examples/{example}")])
            .current_dir(&root)
            .output()
            .expect("lockstep runs");
        assert!(output.status.success(), "{}", text(&output.stdout));
    }
}
