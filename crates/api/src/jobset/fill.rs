//! What a webhook would have filled in, for whoever reads a JobSet that none has seen.

use super::{
    JobSet, Network, RetentionPolicy, StartupPolicy, SuccessPolicy, VolumeClaimPolicy, WhenDeleted,
};

impl JobSet {
    /// Fills in what is absent. One that is complete stays as it is.
    pub fn fill_in(&mut self) {
        let spec = &mut self.spec;
        spec.success_policy.get_or_insert_with(SuccessPolicy::default);
        spec.startup_policy.get_or_insert_with(StartupPolicy::default);
        let network = spec.network.get_or_insert_with(Network::default);
        network.enable_dns_hostnames.get_or_insert(true);
        network.publish_not_ready_addresses.get_or_insert(true);
        for job in &mut spec.replicated_jobs {
            let spec = job.template.spec.get_or_insert_default();
            spec.completion_mode.get_or_insert_with(|| "Indexed".to_owned());
            let pod = spec.template.spec.get_or_insert_default();
            if pod.restart_policy.as_deref().unwrap_or_default().is_empty() {
                pod.restart_policy = Some("OnFailure".to_owned());
            }
        }
        let rules = spec.failure_policy.iter_mut().flat_map(|policy| &mut policy.rules);
        for (at, rule) in rules.enumerate().filter(|(_, rule)| rule.name.is_empty()) {
            rule.name = format!("failurePolicyRule{at}");
        }
        for policy in &mut spec.volume_claim_policies {
            fill_claims(policy);
        }
    }
}

fn fill_claims(policy: &mut VolumeClaimPolicy) {
    let retention = policy.retention_policy.get_or_insert_with(RetentionPolicy::default);
    retention.when_deleted.get_or_insert(WhenDeleted::Delete);
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::*;
    use crate::jobset::defaults;

    #[test]
    fn a_set_that_no_webhook_has_seen_is_read_like_one_that_one_has() {
        let pods = json!({"spec": {"template": {"spec": {"containers": [{"name": "c"}]}}}});
        let complete = json!({"spec": {"completionMode": "NonIndexed", "template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c"}]}}}});
        let specs = [
            json!({}),
            json!({"replicatedJobs": [{"name": "a", "template": pods}]}),
            json!({"replicatedJobs": [{"name": "a", "template": complete}], "network": {},
                "successPolicy": {"operator": "Any"},
                "startupPolicy": {"startupPolicyOrder": "InOrder"}}),
            json!({"network": {"enableDNSHostnames": false, "subdomain": "s"},
                "failurePolicy": {"rules": [{"action": "FailJobSet"},
                    {"name": "mine", "action": "RestartJobSet"}, {"action": "RestartJob"}]},
                "volumeClaimPolicies": [{"templates": []},
                    {"templates": [], "retentionPolicy": {"whenDeleted": "Retain"}}]}),
        ];
        for spec in specs {
            let mut object = json!({"metadata": {"name": "js"}, "spec": spec});
            let mut read = JobSet::deserialize(&object).unwrap();
            read.fill_in();
            let Value::Object(json) = &mut object else { unreachable!("an object was made") };
            defaults::fill_new(json);
            assert_eq!(read, JobSet::deserialize(&object).unwrap(), "{object}");
            let before = read.clone();
            read.fill_in();
            assert_eq!(read, before);
        }
    }
}
