//! What a pod failure policy says about a pod that failed.

use k8s_openapi::api::{
    batch::v1::{JobSpec, PodFailurePolicyRule},
    core::v1::{ContainerStatus, Pod},
};

/// What is to be done about the failure of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It counts.
    Count,
    /// It does not count.
    Ignore,
    /// The index of the pod is done for.
    FailIndex,
    /// The Job is done for.
    FailJob,
}

/// What the policy of a Job says about a pod.
pub(super) fn verdict(spec: &JobSpec, pod: &Pod) -> Verdict {
    let rules = spec.pod_failure_policy.as_ref().map(|policy| &*policy.rules).unwrap_or_default();
    let action = rules.iter().find(|rule| matches(rule, pod)).map(|rule| rule.action.as_str());
    match action {
        Some("Ignore") => Verdict::Ignore,
        Some("FailIndex") => Verdict::FailIndex,
        Some("FailJob") => Verdict::FailJob,
        _ => Verdict::Count,
    }
}

fn matches(rule: &PodFailurePolicyRule, pod: &Pod) -> bool {
    let Some(status) = &pod.status else { return false };
    if let Some(wanted) = &rule.on_exit_codes {
        let statuses = status.container_statuses.iter().chain(&status.init_container_statuses);
        return statuses.flatten().any(|container| {
            let is_named =
                wanted.container_name.as_ref().is_none_or(|name| *name == container.name);
            is_named
                && exit_code(container).is_some_and(|code| {
                    code != 0 && wanted.values.contains(&code) == (wanted.operator == "In")
                })
        });
    }
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let patterns = rule.on_pod_conditions.as_deref().unwrap_or_default();
    patterns.iter().any(|pattern| {
        let status = pattern.status.as_deref().unwrap_or("True");
        conditions.iter().any(|it| it.type_ == pattern.type_ && it.status == status)
    })
}

fn exit_code(container: &ContainerStatus) -> Option<i32> {
    Some(container.state.as_ref()?.terminated.as_ref()?.exit_code)
}
