//! A gang of real agents that are led through a real Valkey.

use std::{
    fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use lockstep_control::plan::restart::{Phase, Record, Terms};
use lockstep_restart::{
    hub::{Gang, Happening},
    ticket::{Key, Ticket},
    valkey::{Bus, Server},
};
use tempfile::TempDir;
use tokio::sync::mpsc;

use crate::server::Valkey;

pub(crate) const JOB: &str = "a-job";

/// Says which place, which epoch and which process it is, then works until it is ended.
pub(crate) const WORK: &str =
    "echo epoch $LOCKSTEP_EPOCH $SLOT $$ $LOCKSTEP_RESTARTS >> log; exec sleep 1000";

pub(crate) fn signal(which: &str, process: u32) {
    let _ = Command::new("kill").args([which, &process.to_string()]).stderr(Stdio::null()).status();
}

pub(crate) fn key() -> Key {
    Key::new(&[42; 32])
}

pub(crate) fn ticket(job: &str, generation: u32) -> String {
    let until = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() + 3600;
    key().sign(&Ticket { job: job.to_owned(), generation, until })
}

pub(crate) fn terms(slots: u32) -> Terms {
    let mut terms = Terms::new(slots, 3, Duration::from_secs(60));
    terms.grace = Duration::from_millis(300);
    terms
}

pub(crate) fn pid(line: &str) -> u32 {
    line.split(' ').nth(3).expect("a process").parse().expect("its number")
}

pub(crate) fn is_there(line: &str) -> bool {
    fs::exists(format!("/proc/{}", pid(line))).expect("readable")
}

/// One that leads a job on a bus.
pub(crate) struct Leader {
    pub(crate) bus: Arc<Bus>,
    pub(crate) gang: Gang,
    pub(crate) happenings: mpsc::UnboundedReceiver<Happening>,
}

impl Leader {
    /// Leads from what is stored.
    pub(crate) async fn new(server: Server, terms: &Terms, fence: u64) -> Self {
        let bus = Bus::new(server, key());
        let stored = bus.store().read(JOB).await.expect("it can be read");
        Self::knowing(bus, terms, fence, stored).await
    }

    /// Leads from what it is told.
    pub(crate) async fn knowing(
        bus: Arc<Bus>,
        terms: &Terms,
        fence: u64,
        stored: Option<Record>,
    ) -> Self {
        let leader = Self::off_air(bus, terms, fence, stored).await;
        leader.go_on_air();
        leader
    }

    /// Leads from what it is told, and says nothing before it is on air.
    pub(crate) async fn off_air(
        bus: Arc<Bus>,
        terms: &Terms,
        fence: u64,
        stored: Option<Record>,
    ) -> Self {
        let (tell, happenings) = mpsc::unbounded_channel();
        let gang = Gang::lead((JOB, bus.key()), terms.clone(), (fence, stored), bus.store(), tell);
        for slot in 0..terms.slots {
            gang.pod_seen(&format!("pod-{slot}"), slot, 1).await;
        }
        gang.pods_known().await;
        Self { bus, gang, happenings }
    }

    pub(crate) fn go_on_air(&self) {
        self.bus.add(JOB, self.gang.clone());
    }

    pub(crate) fn record(&self) -> Record {
        *self.gang.record().borrow()
    }

    pub(crate) async fn happening(&mut self) -> Happening {
        let next = self.happenings.recv();
        tokio::time::timeout(Duration::from_secs(60), next).await.expect("soon").expect("it is led")
    }

    pub(crate) async fn phase(&self, wanted: Phase) {
        let mut record = self.gang.record();
        let waited = record.wait_for(|record| record.phase == wanted);
        let reached = tokio::time::timeout(Duration::from_secs(60), waited).await;
        assert!(reached.is_ok_and(|record| record.is_ok()), "{wanted:?} is not reached");
    }

    /// It was restarted in place, and nothing else happened: this many times, all counted.
    pub(crate) async fn restarted_in_place(&mut self, counted: u32) {
        let happening = self.happening().await;
        assert!(matches!(happening, Happening::Restarted(_)), "{happening:?}");
        let more = self.happenings.try_recv();
        assert!(more.is_err(), "{more:?}");
        let record = self.record();
        assert_eq!((record.restarts.counted, record.restarts.total), (counted, counted));
        assert_eq!((record.epoch, record.phase), (counted, Phase::Running));
    }
}

/// Agents on this machine.
pub(crate) struct Fleet {
    pub(crate) folder: TempDir,
    pub(crate) agents: Vec<Child>,
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for agent in &mut self.agents {
            // Their workers go with them, as they would with their containers.
            signal("-TERM", agent.id());
            let end = Instant::now() + Duration::from_secs(5);
            while agent.try_wait().is_ok_and(|ended| ended.is_none()) && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(5));
            }
            let _ = agent.kill();
        }
        // An agent that had to be killed leaves behind what only the end of its container ends.
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        for process in log.lines().filter_map(|line| line.split(' ').nth(3)) {
            let _ = Command::new("kill")
                .args(["-KILL", "--", &format!("-{process}")])
                .stderr(Stdio::null())
                .status();
        }
    }
}

impl Fleet {
    pub(crate) fn empty() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder"), agents: Vec::new() }
    }

    /// An agent for each place, around a worker that works.
    pub(crate) fn new(valkey: &Valkey, slots: u32) -> Self {
        let mut fleet = Self::empty();
        for slot in 0..slots {
            fleet.join(slot, &valkey.url(), &[]);
        }
        fleet
    }

    /// An agent for each place, around a worker that takes a second to end, and terms that let it:
    /// a restart is under way for long enough to be met in its middle.
    pub(crate) fn slow_to_end(valkey: &Valkey, slots: u32) -> (Self, Terms) {
        let script = "trap 'sleep 1; exit 0' TERM; \
            echo epoch $LOCKSTEP_EPOCH $SLOT $$ >> log; while :; do sleep 0.05; done";
        let mut terms = terms(slots);
        terms.grace = Duration::from_secs(3);
        let mut fleet = Self::empty();
        for slot in 0..slots {
            let pod = format!("pod-{slot}");
            let mut agent = fleet.agent(&pod, &valkey.url(), &ticket(JOB, 1), script);
            agent.env("SLOT", slot.to_string()).env("LOCKSTEP_GRACE", "3s");
            fleet.agents.push(agent.spawn().expect("an agent starts"));
        }
        (fleet, terms)
    }

    pub(crate) fn join(&mut self, slot: u32, url: &str, variables: &[(&str, &str)]) {
        let mut command = self.agent(&format!("pod-{slot}"), url, &ticket(JOB, 1), WORK);
        command.env("SLOT", slot.to_string()).envs(variables.iter().copied());
        self.agents.push(command.spawn().expect("an agent starts"));
    }

    /// An agent that is yet to be started.
    pub(crate) fn agent(&self, pod: &str, url: &str, ticket: &str, script: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lockstep"));
        let log = fs::File::options().append(true).create(true).open(self.said());
        command
            .args(["agent", "--bus", url, "--pod", pod, "--log", "error"])
            .args(["--", "sh", "-c", script])
            .env("LOCKSTEP_TICKET", ticket)
            .env("LOCKSTEP_GRACE", "300ms")
            .current_dir(self.folder.path())
            .stdout(Stdio::null())
            .stderr(log.expect("a file"));
        command
    }

    /// Where agents complain.
    pub(crate) fn said(&self) -> PathBuf {
        self.folder.path().join("said")
    }

    /// Waits until this many lines were written to `log` that have this beginning.
    pub(crate) async fn lines(&self, beginning: &str, count: usize) -> Vec<String> {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let text = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            let found: Vec<String> =
                text.lines().filter(|line| line.starts_with(beginning)).map(Into::into).collect();
            if found.len() >= count {
                return found;
            }
            let said = fs::read_to_string(self.said()).unwrap_or_default();
            assert!(Instant::now() < end, "{count} lines of {beginning:?} in:\n{text}{said}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

pub(crate) async fn pause(milliseconds: u64) {
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
}

/// Waits until something holds.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < end, "{what}: not within a minute");
        pause(10).await;
    }
}
