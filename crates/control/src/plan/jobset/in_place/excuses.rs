//! Pods whose end their Jobs do not count.

use std::collections::BTreeMap;

use k8s_openapi::api::{batch::v1::PodFailurePolicy, core::v1::Pod};
use lockstep_api::{jobset::JobSet, labels::jobset as keys};

use crate::plan::job::failure_policy::{PolicyAction, judge};

/// What the Jobs of a set say of failed pods, by replicated job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Excuses(BTreeMap<String, PodFailurePolicy>);

impl Excuses {
    /// Those of a set.
    pub fn of(jobset: &JobSet) -> Self {
        let groups = jobset.spec.replicated_jobs.iter();
        let policies = groups.filter_map(|group| {
            let job = group.template.spec.as_ref()?;
            Some((group.name.clone(), job.pod_failure_policy.clone()?))
        });
        Self(policies.collect())
    }

    /// Whether the Job of a pod would not count its end: the first rule that matches what is known
    /// of it, exit codes or conditions such as `DisruptionTarget`, is to ignore it.
    pub fn cover(&self, pod: &Pod) -> bool {
        let labels = pod.metadata.labels.as_ref();
        let group = labels.and_then(|labels| labels.get(keys::REPLICATED_JOB_NAME));
        let policy = group.and_then(|group| self.0.get(group));
        policy.is_some_and(|policy| judge(policy, pod).action == Some(PolicyAction::Ignore))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(group: &str, condition: &str, code: Option<i32>) -> Pod {
        let ended = code.map(|code| {
            json!([{"name": "c", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                    "state": {"terminated": {"exitCode": code}}}])
        });
        let object = json!({
            "metadata": {"name": "p", "labels": {keys::REPLICATED_JOB_NAME: group}},
            "status": {"conditions": [{"type": condition, "status": "True"}],
                       "containerStatuses": ended},
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_disruption_is_excused_where_the_first_rule_that_matches_ignores_it() {
        let group = |name: &str, rules: Value| {
            json!({"name": name, "replicas": 1, "template": {"spec": {
                "podFailurePolicy": rules, "template": {}}}})
        };
        let drained =
            json!({"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]});
        let bug = json!({"action": "FailJob",
                         "onExitCodes": {"operator": "In", "values": [42]}});
        let counted = json!({"action": "Count", "onPodConditions": [{"type": "DisruptionTarget"}]});
        let jobset = serde_json::from_value(json!({
            "metadata": {"name": "js"},
            "spec": {"replicatedJobs": [
                group("w", json!({"rules": [bug, drained]})),
                group("strict", json!({"rules": [counted, drained]})),
                group("none", Value::Null),
            ]},
        }))
        .unwrap();
        let excuses = Excuses::of(&jobset);
        let cases = [
            (pod("w", "DisruptionTarget", None), true),
            (pod("w", "DisruptionTarget", Some(143)), true),
            (pod("w", "DisruptionTarget", Some(42)), false),
            (pod("w", "Ready", None), false),
            (pod("strict", "DisruptionTarget", None), false),
            (pod("none", "DisruptionTarget", None), false),
            (pod("other", "DisruptionTarget", None), false),
        ];
        for (pod, want) in cases {
            assert_eq!(excuses.cover(&pod), want, "{pod:?}");
        }
    }
}
