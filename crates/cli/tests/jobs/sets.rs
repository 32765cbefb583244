//! JobSets through `lockstep run`, `get` and `describe`.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use super::support::{Up, lockstep, signal, text};

/// A JobSet of two Jobs with two workers each that run `script`.
fn set(name: &str, more: &str, script: &str) -> String {
    format!(
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {{name: {name}}}\nspec:\n  \
         {more}\n  replicatedJobs:\n  - name: w\n    replicas: 2\n    template:\n      spec:\n        \
         completions: 2\n        parallelism: 2\n        backoffLimit: 0\n        template:\n          \
         spec:\n            restartPolicy: Never\n            terminationGracePeriodSeconds: 5\n            \
         containers: [{{name: c, image: x, command: [sh, -c, {script:?}]}}]\n"
    )
}

const ENDLESS: &str = "trap 'echo stopping; exit 0' TERM; echo up; while :; do sleep 0.1; done";
const MAY_RESTART: &str = "failurePolicy: {maxRestarts: 2}";

#[test]
fn an_interrupted_set_is_suspended_and_its_pods_end_with_grace() {
    let folder = tempfile::tempdir().expect("a folder");
    let manifest = folder.path().join("set.yaml");
    std::fs::write(&manifest, set("endless", MAY_RESTART, ENDLESS)).expect("written");
    let mut child = lockstep(folder.path())
        .args(["run", "set.yaml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("lockstep runs");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut up = 0;
    while up < 4 {
        let line = lines.next().expect("all write").expect("text");
        assert!(line.starts_with("[endless-w-") && line.ends_with("#0] up"), "{line}");
        up += 1;
    }
    signal("-INT", child.id());
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    assert_eq!(rest.iter().filter(|line| line.ends_with("] stopping")).count(), 4, "{rest:?}");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130));
    let said = text(&output.stderr);
    assert!(said.contains("w 0/2 ready, 2 suspended"), "{said}");
}

#[test]
fn a_set_that_takes_too_long_is_named_with_how_far_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("set.yaml"), set("slow", MAY_RESTART, ENDLESS))
        .expect("written");
    let output = lockstep(folder.path())
        .args(["run", "-q", "--timeout", "3s", "set.yaml"])
        .output()
        .expect("lockstep runs");
    assert_eq!(output.status.code(), Some(3));
    let said = text(&output.stderr);
    assert!(
        said.contains("timed out after 3s; not finished:\n  jobset/slow: attempt 0; w "),
        "{said}"
    );
}

#[test]
fn a_set_without_a_policy_fails_with_its_first_job() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("set.yaml"), set("plain", "suspend: false", "exit 7"))
        .expect("written");
    let output = lockstep(folder.path()).args(["run", "set.yaml"]).output().expect("lockstep runs");
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    for want in [
        "jobset/plain failed: FailedJobs\n",
        "  rule     no spec.failurePolicy, so one failed Job is enough: jobset failed due to one or \
         more job failures (first failed job: plain-w-",
        "  ended    container c ended with exit code 7\n",
    ] {
        assert!(said.contains(want), "{want}\n{said}");
    }
}

/// A set that cannot start, because the API does not take one of its claims.
fn unclaimable() -> String {
    set_with_claim("odd", &CLAIM.replace("ReadWriteMany", "Bogus"))
}

/// How a program ended and what it said; it must end by itself.
fn end_of(mut child: std::process::Child) -> (Option<i32>, String) {
    let begun = std::time::Instant::now();
    while child.try_wait().expect("a child").is_none() {
        let is_late = begun.elapsed().as_secs() > 60;
        if is_late {
            drop(child.kill());
        }
        assert!(!is_late, "it does not end");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let output = child.wait_with_output().expect("it ended");
    (output.status.code(), text(&output.stderr))
}

#[test]
fn a_set_that_cannot_start_ends_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("set.yaml"), unclaimable()).expect("written");
    let run = |words: &[&str]| {
        let mut command = lockstep(folder.path());
        command.arg("run").args(words).arg("set.yaml").stderr(Stdio::piped());
        end_of(command.spawn().expect("lockstep runs"))
    };
    let (code, said) = run(&[]);
    assert_eq!(code, Some(1), "{said}");
    let card = "jobset/odd cannot go on\n  because  PVCCreationFailed: ";
    assert!(said.contains(card) && said.contains("\"Bogus\""), "{said}");
    // Less than it takes to find that out.
    let (code, said) = run(&["--timeout", "1s"]);
    assert_eq!(code, Some(3), "{said}");
}

#[test]
fn an_interrupt_ends_the_run_of_a_set_that_cannot_start() {
    let up = Up::start();
    std::fs::write(up.folder().join("set.yaml"), unclaimable()).expect("written");
    let mut child = lockstep(up.folder())
        .args(["run", "--cluster", "--data-dir", "here", "set.yaml"])
        .stderr(Stdio::piped())
        .spawn()
        .expect("lockstep runs");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let is_refused = lines.any(|line| line.expect("text").contains("PVCCreationFailed"));
    assert!(is_refused, "it goes on: somebody may help");
    signal("-INT", child.id());
    let said = std::thread::spawn(move || lines.map_while(Result::ok).collect::<Vec<_>>());
    assert_eq!(end_of(child).0, Some(130));
    let said = said.join().expect("read").join("\n");
    assert!(said.contains("jobset/odd stays, suspended"), "{said}");
}

#[test]
fn logs_of_a_set_are_those_of_its_pods() {
    let up = Up::start();
    let (code, _, said) = up.run("run --cluster -", &set("said", MAY_RESTART, "echo hello"));
    assert_eq!(code, Some(0), "{said}");
    let (code, logs, said) = up.run("logs jobset/said --all-pods", "");
    assert_eq!(code, Some(0), "{said}");
    let is_line = |line: &str| line.starts_with("[pod/said-w-") && line.ends_with("/c] hello");
    assert!(logs.lines().count() == 4 && logs.lines().all(is_line), "{logs}");
}

#[test]
fn an_expression_that_does_not_compile_is_refused_before_anything_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let policy = "failurePolicy: {maxRestarts: 1, rules: [{name: odd, action: FailJobSet, \
                  onJobFailureMessagePatterns: ['exit code (']}]}";
    std::fs::write(folder.path().join("set.yaml"), set("odd", policy, "true")).expect("written");
    let place = "set.yaml:5: spec.failurePolicy.rules[0].onJobFailureMessagePatterns[0]: Invalid \
                 value: \"exit code (\": must be a regular expression";
    for words in [["validate", "set.yaml"], ["run", "set.yaml"]] {
        let output = lockstep(folder.path()).args(words).output().expect("lockstep runs");
        let said = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(place), "{said}");
    }
    // The API takes it, as others do, and says so.
    let up = Up::start();
    let (code, _, said) = up.run("apply -f -", &set("odd", policy, "true"));
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("Warning: spec.failurePolicy.rules[0]"), "{said}");
}

#[test]
fn sets_on_a_running_cluster_are_run_listed_and_described() {
    let up = Up::start();
    let script = "[ \"$JOB_COMPLETION_INDEX\" = 1 ] && exit 3; sleep 0.2";
    let (code, _, said) = up.run("run --cluster -", &set("again", MAY_RESTART, script));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("2 of 2 restarts used, 0 left"), "{said}");
    let (_, table, _) = up.run("get jobsets", "");
    let cells: Vec<&str> = table.lines().last().unwrap_or_default().split_whitespace().collect();
    assert_eq!(cells[..3], ["again", "Failed", "2"], "{table}");
    let (_, described, _) = up.run("describe jobset again", "");
    for want in [
        "Failed (ReachedMaxRestarts: jobset failed due to reaching max number of restarts",
        "2 of 2 restarts used, 0 left",
        "RestartJobSetFailurePolicyAction",
        "BackoffLimitExceeded",
    ] {
        assert!(described.contains(want), "{want}\n{described}");
    }
}

#[test]
fn the_rule_that_leaves_a_job_failed_or_fails_the_set_is_named() {
    let up = Up::start();
    let policy = |rule: &str| format!("failurePolicy: {{maxRestarts: 2, rules: [{rule}]}}");
    let script = "case $HOSTNAME in *-w-1-*) exit 3;; esac; sleep 1";
    let leave = policy("{name: leave, action: FailJob, targetReplicatedJobs: [w]}");
    let bug =
        policy("{name: bug, action: FailJobSet, onJobFailureReasons: [BackoffLimitExceeded]}");
    let cases = [
        (
            "left",
            leave,
            "leave says FailJob, for replicated job w",
            "jobset/left leaves job/left-w-1",
        ),
        (
            "bad",
            bug,
            "bug says FailJobSet, for the reason BackoffLimitExceeded",
            "jobset/bad failed",
        ),
    ];
    for (name, policy, rule, news) in cases {
        let (code, _, said) = up.run("run --cluster -", &set(name, &policy, script));
        assert_eq!(code, Some(1), "{said}");
        let is_told = |line: &str| line.contains(news) && line.contains(&format!("rule {rule}"));
        assert!(said.lines().any(is_told), "{said}");
        let (_, described, _) = up.run(&format!("describe jobset {name}"), "");
        let wanted = rule.replace(" says ", " ").replace(", ", " ");
        let wanted = format!("{name}-w-1 BackoffLimitExceeded {wanted}");
        let is_row = |line: &str| line.split_whitespace().eq(wanted.split_whitespace());
        assert!(described.lines().any(is_row), "{wanted}\n{described}");
    }
}

const CLAIM: &str = "volumeClaimPolicies: [{templates: [{metadata: {name: data}, spec: \
                     {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}}], \
                     retentionPolicy: {whenDeleted: Retain}}]";

/// A set whose workers write to a volume they share.
fn set_with_claim(name: &str, policy: &str) -> String {
    let mounted = set(name, policy, "echo $HOSTNAME > /data/kept");
    mounted.replace("command: [", "volumeMounts: [{name: data, mountPath: /data}], command: [")
}

#[test]
fn volumes_of_a_set_are_kept_or_go_with_it() {
    let up = Up::lasting();
    let (code, _, said) = up.run("run --cluster -", &set_with_claim("kept", CLAIM));
    assert_eq!(code, Some(0), "{said}");
    let deleted = CLAIM.replace("Retain", "Delete");
    let (code, _, said) = up.run("run --cluster -", &set_with_claim("gone", &deleted));
    assert_eq!(code, Some(0), "{said}");
    let (_, table, _) = up.run("get pvc", "");
    let rows: Vec<Vec<&str>> =
        table.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows.len(), 2, "{table}");
    for (row, name) in rows.iter().zip(["data-gone", "data-kept"]) {
        assert_eq!(row[..2], [name, "Bound"], "{table}");
        assert_eq!(row[3..5], ["1Gi", "RWX"], "{table}");
    }
    let folders = up.folder().join("here/node/claims");
    let count = || std::fs::read_dir(&folders).map_or(0, Iterator::count);
    assert_eq!(count(), 2);
    // One that is there must be spelled out as it is now, and be kept.
    let (_, _, said) = up.run("delete jobset kept gone", "");
    up.wait_for("get pvc -o name", "persistentvolumeclaim/data-kept\n");
    let (code, _, refused) = up.run("apply -f -", &set_with_claim("kept", &deleted));
    assert_eq!(code, Some(2), "{said}{refused}");
    for want in [
        "spec does not match existing PVC data-kept in namespace default",
        "retentionPolicy must be retain when PVC exists",
    ] {
        assert!(refused.contains(want), "{want}\n{refused}");
    }
    let begun = std::time::Instant::now();
    while count() != 1 {
        assert!(begun.elapsed().as_secs() < 60, "the folder of data-gone goes with it");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let kept = std::fs::read_dir(&folders).expect("there").flatten().next().expect("one");
    assert!(kept.path().join("kept").is_file());
}

#[test]
fn a_claim_in_use_stays_until_its_pods_have_ended() {
    let up = Up::start();
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c}\nspec: \
                 {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}\n---\n";
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  restartPolicy: Never\n  \
               terminationGracePeriodSeconds: 1\n  \
               volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]\n  containers: [{name: m, \
               image: x, command: [sleep, '600'], volumeMounts: [{name: v, mountPath: /v}]}]\n";
    let (code, _, said) = up.run("apply -f -", &[claim, pod].concat());
    assert_eq!(code, Some(0), "{said}");
    up.wait_for("get pod p", "Running");
    up.run("delete pvc c --wait=false", "");
    let (_, table, _) = up.run("get pvc c", "");
    assert!(table.contains("Terminating"), "{table}");
    up.run("delete pod p", "");
    let begun = std::time::Instant::now();
    while up.run("get pvc -o name", "").1.contains('c') {
        assert!(begun.elapsed().as_secs() < 60, "nobody uses it any more");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}
