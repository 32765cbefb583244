//! What ResourceQuotas count and whom they refuse, with the rules of upstream's evaluators.
//!
//! A quota is charged by the write that makes an object, and counted anew when something ends. Both
//! go by what one object uses, which is decided here.

mod charge;
mod counted;
mod pods;
mod scope;

pub use charge::{Charge, Request, charge};
pub use counted::Counted;

use jiff::Timestamp;

use self::scope::Scope;
use crate::{
    amounts::{self, Amounts},
    json::{at, text},
    quantity::Quantity,
    strategy::Json,
};

/// A ResourceQuota, as far as it counts.
#[derive(Clone, Debug)]
pub struct Quota {
    /// Its name.
    pub name: String,
    /// What there may be.
    pub wanted: Amounts,
    /// What there may be as far as it was counted: what holds now.
    pub hard: Amounts,
    /// What there is.
    pub used: Amounts,
    scopes: Vec<Scope>,
}

impl Quota {
    /// Reads a quota.
    pub fn read(object: &Json) -> Self {
        Self {
            name: text(object, &["metadata", "name"]).to_owned(),
            wanted: amounts::read(at(object, &["spec", "hard"])),
            hard: amounts::read(at(object, &["status", "hard"])),
            used: amounts::read(at(object, &["status", "used"])),
            scopes: scope::read(object),
        }
    }

    /// Whether it counts anything of a kind.
    pub fn tracks(&self, counted: &Counted) -> bool {
        let mut names = self.wanted.keys().chain(self.hard.keys());
        names.any(|name| counted.has(name))
    }

    /// Whether an object is one of those it counts.
    fn is_about(&self, counted: &Counted, object: &Json) -> bool {
        self.scopes.iter().all(|scope| scope.has(counted, object))
    }

    /// A new count of everything that it tracks.
    pub fn recount(&self) -> Recount<'_> {
        Recount { quota: self, used: Amounts::new() }
    }
}

/// A count that is under way: first each kind is begun, then its objects are added.
#[derive(Debug)]
pub struct Recount<'a> {
    quota: &'a Quota,
    used: Amounts,
}

impl Recount<'_> {
    /// Notes that objects of a kind are counted, and says whether the quota tracks any.
    pub fn begin(&mut self, counted: &Counted) -> bool {
        let names = self.quota.wanted.keys().filter(|name| counted.has(name));
        let mut is_tracked = false;
        for name in names {
            is_tracked = true;
            self.used.entry(name.clone()).or_insert(Quantity::ZERO);
        }
        is_tracked
    }

    /// Whether it does not matter what is in objects of the kind, only how many there are.
    pub fn is_number(&self, counted: &Counted) -> bool {
        !counted.looks_inside() && self.quota.scopes.is_empty()
    }

    /// Counts objects that are all alike.
    pub fn add_number(&mut self, counted: &Counted, number: usize) {
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        let alike = counted.names().map(|name| (name.to_owned(), Quantity::whole(number)));
        amounts::add(&mut self.used, &alike.collect());
    }

    /// Counts one object.
    pub fn add(&mut self, counted: &Counted, object: &Json, now: Timestamp) {
        if self.quota.is_about(counted, object) {
            amounts::add(&mut self.used, &counted.usage(object, now));
        }
    }

    /// What is used. What nobody counts stays as it was said to be.
    pub fn finish(mut self) -> Amounts {
        for (name, amount) in &self.quota.used {
            self.used.entry(name.clone()).or_insert(*amount);
        }
        self.used.retain(|name, _| self.quota.wanted.contains_key(name));
        self.used
    }
}

#[cfg(test)]
mod tests;
