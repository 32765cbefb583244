//! How single containers are restarted and resized.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Container, ContainerResizePolicy};

use super::rules::{choice, list, option};
use crate::field::{ErrorList, FieldError, Path};

const RULES_MAX: usize = 20;
const EXIT_CODES_MAX: usize = 255;

/// Says what is wrong with the restart policy of a container.
pub(super) fn validate(container: &Container, path: &Path) -> ErrorList {
    let rules = list(&container.restart_policy_rules);
    let policy_path = path.child("restartPolicy");
    let mut errors = ErrorList::new();
    match container.restart_policy.as_deref() {
        None if rules.is_empty() => return errors,
        None => {
            let why = "must specify restartPolicy when restart rules are used";
            errors.push(FieldError::required(&policy_path, why));
        }
        Some(policy) => {
            errors.extend(option(policy, &["Always", "Never", "OnFailure"], &policy_path));
        }
    }
    let path = path.child("restartPolicyRules");
    if rules.len() > RULES_MAX {
        errors.push(FieldError::too_many(&path, rules.len(), RULES_MAX));
    }
    for (at, rule) in rules.iter().enumerate() {
        let path = path.index(at);
        let actions = ["Restart", "RestartAllContainers"];
        errors.extend(option(&rule.action, &actions, &path.child("action")));
        let path = path.child("exitCodes");
        let Some(codes) = &rule.exit_codes else {
            errors.push(FieldError::required(&path, "must be specified"));
            continue;
        };
        errors.extend(option(&codes.operator, &["In", "NotIn"], &path.child("operator")));
        let values = list(&codes.values).len();
        if values > EXIT_CODES_MAX {
            errors.push(FieldError::too_many(&path.child("values"), values, EXIT_CODES_MAX));
        }
    }
    errors
}

/// Says what is wrong with the restart policy of an init container.
pub(super) fn validate_init(container: &Container, path: &Path) -> ErrorList {
    let has_rules = !list(&container.restart_policy_rules).is_empty();
    if container.restart_policy.is_none() {
        let why = "must specify restartPolicy when restart rules are used";
        let error = || FieldError::required(&path.child("restartPolicy"), why);
        return has_rules.then(error).into_iter().collect();
    }
    validate(container, path)
}

/// Says what is wrong with the resize policies of a container in a pod with `restart_policy`.
pub(super) fn validate_resize(
    policies: &[ContainerResizePolicy],
    restart_policy: &str,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for (at, policy) in policies.iter().enumerate() {
        if !seen.insert(policy.resource_name.as_str()) {
            errors.push(FieldError::duplicate(&path.index(at), &policy.resource_name));
        }
        errors.extend(choice(&policy.resource_name, &["cpu", "memory"], path));
        let how = policy.restart_policy.as_str();
        errors.extend(choice(how, &["NotRequired", "RestartContainer"], path));
        if restart_policy == "Never" && how != "NotRequired" {
            let why = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.push(FieldError::invalid(path, how, why));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{assert_container, assert_spec};

    #[test]
    fn restart_rules_need_a_policy() {
        assert_container(
            json!({"restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}]}),
            &[
                "spec.containers[0].restartPolicy: Required value: must specify restartPolicy when restart rules are used",
            ],
        );
        assert_container(
            json!({"restartPolicy": "Never", "restartPolicyRules": [
                {"action": "Stop", "exitCodes": {"operator": "Like"}}, {"action": "Restart"},
            ]}),
            &[
                "spec.containers[0].restartPolicyRules[0].action: Unsupported value: \"Stop\": supported values: \"Restart\", \"RestartAllContainers\"",
                "spec.containers[0].restartPolicyRules[0].exitCodes.operator: Unsupported value: \"Like\": supported values: \"In\", \"NotIn\"",
                "spec.containers[0].restartPolicyRules[1].exitCodes: Required value: must be specified",
            ],
        );
    }

    #[test]
    fn resizing_is_named_once_per_resource() {
        assert_spec(
            json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "i", "resizePolicy": [
                {"resourceName": "cpu", "restartPolicy": "NotRequired"},
                {"resourceName": "cpu", "restartPolicy": "RestartContainer"},
                {"resourceName": "gpu", "restartPolicy": ""},
            ]}]}),
            &[
                "spec.containers[0].resizePolicy[1]: Duplicate value: \"cpu\"",
                "spec.containers[0].resizePolicy: Invalid value: \"RestartContainer\": must be 'NotRequired' when pod `restartPolicy` is 'Never'",
                "spec.containers[0].resizePolicy: Unsupported value: \"gpu\": supported values: \"cpu\", \"memory\"",
                "spec.containers[0].resizePolicy: Required value",
                "spec.containers[0].resizePolicy: Invalid value: \"\": must be 'NotRequired' when pod `restartPolicy` is 'Never'",
            ],
        );
    }
}
