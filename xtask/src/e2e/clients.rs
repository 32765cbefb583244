//! Client libraries against `lockstep up`: the official one for Python, client-go, kube-rs over TCP
//! and in-process. Each is a program of its own that prints one line for each check. And bundles of
//! manifests, as others publish them.
//!
//! The programs' source is in `tests/clients` and `crates/local/examples/kube_client`; what they
//! are made of outside of this repository is installed once, by version, into the user's cache.

mod bundles;
mod go;
mod python;

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result};

use super::{
    check::{Done, Suite, Summary, finish},
    up::{self, Up},
};
use crate::shell;

/// Runs each client on a cluster of its own.
pub(crate) fn run(binary: &Path) -> Result<Summary> {
    let mut summary = Summary::default();
    let python = python::environment()?;
    summary.add(on_a_cluster("Python client", &python, binary, |suite, up| {
        let mut program = Command::new(python.join("bin/python"));
        program.arg(shell::root().join("tests/clients/python/main.py"));
        // Nothing is left among the sources.
        program.env("PYTHONDONTWRITEBYTECODE", "1");
        tell(suite, program.env("KUBECONFIG", up.kubeconfig()));
    })?);
    let go = go::binary()?;
    summary.add(on_a_cluster("client-go", &go, binary, |suite, up| {
        tell(suite, Command::new(&go).env("KUBECONFIG", up.kubeconfig()));
        let mut lists = Command::new(&go);
        lists.arg("informers").env("KUBE_FEATURE_WatchListClient", "false");
        tell(suite, lists.env("KUBECONFIG", up.kubeconfig()));
    })?);
    let kube = kube_client()?;
    summary.add(on_a_cluster("kube-rs over TCP", &kube, binary, |suite, up| {
        tell(suite, Command::new(&kube).env("KUBECONFIG", up.kubeconfig()));
    })?);
    let mut suite = Suite::new("kube-rs in-process", &kube);
    tell(&mut suite, Command::new(&kube).arg("--in-process"));
    summary.add(suite.finish());
    summary.add(bundles::run(binary)?);
    Ok(summary)
}

/// Runs checks that use `program` on a new cluster.
fn on_a_cluster(
    title: &str,
    program: &Path,
    binary: &Path,
    checks: impl FnOnce(&mut Suite, &Up),
) -> Result<Summary> {
    let folder = tempfile::tempdir()?;
    let up = Up::start(binary, &folder.path().join("data"), &["--port", "0"])?;
    let mut suite = Suite::new(title, program);
    suite.set("KUBECONFIG", up.kubeconfig());
    suite.set("HOME", folder.path());
    checks(&mut suite, &up);
    let said = up.said();
    up.stop()?;
    suite.prove("the server never panicked", |_| {
        if said.contains("panicked") { Err(said.clone()) } else { Ok(()) }
    });
    Ok(suite.finish())
}

/// The program that uses kube-rs. It is an example of the crate whose cluster it starts, and is
/// built with everything else for development, which is done here if it was not before.
fn kube_client() -> Result<PathBuf> {
    let program = shell::target().join("debug/examples/kube_client");
    if !program.is_file() {
        up::build(false)?;
    }
    program.canonicalize().context("the example kube_client was not built")
}

/// Runs a client and records what it says.
fn tell(suite: &mut Suite, program: &mut Command) {
    program.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let done = match program.spawn() {
        Ok(child) => finish(child, ""),
        Err(error) => Done { code: -1, err: error.to_string(), ..Done::default() },
    };
    for line in told(&done) {
        suite.prove(&line.name, |_| line.outcome);
    }
}

/// One line of a client.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    name: String,
    outcome: Result<(), String>,
}

/// Reads the lines of a client. One that says nothing, or does not get to its last line, has
/// failed, however good its lines are.
fn told(done: &Done) -> Vec<Told> {
    let mut lines = Vec::new();
    let mut is_over = false;
    for line in done.out.lines() {
        let mut words = line.splitn(3, '\t');
        let (mark, name) = (words.next(), words.next().unwrap_or_default().to_owned());
        match mark {
            Some("ok") => lines.push(Told { name, outcome: Ok(()) }),
            Some("FAIL") => {
                let why = words.next().unwrap_or("it does not say why").to_owned();
                lines.push(Told { name, outcome: Err(why) });
            }
            Some("done") => is_over = true,
            _ => {}
        }
    }
    let outcome = match is_over && !lines.is_empty() && done.code <= 1 {
        true => Ok(()),
        false => Err(format!("it ended with {}; it said:\n{}\n{}", done.code, done.out, done.err)),
    };
    lines.push(Told { name: "it got to its end".to_owned(), outcome });
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(out: &str, code: i32) -> Vec<bool> {
        let done = Done { code, out: out.to_owned(), err: String::new() };
        told(&done).into_iter().map(|line| line.outcome.is_ok()).collect()
    }

    #[test]
    fn a_client_is_counted_by_its_lines_and_must_get_to_the_last() {
        assert_eq!(outcomes("ok\ta\nnoise\nFAIL\tb\twhy\ndone\n", 1), [true, false, true]);
        assert_eq!(outcomes("ok\ta\n", 0), [true, false], "without its last line");
        assert_eq!(outcomes("ok\ta\ndone\n", 134), [true, false], "killed after it");
        assert_eq!(outcomes("done\n", 0), [false], "without any check");
        assert_eq!(outcomes("", -1), [false], "not started");
    }
}
