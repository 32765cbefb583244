//! How Jobs fail, and when they are over.

use std::time::Duration;

use serde_json::{Value, json};

use super::support::*;

async fn failed_because(world: &World, reason: &str, message: &str) {
    let job = world.until_ended("Failed").await;
    assert_eq!(conditions(&job), ["FailureTarget", "Failed"]);
    let wanted = (reason.to_owned(), message.to_owned());
    assert_eq!(condition_of(&job, "Failed"), Some(wanted.clone()));
    assert_eq!(condition_of(&job, "FailureTarget"), Some(wanted));
    assert_eq!(status(&job).completion_time, None);
    world.until_pods("let go", |pods| !pods.iter().any(is_tracked)).await;
    let events = world.events("j", reason).await;
    assert!(events.contains(&format!("Warning {reason} {message}")), "{events:?}");
}

#[tokio::test]
async fn one_failure_more_than_the_backoff_limit_ends_the_job_and_all_its_pods() {
    let world = World::start().await;
    world.create(json!({"parallelism": 3, "backoffLimit": 1})).await;
    world.set_phase("Failed", 2).await;
    failed_because(&world, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
        .await;
    let job = world.job("j").await;
    let [active, ready, succeeded, failed, terminating] = counts(&job);
    assert_eq!([active, ready, succeeded, terminating], [0; 4]);
    assert!(failed >= 4, "what still ran has failed too: {failed}");
    assert!(world.active_pods().await.is_empty());
}

#[tokio::test]
async fn a_job_that_is_active_too_long_fails() {
    let world = World::start().await;
    world.create(json!({"parallelism": 2, "activeDeadlineSeconds": 1})).await;
    world.until_counts([2, 0, 0, 0, 0]).await;
    let message = "Job was active longer than specified deadline";
    failed_because(&world, "DeadlineExceeded", message).await;
    assert_eq!(counts(&world.job("j").await), [0, 0, 0, 2, 0]);
}

fn exit_code(code: i32) -> Value {
    json!({"phase": "Failed", "containerStatuses": [{
        "name": "c", "image": "", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"terminated": {"exitCode": code}},
    }]})
}

fn failure_policy() -> Value {
    json!({"parallelism": 1, "backoffLimit": 0, "podFailurePolicy": {"rules": [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [5]}},
        {"action": "Count", "onExitCodes": {"operator": "NotIn", "values": [5]}},
    ]}})
}

#[tokio::test]
async fn a_pod_failure_policy_fails_the_job_by_exit_code() {
    let world = World::start().await;
    world.create(failure_policy()).await;
    world.until_counts([1, 0, 0, 0, 0]).await;
    let pod = world.active_pods().await.remove(0);
    world.set_pod_status(&pod, exit_code(5)).await;
    let message = format!(
        "Container c for pod default/{} failed with exit code 5 matching FailJob rule at index 1",
        pod.metadata.name.unwrap()
    );
    failed_because(&world, "PodFailurePolicy", &message).await;
    let text = world.metrics_text();
    let handled = "job_controller_pod_failures_handled_by_failure_policy_total\
                   {action=\"FailJob\"} 1\n";
    assert!(text.contains(handled), "{text}");
}

#[tokio::test]
async fn a_pod_failure_policy_ignores_disruptions_and_counts_the_rest() {
    let world = World::start().await;
    world.create(failure_policy()).await;
    world.until_counts([1, 0, 0, 0, 0]).await;
    let pod = world.active_pods().await.remove(0);
    let disrupted = json!({"phase": "Failed",
        "conditions": [{"type": "DisruptionTarget", "status": "True"}]});
    world.set_pod_status(&pod, disrupted).await;
    let other = |pods: &[k8s_openapi::api::core::v1::Pod]| {
        pods.iter().any(|it| is_active(it) && it.metadata.uid != pod.metadata.uid)
    };
    world.until_pods("replaced", other).await;
    world.until_counts([1, 0, 0, 0, 0]).await;
    let pod = world.active_pods().await.remove(0);
    world.set_pod_status(&pod, exit_code(1)).await;
    failed_because(&world, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
        .await;
}

#[tokio::test]
async fn a_failed_pod_that_is_deleted_while_the_controller_is_away_still_fails_the_job() {
    let mut world = World::start().await;
    world.create(failure_policy()).await;
    world.until_counts([1, 0, 0, 0, 0]).await;
    world.stop_controller().await;
    let pod = world.active_pods().await.remove(0);
    world.set_pod_status(&pod, exit_code(5)).await;
    world.pods().delete(pod.metadata.name.as_deref().unwrap(), &now()).await.unwrap();
    world.start_controller(quick());
    let job = world.until_ended("Failed").await;
    assert_eq!(condition_of(&job, "Failed").unwrap().0, "PodFailurePolicy");
    world.until_pods("gone", <[_]>::is_empty).await;
}

#[tokio::test]
async fn indexes_fail_one_by_one_and_the_job_when_all_are_done() {
    let world = World::start().await;
    world
        .create(json!({
            "parallelism": 2, "completions": 2, "completionMode": "Indexed",
            "backoffLimitPerIndex": 1,
        }))
        .await;
    for attempt in ["0", "1"] {
        let is_next = |pod: &k8s_openapi::api::core::v1::Pod| {
            let annotations = pod.metadata.annotations.as_ref().unwrap();
            is_active(pod)
                && index_of(pod) == Some(0)
                && annotations["batch.kubernetes.io/job-index-failure-count"] == attempt
        };
        world.until_pods("next", |pods| pods.iter().any(is_next)).await;
        world.set_index_phase(0, "Failed").await;
    }
    let failed = |job: &_| status(job).failed_indexes.as_deref() == Some("0");
    let job = world.until("one index failed", failed).await;
    assert!(!is_over(&job), "the other goes on");
    world.set_index_phase(1, "Succeeded").await;
    failed_because(&world, "FailedIndexes", "Job has failed indexes").await;
    let job = world.job("j").await;
    assert_eq!(status(&job).completed_indexes.as_deref(), Some("1"));
    assert_eq!(counts(&job), [0, 0, 1, 2, 0]);
}

#[tokio::test]
async fn more_failed_indexes_than_allowed_end_the_job() {
    let world = World::start().await;
    world
        .create(json!({
            "parallelism": 4, "completions": 4, "completionMode": "Indexed",
            "backoffLimitPerIndex": 0, "maxFailedIndexes": 1,
        }))
        .await;
    world.set_index_phase(0, "Failed").await;
    world.until_counts([3, 0, 0, 1, 0]).await;
    world.set_index_phase(3, "Failed").await;
    let message = "Job has exceeded the specified maximal number of failed indexes";
    failed_because(&world, "MaxFailedIndexesExceeded", message).await;
    assert_eq!(counts(&world.job("j").await), [0, 0, 0, 4, 0]);
}

#[tokio::test]
async fn failed_pods_are_replaced_later_and_later() {
    let mut options = quick();
    options.jobs.pod_backoff_base = Duration::from_secs(1);
    options.jobs.pod_backoff_max = Duration::from_secs(600);
    let world = World::with(options).await;
    world.create(json!({})).await;
    for count in 1..=2 {
        world.until("active", |job| counts(job)[0] == 1).await;
        let pod = world.active_pods().await.remove(0);
        let mut failed = exit_code(1);
        let finished_at = jiff::Timestamp::now().round(jiff::Unit::Second).unwrap();
        failed["containerStatuses"][0]["state"]["terminated"]["finishedAt"] = json!(finished_at);
        world.set_pod_status(&pod, failed).await;
        let counted = move |job: &_| counts(job)[3] == count && counts(job)[0] == 1;
        world.until("counted and replaced", counted).await;
        let next = world.active_pods().await.remove(0);
        let made_at = next.metadata.creation_timestamp.unwrap().0;
        let waited = made_at.duration_since(finished_at).as_secs();
        assert!(waited >= i64::from(count), "failure {count} was replaced after {waited} s");
    }
}

#[tokio::test]
async fn a_job_is_over_only_when_no_pod_is_left_terminating() {
    for (name, phase, interim, terminal) in [
        ("failing", "Failed", "FailureTarget", "Failed"),
        ("succeeding", "Succeeded", "SuccessCriteriaMet", "Complete"),
    ] {
        let world = World::start().await;
        world
            .create(json!({
                "parallelism": 2, "completions": 2, "completionMode": "Indexed",
                "backoffLimit": 0, "successPolicy": {"rules": [{"succeededCount": 1}]},
                "template": {"metadata": {"finalizers": ["example.com/hold"]}},
            }))
            .await;
        world.until_counts([2, 0, 0, 0, 0]).await;
        world.set_index_phase(0, phase).await;
        let is_half_way = |job: &_| conditions(job) == [interim] && counts(job)[4] == 1;
        let job = world.until(name, is_half_way).await;
        assert!(!is_over(&job), "{name}");
        for pod in world.all_pods().await {
            world.let_go(&pod, "example.com/hold").await;
        }
        let job = world.until_ended(terminal).await;
        assert_eq!(conditions(&job), [interim, terminal], "{name}");
        assert_eq!(counts(&job)[4], 0, "{name}");
    }
}

#[tokio::test]
async fn pods_are_replaced_only_when_they_have_failed_if_the_job_says_so() {
    for (policy, active) in [("Failed", 0), ("TerminatingOrFailed", 1)] {
        let world = World::start().await;
        world
            .create(json!({
                "podReplacementPolicy": policy,
                "template": {"metadata": {"finalizers": ["example.com/hold"]}},
            }))
            .await;
        world.until_counts([1, 0, 0, 0, 0]).await;
        let pod = world.active_pods().await.remove(0);
        world.pods().delete(pod.metadata.name.as_deref().unwrap(), &now()).await.unwrap();
        let failed = if policy == "Failed" { 0 } else { 1 };
        world.until_counts([active, 0, 0, failed, 1]).await;
        world.set_pod_phase(&pod, "Failed").await;
        world.until_counts([1, 0, 0, 1, 0]).await;
    }
}
