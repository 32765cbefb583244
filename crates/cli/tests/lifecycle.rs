//! Clusters come, stay and go; runs end with the code that says how.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Output, Stdio},
    time::Instant,
};

fn lockstep(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockstep"));
    command
        .env_remove("KUBECONFIG")
        .env("HOME", folder)
        .env_remove("XDG_DATA_HOME")
        .stdin(Stdio::null())
        .current_dir(folder);
    command
}

fn run(folder: &Path, words: &str) -> Output {
    lockstep(folder).args(words.split(' ')).output().expect("lockstep runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn pod(script: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec:\n  restartPolicy: Never\n  \
         terminationGracePeriodSeconds: 2\n  \
         containers: [{{name: c, image: x, command: [sh, -c, {script:?}]}}]\n"
    )
}

#[test]
fn a_detached_cluster_is_found_and_stopped() {
    let home = tempfile::tempdir().expect("a folder");
    let up = run(home.path(), "up --detach --port 0 --log info");
    assert!(up.status.success(), "{}", text(&up.stderr));
    assert!(text(&up.stdout).contains("Stop it with `lockstep down`"), "{}", text(&up.stdout));
    let found = run(home.path(), "get ns default -o name");
    assert_eq!(text(&found.stdout), "namespace/default\n", "{}", text(&found.stderr));
    let second = run(home.path(), "up --port 0");
    assert_eq!(second.status.code(), Some(4), "{}", text(&second.stderr));
    assert!(text(&second.stderr).contains("another lockstep"), "{}", text(&second.stderr));
    let second = run(home.path(), "up --detach --port 0");
    assert_eq!(second.status.code(), Some(4), "{}", text(&second.stderr));
    let down = run(home.path(), "down");
    assert!(down.status.success(), "{}", text(&down.stderr));
    let log = home.path().join(".local/share/lockstep/lockstep.log");
    let log = fs::read_to_string(log).expect("a log");
    assert!(log.contains(" address=127.0.0.1:"), "{log}");
    assert!(!log.contains(" WARN ") && !log.contains(" ERROR "), "an orderly stop: {log}");
    let gone = run(home.path(), "get ns");
    assert!(text(&gone.stderr).contains("no cluster"), "{}", text(&gone.stderr));
}

#[test]
fn a_stop_says_what_it_ends_and_where_it_was_asked_for() {
    let home = tempfile::tempdir().expect("a folder");
    let up = run(home.path(), "up --detach --port 0 --data-dir own");
    assert!(up.status.success(), "{}", text(&up.stderr));
    let stop = text(&up.stdout);
    let own = home.path().join("own");
    let command = format!("`lockstep down --data-dir {}`", own.display());
    assert!(stop.contains(&command), "{stop}");
    fs::write(home.path().join("pod.yaml"), pod("sleep 60")).expect("written");
    let made = run(home.path(), "apply -f pod.yaml --data-dir own");
    let placed = run(home.path(), "wait pod/p --for=condition=Ready --timeout=60s --data-dir own");
    assert!(made.status.success() && placed.status.success(), "{}", text(&placed.stderr));
    let down = run(home.path(), "down --data-dir own");
    assert!(down.status.success(), "{}", text(&down.stderr));
    assert!(text(&down.stderr).contains("ending 1 pod "), "{}", text(&down.stderr));
}

#[test]
fn a_run_ends_with_the_code_that_says_how() {
    let folder = tempfile::tempdir().expect("a folder");
    let cases = [
        ("echo fine", "", 0, "fine\n", "pod/p succeeded"),
        ("exit 7", "", 1, "", "container c ended with exit code 7"),
        (
            "sleep 60",
            "--timeout 1s ",
            3,
            "",
            "timed out after 1s; not finished:\n  pod/p is running",
        ),
        ("exit 7", "-q ", 1, "", "container c ended with exit code 7"),
        ("kill -9 $$$$", "-q ", 1, "", "exit code 137 (SIGKILL)"),
        ("echo last words; exit 1", "-q ", 1, "last words\n", "| last words"),
    ];
    for (script, options, code, out, err) in cases {
        fs::write(folder.path().join("pod.yaml"), pod(script)).expect("written");
        let output = run(folder.path(), &format!("run {options}pod.yaml"));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{script}: {said}");
        assert_eq!(text(&output.stdout), out, "{script}");
        assert!(said.contains(err), "{script}: {said}");
    }
    let bare = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: x}]}\n";
    fs::write(folder.path().join("pod.yaml"), bare).expect("written");
    let output = run(folder.path(), "run pod.yaml");
    assert_eq!(output.status.code(), Some(1), "a pod that can never start fails");
    assert!(text(&output.stderr).contains("--image-command"), "{}", text(&output.stderr));
    let output = run(folder.path(), "run pod.yaml --image-command x=true --timeout 3s");
    assert_eq!(output.status.code(), Some(3), "it is restarted for ever: {}", text(&output.stderr));
}

#[test]
fn a_run_that_cannot_start_says_why_even_when_quiet() {
    let folder = tempfile::tempdir().expect("a folder");
    let cases = [
        (pod("true").replace("[sh, -c, \"true\"]", "[/no/such/program]"), "StartError"),
        (
            pod("true") + "  volumes: [{name: v, configMap: {name: missing}}]\n",
            "FailedMount: MountVolume.SetUp failed for volume \"v\" : configmap \"missing\" not found",
        ),
        (
            pod("true").replace("image: x,", "image: x, resources: {requests: {cpu: 5000}},"),
            "cannot be placed: 0/1 nodes are available: 1 Insufficient cpu",
        ),
    ];
    for (manifest, want) in cases {
        fs::write(folder.path().join("pod.yaml"), &manifest).expect("written");
        let mut child = lockstep(folder.path())
            .args(["run", "-q", "pod.yaml", "--timeout", "60s"])
            .stderr(Stdio::piped())
            .spawn()
            .expect("lockstep runs");
        let mut said = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let is_said = said.any(|line| line.is_ok_and(|line| line.contains(want)));
        assert!(is_said, "it never said {want}\n{manifest}");
        signal("-INT", child.id());
        drop(said);
        let code = child.wait().expect("it ends").code();
        assert!(matches!(code, Some(1 | 130)), "{want}: {code:?}");
    }
}

#[test]
fn a_name_may_be_left_to_the_cluster_and_must_be_given_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let nameless = pod("echo fine").replace("name: p}", "generateName: p-}");
    fs::write(folder.path().join("pod.yaml"), &nameless).expect("written");
    let output = run(folder.path(), "run pod.yaml");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("pod/p-"), "{}", text(&output.stderr));
    let twice = format!("{}---\n{}", pod("true"), pod("false"));
    fs::write(folder.path().join("pod.yaml"), twice).expect("written");
    let output = run(folder.path(), "run pod.yaml");
    assert_eq!(output.status.code(), Some(2));
    let want = "pod.yaml:11: metadata.name: Duplicate value: pod/p is already given at pod.yaml:3; \
                rename one of them\n";
    assert_eq!(text(&output.stderr), want);
}

#[test]
fn pods_of_manifests_get_a_bare_environment() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("pod.yaml"), pod("pwd; echo ${SECRET-unset} $HOME; id -u"))
        .expect("written");
    let output = lockstep(folder.path())
        .args(["run", "pod.yaml"])
        .env("SECRET", "x")
        .output()
        .expect("runs");
    let home = folder.path().display();
    let said = text(&output.stdout);
    assert!(said.starts_with(&format!("/\nunset {home}\n")), "{said}");
}

#[test]
fn what_is_written_during_the_grace_is_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = "trap 'echo saving; sleep 0.3; echo saved; exit 0' TERM; echo up; \
                  while :; do sleep 0.1; done";
    fs::write(folder.path().join("pod.yaml"), pod(script)).expect("written");
    let mut child = lockstep(folder.path())
        .args(["run", "pod.yaml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("lockstep runs");
    let mut said = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    assert_eq!(said.next().expect("a line").expect("text"), "up");
    signal("-INT", child.id());
    let rest: Vec<String> = said.map(|line| line.expect("text")).collect();
    assert_eq!(rest, ["saving", "saved"]);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130));
    let told = text(&output.stderr);
    assert!(told.contains("interrupted: ending pod/p, with up to 2s of grace"), "{told}");
}

#[test]
fn results_are_printed_and_kept_where_that_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("pod.yaml"), pod("echo fine")).expect("written");
    let output = run(folder.path(), "run pod.yaml -o json --keep kept");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("fine\n"), "logs go to stderr");
    let list: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&list["kind"], &list["apiVersion"]), (&"List".into(), &"v1".into()));
    assert_eq!(list["items"][0]["status"]["phase"], "Succeeded");
    assert!(list["items"].as_array().expect("items").iter().any(|it| it["kind"] == "Event"));
    let log = fs::read_to_string(folder.path().join("kept/logs/default/p/c.log"));
    assert_eq!(log.expect("a log"), "fine\n");
    let kept = fs::read_to_string(folder.path().join("kept/objects.yaml")).expect("a list");
    assert!(kept.contains("phase: Succeeded"), "{kept}");
    let output = run(folder.path(), "run pod.yaml --keep kept");
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
}

#[test]
fn an_interrupted_run_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("pod.yaml"), pod("echo $$$$; exec sleep 600")).expect("written");
    let mut child = lockstep(folder.path())
        .args(["run", "pod.yaml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("lockstep runs");
    let mut said = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let process: String = said.next().expect("a line").expect("text");
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupt.expect("kill runs").success());
    let begun = Instant::now();
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(130), "after {:?}", begun.elapsed());
    assert!(process.trim().parse::<u32>().is_ok(), "{process:?} is no process id");
    let left = Path::new("/proc").join(process.trim()).join("cmdline");
    let cmdline = fs::read(left).unwrap_or_default();
    assert!(!text(&cmdline).contains("sleep"), "the process goes on");
}

#[test]
fn nobody_reading_does_not_change_the_result_of_what_writes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("pod.yaml"), pod("exit 3")).expect("written");
    let mut child = lockstep(folder.path())
        .args(["run", "-q", "pod.yaml", "-o", "json"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("lockstep runs");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
    fs::write(folder.path().join("bad.yaml"), "apiVersion: v1\nkind: Pod\n").expect("written");
    let mut child = lockstep(folder.path())
        .args(["validate", "bad.yaml"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("lockstep runs");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(2));
}

#[test]
fn pods_are_stopped_together() {
    let folder = tempfile::tempdir().expect("a folder");
    let stubborn = pod("trap : TERM; echo up; while :; do sleep 0.1; done");
    let pods: Vec<String> =
        (0..4).map(|i| stubborn.replace("name: p}", &format!("name: p{i}}}"))).collect();
    fs::write(folder.path().join("pods.yaml"), pods.join("---\n")).expect("written");
    let mut child = lockstep(folder.path())
        .args(["run", "-q", "pods.yaml"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("lockstep runs");
    let said = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    assert_eq!(said.take(4).count(), 4);
    let begun = Instant::now();
    signal("-INT", child.id());
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert!(begun.elapsed().as_secs_f64() < 6.0, "each has a grace of 2 s: {:?}", begun.elapsed());
}

#[test]
fn a_second_signal_kills_and_a_hang_up_counts() {
    let folder = tempfile::tempdir().expect("a folder");
    let stubborn = pod("trap : TERM; echo up; while :; do sleep 0.1; done");
    let patient = stubborn.replace("Seconds: 2", "Seconds: 60");
    fs::write(folder.path().join("pod.yaml"), patient).expect("written");
    let mut child = lockstep(folder.path())
        .args(["run", "pod.yaml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("lockstep runs");
    let said = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    assert_eq!(said.take(1).count(), 1);
    let mut told = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let begun = Instant::now();
    // Under `nohup` a hang-up is to be ignored, by the run as by the tests.
    let which = if ignores_hang_ups() { "-TERM" } else { "-HUP" };
    signal(which, child.id());
    assert!(told.any(|line| line.is_ok_and(|line| line.starts_with("interrupted"))));
    signal(which, child.id());
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
}

#[test]
fn a_detached_cluster_keeps_to_the_folder_it_was_given() {
    let home = tempfile::tempdir().expect("a folder");
    let up = run(home.path(), "up -dp 0 --log warn --data-dir here");
    assert!(up.status.success(), "{}", text(&up.stderr));
    let found = run(home.path(), "get ns default -o name --data-dir here");
    let down = run(home.path(), "down --data-dir here");
    assert!(down.status.success(), "{}", text(&down.stderr));
    assert_eq!(text(&found.stdout), "namespace/default\n", "{}", text(&found.stderr));
    assert!(home.path().join("here/kubeconfig").exists());
    let usage = run(home.path(), "up -d --log [ --data-dir there");
    assert_eq!(usage.status.code(), Some(2), "{}", text(&usage.stderr));
}

fn ignores_hang_ups() -> bool {
    let status = fs::read_to_string("/proc/self/status").expect("there is /proc");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & 1 == 1)
}

fn signal(which: &str, process: u32) {
    let sent = Command::new("kill").args([which, &process.to_string()]).status();
    assert!(sent.expect("kill runs").success());
}
