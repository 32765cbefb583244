//! Thousands of agents over real sockets, whose workers are started and stopped in no time: what
//! is left is the way from a failure to the last agent that may start.

use std::time::Instant;

use super::clock::{milliseconds, now};
use super::course::{Figures, Sheet};
use super::fleet::Fleet;
use super::led::{Led, certificate, ticket};
use super::patience::Stalled;
use super::phases::Phases;
use super::{own_memory, own_processor_time};
use crate::report::{median, percentile};

/// How often the plainest thing is measured, and all others; and how many of these are not counted.
const ROUNDS: usize = 33;
const ROUNDS_FEW: usize = 13;
/// The same where handshakes make it slow.
const ROUNDS_FEW_TLS: usize = 8;
const WARM_UP: usize = 3;
/// How often the leader dies, and how often all connections are lost.
const DEATHS: usize = 3;
const STORMS: usize = 3;
/// How much memory a connection may take, in KiB.
const MEMORY_MAX: f64 = 16.0;

/// One fleet, and all that can happen to it.
pub(super) struct Course {
    sheet: Sheet,
    size: u32,
    has_tls: bool,
    /// How long a restart may take, in milliseconds.
    budget: Option<f64>,
    /// How many restarts there should have been.
    wanted: u32,
}

impl Course {
    pub(super) fn new(size: u32, has_tls: bool, budget: Option<f64>) -> Self {
        let subject = format!("{size} agents{}", if has_tls { " over TLS" } else { "" });
        let budget = budget.filter(|_| !has_tls);
        Self { sheet: Sheet { subject }, size, has_tls, budget, wanted: 0 }
    }

    /// Measures it all; says so if it does not come to its end.
    pub(super) async fn run(mut self) -> bool {
        match self.measure().await {
            Ok(()) => true,
            Err(stalled) => {
                self.sheet.stalled(&stalled);
                false
            }
        }
    }

    async fn measure(&mut self) -> Result<(), Stalled> {
        let folder = tempfile::tempdir()?;
        let (tls, ca) = Some(certificate(folder.path())).filter(|_| self.has_tls).unzip();
        self.sheet.step("they connect");
        let before = own_memory();
        let mut led = Led::new(self.size, tls).await;
        let begun = Instant::now();
        let ca = ca.map_or_else(|| "-".to_owned(), |ca| ca.display().to_string());
        let (address, size) = (led.address.to_string(), self.size.to_string());
        let mut fleet = Fleet::new("agents", &[&address, &ca, &ticket(), &size]);
        led.wait(fleet.started("running ")).await?;
        self.sheet.add("all connected and running", begun.elapsed().as_secs_f64(), "s", None);
        let memory = (own_memory() - before) / f64::from(self.size);
        self.sheet.add("memory per connection", memory, "KiB", Some(MEMORY_MAX));

        let (few, rounds) =
            if self.has_tls { (ROUNDS_FEW_TLS, ROUNDS_FEW) } else { (ROUNDS_FEW, ROUNDS) };
        self.fail(&mut fleet, &mut led, rounds, few).await?;
        self.barrier(&mut fleet, &mut led, few).await?;
        self.replace(&mut fleet, &mut led, few).await?;
        self.storms(&mut fleet, &mut led).await?;
        let extra = f64::from(led.restarts()) - f64::from(self.wanted);
        let extra = extra + self.deaths(&mut fleet, led).await?;
        self.sheet.add("restarts without a failure", extra, "", Some(0.0));
        Ok(())
    }

    /// Workers fail: one, and one of a hundred.
    async fn fail(
        &mut self,
        fleet: &mut Fleet,
        led: &mut Led,
        rounds: usize,
        few: usize,
    ) -> Result<(), Stalled> {
        let one = format!("fail {}", self.size / 2);
        let mut ones = self.rounds("one fails", fleet, led, (rounds, WARM_UP), &one).await?;
        self.one(&mut ones);
        let some: Vec<String> = (0..self.size).step_by(100).map(|slot| slot.to_string()).collect();
        let some = format!("fail {}", some.join(" "));
        self.rounds("1 % fail at once", fleet, led, (few, WARM_UP), &some).await?;
        Ok(())
    }

    /// One more fails when all others wait.
    async fn barrier(
        &mut self,
        fleet: &mut Fleet,
        led: &mut Led,
        rounds: usize,
    ) -> Result<(), Stalled> {
        // Longer than all others need, so that they do wait when it happens.
        let linger = 100 + self.size / 25;
        let [failed, slow, dying] = [self.size / 2, self.size / 3, self.size / 4];
        let barrier = format!("barrier {failed} {slow} {linger} {dying}");
        let what = format!("one fails, one takes {linger} ms to stop, a third one dies waiting");
        self.rounds(&what, fleet, led, (rounds, WARM_UP), &barrier).await?;
        Ok(())
    }

    /// The figures of the plainest case.
    fn one(&self, phases: &mut Phases) {
        let sheet = &self.sheet;
        let all = median(phases.all());
        sheet.add("one fails, until the last runs, median", all, "ms", self.budget);
        let late = percentile(&mut phases.all(), 99);
        sheet.add("one fails, until the last runs, p99", late, "ms", None);
        let half = median(phases.parts[0].clone());
        sheet.add("one fails, until half run", half, "ms", None);
        let known = median(phases.known.clone());
        sheet.add("one fails, until the leader knows that all run", known, "ms", None);
        let each = 1e6 / (phases.count() as f64 * f64::from(self.size));
        let (hub, fleet) = (phases.hub_cpu * each, phases.fleet_cpu * each);
        sheet.add("CPU time of the hub, for each agent", hub, "µs", None);
        sheet.add("CPU time of the agents, for each", fleet, "µs", None);
        sheet.compare(&Figures { broadcast: median(phases.broadcast.clone()), all, known });
    }

    /// A pod is deleted; as soon as its agent has left there is another one, which takes no time
    /// to be made.
    async fn replace(
        &mut self,
        fleet: &mut Fleet,
        led: &mut Led,
        rounds: usize,
    ) -> Result<(), Stalled> {
        let what = "a pod is deleted and replaced";
        self.sheet.step(what);
        let mut phases = Phases::default();
        let slot = self.size / 5;
        let mut old = slot.to_string();
        for round in 0..=rounds {
            led.forget()?;
            led.gang.pod_ending(&old).await;
            fleet.ask(&format!("leave {slot}"));
            led.wait(fleet.hear("left ")).await?;
            led.gang.pod_gone(&old, false).await;
            // What comes next expects the pod that was there first.
            let is_last = round == rounds;
            let new = if is_last { slot.to_string() } else { format!("{slot}-{round}") };
            led.gang.pod_seen(&new, slot, 1).await;
            fleet.ask(&format!("join {slot} {new}"));
            old = new;
            let times = led.wait(fleet.running()).await?;
            let waterfall = led.restarted().await?;
            self.wanted += 1;
            if round >= WARM_UP && !is_last {
                phases.add(&times, &waterfall, led);
            }
        }
        self.sheet.phases(what, &mut phases);
        Ok(())
    }

    /// All connections are lost while one fails, and the leader is still there: with the waits of
    /// agents, and with all of them coming back at once.
    async fn storms(&mut self, fleet: &mut Fleet, led: &mut Led) -> Result<(), Stalled> {
        for (manner, what) in [
            ("calm", "all connections are lost while one fails"),
            ("hasty", "all connections are lost while one fails, and nobody waits to come back"),
        ] {
            let cut = format!("cut {} {manner}", self.size / 2);
            self.rounds(what, fleet, led, (STORMS, 0), &cut).await?;
        }
        Ok(())
    }

    /// The leader dies and another one is there at once: without anything else, and with a worker
    /// that fails at that moment. The answer is how many restarts there were for no reason.
    async fn deaths(&mut self, fleet: &mut Fleet, mut led: Led) -> Result<f64, Stalled> {
        self.sheet.step("the leader dies");
        let (mut back, mut recovered) = (Vec::new(), Phases::default());
        let mut extra = 0;
        for _ in 0..DEATHS {
            let restarts = led.restarts();
            fleet.forget();
            let begun = now();
            led = led.die().await?.succeeded().await;
            let heard = led.wait(fleet.hear("led ")).await?;
            back.push(milliseconds(begun, heard[4..].parse().unwrap()) / 1e3);
            extra += led.restarts() - restarts;
        }
        let what = "the leader dies, until all are at the next one, median";
        self.sheet.add(what, median(back), "s", None);
        let what = "the leader dies and one fails";
        self.sheet.step(what);
        for _ in 0..DEATHS {
            let restarts = led.restarts();
            let dead = led.die().await?;
            fleet.ask("fail 0");
            led = dead.succeeded().await;
            let times = led.wait(fleet.running()).await?;
            let waterfall = led.restarted().await?;
            extra += led.restarts() - restarts - 1;
            recovered.add(&times, &waterfall, &led);
        }
        self.sheet.phases(what, &mut recovered);
        Ok(extra.into())
    }

    /// Lets the same happen again and again; how often, and how many of these do not count.
    async fn rounds(
        &mut self,
        what: &str,
        fleet: &mut Fleet,
        led: &mut Led,
        (rounds, warm_up): (usize, usize),
        command: &str,
    ) -> Result<Phases, Stalled> {
        self.sheet.step(what);
        let mut phases = Phases::default();
        for round in 0..rounds {
            let cpu = (own_processor_time(), fleet.processor_time());
            led.forget()?;
            fleet.ask(command);
            let times = led.wait(fleet.running()).await?;
            let waterfall = led.restarted().await?;
            self.wanted += 1;
            if round >= warm_up {
                phases.hub_cpu += own_processor_time() - cpu.0;
                phases.fleet_cpu += fleet.processor_time() - cpu.1;
                phases.add(&times, &waterfall, led);
            }
        }
        self.sheet.phases(what, &mut phases);
        Ok(phases)
    }
}
