//! Annotations that mean something to the system.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{AppArmorProfile, PodSpec, SeccompProfile, Toleration};
use serde_json::Value;

use super::{for_each_container, rules::descending_path, rules::text, scheduling};
use crate::{
    field::{ErrorList, FieldError, Path},
    json,
    strategy::Json,
};

pub(super) const MIRROR: &str = "kubernetes.io/config.mirror";
const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// Annotations by key.
pub(super) type Annotations<'a> = BTreeMap<&'a str, &'a str>;

/// The annotations of an object.
pub(super) fn of(object: &Json) -> Annotations<'_> {
    let map = json::at(object, &["metadata", "annotations"]).and_then(Value::as_object);
    map.into_iter().flatten().filter_map(|(k, v)| Some((k.as_str(), v.as_str()?))).collect()
}

/// Says what is wrong with the annotations the system reads.
pub(super) fn validate(annotations: &Annotations<'_>, spec: &PodSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(value) = annotations.get(MIRROR)
        && text(&spec.node_name).is_empty()
    {
        let why = "must set spec.nodeName if mirror pod annotation is set";
        errors.push(FieldError::invalid(&path.key(MIRROR), value, why));
    }
    if let Some(value) = annotations.get(TOLERATIONS).filter(|value| !value.is_empty()) {
        match serde_json::from_str::<Vec<Toleration>>(value) {
            Ok(list) => {
                errors.extend(scheduling::validate_tolerations(&list, &path.child(TOLERATIONS)));
            }
            Err(error) => {
                errors.push(FieldError::invalid(path, TOLERATIONS, &error.to_string()));
            }
        }
    }
    if let Some(value) = annotations.get(DELETION_COST)
        && !is_cost(value)
    {
        let why = "must be a 32bit integer";
        errors.push(FieldError::invalid(&path.key(DELETION_COST), value, why));
    }
    for (key, value) in annotations {
        if *key == SECCOMP_POD || key.starts_with(SECCOMP_CONTAINER) {
            errors.extend(seccomp(value, &path.child(key)));
        }
    }
    errors.extend(app_armor(annotations, spec, path));
    errors
}

/// Says what is wrong with a change of the annotations the system reads.
pub(super) fn validate_update(
    new: &Annotations<'_>,
    old: &Annotations<'_>,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    for (key, _) in old.iter().filter(|(key, value)| new.get(*key) != Some(value)) {
        if key.starts_with(APP_ARMOR) {
            let why = "may not remove or update AppArmor annotations";
            errors.push(FieldError::forbidden(&path.key(key), why));
        } else if *key == MIRROR {
            let why = "may not remove or update mirror pod annotation";
            errors.push(FieldError::forbidden(&path.key(key), why));
        }
    }
    for key in new.keys().filter(|key| !old.contains_key(*key)) {
        if key.starts_with(APP_ARMOR) {
            errors.push(FieldError::forbidden(&path.key(key), "may not add AppArmor annotations"));
        } else if *key == MIRROR {
            errors.push(FieldError::forbidden(&path.key(key), "may not add mirror pod annotation"));
        }
    }
    errors
}

/// Says where annotations and the fields that replaced them disagree.
pub(super) fn validate_match(
    annotations: &Annotations<'_>,
    spec: &PodSpec,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let own = spec.security_context.as_ref();
    let profile = own.and_then(|it| it.seccomp_profile.as_ref());
    if let (Some(profile), Some(value)) = (profile, annotations.get(SECCOMP_POD)) {
        let path = path.child("securityContext").child("seccompProfile");
        errors.extend(seccomp_match(value, profile, &path));
    }
    for_each_container(spec, path, |container, path| {
        let context = container.security_context.as_ref();
        let profile = context.and_then(|it| it.seccomp_profile.as_ref());
        let key = format!("{SECCOMP_CONTAINER}{}", container.name);
        if let (Some(profile), Some(value)) = (profile, annotations.get(key.as_str())) {
            let path = path.child("securityContext").child("seccompProfile");
            errors.extend(seccomp_match(value, profile, &path));
        }
    });
    if spec.os.as_ref().is_some_and(|os| os.name == "windows") {
        return errors;
    }
    let default = own.and_then(|it| it.app_armor_profile.as_ref());
    for_each_container(spec, path, |container, path| {
        let context = container.security_context.as_ref();
        let profile = context.and_then(|it| it.app_armor_profile.as_ref()).or(default);
        let key = format!("{APP_ARMOR}{}", container.name);
        if let (Some(profile), Some(value)) = (profile, annotations.get(key.as_str())) {
            let path = path.child("securityContext").child("appArmorProfile");
            errors.extend(app_armor_match(value, profile, &path));
        }
    });
    errors
}

fn is_cost(value: &str) -> bool {
    let first = value.bytes().next().unwrap_or_default();
    let is_plain = first == b'-' || value == "0" || (b'1'..=b'9').contains(&first);
    is_plain && value.parse::<i32>().is_ok()
}

fn seccomp(profile: &str, path: &Path) -> ErrorList {
    match profile {
        "runtime/default" | "docker/default" | "unconfined" => ErrorList::new(),
        _ => match profile.strip_prefix("localhost/") {
            Some(name) => descending_path(name, path),
            None => vec![FieldError::invalid(path, profile, "must be a valid seccomp profile")],
        },
    }
}

fn app_armor(annotations: &Annotations<'_>, spec: &PodSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (key, profile) in annotations {
        let Some(container) = key.strip_prefix(APP_ARMOR) else { continue };
        let mut is_there = false;
        for_each_container(spec, path, |it, _| is_there |= it.name == container);
        if !is_there {
            errors.push(FieldError::invalid(&path.key(key), container, "container not found"));
        }
        let is_known = matches!(*profile, "" | "runtime/default" | "unconfined")
            || profile.starts_with("localhost/");
        if !is_known {
            let why = format!("invalid AppArmor profile name: {profile:?}");
            errors.push(FieldError::invalid(&path.key(key), profile, &why));
        }
    }
    errors
}

fn seccomp_match(value: &str, profile: &SeccompProfile, path: &Path) -> Option<FieldError> {
    let local = value.strip_prefix("localhost/");
    let is_same_type = match &*profile.type_ {
        "Unconfined" => value == "unconfined",
        "RuntimeDefault" => matches!(value, "runtime/default" | "docker/default"),
        "Localhost" => local.is_some(),
        _ => true,
    };
    disagreement("seccomp", is_same_type, local, profile.localhost_profile.as_deref(), path)
        .filter(|_| !is_same_type || profile.type_ == "Localhost")
}

fn app_armor_match(value: &str, profile: &AppArmorProfile, path: &Path) -> Option<FieldError> {
    let local = value.strip_prefix("localhost/");
    let is_same_type = match &*profile.type_ {
        "Unconfined" => value == "unconfined",
        "RuntimeDefault" => value == "runtime/default",
        "Localhost" => local.is_some(),
        _ => true,
    };
    disagreement("apparmor", is_same_type, local, profile.localhost_profile.as_deref(), path)
        .filter(|_| !is_same_type || profile.type_ == "Localhost")
}

fn disagreement(
    what: &str,
    is_same_type: bool,
    annotated: Option<&str>,
    named: Option<&str>,
    path: &Path,
) -> Option<FieldError> {
    let (field, noun) = if !is_same_type {
        ("type", "type")
    } else if annotated != named {
        ("localhostProfile", "profile")
    } else {
        return None;
    };
    let why = format!("{what} {noun} in annotation and field must match");
    Some(FieldError::forbidden(&path.child(field), &why))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::{tests::shown, validate_create};
    use crate::pod::fill_pod;

    fn errors(annotations: Value, security: Value) -> Vec<String> {
        let mut pod = json!({
            "metadata": {"annotations": annotations},
            "spec": {"containers": [{"name": "c", "image": "i", "securityContext": security}]},
        })
        .as_object()
        .unwrap()
        .clone();
        fill_pod(&mut pod);
        shown(&validate_create(&pod))
    }

    #[test]
    fn annotations_the_system_reads_are_checked() {
        let none = json!({});
        let cases = [
            (json!({"controller.kubernetes.io/pod-deletion-cost": "-7"}), none.clone(), vec![]),
            (
                json!({"controller.kubernetes.io/pod-deletion-cost": "007"}),
                none.clone(),
                vec![
                    "metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: \"007\": must be a 32bit integer",
                ],
            ),
            (
                json!({"kubernetes.io/config.mirror": "x"}),
                none.clone(),
                vec![
                    "metadata.annotations[kubernetes.io/config.mirror]: Invalid value: \"x\": must set spec.nodeName if mirror pod annotation is set",
                ],
            ),
            (
                json!({"container.apparmor.security.beta.kubernetes.io/x": "odd"}),
                none.clone(),
                vec![
                    "metadata.annotations[container.apparmor.security.beta.kubernetes.io/x]: Invalid value: \"x\": container not found",
                    "metadata.annotations[container.apparmor.security.beta.kubernetes.io/x]: Invalid value: \"odd\": invalid AppArmor profile name: \"odd\"",
                ],
            ),
            (
                json!({"container.apparmor.security.beta.kubernetes.io/c": "unconfined"}),
                json!({"appArmorProfile": {"type": "RuntimeDefault"}}),
                vec![
                    "spec.containers[0].securityContext.appArmorProfile.type: Forbidden: apparmor type in annotation and field must match",
                ],
            ),
            (
                json!({"container.seccomp.security.alpha.kubernetes.io/c": "localhost/a"}),
                json!({"seccompProfile": {"type": "Localhost", "localhostProfile": "b"}}),
                vec![
                    "spec.containers[0].securityContext.seccompProfile.localhostProfile: Forbidden: seccomp profile in annotation and field must match",
                ],
            ),
            (
                json!({"seccomp.security.alpha.kubernetes.io/pod": "odd"}),
                none,
                vec![
                    "metadata.annotations.seccomp.security.alpha.kubernetes.io/pod: Invalid value: \"odd\": must be a valid seccomp profile",
                ],
            ),
        ];
        for (annotations, security, want) in cases {
            assert_eq!(errors(annotations.clone(), security), want, "{annotations}");
        }
    }
}
