//! Unmodified kubectl against `lockstep up`. The numbers in the names are those of the acceptance
//! suite in the API server's specification.

mod applies;
mod budgets;
mod cronjobs;
mod definitions;
mod exec;
mod imperative;
mod jobs;
mod jobsets;
mod lives;
mod objects;
pub(crate) mod pods;
mod quotas;
mod refused;
mod server;
mod tokens;
mod usage;
mod watches;

use std::path::Path;

use anyhow::Result;

use super::{
    check::{Suite, Summary},
    up::Up,
};
use crate::kubectl;

/// A part of the suite, which does not need the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// What the server says about itself.
    Server,
    /// Objects from files.
    Objects,
    /// Server-side apply, and dry runs.
    Applies,
    /// Kinds that users define.
    Definitions,
    /// Watches.
    Watches,
    /// Pods.
    Pods,
    /// Pods, from their creation to their end.
    Lives,
    /// Jobs.
    Jobs,
    /// JobSets.
    Jobsets,
    /// Objects without files.
    Imperative,
    /// Commands in pods, and connections to them.
    Exec,
    /// Service accounts.
    Tokens,
    /// CronJobs.
    Cronjobs,
    /// Kinds that are not served.
    Refused,
    /// LimitRanges and ResourceQuotas.
    Quotas,
    /// PodDisruptionBudgets.
    Budgets,
    /// What pods and the node use.
    Usage,
    /// Callers without rights.
    Strangers,
}

/// Runs every check once with each version of kubectl, each on a cluster of its own. Without
/// `parts` all of them are run.
pub(crate) fn run(binary: &Path, parts: &[Part]) -> Result<Summary> {
    use clap::ValueEnum;
    let parts = if parts.is_empty() { Part::value_variants() } else { parts };
    kubectl::note_of_newer();
    let mut summary = Summary::default();
    for version in kubectl::VERSIONS {
        let program = kubectl::binary(version)?;
        let folder = tempfile::tempdir()?;
        let up = Up::start(binary, &folder.path().join("data"), &["--port", "0"])?;
        let mut suite = Suite::new(&format!("kubectl v{version}"), &program);
        suite.set("KUBECONFIG", up.kubeconfig());
        // Its own home, so that no discovery cache of an earlier run hides a request.
        suite.set("HOME", folder.path());
        // It takes a minute, in which the others are run.
        let quiet = match parts.contains(&Part::Watches) {
            true => Some(watches::Quiet::start(&suite)?),
            false => None,
        };
        for part in parts {
            match part {
                Part::Server => server::checks(&mut suite),
                Part::Objects => objects::checks(&mut suite),
                Part::Applies => applies::checks(&mut suite),
                Part::Definitions => definitions::checks(&mut suite),
                Part::Watches => watches::checks(&mut suite),
                Part::Pods => pods::checks(&mut suite),
                Part::Lives => lives::checks(&mut suite),
                Part::Jobs => jobs::checks(&mut suite),
                Part::Jobsets => jobsets::checks(&mut suite),
                Part::Imperative => imperative::checks(&mut suite),
                Part::Exec => exec::checks(&mut suite, folder.path()),
                Part::Tokens => tokens::checks(&mut suite),
                Part::Cronjobs => cronjobs::checks(&mut suite),
                Part::Refused => refused::checks(&mut suite),
                Part::Quotas => quotas::checks(&mut suite),
                Part::Budgets => budgets::checks(&mut suite),
                Part::Usage => usage::checks(&mut suite),
                Part::Strangers => server::strangers(&mut suite, &up.kubeconfig(), folder.path()),
            }
        }
        if let Some(quiet) = quiet {
            quiet.checks(&mut suite);
        }
        let said = up.said();
        let stopped = up.stop();
        suite.prove("`lockstep up` stops on SIGTERM with 0", |_| match stopped {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("it ended with {status}")),
            Err(error) => Err(error.to_string()),
        });
        suite.prove("the server never panicked", |_| {
            if said.contains("panicked") { Err(said.clone()) } else { Ok(()) }
        });
        summary.add(suite.finish());
    }
    Ok(summary)
}

/// A pod that runs one shell line and ends as it ends.
pub(crate) fn pod(name: &str, script: &str) -> String {
    format!(
        "apiVersion: v1
kind: Pod
metadata:
  name: {name}
  labels: {{app: {name}}}
spec:
  restartPolicy: Never
  containers:
  - name: main
    image: busybox
    command: [sh, -c, {script:?}]
"
    )
}
