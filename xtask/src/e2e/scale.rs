//! Many objects at a time: a thousand Jobs from one file, and two hundred clients that watch a
//! thousand objects come. What takes how long is told and never judged.

mod watches;

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::batch::v1::Job;
use kube::{Api, Client, api::ListParams};
use tokio::time::sleep;

use super::{
    check::{Check, Suite, Summary},
    up::Up,
};
use crate::{kubectl, kubernetes::client};

/// How many Jobs there are.
const JOBS: usize = 1_000;

/// How long all of them may take to complete.
const PATIENCE: Duration = Duration::from_secs(240);

/// How much memory the server may have in use at the end, in MiB: a build for development has far
/// less, and what grows with each request has more.
const MEMORY_MAX: u64 = 768;

/// Check 67.
pub(crate) fn run(binary: &Path) -> Result<Summary> {
    let kubectl = kubectl::binary(kubectl::VERSIONS[0])?;
    let folder = tempfile::tempdir()?;
    let nodes = ["--port", "0", "--fake-nodes", "20", "--fake-node-label", "pool=fake"];
    let up = Up::start(binary, &folder.path().join("data"), &nodes)?;
    let mut suite = Suite::new("scale", &kubectl);
    suite.set("KUBECONFIG", up.kubeconfig());
    suite.set("HOME", folder.path());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let client = runtime.block_on(client(&up.kubeconfig()))?;
    let file = folder.path().join("jobs.yaml");
    fs::write(&file, jobs()).context("cannot write the file with the Jobs")?;
    let began = Instant::now();
    let apply = Check::new(&format!("apply -f {}", file.display()));
    let last = format!("job.batch/many-{} created", JOBS - 1);
    suite.check("67 a thousand Jobs from one file", apply.out(&last));
    println!("          applied after {:.1?}", began.elapsed());
    let completed = runtime.block_on(completed(client.clone()));
    suite.prove("67 all of them are there and complete", |_| {
        completed.map_err(|error| format!("{error:#}"))
    });
    println!("          completed after {:.1?}", began.elapsed());
    let watched = runtime.block_on(watches::run(&client));
    suite.prove("67 two hundred watches have every event, in order", |_| {
        let figures = watched.map_err(|error| format!("{error:#}"))?;
        println!("          {figures}");
        Ok(())
    });
    suite.prove("67 the server's memory is bounded", |_| {
        let used = memory(up.pid()).map_err(|error| format!("{error:#}"))?;
        println!("          {used} MiB in use, of {MEMORY_MAX}");
        (used < MEMORY_MAX).then_some(()).ok_or_else(|| format!("{used} MiB are in use"))
    });
    let said = up.said();
    up.stop()?;
    suite.prove("the server never panicked", |_| {
        if said.contains("panicked") { Err(said.clone()) } else { Ok(()) }
    });
    Ok(suite.finish())
}

/// Jobs whose pods run for no time on fake nodes.
fn jobs() -> String {
    (0..JOBS).fold(String::new(), |mut text, number| {
        let job = format!(
            "---
apiVersion: batch/v1
kind: Job
metadata: {{name: many-{number}}}
spec:
  template:
    metadata: {{annotations: {{lockstep.dev/fake-run-seconds: '0'}}}}
    spec:
      restartPolicy: Never
      nodeSelector: {{pool: fake}}
      containers: [{{name: main, image: busybox, command: ['true']}}]
"
        );
        text.push_str(&job);
        text
    })
}

/// Waits until all Jobs are complete.
async fn completed(client: Client) -> Result<()> {
    let jobs: Api<Job> = Api::default_namespaced(client);
    let limit = Instant::now() + PATIENCE;
    loop {
        let list = jobs.list(&ListParams::default()).await?;
        ensure!(list.items.len() == JOBS, "there are {} of {JOBS}", list.items.len());
        let is_complete = |job: &&Job| {
            let conditions =
                job.status.iter().flat_map(|status| status.conditions.iter().flatten());
            conditions.into_iter().any(|is| is.type_ == "Complete" && is.status == "True")
        };
        let complete = list.items.iter().filter(is_complete).count();
        if complete == JOBS {
            return Ok(());
        }
        ensure!(Instant::now() < limit, "{complete} of {JOBS} are complete");
        sleep(Duration::from_millis(500)).await;
    }
}

/// How much memory a process has in use, in MiB.
fn memory(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kilobytes.context("the kernel says nothing of it")? / 1024)
}
