//! The scenarios of KEP-3998, each by its name.

use serde_json::{Value, json};

use super::support::*;

fn indexed(completions: i32, rules: Value) -> Value {
    json!({
        "completions": completions, "parallelism": completions, "completionMode": "Indexed",
        "successPolicy": {"rules": rules},
    })
}

async fn ends_by_rule(world: &World, rule: usize) {
    let job = world.until_ended("Complete").await;
    assert_eq!(conditions(&job), ["SuccessCriteriaMet", "Complete"]);
    for condition in ["SuccessCriteriaMet", "Complete"] {
        let wanted = ("SuccessPolicy".to_owned(), format!("Matched rules at index {rule}"));
        assert_eq!(condition_of(&job, condition), Some(wanted), "{condition}");
    }
    world.until_pods("let go", |pods| !pods.iter().any(is_tracked)).await;
}

#[tokio::test]
async fn all_indexes_succeeded() {
    let world = World::start().await;
    world.create(indexed(1, json!([{"succeededIndexes": "0"}]))).await;
    world.until_counts([1, 0, 0, 0, 0]).await;
    world.set_index_phase(0, "Succeeded").await;
    ends_by_rule(&world, 0).await;
    let job = world.until_counts([0, 0, 1, 0, 0]).await;
    assert_eq!(status(&job).completed_indexes.as_deref(), Some("0"));
    let text = world.metrics_text();
    let finished = r#"job_controller_jobs_finished_total{completion_mode="Indexed",result="succeeded",reason="SuccessPolicy"} 1"#;
    assert!(text.contains(finished), "{text}");
}

#[tokio::test]
async fn a_job_without_success_policy_ends_with_completions_reached() {
    let world = World::start().await;
    world.create(json!({"completions": 1, "completionMode": "Indexed"})).await;
    world.set_index_phase(0, "Succeeded").await;
    let job = world.until_ended("Complete").await;
    assert_eq!(conditions(&job), ["SuccessCriteriaMet", "Complete"]);
    assert_eq!(condition_of(&job, "Complete").unwrap().0, "CompletionsReached");
    let text = world.metrics_text();
    let finished = r#"job_controller_jobs_finished_total{completion_mode="Indexed",result="succeeded",reason="CompletionsReached"} 1"#;
    assert!(text.contains(finished), "{text}");
}

#[tokio::test]
async fn success_with_some_indexes_still_pending_by_indexes() {
    let world = World::start().await;
    world.create(indexed(2, json!([{"succeededIndexes": "1"}]))).await;
    world.until_counts([2, 0, 0, 0, 0]).await;
    world.set_index_phase(1, "Succeeded").await;
    ends_by_rule(&world, 0).await;
    let job = world.until_counts([0, 0, 1, 0, 0]).await;
    assert_eq!(status(&job).completed_indexes.as_deref(), Some("1"));
    let pods = world.until_pods("one pod", |pods| pods.len() == 1).await;
    assert_eq!(index_of(&pods[0]), Some(1), "the lingering pod is gone");
}

#[tokio::test]
async fn success_with_some_indexes_still_pending_by_count() {
    let world = World::start().await;
    world.create(indexed(4, json!([{"succeededCount": 2}]))).await;
    world.set_index_phase(3, "Succeeded").await;
    let job = world.until_counts([3, 0, 1, 0, 0]).await;
    assert_eq!(conditions(&job), [""; 0], "one is not enough");
    world.set_index_phase(1, "Succeeded").await;
    ends_by_rule(&world, 0).await;
    let job = world.until_counts([0, 0, 2, 0, 0]).await;
    assert_eq!(status(&job).completed_indexes.as_deref(), Some("1,3"));
}

#[tokio::test]
async fn success_with_some_indexes_failed() {
    let world = World::start().await;
    let rules =
        json!([{"succeededIndexes": "0"}, {"succeededCount": 2, "succeededIndexes": "1-3"}]);
    world.create(indexed(4, rules)).await;
    world.set_index_phase(3, "Failed").await;
    world.until("one failed", |job| counts(job)[3] == 1).await;
    world.set_index_phase(1, "Succeeded").await;
    world.until("one succeeded", |job| counts(job)[2] == 1).await;
    world.set_index_phase(2, "Succeeded").await;
    ends_by_rule(&world, 1).await;
    let job = world.until_counts([0, 0, 2, 1, 0]).await;
    assert_eq!(status(&job).completed_indexes.as_deref(), Some("1,2"));
}

#[tokio::test]
async fn success_with_failures_within_backoff_limit_per_index() {
    let world = World::start().await;
    let mut spec = indexed(3, json!([{"succeededCount": 1}]));
    spec["backoffLimitPerIndex"] = json!(1);
    world.create(spec).await;
    world.set_index_phase(0, "Failed").await;
    world.until_pods("replaced", |pods| active_indexes(pods) == [0, 1, 2]).await;
    world.until("counted", |job| counts(job)[3] == 1).await;
    world.set_index_phase(1, "Succeeded").await;
    ends_by_rule(&world, 0).await;
    let job = world.until_counts([0, 0, 1, 1, 0]).await;
    assert_eq!(status(&job).failed_indexes.as_deref(), Some(""));
    assert_eq!(status(&job).completed_indexes.as_deref(), Some("1"));
}

#[tokio::test]
async fn a_job_that_meets_backoff_limit_per_index_fails_before_success_is_looked_at() {
    let world = World::start().await;
    let mut spec = indexed(2, json!([{"succeededCount": 1}]));
    spec["backoffLimitPerIndex"] = json!(0);
    world.create(spec).await;
    world.set_index_phase(0, "Failed").await;
    let job = world.until_counts([1, 0, 0, 1, 0]).await;
    assert_eq!(status(&job).failed_indexes.as_deref(), Some("0"));
    world.set_index_phase(1, "Succeeded").await;
    let job = world.until_ended("Failed").await;
    assert_eq!(conditions(&job), ["FailureTarget", "Failed"]);
    let wanted = ("FailedIndexes".to_owned(), "Job has failed indexes".to_owned());
    assert_eq!(condition_of(&job, "Failed"), Some(wanted));
    assert_eq!(counts(&job), [0, 0, 1, 1, 0]);
    assert_eq!(status(&job).completed_indexes.as_deref(), Some("1"));
}

#[tokio::test]
async fn success_and_failure_in_the_same_pass_ends_failed() {
    let mut world = World::start().await;
    let mut spec = indexed(3, json!([{"succeededIndexes": "0"}]));
    spec["backoffLimit"] = json!(0);
    world.create(spec).await;
    world.until_counts([3, 0, 0, 0, 0]).await;
    // Both happen while nobody looks, so that one pass sees both.
    world.stop_controller().await;
    world.set_index_phase(0, "Succeeded").await;
    world.set_index_phase(1, "Failed").await;
    world.start_controller(quick());
    let job = world.until_ended("Failed").await;
    assert_eq!(conditions(&job), ["FailureTarget", "Failed"]);
    assert_eq!(condition_of(&job, "Failed").unwrap().0, "BackoffLimitExceeded");
    assert_eq!(counts(&job), [0, 0, 1, 2, 0], "what still ran has failed with the Job");
}

#[tokio::test]
async fn once_the_criteria_are_met_no_failure_counts_against_the_job() {
    let mut world = World::start().await;
    let mut spec = indexed(3, json!([{"succeededIndexes": "0"}]));
    spec["backoffLimit"] = json!(0);
    // A foreign finalizer keeps pods around after they were deleted.
    spec["template"] = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    world.create(spec).await;
    world.until_counts([3, 0, 0, 0, 0]).await;
    world.set_index_phase(0, "Succeeded").await;
    let job = world.until("decided", |job| conditions(job) == ["SuccessCriteriaMet"]).await;
    assert!(!is_over(&job));
    world.until_pods("lingering pods to end", |pods| !pods.iter().any(is_active)).await;
    world.restart_controller(quick()).await;
    for pod in world.all_pods().await {
        if index_of(&pod) != Some(0) {
            world.set_pod_phase(&pod, "Failed").await;
        }
    }
    for pod in world.all_pods().await {
        world.let_go(&pod, "example.com/hold").await;
    }
    ends_by_rule(&world, 0).await;
}

#[tokio::test]
async fn the_gate_on_off_and_on_again_leaves_finished_jobs_untouched() {
    let mut world = World::start().await;
    world.create_named("done", indexed(2, json!([{"succeededCount": 1}]))).await;
    world.set_index_phase(0, "Succeeded").await;
    let done = world.until_named("done", "over", is_over).await;
    world.until_pods("one pod", |pods| pods.len() == 1).await;

    world.create(indexed(5, json!([{"succeededCount": 3}]))).await;
    world.until_counts([5, 0, 0, 0, 0]).await;
    world.succeed_of("j", 0).await;
    world.until_counts([4, 0, 1, 0, 0]).await;

    let off = "featureGates: {JobSuccessPolicy: false}";
    let off = lockstep_local::Configuration::parse(off).unwrap().feature_gates;
    world.restart_controller(quick().with_gates(off)).await;
    world.create_named("off", indexed(2, json!([{"succeededCount": 1}]))).await;
    world.succeed_of("off", 0).await;
    for index in [1, 2] {
        world.succeed_of("j", index).await;
    }
    let job = world.until_counts([2, 0, 3, 0, 0]).await;
    assert_eq!(conditions(&job), [""; 0], "rules have no effect");
    let other = world.until_named("off", "counted", |job| counts(job) == [1, 0, 1, 0, 0]).await;
    assert_eq!(conditions(&other), [""; 0]);
    world.succeed_of("off", 1).await;
    let other = world.until_named("off", "over", is_over).await;
    assert_eq!(condition_of(&other, "Complete").unwrap().0, "", "one way to succeed, no reason");
    assert_eq!(world.job("done").await, done);

    world.restart_controller(quick()).await;
    ends_by_rule(&world, 0).await;
    let job = world.job("j").await;
    assert_eq!(status(&job).completed_indexes.as_deref(), Some("0-2"));
    assert_eq!(world.job("done").await, done);
    assert_eq!(world.job("off").await, other);
}

#[tokio::test]
async fn a_success_decision_outlives_the_deciding_pod_and_the_controller() {
    let mut world = World::start().await;
    let mut spec = indexed(3, json!([{"succeededIndexes": "0"}]));
    // A foreign finalizer keeps the Job from ending while the controller is there.
    spec["template"] = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    world.create(spec).await;
    world.until_counts([3, 0, 0, 0, 0]).await;
    world.set_index_phase(0, "Succeeded").await;
    world.until("decided", |job| conditions(job) == ["SuccessCriteriaMet"]).await;
    world.stop_controller().await;
    for pod in world.all_pods().await {
        let _ = world.pods().delete(&pod.metadata.name.clone().unwrap(), &now()).await;
        world.let_go(&pod, "example.com/hold").await;
        world.let_go(&pod, TRACKING).await;
    }
    world.until_pods("gone", <[_]>::is_empty).await;
    world.start_controller(quick());
    ends_by_rule(&world, 0).await;
    assert_eq!(status(&world.job("j").await).completed_indexes.as_deref(), Some("0"));
}
