//! Unmodified kubectl against `lockstep up`. The numbers in the names are those of the acceptance
//! suite in the API server's specification.

mod cronjobs;
mod imperative;
mod jobs;
mod jobsets;
mod objects;
pub(crate) mod pods;
mod server;
mod tokens;
mod watches;

use std::path::Path;

use anyhow::Result;

use super::{
    check::{Suite, Summary},
    up::Up,
};
use crate::kubectl;

/// Runs every check once with each version of kubectl, each on a cluster of its own.
pub(crate) fn run(binary: &Path) -> Result<Summary> {
    let mut summary = Summary::default();
    for version in kubectl::VERSIONS {
        let program = kubectl::binary(version)?;
        let folder = tempfile::tempdir()?;
        let up = Up::start(binary, &folder.path().join("data"), &["--port", "0"])?;
        let mut suite = Suite::new(&format!("kubectl v{version}"), &program);
        suite.set("KUBECONFIG", up.kubeconfig());
        // Its own home, so that no discovery cache of an earlier run hides a request.
        suite.set("HOME", folder.path());
        server::checks(&mut suite);
        objects::checks(&mut suite);
        watches::checks(&mut suite);
        pods::checks(&mut suite);
        jobs::checks(&mut suite);
        jobsets::checks(&mut suite);
        imperative::checks(&mut suite);
        tokens::checks(&mut suite);
        cronjobs::checks(&mut suite);
        server::strangers(&mut suite, &up.kubeconfig(), folder.path());
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
