//! Failures since the last success, for the back-off of the whole Job.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::plan::job::{
    rules::Rules,
    seen::{Phase, Seen},
};

/// More failures in a row than this make no difference: the delay has long stopped growing.
const KEPT_MAX: usize = 64;

/// The ends of failed pods that came after the last success, by time.
///
/// A function of the pods that were seen, in whatever order: a controller that starts anew finds
/// the same back-off as far as the pods are still there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failures {
    last_success: Option<Timestamp>,
    times: BTreeSet<(Timestamp, String)>,
}

impl Failures {
    /// Takes the end of a pod into account, once.
    pub(crate) fn note(&mut self, pod: &mut Seen, rules: &Rules) {
        if pod.is_noted || pod.is_dismissed() || !rules.takes_part(pod) {
            return;
        }
        if pod.phase == Phase::Succeeded {
            pod.is_noted = true;
            self.last_success = self.last_success.max(Some(pod.finished_at));
            let after = self.last_success;
            self.times.retain(|(time, _)| Some(*time) > after);
        } else if rules.has_failed(pod) {
            pod.is_noted = true;
            // It did not end of itself, so that the next one is not likely to.
            let is_excused = rules.replaces_deleted_at_once && pod.is_deleting;
            if Some(pod.finished_at) > self.last_success && !is_excused {
                self.times.insert((pod.finished_at, pod.uid.clone()));
            }
            if self.times.len() > KEPT_MAX {
                self.times.pop_first();
            }
        }
    }

    /// How many there were, and when the last was.
    pub(crate) fn since_success(&self) -> Option<(usize, Timestamp)> {
        self.times.last().map(|(time, _)| (self.times.len(), *time))
    }
}
