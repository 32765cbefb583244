//! What shows that an order was given by somebody who leads.
//!
//! The agents are the backup of the record: a leader whose record is behind, or gone, takes from
//! them what it does not know. A worker shares its container with its agent, and can speak for it.
//! So nothing is taken from an agent that goes beyond the record unless it shows the order it has
//! that from, with the seal of the key that tickets are made with too. What an agent says of its
//! own worker needs no seal: that is its own to say.

use lockstep_control::plan::restart::{Duty, Held, Order, Rank, Record};
use serde::{Deserialize, Serialize};

use crate::ticket::Key;
use crate::wire::Status;

/// How much of a tag is sent with each order.
pub(crate) const SEAL: usize = 16;

/// An order, with what shows that somebody who leads has given it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    /// The order.
    pub order: Order,
    seal: [u8; SEAL],
}

/// What seals the orders of one job, and knows its seals.
#[derive(Clone)]
pub struct Sealer {
    key: Key,
    job: String,
}

impl Sealer {
    /// For this job.
    pub fn new(key: Key, job: &str) -> Self {
        Self { key, job: job.to_owned() }
    }

    /// Seals an order.
    pub fn seal(&self, order: Order) -> Sealed {
        let seal = self.key.tag(&self.job, &said(&order));
        Sealed { order, seal }
    }

    fn is_good(&self, sealed: &Sealed) -> bool {
        let tag = self.key.tag(&self.job, &said(&sealed.order));
        // Every byte is looked at: how long it takes says nothing.
        tag.iter().zip(&sealed.seal).fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
    }

    /// Whether an agent can show all that it says beyond this record.
    pub(crate) fn bears_out(&self, status: &Status, record: &Record) -> bool {
        let is_known = status.fence <= record.fence
            && status.held.is_none_or(|held| !is_beyond(&held, record))
            && status.restarts.max(record.restarts) == record.restarts;
        if is_known {
            return true;
        }
        let shown = status.told.iter().take(Told::MAX).filter(|told| self.is_good(told));
        let shown: Vec<Order> = shown.map(|told| told.order).collect();
        let most = shown.iter().fold(record.restarts, |most, order| most.max(order.restarts));
        let fence = shown.iter().map(|order| order.fence).max();
        status.fence <= fence.unwrap_or(0).max(record.fence)
            && status.restarts.max(most) == most
            && status.held.is_none_or(|held| {
                !is_beyond(&held, record) || shown.iter().any(|order| leads_to(order, &held))
            })
    }
}

fn said(order: &Order) -> Vec<u8> {
    postcard::to_allocvec(order).expect("an order is plain data")
}

/// What was told to one alone says nothing of the gang.
fn is_beyond(held: &Held, record: &Record) -> bool {
    !held.rank.duty.is_personal() && held.rank > record.rank()
}

/// Whether an agent that was given this order may hold that.
fn leads_to(order: &Order, held: &Held) -> bool {
    let is_it = (order.rank, order.by) == (held.rank, held.by);
    // One that was not waited for waits instead.
    let waits = Rank { duty: Duty::Hold, ..order.rank };
    is_it || (order.rank.duty == Duty::Run && held.rank == waits)
}

/// What an agent keeps of its orders to show it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Told {
    /// Of the latest leader.
    latest: Option<Sealed>,
    /// The furthest along.
    furthest: Option<Sealed>,
}

impl Told {
    const MAX: usize = 2;

    /// An order has come. Those of an earlier leader than was heard are not taken.
    pub fn take(&mut self, sealed: &Sealed) {
        let order = &sealed.order;
        if self.latest.is_some_and(|latest| order.fence < latest.order.fence) {
            return;
        }
        self.latest = Some(*sealed);
        let far = |order: &Order| (order.rank, order.restarts.total, order.restarts.counted);
        let is_further = self.furthest.is_none_or(|it| far(order) >= far(&it.order));
        if is_further && !order.rank.duty.is_personal() {
            self.furthest = Some(*sealed);
        }
    }

    /// What there is to show.
    pub fn shown(&self) -> Vec<Sealed> {
        let mut shown: Vec<Sealed> = self.latest.into_iter().chain(self.furthest).collect();
        shown.dedup();
        shown
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lockstep_control::plan::restart::{Restarts, Terms, Worker};

    use super::*;

    fn sealer(job: &str) -> Sealer {
        Sealer::new(Key::new(&[7; 32]), job)
    }

    fn order(fence: u64, epoch: u32, duty: Duty) -> Order {
        let rank = Rank { generation: 1, epoch, duty };
        let restarts = Restarts { total: epoch, counted: epoch };
        Order { fence, rank, by: fence, restarts, is_rejoining: true }
    }

    /// What an agent says that was told this.
    fn says(orders: &[Sealed]) -> Status {
        let mut told = Told::default();
        orders.iter().for_each(|sealed| told.take(sealed));
        let last = orders.last().map(|sealed| sealed.order);
        let furthest = told.furthest.map(|sealed| sealed.order);
        Status {
            session: 1,
            sequence: 1,
            fence: last.map_or(0, |order| order.fence),
            held: furthest.map(|order| Held { rank: order.rank, by: order.by }),
            restarts: furthest.map(|order| order.restarts).unwrap_or_default(),
            worker: Worker::Idle,
            ago: 0,
            told: told.shown(),
        }
    }

    #[test]
    fn what_goes_beyond_the_record_is_believed_with_a_seal_and_not_without() {
        let sealer = sealer("job");
        let record = Record::new(5, &Terms::new(2, 3, Duration::from_secs(60)));
        let ahead = says(&[sealer.seal(order(3, 7, Duty::Run))]);
        let both =
            says(&[sealer.seal(order(3, 7, Duty::Run)), sealer.seal(order(9, 2, Duty::Hold))]);
        let own = says(&[sealer.seal(order(5, 0, Duty::Hold))]);
        for status in [&ahead, &both, &own] {
            assert!(sealer.bears_out(status, &record), "{status:?}");
        }
        let waits = Held { rank: Rank { duty: Duty::Hold, ..order(3, 7, Duty::Run).rank }, by: 0 };
        assert!(sealer.bears_out(&Status { held: Some(waits), ..ahead.clone() }, &record));

        let rank = |epoch, duty| Rank { generation: 1, epoch, duty };
        let held = |rank| Some(Held { rank, by: 3 });
        let lies = [
            Status { told: Vec::new(), ..ahead.clone() },
            Status { told: Vec::new(), held: None, ..ahead.clone() },
            Status { fence: u64::MAX, ..ahead.clone() },
            Status { restarts: Restarts { total: 8, counted: 7 }, ..ahead.clone() },
            Status { restarts: Restarts { total: 7, counted: u32::MAX }, ..ahead.clone() },
            Status { held: held(rank(u32::MAX, Duty::Hold)), ..ahead.clone() },
            Status { held: held(rank(7, Duty::Finish)), ..ahead.clone() },
            Status { held: held(rank(7, Duty::Fail)), ..ahead.clone() },
            Status { held: Some(Held { by: 4, ..ahead.held.unwrap() }), ..ahead.clone() },
            says(&[self::sealer("another job").seal(order(3, 7, Duty::Run))]),
            says(&[Sealer::new(Key::new(&[8; 32]), "job").seal(order(3, 7, Duty::Run))]),
        ];
        for lie in lies {
            assert!(!sealer.bears_out(&lie, &record), "{lie:?}");
        }
    }

    #[test]
    fn what_an_agent_was_told_alone_is_not_shown_for_the_gang() {
        let sealer = sealer("job");
        let mut told = Told::default();
        told.take(&sealer.seal(order(3, 7, Duty::Run)));
        told.take(&sealer.seal(order(4, 7, Duty::Retire)));
        told.take(&sealer.seal(order(2, 9, Duty::Run)));
        let shown: Vec<u64> = told.shown().iter().map(|sealed| sealed.order.fence).collect();
        assert_eq!(shown, [4, 3], "the latest leader, and the furthest along");
    }
}
