//! What is to be said on the bus next. As everywhere, the newer takes the place of the older.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use lockstep_control::plan::restart::Order;
use tokio::sync::Notify;

use super::keys::order_version;
use crate::hub::Carrier;

/// How many strangers may wait for a refusal. Those beyond hear none: they try again anyway.
const REFUSED_MAX: usize = 1024;

/// An order that is to be said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Saying {
    pub(super) version: String,
    pub(super) frame: Bytes,
}

/// All that is to be said at one time.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Batch {
    /// To all.
    pub(super) all: Option<Saying>,
    /// To some, by session.
    pub(super) each: HashMap<u64, Saying>,
    /// To those that are not let in, by session.
    pub(super) refused: HashMap<u64, Bytes>,
    /// Pods whose last words may be removed.
    pub(super) gone: Vec<String>,
}

impl Batch {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What one job has to say.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    state: Mutex<State>,
    notify: Notify,
}

#[derive(Debug, Default)]
struct State {
    batch: Batch,
    /// Connections that are over for the gang.
    closed: Vec<u64>,
    is_over: bool,
}

impl Outbox {
    /// Waits for something to say; `None` when there is nothing any more.
    pub(super) async fn take(&self) -> Option<Batch> {
        loop {
            let notified = self.notify.notified();
            {
                let mut state = self.lock();
                if !state.batch.is_empty() {
                    return Some(std::mem::take(&mut state.batch));
                }
                if state.is_over {
                    return None;
                }
            }
            notified.await;
        }
    }

    /// What could not be said is still to be said, unless there is something newer.
    pub(super) fn put_back(&self, unsaid: Batch) {
        let mut state = self.lock();
        let batch = &mut state.batch;
        batch.all = batch.all.take().or(unsaid.all);
        for (session, saying) in unsaid.each {
            batch.each.entry(session).or_insert(saying);
        }
        self.notify.notify_one();
    }

    pub(super) fn refuse(&self, session: u64, frame: Bytes) {
        let mut state = self.lock();
        if state.batch.refused.len() < REFUSED_MAX {
            state.batch.refused.insert(session, frame);
            self.notify.notify_one();
        }
    }

    pub(super) fn remove(&self, pods: Vec<String>) {
        if !pods.is_empty() {
            self.lock().batch.gone.extend(pods);
            self.notify.notify_one();
        }
    }

    /// The connections that were closed since the last time.
    pub(super) fn closed(&self) -> Vec<u64> {
        std::mem::take(&mut self.lock().closed)
    }

    /// Nothing is to be said any more after what is there.
    pub(super) fn close(&self) {
        self.lock().is_over = true;
        self.notify.notify_one();
    }

    pub(super) fn is_over(&self) -> bool {
        self.lock().is_over
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn saying(order: &Order, frame: &Bytes) -> Saying {
    Saying { version: order_version(order), frame: frame.clone() }
}

/// The way to all agents of a job.
pub(super) struct ToAll(pub(super) Arc<Outbox>);

impl Carrier for ToAll {
    fn carry(&self, order: &Order, frame: &Bytes) {
        self.0.lock().batch.all = Some(saying(order, frame));
        self.0.notify.notify_one();
    }

    fn close(&self) {
        self.0.close();
    }
}

/// The way to one agent.
pub(super) struct ToOne {
    pub(super) outbox: Arc<Outbox>,
    pub(super) session: u64,
    pub(super) link: u64,
}

impl Carrier for ToOne {
    fn carry(&self, order: &Order, frame: &Bytes) {
        self.outbox.lock().batch.each.insert(self.session, saying(order, frame));
        self.outbox.notify.notify_one();
    }

    fn close(&self) {
        self.outbox.lock().closed.push(self.link);
    }
}

#[cfg(test)]
mod tests {
    use lockstep_control::plan::restart::{Duty, Rank, Restarts};

    use super::*;

    fn order(epoch: u32) -> Order {
        let rank = Rank { generation: 1, epoch, duty: Duty::Hold };
        Order { fence: 1, rank, by: 1, restarts: Restarts::default(), is_rejoining: true }
    }

    #[tokio::test]
    async fn only_the_newest_is_said_also_after_a_failure() {
        let outbox = Arc::new(Outbox::default());
        let (all, one) = (
            ToAll(Arc::clone(&outbox)),
            ToOne { outbox: Arc::clone(&outbox), session: 7, link: 1 },
        );
        let frame = |text: &'static str| Bytes::from_static(text.as_bytes());
        all.carry(&order(1), &frame("one"));
        all.carry(&order(2), &frame("two"));
        one.carry(&order(2), &frame("only you"));
        let unsaid = outbox.take().await.unwrap();
        assert_eq!(unsaid.all.as_ref().unwrap().frame, "two");
        all.carry(&order(3), &frame("three"));
        outbox.put_back(unsaid);
        let batch = outbox.take().await.unwrap();
        assert_eq!(batch.all.unwrap().frame, "three");
        assert_eq!(batch.each[&7].frame, "only you");
        all.close();
        assert_eq!(outbox.take().await, None);
    }

    #[test]
    fn a_flood_of_strangers_takes_no_memory() {
        let outbox = Outbox::default();
        (0..10_000).for_each(|session| outbox.refuse(session, Bytes::new()));
        assert_eq!(outbox.lock().batch.refused.len(), REFUSED_MAX);
    }
}
