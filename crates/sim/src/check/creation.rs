//! When a controller may make a pod.

use super::{Checker, PodBook, Violation, ending::is_known, ensure};
use crate::watch::Seen;

impl Checker {
    /// The controller of this number made `pod`, having seen what it had seen.
    pub(super) fn check_creation(
        &self,
        pod: &PodBook,
        (number, seen): (usize, Seen),
        is_alone: bool,
    ) -> Result<(), Violation> {
        let Some(owner) = &pod.owner else {
            return Err(Violation(format!("pod {} was made for nobody", pod.name)));
        };
        // The Job may have gone, and been made anew, a moment ago.
        let Some(job) = self.jobs.get(owner) else {
            return Err(Violation(format!("pod {} was made for an unknown Job", pod.name)));
        };
        ensure(job.is_ours(), || format!("pod {} was made for a Job of others", pod.name))?;
        ensure(pod.is_pinned, || format!("pod {} was made without the finalizer", pod.name))?;
        // One that believed to lead may have decided a moment before it was stopped.
        let is_decided = job.decided_by.is_some_and(|(by, at)| by == number || at <= seen.jobs);
        ensure(!is_decided || !is_alone, || {
            format!("pod {} was made although the end of {} is decided", pod.name, job.name)
        })?;
        let sizes = || job.sizes_since(seen.jobs);
        // One that believed to lead may have made pods a moment before it was stopped.
        let known = || self.pods.values().filter(|other| is_known(other, (number, seen.pods)));
        let others = || known().filter(|other| other.owner.as_ref() == Some(owner));
        let active = others().filter(|other| other.is_active()).count() + 1;
        let most = sizes().map(|size| size.parallelism).max().unwrap_or_default();
        let is_few = i32::try_from(active).is_ok_and(|active| active <= most);
        ensure(is_few || !is_alone, || {
            format!("with {} there are {active} active pods, allowed are {most}", pod.name)
        })?;
        ensure(job.is_indexed() == pod.index.is_some(), || {
            format!("pod {} has index {:?}", pod.name, pod.index)
        })?;
        let Some(index) = pod.index else { return Ok(()) };
        ensure(sizes().any(|size| size.completions.is_some_and(|most| index < most)), || {
            format!("pod {} has index {index}, which the Job does not have", pod.name)
        })?;
        let twin = others().find(|other| {
            let is_alive = other.is_active() || (job.waits_for_the_end() && other.is_terminating());
            other.index == Some(index) && is_alive
        });
        ensure(twin.is_none() || !is_alone, || {
            let twin = twin.map(|twin| &*twin.name).unwrap_or_default();
            format!("pods {} and {twin} both stand for index {index}", pod.name)
        })
    }
}
