//! Which rule of its failure policy a JobSet answers a failed Job with, and why that one.

use lockstep_api::jobset::{Action, FailurePolicyRule};

use super::{Failure, JobSet};
use crate::run::{job::Why, member::Member};

impl JobSet {
    /// The rule that answers the failure of a Job, and its place.
    pub(crate) fn rule_for(&self, job: &str) -> Option<(usize, &FailurePolicyRule)> {
        let failure = self.history.failure(job)?;
        let Why { reason, message } = &failure.why;
        let rules = self.spec.failure_policy.iter().flat_map(|policy| &policy.rules);
        rules.enumerate().find(|(_, rule)| rule.matches(&failure.group, reason, message))
    }

    /// What answers the failure of a Job: `rule r says FailJob, for replicated job workers`.
    /// Nothing where there is no policy, or nobody told what the Job failed of.
    pub(crate) fn answer_words(&self, job: &str) -> Option<String> {
        self.spec.failure_policy.as_ref()?;
        let failure = self.history.failure(job)?;
        Some(match self.rule_for(job) {
            Some((_, rule)) => {
                let (name, action) = (&rule.name, rule.action.as_str());
                format!("rule {name} says {action}, {}", why_matches(rule, failure))
            }
            None => format!("no rule matches, so {}", Action::RestartJobSet.as_str()),
        })
    }

    /// Whether a Job that failed is left so, by the rule that answers it.
    pub(crate) fn leaves(&self, job: &str, member: &Member) -> bool {
        let rule = self.rule_for(job).map(|(_, rule)| rule.action);
        rule == Some(Action::FailJob) && self.is_current(member) && !self.has_ended()
    }

    /// Whether a Job is of the attempt that counts.
    pub(crate) fn is_current(&self, member: &Member) -> bool {
        let index = usize::try_from(member.index).unwrap_or(usize::MAX);
        let counts = self.counts(&member.group);
        let alone = counts.and_then(|counts| counts.job_restarts.get(index)).copied();
        member.attempt >= self.status.restarts && member.alone >= alone.unwrap_or_default()
    }
}

/// Why a rule matches a failure: everything it asks for.
pub(crate) fn why_matches(rule: &FailurePolicyRule, failure: &Failure) -> String {
    let mut parts = Vec::new();
    if !rule.on_job_failure_reasons.is_empty() {
        parts.push(format!("for the reason {}", failure.why.reason));
    }
    if !rule.on_job_failure_message_patterns.is_empty() {
        let patterns = rule.on_job_failure_message_patterns.iter();
        let patterns: Vec<String> = patterns.map(|pattern| format!("{pattern:?}")).collect();
        parts.push(format!("for a message like {}", patterns.join(" or ")));
    }
    if !rule.target_replicated_jobs.is_empty() {
        parts.push(format!("for replicated job {}", failure.group));
    }
    if parts.is_empty() { "which matches every failure".to_owned() } else { parts.join(" and ") }
}
