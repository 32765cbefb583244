//! What all actors share: the API server, the clock, what is still to come, and the trace.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::{
    api::{Api, Kind},
    node::Act,
    trace::Trace,
    user,
};

/// One thing that is going to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A pod gets on with its life.
    Pod {
        /// The uid of the pod.
        uid: Box<str>,
        /// What happens to it.
        act: Act,
    },
    /// A user does something.
    User(user::Act),
    /// The garbage collector looks at one object.
    Collect,
    /// A watch of a controller brings news.
    Deliver {
        /// Which controller.
        controller: usize,
        /// Of what.
        kind: Kind,
    },
    /// A controller begins what is due, or goes on with what it has begun.
    Work {
        /// Which controller.
        controller: usize,
    },
    /// A controller that was followed by another stops at last.
    Abdicate {
        /// Which controller.
        controller: usize,
    },
    /// Faults end.
    Heal,
}

/// The API server, the clock and the agenda.
#[derive(Debug)]
pub struct Cluster {
    /// The API server.
    pub api: Api,
    /// What happened, for people.
    pub trace: Trace,
    now: Timestamp,
    agenda: BTreeMap<(Timestamp, u64), Happening>,
    planned: u64,
}

impl Cluster {
    /// An empty cluster at `now`.
    pub fn new(now: Timestamp, trace: Trace) -> Self {
        Self { api: Api::new(now), trace, now, agenda: BTreeMap::new(), planned: 0 }
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Plans something for later. What is planned for the same moment happens in the order of
    /// planning.
    pub fn after(&mut self, delay: SignedDuration, happening: Happening) {
        self.at(self.now + delay, happening);
    }

    /// Plans something for a moment; one that has passed counts as now.
    pub fn at(&mut self, at: Timestamp, happening: Happening) {
        self.planned += 1;
        self.agenda.insert((at.max(self.now), self.planned), happening);
    }

    /// Goes on to the next thing planned.
    pub fn advance(&mut self) -> Option<Happening> {
        let ((at, _), happening) = self.agenda.pop_first()?;
        self.now = self.now.max(at);
        self.api.set_now(self.now);
        Some(happening)
    }

    /// Time passes, and everything planned for meanwhile is late.
    pub fn jump(&mut self, by: SignedDuration) {
        self.now += by;
    }

    /// Notes what happened.
    pub fn say(&mut self, actor: &'static str, what: impl FnOnce() -> String) {
        self.trace.say(self.now, actor, what);
    }
}
