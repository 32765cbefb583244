//! What goes wrong, and how often. Each world has its own mixture.

use std::collections::BTreeSet;

use jiff::SignedDuration;

use crate::chance::Chance;

/// What becomes of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing: it is carried out and answered.
    None,
    /// It never arrives; the client is told that the server did not answer.
    Refused,
    /// It is carried out, but the answer is lost.
    Unanswered,
    /// It arrives twice; the client hears the second answer.
    Twice,
    /// Somebody else writes just before it: it is carried out on another version.
    Conflict,
}

/// How often things go wrong: so many times of a thousand.
#[derive(Clone, Copy, Debug)]
struct Rates {
    refused: u32,
    unanswered: u32,
    twice: u32,
    conflict: u32,
    crash: u32,
    lost_watch: u32,
    usurper: u32,
    jump: u32,
    /// The longest that news takes, in milliseconds.
    lag_max: i64,
}

/// The faults of one world.
#[derive(Debug)]
pub struct Faults {
    chance: Chance,
    rates: Rates,
    is_over: bool,
    fired: u32,
    muted: BTreeSet<u32>,
}

impl Faults {
    /// The faults of the world `seed`, without those whose numbers are in `muted`.
    pub fn new(seed: u64, muted: BTreeSet<u32>) -> Self {
        let mut chance = Chance::new(seed, "faults");
        let mut rate = |most: u32| match chance.below(3) {
            0 => 0,
            1 => most / 8,
            _ => most,
        };
        let rates = Rates {
            refused: rate(120),
            unanswered: rate(120),
            twice: rate(80),
            conflict: rate(120),
            crash: rate(60),
            lost_watch: rate(60),
            usurper: rate(10),
            jump: rate(8),
            lag_max: i64::from(50 + rate(8_000)),
        };
        Self { chance, rates, is_over: false, fired: 0, muted }
    }

    /// From now on nothing goes wrong.
    pub fn end(&mut self) {
        self.is_over = true;
        self.rates.lag_max = 20;
    }

    /// How many faults there have been. They are numbered from 0.
    pub fn fired(&self) -> u32 {
        self.fired
    }

    /// What becomes of the next request.
    pub fn request(&mut self) -> Trouble {
        let Rates { refused, unanswered, twice, conflict, .. } = self.rates;
        let troubles = [
            (refused, Trouble::Refused),
            (unanswered, Trouble::Unanswered),
            (twice, Trouble::Twice),
            (conflict, Trouble::Conflict),
        ];
        let mut at = self.chance.below(1_000);
        for (rate, trouble) in troubles {
            if at < rate {
                return if self.fires() { trouble } else { Trouble::None };
            }
            at -= rate;
        }
        Trouble::None
    }

    /// Whether a controller crashes now.
    pub fn crashes(&mut self) -> bool {
        self.chance.per_mille(self.rates.crash) && self.fires()
    }

    /// Whether a watch is lost now.
    pub fn loses_watch(&mut self) -> bool {
        self.chance.per_mille(self.rates.lost_watch) && self.fires()
    }

    /// Whether a second controller takes over while the first goes on for a while.
    pub fn usurps(&mut self) -> bool {
        self.chance.per_mille(self.rates.usurper) && self.fires()
    }

    /// By how much the clock jumps ahead now, if it does.
    pub fn jump(&mut self) -> Option<SignedDuration> {
        let jumps = self.chance.per_mille(self.rates.jump) && self.fires();
        let by = self.chance.millis(1_000, 90_000);
        jumps.then_some(by)
    }

    /// How long the next news takes.
    pub fn lag(&mut self) -> SignedDuration {
        // Mostly short, sometimes long.
        let most =
            if self.chance.percent(70) { self.rates.lag_max / 10 } else { self.rates.lag_max };
        self.chance.millis(1, most.max(1))
    }

    /// How long a request takes.
    pub fn latency(&mut self) -> SignedDuration {
        let most = if self.is_over || self.chance.percent(80) { 5 } else { 400 };
        self.chance.millis(1, most)
    }

    /// How much is heard in one go.
    pub fn gulp(&mut self) -> usize {
        self.chance.pick(&[1, 1, 1, 2, 5, 50])
    }

    fn fires(&mut self) -> bool {
        if self.is_over {
            return false;
        }
        self.fired += 1;
        !self.muted.contains(&(self.fired - 1))
    }
}
