//! Real processes: an agent of the binary around each worker, and a worker that is a process. What
//! is measured has all of it: signals, ends, starts.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::board::Times;
use super::clock::now;
use super::led::{Led, ticket};
use super::own_processor_time;
use super::phases::{Phases, Table};
use super::worker::{SAID, deaf};
use crate::report::{Budget, Report};

/// How often, and how many of these are not counted.
const ROUNDS: usize = 33;
const ROUNDS_FEW: usize = 8;
const WARM_UP: usize = 3;

/// Measures a gang of this many, each of them two processes.
pub(super) async fn measure(report: &mut Report, table: &mut Table, size: u32) {
    let Some(program) = program() else {
        println!("no `lockstep` beside this program: build it to measure real processes");
        return;
    };
    let name = |what: &str| format!("{size} real processes: {what}");
    let mut led = Led::new(size, None).await;
    let begun = now();
    let mut fleet = Processes::new(&program, &led, size);
    let times = fleet.running(begun, size);
    let all = super::clock::milliseconds(begun, times.started[2]) / 1e3;
    report.add(&name("agents and workers started"), all, "s", Budget::None);

    let rounds = if size > 100 { ROUNDS_FEW + 5 } else { ROUNDS };
    let mut one = fleet.rounds(&mut led, rounds, &[size / 2]).await;
    table.add(&name("one is killed"), &mut one);
    let hub = one.hub_cpu * 1e6 / (one.count() as f64 * f64::from(size));
    report.add(&name("CPU time of the hub, for each agent"), hub, "µs", Budget::None);
    let some: Vec<u32> = (0..size).step_by(100).collect();
    if some.len() > 1 {
        let mut some = fleet.rounds(&mut led, ROUNDS_FEW, &some).await;
        table.add(&name("1 % are killed at once"), &mut some);
    }
    // One does not listen: it is killed after the grace of two seconds.
    std::fs::write(fleet.folder.path().join(deaf(0)), "").unwrap();
    let mut deaf = fleet.rounds(&mut led, ROUNDS_FEW, &[size / 2]).await;
    table.add(&name("one is killed, another ignores SIGTERM (grace 2 s)"), &mut deaf);
}

/// The binary that was built together with this program.
fn program() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?.with_file_name("lockstep");
    program.exists().then_some(program)
}

struct Processes {
    agents: Vec<Child>,
    said: Lines<BufReader<File>>,
    pids: HashMap<u32, Pid>,
    folder: TempDir,
    size: u32,
}

impl Processes {
    fn new(program: &Path, led: &Led, size: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let said = folder.path().join(SAID);
        mknodat(CWD, &said, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        // With a writer of our own there is never an end of it.
        let said = File::options().read(true).write(true).open(said).unwrap();
        let (address, ticket) = (led.address.to_string(), ticket());
        let agents = (0..size).map(|slot| {
            let slot = slot.to_string();
            Command::new(program)
                .args(["agent", "--plaintext", "--orchestrator", &address])
                .args(["--ticket", &ticket, "--pod", &slot, "--grace", "2s", "--"])
                .arg(std::env::current_exe().unwrap())
                .arg("restart-worker")
                .arg(folder.path())
                .arg(&slot)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        });
        let agents = agents.collect();
        let said = BufReader::new(said).lines();
        Self { agents, said, pids: HashMap::new(), folder, size }
    }

    /// Waits until so many workers have started.
    fn running(&mut self, failed: u64, count: u32) -> Times {
        let mut times = Times { failed, ..Times::default() };
        let mut started = Vec::new();
        while started.len() < count as usize {
            let line = self.said.next().unwrap().unwrap();
            let words: Vec<&str> = line.split(' ').collect();
            let time: u64 = words[3].parse().unwrap();
            if words[0] == "started" {
                started.push(time);
                let pid = Pid::from_raw(words[2].parse().unwrap()).unwrap();
                self.pids.insert(words[1].parse().unwrap(), pid);
            } else {
                times.told = times.told.max(time);
            }
        }
        started.sort_unstable();
        let at = |percent: usize| started[(started.len() * percent / 100).min(started.len() - 1)];
        times.started = [at(50), at(99), at(100)];
        times
    }

    async fn rounds(&mut self, led: &mut Led, rounds: usize, slots: &[u32]) -> Phases {
        let mut phases = Phases::default();
        for round in 0..rounds {
            let cpu = own_processor_time();
            let failed = now();
            for slot in slots {
                kill_process(self.pids[slot], Signal::KILL).unwrap();
            }
            let mut times = self.running(failed, self.size);
            let waterfall = led.restarted().await;
            // Of the end of a process only its agent knows.
            times.stopped = led.time(waterfall.gathered.unwrap_or(waterfall.heard));
            if round >= WARM_UP {
                phases.hub_cpu += own_processor_time() - cpu;
                phases.add(&times, &waterfall, led);
            }
        }
        phases
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for agent in &mut self.agents {
            let _ = agent.kill();
        }
        for agent in &mut self.agents {
            let _ = agent.wait();
        }
    }
}
