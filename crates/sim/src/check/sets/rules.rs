//! What the failure policy of a JobSet says about a Job that failed, and when a set has ended.

use std::collections::BTreeSet;

use lockstep_api::{
    jobset::{Action, FailurePolicyRule, JobSetStatus, SuccessOperator},
    labels::jobset::RESTARTS_MAX_PREFIX,
};
use lockstep_store::Revision;

use super::{Checker, JobBook, Place, SetBook, Violation, ended, ensure, has, restarts};

/// What is to be done about a Job that failed.
pub(super) fn action(set: &SetBook, place: &Place, job: &JobBook) -> Action {
    if set.set.spec.failure_policy.is_none() {
        return Action::FailJobSet;
    }
    rule(set, place, job).map_or(Action::RestartJobSet, |rule| rule.action)
}

/// The rule that decides about a Job that failed.
fn rule<'a>(set: &'a SetBook, place: &Place, job: &JobBook) -> Option<&'a FailurePolicyRule> {
    let policy = set.set.spec.failure_policy.as_ref()?;
    policy.rules.iter().find(|rule| is_about(rule, place, job))
}

/// Whether a rule has restarted something as often as it may.
fn is_spent(set: &SetBook, rule: &FailurePolicyRule) -> bool {
    let notes = set.set.metadata.annotations.as_ref();
    let most = notes.and_then(|all| all.get(&format!("{RESTARTS_MAX_PREFIX}{}", rule.name)));
    let most: Option<i32> = most.and_then(|most| most.parse().ok());
    let kept = set.status.lockstep.as_ref();
    let used = kept.and_then(|kept| kept.rule_restarts.get(&rule.name).copied());
    most.is_some_and(|most| used.unwrap_or_default() >= most)
}

fn is_about(rule: &FailurePolicyRule, place: &Place, job: &JobBook) -> bool {
    let conditions = job.status.conditions.iter().flatten();
    let mut failed = conditions.filter(|it| it.type_ == "Failed" && it.status == "True");
    let Some(failed) = failed.next() else { return false };
    let reason = failed.reason.clone().unwrap_or_default();
    let message = failed.message.as_deref().unwrap_or_default();
    let is_in = |list: &[String], it: &str| list.is_empty() || list.iter().any(|one| one == it);
    let patterns = &rule.on_job_failure_message_patterns;
    is_in(&rule.on_job_failure_reasons, &reason)
        && is_in(&rule.target_replicated_jobs, &place.group)
        && (patterns.is_empty() || patterns.iter().any(|pattern| is_found(pattern, message)))
}

/// Whether one of the expressions that are drawn is found.
fn is_found(pattern: &str, message: &str) -> bool {
    match pattern {
        "limit$" => message.ends_with("limit"),
        "dead" => message.contains("dead"),
        _ => false,
    }
}

impl Checker {
    /// Of each Job that is remembered to have ended, it is so.
    pub(super) fn check_ended(
        &self,
        uid: &str,
        set: &SetBook,
        new: &JobSetStatus,
    ) -> Result<(), Violation> {
        let is_over = has(new, "Completed") || has(new, "Failed");
        for group in &set.set.spec.replicated_jobs {
            for (is_complete, word) in [(true, "Complete"), (false, "Failed")] {
                let known = set.ended(&group.name, is_complete);
                for index in ended(new, &group.name, is_complete).difference(&known) {
                    let is_so = self.current(uid, set).any(|(place, job)| {
                        let is_it = *place.group == *group.name && place.index == *index;
                        let is_left = is_over || action(set, place, job) == Action::FailJob;
                        is_it && job.has(word) && (is_complete || is_left)
                    });
                    ensure(is_so, || {
                        let (set, group) = (&set.name, &group.name);
                        format!("set {set} says that Job {index} of {group} is {word}")
                    })?;
                }
            }
        }
        Ok(())
    }

    /// A set is said to be complete.
    pub(super) fn check_completed(
        &self,
        uid: &str,
        set: &SetBook,
        seen: Revision,
    ) -> Result<(), Violation> {
        let spec = &set.set.spec;
        let policy = spec.success_policy.clone().unwrap_or_default();
        let targets = &policy.target_replicated_jobs;
        let is_target = |name: &str| targets.is_empty() || targets.iter().any(|one| one == name);
        let done: BTreeSet<(&str, usize)> = self
            .current(uid, set)
            .filter(|(place, job)| job.has("Complete") && is_target(&place.group))
            .map(|(place, _)| (&*place.group, place.index))
            .collect();
        let all = spec.replicated_jobs.iter().filter(|job| is_target(&job.name));
        let all: i32 = all.map(|job| job.replicas).sum();
        let wanted = match policy.operator {
            SuccessOperator::Any => 1,
            SuccessOperator::All | SuccessOperator::Unknown => {
                usize::try_from(all).unwrap_or_default()
            }
        };
        ensure(done.len() >= wanted, || {
            format!("set {} is complete with {} of {wanted} Jobs", set.name, done.len())
        })?;
        // A failure that was known comes first, unless it is to be left alone.
        let failed = self.current(uid, set).find(|(place, job)| {
            let is_known = job.failed_at.is_some_and(|at| at <= seen);
            is_known && !job.is_gone && action(set, place, job) != Action::FailJob
        });
        ensure(failed.is_none(), || {
            let job = failed.map(|(_, job)| &*job.name).unwrap_or_default();
            format!("set {} is complete although Job {job} has failed", set.name)
        })
    }

    /// A set is said to have failed.
    pub(super) fn check_failed(
        &self,
        uid: &str,
        set: &SetBook,
        new: &JobSetStatus,
    ) -> Result<(), Violation> {
        let condition = new.conditions.iter().find(|it| it.type_ == "Failed");
        let reason = condition.map(|it| it.reason.as_str()).unwrap_or_default();
        let failed = || self.current(uid, set).filter(|(_, job)| job.has("Failed"));
        let actions: Vec<Action> = failed().map(|(place, job)| action(set, place, job)).collect();
        let is_spent = failed().any(|(place, job)| {
            let rule = rule(set, place, job);
            rule.is_some_and(|rule| rule.action != Action::FailJobSet && is_spent(set, rule))
        });
        let is_limited = |action: &Action| {
            [Action::RestartJobSet, Action::RestartJob, Action::RestartReplicatedJob]
                .contains(action)
        };
        let policy = set.set.spec.failure_policy.as_ref();
        let is_right = match reason {
            "FailedJobs" if policy.is_none() => !actions.is_empty(),
            "FailedJobs" => actions.contains(&Action::FailJob),
            "FailJobSetFailurePolicyAction" => {
                policy.is_some() && actions.contains(&Action::FailJobSet)
            }
            "ReachedMaxRestarts" => {
                let most = policy.map(|policy| i64::from(policy.max_restarts));
                let is_enough = most.is_some_and(|most| restarts::counted(&set.status) >= most);
                is_spent || (actions.iter().any(is_limited) && is_enough)
            }
            _ => false,
        };
        ensure(is_right, || format!("set {} fails by {reason}, but not so", set.name))
    }
}
