//! Every example runs as its first lines say.

use std::{
    path::Path,
    process::{Command, Output},
};

fn run(example: &str) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .args(["run", "--timeout", "120s", "--node-name", "here"])
        .arg(format!("examples/{example}"))
        .current_dir(root)
        .output()
        .expect("lockstep runs")
}

fn succeeds_with(example: &str, wanted: &str) {
    let output = run(example);
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{example}: {}\n{out}\n{err}", output.status);
    assert_eq!(out, wanted, "{example}\n{err}");
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
