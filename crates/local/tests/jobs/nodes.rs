//! Jobs whose pods really run, or pretend to.

use serde_json::{Value, json};

use super::support::*;

#[tokio::test]
async fn a_job_of_processes_runs_to_its_end() {
    let world = World::with_processes().await;
    world.create(json!({"completions": 3, "parallelism": 2})).await;
    let job = world.until_ended("Complete").await;
    assert_eq!(counts(&job), [0, 0, 3, 0, 0]);
    assert_eq!(conditions(&job), ["SuccessCriteriaMet", "Complete"]);
    let wanted =
        ("CompletionsReached".to_owned(), "Reached expected number of succeeded pods".into());
    assert_eq!(condition_of(&job, "Complete"), Some(wanted));
    let events = world.events("j", "Completed").await;
    assert!(events.contains(&"Normal Completed Job completed".to_owned()), "{events:?}");
    assert_eq!(events.iter().filter(|event| event.contains("SuccessfulCreate")).count(), 3);
    let pods = world.until_pods("let go", |pods| !pods.iter().any(is_tracked)).await;
    assert_eq!(pods.len(), 3, "finished pods stay");
}

#[tokio::test]
async fn a_job_on_fake_nodes_runs_to_its_end() {
    let world = World::with_fake_nodes(4).await;
    world
        .create(json!({
            "completions": 60, "parallelism": 60, "completionMode": "Indexed",
            "template": {"metadata": {"annotations": {"lockstep.dev/fake-run-seconds": "0"}}},
        }))
        .await;
    let job = world.until_ended("Complete").await;
    assert_eq!(status(&job).completed_indexes.as_deref(), Some("0-59"));
    assert_eq!(counts(&job), [0, 0, 60, 0, 0]);
}

/// A Job of ten workers that run `script`, as the stories of KEP-3998 have it.
fn story(rules: Value, script: &str) -> Value {
    json!({
        "parallelism": 10, "completions": 10, "completionMode": "Indexed",
        "successPolicy": {"rules": rules},
        "template": {"spec": {"containers": [
            {"name": "job-container", "image": "job-image", "command": ["sh", "-c", script]},
        ]}},
    })
}

#[tokio::test]
async fn story_1_the_leader_decides_and_lingering_workers_are_ended() {
    let world = World::with_processes().await;
    let script = r#"[ "$JOB_COMPLETION_INDEX" = 0 ] || exec sleep 300"#;
    world.create(story(json!([{"succeededIndexes": "0"}]), script)).await;
    let job = world.until_ended("Complete").await;
    let wanted = ("SuccessPolicy".to_owned(), "Matched rules at index 0".to_owned());
    assert_eq!(condition_of(&job, "Complete"), Some(wanted));
    assert_eq!(status(&job).completed_indexes.as_deref(), Some("0"));
    assert_eq!(counts(&job), [0, 0, 1, 0, 0]);
    let pods = world.until_pods("only the leader", |pods| pods.len() == 1).await;
    assert_eq!((index_of(&pods[0]), phase(&pods[0])), (Some(0), "Succeeded"));
}

#[tokio::test]
async fn story_2_enough_workers_decide_without_the_leader() {
    let world = World::with_processes().await;
    let script = r#"[ "$JOB_COMPLETION_INDEX" -ge 5 ] || exec sleep 300"#;
    let rules = json!([
        {"succeededIndexes": "0"},
        {"succeededCount": 5, "succeededIndexes": "1-9"},
    ]);
    world.create(story(rules, script)).await;
    let job = world.until_ended("Complete").await;
    let wanted = ("SuccessPolicy".to_owned(), "Matched rules at index 1".to_owned());
    assert_eq!(condition_of(&job, "SuccessCriteriaMet"), Some(wanted));
    assert_eq!(status(&job).completed_indexes.as_deref(), Some("5-9"));
    assert_eq!(counts(&job), [0, 0, 5, 0, 0]);
}

#[tokio::test]
async fn processes_that_fail_are_run_again_until_the_limit() {
    let world = World::with_processes().await;
    let failing = json!({"backoffLimit": 2, "template": {"spec": {"containers": [
        {"name": "c", "image": "none", "command": ["sh", "-c", "exit 3"]}]}}});
    world.create(failing).await;
    let job = world.until_ended("Failed").await;
    assert_eq!(condition_of(&job, "Failed").unwrap().0, "BackoffLimitExceeded");
    assert_eq!(counts(&job), [0, 0, 0, 3, 0]);
}
