//! `waitForPodsReady`: how long pods may take, who waits meanwhile, and what comes after.

mod overrides;

use std::time::Duration;

pub use overrides::{Overrides, effective, requeued_by, validate};

/// What holds for a workload whose pods are waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitForPodsReady {
    /// How long pods may take to be ready after the workload was admitted.
    pub timeout: Duration,
    /// How long pods that were ready may not be; for ever if there is none.
    pub recovery_timeout: Option<Duration>,
    /// Whether nobody else is admitted while pods are not ready.
    pub block_admission: bool,
    /// How an evicted workload comes back.
    pub requeuing: Requeuing,
}

/// How a workload comes back that was evicted because its pods were not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requeuing {
    /// By which time it stands in its queue.
    pub timestamp: RequeuingTimestamp,
    /// How often it comes back before it is deactivated; endlessly if there is none.
    pub limit: Option<i32>,
    /// How long it waits the first time; each time after that twice as long.
    pub base: Duration,
    /// How long it waits at the most; zero is no limit.
    pub max: Duration,
}

/// By which time a workload stands in its queue that comes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequeuingTimestamp {
    /// By when it was evicted: behind those that waited meanwhile.
    #[default]
    Eviction,
    /// By when it was created: in its old place.
    Creation,
}

impl Default for Requeuing {
    fn default() -> Self {
        Self {
            timestamp: RequeuingTimestamp::Eviction,
            limit: None,
            base: Duration::from_secs(60),
            max: Duration::from_secs(3600),
        }
    }
}

impl Default for WaitForPodsReady {
    /// What holds when nothing is said, as of v1beta2.
    fn default() -> Self {
        let timeout = Duration::from_secs(30 * 60);
        Self {
            timeout,
            recovery_timeout: Some(timeout),
            block_admission: false,
            requeuing: Requeuing::default(),
        }
    }
}

impl Requeuing {
    /// How long a workload waits that comes back for the `count`th time; `chance` from 0 to 1 keeps
    /// those that were evicted together from coming back together.
    pub fn delay(&self, count: i32, chance: f64) -> Duration {
        let mut delay = self.base;
        for _ in 1..count.min(64) {
            delay = delay.saturating_mul(2);
            if !self.max.is_zero() && delay >= self.max {
                delay = self.max;
                break;
            }
        }
        delay.saturating_add(delay.mul_f64(chance.clamp(0.0, 1.0) * JITTER))
    }
}

/// By which part a delay is longer at the most.
const JITTER: f64 = 0.0001;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_their_limit() {
        let seconds = |requeuing: &Requeuing| -> Vec<u64> {
            (1..=8).map(|count| requeuing.delay(count, 0.0).as_secs()).collect()
        };
        assert_eq!(seconds(&Requeuing::default()), [60, 120, 240, 480, 960, 1920, 3600, 3600]);
        let steep = Requeuing {
            base: Duration::from_secs(10),
            max: Duration::from_secs(5),
            ..Requeuing::default()
        };
        assert_eq!(seconds(&steep)[..3], [10, 5, 5], "the first is not limited");
        let endless = Requeuing { max: Duration::ZERO, ..Requeuing::default() };
        assert_eq!(seconds(&endless)[7], 60 * 128);
        assert!(Requeuing::default().delay(1, 1.0) <= Duration::from_millis(60_006));
        assert!(endless.delay(i32::MAX, 1.0) > Duration::from_secs(1 << 40));
    }
}
