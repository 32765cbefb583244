//! The words in which a scheduler says that a pod fits nowhere.

use std::collections::BTreeMap;

use super::filter::Diagnosis;

/// `0/3 nodes are available: 1 Insufficient cpu, 2 Too many pods. preemption: ...`
pub(super) fn unschedulable(
    node_count: usize,
    diagnosis: &Diagnosis,
    preemption: Option<&str>,
) -> String {
    let reasons = diagnosis.values().flat_map(|reject| reject.reasons.iter().map(String::as_str));
    let fit = fit_error(node_count, reasons);
    match preemption {
        Some(why) => format!("{fit} preemption: {why}"),
        None => fit,
    }
}

/// `0/3 nodes are available: 1 Insufficient cpu, 2 Too many pods.`
pub(super) fn fit_error<'a>(node_count: usize, reasons: impl Iterator<Item = &'a str>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in reasons {
        *counts.entry(reason).or_insert(0) += 1;
    }
    let mut parts: Vec<String> =
        counts.into_iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    // Sorted as text, count first: so do those who match on the message.
    parts.sort();
    if parts.is_empty() {
        return format!("0/{node_count} nodes are available:");
    }
    format!("0/{node_count} nodes are available: {}.", parts.join(", "))
}
