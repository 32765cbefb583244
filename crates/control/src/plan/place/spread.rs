//! Spreading pods over topology domains.

use k8s_openapi::api::core::v1::TopologySpreadConstraint;

use super::select::{Labels, Rule, Selector};
use super::terms::Term;

/// A constraint on how unevenly pods may lie.
#[derive(Clone, Debug)]
pub(super) struct Constraint {
    pub(super) term: Term,
    pub(super) skew_max: i64,
    pub(super) domains_min: Option<usize>,
    /// Whether the pod waits rather than break it.
    pub(super) is_strict: bool,
    /// Whether only nodes the pod could go to count.
    pub(super) honours_affinity: bool,
    /// Whether only nodes whose taints the pod tolerates count.
    pub(super) honours_taints: bool,
    /// Whether the pod itself counts.
    pub(super) counts_self: bool,
}

impl Constraint {
    pub(super) fn of(spec: &TopologySpreadConstraint, namespace: &str, labels: &Labels) -> Self {
        let mut selector = Selector::of_labels(spec.label_selector.as_ref());
        for key in spec.match_label_keys.iter().flatten() {
            if let Some(value) = labels.get(key) {
                selector.0.push(Rule::In(key.clone(), [value.clone()].into()));
            }
        }
        Self {
            counts_self: selector.matches(labels),
            term: Term::within(namespace, selector, &spec.topology_key),
            skew_max: i64::from(spec.max_skew),
            domains_min: spec.min_domains.and_then(|count| usize::try_from(count).ok()),
            is_strict: spec.when_unsatisfiable == "DoNotSchedule",
            honours_affinity: spec.node_affinity_policy.as_deref() != Some("Ignore"),
            honours_taints: spec.node_taints_policy.as_deref() == Some("Honor"),
        }
    }

    /// Whether one more pod in a domain that has `count` keeps the skew, given the least of all.
    pub(super) fn allows(&self, count: i64, least: i64) -> bool {
        count + i64::from(self.counts_self) - least <= self.skew_max
    }
}
