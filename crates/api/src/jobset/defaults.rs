//! What a JobSet leaves out.

use serde_json::{Value, json};

use crate::{
    json::{object_mut, set_default, text},
    strategy::Json,
};

/// Fills in a new JobSet.
pub(super) fn fill_new(object: &mut Json) {
    let spec = object_mut(object, "spec");
    set_default(spec, "successPolicy", json!({"operator": "All"}));
    set_default(spec, "startupPolicy", json!({"startupPolicyOrder": "AnyOrder"}));
    let network = object_mut(spec, "network");
    set_default(network, "enableDNSHostnames", true);
    set_default(network, "publishNotReadyAddresses", true);
    fill_lists(object);
}

/// Fills in what lies in lists. A client that applies a manifest again replaces lists as a whole;
/// what was filled in once must not look like a change then.
pub(super) fn fill_lists(object: &mut Json) {
    let Some(Value::Object(spec)) = object.get_mut("spec") else { return };
    for job in elements(spec, "replicatedJobs") {
        if let Some(Value::Object(template)) = job.get_mut("template") {
            fill_template(template);
        }
    }
    if let Some(Value::Object(policy)) = spec.get_mut("failurePolicy") {
        for (at, rule) in elements(policy, "rules").enumerate() {
            if text(rule, &["name"]).is_empty() {
                rule.insert("name".to_owned(), format!("failurePolicyRule{at}").into());
            }
        }
    }
    for policy in elements(spec, "volumeClaimPolicies") {
        set_default(policy, "retentionPolicy", json!({"whenDeleted": "Delete"}));
    }
}

fn fill_template(template: &mut Json) {
    let spec = object_mut(template, "spec");
    set_default(spec, "completionMode", "Indexed");
    if let Some(Value::Object(pods)) = spec.get_mut("template") {
        let pod = object_mut(pods, "spec");
        if text(pod, &["restartPolicy"]).is_empty() {
            pod.insert("restartPolicy".to_owned(), "OnFailure".into());
        }
    }
}

fn elements<'a>(object: &'a mut Json, list: &str) -> impl Iterator<Item = &'a mut Json> {
    let list = object.get_mut(list).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_object_mut)
}
