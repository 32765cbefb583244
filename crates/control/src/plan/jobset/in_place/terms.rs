//! What a set asks of its restarts.

use std::ops::Range;
use std::time::Duration;

use k8s_openapi::api::batch::v1::{JobSpec, PodFailurePolicyRule};
use lockstep_api::{
    jobset::{JobSet, JobSetStatus, SuccessOperator, in_place},
    labels::jobset as keys,
};

use super::{generation, inject::GRACE, seats::places};
use crate::plan::job::Indexes;
use crate::plan::restart::{Completion, ExitRule, Restarts, Terms, Verdict};

/// How long a rung may take where the set says so no more.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The terms of a set's gang. Restarts that the set itself has counted are taken from what is left
/// for those of the gang.
pub fn terms(jobset: &JobSet) -> Terms {
    let (spec, meta) = (&jobset.spec, &jobset.metadata);
    let status = jobset.status.clone().unwrap_or_default();
    let places = places(spec);
    let slots = places.last().map_or(0, |(.., range)| range.end);
    let own = own_restarts(jobset);
    let max = spec.failure_policy.as_ref().map_or(0, |policy| policy.max_restarts);
    let max = u32::try_from(max).unwrap_or_default().saturating_sub(own);
    let counted = in_place::restarts(meta).unwrap_or_default().saturating_sub(own);
    let mut terms = Terms::new(slots, max, in_place::timeout(meta).unwrap_or(TIMEOUT));
    terms.generation = generation(&status);
    terms.is_suspended = spec.suspend == Some(true);
    terms.remade = remade(&status);
    terms.restarts = Restarts { total: counted, counted };
    let annotation = |key: &str| meta.annotations.as_ref()?.get(key);
    terms.is_rejoining = annotation(keys::IN_PLACE_REJOIN).is_none_or(|text| text != "false");
    if let Some(most) = annotation(keys::IN_PLACE_STALLED_MAX).and_then(|text| text.parse().ok()) {
        terms.stalled_max = most;
    }
    if let Some(after) = annotation(keys::IN_PLACE_PROGRESS).and_then(|text| in_place::span(text)) {
        terms.progress_after = after;
    }
    let job = |name: &str| {
        let group = spec.replicated_jobs.iter().find(|group| group.name == name);
        group.and_then(|group| group.template.spec.as_ref())
    };
    for (name, _, range) in &places {
        let Some(job) = job(name) else { continue };
        terms.grace = terms.grace.max(grace(job).unwrap_or_default());
        terms.rules.extend(rules(job, range));
    }
    let policy = spec.success_policy.as_ref();
    let targets = policy.map(|policy| policy.target_replicated_jobs.as_slice()).unwrap_or_default();
    let targeted = places.iter().filter(|(name, ..)| targets.is_empty() || targets.contains(name));
    let needed = targeted.map(|(name, _, range)| job(name).map_or(vec![], |it| needed(it, range)));
    let is_any = policy.is_some_and(|policy| policy.operator == SuccessOperator::Any);
    match needed.collect::<Vec<_>>() {
        // Whichever of its rules a Job succeeds by, it sees by itself when workers may leave.
        unclear if unclear.iter().any(|of| of.is_empty() || is_any && of.len() > 1) => {
            terms.is_rejoining = false;
        }
        clear => {
            terms.completion = Completion { groups: clear.into_iter().flatten().collect(), is_any };
        }
    }
    terms
}

/// Restarts that count and that were no restarts in place.
pub(super) fn own_restarts(jobset: &JobSet) -> u32 {
    let Some(status) = &jobset.status else { return 0 };
    let entries = status.replicated_jobs_status.iter();
    let single = entries.flat_map(|entry| &entry.job_restarts_count_towards_max);
    let all = single.chain([&status.restarts_count_towards_max]);
    all.map(|count| u32::try_from(*count).unwrap_or_default()).fold(0, u32::saturating_add)
}

/// How often single Jobs were made anew, counted or not.
fn remade(status: &JobSetStatus) -> u32 {
    let entries = status.replicated_jobs_status.iter();
    let all = entries.flat_map(|entry| &entry.job_restarts);
    all.map(|count| u32::try_from(*count).unwrap_or_default()).fold(0, u32::saturating_add)
}

/// How long a worker may take to stop, if its Job says so.
fn grace(job: &JobSpec) -> Option<Duration> {
    let env = in_place::worker(job)?.env.iter().flatten().find(|env| env.name == GRACE);
    if let Some(text) = env.and_then(|env| env.value.as_deref()) {
        return in_place::span(text);
    }
    let seconds = job.template.spec.as_ref()?.termination_grace_period_seconds?;
    u64::try_from(seconds).ok().map(Duration::from_secs)
}

/// The workers of a Job that have to succeed; none if that cannot be said of single ones.
fn needed(job: &JobSpec, range: &Range<u32>) -> Vec<Range<u32>> {
    let Some(policy) = &job.success_policy else { return vec![range.clone()] };
    let [rule] = policy.rules.as_slice() else { return Vec::new() };
    let (Some(indexes), None) = (&rule.succeeded_indexes, rule.succeeded_count) else {
        return Vec::new();
    };
    let count = i32::try_from(range.len()).unwrap_or(i32::MAX);
    let place = |index: i32| range.start + u32::try_from(index).unwrap_or_default();
    let indexes = Indexes::parse(indexes, count);
    indexes.intervals().map(|(first, last)| place(first)..place(last) + 1).collect()
}

/// The rules of a Job on exit codes of its worker.
fn rules(job: &JobSpec, range: &Range<u32>) -> Vec<ExitRule> {
    let worker = in_place::worker(job).map(|worker| worker.name.as_str());
    let rules = job.pod_failure_policy.iter().flat_map(|policy| &policy.rules);
    let read = |rule: &PodFailurePolicyRule| {
        let codes = rule.on_exit_codes.as_ref()?;
        let is_ours = codes.container_name.as_deref().is_none_or(|name| Some(name) == worker);
        is_ours.then(|| ExitRule {
            slots: range.clone(),
            is_in: codes.operator == "In",
            codes: codes.values.clone(),
            verdict: match rule.action.as_str() {
                "FailJob" => Verdict::Surrender,
                "Ignore" => Verdict::Ignore,
                _ => Verdict::Count,
            },
        })
    };
    rules.filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(annotations: &Value, spec: &Value, status: &Value) -> Terms {
        let mut object = json!({
            "metadata": {"name": "js", "annotations": annotations},
            "spec": {"replicatedJobs": [
                {"name": "driver", "replicas": 1, "template": {"spec": {
                    "template": {"spec": {"containers": [{"name": "c", "command": ["a"]}]}}}}},
                {"name": "w", "replicas": 2, "template": {"spec": {
                    "parallelism": 3, "completions": 3,
                    "template": {"spec": {"containers": [{"name": "c", "command": ["a"]}]}}}}},
            ]},
            "status": status,
        });
        for (key, value) in spec.as_object().unwrap() {
            object["spec"][key] = value.clone();
        }
        terms(&serde_json::from_value(object).unwrap())
    }

    #[test]
    fn a_set_that_says_little_has_the_defaults() {
        let said = of(&json!({keys::IN_PLACE_TIMEOUT: "90s"}), &json!({}), &json!({}));
        assert_eq!(said.completion.groups, [0..1, 1..4, 4..7]);
        let groups = said.completion.clone();
        let want = Terms { completion: groups, ..Terms::new(7, 0, Duration::from_secs(90)) };
        assert_eq!(said, want);
    }

    #[test]
    fn what_a_set_says_is_what_its_gang_does() {
        let said = of(
            &json!({
                keys::IN_PLACE_TIMEOUT: "60s", keys::IN_PLACE_RESTARTS: "5",
                keys::IN_PLACE_REJOIN: "false", keys::IN_PLACE_STALLED_MAX: "3",
                keys::IN_PLACE_PROGRESS: "5m",
            }),
            &json!({"suspend": true, "failurePolicy": {"maxRestarts": 10},
                    "successPolicy": {"operator": "Any", "targetReplicatedJobs": ["w"]}}),
            &json!({"restarts": 3, "restartsCountTowardsMax": 1, "replicatedJobsStatus": [
                {"name": "w", "jobRestarts": [2, 3], "jobRestartsCountTowardsMax": [1, 0]}]}),
        );
        assert_eq!(said.remade, 5);
        assert_eq!((said.max_restarts, said.restarts.counted), (8, 3), "two were the set's own");
        assert_eq!((said.generation, said.is_suspended), (4, true));
        assert_eq!((said.is_rejoining, said.stalled_max), (false, 3));
        assert_eq!(said.progress_after, Duration::from_mins(5));
        assert_eq!(said.completion, Completion { groups: vec![1..4, 4..7], is_any: true });
    }

    fn with_job(job: &Value) -> Terms {
        let mut template = json!({
            "parallelism": 4, "completions": 4,
            "template": {"spec": {"containers": [
                {"name": "log"}, {"name": "worker", "command": ["a"]}]}},
        });
        for (key, value) in job.as_object().unwrap() {
            template[key] = value.clone();
        }
        let group = json!({"name": "w", "replicas": 1, "template": {"spec": template}});
        of(&json!({}), &json!({"replicatedJobs": [group]}), &json!({}))
    }

    #[test]
    fn exit_codes_of_the_worker_are_judged_by_its_job() {
        let rule = |action: &str, codes: Value| json!({"action": action, "onExitCodes": codes});
        let said = with_job(&json!({"podFailurePolicy": {"rules": [
            rule("Ignore", json!({"operator": "In", "values": [42]})),
            rule("FailJob", json!({"containerName": "log", "operator": "In", "values": [1]})),
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
            rule("FailJob", json!({"containerName": "worker", "operator": "NotIn",
                                   "values": [7]})),
            rule("Count", json!({"operator": "In", "values": [7]})),
        ]}}));
        let verdicts: Vec<_> = said.rules.iter().map(|it| (it.is_in, it.verdict)).collect();
        let want = [(true, Verdict::Ignore), (false, Verdict::Surrender), (true, Verdict::Count)];
        assert_eq!(verdicts, want);
        assert_eq!(said.rules[0].slots, 0..4);
    }

    #[test]
    fn a_job_that_needs_only_some_indexes_needs_only_some_workers() {
        let policy = |rules: Value| with_job(&json!({"successPolicy": {"rules": rules}}));
        let leader = policy(json!([{"succeededIndexes": "0,2-3"}]));
        assert_eq!(leader.completion, Completion { groups: vec![0..1, 2..4], is_any: false });
        assert!(leader.is_rejoining);
        for unclear in [
            json!([{"succeededCount": 2}]),
            json!([{"succeededIndexes": "0"}, {"succeededIndexes": "1"}]),
        ] {
            assert!(!policy(unclear.clone()).is_rejoining, "{unclear}");
        }
    }

    #[test]
    fn the_grace_of_a_pod_is_that_of_its_worker() {
        let pod = |spec: Value| with_job(&json!({"template": {"spec": spec}})).grace;
        let worker = |env: Value| json!([{"name": "c", "command": ["a"], "env": env}]);
        assert_eq!(pod(json!({"containers": worker(json!([]))})), Duration::from_secs(2));
        let said = json!({"terminationGracePeriodSeconds": 45, "containers": worker(json!([]))});
        assert_eq!(pod(said), Duration::from_secs(45));
        let both = json!({"terminationGracePeriodSeconds": 45,
                          "containers": worker(json!([{"name": GRACE, "value": "20s"}]))});
        assert_eq!(pod(both), Duration::from_secs(20));
    }
}
