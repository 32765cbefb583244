//! Thousands of agents over real sockets, whose workers are started and stopped in no time: what
//! is left is the way from a failure to the last agent that may start.

use std::time::Instant;

use super::clock::{milliseconds, now};
use super::fleet::Fleet;
use super::led::{Led, certificate, ticket};
use super::phases::{Phases, Table};
use super::{own_memory, own_processor_time};
use crate::report::{Budget, Report, median, percentile};

/// How often each thing is measured, and how many of these are not counted.
const ROUNDS: usize = 33;
const ROUNDS_FEW: usize = 13;
const WARM_UP: usize = 3;
/// How often the leader dies.
const DEATHS: usize = 3;

/// What a fleet of some size is measured by, and for.
pub(super) struct Course<'a> {
    pub(super) report: &'a mut Report,
    pub(super) table: &'a mut Table,
    pub(super) size: u32,
    pub(super) has_tls: bool,
    pub(super) budget: Budget,
}

/// What others are compared with.
#[derive(Clone, Copy)]
pub(super) struct Figures {
    /// Milliseconds from a decision to the last agent that has heard of it.
    pub(super) broadcast: f64,
    /// Milliseconds from a failure to the last worker that runs.
    pub(super) all: f64,
    /// Milliseconds until the leader knows it.
    pub(super) known: f64,
}

impl Course<'_> {
    /// All that can happen to one fleet.
    pub(super) async fn run(mut self) -> Figures {
        let folder = tempfile::tempdir().unwrap();
        let (tls, ca) = Some(certificate(folder.path())).filter(|_| self.has_tls).unzip();
        let before = own_memory();
        let mut led = Led::new(self.size, tls).await;
        let begun = Instant::now();
        let ca = ca.map_or_else(|| "-".to_owned(), |ca| ca.display().to_string());
        let (address, size) = (led.address.to_string(), self.size.to_string());
        let mut fleet = Fleet::new("agents", &[&address, &ca, &ticket(), &size]);
        fleet.running();
        self.add("all connected and running", begun.elapsed().as_secs_f64(), "s", Budget::None);
        let memory = (own_memory() - before) / f64::from(self.size);
        self.add("memory per connection", memory, "KiB", Budget::AtMost(16.0));

        let rounds = if self.has_tls { ROUNDS_FEW } else { ROUNDS };
        let one = format!("fail {}", self.size / 2);
        let mut ones = rounds_of(&mut fleet, &mut led, rounds, &one).await;
        let figures = self.one(&mut ones);
        let some: Vec<String> = (0..self.size).step_by(100).map(|slot| slot.to_string()).collect();
        let some = format!("fail {}", some.join(" "));
        let mut some = rounds_of(&mut fleet, &mut led, ROUNDS_FEW, &some).await;
        self.table.add(&self.name("1 % fail at once"), &mut some);
        // Longer than all others need, so that they do wait when it happens.
        let linger = 100 + self.size / 25;
        let [failed, slow, dying] = [self.size / 2, self.size / 3, self.size / 4];
        let barrier = format!("barrier {failed} {slow} {linger} {dying}");
        let mut barrier = rounds_of(&mut fleet, &mut led, ROUNDS_FEW, &barrier).await;
        let what = format!("one fails, one takes {linger} ms to stop, a third one dies waiting");
        self.table.add(&self.name(&what), &mut barrier);
        let mut replaced = self.replaced(&mut fleet, &mut led).await;
        self.table.add(&self.name("a pod is deleted and replaced"), &mut replaced);
        let wanted = rounds + 3 * ROUNDS_FEW + 1;
        let more = f64::from(led.restarts()) - wanted as f64;
        self.deaths(&mut fleet, led, more).await;
        figures
    }

    fn name(&self, what: &str) -> String {
        format!("{} agents{}: {what}", self.size, if self.has_tls { " over TLS" } else { "" })
    }

    fn add(&mut self, what: &str, value: f64, unit: &'static str, budget: Budget) {
        let name = self.name(what);
        self.report.add(&name, value, unit, budget);
    }

    /// The figures of the plainest case.
    fn one(&mut self, phases: &mut Phases) -> Figures {
        self.table.add(&self.name("one fails"), phases);
        let all = median(phases.all());
        self.add("one fails, until the last runs, median", all, "ms", self.budget);
        let late = percentile(&mut phases.all(), 99);
        self.add("one fails, until the last runs, p99", late, "ms", Budget::None);
        let half = median(phases.parts[0].clone());
        self.add("one fails, until half run", half, "ms", Budget::None);
        let known = median(phases.known.clone());
        self.add("one fails, until the leader knows that all run", known, "ms", Budget::None);
        let each = 1e6 / (phases.count() as f64 * f64::from(self.size));
        let (hub, fleet) = (phases.hub_cpu * each, phases.fleet_cpu * each);
        self.add("CPU time of the hub, for each agent", hub, "µs", Budget::None);
        self.add("CPU time of the agents, for each", fleet, "µs", Budget::None);
        Figures { broadcast: median(phases.broadcast.clone()), all, known }
    }

    /// A pod is deleted; as soon as its agent has left there is another one, which takes no time
    /// to be made.
    async fn replaced(&self, fleet: &mut Fleet, led: &mut Led) -> Phases {
        let mut phases = Phases::default();
        let slot = self.size / 5;
        let mut old = slot.to_string();
        for round in 0..ROUNDS_FEW {
            led.gang.pod_ending(&old).await;
            fleet.ask(&format!("leave {slot}"));
            fleet.hear("left ");
            led.gang.pod_gone(&old, false).await;
            let new = format!("{slot}-{round}");
            led.gang.pod_seen(&new, slot, 1).await;
            fleet.ask(&format!("join {slot} {new}"));
            old = new;
            let times = fleet.running();
            let waterfall = led.restarted().await;
            if round >= WARM_UP {
                phases.add(&times, &waterfall, led);
            }
        }
        // What comes next expects the pod that was there first.
        led.gang.pod_ending(&old).await;
        fleet.ask(&format!("leave {slot}"));
        fleet.hear("left ");
        led.gang.pod_gone(&old, false).await;
        led.gang.pod_seen(&slot.to_string(), slot, 1).await;
        fleet.ask(&format!("join {slot} {slot}"));
        fleet.running();
        led.restarted().await;
        phases
    }

    /// The leader dies and another one is there at once: without anything else, and with a worker
    /// that fails at that moment.
    async fn deaths(&mut self, fleet: &mut Fleet, mut led: Led, mut more: f64) {
        let (mut back, mut recovered) = (Vec::new(), Vec::new());
        for _ in 0..DEATHS {
            let restarts = led.restarts();
            let begun = now();
            led = led.die().await.succeeded().await;
            let heard = fleet.hear("led ");
            back.push(milliseconds(begun, heard[4..].parse().unwrap()) / 1e3);
            more += f64::from(led.restarts() - restarts);
        }
        for _ in 0..DEATHS {
            let dead = led.die().await;
            fleet.ask("fail 0");
            led = dead.succeeded().await;
            let times = fleet.running();
            recovered.push(milliseconds(times.failed, times.started[2]) / 1e3);
            led.restarted().await;
        }
        let what = "the leader dies, until all are at the next one, median";
        self.add(what, median(back), "s", Budget::None);
        let what = "the leader dies and a worker fails, until the last runs, median";
        self.add(what, median(recovered), "s", Budget::None);
        self.add("restarts without a failure", more, "", Budget::AtMost(0.0));
    }
}

/// Lets the same happen again and again.
async fn rounds_of(fleet: &mut Fleet, led: &mut Led, rounds: usize, command: &str) -> Phases {
    let mut phases = Phases::default();
    for round in 0..rounds {
        let cpu = (own_processor_time(), fleet.processor_time());
        fleet.ask(command);
        let times = fleet.running();
        let waterfall = led.restarted().await;
        if round >= WARM_UP {
            phases.hub_cpu += own_processor_time() - cpu.0;
            phases.fleet_cpu += fleet.processor_time() - cpu.1;
            phases.add(&times, &waterfall, led);
        }
    }
    phases
}
