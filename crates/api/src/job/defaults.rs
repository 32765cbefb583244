//! What a Job leaves out.

use serde_json::Value;

use crate::{
    json::{object_mut, set_default, text},
    pod::fill_pod_spec,
    strategy::Json,
};

/// Fills in a Job. Its labels are filled in later, when those of its template are complete.
pub(super) fn fill(object: &mut Json) {
    let spec = object_mut(object, "spec");
    let is_set = |spec: &Json, field: &str| spec.get(field).is_some_and(|value| !value.is_null());
    if !is_set(spec, "completions") && !is_set(spec, "parallelism") {
        set_default(spec, "completions", 1);
    }
    set_default(spec, "parallelism", 1);
    // With a limit per index the limit of the whole Job must never be reached first.
    let limit = if is_set(spec, "backoffLimitPerIndex") { i32::MAX } else { 6 };
    set_default(spec, "backoffLimit", limit);
    set_default(spec, "completionMode", "NonIndexed");
    set_default(spec, "suspend", false);
    let has_policy = is_set(spec, "podFailurePolicy");
    let replacement = if has_policy { "Failed" } else { "TerminatingOrFailed" };
    set_default(spec, "podReplacementPolicy", replacement);
    set_default(spec, "manualSelector", false);
    fill_condition_patterns(spec);
    fill_pod_spec(object_mut(object_mut(spec, "template"), "spec"));
}

/// Fills in the template of Jobs of a CronJob: what is the Job's own is filled in with each Job.
pub(super) fn fill_template(template: &mut Json) {
    let spec = object_mut(template, "spec");
    fill_condition_patterns(spec);
    fill_pod_spec(object_mut(object_mut(spec, "template"), "spec"));
}

fn fill_condition_patterns(spec: &mut Json) {
    let rules = spec
        .get_mut("podFailurePolicy")
        .and_then(|policy| policy.get_mut("rules"))
        .and_then(Value::as_array_mut);
    for rule in rules.into_iter().flatten() {
        let patterns = rule.get_mut("onPodConditions").and_then(Value::as_array_mut);
        for pattern in patterns.into_iter().flatten().filter_map(Value::as_object_mut) {
            if text(pattern, &["status"]).is_empty() {
                pattern.insert("status".to_owned(), "True".into());
            }
        }
    }
}
