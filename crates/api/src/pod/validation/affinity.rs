//! Affinity to nodes and to other pods.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{
        Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm,
        PodAffinityTerm, WeightedPodAffinityTerm,
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};

use super::rules::list;
use crate::{
    field::{ErrorList, FieldError, Path},
    meta::{invalid, validate_label_name, validate_label_selector},
    names,
};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Says what is wrong with `affinity`.
pub(super) fn validate(affinity: &Affinity, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(node) = &affinity.node_affinity {
        errors.extend(of_node(node, &path.child("nodeAffinity")));
    }
    if let Some(near) = &affinity.pod_affinity {
        let path = path.child("podAffinity");
        errors
            .extend(terms(list(&near.required_during_scheduling_ignored_during_execution), &path));
        let weighted = list(&near.preferred_during_scheduling_ignored_during_execution);
        errors.extend(weighted_terms(weighted, &path));
    }
    if let Some(apart) = &affinity.pod_anti_affinity {
        let path = path.child("podAntiAffinity");
        errors
            .extend(terms(list(&apart.required_during_scheduling_ignored_during_execution), &path));
        let weighted = list(&apart.preferred_during_scheduling_ignored_during_execution);
        errors.extend(weighted_terms(weighted, &path));
    }
    errors
}

/// Says what is wrong with keys that are to be looked up in the pod's own labels.
pub(super) fn label_keys(
    keys: &[String],
    unlike: &[String],
    selector: Option<&LabelSelector>,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    for (field, keys) in [("matchLabelKeys", keys), ("mismatchLabelKeys", unlike)] {
        let path = path.child(field);
        if keys.is_empty() {
            continue;
        }
        if selector.is_none() {
            let why = "must not be specified when labelSelector is not set";
            errors.push(FieldError::forbidden(&path, why));
            continue;
        }
        for (at, key) in keys.iter().enumerate() {
            errors.extend(validate_label_name(key, &path.index(at)));
        }
    }
    if let Some(selector) = selector {
        errors.extend(selected_twice(keys, selector, path));
    }
    for (at, key) in keys.iter().enumerate() {
        if unlike.contains(key) {
            let why = "exists in both matchLabelKeys and mismatchLabelKeys";
            errors.push(FieldError::invalid(&path.child("matchLabelKeys").index(at), key, why));
        }
    }
    errors
}

/// A key merged into the selector appears there once; when it appears again the user named it too.
fn selected_twice(keys: &[String], selector: &LabelSelector, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let places: BTreeMap<&str, usize> =
        keys.iter().enumerate().map(|(at, key)| (key.as_str(), at)).collect();
    let labels = selector.match_labels.iter().flatten();
    let mut seen: Vec<&str> = labels.map(|(key, _)| key.as_str()).collect();
    for expression in list(&selector.match_expressions) {
        let key = expression.key.as_str();
        if let Some(at) = places.get(key)
            && seen.contains(&key)
        {
            let why = "exists in both matchLabelKeys and labelSelector";
            errors.push(FieldError::invalid(&path.index(*at), key, why));
        }
        seen.push(key);
    }
    errors
}

fn of_node(affinity: &NodeAffinity, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(required) = &affinity.required_during_scheduling_ignored_during_execution {
        errors.extend(node_selector(required, &path.child(REQUIRED)));
    }
    let preferred = list(&affinity.preferred_during_scheduling_ignored_during_execution);
    for (at, term) in preferred.iter().enumerate() {
        let path = path.child(PREFERRED).index(at);
        errors.extend(weight(term.weight, &path));
        errors.extend(node_term(&term.preference, false, &path.child("preference")));
    }
    errors
}

fn node_selector(selector: &NodeSelector, path: &Path) -> ErrorList {
    let path = path.child("nodeSelectorTerms");
    if selector.node_selector_terms.is_empty() {
        return vec![FieldError::required(&path, "must have at least one node selector term")];
    }
    let terms = selector.node_selector_terms.iter().enumerate();
    terms.flat_map(|(at, term)| node_term(term, true, &path.index(at))).collect()
}

fn node_term(term: &NodeSelectorTerm, are_values_checked: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (at, wanted) in list(&term.match_expressions).iter().enumerate() {
        let path = path.child("matchExpressions").index(at);
        errors.extend(node_expression(wanted, are_values_checked, &path));
    }
    for (at, wanted) in list(&term.match_fields).iter().enumerate() {
        errors.extend(node_field(wanted, &path.child("matchFields").index(at)));
    }
    errors
}

fn node_expression(
    wanted: &NodeSelectorRequirement,
    are_values_checked: bool,
    path: &Path,
) -> ErrorList {
    let values = list(&wanted.values);
    let values_path = path.child("values");
    let mut errors = ErrorList::new();
    match wanted.operator.as_str() {
        "In" | "NotIn" if values.is_empty() => errors.push(FieldError::required(
            &values_path,
            "must be specified when `operator` is 'In' or 'NotIn'",
        )),
        "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(FieldError::forbidden(
            &values_path,
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        )),
        "Gt" | "Lt" if values.len() != 1 => errors.push(FieldError::required(
            &values_path,
            "must be specified single value when `operator` is 'Lt' or 'Gt'",
        )),
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        other => errors.push(FieldError::invalid(
            &path.child("operator"),
            other,
            "not a valid selector operator",
        )),
    }
    errors.extend(validate_label_name(&wanted.key, &path.child("key")));
    if are_values_checked {
        for (at, value) in values.iter().enumerate() {
            errors.extend(invalid(&values_path.index(at), value, names::label_value(value)));
        }
    }
    errors
}

fn node_field(wanted: &NodeSelectorRequirement, path: &Path) -> ErrorList {
    let values = list(&wanted.values);
    let mut errors = ErrorList::new();
    match wanted.operator.as_str() {
        "In" | "NotIn" if values.len() != 1 => errors.push(FieldError::required(
            &path.child("values"),
            "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
        )),
        "In" | "NotIn" => {}
        other => errors.push(FieldError::invalid(
            &path.child("operator"),
            other,
            "not a valid selector operator",
        )),
    }
    if wanted.key == "metadata.name" {
        for (at, value) in values.iter().enumerate() {
            let path = path.child("values").index(at);
            errors.extend(invalid(&path, value, names::dns1123_subdomain(value)));
        }
    } else {
        let why = "not a valid field selector key";
        errors.push(FieldError::invalid(&path.child("key"), &wanted.key, why));
    }
    errors
}

fn weight(weight: i32, path: &Path) -> Option<FieldError> {
    let is_sound = (1..=100).contains(&weight);
    (!is_sound)
        .then(|| FieldError::invalid(&path.child("weight"), weight, "must be in the range 1-100"))
}

fn terms(terms: &[PodAffinityTerm], path: &Path) -> ErrorList {
    let path = path.child(REQUIRED);
    terms.iter().enumerate().flat_map(|(at, it)| term(it, &path.index(at))).collect()
}

fn weighted_terms(terms: &[WeightedPodAffinityTerm], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (at, weighted) in terms.iter().enumerate() {
        let path = path.child(PREFERRED).index(at);
        errors.extend(weight(weighted.weight, &path));
        errors.extend(term(&weighted.pod_affinity_term, &path.child("podAffinityTerm")));
    }
    errors
}

fn term(term: &PodAffinityTerm, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let selectors =
        [("labelSelector", &term.label_selector), ("namespaceSelector", &term.namespace_selector)];
    for (field, selector) in selectors {
        if let Some(selector) = selector {
            errors.extend(validate_label_selector(selector, &path.child(field)));
        }
    }
    for name in list(&term.namespaces) {
        errors.extend(invalid(&path.child("namespace"), name, names::dns1123_label(name)));
    }
    errors.extend(label_keys(
        list(&term.match_label_keys),
        list(&term.mismatch_label_keys),
        term.label_selector.as_ref(),
        path,
    ));
    let key_path = path.child("topologyKey");
    if term.topology_key.is_empty() {
        errors.push(FieldError::required(&key_path, "can not be empty"));
    }
    errors.extend(validate_label_name(&term.topology_key, &key_path));
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::errors_of;

    fn check(affinity: Value, want: &[&str]) {
        let spec = json!({"affinity": affinity, "containers": [{"name": "c", "image": "i"}]});
        let got = errors_of(spec);
        assert_eq!(got.len(), want.len(), "{got:#?}");
        for (got, want) in got.iter().zip(want) {
            assert!(got.starts_with(want), "{got}\n{want}");
        }
    }

    #[test]
    fn node_affinity_is_refused_in_upstream_words() {
        let at = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
        let required = |terms: Value| json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}});
        check(
            required(json!([])),
            &[&format!("{at}: Required value: must have at least one node selector term")],
        );
        check(
            required(json!([
                {"matchExpressions": [
                    {"key": "a", "operator": "In"},
                    {"key": "a", "operator": "Gt", "values": ["1", "2"]},
                    {"key": "a", "operator": "Exists", "values": ["1"]},
                    {"key": "a", "operator": "Near"},
                ]},
                {"matchFields": [{"key": "metadata.uid", "operator": "In", "values": ["a", "b"]}]},
            ])),
            &[
                &format!(
                    "{at}[0].matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"
                ),
                &format!(
                    "{at}[0].matchExpressions[1].values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'"
                ),
                &format!(
                    "{at}[0].matchExpressions[2].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                ),
                &format!(
                    "{at}[0].matchExpressions[3].operator: Invalid value: \"Near\": not a valid selector operator"
                ),
                &format!(
                    "{at}[1].matchFields[0].values: Required value: must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
                ),
                &format!(
                    "{at}[1].matchFields[0].key: Invalid value: \"metadata.uid\": not a valid field selector key"
                ),
            ],
        );
        check(
            json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 101, "preference": {}}]}}),
            &[
                "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 101: must be in the range 1-100",
            ],
        );
    }

    #[test]
    fn pod_affinity_needs_a_topology() {
        let at = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]";
        let required = |term: Value| json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
        check(required(json!({"topologyKey": "zone", "labelSelector": {}})), &[]);
        check(
            required(json!({"topologyKey": "", "namespaces": ["A"]})),
            &[
                &format!("{at}.namespace: Invalid value: \"A\": a lowercase RFC 1123 label"),
                &format!("{at}.topologyKey: Required value: can not be empty"),
                &format!("{at}.topologyKey: Invalid value: \"\": name part must be non-empty"),
                &format!("{at}.topologyKey: Invalid value: \"\": name part must consist of"),
            ],
        );
        check(
            required(json!({"topologyKey": "z", "matchLabelKeys": ["a"]})),
            &[&format!(
                "{at}.matchLabelKeys: Forbidden: must not be specified when labelSelector is not set"
            )],
        );
        check(
            required(
                json!({"topologyKey": "z", "labelSelector": {}, "matchLabelKeys": ["a"], "mismatchLabelKeys": ["a"]}),
            ),
            &[&format!(
                "{at}.matchLabelKeys[0]: Invalid value: \"a\": exists in both matchLabelKeys and mismatchLabelKeys"
            )],
        );
        check(
            json!({"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 0, "podAffinityTerm": {"topologyKey": "z"}}]}}),
            &[
                "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 0: must be in the range 1-100",
            ],
        );
    }
}
