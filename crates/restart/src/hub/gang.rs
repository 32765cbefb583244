//! One gang: its orchestrator, and the task that does what the orchestrator asks for.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use lockstep_control::plan::restart::{
    Cause, Effect, Expected, Moment, Orchestrator, Order, Reason, Record, Report, Terms, Waiting,
    Waterfall, Worker, Workers,
};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;

use super::mailbox::Carrier;
use super::roster::{Roster, Seat};
use super::store::{RecordStore, Written};
use crate::seal::Sealer;
use crate::ticket::Key;
use crate::wire::{Down, Status, frame};

/// What happens to a gang.
pub(crate) enum Input {
    Connected { link: u64, seat: Seat, way: Way },
    OnAir(Arc<dyn Carrier>),
    Heard { link: u64, status: Status },
    Lost { link: u64 },
    PodSeen(Seat),
    PodEnding(Seat),
    PodExcused { seat: Seat, is_excused: bool },
    PodGone { seat: Seat, is_done: bool },
    PodsKnown,
    Suspended(bool),
    Regenerated { generation: u32, is_counted: bool },
    Amended(Box<Terms>),
    Stored { version: (u64, u64), written: Written },
    Describe(oneshot::Sender<Description>),
}

/// How an agent is reached.
pub(crate) struct Way {
    /// What carries an order to it alone.
    pub(crate) alone: Arc<dyn Carrier>,
    /// Whether it hears by itself what goes to all, from what was given with [`Input::OnAir`].
    pub(crate) is_on_air: bool,
}

/// What the outside has to do for a gang, or may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// Delete these pods, by uid, so that their Jobs replace them.
    Replace(Vec<String>),
    /// Delete everything of earlier generations than this.
    Recreate {
        /// The generation to make.
        generation: u32,
    },
    /// The job has failed.
    Failed(Reason),
    /// A restart is complete.
    Restarted(Waterfall),
    /// Somebody with this fence leads.
    SteppedDown(u64),
}

/// What a gang is doing, for people.
#[derive(Clone, Debug)]
pub struct Description {
    /// Why it does not move, if so.
    pub waiting: Option<Waiting>,
    /// What its workers do.
    pub workers: Vec<Workers>,
    /// The worker that failed last, and how.
    pub last_failure: Option<(u32, Cause)>,
}

/// How much may wait for a gang before those who bring more have to wait too.
/// All of a large gang answer at once.
const INBOX: usize = 32 * 1024;
/// How much of it is looked at before anything is sent.
const BATCH: usize = 512;
/// How long a record may take to be written before that counts as not known, and is tried again. A
/// store that never answers would hold up a gang for ever, and nothing would say so.
const WRITE_WITHIN: Duration = Duration::from_secs(10);

/// A gang that is led here. The task that leads it ends when it is told to, or with the last of
/// these: each connection has one.
#[derive(Clone)]
pub struct Gang {
    inbox: mpsc::Sender<Input>,
    roster: Arc<Roster>,
    sealer: Arc<Sealer>,
    record: watch::Receiver<Record>,
    links: Arc<AtomicU64>,
    task: AbortHandle,
}

impl Gang {
    /// Leads a job under `fence`, from what is stored of it. What it asks for is sent to
    /// `happenings`. Its orders are sealed with `key`, which is that of the tickets of its agents.
    pub fn lead(
        (job, key): (&str, &Key),
        terms: Terms,
        (fence, stored): (u64, Option<Record>),
        store: Arc<dyn RecordStore>,
        happenings: mpsc::UnboundedSender<Happening>,
    ) -> Self {
        let (inbox, inputs) = mpsc::channel(INBOX);
        let roster = Arc::new(Roster::default());
        let machine = Orchestrator::lead(terms, fence, stored);
        let (told, record) = watch::channel(*machine.record());
        let sealer = Arc::new(Sealer::new(key.clone(), job));
        let task = Task {
            job: job.to_owned(),
            machine,
            start: Instant::now(),
            links: HashMap::new(),
            latest: HashMap::new(),
            air: None,
            roster: Arc::clone(&roster),
            sealer: Arc::clone(&sealer),
            store,
            happenings,
            told,
            detected: HashMap::new(),
            inbox: inbox.downgrade(),
            inputs,
        };
        let task = tokio::spawn(task.run()).abort_handle();
        Self { inbox, roster, sealer, record, links: Arc::default(), task }
    }

    /// The last record that was written.
    pub fn record(&self) -> watch::Receiver<Record> {
        self.record.clone()
    }

    /// The place that a pod fills.
    pub(crate) fn seat(&self, uid: &str) -> Option<Seat> {
        self.roster.seat(uid)
    }

    /// There is such a pod. Pods must be told of in the order in which they were made.
    pub async fn pod_seen(&self, uid: &str, slot: u32, generation: u32) {
        let seat = self.roster.add(uid, slot, generation);
        self.send(Input::PodSeen(seat)).await;
    }

    /// A pod is being deleted.
    pub async fn pod_ending(&self, uid: &str) {
        if let Some(seat) = self.roster.seat(uid) {
            self.send(Input::PodEnding(seat)).await;
        }
    }

    /// Whether the Job of a pod would not count its end. To be told before it ends.
    pub async fn pod_excused(&self, uid: &str, is_excused: bool) {
        if let Some(seat) = self.roster.seat(uid) {
            self.send(Input::PodExcused { seat, is_excused }).await;
        }
    }

    /// A pod has ended, or vanished; `is_done` if it has completed.
    pub async fn pod_gone(&self, uid: &str, is_done: bool) {
        if let Some(seat) = self.roster.remove(uid) {
            self.send(Input::PodGone { seat, is_done }).await;
        }
    }

    /// Every pod there is has been told of.
    pub async fn pods_known(&self) {
        self.send(Input::PodsKnown).await;
    }

    /// The job was suspended or resumed; to be told before anything is done about it.
    pub async fn suspended(&self, is_suspended: bool) {
        self.send(Input::Suspended(is_suspended)).await;
    }

    /// The job makes all its pods anew for its own reasons; to be told before it does.
    pub async fn regenerated(&self, generation: u32, is_counted: bool) {
        self.send(Input::Regenerated { generation, is_counted }).await;
    }

    /// The job has other terms.
    pub async fn amended(&self, terms: Terms) {
        self.send(Input::Amended(Box::new(terms))).await;
    }

    /// What it is doing; nothing if it is not led any more.
    pub async fn describe(&self) -> Option<Description> {
        let (answer, answered) = oneshot::channel();
        self.send(Input::Describe(answer)).await;
        answered.await.ok()
    }

    /// Leads no more, whatever was still to be decided: all agents are let go, to look for whoever
    /// does. What was decided is still told to those who are there.
    pub fn stop(&self) {
        self.task.abort();
    }

    /// Whether this is the same gang under the same leader.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.roster, &other.roster)
    }

    /// An order as agents get it.
    pub(crate) fn frame(&self, order: Order) -> Bytes {
        frame(&Down::Order(self.sealer.seal(order)))
    }

    /// The number of a connection that is made now.
    pub(crate) fn next_link(&self) -> u64 {
        self.links.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Passes all of this on. What is left of it when this is given up is still there.
    pub(crate) async fn pass_on(&self, inputs: &mut VecDeque<Input>) {
        while !inputs.is_empty() {
            let Ok(place) = self.inbox.reserve().await else { return inputs.clear() };
            if let Some(input) = inputs.pop_front() {
                place.send(input);
            }
        }
    }

    /// Tells the task that leads. It fails when nobody leads any more.
    pub(crate) async fn tell(&self, input: Input) -> io::Result<()> {
        self.inbox.send(input).await.map_err(|_| io::ErrorKind::NotConnected.into())
    }

    pub(crate) async fn send(&self, input: Input) {
        // A gang that is not led any more has no use for it.
        let _ = self.tell(input).await;
    }
}

struct Task {
    job: String,
    machine: Orchestrator,
    start: Instant,
    links: HashMap<u64, (Seat, Way)>,
    /// The latest connection of each pod. An agent has one: it makes another when that is lost, and
    /// may know it long before this end does.
    latest: HashMap<u64, u64>,
    /// What carries an order to all that listen there.
    air: Option<Arc<dyn Carrier>>,
    roster: Arc<Roster>,
    sealer: Arc<Sealer>,
    store: Arc<dyn RecordStore>,
    happenings: mpsc::UnboundedSender<Happening>,
    told: watch::Sender<Record>,
    /// The epoch in which each worker that failed did so last, and how long it took until that was
    /// heard of.
    detected: HashMap<u32, (u32, Duration)>,
    /// For what comes back from the store; it does not keep the task alive.
    inbox: mpsc::WeakSender<Input>,
    inputs: mpsc::Receiver<Input>,
}

impl Task {
    async fn run(mut self) {
        let mut batch = Vec::with_capacity(BATCH);
        self.carry_out();
        loop {
            let now = self.now();
            let wait = self.machine.deadline().map(|at| at.since(now));
            let next = self.inputs.recv_many(&mut batch, BATCH);
            let received = match wait {
                None => Some(next.await),
                Some(wait) => tokio::time::timeout(wait, next).await.ok(),
            };
            if received == Some(0) {
                break;
            }
            for input in batch.drain(..) {
                self.take(input);
            }
            // Also while more comes in without a pause, as from thousands that wait.
            let now = self.now();
            if self.machine.deadline().is_some_and(|at| at <= now) {
                self.machine.tick(now);
            }
            self.carry_out();
        }
    }

    fn close_all(&self) {
        self.links.values().for_each(|(_, way)| way.alone.close());
        if let Some(air) = &self.air {
            air.close();
        }
    }

    fn now(&self) -> Moment {
        Moment::after(self.start.elapsed())
    }

    fn take(&mut self, input: Input) {
        let now = self.now();
        match input {
            Input::Connected { link, seat, way } => self.connected(link, seat, way),
            Input::OnAir(air) => self.air = Some(air),
            Input::Heard { link, status } => {
                let Some((seat, way)) = self.links.get(&link) else { return };
                if !self.sealer.bears_out(&status, self.machine.record()) {
                    let Seat { slot, .. } = seat;
                    tracing::warn!(job = self.job, slot, "an agent says what nobody has ordered");
                    way.alone.close();
                    return;
                }
                if let Worker::Failed(epoch, _) = status.worker {
                    let ago = Duration::from_micros(status.ago.into());
                    let heard = self.detected.entry(seat.slot).or_insert((epoch, ago));
                    // What is said again was heard of long before.
                    if heard.0 != epoch {
                        *heard = (epoch, ago);
                    }
                }
                self.machine.heard(link, &report(*seat, status), now);
            }
            Input::Lost { link } => {
                if let Some((seat, _)) = self.links.remove(&link) {
                    if self.latest.get(&seat.pod) == Some(&link) {
                        self.latest.remove(&seat.pod);
                    }
                    self.machine.lost(seat.slot, link, now);
                }
            }
            Input::PodSeen(seat) => self.machine.pod_seen(seat.slot, seat.pod, now),
            Input::PodEnding(seat) => self.machine.pod_ending(seat.slot, seat.pod, now),
            Input::PodExcused { seat, is_excused } => {
                self.machine.pod_excused(seat.slot, seat.pod, is_excused);
            }
            Input::PodGone { seat, is_done } => {
                let completed = is_done.then_some(seat.generation);
                self.machine.pod_gone(seat.slot, seat.pod, completed, now);
            }
            Input::PodsKnown => self.machine.pods_known(now),
            Input::Suspended(is_suspended) => self.machine.suspended(is_suspended, now),
            Input::Regenerated { generation, is_counted } => {
                self.machine.regenerated(generation, is_counted, now);
            }
            Input::Amended(terms) => self.machine.amended(*terms, now),
            Input::Stored { version, written } => match written {
                Written::Yes => self.machine.committed(version, now),
                Written::Unsure => self.machine.not_committed(version, now),
                Written::Refused(fence) => self.machine.refused(fence),
            },
            Input::Describe(answer) => {
                let _ = answer.send(Description {
                    waiting: self.machine.waiting(),
                    workers: self.machine.workers(),
                    last_failure: self.machine.last_failure().cloned(),
                });
            }
        }
    }

    /// Takes a connection in, in place of the one that its pod had.
    fn connected(&mut self, link: u64, seat: Seat, way: Way) {
        let before = self.latest.get(&seat.pod).copied().unwrap_or(0);
        self.latest.insert(seat.pod, link.max(before));
        self.links.insert(link, (seat, way));
        if let Some((_, way)) = self.links.get(&link.min(before)) {
            way.alone.close();
        }
    }

    fn carry_out(&mut self) {
        let effects: Vec<Effect> = self.machine.effects().collect();
        for effect in effects {
            match effect {
                Effect::Commit(record, expected) => self.write(record, expected),
                Effect::Broadcast(order) => self.broadcast(&order),
                Effect::Tell(link, order) => {
                    if let Some((_, way)) = self.links.get(&link) {
                        way.alone.carry(&order, &self.frame(&order));
                    }
                }
                Effect::Close(link) => {
                    if let Some((_, way)) = self.links.get(&link) {
                        way.alone.close();
                    }
                }
                Effect::Replace(pods) => {
                    let pods = pods.into_iter().map(|(_, pod)| pod).collect();
                    self.happens(Happening::Replace(self.roster.uids(&pods)));
                }
                Effect::Recreate { generation } => {
                    self.happens(Happening::Recreate { generation });
                }
                Effect::Fail(reason) => self.happens(Happening::Failed(reason)),
                Effect::Restarted(mut waterfall) => {
                    let heard = self.detected.remove(&waterfall.slot);
                    let heard = heard.filter(|(epoch, _)| epoch + 1 == waterfall.epoch);
                    waterfall.detected = heard.map(|(_, ago)| ago).unwrap_or_default();
                    self.detected.clear();
                    self.happens(Happening::Restarted(waterfall));
                }
                Effect::StepDown(fence) => {
                    self.close_all();
                    self.happens(Happening::SteppedDown(fence));
                }
            }
        }
        self.told.send_if_modified(|told| {
            let record = *self.machine.record();
            std::mem::replace(told, record) != record
        });
    }

    fn broadcast(&self, order: &Order) {
        let frame = self.frame(order);
        for (_, way) in self.links.values().filter(|(_, way)| !way.is_on_air) {
            way.alone.carry(order, &frame);
        }
        if let Some(air) = &self.air {
            air.carry(order, &frame);
        }
    }

    fn frame(&self, order: &Order) -> Bytes {
        frame(&Down::Order(self.sealer.seal(*order)))
    }

    fn happens(&self, happening: Happening) {
        // Nobody may be interested any more.
        let _ = self.happenings.send(happening);
    }

    fn write(&self, record: Record, expected: Expected) {
        let (store, job) = (Arc::clone(&self.store), self.job.clone());
        let inbox = self.inbox.clone();
        tokio::spawn(async move {
            let writing = store.write(&job, record, expected);
            let written = tokio::time::timeout(WRITE_WITHIN, writing).await.unwrap_or_else(|_| {
                tracing::warn!(job, "the restart record is not written in time, trying again");
                Written::Unsure
            });
            if let Some(inbox) = inbox.upgrade() {
                let _ = inbox.send(Input::Stored { version: record.version(), written }).await;
            }
        });
    }
}

/// However it ends, nobody is left waiting for it.
impl Drop for Task {
    fn drop(&mut self) {
        // Nor those who have just come.
        self.inputs.close();
        while let Ok(input) = self.inputs.try_recv() {
            if let Input::Connected { way, .. } = input {
                way.alone.close();
            }
        }
        self.close_all();
    }
}

fn report(seat: Seat, status: Status) -> Report {
    let Seat { slot, pod, generation } = seat;
    let Status { session, sequence, fence, held, restarts, worker, ago: _, told: _ } = status;
    Report { slot, pod, session, sequence, generation, fence, held, restarts, worker }
}
