//! What a job asks of its restarts.

use std::ops::Range;
use std::time::Duration;

use super::{Cause, Restarts};

/// What a failure means for the gang.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Restart, and do not count it.
    Ignore,
    /// Restart, and count it.
    Count,
    /// Let the pod fail, so that the job's own failure policy decides.
    Surrender,
}

/// One rule of a `podFailurePolicy` on exit codes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExitRule {
    /// The slots whose Job has the rule.
    pub slots: Range<u32>,
    /// Whether the code has to be one of `codes`, or none of them.
    pub is_in: bool,
    /// The codes.
    pub codes: Vec<i32>,
    /// What a match means.
    pub verdict: Verdict,
}

/// When the gang has succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Groups of slots that succeed as one, in order and apart from each other: the Jobs that the
    /// success policy looks at.
    pub groups: Vec<Range<u32>>,
    /// Whether one group is enough.
    pub is_any: bool,
}

impl Completion {
    /// All of so many slots must succeed.
    pub fn all(slots: u32) -> Self {
        let all = std::iter::once(0..slots);
        Self { groups: all.collect(), is_any: false }
    }
}

/// What a job asks of its restarts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How many workers the gang has.
    pub slots: u32,
    /// The generation its pods are made for, as far as the caller knows.
    pub generation: u32,
    /// Whether the job is suspended.
    pub is_suspended: bool,
    /// Restarts as far as the job itself says: its copy of what the record counts.
    pub restarts: Restarts,
    /// How many restarts may count.
    pub max_restarts: u32,
    /// How long each rung of the ladder may take: the restart in place, then the replacement of
    /// pods, whether they do not answer or were lost. Both together are never more than twice that.
    pub timeout: Duration,
    /// How long a worker that is asked to stop may take before it is killed.
    pub grace: Duration,
    /// When the gang has succeeded.
    pub completion: Completion,
    /// Whether a worker that has succeeded takes part in later epochs, as ranks of one computation
    /// have to.
    pub is_rejoining: bool,
    /// How often the job has made pods of single Jobs anew for its own reasons. It has counted that
    /// itself, where it counts.
    pub remade: u32,
    /// Rules on exit codes; the first match decides, and what no rule matches counts.
    pub rules: Vec<ExitRule>,
    /// How many epochs in a row may end before they got anywhere.
    pub stalled_max: u32,
    /// How long all workers must have run for an epoch to have got somewhere.
    pub progress_after: Duration,
}

impl Terms {
    /// The terms of a gang of `slots` equal workers of which all must succeed, with the defaults
    /// for everything that a job need not say.
    pub fn new(slots: u32, max_restarts: u32, timeout: Duration) -> Self {
        Self {
            slots,
            generation: 1,
            is_suspended: false,
            restarts: Restarts::default(),
            max_restarts,
            timeout,
            grace: Duration::from_secs(2),
            completion: Completion::all(slots),
            is_rejoining: true,
            remade: 0,
            rules: Vec::new(),
            stalled_max: 10,
            progress_after: Duration::from_secs(30),
        }
    }

    /// What this failure of the worker in `slot` means.
    pub fn judge(&self, slot: u32, cause: &Cause) -> Verdict {
        let Some(code) = cause.code() else { return Verdict::Count };
        let matches = |rule: &&ExitRule| {
            rule.slots.contains(&slot) && rule.codes.contains(&code) == rule.is_in
        };
        self.rules.iter().find(matches).map_or(Verdict::Count, |rule| rule.verdict)
    }

    /// How long after an order to stop everybody should have done so: the grace, and what it takes
    /// to hear of it. Where there are thousands, that is also what they need to come back if all
    /// connections were lost at once, and each has to be made anew.
    pub(super) fn stop_within(&self) -> Duration {
        let hearing = Duration::from_secs(5 + u64::from(self.slots / 1_000));
        self.timeout.min(self.grace + hearing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_that_matches_decides() {
        let rule = |slots: Range<u32>, is_in, codes: &[i32], verdict| ExitRule {
            slots,
            is_in,
            codes: codes.to_vec(),
            verdict,
        };
        let rules = vec![
            rule(0..2, true, &[42, 137], Verdict::Ignore),
            rule(0..2, true, &[42], Verdict::Surrender),
            rule(2..3, false, &[1], Verdict::Surrender),
        ];
        let terms = Terms { rules, ..Terms::new(4, 1, Duration::from_secs(60)) };
        let killed = Cause::Signalled { signal: 9, is_out_of_memory: true };
        let cases = [
            (0, Cause::Exited(42), Verdict::Ignore),
            (1, killed.clone(), Verdict::Ignore),
            (1, Cause::Hung, Verdict::Ignore),
            (1, Cause::Exited(1), Verdict::Count),
            (2, Cause::Exited(1), Verdict::Count),
            (2, killed, Verdict::Surrender),
            (3, Cause::Exited(42), Verdict::Count),
            // No process has ended, so no rule on exit codes can match.
            (2, Cause::PodLost, Verdict::Count),
        ];
        for (slot, cause, verdict) in cases {
            assert_eq!(terms.judge(slot, &cause), verdict, "slot {slot}: {cause}");
        }
    }
}
