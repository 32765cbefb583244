//! Names, groups that are protected, paths, and who converts.

use serde_json::Value;

use crate::{
    field::{ErrorList, FieldError, Path},
    json::text,
    names::dns1035_label,
    quote::is_printable,
    strategy::Json,
};

/// The annotation that says who has approved of a kind in a group of Kubernetes itself.
const APPROVED: &str = "api-approved.kubernetes.io";

/// What is wrong with names, wanted or accepted.
pub(super) fn faults(names: Option<&Value>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(names) = names else { return errors };
    let text = |key: &str| names[key].as_str().unwrap_or_default();
    for key in ["plural", "singular"] {
        let faults = dns1035_label(text(key));
        if !text(key).is_empty() && !faults.is_empty() {
            errors.push(FieldError::invalid(&path.child(key), text(key), &faults.join(",")));
        }
    }
    for key in ["kind", "listKind"] {
        let faults = dns1035_label(&text(key).to_lowercase());
        if !text(key).is_empty() && !faults.is_empty() {
            let why =
                format!("may have mixed case, but should otherwise match: {}", faults.join(","));
            errors.push(FieldError::invalid(&path.child(key), text(key), &why));
        }
    }
    errors.extend(of_list(&names["shortNames"], &path.child("shortNames")));
    if !text("kind").is_empty() && text("kind") == text("listKind") {
        let why = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(&path.child("listKind"), text("listKind"), why));
    }
    errors.extend(of_list(&names["categories"], &path.child("categories")));
    errors
}

fn of_list(names: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let given = names.as_array().into_iter().flatten().filter_map(Value::as_str);
    for (at, name) in given.enumerate() {
        let faults = dns1035_label(name);
        if !faults.is_empty() {
            errors.push(FieldError::invalid(&path.index(at), name, &faults.join(",")));
        }
    }
    errors
}

/// What is known of the approval of a kind.
pub(in crate::definition) enum Approval {
    /// Nobody has to approve.
    Unneeded,
    /// It was approved, or said not to be; the text is why that is known.
    Given { is_approved: bool, reason: &'static str, message: String },
    /// The annotation is missing or says nothing.
    Faulty { reason: &'static str, message: String },
}

/// Whether a kind is in a group that is protected, and what is known of its approval.
pub(in crate::definition) fn approval(definition: &Json) -> Approval {
    let group = text(definition, &["spec", "group"]);
    let is_protected = |domain: &str| {
        group == domain || group.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
    };
    if !is_protected("k8s.io") && !is_protected("kubernetes.io") {
        return Approval::Unneeded;
    }
    let said = text(definition, &["metadata", "annotations", APPROVED]);
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    if said.is_empty() {
        let message =
            format!("protected groups must have approval annotation \"{APPROVED}\", {see}");
        return Approval::Faulty { reason: "MissingAnnotation", message };
    }
    if said.starts_with("unapproved") {
        let message = format!("not approved: {said:?}");
        return Approval::Given { is_approved: false, reason: "UnapprovedAnnotation", message };
    }
    if said.split_once("://").is_some_and(|(scheme, host)| !scheme.is_empty() && !host.is_empty()) {
        let message = format!("approved in {said}");
        return Approval::Given { is_approved: true, reason: "ApprovedAnnotation", message };
    }
    let message = format!(
        "protected groups must have approval annotation \"{APPROVED}\" with either a URL or a \
         reason starting with \"unapproved\", {see}"
    );
    Approval::Faulty { reason: "InvalidAnnotation", message }
}

/// What is wrong with the approval; what was wrong before in the same way may stay so.
pub(super) fn approval_faults(definition: &Json, old: Option<&Json>) -> ErrorList {
    let Approval::Faulty { reason, message } = approval(definition) else {
        return ErrorList::new();
    };
    let was_faulty =
        |old| matches!(approval(old), Approval::Faulty { reason: before, .. } if before == reason);
    if old.is_some_and(was_faulty) {
        return ErrorList::new();
    }
    let path = Path::new("metadata.annotations").key(APPROVED);
    if reason == "MissingAnnotation" {
        return vec![FieldError::required(&path, &message)];
    }
    let said = text(definition, &["metadata", "annotations", APPROVED]);
    vec![FieldError::invalid(&path, said, &message)]
}

/// What is wrong with the warning of a version that is deprecated.
pub(super) fn deprecation_faults(is_deprecated: bool, warning: &str) -> Vec<String> {
    if !is_deprecated {
        return vec!["can only be set for deprecated versions".to_owned()];
    }
    let mut faults = Vec::new();
    if warning.len() > 256 {
        faults.push("must be <= 256 characters long".to_owned());
    }
    if warning.is_empty() {
        faults.push("must not be an empty string".to_owned());
    }
    if let Some((at, _)) = warning.char_indices().find(|(_, c)| !is_printable(*c)) {
        faults.push(format!(
            "must only contain printable UTF-8 characters; non-printable character found at index \
             {at}"
        ));
    }
    faults
}

/// What is wrong with a path.
pub(super) fn path_fault(given: &str, path: &Path) -> Option<FieldError> {
    let why = "must be a simple json path starting with .";
    (!given.starts_with('.')).then(|| FieldError::invalid(path, given, why))
}

/// What is wrong with the paths of the subresource `scale`.
pub(super) fn scale_faults(scale: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if !scale.is_object() {
        return errors;
    }
    for (key, beginning) in [("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")] {
        let path = path.child("scale").child(key);
        let given = scale[key].as_str().unwrap_or_default();
        if given.is_empty() {
            errors.push(FieldError::required(&path, ""));
        } else if let Some(error) = path_fault(given, &path) {
            errors.push(error);
        } else if !given.starts_with(beginning) {
            let why = format!("should be a json path under {}", beginning.trim_end_matches('.'));
            errors.push(FieldError::invalid(&path, given, &why));
        }
    }
    let given = scale["labelSelectorPath"].as_str().unwrap_or_default();
    let path = path.child("scale").child("labelSelectorPath");
    if given.is_empty() {
        return errors;
    }
    if let Some(error) = path_fault(given, &path) {
        errors.push(error);
    } else if !given.starts_with(".spec.") && !given.starts_with(".status.") {
        let why = "should be a json path under either .spec or .status";
        errors.push(FieldError::invalid_json(&path, given, why));
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_approval_may_stay_as_wrong_as_it_was() {
        let with = |annotations: Value| {
            let value = json!({"metadata": {"annotations": annotations},
                               "spec": {"group": "x.k8s.io"}});
            value.as_object().cloned().unwrap()
        };
        let missing = with(json!({}));
        let wrong = |said: &str| with(json!({APPROVED: said}));
        let is_refused = |new: &Json, old: Option<&Json>| !approval_faults(new, old).is_empty();
        assert!(is_refused(&missing, None) && is_refused(&wrong("a"), None));
        assert!(!is_refused(&missing, Some(&missing)));
        assert!(!is_refused(&wrong("b"), Some(&wrong("a"))));
        assert!(is_refused(&wrong("a"), Some(&missing)));
        assert!(is_refused(&missing, Some(&wrong("a"))));
        assert!(!is_refused(&wrong("https://example.com"), Some(&missing)));
    }

    #[test]
    fn warnings_can_be_printed() {
        assert!(deprecation_faults(true, "use é v2").is_empty());
        for odd in ["a\u{200b}", "a\n", "a\u{a0}"] {
            let faults = deprecation_faults(true, odd);
            assert!(faults[0].ends_with("non-printable character found at index 1"), "{odd:?}");
        }
    }
}
