//! Jobs through `lockstep run`: gangs from a command line, on other clusters, on a terminal.

#[path = "jobs/sets.rs"]
mod sets;
#[path = "jobs/support.rs"]
mod support;

use std::{
    fs,
    io::{BufRead, BufReader},
    process::Stdio,
    time::Duration,
};

use support::{Terminal, Up, lockstep, signal, text};

fn job(name: &str, workers: u32, script: &str) -> String {
    format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: {name}}}\nspec:\n  \
         completionMode: Indexed\n  completions: {workers}\n  parallelism: {workers}\n  \
         backoffLimit: 0\n  template:\n    spec:\n      restartPolicy: Never\n      \
         terminationGracePeriodSeconds: 5\n      \
         containers: [{{name: c, image: x, command: [sh, -c, {script:?}]}}]\n"
    )
}

/// Waits for the end of `endless`: the shell itself hears the signal.
const ENDLESS: &str = "trap 'echo stopping; exit 0' TERM; echo up; while :; do sleep 0.1; done";

#[test]
fn a_gang_gets_its_variables_and_the_callers_folder_and_environment() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = "echo $RANK $WORLD_SIZE $JOB_COMPLETION_INDEX $LOCAL_RANK $NODE_RANK $OWN $GIVEN \
                  $MASTER_ADDR ${JAX_COORDINATOR_ADDRESS%:*} $OMPI_COMM_WORLD_RANK $PMI_SIZE \
                  $((MASTER_PORT > 0)) $(pwd)";
    let output = lockstep(folder.path())
        .args(["run", "-q", "--workers", "2", "--name", "gang", "--env", "GIVEN=a $(b)", "--"])
        .args(["sh", "-c", script])
        .env("OWN", "mine")
        .output()
        .expect("lockstep runs");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let mut lines: Vec<String> = text(&output.stdout).lines().map(ToOwned::to_owned).collect();
    lines.sort_unstable();
    let here = folder.path().canonicalize().expect("a path");
    let want = |rank: u32| {
        format!(
            "[gang-{rank}] {rank} 2 {rank} {rank} 0 mine a $(b) gang-0.gang gang-0.gang {rank} 2 1 \
             {}",
            here.display()
        )
    };
    assert_eq!(lines, [want(0), want(1)]);
}

/// Shells give programs a limit of a thousand open files, which thousands of workers are not held
/// to; the workers themselves get what the caller had.
#[test]
fn a_low_limit_of_open_files_holds_for_workers_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let binary = lockstep(folder.path());
    let script = format!(
        "ulimit -Sn 64 && exec {} run -q --workers 40 -- sh -c 'ulimit -Sn; sleep 1'",
        binary.get_program().display()
    );
    let mut shell = std::process::Command::new("sh");
    let output = shell
        .args(["-c", &script])
        .env("HOME", folder.path())
        .env_remove("KUBECONFIG")
        .stdin(Stdio::null())
        .output()
        .expect("lockstep runs");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert_eq!(said.lines().filter(|line| line.ends_with(" 64")).count(), 40, "{said}");
}

#[test]
fn one_worker_writes_as_if_it_were_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = lockstep(folder.path())
        .args(["run", "-q", "--", "sh", "-c", "echo first; printf last; exit 3"])
        .output()
        .expect("lockstep runs");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), "first\nlast", "to the letter");
    assert!(text(&output.stderr).contains("ended with exit code 3"), "{}", text(&output.stderr));
}

#[test]
fn a_dry_run_prints_what_can_be_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let words = ["run", "--workers", "2", "--dry-run", "--name", "dry", "--", "echo", "$(x) fine"];
    let output = lockstep(folder.path()).args(words).output().expect("lockstep runs");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    fs::write(folder.path().join("job.yaml"), &output.stdout).expect("written");
    let words = ["run", "-q", "job.yaml"];
    let output = lockstep(folder.path()).args(words).output().expect("lockstep runs");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("[dry-1] $(x) fine\n"), "{}", text(&output.stdout));
}

#[test]
fn what_is_cleaned_up_at_once_is_still_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let brief = job("brief", 2, "echo fine")
        .replace("backoffLimit", "ttlSecondsAfterFinished: 0\n  backoffLimit");
    fs::write(folder.path().join("job.yaml"), brief).expect("written");
    let words = ["run", "-q", "job.yaml", "-o", "json"];
    let output = lockstep(folder.path()).args(words).output().expect("lockstep runs");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let list: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let items = list["items"].as_array().expect("items");
    assert_eq!(items[0]["status"]["completedIndexes"], "0,1");
    let pods =
        items.iter().filter(|it| it["kind"] == "Pod" && it["status"]["phase"] == "Succeeded");
    assert_eq!(pods.count(), 2, "{list:#}");
}

#[test]
fn a_configuration_file_can_turn_success_policies_off() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = "[ $JOB_COMPLETION_INDEX = 0 ] || { sleep 1; exit 1; }";
    let leader = job("leader", 2, script).replace(
        "backoffLimit",
        "successPolicy: {rules: [{succeededIndexes: '0'}]}\n  backoffLimit",
    );
    fs::write(folder.path().join("job.yaml"), leader).expect("written");
    let gates = "featureGates: {JobSuccessPolicy: false}\n";
    fs::write(folder.path().join("config.yaml"), gates).expect("written");
    let words = ["run", "-q", "job.yaml", "--config", "config.yaml"];
    let output = lockstep(folder.path()).args(words).output().expect("lockstep runs");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "the leader alone does not decide: {said}");
    assert!(said.contains("BackoffLimitExceeded"), "{said}");

    fs::write(folder.path().join("config.yaml"), "featureGates: {Unheard: true}\n")
        .expect("written");
    let output = lockstep(folder.path()).args(words).output().expect("lockstep runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("the gates are "));
}

#[test]
fn a_timeout_names_the_jobs_that_were_not_finished() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("job.yaml"), job("slow", 2, ENDLESS)).expect("written");
    let words = ["run", "-q", "--timeout", "2s", "job.yaml"];
    let output = lockstep(folder.path()).args(words).output().expect("lockstep runs");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("timed out after 2s; not finished:\n  job/slow: 0/2 done"), "{said}");
    let written = text(&output.stdout);
    assert_eq!(written.matches("stopping").count(), 2, "what they say at the end: {written}");
}

#[test]
fn an_interrupted_run_suspends_its_job_and_shows_the_end() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("job.yaml"), job("endless", 2, ENDLESS)).expect("written");
    let mut child = lockstep(folder.path())
        .args(["run", "job.yaml", "-o", "yaml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("lockstep runs");
    let mut said = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let up = said.by_ref().filter(|line| line.as_ref().is_ok_and(|line| line.ends_with("] up")));
    assert_eq!(up.take(2).count(), 2);
    signal("-INT", child.id());
    let rest: Vec<String> = said.map(|line| line.expect("text")).collect();
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{rest:?}");
    assert!(rest.iter().any(|line| line.starts_with("interrupted: ending pod/endless-0-")));
    let stopping = rest.iter().filter(|line| line.ends_with("] stopping")).count();
    assert_eq!(stopping, 2, "{rest:?}");
    let list = text(&output.stdout);
    assert!(list.contains("suspend: true") && list.contains("type: Suspended"), "{list}");
}

#[test]
fn a_run_on_another_cluster_leaves_its_job_there() {
    let up = Up::start();
    let fine = job("fine", 2, "echo fine");
    let (code, out, err) = up.run("run --cluster - -o json", &fine);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("\"CompletionsReached\""), "{out}");
    let (code, _, err) = up.run("run --cluster -", &fine);
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("job.batch/fine is in namespace default already: delete it"), "{err}");
    assert!(err.contains("give metadata.generateName"), "{err}");
    let (code, _, err) = up.run("run --cluster --name fine --data-dir here -- true", "");
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("give another --name"), "{err}");
    let (code, _, err) = up.run("run --cluster - --timeout 2s", &job("endless", 1, ENDLESS));
    assert_eq!(code, Some(3), "{err}");
    assert!(err.contains("job/endless stays, suspended"), "{err}");
    let (_, out, _) = up.run("get job endless -o json", "");
    assert!(out.contains("\"suspend\": true"), "{out}");
}

#[test]
fn a_run_on_a_cluster_goes_on_when_that_is_killed_and_started_again() {
    let mut up = Up::lasting();
    let script = "for i in $(seq 1 60); do echo step $i; sleep 0.1; done";
    fs::write(up.folder().join("job.yaml"), job("steady", 2, script)).expect("written");
    let child = lockstep(up.folder())
        .args(["run", "--cluster", "--data-dir", "here", "job.yaml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.expect("lockstep runs");
    let mut written = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut lines: Vec<String> = written.by_ref().take(6).map(|line| line.expect("text")).collect();
    up.restart();
    lines.extend(written.map(|line| line.expect("text")));
    let output = child.wait_with_output().expect("it ends");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    for worker in 0..2 {
        let prefix = format!("[steady-{worker}] ");
        let own: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix(&prefix)).collect();
        let want: Vec<String> = (1..=60).map(|step| format!("step {step}")).collect();
        assert_eq!(own, want, "each line once: {said}");
    }
    assert!(said.contains("the cluster answers again"), "{said}");
    assert!(!said.contains(" ERROR "), "{said}");
}

#[test]
fn a_run_ends_when_nobody_reads_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = "while :; do echo on; sleep 0.05; done";
    fs::write(folder.path().join("job.yaml"), job("endless", 1, script)).expect("written");
    let mut child = lockstep(folder.path())
        .args(["run", "job.yaml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("lockstep runs");
    let written = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    assert_eq!(written.take(2).count(), 2);
    let output = child.wait_with_output().expect("it ends");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert_eq!(said.matches("stdout is closed").count(), 1, "{said}");
    let full = fs::File::options().write(true).open("/dev/full").expect("a full device");
    let output = lockstep(folder.path()).args(["run", "job.yaml"]).stdout(full).output();
    let said = text(&output.expect("lockstep runs").stderr);
    assert!(said.contains("cannot write to stdout"), "{said}");
}

#[test]
fn what_is_meant_for_gangs_is_refused_with_manifests() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("job.yaml"), job("j", 1, "true")).expect("written");
    for words in ["--workers 2", "--env A=b", "--image x", "--name n", "--cpu 1", "--gpus 1"] {
        let mut command = lockstep(folder.path());
        let output = command.arg("run").args(words.split(' ')).arg("job.yaml").output();
        let output = output.expect("lockstep runs");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words}: {said}");
        assert!(said.contains("is for a gang from a command line"), "{words}: {said}");
    }
}

#[test]
fn a_job_whose_pods_are_refused_for_ever_fails_with_the_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = job("refused", 1, "true")
        .replace("restartPolicy: Never", "restartPolicy: Never\n      priorityClassName: nope");
    fs::write(folder.path().join("job.yaml"), refused).expect("written");
    let words = ["run", "-q", "job.yaml", "--timeout", "100s"];
    let output = lockstep(folder.path()).args(words).output().expect("lockstep runs");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("job/refused cannot go on"), "{said}");
    assert!(said.contains("because  cannot create its pods: "), "{said}");
}

#[test]
fn a_card_says_who_ended_a_container() {
    let folder = tempfile::tempdir().expect("a folder");
    let probe =
        "livenessProbe: {exec: {command: ['false']}, periodSeconds: 1, failureThreshold: 1}";
    let live = job("live", 1, "sleep 100")
        .replace("image: x,", &format!("image: x, {probe},"))
        .replace("GracePeriodSeconds: 5", "GracePeriodSeconds: 1");
    for policy in ["Never", "OnFailure"] {
        let manifest = live.replace("Policy: Never", &format!("Policy: {policy}"));
        fs::write(folder.path().join("job.yaml"), manifest).expect("written");
        let words = ["run", "-q", "job.yaml", "--timeout", "100s"];
        let output = lockstep(folder.path()).args(words).output().expect("lockstep runs");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("  pod      live-0-"), "{said}");
        assert!(said.contains("because  Unhealthy: Liveness probe failed"), "{said}");
        assert!(said.contains("Container c failed liveness probe"), "{said}");
    }
}

#[test]
fn a_container_that_never_started_is_said_nothing_wrong_about() {
    let folder = tempfile::tempdir().expect("a folder");
    let bare = job("bare", 1, "true").replace(", command: [sh, -c, \"true\"]", "");
    fs::write(folder.path().join("job.yaml"), bare).expect("written");
    let output = lockstep(folder.path()).args(["run", "job.yaml"]).output();
    let output = output.expect("lockstep runs");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(!said.contains("no log of") && !said.contains("ContainerStatusUnknown"), "{said}");
}

#[test]
fn a_suspended_job_runs_when_it_is_resumed() {
    let up = Up::start();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/suspended.yaml");
    let suspended = fs::read_to_string(path).expect("the example");
    let (code, _, err) = up.run("apply -f -", &suspended);
    assert_eq!(code, Some(0), "{err}");
    up.wait_for("get job later", "Suspended");
    let (_, pods, _) = up.run("get pods -o name", "");
    assert_eq!(pods, "", "a suspended job has no pods");
    let resumed = suspended.replace("suspend: true", "suspend: false");
    let (code, _, err) = up.run("apply -f -", &resumed);
    assert_eq!(code, Some(0), "{err}");
    up.wait_for("get job later", "Complete");
    let (_, job, _) = up.run("get job later -o json", "");
    assert!(job.contains("\"completedIndexes\": \"0,1\""), "{job}");
    assert!(job.contains("\"JobResumed\""), "{job}");
}

#[test]
fn a_terminal_shows_the_status_below_the_logs() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = "echo begun; sleep 1.5; printf '\\033[2Jdone\\n'";
    fs::write(folder.path().join("job.yaml"), job("live", 2, script)).expect("written");
    let mut terminal = Terminal::open(100, 30);
    let mut command = lockstep(folder.path());
    command.args(["run", "job.yaml"]).env("TERM", "xterm").env_remove("NO_COLOR");
    let mut child = terminal.spawn(&mut command);
    let shown = terminal.read_until_end(&mut child, Duration::from_secs(60));
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{shown}");
    assert!(shown.contains("\x1b[1mlive  \x1b[0m\x1b[36mRunning\x1b[0m"), "{shown:?}");
    assert!(shown.contains("[\x1b[36m>>\x1b[0m]"), "both run: {shown:?}");
    assert!(shown.contains("\x1b[36m[live-0]\x1b[0m begun"), "{shown:?}");
    assert!(shown.contains("\x1b[33m[live-1]\x1b[0m done"), "{shown:?}");
    assert!(!shown.contains("\x1b[2J"), "a log must not clear the screen");
    assert!(shown.contains("A\r\x1b[J"), "the block is redrawn in place: {shown:?}");
    let last = shown.rfind("Complete").expect("the last block stays");
    assert!(!shown[last..].contains("\x1b[J"), "{shown:?}");
}

#[test]
fn no_color_means_none() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("job.yaml"), job("plain", 2, "echo begun")).expect("written");
    let mut terminal = Terminal::open(60, 20);
    let mut command = lockstep(folder.path());
    command.args(["run", "job.yaml"]).env("TERM", "xterm").env("NO_COLOR", "1");
    let mut child = terminal.spawn(&mut command);
    let shown = terminal.read_until_end(&mut child, Duration::from_secs(60));
    assert!(!shown.contains("\x1b[0m"), "{shown:?}");
    assert!(shown.contains("[plain-0] begun"), "{shown:?}");
}
