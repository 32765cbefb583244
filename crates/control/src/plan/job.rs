//! Jobs of `batch/v1`: how many pods they have, how these are counted, how they end.
//!
//! [`View`] is one Job and its pods as they were seen last; [`plan`] says what to do next, as steps
//! that leave no choice. [`Jobs`] is the driver that both shells use: many views, a work queue, and
//! the results of steps coming back in. This room knows nothing of requests or watches.
//!
//! Decisions are written down before they are acted upon. A pod loses its finalizer only after a
//! status that lists it was written; pods of a Job that ends are deleted only after its status says
//! how it ends; and that it has ended is written when nothing is left of it.

mod account;
mod backoff;
mod build;
mod conditions;
mod draft;
mod event;
mod fact;
pub(super) mod failure_policy;
mod finish;
#[cfg(test)]
mod histories;
mod indexes;
mod jobs;
mod manage;
mod memory;
mod name;
mod options;
pub mod patch;
mod rules;
mod seen;
mod step;
mod success_policy;
mod surplus;
#[cfg(test)]
mod tests;
pub mod ttl;
mod view;
mod waiting;
#[cfg(test)]
mod world;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{JobSpec, JobStatus};

pub use crate::plan::{Event, Key, Refusal, RefusalKind};
pub use event::COMPONENT;
pub use fact::{Fact, Metric};
pub use indexes::Indexes;
pub use jobs::{Done, Jobs, Orphan};
pub use memory::Memory;
pub use options::{BUILT_IN, Options};
pub use step::{Action, Creation, NewPod, Plan, PodRef, StatusWrite, Step, slow_start};
pub use view::{View, Work};
pub use waiting::{HoldingUp, Waiting};

use account::Account;
use draft::Draft;
use finish::{End, Fate, Score};
use manage::Move;
use memory::Stage;

/// Plans one pass over a Job.
pub fn plan(view: &View, memory: &Memory, options: &Options, now: Timestamp) -> Plan {
    if let Some(plan) = leave_alone(view, memory, options) {
        return plan;
    }
    let none = (JobSpec::default(), JobStatus::default());
    let spec = view.job().spec.as_ref().unwrap_or(&none.0);
    let status = view.job().status.as_ref().unwrap_or(&none.1);
    if let Some(plan) = claim(view) {
        return plan;
    }
    if !memory.doubtful.is_empty() {
        return relist(memory.doubtful.iter().cloned().collect());
    }
    let score = Score::of(view, status);
    let fate = finish::decide(view, spec, status, score, (options, now));
    let account = account::account(view, status, fate.as_ref(), options);
    if !account.unknown.is_empty() {
        return relist(account.unknown);
    }
    let draft = draft::draft(view, spec, status, (&account, fate.as_ref()), now);
    let mut plan = Plan { pods_visited: account.visited, ..sync(Vec::new()) };
    let deadline = finish::deadline(spec, status, now).filter(|_| fate.is_none());
    deadline.into_iter().for_each(|at| plan.wake(at));
    let pass = Pass { view, status, account, draft };
    match fate {
        Some(fate) => pass.end(&fate, memory, &mut plan),
        None if view.job().metadata.deletion_timestamp.is_some() => pass.let_go(&mut plan),
        None => {
            let next = manage::manage(view, spec, score, memory, (options, now));
            plan.creation = creation(view, spec, score);
            pass.go_on(next, memory, deadline, &mut plan);
        }
    }
    plan
}

/// Jobs that are not ours to touch, or no longer.
fn leave_alone(view: &View, memory: &Memory, options: &Options) -> Option<Plan> {
    let spec = view.job().spec.as_ref();
    let manager = spec.and_then(|spec| spec.managed_by.as_deref()).unwrap_or(BUILT_IN);
    if manager != options.controller {
        return Some(Plan::wait(Waiting::ManagedBy(manager.to_owned())));
    }
    if let Some(condition) = conditions::finished(view.job()) {
        return Some(tidy_up(view, condition.type_ == "Complete"));
    }
    match spec.and_then(|spec| spec.completion_mode.as_deref()) {
        None | Some("NonIndexed" | "Indexed") => {}
        Some(mode) => {
            let mut plan = Plan::wait(Waiting::UnknownCompletionMode(mode.to_owned()));
            if !memory.told_unknown_mode {
                plan.steps.push(Step::Emit(Event::unknown_completion_mode()));
            }
            return Some(plan);
        }
    }
    view.problem().map(|why| Plan::wait(Waiting::Invalid(why)))
}

/// Nothing is counted any more once a Job has ended: pods that are still tracked are let go.
fn tidy_up(view: &View, is_complete: bool) -> Plan {
    let pods: Vec<PodRef> = view.tracked().collect();
    if pods.is_empty() {
        let condition = if is_complete { "Complete" } else { "Failed" };
        return Plan::wait(Waiting::Finished { condition });
    }
    Plan { steps: vec![Step::RemoveFinalizers(pods)], ..Plan::default() }
}

/// Pods that should be the Job's and are not, and the other way round. These come first: they
/// change how many pods there are.
fn claim(view: &View) -> Option<Plan> {
    if view.job().metadata.deletion_timestamp.is_some() {
        return None;
    }
    let job_uid = view.uid().to_owned();
    let release: Vec<PodRef> = view.strays().collect();
    let adopt: Vec<PodRef> = view.orphans().cloned().collect();
    let mut steps = Vec::new();
    if !release.is_empty() {
        steps.push(Step::Release { job_uid: job_uid.clone(), pods: release });
    }
    if !adopt.is_empty() {
        steps.push(Step::Adopt { job_uid, pods: adopt });
    }
    (!steps.is_empty()).then(|| sync(steps))
}

fn relist(uids: Vec<String>) -> Plan {
    sync(vec![Step::Relist { uids }])
}

/// A plan that counts as a sync of the Job.
fn sync(steps: Vec<Step>) -> Plan {
    Plan { steps, action: Some(Action::Reconciling), ..Plan::default() }
}

fn creation(view: &View, spec: &JobSpec, score: Score) -> Creation {
    let is_patient = spec.pod_replacement_policy.as_deref() == Some("Failed");
    match (score.failed > 0, view.terminating() > 0) {
        (true, _) if is_patient => Creation::RecreateFailed,
        (false, false) => Creation::New,
        _ => Creation::RecreateTerminatingOrFailed,
    }
}

/// One pass over a Job that is ours, with all there is to know.
struct Pass<'a> {
    view: &'a View,
    status: &'a JobStatus,
    account: Account,
    draft: Draft,
}

impl Pass<'_> {
    /// The Job ends: write down how, then take its pods away, then count them.
    fn end(mut self, fate: &Fate, memory: &Memory, plan: &mut Plan) {
        self.write_status(plan);
        if memory.failed_last == Some(Stage::Pods) {
            self.remove_finalizers(plan);
        }
        let pods: Vec<PodRef> = self
            .view
            .tally()
            .active
            .iter()
            .filter_map(|(_, name)| self.view.pod_ref(name))
            .collect();
        if !pods.is_empty() {
            // When a Job fails, all its pods have failed, and they are counted. When it succeeds,
            // the pods it no longer needs count for nothing, however they end.
            let strip_finalizer_first = fate.end == End::Success;
            plan.steps.push(Step::Delete { pods, strip_finalizer_first });
        }
        self.remove_finalizers(plan);
        if plan.steps.is_empty() {
            let holding_up = match fate.end {
                End::Success => HoldingUp::Complete,
                End::Failure => HoldingUp::Failed,
            };
            plan.waiting = Some(waiting::for_pods(self.view, holding_up));
        }
    }

    /// The Job is being deleted: its pods are let go.
    fn let_go(mut self, plan: &mut Plan) {
        self.write_status(plan);
        self.remove_finalizers(plan);
        if plan.steps.is_empty() {
            plan.waiting = Some(Waiting::BeingDeleted);
        }
    }

    /// The Job goes on.
    fn go_on(mut self, next: Move, memory: &Memory, deadline: Option<Timestamp>, plan: &mut Plan) {
        plan.action = Some(next.action());
        let is_first = self.status.start_time.is_none()
            && self.view.pod_count() == 0
            && self.account.removals.is_empty()
            && self.draft.events.is_empty();
        // The status of a Job that starts says how many pods it has: they come first, unless that
        // did not work.
        if !(is_first && matches!(next, Move::Create(_)) && memory.failed_last.is_none()) {
            self.write_status(plan);
        }
        if memory.failed_last != Some(Stage::Finalizers) {
            self.remove_finalizers(plan);
        }
        if !matches!(next, Move::Delete(_)) {
            self.track_again(plan);
        }
        let mut reason = None;
        match next {
            Move::Delete(pods) => {
                plan.steps.push(Step::Delete { pods, strip_finalizer_first: true });
            }
            Move::Create(pods) => plan.steps.push(Step::Create(pods)),
            Move::Wait(why, until) => {
                until.into_iter().for_each(|at| plan.wake(at));
                reason = Some(why);
            }
        }
        self.remove_finalizers(plan);
        if plan.steps.is_empty() {
            plan.waiting = reason;
            if let Some(Waiting::Running { deadline: until, .. }) = &mut plan.waiting {
                *until = deadline;
            }
        }
    }

    /// Pods that were let go to be deleted, and then were not: their ends count again.
    fn track_again(&self, plan: &mut Plan) {
        let untracked = self.view.tally().untracked.iter();
        let pods: Vec<PodRef> = untracked.filter_map(|(_, name)| self.view.pod_ref(name)).collect();
        if !pods.is_empty() {
            plan.steps.push(Step::Adopt { job_uid: self.view.uid().to_owned(), pods });
        }
    }

    fn write_status(&mut self, plan: &mut Plan) {
        let mut stored = self.status.clone();
        draft::normalize(&mut stored);
        if stored == self.draft.status {
            return;
        }
        let meta = &self.view.job().metadata;
        let status = self.draft.status.clone();
        let facts = fact::of_write(self.view, &stored, &self.draft, &self.account);
        plan.steps.push(Step::WriteStatus(Box::new(StatusWrite {
            uid: self.view.uid().to_owned(),
            resource_version: meta.resource_version.clone().unwrap_or_default(),
            status,
        })));
        plan.steps.extend(self.draft.events.drain(..).map(Step::Emit));
        plan.steps.extend(facts.into_iter().map(Step::Note));
    }

    fn remove_finalizers(&mut self, plan: &mut Plan) {
        let pods = std::mem::take(&mut self.account.removals);
        if pods.is_empty() {
            return;
        }
        plan.steps.push(Step::RemoveFinalizers(pods));
        // Ignored failures are listed nowhere: they are told of when they are gone.
        let facts = fact::of_actions(&self.account, false);
        plan.steps.extend(facts.into_iter().map(Step::Note));
    }
}
