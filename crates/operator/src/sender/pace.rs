//! How fast requests may be sent: so many a second in the long run, some more at once after a rest.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// A bucket of tokens that fills at an even rate; each request takes one. A clone is the same
/// bucket.
#[derive(Clone, Debug)]
pub struct Pace {
    /// The time in which one token comes in.
    every: Duration,
    /// How long it takes to fill the bucket.
    rest: Duration,
    /// When the bucket would be full if nobody took anything more.
    full_at: Arc<Mutex<Option<Instant>>>,
}

impl Pace {
    /// `per_second` requests in the long run, at most `burst` at once. Nothing, if there is no
    /// limit: a rate that is not above zero.
    pub fn new(per_second: f64, burst: u32) -> Option<Self> {
        if !per_second.is_finite() || per_second <= 0.0 {
            return None;
        }
        let every = Duration::try_from_secs_f64(1.0 / per_second).ok()?;
        let rest = every.saturating_mul(burst.max(1));
        Some(Self { every, rest, full_at: Arc::default() })
    }

    /// Waits until one more request may be sent. Who came first goes first.
    pub async fn wait(&self) {
        let at = self.take(Instant::now());
        tokio::time::sleep_until(at).await;
    }

    /// Takes a token; says from when on it may be used.
    fn take(&self, now: Instant) -> Instant {
        let mut full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let full = full_at.map_or(now, |at| at.max(now)) + self.every;
        *full_at = Some(full);
        full.checked_sub(self.rest).map_or(now, |at| at.max(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_goes_at_once_and_the_rest_at_the_rate() {
        let pace = Pace::new(10.0, 3).unwrap();
        let start = Instant::now() + Duration::from_secs(60);
        let delays: Vec<u128> = (0..6).map(|_| (pace.take(start) - start).as_millis()).collect();
        assert_eq!(delays, [0, 0, 0, 100, 200, 300]);
        // After a rest there is a burst again.
        let later = start + Duration::from_secs(10);
        let delays: Vec<u128> = (0..4).map(|_| (pace.take(later) - later).as_millis()).collect();
        assert_eq!(delays, [0, 0, 0, 100]);
    }

    #[test]
    fn no_rate_is_no_limit() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Pace::new(rate, 10).is_none(), "{rate}");
        }
    }
}
