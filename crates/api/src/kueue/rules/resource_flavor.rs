//! What a ResourceFlavor may look like.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Taint, Toleration};

use crate::{
    custom::published::{EFFECTS_RULE, KEYLESS_RULE, OPERATOR_RULE, SECONDS_RULE, VALUE_RULE},
    field::{ErrorKind, ErrorList, FieldError, Path},
    json::at,
    kinds::{view, without_absent},
    kueue::{ResourceFlavorSpec, wait},
    meta, names,
    strategy::Json,
};

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// What the definition has as expressions.
pub(in crate::kueue) fn expressions(object: &Json, old: Option<&Json>) -> ErrorList {
    let path = Path::new("spec");
    let spec: ResourceFlavorSpec = view(object, "spec", &mut ErrorList::new());
    let mut errors = ErrorList::new();
    if spec.topology_name.is_some() && spec.node_labels.is_empty() {
        let why = "at least one nodeLabel is required when topology is set";
        errors.push(FieldError::invalid_unshown(&path, why));
    }
    let before = old.and_then(|old| old.get("spec"));
    let said = |value| without_absent(value);
    if old.is_some_and(|old| at(old, &["spec", "topologyName"]).is_some())
        && before.map(said) != object.get("spec").map(said)
    {
        let why = "resourceFlavorSpec are immutable when topologyName is set";
        errors.push(FieldError::invalid_unshown(&path, why));
    }
    if spec.node_taints.iter().any(|taint| !EFFECTS.contains(&taint.effect.as_str())) {
        errors.push(FieldError::invalid_unshown(&path.child("nodeTaints"), EFFECTS_RULE));
    }
    errors.extend(toleration_rules(&spec.tolerations, &path.child("tolerations")));
    errors
}

/// What a webhook checks.
pub(in crate::kueue) fn webhook(object: &Json, _old: Option<&Json>) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec: ResourceFlavorSpec = view(object, "spec", &mut errors);
    let path = Path::new("spec");
    let labels = spec.node_labels.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    errors.extend(meta::validate_labels(labels, &path.child("nodeLabels")));
    errors.extend(validate_taints(&spec.node_taints, &path.child("nodeTaints")));
    errors.extend(super::validate_tolerations(&spec.tolerations, &path.child("tolerations")));
    errors.extend(wait::validate(object));
    errors
}

/// Whether a rule holds for a toleration.
type Holds<'a> = &'a dyn Fn(&Toleration) -> bool;

/// The rules of lists of tolerations: what is wrong with any of them is said once.
pub(super) fn toleration_rules(tolerations: &[Toleration], path: &Path) -> ErrorList {
    let is = |field: &Option<String>, value: &str| field.as_deref() == Some(value);
    let rules: [(&str, Holds<'_>); 5] = [
        (KEYLESS_RULE, &|one| one.key.is_some() || is(&one.operator, "Exists")),
        (SECONDS_RULE, &|one| one.toleration_seconds.is_none() || is(&one.effect, "NoExecute")),
        (OPERATOR_RULE, &|one| {
            one.operator.as_deref().is_none_or(|it| ["Equal", "Exists"].contains(&it))
        }),
        (VALUE_RULE, &|one| !is(&one.operator, "Exists") || one.value.is_none()),
        (EFFECTS_RULE, &|one| one.effect.as_deref().is_none_or(|it| EFFECTS.contains(&it))),
    ];
    rules
        .into_iter()
        .filter(|(_, holds)| !tolerations.iter().all(holds))
        .map(|(why, _)| FieldError::invalid_unshown(path, why))
        .collect()
}

fn validate_taints(taints: &[Taint], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for (at, taint) in taints.iter().enumerate() {
        let path = path.index(at);
        errors.extend(meta::validate_label_name(&taint.key, &path.child("key")));
        let value = taint.value.as_deref().unwrap_or_default();
        let faults = names::label_value(value);
        if !faults.is_empty() {
            let why = faults.join(";");
            errors.push(FieldError::invalid(&path.child("value"), value, &why));
        }
        if !seen.insert((&taint.key, &taint.effect)) {
            let shown = FieldError::duplicate(&path, taint);
            let body = format!("{}: taints must be unique by key and effect pair", shown.body);
            errors.push(FieldError { kind: ErrorKind::Duplicate, path, body });
        }
    }
    errors
}
