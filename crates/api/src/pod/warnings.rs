//! What a user should know about an accepted pod.

use crate::{json, names, strategy::Json};

/// What a user should know about a new Pod.
pub(super) fn warnings_for_pod(pod: &Json) -> Vec<String> {
    let mut warnings = Vec::new();
    let faults = names::dns1123_label(json::text(pod, &["metadata", "name"]));
    if !faults.is_empty() {
        warnings.push(format!(
            "metadata.name: this is used in the Pod's hostname, which can result in surprising \
             behavior; a DNS label is recommended: [{}]",
            faults.join(" ")
        ));
    }
    warnings.extend(warnings_for_template(pod, ""));
    warnings
}

/// What a user should know about an accepted pod template at `path`.
pub fn warnings_for_template(_template: &Json, _path: &str) -> Vec<String> {
    Vec::new()
}
