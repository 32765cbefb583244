//! Real processes: an agent of the binary around each worker, and a worker that is a process. What
//! is measured has all of it: signals, ends, starts.

mod fleet;

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::sleep;

use super::clock::{milliseconds, now};
use super::course::Sheet;
use super::led::Led;
use super::own_processor_time;
use super::patience::{PATIENCE, START, Stalled};
use super::phases::Phases;
use fleet::Processes;

/// How often, and how many of these are not counted: of a few, and of many.
const ROUNDS: (usize, usize) = (33, 3);
const ROUNDS_MANY: (usize, usize) = (9, 1);
/// The same for all but the plainest thing.
const ROUNDS_FEW: (usize, usize) = (6, 1);
const ROUNDS_FEW_MANY: (usize, usize) = (4, 1);
/// From how many on they are many.
const MANY: u32 = 200;
/// How long after a failure another one fails, while a third one that does not listen is waited
/// for.
const SECOND_AFTER: Duration = Duration::from_millis(1200);

/// One gang, each of whose workers is two processes, and all that can happen to it.
pub(super) struct Course {
    sheet: Sheet,
    size: u32,
    rounds: (usize, usize),
    few: (usize, usize),
}

impl Course {
    pub(super) fn new(size: u32) -> Self {
        let is_many = size >= MANY;
        let (rounds, few) =
            if is_many { (ROUNDS_MANY, ROUNDS_FEW_MANY) } else { (ROUNDS, ROUNDS_FEW) };
        let sheet = Sheet { subject: format!("{size} real processes") };
        Self { sheet, size, rounds, few }
    }

    /// Measures it all; says so if it does not come to its end.
    pub(super) async fn run(self) -> bool {
        match self.measure().await {
            Ok(()) => true,
            Err(stalled) => {
                self.sheet.stalled(&stalled);
                false
            }
        }
    }

    async fn measure(&self) -> Result<(), Stalled> {
        let Some(program) = program() else {
            return Err(Stalled::new("there is no `lockstep` beside this program: build it"));
        };
        self.sheet.step("they start");
        let mut led = Led::new(self.size, None).await;
        let begun = now();
        let mut fleet = Processes::new(program, led.address, self.size)?;
        let times = led.wait(fleet.running(begun, START)).await?;
        let all = milliseconds(begun, times.started[2]) / 1e3;
        self.sheet.add("agents and workers started", all, "s", None);

        let one = [self.size / 2];
        let phases = self.killed("one is killed", &mut fleet, &mut led, self.rounds, &one).await?;
        let hub = phases.hub_cpu * 1e6 / (phases.count() as f64 * f64::from(self.size));
        self.sheet.add("CPU time of the hub, for each agent", hub, "µs", None);
        let some: Vec<u32> = (0..self.size).step_by(100).collect();
        if some.len() > 1 {
            let what = "1 % are killed at once";
            self.killed(what, &mut fleet, &mut led, self.few, &some).await?;
        }
        self.replaced(&mut fleet, &mut led).await?;
        // One does not listen: it is killed after the grace of two seconds.
        fleet.deafen(0, true)?;
        let what = "one is killed, another ignores SIGTERM (grace 2 s)";
        self.killed(what, &mut fleet, &mut led, self.few, &one).await?;
        self.barrier(&mut fleet, &mut led).await?;
        fleet.deafen(0, false)?;
        self.deaths(&mut fleet, led).await
    }

    /// Kills some workers, again and again.
    async fn killed(
        &self,
        what: &str,
        fleet: &mut Processes,
        led: &mut Led,
        (rounds, warm_up): (usize, usize),
        slots: &[u32],
    ) -> Result<Phases, Stalled> {
        self.sheet.step(what);
        let mut phases = Phases::default();
        for round in 0..rounds {
            led.forget()?;
            let cpu = own_processor_time();
            let failed = now();
            fleet.kill(slots)?;
            let is_counted = round >= warm_up;
            self.note(fleet, led, failed, Some(&mut phases).filter(|_| is_counted)).await?;
            if is_counted {
                phases.hub_cpu += own_processor_time() - cpu;
            }
        }
        self.sheet.phases(what, &mut phases);
        Ok(phases)
    }

    /// A worker is killed; one does not listen, so that all others wait for it; meanwhile the agent
    /// of a third one is killed, and started again as its container would be.
    async fn barrier(&self, fleet: &mut Processes, led: &mut Led) -> Result<(), Stalled> {
        let what = "one is killed, another ignores SIGTERM, the agent of a third is killed waiting";
        self.sheet.step(what);
        let mut phases = Phases::default();
        for round in 0..self.few.0 {
            led.forget()?;
            let failed = now();
            fleet.kill(&[self.size / 2])?;
            sleep(SECOND_AFTER).await;
            fleet.restart(self.size / 4).await?;
            let is_counted = round >= self.few.1;
            self.note(fleet, led, failed, Some(&mut phases).filter(|_| is_counted)).await?;
        }
        self.sheet.phases(what, &mut phases);
        Ok(())
    }

    /// A pod is deleted; as soon as its agent has ended there is another one.
    async fn replaced(&self, fleet: &mut Processes, led: &mut Led) -> Result<(), Stalled> {
        let what = "a pod is deleted and replaced";
        self.sheet.step(what);
        let mut phases = Phases::default();
        let slot = self.size / 5;
        let mut old = slot.to_string();
        for round in 0..=self.few.0 {
            led.forget()?;
            let failed = now();
            led.gang.pod_ending(&old).await;
            fleet.leave(slot).await?;
            led.gang.pod_gone(&old, false).await;
            // What comes next expects the pod that was there first.
            let is_last = round == self.few.0;
            old = if is_last { slot.to_string() } else { format!("{slot}-{round}") };
            led.gang.pod_seen(&old, slot, 1).await;
            fleet.join(slot, &old)?;
            let is_counted = round >= self.few.1 && !is_last;
            self.note(fleet, led, failed, Some(&mut phases).filter(|_| is_counted)).await?;
        }
        self.sheet.phases(what, &mut phases);
        Ok(())
    }

    /// The leader dies while a worker is killed, and another one is there at once.
    async fn deaths(&self, fleet: &mut Processes, mut led: Led) -> Result<(), Stalled> {
        let what = "the leader dies and one is killed";
        self.sheet.step(what);
        let mut phases = Phases::default();
        for _ in 0..self.few.0 - self.few.1 {
            let dead = led.die().await?;
            let failed = now();
            fleet.kill(&[0])?;
            led = dead.succeeded().await;
            self.note(fleet, &mut led, failed, Some(&mut phases)).await?;
        }
        self.sheet.phases(what, &mut phases);
        Ok(())
    }

    /// Waits for the end of a restart, and notes how long it took if that counts.
    async fn note(
        &self,
        fleet: &mut Processes,
        led: &mut Led,
        failed: u64,
        phases: Option<&mut Phases>,
    ) -> Result<(), Stalled> {
        let mut times = led.wait(fleet.running(failed, PATIENCE)).await?;
        let waterfall = led.restarted().await?;
        // Of the end of a process only its agent knows.
        times.stopped = led.time(waterfall.gathered.unwrap_or(waterfall.heard));
        if let Some(phases) = phases {
            phases.add(&times, &waterfall, led);
        }
        Ok(())
    }
}

/// The binary that was built together with this program.
fn program() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?.with_file_name("lockstep");
    program.exists().then_some(program)
}
