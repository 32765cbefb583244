//! Jobs whose pods really run, or pretend to.

use serde_json::json;

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
