//! Stopping and killing the server again and again while it runs pods: nothing of it may stay
//! behind, nothing may run twice, and what may run again does.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

use super::{
    check::{Check, Suite, Summary},
    up::Up,
};
use crate::{kubectl, shell};

/// How often the server is stopped in good order, and how often killed.
const ROUNDS: usize = 8;

/// How many pods it runs when it is stopped, and how many it starts when it is killed.
const PODS: usize = 4;

/// How long pods may take to run.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs all of it.
pub(crate) fn run(binary: &Path) -> Result<Summary> {
    let folder = tempfile::tempdir()?;
    let kubectl = kubectl::binary(kubectl::VERSIONS[0])?;
    let mut suite = Suite::new("restart", &kubectl);
    let data = folder.path().join("data");
    suite.set("KUBECONFIG", data.join("kubeconfig"));
    suite.set("HOME", folder.path());
    let mut up = Up::start(binary, &data, &["--port", "0"])?;
    let before = version(&suite);
    for round in 1..=ROUNDS {
        up = stopped(&mut suite, binary, &data, up, round)?;
    }
    history(&mut suite, before);
    for round in 1..=ROUNDS {
        up = killed(&mut suite, binary, &data, up, round)?;
    }
    down(binary, &data)?;
    suite.prove("nothing is left of all that", |_| nothing_left(binary, &data));
    drop(up);
    Ok(suite.finish())
}

/// Stops the server with `down` and starts it at once. In every other round that hits pods which
/// are just being started.
fn stopped(suite: &mut Suite, binary: &Path, data: &Path, up: Up, round: usize) -> Result<Up> {
    if round == 1 {
        let pods: String = (0..PODS).map(|number| pod(&format!("stays-{number}"), data)).collect();
        suite.check("pods", Check::new("apply -f -").stdin(&pods).out("created"));
    }
    if round % 2 == 1 {
        let outcome = until_running(data, "stays-", PODS);
        suite.prove(&format!("stop {round}: the pods run"), |_| outcome);
    }
    let began = Instant::now();
    let stopped = down(binary, data);
    let took = began.elapsed();
    let left = nothing_left(binary, data);
    drop(up);
    let again = Up::start(binary, data, &["--port", "0"]);
    suite.prove(&format!("stop {round}: `down` ends ({took:.0?})"), |_| {
        stopped.map_err(|error| error.to_string())
    });
    suite.prove(&format!("stop {round}: no process is left"), |_| left);
    suite.prove(&format!("stop {round}: the data directory is free at once"), |_| {
        again.as_ref().map(drop).map_err(ToString::to_string)
    });
    again
}

/// What happened before the server was started anew is not remembered, and watchers are told so.
fn history(suite: &mut Suite, before: u64) {
    suite.prove("versions go on where they were", |suite| {
        let now = version(suite);
        let is_right = 0 < before && before < now;
        is_right.then_some(()).ok_or_else(|| format!("{before} before and {now} now"))
    });
    for what in ["api/v1/pods", "apis/batch/v1/jobs"] {
        let path = format!("/{what}?watch=true&timeoutSeconds=5&allowWatchBookmarks=true");
        let watch = Check::new(&format!("get --raw '{path}&resourceVersion={before}'"));
        let watch = watch.out("\"type\":\"ERROR\"").out("\"code\":410").out("\"Expired\"");
        let watch = watch.out_lacks("BOOKMARK");
        suite.check(&format!("42 a watch of {what} from before: 410"), watch);
    }
}

/// The version of everything there is.
fn version(suite: &Suite) -> u64 {
    let list = suite.ask("get --raw /api/v1/namespaces/kube-public/configmaps").out;
    let list: serde_json::Value = serde_json::from_str(&list).unwrap_or_default();
    let version = list["metadata"]["resourceVersion"].as_str();
    version.and_then(|version| version.parse().ok()).unwrap_or_default()
}

/// Kills the server while it starts pods.
fn killed(suite: &mut Suite, binary: &Path, data: &Path, up: Up, round: usize) -> Result<Up> {
    let prefix = format!("new-{round}-");
    let pods: String = (0..PODS).map(|number| pod(&format!("{prefix}{number}"), data)).collect();
    suite.check(
        &format!("kill {round}: new pods"),
        Check::new("apply -f -").stdin(&pods).out("created"),
    );
    let pause = u64::try_from(round).unwrap_or_default() * 23 % 180;
    thread::sleep(Duration::from_millis(pause));
    up.kill()?;
    let up = Up::start(binary, data, &["--port", "0"]).context("after the kill")?;
    let outcome = until_running(data, &prefix, PODS)
        .and_then(|()| until_running(data, "stays-", PODS))
        .and_then(|()| none_twice(data));
    suite.prove(&format!("kill {round}, after {pause} ms: all run, none twice"), |_| outcome);
    suite.check(
        &format!("kill {round}: they can be deleted"),
        Check::new(&format!("delete pod -l batch={} --timeout=60s", label(&prefix))).out("deleted"),
    );
    Ok(up)
}

fn down(binary: &Path, data: &Path) -> Result<()> {
    shell::output(Command::new(binary).arg("down").arg("--data-dir").arg(data)).map(drop)
}

/// A pod that runs until it is stopped, says so with 0, and may run again.
fn pod(name: &str, data: &Path) -> String {
    let policy = if name.ends_with(['0', '2']) { "OnFailure" } else { "Always" };
    let batch = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    format!(
        "apiVersion: v1
kind: Pod
metadata:
  name: {name}
  labels: {{batch: {}}}
spec:
  restartPolicy: {policy}
  terminationGracePeriodSeconds: 5
  containers:
  - name: main
    image: busybox
    env: [{{name: {MARK}, value: {:?}}}, {{name: POD, value: {name}}}]
    command: [sh, -c, \"trap 'exit 0' TERM; while :; do sleep 0.05 & wait; done\"]
---
",
        label(batch),
        data.display().to_string()
    )
}

/// What the pods of a batch have in common; labels may not end in a dash, so a letter follows.
fn label(prefix: &str) -> String {
    format!("{prefix}x")
}

const MARK: &str = "LOCKSTEP_E2E";

/// The pods of `data` that have a main process, with how many: one whose parent does not belong to
/// the same pod.
fn mains(data: &Path) -> BTreeMap<String, usize> {
    let mark = format!("{MARK}={}", data.display());
    let mut pods: BTreeMap<u32, (String, u32)> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
        let variables: Vec<_> =
            environ.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        let name = variables.iter().find_map(|variable| variable.strip_prefix("POD="));
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1));
        let parent = parent.and_then(|parent| parent.parse().ok());
        if let (true, Some(name), Some(parent)) =
            (variables.iter().any(|variable| *variable == mark), name, parent)
        {
            pods.insert(pid, (name.to_owned(), parent));
        }
    }
    let mut counts = BTreeMap::new();
    for (name, parent) in pods.values() {
        if !pods.contains_key(parent) {
            *counts.entry(name.clone()).or_default() += 1;
        }
    }
    counts
}

fn until_running(data: &Path, prefix: &str, count: usize) -> Result<(), String> {
    let limit = Instant::now() + PATIENCE;
    loop {
        let mains = mains(data);
        let running = mains.keys().filter(|name| name.starts_with(prefix)).count();
        if running == count {
            return Ok(());
        }
        if Instant::now() > limit {
            return Err(format!("{running} of {count} pods {prefix}* run: {mains:?}"));
        }
        thread::sleep(Duration::from_millis(50));
    }
}

fn none_twice(data: &Path) -> Result<(), String> {
    // Whatever was on its way has arrived by then.
    thread::sleep(Duration::from_millis(300));
    let twice: Vec<_> = mains(data).into_iter().filter(|(_, count)| *count > 1).collect();
    if twice.is_empty() { Ok(()) } else { Err(format!("these run twice: {twice:?}")) }
}

/// That neither a container nor a shim nor the server runs.
fn nothing_left(binary: &Path, data: &Path) -> Result<(), String> {
    let mut left: Vec<String> = mains(data).into_keys().collect();
    let binary = binary.canonicalize().map_err(|error| error.to_string())?;
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let is_shim = words.split(|byte| *byte == 0).any(|word| word == b"__shim");
        let is_ours = fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == binary);
        if is_ours && is_shim {
            left.push(format!("the shim {}", entry.file_name().to_string_lossy()));
        }
    }
    if left.is_empty() { Ok(()) } else { Err(format!("these still run: {left:?}")) }
}
