//! All cases, by what they are about.

mod api;
mod children;
mod claims;
mod elastic;
mod ends;
mod in_place;
mod order;
mod pods_ready;
mod queues;
mod restarts;
mod rules;
mod stories;
mod suspension;

use anyhow::Result;
use futures::future::LocalBoxFuture;

use crate::world::World;

/// Something a cluster must do.
pub(crate) struct Case {
    /// What it is about.
    pub(crate) room: &'static str,
    /// What it is, as a claim.
    pub(crate) name: &'static str,
    /// Fails when it does not.
    pub(crate) run: fn(World) -> LocalBoxFuture<'static, Result<()>>,
}

/// Names functions as cases.
macro_rules! cases {
    ($($name:ident),+ $(,)?) => {
        pub(super) const CASES: &[$crate::cases::Case] = &[$($crate::cases::Case {
            room: module_path!(),
            name: stringify!($name),
            run: |world| Box::pin($name(world)),
        }),+];
    };
}
use cases;

/// Every case there is.
pub(crate) fn all() -> Vec<Case> {
    let rooms = [
        api::CASES,
        children::CASES,
        elastic::CASES,
        order::CASES,
        restarts::CASES,
        rules::CASES,
        suspension::CASES,
        ends::CASES,
        in_place::CASES,
        stories::CASES,
        queues::CASES,
        pods_ready::CASES,
        // A cluster that has heard of JobSets just now may not clean up after them yet.
        claims::CASES,
    ];
    let copy = |case: &Case| Case { room: case.room, name: case.name, run: case.run };
    rooms.into_iter().flatten().map(copy).collect()
}
