//! Pod failure policy: what a failed pod means, by exit code or by condition.

use k8s_openapi::api::{
    batch::v1::{
        PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement,
        PodFailurePolicyOnPodConditionsPattern,
    },
    core::v1::{ContainerStatus, Pod, PodStatus},
};

/// What a rule does with a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PolicyAction {
    FailJob,
    FailIndex,
    Ignore,
    Count,
}

impl PolicyAction {
    fn parse(action: &str) -> Option<Self> {
        match action {
            "FailJob" => Some(Self::FailJob),
            "FailIndex" => Some(Self::FailIndex),
            "Ignore" => Some(Self::Ignore),
            "Count" => Some(Self::Count),
            _ => None,
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::FailJob => "FailJob",
            Self::FailIndex => "FailIndex",
            Self::Ignore => "Ignore",
            Self::Count => "Count",
        }
    }
}

/// What the first matching rule says of a pod, should it have failed. Without a match a failure
/// counts like any other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) action: Option<PolicyAction>,
    /// What the Job fails with, if the action is `FailJob`.
    pub(crate) message: Option<Box<str>>,
}

impl Verdict {
    /// Whether the failure counts against the limits.
    pub(crate) fn is_counted(&self) -> bool {
        self.action != Some(PolicyAction::Ignore)
    }
}

/// Goes through the rules in order. A rule whose action nobody knows is passed over.
pub(crate) fn judge(policy: &PodFailurePolicy, pod: &Pod) -> Verdict {
    let Some(status) = &pod.status else { return Verdict::default() };
    for (at, rule) in policy.rules.iter().enumerate() {
        let what = if let Some(codes) = &rule.on_exit_codes {
            match_exit_codes(status, codes).map(|(container, code)| {
                let pod = full_name(pod);
                format!("Container {container} for pod {pod} failed with exit code {code}")
            })
        } else {
            match_conditions(status, rule.on_pod_conditions.as_deref().unwrap_or_default())
                .map(|kind| format!("Pod {} has condition {kind}", full_name(pod)))
        };
        if let (Some(what), Some(action)) = (what, PolicyAction::parse(&rule.action)) {
            let message = (action == PolicyAction::FailJob)
                .then(|| format!("{what} matching FailJob rule at index {at}").into());
            return Verdict { action: Some(action), message };
        }
    }
    Verdict::default()
}

/// The first ended container whose exit code meets the requirement: containers before init
/// containers, each in the order of the status. How a container ended before it was restarted does
/// not matter.
fn match_exit_codes<'a>(
    status: &'a PodStatus,
    wanted: &PodFailurePolicyOnExitCodesRequirement,
) -> Option<(&'a str, i32)> {
    let containers = status.container_statuses.iter().flatten();
    containers.chain(status.init_container_statuses.iter().flatten()).find_map(|container| {
        let code = exit_code(container).filter(|code| *code != 0)?;
        let is_meant = wanted.container_name.as_ref().is_none_or(|name| *name == container.name);
        let is_listed = wanted.values.contains(&code);
        let is_met = match wanted.operator.as_str() {
            "In" => is_listed,
            "NotIn" => !is_listed,
            _ => false,
        };
        (is_meant && is_met).then_some((container.name.as_str(), code))
    })
}

fn exit_code(container: &ContainerStatus) -> Option<i32> {
    Some(container.state.as_ref()?.terminated.as_ref()?.exit_code)
}

fn match_conditions<'a>(
    status: &'a PodStatus,
    patterns: &[PodFailurePolicyOnPodConditionsPattern],
) -> Option<&'a str> {
    let mut conditions = status.conditions.iter().flatten();
    let found = conditions.find(|condition| {
        patterns.iter().any(|pattern| {
            let status = pattern.status.as_deref().unwrap_or("True");
            pattern.type_ == condition.type_ && status == condition.status
        })
    })?;
    Some(&found.type_)
}

fn full_name(pod: &Pod) -> String {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    format!("{namespace}/{}", pod.metadata.name.as_deref().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::*;

    fn pod(status: &Value) -> Pod {
        let value = json!({"metadata": {"name": "p", "namespace": "ns"}, "status": status});
        Pod::deserialize(value).unwrap()
    }

    fn ended(name: &str, code: i32) -> Value {
        json!({"name": name, "image": "", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"terminated": {"exitCode": code}}})
    }

    fn on_codes(action: &str, operator: &str, values: &[i32], container: Option<&str>) -> Value {
        json!({"action": action, "onExitCodes":
            {"operator": operator, "values": values, "containerName": container}})
    }

    fn on_condition(action: &str, kind: &str, status: Option<&str>) -> Value {
        json!({"action": action, "onPodConditions": [{"type": kind, "status": status}]})
    }

    fn verdict(rules: &[Value], status: &Value) -> (Option<&'static str>, Option<String>) {
        let policy = PodFailurePolicy::deserialize(json!({"rules": rules})).unwrap();
        let verdict = judge(&policy, &pod(status));
        (verdict.action.map(PolicyAction::as_str), verdict.message.map(Into::into))
    }

    // rule: job 3.11
    #[test]
    fn exit_codes_are_matched_by_operator_container_and_order() {
        let two = json!({
            "containerStatuses": [ended("a", 0), ended("b", 42)],
            "initContainerStatuses": [ended("i", 7)],
        });
        let running = json!({"containerStatuses": [{"name": "a", "image": "", "imageID": "",
            "ready": true, "restartCount": 1, "state": {"running": {}},
            "lastState": {"terminated": {"exitCode": 42}}}]});
        let cases = [
            ("no rules", vec![], &two, None),
            ("in", vec![on_codes("Ignore", "In", &[5, 42], None)], &two, Some("Ignore")),
            ("not in", vec![on_codes("Count", "NotIn", &[1], None)], &two, Some("Count")),
            (
                "zero is never a failure",
                vec![on_codes("Count", "NotIn", &[42, 7], None)],
                &two,
                None,
            ),
            ("other container", vec![on_codes("Ignore", "In", &[42], Some("a"))], &two, None),
            (
                "this container",
                vec![on_codes("Ignore", "In", &[42], Some("b"))],
                &two,
                Some("Ignore"),
            ),
            (
                "init container",
                vec![on_codes("FailIndex", "In", &[7], Some("i"))],
                &two,
                Some("FailIndex"),
            ),
            ("unknown operator", vec![on_codes("Ignore", "Near", &[42], None)], &two, None),
            (
                "first match decides",
                vec![on_codes("Count", "In", &[42], None), on_codes("Ignore", "In", &[42], None)],
                &two,
                Some("Count"),
            ),
            (
                "an unknown action is passed over",
                vec![on_codes("Explode", "In", &[42], None), on_codes("Ignore", "In", &[42], None)],
                &two,
                Some("Ignore"),
            ),
            ("restarts are invisible", vec![on_codes("Ignore", "In", &[42], None)], &running, None),
        ];
        for (name, rules, status, want) in cases {
            assert_eq!(verdict(&rules, status).0, want, "{name}");
        }
    }

    // rule: job 3.11
    #[test]
    fn conditions_are_matched_by_type_and_status() {
        let status = json!({"conditions": [
            {"type": "Ready", "status": "False"}, {"type": "DisruptionTarget", "status": "True"}]});
        let cases = [
            ("type and default status", on_condition("Ignore", "DisruptionTarget", None), true),
            ("status given", on_condition("Ignore", "Ready", Some("False")), true),
            ("status differs", on_condition("Ignore", "Ready", Some("True")), false),
            ("type differs", on_condition("Ignore", "ConfigIssue", None), false),
        ];
        for (name, rule, is_match) in cases {
            assert_eq!(verdict(&[rule], &status).0, is_match.then_some("Ignore"), "{name}");
        }
        assert_eq!(verdict(&[json!({"action": "Ignore"})], &status).0, None, "an empty rule");
    }

    // rule: job 3.11
    #[test]
    fn fail_job_says_what_failed_and_by_which_rule() {
        let status = json!({"containerStatuses": [ended("main", 5)],
            "conditions": [{"type": "DisruptionTarget", "status": "True"}]});
        let other = on_codes("Ignore", "In", &[1], None);
        assert_eq!(
            verdict(&[other.clone(), on_codes("FailJob", "In", &[5], None)], &status).1.unwrap(),
            "Container main for pod ns/p failed with exit code 5 matching FailJob rule at index 1"
        );
        assert_eq!(
            verdict(&[on_condition("FailJob", "DisruptionTarget", None)], &status).1.unwrap(),
            "Pod ns/p has condition DisruptionTarget matching FailJob rule at index 0"
        );
        assert_eq!(verdict(&[on_codes("Ignore", "In", &[5], None)], &status).1, None);
    }
}
