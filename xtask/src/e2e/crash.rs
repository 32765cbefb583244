//! kill -9 under load, and everything else that can happen to a data directory.

mod damage;
mod writers;

use std::{
    collections::BTreeMap,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};

use self::writers::{Written, read_back};
use super::{
    check::{Check, Suite, Summary},
    kubectl::pod,
    up::Up,
};
use crate::kubectl;

/// How often the server is killed.
const ROUNDS: usize = 10;

/// How long the writers write before each kill.
const LOAD: Duration = Duration::from_millis(1500);

/// Runs all of it.
pub(crate) fn run(binary: &Path) -> Result<Summary> {
    let folder = tempfile::tempdir()?;
    let kubectl = kubectl::binary(kubectl::VERSIONS[0])?;
    let mut suite = Suite::new("crash", &kubectl);
    let data = folder.path().join("data");
    suite.set("KUBECONFIG", data.join("kubeconfig"));
    suite.set("HOME", folder.path());
    kills(&mut suite, binary, &data)?;
    damage::checks(&mut suite, binary, folder.path());
    Ok(suite.finish())
}

/// Kills the server again and again while 64 writers write, and looks at what is left.
fn kills(suite: &mut Suite, binary: &Path, data: &Path) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut up = Up::start(binary, data, &["--port", "0"])?;
    let lives = pod("lives", "echo $$ > /proc/self/comm 2>/dev/null; exec sleep 3600");
    suite.check(
        "a pod that outlives the server",
        Check::new("apply -f -").stdin(&lives).out("created"),
    );
    suite.check("runs", Check::new("get pod lives").out("Running").within(20));
    let identity = "get pod lives -o jsonpath={.status.containerStatuses[0].containerID}";
    let container = suite.ask(identity).out;
    let mut acknowledged: BTreeMap<String, Written> = BTreeMap::new();
    let mut highest = 0;
    for round in 1..=ROUNDS {
        let kubeconfig = up.kubeconfig();
        let load = runtime.block_on(writers::load(&kubeconfig, round, LOAD, move || up.kill()))?;
        let count = load.written.len();
        suite.prove(
            &format!("round {round}: {count} writes were acknowledged before the kill"),
            |_| (count > 0).then_some(()).ok_or_else(|| "none was".to_owned()),
        );
        acknowledged.extend(load.written);
        let started = Instant::now();
        up = Up::start(binary, data, &["--port", "0"])
            .with_context(|| format!("round {round}: after the kill"))?;
        let ready_after = started.elapsed();
        let found = runtime.block_on(read_back(&up.kubeconfig()))?;
        suite.prove(
            &format!("round {round}: all of them are there ({ready_after:.0?} to start)"),
            |_| all_there(&acknowledged, &found.objects),
        );
        let (before, now) = (highest.max(load.highest), found.version);
        suite.prove(&format!("round {round}: the version went on from {before} to {now}"), |_| {
            (now >= before).then_some(()).ok_or_else(|| "it went back".to_owned())
        });
        highest = now;
        let resumed = runtime.block_on(writers::resume(&up.kubeconfig(), load.watched))?;
        suite.prove(&format!("round {round}: a watcher resumes or is told to start over"), |_| {
            resumed.is_honest.then_some(()).ok_or(resumed.what)
        });
    }
    suite.check("the pod still runs", Check::new("get pod lives").out("Running").within(10));
    suite.prove("as the same process", |suite| {
        let now = suite.ask(identity).out;
        let restarts =
            suite.ask("get pod lives -o jsonpath={.status.containerStatuses[0].restartCount}").out;
        let is_same = now == container && restarts == "0";
        is_same
            .then_some(())
            .ok_or_else(|| format!("{container} became {now}, {restarts} restarts"))
    });
    suite.check(
        "and can be stopped",
        Check::new("delete pod lives --now --timeout=20s").out("deleted"),
    );
    up.stop()?;
    Ok(())
}

fn all_there(
    acknowledged: &BTreeMap<String, Written>,
    found: &BTreeMap<String, Written>,
) -> Result<(), String> {
    let check = || -> Result<()> {
        for (name, written) in acknowledged {
            let there = found.get(name).with_context(|| format!("{name} is lost"))?;
            // A write that was not acknowledged may have happened too, so newer is right.
            ensure!(
                there.version >= written.version && there.value >= written.value,
                "{name} fell back from {written:?} to {there:?}"
            );
        }
        Ok(())
    };
    check().map_err(|error| error.to_string())
}
