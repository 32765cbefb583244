//! Exponential back-off per key.

use std::collections::BTreeMap;
use std::time::Duration;

/// How long to wait after the n-th failure in a row: `base * 2^(n-1)`, at most `max`.
#[derive(Clone, Debug)]
pub struct Backoff<K> {
    base: Duration,
    max: Duration,
    failures: BTreeMap<K, u32>,
}

impl<K: Ord + Clone> Backoff<K> {
    /// A back-off that starts at `base` and never exceeds `max`.
    pub fn new(base: Duration, max: Duration) -> Self {
        Self { base, max, failures: BTreeMap::new() }
    }

    /// Counts a failure of `key` and says how long to wait before the next try.
    pub fn failed(&mut self, key: &K) -> Duration {
        let count = self.failures.entry(key.clone()).or_insert(0);
        *count = count.saturating_add(1);
        delay(self.base, self.max, *count - 1)
    }

    /// Forgets the failures of `key`.
    pub fn succeeded(&mut self, key: &K) {
        self.failures.remove(key);
    }
}

/// `base * 2^doublings`, at most `max`.
pub fn delay(base: Duration, max: Duration, doublings: u32) -> Duration {
    let factor = 1u32.checked_shl(doublings).unwrap_or(u32::MAX);
    base.checked_mul(factor).unwrap_or(max).min(max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_limit_and_start_over_after_success() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(5));
        let waits: Vec<u64> = (0..4).map(|_| backoff.failed(&"a").as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 5]);
        assert_eq!(backoff.failed(&"b").as_secs(), 1, "keys are apart");
        backoff.succeeded(&"a");
        assert_eq!(backoff.failed(&"a").as_secs(), 1);
    }

    #[test]
    fn huge_counts_do_not_overflow() {
        let max = Duration::from_secs(300);
        for doublings in [0, 5, 31, 32, 63, u32::MAX] {
            assert!(delay(Duration::from_secs(10), max, doublings) <= max, "{doublings}");
        }
    }
}
