//! `lockstep down`.

use std::{
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open},
};

use crate::{
    args::Connection,
    catalog::query,
    cluster::Cluster,
    datadir,
    exit::{Ending, Exit},
    output,
};

/// How long the cluster has to say what it will end.
const ANSWER: Duration = Duration::from_secs(2);

/// Options of `lockstep down`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Pods are ended with their grace period, as on a node that shuts down: they end as Failed (reason
Terminated). What is stored stays, and the next `lockstep up` goes on from there: a job makes new
pods, unless those that ended were one failure too many (spec.backoffLimit; a rule of
spec.podFailurePolicy can ignore the condition DisruptionTarget); pods without a job stay Failed.

Examples:
  lockstep down
  lockstep down --data-dir ./cluster")]
pub(crate) struct Options {
    /// The data directory of the cluster to stop [default: that of `lockstep up`]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// How long to wait for it to stop: 30s, 5m
    #[arg(long, value_name = "DURATION", value_parser = crate::logs::duration, default_value = "60s")]
    timeout: i64,
}

/// Asks the process to stop and waits until it has.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let folder = match &options.data_dir {
        Some(folder) => folder.clone(),
        None => datadir::default()?,
    };
    let Some(pid) = datadir::running(&folder) else {
        output::note(format!("no lockstep serves from {}", folder.display()));
        return Ok(());
    };
    let process = i32::try_from(pid).ok().and_then(Pid::from_raw).context("no such process")?;
    let pods = pods(&folder).await;
    // Held, so that a process which gets its number later is not taken for it.
    let held = pidfd_open(process, PidfdFlags::empty()).ok();
    if datadir::running(&folder) == Some(pid) {
        kill_process(process, Signal::TERM)
            .with_context(|| format!("cannot stop process {pid}"))?;
    }
    if let Some(count) = &pods {
        output::note(format!("ending {count} with the grace period they ask for"));
    }
    let patience = Duration::from_secs(u64::try_from(options.timeout).unwrap_or_default());
    let asked = Instant::now();
    while datadir::running(&folder) == Some(pid) || held.as_ref().is_some_and(lives) {
        if asked.elapsed() > patience {
            let message = format!("error: process {pid} is still stopping its pods");
            return Err(Ending::error(Exit::TimedOut, message));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // One that kept its objects in memory leaves no state behind.
    let kept = match folder.join("state.redb").exists() {
        true => format!("; what it stored stays in {}", folder.display()),
        false => String::new(),
    };
    output::line(format!("stopped{kept}"))?;
    Ok(())
}

/// How many pods go on in the cluster, in words; nothing when there are none, or it does not say.
async fn pods(folder: &Path) -> Option<String> {
    let connection = Connection { data_dir: Some(folder.to_owned()), ..Connection::default() };
    let cluster = Cluster::find(&connection).await.ok()?;
    let fields = "status.phase!=Succeeded,status.phase!=Failed,spec.nodeName!=";
    let path = "/api/v1/pods".to_owned() + &query(&[("fieldSelector", Some(fields.to_owned()))]);
    let list = tokio::time::timeout(ANSWER, cluster.get(&path)).await.ok()?.ok()?;
    match list["items"].as_array()?.len() {
        0 => None,
        1 => Some("1 pod".to_owned()),
        count => Some(format!("{count} pods")),
    }
}

/// Whether a held process has not ended.
fn lives(held: &OwnedFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut [PollFd::new(held, PollFlags::IN)], Some(&now)), Ok(0))
}
