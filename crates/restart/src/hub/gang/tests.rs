//! The task of a gang, without connections.

use std::future::ready;
use std::pin::Pin;
use std::sync::atomic::AtomicU32;

use tokio::time::timeout;

use super::super::mailbox::Mailbox;
use super::super::store::Memory;
use super::*;
use crate::wire::parse;
use lockstep_control::plan::restart::{
    Agent, AgentEffect, Duty, Held, Identity, Phase, Rank, Restarts,
};

const SOON: Duration = Duration::from_secs(10);

fn key() -> Key {
    Key::new(&[7; 32])
}

fn lead(store: Arc<dyn RecordStore>) -> Gang {
    let (tell, _) = mpsc::unbounded_channel();
    let terms = Terms::new(2, 3, Duration::from_secs(60));
    Gang::lead(("job", &key()), terms, (1, None), store, tell)
}

#[tokio::test]
async fn an_agent_that_has_just_come_is_let_go_with_all_others() {
    let gang = lead(Arc::new(Memory::default()));
    gang.pod_seen("pod", 0, 1).await;
    let seat = gang.seat("pod").unwrap();
    let mailbox = Arc::new(Mailbox::new(None));
    let way = Way { alone: Arc::<Mailbox>::clone(&mailbox), is_on_air: false };
    gang.tell(Input::Connected { link: gang.next_link(), seat, way }).await.unwrap();
    // The task has not had its turn yet, so that nobody has taken the agent in.
    gang.stop();
    let told = timeout(SOON, mailbox.take()).await;
    assert_eq!(told, Ok(None), "it would wait for a leader that is no more");
}

/// Says nothing of the first record, and takes all others.
#[derive(Default)]
struct Forgetful(AtomicU32);

impl RecordStore for Forgetful {
    fn write<'a>(
        &'a self,
        _: &'a str,
        _: Record,
        _: Expected,
    ) -> Pin<Box<dyn Future<Output = Written> + Send + 'a>> {
        let is_first = self.0.fetch_add(1, Ordering::Relaxed) == 0;
        Box::pin(ready(if is_first { Written::Unsure } else { Written::Yes }))
    }
}

#[tokio::test]
async fn what_is_due_is_done_also_while_more_comes_in_without_a_pause() {
    let gang = lead(Arc::new(Forgetful::default()));
    let mut record = gang.record();
    let talking = async {
        loop {
            gang.pods_known().await;
        }
    };
    let written = async {
        record.wait_for(|record| record.revision > 0).await.unwrap();
    };
    let done = timeout(SOON, async {
        tokio::select! {
            () = talking => {}
            () = written => {}
        }
    });
    assert_eq!(done.await, Ok(()), "the record was never tried again");
}

/// What an agent says that has been told nothing.
fn new_agent(sequence: u64) -> Status {
    Status {
        session: 1,
        sequence,
        fence: 0,
        held: None,
        restarts: Restarts::default(),
        worker: Worker::Idle,
        ago: 0,
        told: Vec::new(),
    }
}

async fn join(gang: &Gang, pod: &str) -> (u64, Arc<Mailbox>) {
    let mailbox = Arc::new(Mailbox::new(None));
    let way = Way { alone: Arc::<Mailbox>::clone(&mailbox), is_on_air: false };
    let (link, seat) = (gang.next_link(), gang.seat(pod).unwrap());
    gang.tell(Input::Connected { link, seat, way }).await.unwrap();
    (link, mailbox)
}

// rule: in-place-restart F40
#[tokio::test]
async fn one_agent_neither_ends_the_gang_nor_uses_up_its_restarts_nor_its_numbers() {
    let gang = lead(Arc::new(Memory::default()));
    for (pod, slot) in [("pod-0", 0), ("pod-1", 1)] {
        gang.pod_seen(pod, slot, 1).await;
    }
    gang.pods_known().await;
    let held = |epoch, duty| Some(Held { rank: Rank { generation: 1, epoch, duty }, by: 1 });
    let lies = [
        Status { fence: u64::MAX, ..new_agent(1) },
        Status { held: held(0, Duty::Finish), ..new_agent(1) },
        Status { held: held(3, Duty::Fail), ..new_agent(1) },
        Status { held: held(u32::MAX, Duty::Hold), ..new_agent(1) },
        Status { restarts: Restarts { total: 4, counted: 4 }, ..new_agent(1) },
    ];
    for lie in lies {
        let (link, mailbox) = join(&gang, "pod-0").await;
        gang.tell(Input::Heard { link, status: lie.clone() }).await.unwrap();
        let told = timeout(SOON, async { while mailbox.take().await.is_some() {} }).await;
        assert!(told.is_ok(), "it was not sent away for {lie:?}");
        gang.tell(Input::Lost { link }).await.unwrap();
        let record = *gang.record().borrow();
        assert_eq!((record.phase, record.epoch, record.fence), (Phase::Forming, 0, 1), "{lie:?}");
        assert_eq!(record.restarts, Restarts::default(), "{lie:?}");
    }
}

// rule: in-place-restart F17
#[tokio::test]
async fn what_an_agent_can_show_is_taken_from_it() {
    let gang = lead(Arc::new(Memory::default()));
    gang.pod_seen("pod-0", 0, 1).await;
    gang.pods_known().await;
    let rank = Rank { generation: 1, epoch: 5, duty: Duty::Run };
    let restarts = Restarts { total: 5, counted: 2 };
    let order = Order { fence: 1, rank, by: 1, restarts, is_rejoining: true };
    let told = vec![Sealer::new(key(), "job").seal(order)];
    let (link, _mailbox) = join(&gang, "pod-0").await;
    let held = Some(Held { rank, by: 1 });
    let status = Status { fence: 1, held, restarts, told, ..new_agent(1) };
    gang.tell(Input::Heard { link, status }).await.unwrap();
    let mut record = gang.record();
    // The other worker is lost, which may have been answered by then.
    let filled = record.wait_for(|record| record.epoch >= 5 && record.restarts.counted >= 2);
    assert!(timeout(SOON, filled).await.is_ok());
}

#[tokio::test]
async fn a_pod_has_one_connection_and_the_latest_is_it() {
    let gang = lead(Arc::new(Memory::default()));
    for (pod, slot) in [("pod-0", 0), ("pod-1", 1)] {
        gang.pod_seen(pod, slot, 1).await;
    }
    let other = join(&gang, "pod-1").await;
    let mut before = join(&gang, "pod-0").await;
    for _ in 0..100 {
        let next = join(&gang, "pod-0").await;
        let is_closed = async { while before.1.take().await.is_some() {} };
        assert!(timeout(SOON, is_closed).await.is_ok(), "an earlier one is left open");
        gang.tell(Input::Lost { link: before.0 }).await.unwrap();
        before = next;
    }
    // One that comes late is not the latest.
    let (late, seat) = (gang.next_link(), gang.seat("pod-0").unwrap());
    let (_, latest) = join(&gang, "pod-0").await;
    let mailbox = Arc::new(Mailbox::new(None));
    let way = Way { alone: Arc::<Mailbox>::clone(&mailbox), is_on_air: false };
    gang.tell(Input::Connected { link: late, seat, way }).await.unwrap();
    let is_closed = async { while mailbox.take().await.is_some() {} };
    assert!(timeout(SOON, is_closed).await.is_ok());
    for open in [&latest, &other.1] {
        let silent = timeout(Duration::from_millis(50), open.take()).await;
        assert!(silent != Ok(None), "it was closed");
    }
}

/// Never answers for the first record, and takes all others.
#[derive(Default)]
struct Silent(AtomicU32);

impl RecordStore for Silent {
    fn write<'a>(
        &'a self,
        _: &'a str,
        _: Record,
        _: Expected,
    ) -> Pin<Box<dyn Future<Output = Written> + Send + 'a>> {
        let is_first = self.0.fetch_add(1, Ordering::Relaxed) == 0;
        if is_first { Box::pin(std::future::pending()) } else { Box::pin(ready(Written::Yes)) }
    }
}

// rule: in-place-restart F15
#[tokio::test(start_paused = true)]
async fn a_store_that_never_answers_is_asked_again() {
    let gang = lead(Arc::new(Silent::default()));
    let mut record = gang.record();
    let written = record.wait_for(|record| record.revision > 0);
    // The machine has another clock, which is not moved on: it is asked often in this time.
    let long = Duration::from_secs(10_000_000);
    assert!(timeout(long, written).await.is_ok(), "the gang waits for ever");
}

/// Does what the agent asks for, and says what it says: how long ago its worker failed grows.
async fn speak(gang: &Gang, link: u64, agent: &mut Agent, ago: &mut u32) {
    let now = Moment::default();
    loop {
        let effects: Vec<AgentEffect> = agent.effects().collect();
        if effects.is_empty() {
            return;
        }
        for effect in effects {
            match effect {
                AgentEffect::Spawn { .. } => agent.spawned(now),
                AgentEffect::Terminate | AgentEffect::Kill => agent.gone(now),
                AgentEffect::Send(report) => {
                    let status = Status { ago: *ago, ..report.into() };
                    if matches!(status.worker, Worker::Failed(..)) {
                        *ago += 2_000_000;
                    }
                    gang.tell(Input::Heard { link, status }).await.unwrap();
                }
                AgentEffect::Exit(code) => panic!("it ends with {code}"),
            }
        }
    }
}

#[tokio::test]
async fn a_failure_that_is_told_again_was_heard_of_when_it_was_told_first() {
    let (tell, mut happenings) = mpsc::unbounded_channel();
    let (terms, store) = (Terms::new(1, 3, Duration::from_secs(60)), Arc::<Memory>::default());
    let gang = Gang::lead(("job", &key()), terms, (1, None), store, tell);
    gang.pod_seen("pod-0", 0, 1).await;
    gang.pods_known().await;
    let (link, mailbox) = join(&gang, "pod-0").await;
    let (now, mut ago) = (Moment::default(), 1500);
    let identity = Identity { slot: 0, pod: 0, session: 1, generation: 0 };
    let mut agent = Agent::new(identity, Duration::from_secs(1), now);
    agent.connected(now);
    let mut orders = 0;
    while happenings.is_empty() {
        speak(&gang, link, &mut agent, &mut ago).await;
        let Ok(frame) = timeout(SOON, mailbox.take()).await else { break };
        let Some(Down::Order(sealed)) = frame.and_then(|frame| parse(&frame)) else { break };
        agent.ordered(&sealed.order, now);
        orders += 1;
        if orders == 2 {
            speak(&gang, link, &mut agent, &mut ago).await;
            agent.exited(Some(Cause::Exited(1)), now);
            // It is there still, and says so.
            agent.connected(now);
        }
        if orders == 4 {
            speak(&gang, link, &mut agent, &mut ago).await;
            let happening = timeout(SOON, happenings.recv()).await.unwrap().unwrap();
            let Happening::Restarted(waterfall) = happening else { panic!("{happening:?}") };
            assert_eq!(waterfall.detected, Duration::from_micros(1500));
            return;
        }
    }
    panic!("it was not restarted: {orders} orders");
}
