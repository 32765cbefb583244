//! What becomes of the roles and bindings of a new cluster in one that has been there before: a
//! later version adds what was not in them.

use serde_json::Value;

use super::missing;
use crate::{
    json::{list, object_mut},
    strategy::Json,
};

/// Who sets this to `false` at a role or a binding keeps it as it is.
const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// A role or binding with everything that `wanted` has and it has not; nothing when there is
/// nothing to add, or when it must stay as it is. Nothing is ever taken away. The rules of a role
/// that gathers those of others follow from them.
pub fn renewed(existing: &Json, wanted: &Json) -> Option<Json> {
    let annotation =
        existing.get("metadata")?.get("annotations").and_then(|all| all.get(AUTO_UPDATE));
    if annotation.and_then(Value::as_str) == Some("false") {
        return None;
    }
    let mut renewed = existing.clone();
    for member in ["labels", "annotations"] {
        let wanted = wanted.get("metadata").and_then(|meta| meta.get(member));
        for (key, value) in wanted.and_then(Value::as_object).into_iter().flatten() {
            let known = object_mut(object_mut(&mut renewed, "metadata"), member);
            known.entry(key).or_insert_with(|| value.clone());
        }
    }
    let has = |name: &str| existing.get(name).is_some_and(|value| !value.is_null());
    if !has("aggregationRule") {
        append(
            &mut renewed,
            "rules",
            missing(list(existing, &["rules"]), list(wanted, &["rules"])),
        );
    }
    append(&mut renewed, "subjects", others(existing, wanted, &["subjects"]));
    let selectors = others(existing, wanted, &["aggregationRule", "clusterRoleSelectors"]);
    if !selectors.is_empty() {
        let rule = object_mut(&mut renewed, "aggregationRule");
        append(rule, "clusterRoleSelectors", selectors);
    }
    (renewed != *existing).then_some(renewed)
}

/// The elements of a list that are in `wanted` alone.
fn others(existing: &Json, wanted: &Json, path: &[&str]) -> Vec<Value> {
    let known = list(existing, path);
    list(wanted, path).iter().filter(|it| !known.contains(it)).cloned().collect()
}

fn append(object: &mut Json, member: &str, more: Vec<Value>) {
    if more.is_empty() {
        return;
    }
    match object.get_mut(member) {
        Some(Value::Array(items)) => items.extend(more),
        _ => drop(object.insert(member.to_owned(), more.into())),
    }
}

#[cfg(test)]
mod tests {
    use std::slice;

    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Json {
        value.as_object().unwrap().clone()
    }

    fn rule(resources: &[&str]) -> Value {
        json!({"apiGroups": [""], "resources": resources, "verbs": ["get"]})
    }

    #[test]
    fn roles_get_what_is_missing_and_keep_what_they_have() {
        let wanted = object(json!({
            "metadata": {"name": "r", "labels": {"a": "1", "b": "1"}},
            "rules": [rule(&["pods", "nodes"])],
        }));
        assert_eq!(renewed(&wanted, &wanted), None);
        let existing = object(json!({
            "metadata": {"name": "r", "uid": "u", "labels": {"a": "mine"}},
            "rules": [rule(&["secrets", "pods"])],
        }));
        let want = object(json!({
            "metadata": {"name": "r", "uid": "u", "labels": {"a": "mine", "b": "1"}},
            "rules": [rule(&["secrets", "pods"]), rule(&["nodes"])],
        }));
        assert_eq!(renewed(&existing, &wanted), Some(want.clone()));
        assert_eq!(renewed(&want, &wanted), None, "once is enough");
        let mut emptied = existing;
        emptied.insert("rules".to_owned(), Value::Null);
        let got = renewed(&emptied, &wanted).unwrap();
        assert_eq!(got["rules"], json!([rule(&["nodes"]), rule(&["pods"])]));
    }

    #[test]
    fn who_says_so_keeps_a_role_as_it_is() {
        let wanted = object(json!({"metadata": {"name": "r"}, "rules": [rule(&["pods"])]}));
        for (says, is_kept) in [("false", true), ("true", false), ("no", false)] {
            let annotations = json!({AUTO_UPDATE: says});
            let meta = json!({"name": "r", "annotations": annotations});
            let existing = object(json!({"metadata": meta, "rules": []}));
            assert_eq!(renewed(&existing, &wanted).is_none(), is_kept, "{says}");
        }
    }

    #[test]
    fn bindings_get_subjects_and_sums_get_selectors() {
        let subject = |name: &str| json!({"kind": "Group", "name": name});
        let binding =
            |subjects: &[Value]| object(json!({"metadata": {"name": "b"}, "subjects": subjects}));
        let (ann, ops) = (subject("ann"), subject("ops"));
        let got = renewed(&binding(slice::from_ref(&ann)), &binding(slice::from_ref(&ops)));
        assert_eq!(got, Some(binding(&[ann, ops])));
        let sum = |labels: &[&str], rules: Value| {
            let selector = |label: &&str| json!({"matchLabels": {*label: "true"}});
            let selectors: Vec<Value> = labels.iter().map(selector).collect();
            object(json!({
                "metadata": {"name": "s"},
                "aggregationRule": {"clusterRoleSelectors": selectors},
                "rules": rules,
            }))
        };
        let wanted = sum(&["x", "y"], json!([rule(&["pods"])]));
        let got = renewed(&sum(&["z", "x"], json!([])), &wanted);
        assert_eq!(got, Some(sum(&["z", "x", "y"], json!([]))), "rules come from others");
    }
}
