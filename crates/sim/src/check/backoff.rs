//! A pod that follows failed ones is not made before its time.

use jiff::{SignedDuration, Timestamp};

use super::{Checker, JobBook, Phase, PodBook, Violation, ensure};
use crate::watch::Seen;

const DELAY_FIRST: i64 = 10;
const DELAY_MAX: i64 = 600;

impl Checker {
    /// The controller of this number made `pod` just now, having seen what it had seen.
    pub(super) fn check_backoff(
        &self,
        pod: &PodBook,
        (number, seen): (usize, Seen),
        now: Timestamp,
    ) -> Result<(), Violation> {
        let Some(owner) = pod.owner.as_deref() else { return Ok(()) };
        // What is made for a Job that is gone goes with it, whatever was known of it.
        let job = self.jobs.get(owner).filter(|job| !job.is_gone);
        let Some(job) = job else { return Ok(()) };
        let is_ours = |other: &&PodBook| other.last_owner.as_deref() == Some(owner);
        // What the controller cannot have missed: what it had been told of and is still there, or
        // was let go by itself.
        let is_known = |other: &&PodBook| {
            let is_left = !other.is_gone && (other.is_pinned || !other.is_deleting);
            let is_told = other.failed.is_some_and(|failure| failure.at <= seen.pods);
            is_told
                && (is_left || other.unpinned_by == Some(number))
                && other.phase != Phase::Succeeded
                && !other.is_tampered
                && takes_part(job, other)
        };
        let ours = || self.pods.values().filter(is_ours);
        if job.spec.backoff_limit_per_index.is_some() {
            let of_index = || ours().filter(|other| other.index == pod.index);
            // Who goes before its successor is made takes what it told of the index with it.
            return check_index(pod, of_index, |other| other.is_pinned && is_known(other), now);
        }
        // A success makes up for the failures before it. The controller may know of any.
        let done = ours().filter_map(|other| {
            let ended = other.ended.as_ref().filter(|_| other.phase == Phase::Succeeded)?;
            Some(super::pod::finish_time(ended))
        });
        let done = done.max();
        let times: Vec<Timestamp> = ours()
            .filter(is_known)
            .filter_map(|other| other.failed.map(|failure| failure.time))
            .filter(|time| Some(*time) > done)
            .collect();
        let Some(last) = times.iter().max() else { return Ok(()) };
        let due = *last + delay(times.len());
        ensure(now >= due, || {
            let count = times.len();
            format!("pod {} was made at {now}, {count} failures hold it until {due}", pod.name)
        })
    }
}

/// Of all pods of the index the one with the longest history decides.
fn check_index<'a, I: Iterator<Item = &'a PodBook>>(
    pod: &PodBook,
    of_index: impl Fn() -> I,
    is_known: impl Fn(&&'a PodBook) -> bool,
    now: Timestamp,
) -> Result<(), Violation> {
    let most = of_index().filter(is_known).map(PodBook::failures_before).max();
    let Some(most) = most else { return Ok(()) };
    ensure(pod.failures_before() > most, || {
        let (told, index) = (pod.failures_before(), pod.index.unwrap_or_default());
        format!("pod {} tells of {told} failures of index {index} after {most}", pod.name)
    })?;
    // Two that stood for the index at once may both have failed: one of them decides.
    let rivals = of_index().filter(|other| other.failures_before() >= most);
    let due = rivals.filter_map(|other| {
        let failures = usize::try_from(other.failures_before()).unwrap_or_default() + 1;
        Some(other.failed?.time + delay(failures))
    });
    let due = due.min().unwrap_or(now);
    ensure(now >= due, || {
        let index = pod.index.unwrap_or_default();
        format!("pod {} was made at {now}, index {index} is held until {due}", pod.name)
    })
}

/// Whether the pod has had its place in the Job all the time.
fn takes_part(job: &JobBook, pod: &PodBook) -> bool {
    let mut sizes = job.sizes.iter().map(|(_, size)| size.completions.unwrap_or_default());
    !job.is_indexed() || pod.index.is_some_and(|index| sizes.all(|size| index < size))
}

fn delay(failures: usize) -> SignedDuration {
    let doublings = u32::try_from(failures - 1).unwrap_or(u32::MAX).min(10);
    SignedDuration::from_secs((DELAY_FIRST << doublings).min(DELAY_MAX))
}
