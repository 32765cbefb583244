//! Gangs of real agents, led through a real Valkey that is killed, emptied and held up.
//!
//! `cargo xtask e2e valkey` runs them, with the server it finds or installs.

#[path = "valkey/server.rs"]
mod server;
#[path = "valkey/support.rs"]
mod support;

use std::{
    process::{Child, Command, Stdio},
    time::Instant,
};

use lockstep_control::plan::restart::{Cause, Expected, Phase, Record};
use lockstep_restart::{
    hub::{Happening, RecordStore as _, Written},
    ticket::Ticket,
    valkey::{Bus, Server},
};

use server::Valkey;
use support::{Fleet, JOB, Leader, is_there, key, pause, pid, signal, terms, ticket, until};

fn at(valkey: &Valkey) -> Server {
    Server::new(&valkey.url(), None).expect("an address")
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Valkey"]
async fn all_workers_restart_in_place_when_one_is_killed() {
    let valkey = Valkey::start();
    let fleet = Fleet::new(&valkey, 5);
    let mut leader = Leader::new(at(&valkey), &terms(5), 1).await;
    let mut before = fleet.lines("epoch 0", 5).await;
    let agents: Vec<u32> = fleet.agents.iter().map(Child::id).collect();
    for epoch in 1..=3 {
        let begun = Instant::now();
        signal("-KILL", pid(&before[2]));
        let after = fleet.lines(&format!("epoch {epoch}"), 5).await;
        println!("restart {epoch}: {:?}", begun.elapsed());
        leader.restarted_in_place(epoch).await;
        assert!(before.iter().all(|line| !is_there(line)), "{before:?}");
        before = after;
    }
    assert_eq!(agents, fleet.agents.iter().map(Child::id).collect::<Vec<_>>());
    assert_eq!(leader.bus.store().read(JOB).await.unwrap(), Some(leader.record()));
    leader.bus.store().forget(JOB).await.unwrap();
    assert_eq!(leader.bus.store().read(JOB).await.unwrap(), None);
}

// rule: in-place-restart F9
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Valkey"]
async fn a_killed_leader_is_followed_by_another_without_agents_connecting_again() {
    let valkey = Valkey::start();
    let fleet = Fleet::new(&valkey, 4);
    let mut first = Command::new(std::env::current_exe().expect("this program"))
        .args(["leads_until_it_is_killed", "--exact", "--ignored"])
        .env("LEADS_AT", valkey.url())
        .stdout(Stdio::null())
        .spawn()
        .expect("a leader starts");
    let workers = fleet.lines("epoch 0", 4).await;
    signal("-KILL", pid(&workers[3]));
    let workers = fleet.lines("epoch 1", 4).await;
    let connections = valkey.agents();
    assert_eq!(connections.len(), 4);
    first.kill().expect("killed");
    first.wait().expect("ended");
    signal("-KILL", pid(&workers[0]));
    pause(500).await;
    let alive: Vec<bool> = workers.iter().map(|line| is_there(line)).collect();
    assert_eq!(alive, [false, true, true, true], "nobody is disturbed meanwhile");
    let begun = Instant::now();
    let mut second = Leader::new(at(&valkey), &terms(4), 2).await;
    fleet.lines("epoch 2", 4).await;
    println!("taken over and restarted: {:?}", begun.elapsed());
    second.restarted_in_place(2).await;
    assert_eq!(connections, valkey.agents());
}

/// The leader that another test kills; by itself it does nothing.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Valkey"]
async fn leads_until_it_is_killed() {
    if let Ok(url) = std::env::var("LEADS_AT") {
        let _leader = Leader::new(Server::new(&url, None).unwrap(), &terms(4), 1).await;
        std::future::pending::<()>().await;
    }
}

// rule: in-place-restart F17
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Valkey"]
async fn data_may_be_lost_and_nothing_happens_because_of_it() {
    let mut valkey = Valkey::start();
    let fleet = Fleet::new(&valkey, 3);
    let mut leader = Leader::new(at(&valkey), &terms(3), 1).await;
    let workers = fleet.lines("epoch 0", 3).await;
    leader.phase(Phase::Running).await;
    valkey.kill();
    pause(1000).await;
    valkey.start_again();
    let store = leader.bus.store();
    for cause in ["it was started again", "it was emptied"] {
        for (question, answer) in [
            ("EXISTS lockstep:{a-job}:record", ":1"),
            ("EXISTS lockstep:{a-job}:order", ":1"),
            ("HLEN lockstep:{a-job}:reports", ":3"),
        ] {
            let what = format!("{cause}: {question}");
            until(&what, || valkey.ask(question).starts_with(answer)).await;
        }
        assert_eq!(store.read(JOB).await.unwrap(), Some(leader.record()), "{cause}");
        // Without a connection being lost, too.
        valkey.ask("FLUSHALL");
    }
    assert!(workers.iter().all(|line| is_there(line)), "nobody was disturbed");
    assert!(leader.happenings.try_recv().is_err());
    signal("-KILL", pid(&workers[1]));
    fleet.lines("epoch 1", 3).await;
    leader.restarted_in_place(1).await;
    assert_eq!(fleet.lines("epoch", 6).await.len(), 6, "each was started twice");
}

// rule: in-place-restart F14
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Valkey"]
async fn a_worker_that_fails_while_there_is_no_bus_stays_down_until_there_is() {
    let mut valkey = Valkey::start();
    let fleet = Fleet::new(&valkey, 3);
    let mut leader = Leader::new(at(&valkey), &terms(3), 1).await;
    let workers = fleet.lines("epoch 0", 3).await;
    leader.phase(Phase::Running).await;
    valkey.kill();
    signal("-KILL", pid(&workers[0]));
    pause(2000).await;
    let alive: Vec<bool> = workers.iter().map(|line| is_there(line)).collect();
    assert_eq!(alive, [false, true, true]);
    assert_eq!(fleet.lines("epoch", 3).await.len(), 3);
    let begun = Instant::now();
    valkey.start_again();
    fleet.lines("epoch 1", 3).await;
    println!("back and restarted: {:?}", begun.elapsed());
    leader.restarted_in_place(1).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Valkey"]
async fn leader_and_data_may_be_lost_together() {
    let mut valkey = Valkey::start();
    let fleet = Fleet::new(&valkey, 3);
    let leader = Leader::new(at(&valkey), &terms(3), 1).await;
    let workers = fleet.lines("epoch 0", 3).await;
    signal("-KILL", pid(&workers[0]));
    let workers = fleet.lines("epoch 1", 3).await;
    leader.phase(Phase::Running).await;
    valkey.kill();
    leader.bus.remove(JOB, &leader.gang);
    drop(leader);
    valkey.start_again();
    let mut second = Leader::new(at(&valkey), &terms(3), 2).await;
    until("what was lost is known again", || second.record().restarts.counted == 1).await;
    second.phase(Phase::Running).await;
    assert!(workers.iter().all(|line| is_there(line)), "nobody was disturbed");
    signal("-KILL", pid(&workers[2]));
    fleet.lines("epoch 2", 3).await;
    second.restarted_in_place(2).await;
}

// rule: in-place-restart F15
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Valkey"]
async fn a_bus_that_is_held_up_is_waited_for() {
    let valkey = Valkey::start();
    let fleet = Fleet::new(&valkey, 3);
    let mut leader = Leader::new(at(&valkey), &terms(3), 1).await;
    let mut workers = fleet.lines("epoch 0", 3).await;
    leader.phase(Phase::Running).await;
    // Shorter and longer than an answer may take.
    for (epoch, seconds) in [(1, 2), (2, 12)] {
        valkey.signal("-STOP");
        signal("-KILL", pid(&workers[1]));
        pause(seconds * 1000).await;
        let alive: Vec<bool> = workers.iter().map(|line| is_there(line)).collect();
        assert_eq!(alive, [true, false, true], "after {seconds} s");
        let begun = Instant::now();
        valkey.signal("-CONT");
        workers = fleet.lines(&format!("epoch {epoch}"), 3).await;
        println!("after {seconds} s: restarted within {:?}", begun.elapsed());
        workers.sort_unstable_by_key(|line| line.split(' ').nth(2).map(ToOwned::to_owned));
        leader.restarted_in_place(epoch).await;
    }
    assert_eq!(fleet.lines("epoch", 9).await.len(), 9, "each was started three times");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Valkey"]
async fn a_restart_that_loses_the_bus_in_the_middle_comes_to_its_end() {
    let mut valkey = Valkey::start();
    let (fleet, slow) = Fleet::slow_to_end(&valkey, 3);
    let mut leader = Leader::new(at(&valkey), &slow, 1).await;
    let workers = fleet.lines("epoch 0", 3).await;
    signal("-KILL", pid(&workers[0]));
    leader.phase(Phase::Stopping).await;
    valkey.kill();
    pause(2000).await;
    assert_eq!(fleet.lines("epoch 1", 0).await.len(), 0, "nobody is released alone");
    valkey.start_again();
    fleet.lines("epoch 1", 3).await;
    leader.restarted_in_place(1).await;
    assert_eq!(fleet.lines("epoch", 6).await.len(), 6);
}

// rule: in-place-restart F13
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Valkey"]
async fn of_two_leaders_the_earlier_one_is_refused() {
    let valkey = Valkey::start();
    let fleet = Fleet::new(&valkey, 3);
    let mut first = Leader::new(at(&valkey), &terms(3), 1).await;
    let workers = fleet.lines("epoch 0", 3).await;
    first.phase(Phase::Running).await;
    let mut second = Leader::new(at(&valkey), &terms(3), 2).await;
    second.phase(Phase::Running).await;
    assert_eq!(first.happening().await, Happening::SteppedDown(2));
    signal("-KILL", pid(&workers[0]));
    fleet.lines("epoch 1", 3).await;
    second.restarted_in_place(1).await;
    // One that comes late, with what it has read long ago.
    let bus = Bus::new(at(&valkey), key());
    let mut late = Leader::knowing(bus, &terms(3), 1, None).await;
    assert_eq!(late.happening().await, Happening::SteppedDown(2));
    pause(300).await;
    assert_eq!(fleet.lines("epoch", 6).await.len(), 6);
    assert_eq!(second.bus.store().read(JOB).await.unwrap(), Some(second.record()));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Valkey"]
async fn an_order_of_an_earlier_leader_is_neither_kept_nor_said() {
    let valkey = Valkey::start();
    // All that is left of a later leader, after some data were lost.
    let version = format!("{:020}{:010}{:010}0", 9, 1, 0);
    valkey.ask(&format!("HSET lockstep:{{a-job}}:order version {version} frame later"));
    let mut leader = Leader::new(at(&valkey), &terms(1), 1).await;
    assert_eq!(leader.happening().await, Happening::SteppedDown(9));
    assert!(valkey.ask("HGET lockstep:{a-job}:order frame").contains("later"));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Valkey"]
async fn an_order_that_was_decided_before_it_could_be_said_is_not_said_after_a_later_one() {
    let valkey = Valkey::start();
    let version = format!("{:020}{:010}{:010}0", 9, 1, 0);
    valkey.ask(&format!("HSET lockstep:{{a-job}}:order version {version} frame later"));
    let bus = Bus::new(at(&valkey), key());
    let mut leader = Leader::off_air(bus, &terms(1), 1, None).await;
    let mut record = leader.gang.record();
    record.wait_for(|record| record.revision > 0).await.unwrap();
    leader.go_on_air();
    assert_eq!(leader.happening().await, Happening::SteppedDown(9));
    assert!(valkey.ask("HGET lockstep:{a-job}:order frame").contains("later"));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Valkey"]
async fn a_record_is_written_exactly_when_it_may_be() {
    let valkey = Valkey::start();
    let store = Bus::new(at(&valkey), key()).store();
    let record = |(fence, revision)| Record { revision, ..Record::new(fence, &terms(2)) };
    // Text that is compared as text has to be as good as the numbers.
    let versions = [(1, 1), (1, 2), (2, 1), (9, 9), (10, 0), (10, 10), (u64::MAX, u64::MAX)];
    let mut expectations = vec![Expected::Older, Expected::Found(None)];
    expectations.extend(versions.map(|version| Expected::Found(Some(version))));
    let mut count = 0;
    for there in std::iter::once(None).chain(versions.map(Some)) {
        for version in versions {
            for expected in &expectations {
                valkey.ask("FLUSHALL");
                if let Some(there) = there {
                    let put = store.write(JOB, record(there), Expected::Older).await;
                    assert_eq!(put, Written::Yes);
                }
                let before = there.map(record);
                let may = expected.allows(before.as_ref(), &record(version));
                let written = store.write(JOB, record(version), *expected).await;
                let fence = there.map_or(0, |there| there.0);
                let wanted = if may { Written::Yes } else { Written::Refused(fence) };
                assert_eq!(written, wanted, "{version:?} over {there:?}, {expected:?}");
                let after = if may { Some(record(version)) } else { before };
                assert_eq!(store.read(JOB).await.unwrap(), after);
                count += 1;
            }
        }
    }
    assert_eq!(count, 8 * 7 * 9);
    valkey.ask("HSET lockstep:{a-job}:record record garbage");
    assert!(store.read(JOB).await.is_err());
}

// rule: in-place-restart F40
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Valkey"]
async fn strangers_and_garbage_disturb_nobody() {
    let valkey = Valkey::start();
    let fleet = Fleet::new(&valkey, 2);
    let leader = Leader::new(at(&valkey), &terms(2), 1).await;
    fleet.lines("epoch 0", 2).await;
    let (good, forged) = (ticket(JOB, 1), lockstep_restart::ticket::Key::new(&[1; 32]));
    let forged = forged.sign(&Ticket { job: JOB.into(), generation: 1, until: u64::MAX });
    let expired = key().sign(&Ticket { job: JOB.into(), generation: 1, until: 1 });
    let mut strangers = Vec::new();
    for (ticket, pod) in [
        (forged.as_str(), "pod-0"),
        (expired.as_str(), "pod-0"),
        (&ticket("another-job", 1), "pod-0"),
        (&ticket(JOB, 2), "pod-0"),
        (good.as_str(), "no-pod-of-it"),
    ] {
        let mut stranger = fleet.agent(pod, &valkey.url(), ticket, "echo stranger >> log");
        strangers.push(stranger.spawn().expect("an agent starts"));
    }
    for key in ["reports", "order", "record"] {
        valkey.ask(&format!("PUBLISH lockstep:{{a-job}}:{key} garbage"));
    }
    valkey.ask("HSET lockstep:{a-job}:reports pod-1 garbage");
    pause(2500).await;
    for stranger in &mut strangers {
        assert_eq!(stranger.try_wait().expect("it is a child"), None, "it keeps trying");
        stranger.kill().expect("killed");
        stranger.wait().expect("ended");
    }
    assert_eq!(fleet.lines("", 2).await.len(), 2, "nobody was started, nobody restarted");
    assert_eq!((leader.record().epoch, leader.record().phase), (0, Phase::Running));
    let said = std::fs::read_to_string(fleet.said()).expect("they complain");
    assert!(said.contains("the ticket is not valid here"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Valkey"]
async fn an_agent_that_was_killed_is_followed_by_another_in_its_pod() {
    let valkey = Valkey::start();
    let mut fleet = Fleet::new(&valkey, 3);
    let mut leader = Leader::new(at(&valkey), &terms(3), 1).await;
    let workers = fleet.lines("epoch 0", 3).await;
    leader.phase(Phase::Running).await;
    fleet.agents[1].kill().expect("killed");
    fleet.agents[1].wait().expect("ended");
    // Its worker goes with it, as the agent asks the system for.
    let orphan = workers.iter().find(|line| line.split(' ').nth(2) == Some("1")).expect("it ran");
    until("its worker is gone", || !is_there(orphan)).await;
    fleet.join(1, &valkey.url(), &[]);
    fleet.lines("epoch 1", 3).await;
    let Happening::Restarted(waterfall) = leader.happening().await else { panic!("no restart") };
    assert_eq!(waterfall.cause, Cause::AgentRestarted);
}

/// The users that the documentation asks for.
fn documented_users() -> String {
    let users = include_str!("../../../deploy/valkey/users.acl");
    users.replace("AGENT-PASSWORD", "agent").replace("ORCHESTRATOR-PASSWORD", "leader")
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Valkey"]
async fn the_documented_users_may_do_what_they_need_and_nothing_else() {
    let admin = "user admin on >admin ~* &* +@all";
    let valkey = Valkey::configured(|_| format!("{}\n{admin}", documented_users()));
    let mut fleet = Fleet::empty();
    let with_user = format!("valkey://lockstep-agent:agent@127.0.0.1:{}", valkey.port);
    fleet.join(0, &with_user, &[]);
    let apart = [("LOCKSTEP_BUS_USER", "lockstep-agent"), ("LOCKSTEP_BUS_PASSWORD", "agent")];
    fleet.join(1, &valkey.url(), &apart);
    let server = at(&valkey).with_user("lockstep-orchestrator").with_password("leader");
    let mut leader = Leader::new(server.clone(), &terms(2), 1).await;
    let workers = fleet.lines("epoch 0", 2).await;
    signal("-KILL", pid(&workers[0]));
    fleet.lines("epoch 1", 2).await;
    leader.restarted_in_place(1).await;

    // Everything that is written again after a loss, too.
    valkey.ask_as("AUTH admin admin", "FLUSHALL");
    until("the order is there again", || {
        valkey.ask_as("AUTH admin admin", "EXISTS lockstep:{a-job}:order").contains(":1")
    })
    .await;

    for forbidden in [
        "PUBLISH lockstep:{a-job}:order x",
        "PUBLISH lockstep:{a-job}:told:0 x",
        "SUBSCRIBE lockstep:{a-job}:reports",
        "PSUBSCRIBE *",
        "HSET lockstep:{a-job}:order frame x",
        "HSET lockstep:{a-job}:record record x",
        "HGET lockstep:{a-job}:record record",
        "HGETALL lockstep:{a-job}:reports",
        "HVALS lockstep:{a-job}:reports",
        "HGET lockstep:{a-job}:reports pod-0",
        "DEL lockstep:{a-job}:reports",
        "EVAL 'return 1' 0",
        "KEYS *",
        "FLUSHALL",
        "CONFIG GET *",
        "ACL LIST",
        "SET other x",
    ] {
        let said = valkey.ask_as("AUTH lockstep-agent agent", forbidden);
        assert!(said.contains("NOPERM"), "an agent may {forbidden}: {said}");
    }
    for forbidden in ["SET other x", "PUBLISH other x", "FLUSHALL", "CONFIG GET *", "KEYS *"] {
        let said = valkey.ask_as("AUTH lockstep-orchestrator leader", forbidden);
        assert!(said.contains("NOPERM"), "an orchestrator may {forbidden}: {said}");
    }
    assert!(valkey.ask("HGET lockstep:{a-job}:order frame").contains("NOAUTH"));
    leader.bus.store().forget(JOB).await.expect("an orchestrator may");
}

// rule: in-place-restart F22
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Valkey"]
async fn a_job_that_is_over_is_not_brought_back_by_what_is_said_late() {
    let valkey = Valkey::start();
    let (fleet, slow) = Fleet::slow_to_end(&valkey, 2);
    let leader = Leader::new(at(&valkey), &slow, 1).await;
    let workers = fleet.lines("epoch 0", 2).await;
    signal("-KILL", pid(&workers[0]));
    leader.phase(Phase::Stopping).await;
    leader.gang.stop();
    leader.bus.remove(JOB, &leader.gang);
    let store = leader.bus.store();
    store.forget(JOB).await.unwrap();
    // A leader that does not know it yet, and agents that repeat what they say.
    let late = Record { revision: 9, ..Record::new(u64::MAX, &slow) };
    assert!(matches!(store.write(JOB, late, Expected::Older).await, Written::Refused(_)));
    pause(12_000).await;
    assert_eq!(store.read(JOB).await.unwrap(), None);
    for (key, kind) in [("record", "hash"), ("reports", "string"), ("order", "hash")] {
        let said = valkey.ask(&format!("TYPE lockstep:{{a-job}}:{key}"));
        assert!(said.contains(kind), "{key}: {said}");
    }
    for (key, field) in [("record", "record"), ("order", "frame")] {
        let said = valkey.ask(&format!("HEXISTS lockstep:{{a-job}}:{key} {field}"));
        assert!(said.contains(":0"), "{key}: {said}");
    }
    assert_eq!(fleet.lines("epoch", 2).await.len(), 2, "nobody was started again");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Valkey"]
async fn a_wrong_user_is_refused_and_says_so() {
    let valkey = Valkey::configured(|_| documented_users());
    let mut fleet = Fleet::empty();
    fleet.join(0, &format!("valkey://lockstep-agent:wrong@127.0.0.1:{}", valkey.port), &[]);
    fleet.join(0, &valkey.url(), &[]);
    let server = at(&valkey).with_user("lockstep-orchestrator").with_password("leader");
    let _leader = Leader::new(server.clone(), &terms(1), 1).await;
    assert!(Bus::new(server.with_password("wrong"), key()).store().read(JOB).await.is_err());
    let agents = at(&valkey).with_user("lockstep-agent").with_password("agent");
    let store = Bus::new(agents, key()).store();
    assert!(store.read(JOB).await.is_err(), "agents do not read records");
    let record = Record { revision: 9, ..Record::new(9, &terms(1)) };
    assert_eq!(store.write(JOB, record, Expected::Older).await, Written::Unsure);
    until("both complain", || {
        let said = std::fs::read_to_string(fleet.said()).unwrap_or_default();
        said.contains("WRONGPASS") && said.contains("NOAUTH")
    })
    .await;
    assert_eq!(fleet.lines("epoch", 0).await.len(), 0, "nobody was started");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Valkey"]
async fn over_tls_too() {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("certificate");
    let other = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("certificate");
    let valkey = Valkey::configured(|at| {
        let file = |name: &str, text: String| {
            let path = at.folder.path().join(name);
            std::fs::write(&path, text).expect("written");
            path.display().to_string()
        };
        let (ca, key) =
            (file("ca.pem", made.cert.pem()), file("key.pem", made.signing_key.serialize_pem()));
        file("other.pem", other.cert.pem());
        format!(
            "tls-port {}\ntls-cert-file {ca}\ntls-key-file {key}\ntls-ca-cert-file {ca}\n\
             tls-auth-clients no",
            at.port
        )
    });
    let url = format!("valkeys://127.0.0.1:{}", valkey.port);
    let mut fleet = Fleet::empty();
    let path = valkey.path("ca.pem");
    fleet.join(0, &url, &[("LOCKSTEP_BUS_CA", path.to_str().expect("a path"))]);
    let text = made.cert.pem();
    fleet.join(1, &url.replace("valkeys", "rediss"), &[("LOCKSTEP_BUS_CA_PEM", &text)]);
    let trusting = |pem: &str| {
        let mut roots = rustls::RootCertStore::empty();
        let certificate: rustls::pki_types::CertificateDer<'_> =
            rustls::pki_types::pem::PemObject::from_pem_slice(pem.as_bytes()).expect("one");
        roots.add(certificate).expect("added");
        let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Server::new(&url, Some(std::sync::Arc::new(config))).expect("an address")
    };
    let wrong = Bus::new(trusting(&other.cert.pem()), key());
    assert!(wrong.store().read(JOB).await.is_err(), "signed by somebody else");
    let mut leader = Leader::new(trusting(&text), &terms(2), 1).await;
    let workers = fleet.lines("epoch 0", 2).await;
    signal("-KILL", pid(&workers[0]));
    fleet.lines("epoch 1", 2).await;
    leader.restarted_in_place(1).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Valkey"]
async fn what_was_decided_is_still_said_when_a_job_is_removed() {
    let valkey = Valkey::start();
    let mut fleet = Fleet::empty();
    let script = "echo epoch $LOCKSTEP_EPOCH $SLOT $$ >> log; \
        test $SLOT = 0 || while ! test -e go; do sleep 0.01; done";
    for slot in 0..3 {
        let mut agent = fleet.agent(&format!("pod-{slot}"), &valkey.url(), &ticket(JOB, 1), script);
        fleet.agents.push(agent.env("SLOT", slot.to_string()).spawn().expect("an agent starts"));
    }
    let leader = Leader::new(at(&valkey), &terms(3), 1).await;
    fleet.lines("epoch 0", 3).await;
    pause(300).await;
    let ended = fleet.agents[0].try_wait().expect("it is a child");
    assert_eq!(ended, None, "its success is held back until all have it");
    std::fs::write(fleet.folder.path().join("go"), "").expect("written");
    leader.phase(Phase::Succeeding).await;
    leader.bus.remove(JOB, &leader.gang);
    for agent in &mut fleet.agents {
        let mut ended = None;
        until("the agent ends", || {
            ended = agent.try_wait().expect("it is a child");
            ended.is_some()
        })
        .await;
        assert_eq!(ended.and_then(|status| status.code()), Some(0));
    }
}

// rule: in-place-restart F18
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Valkey"]
async fn an_order_that_an_agent_has_missed_is_read_when_it_connects_again() {
    let valkey = Valkey::start();
    let mut fleet = Fleet::empty();
    let script = "echo epoch $LOCKSTEP_EPOCH $SLOT $$ >> log; \
        test $SLOT = 0 || while ! test -e go; do sleep 0.01; done";
    for slot in 0..2 {
        let mut agent = fleet.agent(&format!("pod-{slot}"), &valkey.url(), &ticket(JOB, 1), script);
        fleet.agents.push(agent.env("SLOT", slot.to_string()).spawn().expect("an agent starts"));
        until("it is there", || valkey.agents().len() == fleet.agents.len()).await;
    }
    let cut_off = valkey.agents().remove(0);
    let leader = Leader::new(at(&valkey), &terms(2), 1).await;
    let worker = fleet.lines("epoch 0 0", 1).await.remove(0);
    fleet.lines("epoch 0", 2).await;
    until("one is done", || !is_there(&worker)).await;
    pause(300).await;
    signal("-STOP", fleet.agents[0].id());
    valkey.ask(&format!("CLIENT KILL ID {cut_off}"));
    std::fs::write(fleet.folder.path().join("go"), "").expect("written");
    leader.phase(Phase::Succeeding).await;
    until("the order is said", || valkey.agents().is_empty()).await;
    leader.bus.remove(JOB, &leader.gang);
    drop(leader);
    // Nobody leads any more, so nobody says it again.
    pause(200).await;
    signal("-CONT", fleet.agents[0].id());
    let mut ended = None;
    until("the agent ends", || {
        ended = fleet.agents[0].try_wait().expect("it is a child");
        ended.is_some()
    })
    .await;
    assert_eq!(ended.and_then(|status| status.code()), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Valkey"]
async fn a_leader_reads_what_was_reported_before_it_came() {
    let valkey = Valkey::start();
    let mut fleet = Fleet::new(&valkey, 1);
    let first = Leader::new(at(&valkey), &terms(1), 1).await;
    let workers = fleet.lines("epoch 0", 1).await;
    first.phase(Phase::Running).await;
    first.bus.remove(JOB, &first.gang);
    drop(first);
    signal("-KILL", pid(&workers[0]));
    let reported = || valkey.ask("HGET lockstep:{a-job}:reports pod-0");
    until("the worker is gone", || !is_there(&workers[0])).await;
    // Of two reports after that, the second knows of it.
    for _ in 0..2 {
        let before = reported();
        until("it is reported", || reported() != before).await;
    }
    // The agent cannot say it again.
    fleet.agents[0].kill().expect("killed");
    fleet.agents[0].wait().expect("ended");
    let second = Leader::new(at(&valkey), &terms(1), 2).await;
    second.phase(Phase::Stopping).await;
    assert_eq!((second.record().epoch, second.record().restarts.counted), (1, 1));
}

#[test]
fn what_is_wrong_with_a_bus_is_said() {
    let agent = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lockstep"));
        command.args(["agent", "--pod", "p"]).args(words).args(["--", "true"]);
        let output = command.env_clear().stdin(Stdio::null()).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        said
    };
    let ticket = ticket(JOB, 1);
    for (words, wanted) in [
        (&["--bus", "http://host"][..], "valkey://host:6379"),
        (&["--bus", "valkey://me:secret@host:port"], "valkey://host:6379"),
        (&["--bus", "valkeys://host"], "the certificates of its authority are needed"),
        (&["--bus", "valkeys://host", "--bus-ca", "/no/such/file"], "/no/such/file"),
        (&["--bus", "valkeys://host", "--bus-ca", "/dev/null"], "there is none"),
        (&["--bus", "valkey://host", "--bus-password-file", "/no/such/file"], "/no/such/file"),
        (&["--bus", "valkey://host", "--orchestrator", "host:1"], "cannot be used with"),
        (&["--valkey-address", "host:port"], "valkey://host:6379"),
        (&[], "--orchestrator"),
    ] {
        let said = agent(&[words, &["--ticket", &ticket]].concat());
        assert!(said.contains(wanted), "{words:?}: {said}");
        assert!(!said.contains("secret"), "{said}");
    }
    let said = agent(&["--bus", "valkey://host", "--ticket", "none"]);
    assert!(said.contains("the ticket does not name a job"), "{said}");
}
