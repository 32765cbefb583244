//! Which failures a rule of a failure policy is about.

use regex::Regex;

use super::{Action, FailurePolicyRule};

impl FailurePolicyRule {
    /// Whether it is about a Job of this replicated job that failed with this reason and message.
    ///
    /// Expressions that do not compile are skipped, and an action that this code does not know the
    /// meaning of never decides.
    pub fn matches(&self, replicated_job: &str, reason: &str, message: &str) -> bool {
        let is_in =
            |list: &[String], text: &str| list.is_empty() || list.iter().any(|one| one == text);
        let patterns = &self.on_job_failure_message_patterns;
        self.action != Action::Unknown
            && is_in(&self.on_job_failure_reasons, reason)
            && is_in(&self.target_replicated_jobs, replicated_job)
            && (patterns.is_empty() || patterns.iter().any(|pattern| is_found(pattern, message)))
    }
}

/// Why an expression does not compile, in one line.
pub fn pattern_fault(pattern: &str) -> Option<String> {
    let error = Regex::new(pattern).err()?;
    let text = error.to_string();
    // The last line says what; those before draw where.
    let last = text.lines().last().unwrap_or_default();
    Some(last.trim_start_matches("error: ").to_owned())
}

/// Whether an expression is found in a message.
fn is_found(pattern: &str, message: &str) -> bool {
    Regex::new(pattern).is_ok_and(|regex| regex.is_match(message))
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
