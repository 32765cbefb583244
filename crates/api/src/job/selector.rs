//! How a Job finds its pods: labels put on the template when the Job is created, and a selector for
//! its own uid.

use std::collections::BTreeMap;

use k8s_openapi::api::batch::v1::JobSpec;
use serde_json::Value;

use crate::{
    field::{ErrorList, FieldError, Path},
    json::{at, flag, object_mut, set_default, text},
    labels::{CONTROLLER_UID, JOB_NAME, LEGACY_CONTROLLER_UID, LEGACY_JOB_NAME},
    selector::LabelSelector,
    strategy::Json,
};

/// Labels the template and makes the selector, unless the user does that. What the user has set is
/// kept, and refused later where it does not fit.
pub(super) fn generate(object: &mut Json, uid: &str) {
    if flag(object, &["spec", "manualSelector"]) {
        return;
    }
    let name = text(object, &["metadata", "name"]).to_owned();
    let spec = object_mut(object, "spec");
    let template = object_mut(spec, "template");
    let labels = object_mut(object_mut(template, "metadata"), "labels");
    for (label, value) in [
        (LEGACY_JOB_NAME, name.as_str()),
        (JOB_NAME, &name),
        (LEGACY_CONTROLLER_UID, uid),
        (CONTROLLER_UID, uid),
    ] {
        set_default(labels, label, value);
    }
    let selected = object_mut(object_mut(spec, "selector"), "matchLabels");
    set_default(selected, CONTROLLER_UID, uid);
}

/// A Job without labels gets those of its template.
pub(super) fn copy_labels(object: &mut Json) {
    let is_bare = at(object, &["metadata", "labels"])
        .and_then(Value::as_object)
        .is_none_or(|labels| labels.is_empty());
    if is_bare
        && let Some(labels) = at(object, &["spec", "template", "metadata", "labels"]).cloned()
    {
        object_mut(object, "metadata").insert("labels".to_owned(), labels);
    }
}

/// Says what is wrong with a generated selector and the labels that go with it. Jobs from before
/// the labels had a prefix need only the old ones.
pub(super) fn validate(object: &Json, spec: &JobSpec, needs_prefixed: bool) -> ErrorList {
    let mut errors = ErrorList::new();
    if spec.manual_selector == Some(true) || spec.selector.is_none() {
        return errors;
    }
    let name = text(object, &["metadata", "name"]);
    let uid = text(object, &["metadata", "uid"]);
    if uid.is_empty() {
        errors.push(FieldError::required(&Path::new("metadata").child("uid"), ""));
    }
    let mut expected = vec![(LEGACY_CONTROLLER_UID, uid), (LEGACY_JOB_NAME, name)];
    if needs_prefixed {
        expected.extend([(CONTROLLER_UID, uid), (JOB_NAME, name)]);
    }
    let labels = template_labels(spec);
    let path = Path::new("spec").child("template").child("metadata").child("labels");
    for (label, wanted) in &expected {
        let why = format!("must be '{wanted}'");
        match labels.get(*label) {
            None => errors.push(FieldError::required(&path.key(label), &why)),
            Some(value) if value != wanted => {
                errors.push(FieldError::invalid(&path.key(label), labels, &why));
            }
            Some(_) => {}
        }
    }
    if let Ok(selector) = LabelSelector::from_meta(spec.selector.as_ref()) {
        let value_of = |key: &str| expected.iter().find(|(k, _)| *k == key).map(|(_, v)| *v);
        if !selector.matches(value_of) {
            let path = Path::new("spec").child("selector");
            let why = "`selector` not auto-generated";
            errors.push(FieldError::invalid(&path, &spec.selector, why));
        }
    }
    errors
}

/// The labels pods get from the template.
pub(super) fn template_labels(spec: &JobSpec) -> &BTreeMap<String, String> {
    static NONE: BTreeMap<String, String> = BTreeMap::new();
    spec.template.metadata.as_ref().and_then(|meta| meta.labels.as_ref()).unwrap_or(&NONE)
}
