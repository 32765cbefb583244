//! What the processes of this machine have used of it, by the kernel's own books.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    time::{Duration, Instant},
};

use super::{
    dirs::NodeDirs,
    runtime::{ContainerId, shim_pid},
};

/// Processors' time in `/proc` is counted in these, on every Linux.
const TICK: Duration = Duration::from_millis(10);

/// What somebody has used: processors' time since the beginning, and memory now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) cpu: Duration,
    pub(crate) memory: u64,
}

/// All processes at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) taken: Instant,
    /// The machine as a whole.
    pub(crate) machine: Usage,
    processes: BTreeMap<u32, Process>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    parent: u32,
    own: Duration,
    /// Of children that have ended and were waited for.
    children: Duration,
    memory: u64,
}

impl Sample {
    /// Looks at all processes. This reads some hundred small files.
    pub(crate) fn take() -> io::Result<Self> {
        let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
        let mut processes = BTreeMap::new();
        for entry in fs::read_dir("/proc")?.flatten() {
            let name = entry.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
            // One that has just ended is none any more.
            let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
            processes.extend(process(&stat, page).map(|process| (pid, process)));
        }
        let machine = Usage {
            cpu: worked(&fs::read_to_string("/proc/stat")?).unwrap_or_default(),
            memory: memory_used(&fs::read_to_string("/proc/meminfo")?).unwrap_or_default(),
        };
        Ok(Self { taken: Instant::now(), machine, processes })
    }

    /// What a container has used; none when its shim is gone.
    pub(crate) fn of(&self, dirs: &NodeDirs, id: &ContainerId) -> Option<Usage> {
        self.below(shim_pid(&dirs.container(id))?)
    }

    /// What all processes below one have used, those that have ended included. The one itself, a
    /// shim, is not part of the container.
    fn below(&self, root: u32) -> Option<Usage> {
        let shim = self.processes.get(&root)?;
        let mut usage = Usage { cpu: shim.children, memory: 0 };
        let mut family = BTreeSet::from([root]);
        loop {
            let is_new = |(pid, process): &(&u32, &Process)| {
                family.contains(&process.parent) && !family.contains(*pid)
            };
            let found: Vec<(u32, Process)> =
                self.processes.iter().filter(is_new).map(|(pid, one)| (*pid, *one)).collect();
            if found.is_empty() {
                return Some(usage);
            }
            for (pid, process) in found {
                usage.cpu += process.own + process.children;
                usage.memory += process.memory;
                family.insert(pid);
            }
        }
    }
}

/// Reads `/proc/<pid>/stat`. The name of the program, in parentheses, may contain anything.
fn process(stat: &str, page: u64) -> Option<Process> {
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<u32>().ok().map(|ticks| TICK * ticks);
    Some(Process {
        parent: fields.get(1)?.parse().ok()?,
        own: ticks(11)? + ticks(12)?,
        children: ticks(13)? + ticks(14)?,
        memory: fields.get(21)?.parse::<u64>().ok()? * page,
    })
}

/// How long all processors have worked, from `/proc/stat`: not what they were idle or waited.
fn worked(stat: &str) -> Option<Duration> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    // user, nice, system, idle, iowait, irq, softirq, steal
    let busy: u64 = [0, 1, 2, 5, 6].iter().filter_map(|at| ticks.get(*at)).sum();
    Some(Duration::from_millis(busy * 10))
}

/// How much memory cannot be given to others, from `/proc/meminfo`.
fn memory_used(meminfo: &str) -> Option<u64> {
    let kilobytes = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().trim_end_matches(" kB").parse::<u64>().ok()
    };
    Some(kilobytes("MemTotal:")?.saturating_sub(kilobytes("MemAvailable:")?) * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(parent: u32, own: u32, children: u32, pages: u32) -> String {
        format!(
            "7 (a) b) S {parent} 1 1 0 -1 0 0 0 0 0 {own} 0 {children} 0 20 0 1 0 9 99 {pages} 0 0"
        )
    }

    fn sample(processes: &[(u32, String)]) -> Sample {
        let processes = processes
            .iter()
            .map(|(pid, stat)| (*pid, process(stat, 4096).expect("a process")))
            .collect();
        Sample { taken: Instant::now(), machine: Usage::default(), processes }
    }

    #[test]
    fn a_container_is_all_that_lies_below_its_shim_and_has() {
        let sample = sample(&[
            (10, stat(1, 500, 7, 100)),
            (11, stat(10, 20, 0, 2)),
            (12, stat(11, 3, 40, 1)),
            (13, stat(1, 900, 0, 50)),
        ]);
        let want = Usage { cpu: TICK * (7 + 20 + 3 + 40), memory: 3 * 4096 };
        assert_eq!(sample.below(10), Some(want));
        assert_eq!(sample.below(99), None, "nobody is there");
    }

    #[test]
    fn the_machine_is_busy_when_it_neither_idles_nor_waits() {
        let stat = "cpu  10 20 30 4000 500 1 2 3 0 0\ncpu0 1 1 1 1\n";
        assert_eq!(worked(stat), Some(Duration::from_millis(630)));
        let meminfo = "MemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable:   400 kB\n";
        assert_eq!(memory_used(meminfo), Some(600 * 1024));
    }

    #[test]
    fn work_that_is_done_is_seen() {
        let before = Sample::take().expect("a sample");
        let mut sum = 0_u64;
        while before.taken.elapsed() < Duration::from_millis(300) {
            sum = sum.wrapping_add(1);
        }
        let after = Sample::take().expect("a sample");
        assert!(sum > 0 && after.machine.cpu > before.machine.cpu);
        let own = |sample: &Sample| sample.processes[&std::process::id()];
        assert!(own(&after).own > own(&before).own);
        assert!(own(&after).memory > 1 << 20);
    }
}
