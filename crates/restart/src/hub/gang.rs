//! One gang: its orchestrator, and the task that does what the orchestrator asks for.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use lockstep_control::plan::restart::{
    Effect, Expected, Moment, Orchestrator, Reason, Record, Report, Terms, Waterfall,
};
use tokio::sync::{mpsc, watch};

use super::mailbox::Mailbox;
use super::roster::{Roster, Seat};
use super::store::{RecordStore, Written};
use crate::wire::{Down, Status, frame};

/// What happens to a gang.
pub(super) enum Input {
    Connected { link: u64, seat: Seat, mailbox: Arc<Mailbox> },
    Heard { link: u64, status: Status },
    Lost { link: u64 },
    PodSeen(Seat),
    PodEnding(Seat),
    PodGone { seat: Seat, is_done: bool },
    PodsKnown,
    Suspended(bool),
    Regenerated { generation: u32, is_counted: bool },
    Amended(Box<Terms>),
    Stored { version: (u64, u64), written: Written },
    Stop,
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

/// How much may wait for a gang before those who bring more have to wait too.
const INBOX: usize = 4096;
/// How much of it is looked at before anything is sent.
const BATCH: usize = 512;

/// A gang that is led here. The task that leads it ends with the last of these.
#[derive(Clone)]
pub struct Gang {
    inbox: mpsc::Sender<Input>,
    roster: Arc<Roster>,
    record: watch::Receiver<Record>,
}

impl Gang {
    /// Leads a job under `fence`, from what is stored of it. What it asks for is sent to
    /// `happenings`.
    pub fn lead(
        job: &str,
        terms: Terms,
        (fence, stored): (u64, Option<Record>),
        store: Arc<dyn RecordStore>,
        happenings: mpsc::UnboundedSender<Happening>,
    ) -> Self {
        let (inbox, inputs) = mpsc::channel(INBOX);
        let roster = Arc::new(Roster::default());
        let machine = Orchestrator::lead(terms, fence, stored);
        let (told, record) = watch::channel(*machine.record());
        let task = Task {
            job: job.to_owned(),
            machine,
            start: Instant::now(),
            links: HashMap::new(),
            roster: Arc::clone(&roster),
            store,
            happenings,
            told,
            inbox: inbox.downgrade(),
        };
        tokio::spawn(task.run(inputs));
        Self { inbox, roster, record }
    }

    /// The last record that was written.
    pub fn record(&self) -> watch::Receiver<Record> {
        self.record.clone()
    }

    /// The place that a pod fills.
    pub(super) fn seat(&self, uid: &str) -> Option<Seat> {
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

    /// Leads no more: all agents are let go, to look for whoever does.
    pub async fn stop(&self) {
        self.send(Input::Stop).await;
    }

    pub(super) async fn send(&self, input: Input) {
        // A gang that is not led any more has no use for it.
        let _ = self.inbox.send(input).await;
    }
}

struct Task {
    job: String,
    machine: Orchestrator,
    start: Instant,
    links: HashMap<u64, (Seat, Arc<Mailbox>)>,
    roster: Arc<Roster>,
    store: Arc<dyn RecordStore>,
    happenings: mpsc::UnboundedSender<Happening>,
    told: watch::Sender<Record>,
    /// For what comes back from the store; it does not keep the task alive.
    inbox: mpsc::WeakSender<Input>,
}

impl Task {
    async fn run(mut self, mut inputs: mpsc::Receiver<Input>) {
        let mut batch = Vec::with_capacity(BATCH);
        self.carry_out();
        loop {
            let now = self.now();
            let wait = self.machine.deadline().map(|at| at.since(now));
            let received = async {
                match wait {
                    None => Some(inputs.recv_many(&mut batch, BATCH).await),
                    Some(wait) => {
                        let next = inputs.recv_many(&mut batch, BATCH);
                        tokio::time::timeout(wait, next).await.ok()
                    }
                }
            };
            match received.await {
                Some(0) => break,
                Some(_) => {}
                None => {
                    let now = self.now();
                    self.machine.tick(now);
                }
            }
            let mut is_stopped = false;
            for input in batch.drain(..) {
                is_stopped |= matches!(input, Input::Stop);
                self.take(input);
            }
            self.carry_out();
            if is_stopped {
                break;
            }
        }
        self.links.values().for_each(|(_, mailbox)| mailbox.close());
    }

    fn now(&self) -> Moment {
        Moment::after(self.start.elapsed())
    }

    fn take(&mut self, input: Input) {
        let now = self.now();
        match input {
            Input::Connected { link, seat, mailbox } => {
                self.links.insert(link, (seat, mailbox));
            }
            Input::Heard { link, status } => {
                let Some((seat, _)) = self.links.get(&link) else { return };
                self.machine.heard(link, &report(*seat, status), now);
            }
            Input::Lost { link } => {
                if let Some((seat, _)) = self.links.remove(&link) {
                    self.machine.lost(seat.slot, link, now);
                }
            }
            Input::PodSeen(seat) => self.machine.pod_seen(seat.slot, seat.pod, now),
            Input::PodEnding(seat) => self.machine.pod_ending(seat.slot, seat.pod, now),
            Input::PodGone { seat, is_done } => {
                self.machine.pod_gone(seat.slot, seat.pod, is_done, now);
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
            Input::Stop => {}
        }
    }

    fn carry_out(&mut self) {
        let effects: Vec<Effect> = self.machine.effects().collect();
        for effect in effects {
            match effect {
                Effect::Commit(record, expected) => self.write(record, expected),
                Effect::Broadcast(order) => {
                    let frame = frame(&Down::Order(order));
                    for (_, mailbox) in self.links.values() {
                        mailbox.put(frame.clone());
                    }
                }
                Effect::Tell(link, order) => self.tell(link, frame(&Down::Order(order))),
                Effect::Close(link) => {
                    if let Some((_, mailbox)) = self.links.get(&link) {
                        mailbox.close();
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
                Effect::Restarted(waterfall) => self.happens(Happening::Restarted(waterfall)),
                Effect::StepDown(fence) => {
                    self.links.values().for_each(|(_, mailbox)| mailbox.close());
                    self.happens(Happening::SteppedDown(fence));
                }
            }
        }
        self.told.send_if_modified(|told| {
            let record = *self.machine.record();
            std::mem::replace(told, record) != record
        });
    }

    fn tell(&self, link: u64, frame: Bytes) {
        if let Some((_, mailbox)) = self.links.get(&link) {
            mailbox.put(frame);
        }
    }

    fn happens(&self, happening: Happening) {
        // Nobody may be interested any more.
        let _ = self.happenings.send(happening);
    }

    fn write(&self, record: Record, expected: Expected) {
        let (store, job) = (Arc::clone(&self.store), self.job.clone());
        let inbox = self.inbox.clone();
        tokio::spawn(async move {
            let written = store.write(&job, record, expected).await;
            if let Some(inbox) = inbox.upgrade() {
                let _ = inbox.send(Input::Stored { version: record.version(), written }).await;
            }
        });
    }
}

fn report(seat: Seat, status: Status) -> Report {
    let Seat { slot, pod, generation } = seat;
    let Status { session, sequence, fence, held, restarts, worker } = status;
    Report { slot, pod, session, sequence, generation, fence, held, restarts, worker }
}
