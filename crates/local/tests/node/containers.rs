//! Containers start, write, are told to stop, and end with everything they started.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use futures::TryStreamExt;
use lockstep_local::node::logs::{self, LogOptions};
use lockstep_local::node::runtime::{ExecError, ExecFailure, LogRotation, StartError};

use super::support::{Node, eventually, options, script};

#[tokio::test(flavor = "multi_thread")]
async fn exit_codes_and_output_are_the_programs() {
    let mut node = Node::new();
    let launch = script("codes", "echo out; echo err >&2; printf half; exit 7");
    let id = launch.id.clone();
    let exited = node.run(launch).await;
    assert_eq!((exited.code, exited.signal, exited.oom_killed), (7, None, false));
    assert!(exited.finished_at >= exited.started_at);
    let log = node.log(&id);
    for line in ["out", "err", "half"] {
        assert!(log.lines().any(|found| found == line), "{line} in {log:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deaths_by_signal_are_reported_as_such() {
    let mut node = Node::new();
    for (number, code) in [(15, 143), (9, 137), (11, 139)] {
        let launch = script(&format!("signal{number}"), "sleep 60");
        let id = launch.id.clone();
        node.runtime.start(launch).await.unwrap();
        node.runtime.terminate(&id, number);
        let exited = node.exited().await;
        assert_eq!((exited.code, exited.signal), (code, Some(number)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handled_signal_is_an_ordinary_exit() {
    let mut node = Node::new();
    let launch =
        script("handled", "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done");
    let id = launch.id.clone();
    node.runtime.start(launch).await.unwrap();
    eventually("the handler", || node.log(&id).contains("ready")).await;
    node.runtime.terminate(&id, 15);
    assert_eq!(node.exited().await.code, 0);
    assert!(node.log(&id).contains("bye"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_escaped_dies_with_the_container() {
    let mut node = Node::new();
    let escape = "setsid sh -c 'setsid sleep 987 & echo $!; sleep 986' & sleep 0.2";
    let ends = [("alone", escape.to_owned()), ("killed", format!("{escape}; sleep 60"))];
    for (name, text) in ends {
        let launch = script(name, &text);
        let id = launch.id.clone();
        node.runtime.start(launch).await.unwrap();
        eventually("the daemon", || node.log(&id).trim().parse::<u32>().is_ok()).await;
        if name == "killed" {
            node.runtime.kill(&id);
            assert_eq!(node.exited().await.code, 137);
        } else {
            assert_eq!(node.exited().await.code, 0);
        }
        let daemon = node.log(&id).trim().to_owned();
        assert!(!std::path::Path::new(&format!("/proc/{daemon}")).exists(), "{name}: {daemon}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_start_says_why() {
    let node = Node::new();
    let mut cases = Vec::new();
    let mut add = |name: &str, command: &[&str], dir: Option<&str>, want: &str| {
        let mut launch = script(name, "");
        launch.command = command.iter().map(|&word| word.to_owned()).collect();
        launch.working_dir = dir.map(Into::into);
        cases.push((launch, want.to_owned()));
    };
    add(
        "bare",
        &["no-such-program"],
        None,
        "exec: \"no-such-program\": executable file not found in $PATH",
    );
    add(
        "path",
        &["/no/such"],
        None,
        "exec: \"/no/such\": stat /no/such: no such file or directory",
    );
    add("file", &["/etc/passwd"], None, "exec: \"/etc/passwd\": permission denied");
    add("dir", &["/etc"], None, "exec: \"/etc\": is a directory");
    add(
        "cwd",
        &["true"],
        Some("/etc/passwd"),
        "chdir to cwd (\"/etc/passwd\") failed: not a directory",
    );
    for (launch, want) in cases {
        let error = node.runtime.start(launch).await.unwrap_err();
        assert!(matches!(error, StartError::Exec(_)), "{error}");
        assert_eq!(error.to_string(), format!("failed to create process: {want}"));
        assert_eq!((error.reason(), error.exit_code()), ("StartError", 128));
    }
    let mut empty = script("empty", "");
    empty.command.clear();
    assert!(matches!(node.runtime.start(empty).await, Err(StartError::NoCommand)));
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_run_beside_the_main_process() {
    let mut node = Node::new();
    let mut launch = script("exec", "sleep 60");
    launch.env.push(("COLOUR".to_owned(), "red".to_owned()));
    let id = launch.id.clone();
    node.runtime.start(launch).await.unwrap();
    let runtime = node.runtime.clone();
    let exec = |text: &str, seconds| {
        let command = ["sh", "-c", text].map(str::to_owned);
        let (runtime, id) = (runtime.clone(), id.clone());
        async move { runtime.exec(&id, &command, Duration::from_secs_f64(seconds)).await }
    };
    let outcome = exec("echo $COLOUR; echo bad >&2; exit 3", 10.0).await.unwrap();
    assert_eq!((outcome.code, outcome.output.as_slice()), (3, b"red\nbad\n".as_slice()));
    let outcome = exec("yes | head -c 200000", 10.0).await.unwrap();
    assert_eq!((outcome.code, outcome.output.len()), (0, 64 << 10));
    let error = exec("sleep 50", 0.2).await.unwrap_err();
    assert!(matches!(error, ExecError::TimedOut { .. }), "{error}");
    let missing = node.runtime.exec(&id, &["nope".to_owned()], Duration::from_secs(1)).await;
    assert!(matches!(missing, Err(ExecError::Exec(ExecFailure::NotInPath { .. }))));
    node.runtime.kill(&id);
    node.exited().await;
    let error = exec("true", 1.0).await.unwrap_err();
    assert!(matches!(error, ExecError::NotRunning { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn last_words_come_from_the_file_or_the_log() {
    let mut node = Node::new();
    let launch = script("file", "echo -n because > /dev/termination-log; exit 1");
    assert_eq!(node.run(launch).await.message, "because");
    let mut launch = script("log", "echo broken; exit 1");
    launch.message_from_logs_on_error = true;
    assert_eq!(node.run(launch).await.message, "broken\n");
    let mut launch = script("fine", "echo fine");
    launch.message_from_logs_on_error = true;
    assert_eq!(node.run(launch).await.message, "");
    let launch = script("much", "head -c 10000 /dev/zero | tr '\\0' x > /dev/termination-log");
    assert_eq!(node.run(launch).await.message.len(), 4096);
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_followed_through_rotation_to_the_end() {
    let mut options = options();
    options.rotation = LogRotation { bytes_max: 20_000, files_max: 50 };
    let mut node = Node::with(options);
    let launch = script("follow", "for i in $(seq 5000); do echo $i; done; sleep 0.1; echo end");
    let id = launch.id.clone();
    node.runtime.start(launch).await.unwrap();
    let follow = LogOptions { follow: true, ..LogOptions::default() };
    let log = logs::read(&node.dirs, "default", &id.pod_uid, &id, follow);
    let chunks: Vec<_> = log.try_collect().await.unwrap();
    let text = String::from_utf8(chunks.concat()).unwrap();
    let want: String = (1..=5000).map(|number| format!("{number}\n")).collect();
    assert_eq!(text, want + "end\n");
    node.exited().await;
    let tail = LogOptions { tail_lines: Some(2), ..LogOptions::default() };
    let log = logs::read(&node.dirs, "default", &id.pod_uid, &id, tail);
    let chunks: Vec<_> = log.try_collect().await.unwrap();
    assert_eq!(chunks.concat(), b"5000\nend\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_root_runs_containers_as_others() {
    let mut node = Node::new();
    let mut launch = script("user", "id -u; id -G; grep CapBnd /proc/self/status");
    launch.credentials.user = Some(12345);
    launch.credentials.group = Some(23456);
    launch.credentials.groups = vec![34567];
    launch.credentials.dropped_capabilities = (0..41).collect();
    let id = launch.id.clone();
    node.runtime.start(launch).await.unwrap();
    assert_eq!(node.exited().await.code, 0);
    let log = node.log(&id);
    let own = rustix::process::geteuid();
    if own.is_root() {
        assert_eq!(log, "12345\n23456 34567\nCapBnd:\t0000000000000000");
    } else {
        assert_eq!(log.lines().next(), Some(own.as_raw().to_string().as_str()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_its_user_may_not_run_is_looked_for_further_on() {
    let folder = tempfile::tempdir().unwrap();
    let private = folder.path().join("private");
    fs::create_dir(&private).unwrap();
    let only_owner = fs::Permissions::from_mode(0o700);
    // By another process: while this one has the file open, a container that is started at that
    // moment has it open too, and it cannot be run.
    let written = std::process::Command::new("sh")
        .args(["-c", "printf '#!/bin/sh\\nexit 7\\n' > \"$0\""])
        .arg(private.join("sh"))
        .status();
    assert!(written.unwrap().success());
    fs::set_permissions(private.join("sh"), only_owner.clone()).unwrap();
    fs::set_permissions(&private, only_owner).unwrap();
    let mut node = Node::new();
    let mut launch = script("path", "exit 3");
    launch.env.retain(|(name, _)| name != "PATH");
    launch.env.push(("PATH".to_owned(), format!("{}:/usr/bin:/bin", private.display())));
    launch.credentials.user = Some(12345);
    let is_other = rustix::process::geteuid().is_root();
    assert_eq!(node.run(launch).await.code, if is_other { 3 } else { 7 });
}

#[tokio::test(flavor = "multi_thread")]
async fn long_paths_and_many_at_once_are_no_matter() {
    let folder = tempfile::tempdir().unwrap();
    let mut node = Node::at(folder.path().join("x".repeat(200)), options());
    let starts = (0..30).map(|number| {
        let runtime = node.runtime.clone();
        async move { runtime.start(script(&format!("many{number}"), "sleep 0.2")).await.map(|_| ()) }
    });
    futures::future::try_join_all(starts).await.unwrap();
    for _ in 0..30 {
        assert_eq!(node.exited().await.code, 0);
    }
    let launch = script("last", "sleep 60");
    let id = launch.id.clone();
    node.runtime.start(launch).await.unwrap();
    let outcome = node.runtime.exec(&id, &["true".to_owned()], Duration::from_secs(20)).await;
    assert_eq!(outcome.unwrap().code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn descriptors_of_this_process_are_not_passed_on() {
    let mut node = Node::new();
    let leaky = rustix::pipe::pipe().unwrap();
    let launch = script("open", "ls /proc/self/fd | wc -l");
    let id = launch.id.clone();
    assert_eq!(node.run(launch).await.code, 0);
    // The three standard ones and the one that reads the folder.
    assert_eq!(node.log(&id).trim(), "4");
    drop(leaky);
}
