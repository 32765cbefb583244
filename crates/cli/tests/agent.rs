//! Gangs of real agents and real workers, led by a hub over real sockets.

use std::{
    fs,
    io::Write as _,
    net::{SocketAddr, TcpStream},
    os::unix::process::ExitStatusExt as _,
    path::PathBuf,
    pin::Pin,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use lockstep_control::plan::restart::{Cause, Expected, Phase, Reason, Record, Terms};
use lockstep_restart::{
    hub::{Gang, Happening, Hub, Memory, RecordStore, Written},
    ticket::{Key, Ticket},
};
use tempfile::TempDir;
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_rustls::TlsAcceptor;

const JOB: &str = "a-job";

/// A gang on this machine.
struct Fleet {
    folder: TempDir,
    address: SocketAddr,
    terms: Terms,
    store: Arc<Memory>,
    fence: u64,
    gang: Option<Gang>,
    hub: Option<Arc<Hub>>,
    serving: Option<JoinHandle<()>>,
    happenings: mpsc::UnboundedReceiver<Happening>,
    agents: Vec<Child>,
    tls: Option<(TlsAcceptor, PathBuf)>,
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

fn signal(which: &str, process: u32) {
    let _ = Command::new("kill").args([which, &process.to_string()]).stderr(Stdio::null()).status();
}

fn key() -> Key {
    Key::new(&[42; 32])
}

fn ticket(job: &str, generation: u32) -> String {
    let until = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() + 3600;
    key().sign(&Ticket { job: job.to_owned(), generation, until })
}

impl Fleet {
    /// A leader, and an agent for each place around this script.
    async fn new(terms: Terms, script: &str) -> Self {
        let mut fleet = Self::led(terms, false).await;
        for slot in 0..fleet.terms.slots {
            fleet.join(slot, script);
        }
        fleet
    }

    async fn led(terms: Terms, has_tls: bool) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let tls = has_tls.then(|| certificate(&folder));
        let (_, happenings) = mpsc::unbounded_channel();
        let mut fleet = Self {
            folder,
            address: ([127, 0, 0, 1], 0).into(),
            terms,
            store: Arc::default(),
            fence: 0,
            gang: None,
            hub: None,
            serving: None,
            happenings,
            agents: Vec::new(),
            tls,
        };
        fleet.lead().await;
        fleet
    }

    /// Somebody leads from now on, at the same address as before.
    async fn lead(&mut self) {
        let hub = Hub::new(key());
        let listener = Hub::bind(self.address).expect("the port is free");
        self.address = listener.local_addr().expect("it is bound");
        self.fence += 1;
        let (tell, happenings) = mpsc::unbounded_channel();
        let led = (self.fence, self.store.read(JOB));
        let gang = Gang::lead((JOB, hub.key()), self.terms.clone(), led, self.store.clone(), tell);
        for slot in 0..self.terms.slots {
            gang.pod_seen(&format!("pod-{slot}"), slot, 1).await;
        }
        gang.pods_known().await;
        hub.add(JOB, gang.clone());
        let tls = self.tls.as_ref().map(|(tls, _)| tls.clone());
        self.serving = Some(tokio::spawn(Arc::clone(&hub).serve(listener, tls)));
        (self.gang, self.hub, self.happenings) = (Some(gang), Some(hub), happenings);
    }

    /// Nobody leads any more.
    async fn stop_leading(&mut self) {
        if let Some(serving) = self.serving.take() {
            serving.abort();
            let _ = serving.await;
        }
        if let Some(gang) = self.gang.take() {
            gang.stop();
        }
    }

    fn join(&mut self, slot: u32, script: &str) {
        self.join_as(JOB, slot, "300ms", script);
    }

    fn join_as(&mut self, job: &str, slot: u32, grace: &str, script: &str) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lockstep"));
        command
            .args(["agent", "--orchestrator", &self.address.to_string()])
            .args(["--pod", &format!("pod-{slot}"), "--grace", grace, "--log", "error"])
            .env("LOCKSTEP_TICKET", ticket(job, 1))
            .env("JOB", job)
            .env("SLOT", slot.to_string())
            .current_dir(self.folder.path());
        match &self.tls {
            None => command.arg("--plaintext"),
            Some((_, ca)) if slot == 0 => command.arg("--ca").arg(ca),
            Some((_, ca)) => command
                .env("LOCKSTEP_ORCHESTRATOR_CA_PEM", fs::read_to_string(ca).expect("written")),
        };
        command.args(["--", "sh", "-c", script]).stdout(Stdio::null());
        self.agents.push(command.spawn().expect("an agent starts"));
    }

    /// Waits until this many lines were written to `log` that have this beginning.
    async fn lines(&self, beginning: &str, count: usize) -> Vec<String> {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let text = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            let found: Vec<String> =
                text.lines().filter(|line| line.starts_with(beginning)).map(Into::into).collect();
            if found.len() >= count {
                return found;
            }
            assert!(Instant::now() < end, "{count} lines of {beginning:?} in:\n{text}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn phase(&self, wanted: Phase) {
        let mut record = self.gang.as_ref().expect("somebody leads").record();
        let waited = record.wait_for(|record| record.phase == wanted);
        let reached = tokio::time::timeout(Duration::from_secs(60), waited).await;
        assert!(reached.is_ok_and(|record| record.is_ok()), "{wanted:?} is not reached");
    }

    async fn restarted(&mut self) -> Happening {
        let next = self.happenings.recv();
        tokio::time::timeout(Duration::from_secs(60), next).await.expect("soon").expect("it is led")
    }

    fn codes(&mut self) -> Vec<Option<i32>> {
        let end = Instant::now() + Duration::from_secs(20);
        self.agents
            .iter_mut()
            .map(|agent| {
                loop {
                    if let Some(status) = agent.try_wait().expect("it is a child") {
                        break status.code().or_else(|| status.signal());
                    }
                    assert!(Instant::now() < end, "an agent does not end");
                    std::thread::sleep(Duration::from_millis(5));
                }
            })
            .collect()
    }
}

fn certificate(folder: &TempDir) -> (TlsAcceptor, PathBuf) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let ca = folder.path().join("ca.pem");
    fs::write(&ca, made.cert.pem()).expect("written");
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("a configuration");
    (TlsAcceptor::from(Arc::new(config)), ca)
}

fn terms(slots: u32) -> Terms {
    let mut terms = Terms::new(slots, 3, Duration::from_secs(60));
    terms.grace = Duration::from_millis(300);
    terms
}

/// Says which place, which epoch and which process it is, then works until it is ended.
const WORK: &str = "echo epoch $LOCKSTEP_EPOCH $SLOT $$ $LOCKSTEP_RESTARTS >> log; exec sleep 1000";

fn pid(line: &str) -> u32 {
    line.split(' ').nth(3).expect("a process").parse().expect("its number")
}

#[tokio::test(flavor = "multi_thread")]
async fn all_workers_restart_in_place_when_one_is_killed() {
    let mut fleet = Fleet::new(terms(5), WORK).await;
    let first = fleet.lines("epoch 0", 5).await;
    assert!(first.iter().all(|line| line.ends_with(" 0")), "{first:?}");
    let agents: Vec<u32> = fleet.agents.iter().map(Child::id).collect();
    signal("-KILL", pid(&first[2]));
    let second = fleet.lines("epoch 1", 5).await;
    assert!(second.iter().all(|line| line.ends_with(" 1")), "{second:?}");
    let Happening::Restarted(waterfall) = fleet.restarted().await else { panic!("no restart") };
    assert_eq!(waterfall.cause, Cause::Signalled { signal: 9, is_out_of_memory: false });
    assert_eq!(waterfall.parts().len(), 5);
    for line in first {
        let old = format!("/proc/{}", pid(&line));
        assert!(!fs::exists(&old).expect("readable"), "{old} is still there");
    }
    assert_eq!(agents, fleet.agents.iter().map(Child::id).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_leader_workers_run_on_and_a_failed_one_stays_down() {
    let mut fleet = Fleet::new(terms(3), WORK).await;
    let first = fleet.lines("epoch 0", 3).await;
    fleet.stop_leading().await;
    signal("-KILL", pid(&first[0]));
    tokio::time::sleep(Duration::from_millis(500)).await;
    let is_there = |line: &String| fs::exists(format!("/proc/{}", pid(line))).expect("readable");
    assert_eq!(first.iter().map(is_there).collect::<Vec<_>>(), [false, true, true]);
    assert_eq!(fleet.lines("epoch", 3).await.len(), 3);
    // Whoever leads next has lost what was written, and learns it from the agents.
    fleet.store = Arc::default();
    fleet.lead().await;
    fleet.lines("epoch 1", 3).await;
    let restarts = fleet.gang.as_ref().map(|gang| gang.record().borrow().restarts.counted);
    assert_eq!(restarts, Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_worker_has_started_is_gone_before_the_next_starts() {
    // Deaf, with a child in a session of its own, which has let go of its parent.
    let script = "trap '' TERM; \
        (setsid sh -c 'trap \"\" TERM; echo stray $LOCKSTEP_EPOCH $SLOT $$ >> log; sleep 1000' &); \
        while ! grep -q \"stray $LOCKSTEP_EPOCH $SLOT\" log; do sleep 0.01; done; \
        echo epoch $LOCKSTEP_EPOCH $SLOT $$ >> log; while :; do sleep 1000; done";
    let fleet = Fleet::new(terms(2), script).await;
    let first = fleet.lines("epoch 0", 2).await;
    let strays = fleet.lines("stray 0", 2).await;
    signal("-KILL", pid(&first[0]));
    fleet.lines("epoch 1", 2).await;
    for line in first.iter().chain(&strays) {
        assert!(!fs::exists(format!("/proc/{}", pid(line))).expect("readable"), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_end_well_together() {
    let script = "echo epoch $LOCKSTEP_EPOCH $SLOT $$ >> log; \
        test $SLOT = 0 || while ! test -e go; do sleep 0.01; done";
    let mut fleet = Fleet::new(terms(3), script).await;
    fleet.lines("epoch 0", 3).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let ended = fleet.agents[0].try_wait().expect("it is a child");
    assert_eq!(ended, None, "its success is held back until all have it");
    fs::write(fleet.folder.path().join("go"), "").expect("written");
    fleet.phase(Phase::Succeeding).await;
    assert_eq!(fleet.codes(), [Some(0); 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_failure_too_many_stops_all_and_waits_for_the_end_of_the_pods() {
    let script = "echo epoch $LOCKSTEP_EPOCH $SLOT $$ >> log; \
        test $SLOT = 1 && exit 7; exec sleep 1000";
    let mut terms = terms(3);
    terms.max_restarts = 2;
    let mut fleet = Fleet::new(terms, script).await;
    fleet.phase(Phase::Failed(Reason::ReachedMaxRestarts)).await;
    let last = fleet.lines("epoch 2", 1).await;
    assert_eq!(fleet.lines("epoch 3", 0).await.len(), 0);
    let end = Instant::now() + Duration::from_secs(10);
    while last.iter().any(|line| fs::exists(format!("/proc/{}", pid(line))).expect("readable")) {
        assert!(Instant::now() < end, "workers are left");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for agent in &mut fleet.agents {
        assert_eq!(agent.try_wait().expect("it is a child"), None);
        signal("-TERM", agent.id());
    }
    assert_eq!(fleet.codes(), [Some(143), Some(7), Some(143)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_is_deleted_has_its_own_grace() {
    let script = "trap 'sleep 0.6; echo saved >> log; exit 0' TERM; \
        echo epoch $LOCKSTEP_EPOCH $SLOT $$ >> log; while :; do sleep 0.05; done";
    let mut fleet = Fleet::new(terms(1), script).await;
    fleet.lines("epoch 0", 1).await;
    signal("-TERM", fleet.agents[0].id());
    assert_eq!(fleet.codes(), [Some(143)], "no success that nobody shares");
    // Longer than the grace of a restart.
    assert_eq!(fleet.lines("saved", 1).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn over_tls_too() {
    let mut fleet = Fleet::led(terms(3), true).await;
    (0..3).for_each(|slot| fleet.join(slot, WORK));
    let first = fleet.lines("epoch 0", 3).await;
    signal("-KILL", pid(&first[1]));
    fleet.lines("epoch 1", 3).await;
}

// rule: in-place-restart F40
#[tokio::test(flavor = "multi_thread")]
async fn strangers_and_garbage_disturb_nobody() {
    let fleet = Fleet::new(terms(2), WORK).await;
    fleet.lines("epoch 0", 2).await;
    let mut strangers = Vec::new();
    let agent = |ticket: &str, pod: &str| {
        Command::new(env!("CARGO_BIN_EXE_lockstep"))
            .args(["agent", "--orchestrator", &fleet.address.to_string(), "--plaintext"])
            .args(["--pod", pod, "--ticket", ticket, "--log", "off"])
            .args(["--", "sh", "-c", "echo stranger >> log"])
            .current_dir(fleet.folder.path())
            .spawn()
            .expect("an agent starts")
    };
    let good = ticket(JOB, 1);
    let forged =
        Key::new(&[1; 32]).sign(&Ticket { job: JOB.into(), generation: 1, until: u64::MAX });
    let expired = key().sign(&Ticket { job: JOB.into(), generation: 1, until: 1 });
    for (ticket, pod) in [
        (forged.as_str(), "pod-0"),
        (expired.as_str(), "pod-0"),
        (&ticket("another-job", 1), "pod-0"),
        (&ticket(JOB, 2), "pod-0"),
        (good.as_str(), "no-pod-of-it"),
        ("", "pod-0"),
    ] {
        strangers.push(agent(ticket, pod));
    }
    for garbage in [&b"\xff\xff\xff\xff"[..], b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\x05abcde", b""] {
        let mut stream = TcpStream::connect(fleet.address).expect("it listens");
        stream.write_all(garbage).expect("written");
    }
    let flood: Vec<TcpStream> =
        (0..200).map(|_| TcpStream::connect(fleet.address).expect("it listens")).collect();
    tokio::time::sleep(Duration::from_millis(700)).await;
    for stranger in &mut strangers {
        assert_eq!(stranger.try_wait().expect("it is a child"), None, "it keeps trying");
        stranger.kill().expect("killed");
        stranger.wait().expect("ended");
    }
    drop(flood);
    assert_eq!(fleet.lines("", 2).await.len(), 2, "nobody was started, nobody restarted");
    let record = *fleet.gang.as_ref().expect("somebody leads").record().borrow();
    assert_eq!((record.epoch, record.phase), (0, Phase::Running));
}

// rule: in-place-restart F10, in-place-restart F44
#[tokio::test(flavor = "multi_thread")]
async fn a_leader_may_go_at_any_moment_of_a_restart() {
    let mut terms = terms(4);
    (terms.max_restarts, terms.stalled_max) = (100, 100);
    let mut fleet = Fleet::new(terms, WORK).await;
    let mut workers = fleet.lines("epoch 0", 4).await;
    for (done, delay) in [0, 1, 2, 3, 5, 8, 13, 21, 34, 55].into_iter().enumerate() {
        signal("-KILL", pid(&workers[done % 4]));
        tokio::time::sleep(Duration::from_millis(delay)).await;
        fleet.stop_leading().await;
        // What it had begun to write still arrives.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let before = fleet.store.read(JOB).expect("it was led");
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(fleet.store.read(JOB), Some(before), "nobody leads");
        fleet.lead().await;
        let epoch = format!("epoch {} ", done + 1);
        workers = fleet.lines(&epoch, 4).await;
        fleet.phase(Phase::Running).await;
        let record = *fleet.gang.as_ref().expect("somebody leads").record().borrow();
        let counts = (record.epoch, record.restarts.counted, record.restarts.total);
        let want = u32::try_from(done + 1).expect("few");
        assert_eq!(counts, (want, want, want), "left after {delay} ms");
        assert_eq!(fleet.lines("epoch", 0).await.len(), 4 * (done + 2), "each starts once");
    }
}

// rule: in-place-restart F22
#[tokio::test(flavor = "multi_thread")]
async fn nobody_starts_again_for_a_job_that_was_deleted_in_the_middle_of_a_restart() {
    let stubborn = format!("trap '' TERM; {}", WORK.replace("exec sleep", "sleep"));
    let mut fleet = Fleet::new(terms(3), &stubborn).await;
    let workers = fleet.lines("epoch 0", 3).await;
    signal("-KILL", pid(&workers[1]));
    fleet.phase(Phase::Stopping).await;
    // The others have been asked to stop, and take their time.
    let (gang, hub) = (fleet.gang.take().expect("it is led"), fleet.hub.clone().expect("it is"));
    gang.stop();
    hub.remove(JOB, &gang);
    let decided = fleet.store.read(JOB).expect("a restart was decided");
    assert_eq!((decided.epoch, decided.phase), (1, Phase::Stopping));
    // Agents that come late find nobody, nor do those that say that they have stopped.
    fleet.join(1, &stubborn);
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(workers.iter().all(|line| !fs::exists(format!("/proc/{}", pid(line))).unwrap()));
    assert_eq!(fleet.lines("epoch", 3).await.len(), 3, "nobody was started again");
    assert_eq!(fleet.store.read(JOB), Some(decided), "nothing was written after the end");
}

/// Takes so many records, and says nothing to any further one.
struct Stuck(AtomicUsize);

impl RecordStore for Stuck {
    fn write<'a>(
        &'a self,
        _: &'a str,
        _: Record,
        _: Expected,
    ) -> Pin<Box<dyn Future<Output = Written> + Send + 'a>> {
        let is_left = self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
        Box::pin(async move { if is_left { Written::Yes } else { std::future::pending().await } })
    }
}

// rule: in-place-restart F41
#[tokio::test(flavor = "multi_thread")]
async fn of_many_gangs_that_fail_at_once_none_waits_for_another() {
    const GANGS: usize = 10;
    let grace = Duration::from_secs(8);
    let mut fleet = Fleet::led(terms(2), false).await;
    let hub = fleet.hub.clone().expect("it is led");
    let mut gangs = Vec::new();
    for number in 0..GANGS {
        let job = format!("job-{number}");
        let (tell, _) = mpsc::unbounded_channel();
        // The first gang can write its take-over and its first release, and nothing after that.
        let store: Arc<dyn RecordStore> =
            if number == 0 { Arc::new(Stuck(2.into())) } else { Arc::new(Memory::default()) };
        let terms = Terms { grace, ..terms(2) };
        let gang = Gang::lead((&job, hub.key()), terms, (1, None), store, tell);
        for slot in 0..2 {
            gang.pod_seen(&format!("pod-{slot}"), slot, 1).await;
        }
        gang.pods_known().await;
        hub.add(&job, gang.clone());
        gangs.push(gang);
        // The second has a worker that takes all the time it has.
        let stop = if number == 1 { "trap '' TERM" } else { "trap 'exit 0' TERM" };
        let script = format!(
            "{stop}; echo epoch $LOCKSTEP_EPOCH $SLOT $$ $JOB >> log; while :; do sleep 0.1; done"
        );
        for slot in 0..2 {
            fleet.join_as(&job, slot, "8s", &script);
        }
    }
    let workers = fleet.lines("epoch 0", 2 * GANGS).await;
    let begun = Instant::now();
    for line in workers.iter().filter(|line| line.starts_with("epoch 0 0 ")) {
        signal("-KILL", pid(line));
    }
    fleet.lines("epoch 1", 2 * (GANGS - 2)).await;
    let took = begun.elapsed();
    assert!(took < grace, "the others did not wait for the slow one: {took:?}");
    let said = fleet.lines("epoch 1", 0).await;
    assert!(said.iter().all(|line| !line.ends_with("job-0") && !line.ends_with("job-1")));
    for gang in &gangs[2..] {
        let record = *gang.record().borrow();
        assert_eq!((record.epoch, record.restarts.counted), (1, 1));
    }
    // Where nothing can be written nobody is disturbed, and the slow one comes to its end.
    let left =
        workers.iter().find(|line| line.starts_with("epoch 0 1 ") && line.ends_with("job-0"));
    assert!(fs::exists(format!("/proc/{}", pid(left.expect("it was started")))).unwrap());
    fleet.lines("epoch 1", 2 * (GANGS - 1)).await;
    assert!(begun.elapsed() >= grace);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_cannot_be_started_is_a_failure_with_a_reason() {
    let mut fleet = Fleet::led(terms(1), false).await;
    let agent = Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .args(["agent", "--orchestrator", &fleet.address.to_string(), "--plaintext"])
        .args(["--pod", "pod-0", "--ticket", &ticket(JOB, 1), "--log", "off"])
        .args(["--", "/no/such/program"])
        .spawn();
    fleet.agents.push(agent.expect("an agent starts"));
    fleet.phase(Phase::Failed(Reason::ReachedMaxRestarts)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_told_nonsense_by_its_environment_ends_the_gang() {
    let mut fleet = Fleet::led(terms(1), false).await;
    let agent = Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .args(["agent", "--orchestrator", &fleet.address.to_string(), "--plaintext"])
        .args(["--pod", "pod-0", "--ticket", &ticket(JOB, 1), "--log", "off"])
        .args(["--", "sh", "-c", "echo started >> log"])
        .env("LOCKSTEP_GRACE", "soon")
        .current_dir(fleet.folder.path())
        .spawn();
    fleet.agents.push(agent.expect("an agent starts"));
    fleet.phase(Phase::Failed(Reason::ReachedMaxRestarts)).await;
    let gang = fleet.gang.clone().expect("it is led");
    let failure = gang.describe().await.and_then(|it| it.last_failure).expect("it has failed");
    assert!(failure.1.to_string().contains("LOCKSTEP_GRACE"), "{}", failure.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_shows_no_sign_of_life_has_failed() {
    let mut fleet = Fleet::led(terms(1), false).await;
    let script = "echo epoch $LOCKSTEP_EPOCH $SLOT $$ >> log; \
        for i in 1 2 3 4 5 6 7 8; do touch beat; sleep 0.1; done; exec sleep 1000";
    let agent = Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .args(["agent", "--orchestrator", &fleet.address.to_string(), "--plaintext"])
        .args(["--pod", "pod-0", "--ticket", &ticket(JOB, 1), "--log", "off"])
        .args(["--heartbeat-file", "beat", "--heartbeat-timeout", "700ms"])
        .args(["--", "sh", "-c", script])
        .current_dir(fleet.folder.path())
        .spawn();
    fleet.agents.push(agent.expect("an agent starts"));
    fleet.lines("epoch 1", 1).await;
    let Happening::Restarted(waterfall) = fleet.restarted().await else { panic!("no restart") };
    assert_eq!(waterfall.cause, Cause::Hung);
    // It has failed when its time is up, whatever has failed before it.
    fleet.lines("epoch 2", 1).await;
    let Happening::Restarted(waterfall) = fleet.restarted().await else { panic!("no restart") };
    assert!(waterfall.detected < Duration::from_millis(500), "{:?}", waterfall.detected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_whose_log_has_no_sign_of_life_has_failed() {
    let mut fleet = Fleet::led(terms(1), false).await;
    let script = "echo epoch $LOCKSTEP_EPOCH $SLOT $$ >> log; printf started; \
        for i in 1 2 3 4 5 6 7 8; do echo step $i >&2; sleep 0.1; done; \
        while :; do echo waiting; sleep 0.1; done";
    let (out, err) = (fleet.folder.path().join("out"), fleet.folder.path().join("err"));
    let begun = Instant::now();
    let agent = Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .args(["agent", "--orchestrator", &fleet.address.to_string(), "--plaintext"])
        .args(["--pod", "pod-0", "--ticket", &ticket(JOB, 1), "--log", "off"])
        .args(["--heartbeat-pattern", r"^step \d+$", "--heartbeat-timeout", "700ms"])
        .args(["--", "sh", "-c", script])
        .current_dir(fleet.folder.path())
        .stdout(fs::File::create(&out).expect("a file"))
        .stderr(fs::File::create(&err).expect("a file"))
        .spawn();
    fleet.agents.push(agent.expect("an agent starts"));
    fleet.lines("epoch 1", 1).await;
    assert!(begun.elapsed() > Duration::from_millis(1300), "it is given its time");
    let Happening::Restarted(waterfall) = fleet.restarted().await else { panic!("no restart") };
    assert_eq!(waterfall.cause, Cause::Hung);
    let said = fs::read_to_string(out).expect("written");
    assert!(said.starts_with("startedwaiting\nwaiting\n"), "{said}");
    let said = fs::read_to_string(err).expect("written");
    assert!(said.starts_with("step 1\nstep 2\n"), "{said}");
}

#[test]
fn a_pod_can_be_given_the_agent() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut installs = Command::new(env!("CARGO_BIN_EXE_lockstep"));
    installs.args(["agent", "--install"]).arg(folder.path());
    assert!(installs.status().expect("it runs").success());
    let copy = Command::new(folder.path().join("lockstep")).arg("--version").output();
    assert!(copy.expect("the copy runs").status.success());
    let nowhere = Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .args(["agent", "--install", "/no/such/folder"])
        .output()
        .expect("it runs");
    assert_eq!(nowhere.status.code(), Some(1));
}

#[test]
fn what_is_missing_or_without_effect_is_said() {
    let agent = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lockstep"));
        command.arg("agent").args(words).env_clear().stdin(Stdio::null());
        let output = command.output().expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let base = ["--orchestrator", "127.0.0.1:1", "--pod", "p"];
    let (code, said) = agent(&[&base[..], &["--", "true"]].concat());
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--ticket-file"), "{said}");
    let (code, said) = agent(&[&base[..], &["--ticket", "t", "--", "true"]].concat());
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--plaintext"), "{said}");
    let kep = ["--cri-socket-path=unix:///x", "--worker-id=w", "--ca", "/no/such/file"];
    let (code, said) = agent(&[&base[..], &["--ticket", "t"], &kep, &["--", "true"]].concat());
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--cri-socket-path has no effect"), "{said}");
    assert!(said.contains("/no/such/file"), "{said}");
}
