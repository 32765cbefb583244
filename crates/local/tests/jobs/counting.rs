//! How many pods a Job has, and how they are counted.

use serde_json::json;

use super::support::*;

fn finished(mode: &str, result: &str, count: u64) -> String {
    format!(
        "job_controller_job_pods_finished_total\
         {{completion_mode=\"{mode}\",result=\"{result}\"}} {count}\n"
    )
}

#[tokio::test]
async fn a_job_of_one_pod_replaces_a_failed_one_across_restarts_of_the_controller() {
    let mut world = World::start().await;
    world.create(json!({})).await;
    world.until_counts([1, 0, 0, 0, 0]).await;
    world.restart_controller(quick()).await;
    world.set_phase("Failed", 1).await;
    world.until_counts([1, 0, 0, 1, 0]).await;
    world.restart_controller(quick()).await;
    world.set_phase("Succeeded", 1).await;
    let job = world.until_ended("Complete").await;
    assert_eq!(counts(&job), [0, 0, 1, 1, 0]);
    let pods = world.until_pods("let go", |pods| !pods.iter().any(is_tracked)).await;
    assert_eq!(pods.len(), 2, "no more pods after the success");
    let text = world.metrics_text();
    for line in [finished("NonIndexed", "failed", 1), finished("NonIndexed", "succeeded", 1)] {
        assert!(text.contains(&line), "{line} is not in {text}");
    }
}

#[tokio::test]
async fn a_work_queue_starts_no_more_pods_after_the_first_success() {
    let world = World::start().await;
    world.create(json!({"parallelism": 5})).await;
    world.until_counts([5, 0, 0, 0, 0]).await;
    let ready = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
    for pod in world.active_pods().await.iter().take(2) {
        world.set_pod_status(pod, ready.clone()).await;
    }
    world.until_counts([5, 2, 0, 0, 0]).await;
    for pod in world.active_pods().await.iter().filter(|pod| phase(pod) == "Running") {
        world.set_pod_phase(pod, "Failed").await;
    }
    world.until_counts([5, 0, 0, 2, 0]).await;
    world.set_phase("Succeeded", 1).await;
    world.until_counts([4, 0, 1, 2, 0]).await;
    world.set_phase("Failed", 2).await;
    world.until_counts([2, 0, 1, 4, 0]).await;
    world.set_phase("Succeeded", 2).await;
    let job = world.until_ended("Complete").await;
    assert_eq!(counts(&job), [0, 0, 3, 4, 0]);
    world.until_pods("let go", |pods| !pods.iter().any(is_tracked)).await;
    let text = world.metrics_text();
    for event in ["add", "delete"] {
        let line = format!(
            "job_controller_terminated_pods_tracking_finalizer_total{{event=\"{event}\"}} 7\n"
        );
        assert!(text.contains(&line), "{line} is not in {text}");
    }
}

#[tokio::test]
async fn parallelism_may_change_by_more_than_the_backoff_limit() {
    let world = World::start().await;
    world.create(json!({"parallelism": 5, "backoffLimit": 2})).await;
    world.until_counts([5, 0, 0, 0, 0]).await;
    world.change("j", json!({"spec": {"parallelism": 2}})).await;
    world.until_counts([2, 0, 0, 0, 0]).await;
    world.change("j", json!({"spec": {"parallelism": 4}})).await;
    world.until_counts([4, 0, 0, 0, 0]).await;
    world.change("j", json!({"spec": {"parallelism": 0}})).await;
    let job = world.until_counts([0, 0, 0, 0, 0]).await;
    assert!(!is_over(&job));
    world.change("j", json!({"spec": {"parallelism": 4}})).await;
    world.until_counts([4, 0, 0, 0, 0]).await;
    world.set_phase("Succeeded", 4).await;
    let job = world.until_ended("Complete").await;
    assert_eq!(counts(&job), [0, 0, 4, 0, 0]);
}

#[tokio::test]
async fn more_pods_than_a_pass_may_handle_are_handled_in_several() {
    let mut options = quick();
    options.jobs.uncounted_max = 10;
    options.jobs.pods_per_pass_max = 10;
    let world = World::with(options).await;
    world.create(json!({"parallelism": 54, "completions": 56})).await;
    world.until_counts([54, 0, 0, 0, 0]).await;
    world.set_phase("Failed", 2).await;
    world.until_counts([54, 0, 0, 2, 0]).await;
    world.set_phase("Succeeded", 53).await;
    world.until_counts([3, 0, 53, 2, 0]).await;
    world.set_phase("Succeeded", 3).await;
    let job = world.until_ended("Complete").await;
    assert_eq!(counts(&job), [0, 0, 56, 2, 0]);
    world.until_pods("let go", |pods| !pods.iter().any(is_tracked)).await;
    let text = world.metrics_text();
    for line in [finished("NonIndexed", "failed", 2), finished("NonIndexed", "succeeded", 56)] {
        assert!(text.contains(&line), "{line} is not in {text}");
    }
}

#[tokio::test]
async fn each_index_has_one_pod_until_it_succeeds() {
    let world = World::start().await;
    world.create(json!({"parallelism": 3, "completions": 4, "completionMode": "Indexed"})).await;
    world.until_counts([3, 0, 0, 0, 0]).await;
    let pods = world.until_pods("0 to 2", |pods| active_indexes(pods) == [0, 1, 2]).await;
    for pod in &pods {
        let index = index_of(pod).unwrap();
        let meta = &pod.metadata;
        assert_eq!(meta.generate_name.as_deref(), Some(format!("j-{index}-").as_str()));
        assert_eq!(meta.labels.as_ref().unwrap()[INDEX], index.to_string());
        let hostname = pod.spec.as_ref().unwrap().hostname.as_deref();
        assert_eq!(hostname, Some(format!("j-{index}").as_str()));
    }
    world.set_index_phase(1, "Succeeded").await;
    world.until_pods("0, 2 and 3", |pods| active_indexes(pods) == [0, 2, 3]).await;
    let job = world.until_counts([3, 0, 1, 0, 0]).await;
    assert_eq!(status(&job).completed_indexes.as_deref(), Some("1"));
    world.set_index_phase(2, "Failed").await;
    world.until_counts([3, 0, 1, 1, 0]).await;
    world.until_pods("0, 2 and 3", |pods| active_indexes(pods) == [0, 2, 3]).await;
    world.set_phase("Succeeded", 3).await;
    let job = world.until_ended("Complete").await;
    assert_eq!(status(&job).completed_indexes.as_deref(), Some("0-3"));
    assert_eq!(counts(&job), [0, 0, 4, 1, 0]);
    world.until_pods("let go", |pods| !pods.iter().any(is_tracked)).await;
    let text = world.metrics_text();
    let indexes = "job_controller_job_finished_indexes_total\
                   {status=\"succeeded\",backoffLimit=\"global\"} 4\n";
    assert!(text.contains(indexes), "{text}");
}

#[tokio::test]
async fn a_pod_that_is_deleted_from_outside_is_replaced_and_has_failed() {
    let world = World::start().await;
    world.create(json!({})).await;
    world.until_counts([1, 0, 0, 0, 0]).await;
    let pod = world.active_pods().await.remove(0);
    world.pods().delete(pod.metadata.name.as_deref().unwrap(), &now()).await.unwrap();
    world.until_counts([1, 0, 0, 1, 0]).await;
    let uid = pod.metadata.uid;
    world.until_pods("gone", |pods| pods.iter().all(|pod| pod.metadata.uid != uid)).await;
}

#[tokio::test]
async fn a_job_of_the_name_of_one_that_was_deleted_starts_at_once() {
    let mut options = quick();
    options.jobs.pod_backoff_base = std::time::Duration::from_secs(600);
    options.jobs.pod_backoff_max = std::time::Duration::from_secs(600);
    let world = World::with(options).await;
    world.create(json!({})).await;
    world.set_phase("Failed", 1).await;
    world.until_counts([0, 0, 0, 1, 0]).await;
    world.delete("j", &background()).await;
    world.until_gone("j").await;
    world.create(json!({})).await;
    world.until_counts([1, 0, 0, 0, 0]).await;
}
