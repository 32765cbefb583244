//! The conformance suite of `tests/`, on the embedded cluster and on a real control plane with
//! `lockstep operator`: the same cases, unchanged.

mod account;
mod bus;
mod operator;

use std::{
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result};

use super::{
    check::{Check, Suite, Summary},
    up::Up,
};
use crate::{
    kubectl,
    kubernetes::{ControlPlane, FakeNodes, Programs, VERSION},
    shell,
};

/// Enough for all cases at once.
const NODES: usize = 4;

/// Runs all cases on both.
pub(crate) fn run(binary: &Path) -> Result<Summary> {
    let mut summary = embedded(binary)?;
    summary.add(real(binary)?);
    Ok(summary)
}

/// Runs all cases on `lockstep up`.
fn embedded(binary: &Path) -> Result<Summary> {
    let folder = tempfile::tempdir()?;
    let nodes = NODES.to_string();
    let arguments = ["--port", "0", "--in-memory", "--fake-nodes", &nodes];
    let up = Up::start(binary, &folder.path().join("data"), &arguments)?;
    let mut suite = Suite::new("conformance of the embedded cluster", binary);
    cases(&mut suite, &up.kubeconfig(), &[]);
    let said = up.said();
    suite.prove("the server never panicked", |_| calm(&said));
    Ok(suite.finish())
}

/// Runs all cases on a real control plane, and looks at how the operator gets on with it.
fn real(binary: &Path) -> Result<Summary> {
    let programs = Programs::of(VERSION)?;
    let control_plane = ControlPlane::start_with(&programs, account::watched)?;
    let kubeconfig = control_plane.kubeconfig();
    let log = control_plane.path().join("nodes.log");
    let _nodes = FakeNodes::start(&kubeconfig, NODES, &log, "debug")?;
    let title = format!("conformance with Kubernetes v{VERSION}");
    let mut suite = Suite::new(&title, &kubectl::binary(VERSION)?);
    suite.set("KUBECONFIG", &kubeconfig);
    suite.set("HOME", control_plane.path());
    operator::refuses(&mut suite, binary, &kubeconfig);
    let own = account::give(&mut suite, binary, &kubeconfig)?;
    definition(&mut suite);
    let operators = operator::compete(&mut suite, binary, &own, control_plane.path())?;
    cases(&mut suite, &kubeconfig, &[]);
    screens(&mut suite);
    operator::hand_over(&mut suite, operators);
    bus::restarts(&mut suite, binary, (&kubeconfig, &own), control_plane.path())?;
    account::judge(&mut suite, control_plane.path());
    Ok(suite.finish())
}

/// Runs the cases with such names, or all; each is a check of the suite.
fn cases(suite: &mut Suite, kubeconfig: &Path, names: &[&str]) {
    let run = || -> Result<String> {
        let output = Command::new(shell::target().join("debug/conformance"))
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .args(names)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .context("cannot start the conformance suite; was it built?")?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let said = match run() {
        Ok(said) => said,
        Err(error) => return suite.prove("the cases run", |_| Err(format!("{error:#}"))),
    };
    for (name, outcome) in outcomes(&said) {
        suite.prove(&name, |_| outcome);
    }
    let is_over = said.lines().any(|line| line.starts_with("conformance: "));
    suite.prove("all cases were run", |_| if is_over { Ok(()) } else { Err(said) });
}

/// The cases that were run, and what was wrong with each.
fn outcomes(said: &str) -> Vec<(String, Result<(), String>)> {
    let mut outcomes: Vec<(String, Result<(), String>)> = Vec::new();
    for line in said.lines() {
        if let Some(name) = line.strip_prefix("ok    ") {
            outcomes.push((name.to_owned(), Ok(())));
        } else if let Some(name) = line.strip_prefix("FAIL  ") {
            outcomes.push((name.to_owned(), Err(String::new())));
        } else if let Some((_, Err(why))) = outcomes.last_mut() {
            why.push_str(line.trim_start());
        }
    }
    outcomes
}

/// The real API server serves what our CustomResourceDefinitions define.
fn definition(suite: &mut Suite) {
    let every = "get crd -o jsonpath={.items[*].status.conditions[*].type}";
    let check = Check::new(every).out("Established").out_lacks("NonStructuralSchema");
    suite.check("all schemas are structural", check.within(30));
    let conditions = "get crd jobsets.jobset.x-k8s.io -o jsonpath={.status.conditions[*].type}";
    let check = Check::new(conditions).out("Established").out_lacks("NonStructuralSchema");
    suite.check("its schema is structural", check.within(30));
    let explain = "explain jobsets.spec.failurePolicy.rules.action";
    let check = Check::new(explain).out("RestartJobSetAndIgnoreMaxRestarts");
    suite.check("kubectl explains it", check.within(30));
}

/// What kubectl shows of a JobSet.
fn screens(suite: &mut Suite) {
    let manifest = short_set("shown");
    suite.check("a JobSet is applied", Check::new("apply -f -").stdin(&manifest).out("created"));
    let wait = "wait --for=condition=Completed jobset/shown --timeout=60s";
    suite.check("kubectl waits for it", Check::new(wait).out("condition met"));
    let header = "NAME    TERMINALSTATE   RESTARTS   COMPLETED   SUSPENDED   AGE";
    let check = Check::new("get jobset shown").out(header).out("Completed       0          True");
    suite.check("its columns are printed", check);
    let check = Check::new("describe jobset shown").out("AllJobsCompleted").within(30);
    suite.check("its events are shown", check);
    // kubectl sends lists as a whole, so it cannot tell that nothing changes; the server can.
    suite.check("it is applied again", Check::new("apply -f -").stdin(&manifest).out("shown"));
    let generation = "get jobset shown -o jsonpath={.metadata.generation}";
    suite.check("which changes nothing", Check::new(generation).out_is("1"));
    suite.check("and deleted", Check::new("delete jobset shown").out("deleted"));
}

/// A JobSet that ends at once.
fn short_set(name: &str) -> String {
    format!(
        "apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {{name: {name}}}
spec:
  replicatedJobs:
  - name: a
    template:
      spec:
        template:
          metadata: {{annotations: {{lockstep.dev/fake-run-seconds: '0'}}}}
          spec:
            containers: [{{name: main, image: none}}]
"
    )
}

fn calm(said: &str) -> Result<(), String> {
    if said.contains("panicked") { Err(said.to_owned()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_cases_say_is_understood() {
        let said = "ok    a (0.1 s)\nFAIL  b (2.0 s)\n  it is 1\n  and not 2\nok    c (1.0 s)\n";
        let want = [
            ("a (0.1 s)".to_owned(), Ok(())),
            ("b (2.0 s)".to_owned(), Err("it is 1and not 2".to_owned())),
            ("c (1.0 s)".to_owned(), Ok(())),
        ];
        assert_eq!(outcomes(said), want);
    }
}
