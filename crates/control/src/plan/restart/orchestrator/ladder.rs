//! What to do about a restart in place that does not come to its end: replace the pods that do not
//! answer, then make all of them anew.

use std::time::Duration;

use super::super::{Moment, Phase, Terms};

/// How often everything of earlier generations is asked to be deleted, until it is.
const REMIND: Duration = Duration::from_secs(5);

/// What the ladder says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rung {
    /// Replace the pods whose agents have not stopped, or can be heard no more.
    Replace,
    /// Replace those too that were never heard.
    ReplaceAll,
    /// Make everything anew.
    Recreate,
    /// Ask once more for everything of earlier generations to be deleted.
    Remind,
}

/// Deadlines of the phase that a gang is in. They are set anew by each leader: no clock is shared.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ladder {
    replace_at: Option<Moment>,
    replace_all_at: Option<Moment>,
    recreate_at: Option<Moment>,
    /// When at the latest, however often pods are replaced until then: one that fails each time
    /// would put it off for ever.
    recreate_by: Option<Moment>,
    remind_at: Option<Moment>,
    /// Until when the job's failure policy has time to decide.
    patient_until: Option<Moment>,
}

impl Ladder {
    /// Of a phase that begins now. A gang that forms has no deadline: its pods may have to wait
    /// for machines.
    pub(super) fn new(phase: Phase, terms: &Terms, now: Moment) -> Self {
        match phase {
            Phase::Stopping => Self {
                replace_at: Some(now + terms.stop_within()),
                replace_all_at: Some(now + terms.timeout),
                recreate_at: Some(now + terms.timeout),
                recreate_by: Some(now + terms.timeout * 2),
                ..Self::default()
            },
            Phase::Recreating => Self { remind_at: Some(now + REMIND), ..Self::default() },
            Phase::Surrendered(_) => {
                Self { patient_until: Some(now + terms.timeout), ..Self::default() }
            }
            Phase::Forming
            | Phase::Running
            | Phase::Suspended
            | Phase::Succeeding
            | Phase::Failed(_) => Self::default(),
        }
    }

    pub(super) fn deadline(&self) -> Option<Moment> {
        let all = [
            self.replace_at,
            self.replace_all_at,
            self.recreate_at,
            self.remind_at,
            self.patient_until,
        ];
        all.into_iter().flatten().min()
    }

    /// The rung that is due. Each is given once.
    pub(super) fn due(&mut self, now: Moment) -> Option<Rung> {
        let is_due = |at: Option<Moment>| at.is_some_and(|at| at <= now);
        if is_due(self.replace_at) {
            self.replace_at = None;
            Some(Rung::Replace)
        } else if is_due(self.replace_all_at) {
            self.replace_all_at = None;
            Some(Rung::ReplaceAll)
        } else if is_due(self.recreate_at) {
            self.recreate_at = None;
            Some(Rung::Recreate)
        } else if is_due(self.remind_at) {
            self.remind_at = Some(now + REMIND);
            Some(Rung::Remind)
        } else {
            None
        }
    }

    /// Whether the failure policy still has time to decide.
    pub(super) fn is_patient(&mut self, now: Moment) -> bool {
        self.patient_until = self.patient_until.filter(|until| now < *until);
        self.patient_until.is_some()
    }

    /// When to look again for pods to replace.
    pub(super) const fn replace_at(&mut self, at: Option<Moment>) {
        self.replace_at = at;
    }

    /// Pods are being replaced: that has its own time, counted from the first of them.
    pub(super) fn replacing(&mut self, terms: &Terms, now: Moment) {
        if self.recreate_at.is_some() {
            let at = now + terms.timeout;
            self.recreate_at = Some(self.recreate_by.map_or(at, |by| at.min(by)));
        }
    }

    /// The time is up and Jobs are still replacing pods that somebody else took away: that is the
    /// same rung. Whether there is time left for it.
    pub(super) fn extend(&mut self, now: Moment) -> bool {
        self.recreate_at = self.recreate_by.filter(|by| now < *by);
        self.recreate_at.is_some()
    }
}
