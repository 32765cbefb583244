//! What the API takes although it cannot be meant: expressions that do not compile never match.

use super::{JobSetSpec, pattern_fault};
use crate::field::{ErrorList, FieldError, Path};

/// Points at what cannot be meant.
pub(super) fn errors(spec: &JobSetSpec) -> ErrorList {
    let path = Path::new("spec").child("failurePolicy").child("rules");
    let rules = spec.failure_policy.iter().flat_map(|policy| &policy.rules).enumerate();
    rules
        .flat_map(|(at, rule)| {
            let path = path.index(at).child("onJobFailureMessagePatterns");
            let patterns = rule.on_job_failure_message_patterns.iter().enumerate();
            patterns.filter_map(move |(at, pattern)| {
                let why = pattern_fault(pattern)?;
                let why = format!("must be a regular expression, or it never matches: {why}");
                Some(FieldError::invalid(&path.index(at), pattern, &why))
            })
        })
        .collect()
}
