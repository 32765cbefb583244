//! Every exit code of the table in docs/reference.md is what commands really end with.

#[path = "common/up.rs"]
mod common;

use std::{fs, path::Path};

use common::{Up, lockstep};

/// The codes of the documented table.
fn documented() -> Vec<i32> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference.md");
    let text = fs::read_to_string(page).expect("the reference");
    let (_, section) = text.split_once("## Exit codes").expect("a section about exit codes");
    let section = section.split("\n## ").next().unwrap_or_default();
    let first_cells = section.lines().filter_map(|line| line.strip_prefix("| ")?.split(' ').next());
    first_cells.filter_map(|cell| cell.parse().ok()).collect()
}

#[test]
fn commands_end_with_the_documented_codes() {
    let config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n";
    let invalid = config.replace("name: c", "name: Not_A_Name");
    let unknown = config.replace("kind: ConfigMap", "kind: ConfigMop");
    let typo = format!("{config}dada: {{}}\n");
    let held = config.replace("{name: c}", "{name: held, finalizers: [example.com/hold]}");
    let elsewhere = config.replace("{name: c}", "{name: c, namespace: nowhere}");
    let job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {template: {spec: \
               {restartPolicy: Sometimes, containers: []}}}\n";
    let up = Up::start();
    let cases = [
        ("get cm", "", 0),
        ("apply -f -", config, 0),
        ("apply -f -", &held, 0),
        ("create -f -", config, 1),
        ("apply -f -", &elsewhere, 1),
        ("get cm nope", "", 1),
        ("describe cm nope", "", 1),
        ("logs nope", "", 1),
        ("delete cm nope", "", 1),
        ("wait cm/nope --for=condition=Ready", "", 1),
        ("apply -f -", &invalid, 2),
        ("apply -f -", &unknown, 2),
        ("apply -f -", &typo, 2),
        ("apply -f -", "a: [", 2),
        ("apply -f -", "", 2),
        ("apply -f -", job, 2),
        ("create -f -", &invalid, 2),
        ("delete -f -", &unknown, 2),
        ("get nonsense", "", 2),
        ("get cm -l a=(", "", 2),
        ("get cm --sort-by=.nothing", "", 2),
        ("events --for nonsense", "", 2),
        ("delete cm", "", 2),
        ("delete cm held --timeout=1s", "", 3),
        ("wait cm/c --for=jsonpath={.data.k} --timeout=1s", "", 3),
        ("wait cm/c --for=delete --timeout=0", "", 3),
    ];
    let mut seen: Vec<i32> = Vec::new();
    for (words, stdin, code) in cases {
        let output = up.output(words, stdin);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words} < {stdin:?}: {said}");
        assert!(code == 0 || !said.is_empty(), "{words} says why");
        seen.push(code);
    }
    seen.extend(offline());
    // How a run ends, and with 130 when it is interrupted, is in `lifecycle.rs`.
    seen.push(130);
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, documented(), "the table in docs/reference.md");
}

/// Commands that have no cluster.
fn offline() -> Vec<i32> {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("file"), "x").expect("written");
    let cases = [
        ("validate missing.yaml", 2),
        ("up --listen 0.0.0.0", 2),
        ("up --log [ --data-dir cluster", 2),
        ("get pods --kubeconfig missing", 2),
        ("get pods --output=nonsense", 2),
        ("get pods", 4),
        ("get pods --data-dir nowhere", 4),
        ("apply -f -", 2),
        // A file where a folder should be.
        ("up --data-dir file", 4),
        ("up --detach --data-dir file", 4),
    ];
    for (words, code) in cases {
        let mut command = lockstep();
        let output = command.args(words.split(' ')).current_dir(folder.path()).output();
        let output = output.expect("lockstep runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words}: {said}");
        assert!(said.starts_with("error: ") || words.starts_with("validate"), "{words}: {said}");
    }
    cases.iter().map(|(_, code)| *code).collect()
}

#[test]
fn a_server_that_went_away_is_a_cluster_that_failed() {
    let up = Up::start();
    let text = fs::read_to_string(up.folder.path().join("kubeconfig")).expect("a kubeconfig");
    let copy = tempfile::NamedTempFile::new().expect("a file");
    fs::write(copy.path(), text).expect("written");
    drop(up);
    let output = lockstep()
        .args(["get", "pods", "--kubeconfig"])
        .arg(copy.path())
        .output()
        .expect("lockstep runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("is `lockstep up` running?"), "{said}");
}
