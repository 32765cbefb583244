//! What people see: every screen, against golden files.

#[path = "../src/golden.rs"]
mod golden;

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Output, Stdio},
};

fn lockstep() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockstep"));
    command
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data"))
        .env_clear()
        .env("HOME", "/nonexistent")
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::null());
    command
}

/// One command as a transcript: what was typed, what came out, how it ended.
fn transcript(words: &str, output: &Output) -> String {
    let mut text = format!("$ lockstep {words}\n");
    text.push_str(&String::from_utf8_lossy(&output.stdout));
    for line in String::from_utf8_lossy(&output.stderr).lines() {
        text.push_str("(stderr) ");
        text.push_str(line);
        text.push('\n');
    }
    match output.status.code() {
        Some(0) => text + "\n",
        code => format!("{text}(ends with {})\n\n", code.unwrap_or(-1)),
    }
}

fn screens(lines: &[&str]) -> String {
    let run = |words: &&str| {
        let output = lockstep().args(words.split(' ')).output().expect("lockstep runs");
        transcript(words, &output)
    };
    lines.iter().map(run).collect()
}

#[test]
fn help_teaches() {
    let mut text = String::new();
    for command in [
        "--help",
        "run --help",
        "up --help",
        "down --help",
        "apply --help",
        "get --help",
        "describe --help",
        "logs --help",
        "events --help",
        "delete --help",
        "validate --help",
        "completions --help",
        "version --help",
    ] {
        text.push_str(&screens(&[command]));
    }
    golden::check("help.txt", &text);
}

#[test]
fn mistakes_are_explained() {
    let text = screens(&[
        "get",
        "get pods",
        "get pods --kubeconfig missing.yaml",
        "get pods --data-dir /nonexistent/cluster",
        "apply -f missing.yaml",
        "apply",
        "logs",
        "logs p --since soon",
        "delete pod p --now --force",
        "run missing.yaml",
        "run no-pod.yaml",
        "run a-job.yaml",
        "run broken.yaml",
        "down --data-dir /nonexistent/cluster",
        "nonsense",
    ]);
    golden::check("mistakes.txt", &text);
}

#[test]
fn validation_names_file_line_and_field() {
    let text = screens(&[
        "validate described-pod.yaml no-pod.yaml",
        "validate invalid.yaml",
        "validate broken.yaml",
        "validate --quiet no-pod.yaml",
    ]);
    golden::check("validate.txt", &text);
}

#[test]
fn versions_and_completions_need_no_cluster() {
    let output = lockstep().args(["version", "--client"]).output().expect("lockstep runs");
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("lockstep "), "{output:?}");
    for shell in ["bash", "zsh", "fish"] {
        let output = lockstep().args(["completions", shell]).output().expect("lockstep runs");
        assert!(String::from_utf8_lossy(&output.stdout).contains("lockstep"), "{shell}");
    }
}

/// A cluster for one test.
struct Up {
    child: Child,
    folder: tempfile::TempDir,
}

impl Up {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut child = lockstep()
            .args(["up", "--in-memory", "--port", "0", "--log", "warn", "--data-dir"])
            .arg(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("lockstep runs");
        let mut said = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let is_ready = said.any(|line| line.is_ok_and(|line| line.contains("export KUBECONFIG=")));
        assert!(is_ready, "it ended before it was ready");
        Self { child, folder }
    }

    /// Runs a command on this cluster; `stdin` is what it reads.
    fn run(&self, words: &str, stdin: &str) -> String {
        let mut child = lockstep()
            .args(words.split(' '))
            .arg("--data-dir")
            .arg(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("lockstep runs");
        child.stdin.take().expect("a pipe").write_all(stdin.as_bytes()).expect("written");
        transcript(words, &child.wait_with_output().expect("it ends"))
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn objects_come_and_go_in_kubectls_words() {
    let config =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, labels: {a: x}}\ndata: {k: v}\n";
    let changed = config.replace("k: v", "k: w");
    let typo = config.replace("name: c", "name: d").replace("data: {k", "dada: {k");
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {word: sesame}\n";
    let up = Up::start();
    let steps = [
        ("get cm", ""),
        ("apply -f - --dry-run=server", config),
        ("apply -f -", config),
        ("apply -f -", config),
        ("apply -f -", changed.as_str()),
        ("apply -f -", typo.as_str()),
        ("apply -f -", secret),
        ("get cm c -o name", ""),
        ("get cm,secret -l a=x -o name", ""),
        ("get cm --field-selector metadata.name=c --show-labels --no-headers -o name", ""),
        ("get cm nope", ""),
        ("get cm nope --ignore-not-found", ""),
        ("get nonsense", ""),
        ("get cm -l a=(", ""),
        ("describe cm c", ""),
        ("logs nope", ""),
        ("events --for cm/c", ""),
        ("delete cm", ""),
        ("delete cm c", ""),
        ("delete cm c", ""),
        ("delete cm c --ignore-not-found", ""),
        ("delete -f -", secret),
        ("delete pod p --grace-period=0", ""),
    ];
    let text: String = steps.iter().map(|(words, stdin)| up.run(words, stdin)).collect();
    golden::check("objects.txt", &text);
}
