//! A model of the prototype of KEP-876, over a real Valkey: everybody looks once a second.
//!
//! An agent looks at the restarts of its container each second, each at its own time within it,
//! and writes a change with a script. The orchestrator looks at what they wrote each second, and
//! publishes the number of restarts that is wanted; an agent acts on it when it looks next. There
//! is no barrier. What the model leaves out is in its favour: containers stop and start in no time
//! and without back-off, there are no JobSets to list, and an agent has one connection, not two.

mod agent;
mod orchestrator;

use std::time::Duration;

use super::clock::milliseconds;
use super::fleet::Fleet;
use super::patience::{PATIENCE, Stalled, within};
use super::valkey::{Client, Valkey};
use crate::report::{Budget, Report, median, percentile};
pub(super) use agent::play;
use orchestrator::{Orchestrator, State};
use tokio::sync::watch;

/// How often everybody looks.
const TICK: Duration = Duration::from_secs(1);
const CHANNEL: &str = "jobset-uid:job";
const STATE: &str = "jobset-uid:job:state";
const RESTARTS: &str = "jobset-uid:job:restart-count-by-worker-id";
const TOTALS: &str = "jobset-uid:job:total-restart-count-by-worker-id";

/// Milliseconds until the last worker was restarted, and until the orchestrator knows.
pub(super) async fn measure(
    report: &mut Report,
    valkey: &Valkey,
    size: u32,
    rounds: u32,
) -> Result<[f64; 2], Stalled> {
    let mut client = Client::new(0, valkey.address).await?;
    client.ask(&["FLUSHALL"]).await?;
    let (address, count) = (valkey.address.to_string(), size.to_string());
    let mut fleet = Fleet::new("prototype", &[&address, &count]);
    fleet.started("led ").await?;
    let mut running = Orchestrator::start(client, size);
    until(&mut running, |state| state.is_running).await?;
    let cpu = valkey.processor_time();
    let (mut restarted, mut known) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        // Whoever fails knows nothing of seconds.
        tokio::time::sleep(TICK.mul_f64(fastrand::f64())).await;
        fleet.ask(&format!("fail {}", (size / 2 + round) % size));
        let times = fleet.running().await?;
        restarted.push(milliseconds(times.failed, times.started[2]));
        let is_done = |state: &State| state.is_running && state.desired == i64::from(round) + 1;
        let state = until(&mut running, is_done).await?;
        known.push(milliseconds(times.failed, state.since));
    }
    let cpu = (valkey.processor_time() - cpu) * 1e6 / f64::from(rounds * size);
    let name = |what: &str| format!("KEP-876's prototype, modelled, {size} agents: {what}");
    let figures = [median(restarted.clone()), median(known.clone())];
    report.add(&name("until the last was restarted, median"), figures[0], "ms", Budget::None);
    let late = percentile(&mut restarted, 100);
    report.add(&name("until the last was restarted, most"), late, "ms", Budget::None);
    report.add(&name("until the orchestrator knows, median"), figures[1], "ms", Budget::None);
    let late = percentile(&mut known, 100);
    report.add(&name("until the orchestrator knows, most"), late, "ms", Budget::None);
    report.add(&name("CPU time of the server, for each"), cpu, "µs", Budget::None);
    Ok(figures)
}

async fn until(
    running: &mut watch::Receiver<State>,
    is_it: impl FnMut(&State) -> bool,
) -> Result<State, Stalled> {
    let state = within(PATIENCE, "the modelled orchestrator", running.wait_for(is_it)).await?;
    Ok(*state.map_err(|_| Stalled::new("the modelled orchestrator has ended"))?)
}
