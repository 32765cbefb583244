//! How long the replacement of failed pods waits.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::plan::job::{Options, View, seen::Seen};

/// When a pod may be created again, after so many failures the last of which was at `last`.
fn due(failures: u64, last: Timestamp, options: &Options) -> Timestamp {
    let delay = delay(failures, options.pod_backoff_base, options.pod_backoff_max);
    let delay = SignedDuration::try_from(delay).unwrap_or(SignedDuration::MAX);
    last.saturating_add(delay).unwrap_or(Timestamp::MAX)
}

/// `base * 2^(failures - 1)`, at most `max`; nothing for none.
fn delay(failures: u64, base: Duration, max: Duration) -> Duration {
    let Some(doublings) = failures.checked_sub(1) else { return Duration::ZERO };
    let doublings = u32::try_from(doublings).unwrap_or(u32::MAX);
    let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
    base.checked_mul(factor).unwrap_or(max).min(max)
}

/// When the Job may create pods again, if that is not now.
pub(crate) fn of_job(view: &View, options: &Options, now: Timestamp) -> Option<Timestamp> {
    let (failures, last) = view.failures().since_success()?;
    let failures = u64::try_from(failures).unwrap_or(u64::MAX);
    Some(due(failures, last, options)).filter(|due| *due > now)
}

/// When the index of this failed pod may have a new one, if that is not now.
pub(crate) fn of_index(failed: &Seen, options: &Options, now: Timestamp) -> Option<Timestamp> {
    let failures = u64::try_from(failed.failures_before()).unwrap_or(0) + 1;
    Some(due(failures, failed.finished_at, options)).filter(|due| *due > now)
}

#[cfg(test)]
mod tests {
    use super::*;

    // rule: job 3.9
    #[test]
    fn delays_double_from_the_base_to_the_limit() {
        let options = Options::default();
        let (base, max) = (options.pod_backoff_base, options.pod_backoff_max);
        let cases =
            [(0, 0), (1, 10), (2, 20), (6, 320), (7, 600), (33, 600), (64, 600), (u64::MAX, 600)];
        for (failures, seconds) in cases {
            assert_eq!(delay(failures, base, max).as_secs(), seconds, "{failures} failures");
        }
        let last = Timestamp::from_second(100).unwrap();
        assert_eq!(due(2, last, &options), Timestamp::from_second(120).unwrap());
        assert_eq!(due(9, Timestamp::MAX, &options), Timestamp::MAX);
    }
}
