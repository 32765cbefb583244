//! What one round of a cycle leaves to the next.
//!
//! A round tries the heads of all queues that share, so that nobody takes what another has a claim
//! to. What was found out about a head is true until somebody is admitted or has to give way there.
//! It is kept meanwhile: many that do not fit in one queue do not make those be looked at as often
//! that wait in others.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use crate::plan::{
    Key,
    queue::{
        amount::Amounts,
        pending::{Pending, Rank},
    },
};

use super::round::Nominee;

/// What the rounds of a cycle have found out so far.
#[derive(Default)]
pub(super) struct Sweep {
    /// What those keep from others who wait and may not be overtaken, by queue.
    claims: BTreeMap<Arc<str>, Claim>,
    /// Those that lost to others and are tried again, by queue.
    losers: BTreeMap<Arc<str>, Nominee>,
}

/// What somebody keeps from others while it waits.
#[derive(Default)]
pub(super) struct Claim {
    order: Option<Order>,
    /// What it takes, and what is given back to it, by queue.
    pub tried: Vec<(Arc<str>, Amounts)>,
    /// Those that give way to it.
    pub victims: Vec<Key>,
}

/// The order of turns. Those that others gave way to come first: what these have left is theirs.
/// If another could take it, as one that gave way may be, somebody would have to give way again,
/// and so on for ever. Who borrows comes later.
type Order = (Reverse<bool>, bool, Arc<Rank>);

/// Somebody who takes part in a round.
pub(super) enum Entrant {
    /// One that is tried.
    Tried(Nominee),
    /// One that waits in a queue, as it did in the round before.
    Waits(Arc<str>, Claim),
}

impl Claim {
    pub(super) fn new(nominee: &Nominee) -> Self {
        Self { order: Some(order(nominee)), ..Self::default() }
    }
}

impl Entrant {
    pub(super) fn order(&self) -> Option<Order> {
        match self {
            Self::Tried(nominee) => Some(order(nominee)),
            Self::Waits(_, claim) => claim.order.clone(),
        }
    }
}

fn order(nominee: &Nominee) -> Order {
    (Reverse(nominee.is_preemptor), nominee.assignment.borrows, Arc::clone(&nominee.rank))
}

impl Sweep {
    /// What is known of the head of a queue.
    pub(super) fn take(&mut self, queue: &Arc<str>, pending: Option<&Pending>) -> Option<Entrant> {
        let pending = pending?;
        if pending.block().is_some() {
            let claim = self.claims.remove(queue)?;
            return Some(Entrant::Waits(Arc::clone(queue), claim));
        }
        let loser = self.losers.remove(queue)?;
        (pending.head() == Some(&loser.rank)).then_some(Entrant::Tried(loser))
    }

    /// Notes what became of a nominee, where `pending` is its queue as it is now.
    pub(super) fn keep(&mut self, nominee: Nominee, claim: Claim, pending: Option<&Pending>) {
        let Some(pending) = pending else { return };
        if pending.block().is_some() {
            self.keep_claim(Arc::clone(&nominee.queue), claim);
        } else if pending.head() == Some(&nominee.rank) {
            self.losers.insert(Arc::clone(&nominee.queue), nominee);
        }
    }

    pub(super) fn keep_claim(&mut self, queue: Arc<str>, claim: Claim) {
        self.claims.insert(queue, claim);
    }

    /// Something has moved for these queues.
    pub(super) fn forget(&mut self, mut has_moved: impl FnMut(&Arc<str>) -> bool) {
        self.claims.retain(|queue, _| !has_moved(queue));
        self.losers.retain(|queue, _| !has_moved(queue));
    }
}
