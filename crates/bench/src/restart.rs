//! Restarts in place: thousands of agents over real sockets, in a process of their own, so that
//! neither end has all the descriptors. Their workers only pretend: what is measured is the way
//! from a failure to the last agent that may start.

pub(crate) mod agents;

use std::io::{BufRead, BufReader, Lines, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lockstep_control::plan::restart::{Terms, Waterfall};
use lockstep_restart::hub::{Gang, Happening, Hub, Memory};
use lockstep_restart::ticket::{Key, Ticket};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::Wanted;
use crate::report::{Budget, Report, median, percentile};

const JOB: &str = "job";
/// How often each thing is measured, and how many of these are not counted.
const ROUNDS: usize = 33;
const WARM_UP: usize = 3;

/// Measures the sizes that are wanted, without TLS and with it.
pub(crate) fn measure(report: &mut Report, wanted: &Wanted, runtime: &Runtime) {
    for (size, budget) in [(1_000, None), (5_000, Some(250.0)), (15_000, Some(800.0))] {
        if wanted.has(&size.to_string()) {
            for has_tls in [false, true] {
                runtime.block_on(gang(report, size, has_tls, budget.filter(|_| !has_tls)));
            }
        }
    }
}

struct Fleet {
    child: Child,
    said: Lines<BufReader<ChildStdout>>,
    commands: ChildStdin,
}

impl Fleet {
    fn new(address: SocketAddr, ca: &Path, size: u32) -> Self {
        let program = std::env::current_exe().unwrap();
        let mut child = Command::new(program)
            .args(["restart-agents", &address.to_string()])
            .arg(ca)
            .args([&ticket(), &size.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap()).lines();
        let commands = child.stdin.take().unwrap();
        Self { child, said, commands }
    }

    /// Makes some workers fail, and waits until all of them run again: milliseconds until half of
    /// them, nearly all of them and all of them did.
    fn fail(&mut self, slots: &[u32]) -> [f64; 3] {
        let slots: Vec<String> = slots.iter().map(ToString::to_string).collect();
        writeln!(self.commands, "{}", slots.join(" ")).unwrap();
        self.running()
    }

    fn running(&mut self) -> [f64; 3] {
        let line = self.said.next().unwrap().unwrap();
        let mut words = line.split(' ').map(|word| word.parse().unwrap());
        [(); 3].map(|()| words.next().unwrap())
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn key() -> Key {
    Key::new(&[7; 32])
}

fn ticket() -> String {
    key().sign(&Ticket { job: JOB.to_owned(), generation: 1, until: u64::MAX })
}

struct Led {
    gang: Gang,
    serving: JoinHandle<()>,
    happenings: mpsc::UnboundedReceiver<Happening>,
}

impl Led {
    async fn new(
        address: &mut SocketAddr,
        size: u32,
        fence: u64,
        tls: Option<TlsAcceptor>,
    ) -> Self {
        let mut terms = Terms::new(size, u32::MAX - 1, Duration::from_secs(60));
        terms.stalled_max = u32::MAX;
        let (tell, happenings) = mpsc::unbounded_channel();
        let gang = Gang::lead(JOB, terms, (fence, None), Arc::new(Memory::default()), tell);
        for slot in 0..size {
            gang.pod_seen(&slot.to_string(), slot, 1).await;
        }
        gang.pods_known().await;
        let hub = Hub::new(key());
        hub.add(JOB, gang.clone());
        let listener = Hub::bind(*address).unwrap();
        *address = listener.local_addr().unwrap();
        let serving = tokio::spawn(hub.serve(listener, tls));
        Self { gang, serving, happenings }
    }
}

async fn gang(report: &mut Report, size: u32, has_tls: bool, budget: Option<f64>) {
    let name = format!("{size} agents{}", if has_tls { " over TLS" } else { "" });
    let folder = tempfile::tempdir().unwrap();
    let (tls, ca) = certificate(folder.path()).filter(|_| has_tls).unzip();
    let mut address = SocketAddr::from(([127, 0, 0, 1], 0));
    let before = resident();
    let mut led = Led::new(&mut address, size, 1, tls.clone()).await;
    let begun = Instant::now();
    let mut fleet = Fleet::new(address, ca.as_deref().unwrap_or_else(|| Path::new("-")), size);
    fleet.running();
    report.add(&format!("{name}: all connected and running"), seconds(begun), "s", Budget::None);
    let memory = (resident() - before) / f64::from(size);
    let most = Budget::AtMost(16.0);
    report.add(&format!("{name}: memory per connection"), memory, "KiB", most);

    let one = rounds(&mut fleet, &mut led, &[size / 2]);
    let budget = budget.map_or(Budget::None, Budget::AtMost);
    one.add(report, &format!("{name}: one fails"), budget);
    let some: Vec<u32> = (0..size).step_by(100).collect();
    rounds(&mut fleet, &mut led, &some).add(report, &format!("{name}: 1 % fail"), Budget::None);

    // The leader is gone, with all it knew; a worker fails; somebody else leads.
    led.serving.abort();
    let _ = led.serving.await;
    led.gang.stop().await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let begun = Instant::now();
    writeln!(fleet.commands, "0").unwrap();
    let _led = Led::new(&mut address, size, 2, tls).await;
    fleet.running();
    let what = format!("{name}: a new leader, all connected again and restarted");
    report.add(&what, seconds(begun), "s", Budget::None);
}

/// What was measured of some restarts.
struct Rounds {
    all: Vec<f64>,
    nearly_all: Vec<f64>,
    half: Vec<f64>,
    cpu: f64,
    parts: Vec<(&'static str, Vec<f64>)>,
}

fn rounds(fleet: &mut Fleet, led: &mut Led, slots: &[u32]) -> Rounds {
    let mut rounds =
        Rounds { all: vec![], nearly_all: vec![], half: vec![], cpu: 0.0, parts: vec![] };
    for round in 0..ROUNDS {
        let cpu = processor_time();
        let [half, nearly_all, all] = fleet.fail(slots);
        let waterfall = tokio::task::block_in_place(|| restart(&mut led.happenings)).unwrap();
        if round < WARM_UP {
            continue;
        }
        rounds.cpu += (processor_time() - cpu) / (ROUNDS - WARM_UP) as f64;
        rounds.half.push(half);
        rounds.nearly_all.push(nearly_all);
        rounds.all.push(all);
        for (at, (name, span)) in waterfall.parts().into_iter().enumerate() {
            if rounds.parts.len() <= at {
                rounds.parts.push((name, vec![]));
            }
            rounds.parts[at].1.push(span.as_secs_f64() * 1e3);
        }
    }
    rounds
}

impl Rounds {
    fn add(mut self, report: &mut Report, name: &str, budget: Budget) {
        let all = median(self.all.clone());
        report.add(&format!("{name}, until the last runs, median"), all, "ms", budget);
        let late = percentile(&mut self.all, 99);
        report.add(&format!("{name}, until the last runs, p99"), late, "ms", Budget::None);
        let (half, nearly) = (median(self.half), median(self.nearly_all));
        report.add(&format!("{name}, until half run"), half, "ms", Budget::None);
        report.add(&format!("{name}, until 99 % run"), nearly, "ms", Budget::None);
        for (part, spans) in self.parts {
            let span = median(spans);
            report.add(&format!("{name}, part until {part}"), span, "ms", Budget::None);
        }
        report.add(&format!("{name}, CPU of the hub"), self.cpu * 1e3, "ms", Budget::None);
    }
}

/// The next restart.
fn restart(happenings: &mut mpsc::UnboundedReceiver<Happening>) -> Option<Waterfall> {
    loop {
        if let Happening::Restarted(waterfall) = happenings.blocking_recv()? {
            return Some(waterfall);
        }
    }
}

fn certificate(folder: &Path) -> Option<(TlsAcceptor, PathBuf)> {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let ca = folder.join("ca.pem");
    std::fs::write(&ca, made.cert.pem()).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    Some((TlsAcceptor::from(Arc::new(config)), ca))
}

fn seconds(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64()
}

/// Memory of this process in KiB.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Seconds of processor time that this process has used.
fn processor_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    ticks / 100.0
}
