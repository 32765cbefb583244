//! The status a Job should have: what was seen, what was counted, what was decided.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{JobCondition, JobSpec, JobStatus, UncountedTerminatedPods};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use lockstep_api::reasons::job::{
    COMPLETE, FAILED, FAILURE_TARGET, SUCCESS_CRITERIA_MET, SUSPENDED,
};

use crate::plan::job::{
    Event, View,
    account::Account,
    conditions,
    finish::{End, Fate},
};

/// A status to write, and what to tell users once it is written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Draft {
    pub(crate) status: JobStatus,
    pub(crate) events: Vec<Event>,
    /// What the Job has ended with, if it ends with this write.
    pub(crate) finished: Option<End>,
}

/// Drafts the status.
pub(crate) fn draft(
    view: &View,
    spec: &JobSpec,
    stored: &JobStatus,
    (account, fate): (&Account, Option<&Fate>),
    now: Timestamp,
) -> Draft {
    let now = conditions::whole_second(now);
    let mut draft = Draft { status: stored.clone(), events: Vec::new(), finished: None };
    draft.count(view, spec, account);
    if stored.start_time.is_none() && spec.suspend != Some(true) {
        draft.status.start_time = Some(Time(now));
    }
    match fate {
        Some(fate) => draft.decide(view, spec, (account, fate), now),
        None if view.job().metadata.deletion_timestamp.is_none() => draft.suspend(spec, now),
        None => {}
    }
    normalize(&mut draft.status);
    draft
}

/// The same status in the one form we write it in: numbers that are zero and lists that are empty
/// are left out where the API leaves them out.
pub(crate) fn normalize(status: &mut JobStatus) {
    for number in [&mut status.active, &mut status.succeeded, &mut status.failed] {
        *number = number.filter(|number| *number != 0);
    }
    status.completed_indexes = status.completed_indexes.take().filter(|list| !list.is_empty());
    status.conditions = status.conditions.take().filter(|list| !list.is_empty());
    if let Some(pods) = &mut status.uncounted_terminated_pods {
        pods.succeeded = pods.succeeded.take().filter(|list| !list.is_empty());
        pods.failed = pods.failed.take().filter(|list| !list.is_empty());
    }
}

impl Draft {
    fn count(&mut self, view: &View, spec: &JobSpec, account: &Account) {
        let status = &mut self.status;
        status.active = Some(number(view.active()));
        status.ready = Some(number(view.ready()));
        status.terminating = Some(number(view.terminating()));
        status.uncounted_terminated_pods = Some(UncountedTerminatedPods {
            succeeded: Some(account.succeeded.clone()),
            failed: Some(account.failed.clone()),
        });
        status.failed = Some(plus(status.failed, account.failed_settled));
        if view.rules().is_indexed {
            let slots = &view.tally().slots;
            let succeeded = clamp(slots.succeeded.count());
            // The API lets the number shrink only while the Job is as wide as it is long. A Job
            // that was scaled down and made narrower at once keeps the old number for a while.
            let may_shrink = spec.completions == spec.parallelism;
            let least = status.succeeded.filter(|_| !may_shrink).unwrap_or(0);
            status.succeeded = Some(succeeded.max(least));
            let (completed, failed) = slots.texts();
            status.completed_indexes = Some(completed);
            let has_limit = view.rules().limit_per_index.is_some();
            status.failed_indexes = has_limit.then_some(failed);
        } else {
            status.succeeded = Some(plus(status.succeeded, account.succeeded_settled));
        }
    }

    /// Records how the Job ends; and that it has ended, when nothing is left of it.
    fn decide(
        &mut self,
        view: &View,
        spec: &JobSpec,
        (account, fate): (&Account, &Fate),
        now: Timestamp,
    ) {
        let (interim, terminal) = match fate.end {
            End::Success => (SUCCESS_CRITERIA_MET, COMPLETE),
            End::Failure => (FAILURE_TARGET, FAILED),
        };
        let made = |kind: &str| conditions::new_true(kind, &fate.reason, &fate.message, now);
        if !fate.is_recorded {
            conditions::put(&mut self.status, made(interim));
            return;
        }
        let is_nothing_left = view.active() + view.terminating() == 0
            && view.tally().tracked.is_empty()
            && account.succeeded.is_empty()
            && account.failed.is_empty();
        if !is_nothing_left {
            return;
        }
        conditions::put(&mut self.status, made(terminal));
        self.finished = Some(fate.end);
        // A Job may end without ever having run; only one that had nothing to do may say so.
        let had_nothing_to_do = spec.suspend == Some(true) && spec.completions == Some(0);
        let start = match &self.status.start_time {
            Some(start) => start.0,
            None if had_nothing_to_do => now,
            None => self.status.start_time.insert(Time(now)).0,
        };
        match fate.end {
            End::Success => {
                // Clocks may disagree; a Job still does not end before it has started.
                self.status.completion_time = Some(Time(now.max(start)));
                if spec.completions.is_some_and(|wanted| self.status.succeeded > Some(wanted)) {
                    self.events.push(Event::too_many_succeeded());
                }
                self.events.push(Event::completed());
            }
            End::Failure => self.events.push(Event::warning(&fate.reason, &fate.message)),
        }
    }

    /// Records that the Job is suspended, or no longer.
    fn suspend(&mut self, spec: &JobSpec, now: Timestamp) {
        let mut known = self.status.conditions.iter().flatten();
        let known = known.find(|condition| condition.type_ == SUSPENDED).cloned();
        if spec.suspend == Some(true) {
            let wanted = conditions::new_true(SUSPENDED, "JobSuspended", "Job suspended", now);
            if !known.is_some_and(|known| is_same(&known, &wanted)) {
                conditions::put(&mut self.status, wanted);
                self.status.start_time = None;
                self.events.push(Event::suspended());
            }
            return;
        }
        let Some(known) = known else { return };
        let wanted = conditions::new(SUSPENDED, "False", "JobResumed", "Job resumed", now);
        if !is_same(&known, &wanted) {
            conditions::put(&mut self.status, wanted);
            // The start may move only when the suspension ends; the API refuses it otherwise.
            if known.status == "True" {
                self.status.start_time = Some(Time(now));
            }
            self.events.push(Event::resumed());
        }
    }
}

fn is_same(known: &JobCondition, wanted: &JobCondition) -> bool {
    known.status == wanted.status
        && known.reason == wanted.reason
        && known.message == wanted.message
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

fn clamp(count: i64) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

fn plus(counted: Option<i32>, more: i64) -> i32 {
    clamp(i64::from(counted.unwrap_or(0)) + more)
}
