//! Kinds of nodes, told by labels they all have.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{NodeSelectorTerm, PodSpec};

use super::select::NodeTerm;

/// Whether pods may run on nodes that have `labels`, as far as what they ask of nodes speaks of the
/// labels `keys`. What they ask of other labels may be true of some nodes of the kind.
pub(crate) fn may_run_on(
    spec: &PodSpec,
    labels: &BTreeMap<String, String>,
    keys: &BTreeSet<&str>,
) -> bool {
    let selector = spec.node_selector.iter().flatten();
    let mut asked = selector.filter(|(key, _)| keys.contains(key.as_str()));
    if !asked.all(|(key, value)| labels.get(key) == Some(value)) {
        return false;
    }
    let affinity = spec.affinity.as_ref().and_then(|it| it.node_affinity.as_ref());
    let required =
        affinity.and_then(|it| it.required_during_scheduling_ignored_during_execution.as_ref());
    let Some(required) = required else { return true };
    required.node_selector_terms.iter().any(|term| {
        let rules = term.match_expressions.iter().flatten();
        let rules: Vec<_> =
            rules.filter(|rule| keys.contains(rule.key.as_str())).cloned().collect();
        // A term that says nothing of these labels is met by some node or other.
        let about = NodeSelectorTerm { match_expressions: Some(rules), match_fields: None };
        NodeTerm::of(&about).is_none_or(|term| term.matches("", labels))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_labels_of_the_kind_count() {
        let labels = BTreeMap::from([("type".to_owned(), "spot".to_owned())]);
        let keys = BTreeSet::from(["type"]);
        let affinity = |terms: serde_json::Value| {
            json!({"containers": [], "affinity": {"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}})
        };
        let rule = |key: &str, value: &str| json!({"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]});
        let cases = [
            (json!({"containers": []}), true),
            (json!({"containers": [], "nodeSelector": {"type": "spot", "zone": "a"}}), true),
            (json!({"containers": [], "nodeSelector": {"type": "demand"}}), false),
            (affinity(json!([rule("type", "spot")])), true),
            (affinity(json!([rule("type", "demand")])), false),
            (affinity(json!([rule("type", "demand"), rule("zone", "a")])), true),
        ];
        for (spec, want) in cases {
            let pod: PodSpec = serde_json::from_value(spec.clone()).unwrap();
            assert_eq!(may_run_on(&pod, &labels, &keys), want, "{spec}");
        }
    }
}
