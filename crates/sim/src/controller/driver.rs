//! What one sort of controller has that the others have not: what it drives, and its requests.

use std::{fmt, sync::Arc};

use jiff::Timestamp;
use lockstep_api::Status;
use lockstep_control::plan::{Key, Refusal};
use lockstep_store::Object;

use crate::{
    api::{Api, Kind},
    check::{Checker, Violation},
    watch::News,
};

/// What the API says to a request: what it has written, if it has written anything.
pub(crate) type Answer = Result<Option<Arc<Object>>, Status>;

/// A driver of plans, as a controller needs it.
pub(crate) trait Driver {
    /// What the controller is called in the story.
    const ACTOR: &'static str;
    /// What it watches. The order is that in which delays of news are drawn.
    const KINDS: &'static [Kind];
    /// What is to be done about one object.
    type Plan;
    /// Why nothing is.
    type Waiting: fmt::Display;
    /// What a controller sends to carry out a plan.
    type Call: Call;

    /// Takes in what is new of one kind.
    fn hear(&mut self, api: &mut Api, kind: Kind, news: &News);

    /// When there is something to do next.
    fn next_due(&self) -> Option<Timestamp>;

    /// Begins the pass that is due.
    fn next(&mut self, now: Timestamp) -> Option<(Key, Self::Plan)>;

    /// When no pass is due: a request that is part of none, and the object it is about.
    fn next_beside(&mut self, _now: Timestamp) -> Option<(Key, Self::Call)> {
        None
    }

    /// How many steps a plan has, and what it waits for.
    fn summary(plan: &Self::Plan) -> (usize, Option<&Self::Waiting>);

    /// Cuts a plan into groups of requests: when one fails, the rest of its group is tried and
    /// nothing after it. Fails when there is something in the plan that must not be.
    fn cut(plan: Self::Plan) -> Result<Vec<Vec<Self::Call>>, Violation>;

    /// A request was carried out. The answer is a request that only now can follow, if there is
    /// one.
    fn accepted(
        &mut self,
        api: &mut Api,
        key: &Key,
        call: Self::Call,
        object: Option<Arc<Object>>,
    ) -> Option<Self::Call>;

    /// A request was refused, or seems to have been. The answer is whether that ends the pass.
    fn refused(&mut self, api: &mut Api, key: &Key, call: Self::Call, refusal: &Refusal) -> bool;

    /// The pass is over.
    fn done(&mut self, key: &Key, now: Timestamp);

    /// The only controller there is knows all there is to know, and waits: fails if there is
    /// something it should have done.
    fn check_rest(checker: &Checker, key: &Key, waiting: &Self::Waiting) -> Result<(), Violation>;
}

/// One request of a pass over `key`, or beside passes about `key`.
pub(crate) trait Call {
    /// Carries it out.
    fn send(&self, api: &mut Api, key: &Key) -> Answer;

    /// What it changes: somebody else may be faster. Nothing if there is nothing to change yet.
    fn target<'a>(&'a self, api: &Api, key: &'a Key) -> Option<(Kind, &'a str)>;

    /// Whether it may be invalid for now, and valid when it is tried again.
    fn may_wait(&self) -> bool {
        false
    }

    /// What it does, for people.
    fn told(&self, key: &Key) -> String;
}
