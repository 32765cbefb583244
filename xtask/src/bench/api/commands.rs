//! How long kubectl takes from its start to its end.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};

use super::Pair;
use crate::{kubectl, kubernetes::VERSION};

/// Runs each command on both servers in turns and prints the medians.
pub(super) fn measure(
    kubeconfigs: &Pair<std::path::PathBuf>,
    folder: &Path,
    rounds: usize,
) -> Result<()> {
    let kubectl = Kubectl { program: kubectl::binary(VERSION)?, folder };
    let manifests = folder.join("manifests");
    fs::create_dir_all(&manifests)?;
    let fixed = manifests.join("fixed.yaml");
    fs::write(&fixed, map("fixed", "0"))?;
    let (fixed, changing) = (fixed.display().to_string(), manifests.join("changing.yaml"));
    let shown = changing.display().to_string();
    println!("\nkubectl v{VERSION}: median of {rounds}, milliseconds from start to end");
    println!("{:<34} {:>8} {:>8} {:>7}", "command", "ours", "theirs", "ratio");
    let commands: [(&str, Vec<&str>); 6] = [
        ("get configmap x", vec!["get", "configmap", "fixed"]),
        ("get configmap x -o yaml", vec!["get", "configmap", "fixed", "-o", "yaml"]),
        ("get pods", vec!["get", "pods"]),
        ("apply (unchanged)", vec!["apply", "-f", &fixed]),
        ("apply (changed)", vec!["apply", "-f", &shown]),
        ("apply --server-side (changed)", vec!["apply", "--server-side", "-f", &shown]),
    ];
    for kubeconfig in [&kubeconfigs.ours, &kubeconfigs.theirs] {
        // What is read once by every kubectl, such as what is served, is in its cache from here on.
        kubectl.run(kubeconfig, &["apply", "-f", &fixed])?;
    }
    for (at, (name, words)) in commands.iter().enumerate() {
        let mut took: Pair<Vec<Duration>> = Pair::default();
        for round in 0..rounds {
            let name = if at == 5 { "applied" } else { "changing" };
            fs::write(&changing, map(name, &format!("{at}-{round}")))?;
            took.ours.push(kubectl.run(&kubeconfigs.ours, words)?);
            took.theirs.push(kubectl.run(&kubeconfigs.theirs, words)?);
        }
        let (ours, theirs) = (median(took.ours), median(took.theirs));
        println!("{name:<34} {:>8.1} {:>8.1} {:>7.2}", ours * 1e3, theirs * 1e3, ours / theirs);
    }
    Ok(())
}

fn map(name: &str, value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  value: {value:?}\n"
    )
}

struct Kubectl<'a> {
    program: std::path::PathBuf,
    folder: &'a Path,
}

impl Kubectl<'_> {
    /// Runs a command line to its end and says how long that took.
    fn run(&self, kubeconfig: &Path, words: &[&str]) -> Result<Duration> {
        let mut command = Command::new(&self.program);
        command.args(words).env("KUBECONFIG", kubeconfig).env("HOME", self.folder);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let began = Instant::now();
        let output = command.output().context("cannot start kubectl")?;
        let took = began.elapsed();
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "kubectl {}: {said}", words.join(" "));
        Ok(took)
    }
}

/// The median, in seconds.
pub(super) fn median(mut took: Vec<Duration>) -> f64 {
    took.sort_unstable();
    took.get(took.len() / 2).map_or(0.0, Duration::as_secs_f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        let took = [5, 1, 3].map(Duration::from_secs).to_vec();
        assert!((median(took) - 3.0).abs() < 1e-9);
    }
}
