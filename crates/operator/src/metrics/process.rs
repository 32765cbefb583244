//! What is counted about the process itself.

use std::fs;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::Metrics;
use crate::lease::Leadership;

/// In which the kernel tells times, on every machine.
const TICKS_PER_SECOND: f64 = 100.0;

type Lease = [(&'static str, String); 1];

/// Counters of a process and of its leadership.
pub struct Process {
    registry: Registry,
    memory: Gauge<u64, AtomicU64>,
    cpu: Counter<f64, AtomicU64>,
    /// Whether it leads, and where that is shown.
    leadership: Option<(Leadership, Gauge)>,
}

impl Process {
    /// Counters of this process. `leadership` comes with the name of its Lease.
    pub fn new(leadership: Option<(String, Leadership)>) -> Self {
        let mut registry = Registry::default();
        let memory = Gauge::default();
        let help = "Resident memory of the process";
        registry.register("process_resident_memory_bytes", help, memory.clone());
        let cpu = Counter::default();
        let help = "User and system time of the process, in seconds";
        registry.register("process_cpu_seconds", help, cpu.clone());
        let leadership = leadership.map(|(name, leadership)| {
            let family = Family::<Lease, Gauge>::default();
            let help = "Whether this process leads, by the name of the Lease";
            registry.register("leader_election_master_status", help, family.clone());
            let leads = family.get_or_create_owned(&[("name", name)]);
            (leadership, leads)
        });
        Self { registry, memory, cpu, leadership }
    }

    /// These counters and those of the controllers, as Prometheus reads them.
    pub fn text(&self, controllers: &Metrics) -> String {
        self.memory.set(resident_memory_bytes().unwrap_or_default());
        let used = cpu_seconds().unwrap_or_default();
        self.cpu.inc_by((used - self.cpu.get()).max(0.0));
        if let Some((leadership, leads)) = &self.leadership {
            leads.set(i64::from(leadership.may_send()));
        }
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _infallible = encode_registry(&mut text, &self.registry)
            .and_then(|()| controllers.write(&mut text))
            .and_then(|()| encode_eof(&mut text));
        text
    }
}

/// How much memory the process holds, where the system says.
fn resident_memory_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// How long the process has run on any core, where the system says.
fn cpu_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // After the name, which may contain anything: user and system time are the 12th and 13th.
    let mut times = stat.rsplit_once(") ")?.1.split(' ').skip(11).map(str::parse::<f64>);
    Some((times.next()?.ok()? + times.next()?.ok()?) / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_tells_whether_it_leads() {
        let metrics = Metrics::new();
        for (leadership, want) in [(Leadership::alone(), 1), (Leadership::never(), 0)] {
            let text = Process::new(Some(("x".to_owned(), leadership))).text(&metrics);
            let line = format!("leader_election_master_status{{name=\"x\"}} {want}\n");
            assert!(text.contains(&line), "{text}");
        }
        let text = Process::new(None).text(&metrics);
        assert!(!text.contains("leader_election"), "{text}");
        assert!(text.contains("process_resident_memory_bytes ") && text.ends_with("# EOF\n"));
        let used = text.lines().find_map(|line| line.strip_prefix("process_cpu_seconds_total "));
        assert!(used.unwrap().parse::<f64>().is_ok(), "{text}");
        assert!(cpu_seconds().is_some());
    }
}
