//! Which failures a rule of a failure policy is about.

use super::{Action, FailurePolicyRule};
use crate::re2::Pattern;

impl FailurePolicyRule {
    /// Whether it is about a Job of this replicated job that failed with this reason and message.
    /// Who asks more than once keeps the patterns: [`FailurePolicyRule::matches_with`].
    pub fn matches(&self, replicated_job: &str, reason: &str, message: &str) -> bool {
        self.matches_with(&MessagePatterns::of(self), replicated_job, reason, message)
    }

    /// As [`FailurePolicyRule::matches`], with its own patterns, compiled before.
    ///
    /// An action that this code does not know the meaning of never decides.
    pub fn matches_with(
        &self,
        patterns: &MessagePatterns,
        replicated_job: &str,
        reason: &str,
        message: &str,
    ) -> bool {
        let is_in =
            |list: &[String], text: &str| list.is_empty() || list.iter().any(|one| one == text);
        self.action != Action::Unknown
            && is_in(&self.on_job_failure_reasons, reason)
            && is_in(&self.target_replicated_jobs, replicated_job)
            && (self.on_job_failure_message_patterns.is_empty() || patterns.is_found_in(message))
    }
}

/// The message patterns of a rule, compiled. Those that do not compile are left out.
#[derive(Clone, Debug, Default)]
pub struct MessagePatterns {
    patterns: Vec<Pattern>,
}

impl MessagePatterns {
    /// Those of a rule.
    pub fn of(rule: &FailurePolicyRule) -> Self {
        let patterns = rule.on_job_failure_message_patterns.iter();
        Self { patterns: patterns.filter_map(|pattern| Pattern::new(pattern).ok()).collect() }
    }

    /// Whether one of them is found in a message.
    fn is_found_in(&self, message: &str) -> bool {
        self.patterns.iter().any(|pattern| pattern.is_found_in(message))
    }
}

/// Why an expression does not compile, in one line.
pub fn pattern_fault(pattern: &str) -> Option<String> {
    Pattern::new(pattern).err().map(|fault| fault.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(reasons: &[&str], patterns: &[&str], targets: &[&str]) -> FailurePolicyRule {
        let texts = |list: &[&str]| list.iter().map(ToString::to_string).collect();
        FailurePolicyRule {
            on_job_failure_reasons: texts(reasons),
            on_job_failure_message_patterns: texts(patterns),
            target_replicated_jobs: texts(targets),
            ..FailurePolicyRule::default()
        }
    }

    #[test]
    fn a_rule_matches_when_all_it_asks_for_is_so() {
        let cases = [
            ("asks for nothing", rule(&[], &[], &[]), true),
            ("one of the reasons", rule(&["A", "R"], &[], &[]), true),
            ("another reason", rule(&["A"], &[], &[]), false),
            ("one of the targets", rule(&[], &[], &["w", "x"]), true),
            ("another target", rule(&["R"], &[], &["x"]), false),
            ("found in the middle", rule(&[], &["exit code 4."], &[]), true),
            ("not found", rule(&[], &["^exit"], &[]), false),
            ("as Go reads it", rule(&[], &[r#"{"exit": 42}|\Qcode 42\E"#], &[]), true),
            ("one does not compile", rule(&[], &["(", "42$"], &[]), true),
            ("none compiles", rule(&[], &["("], &[]), false),
        ];
        for (name, rule, want) in cases {
            assert_eq!(rule.matches("w", "R", "failed with exit code 42"), want, "{name}");
        }
        let unknown = FailurePolicyRule { action: Action::Unknown, ..rule(&[], &[], &[]) };
        assert!(!unknown.matches("w", "R", ""));
    }
}
