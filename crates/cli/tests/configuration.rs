//! What a configuration file says to no effect is told by every command that reads one.

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

const FILE: &str = "apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
fairSharing: {preemptionStrategies: [LessThanInitialShare]}
featureGates: {TopologyAwareScheduling: true}
";

const POD: &str = "apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {restartPolicy: Never, containers: [{name: c, image: x, command: ['true']}]}
";

fn lockstep(folder: &Path, words: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockstep"));
    command.args(words.split(' ')).current_dir(folder).env("HOME", folder);
    command.env_remove("KUBECONFIG").env_remove("XDG_DATA_HOME").env_remove("LOCKSTEP_LOG");
    command.stdin(Stdio::null()).output().expect("lockstep runs")
}

/// Lines of stderr that say that something has no effect.
fn warnings(output: &Output) -> Vec<String> {
    let said = String::from_utf8_lossy(&output.stderr);
    said.lines().filter(|line| line.contains("no effect")).map(ToOwned::to_owned).collect()
}

#[test]
fn settings_without_effect_are_named_once_by_every_command() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("c.yaml"), FILE).expect("written");
    fs::write(folder.path().join("p.yaml"), POD).expect("written");
    let cases = [
        ("run --config c.yaml p.yaml", 0),
        ("up --config c.yaml --detach --in-memory --port 0 --data-dir here", 0),
        (
            "operator --config c.yaml --kubeconfig none --metrics-bind-address 0 \
             --health-probe-bind-address 0",
            2,
        ),
    ];
    let wanted = ["fairSharing", "featureGates.TopologyAwareScheduling"]
        .map(|part| format!("warning: --config: {part} has no effect yet"));
    for (words, code) in cases {
        let output = lockstep(folder.path(), &format!("{words} --log error"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words}: {said}");
        assert_eq!(warnings(&output), wanted, "{words}: {said}");
    }
    let down = lockstep(folder.path(), "down --data-dir here");
    assert!(down.status.success(), "{}", String::from_utf8_lossy(&down.stderr));
    let quiet = lockstep(folder.path(), "run -q --config c.yaml p.yaml");
    assert_eq!(warnings(&quiet), Vec::<String>::new(), "only errors were wanted");
}
