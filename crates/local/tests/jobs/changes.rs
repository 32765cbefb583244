//! What users do to Jobs: suspend, resume, scale, delete, adopt.

use kube::api::{DeleteParams, PropagationPolicy};
use serde_json::{Value, json};

use super::support::*;

#[tokio::test]
async fn a_suspended_job_has_no_pods_and_starts_anew_when_resumed() {
    let mut world = World::start().await;
    world.create(json!({"parallelism": 2, "completions": 4})).await;
    let job = world.until_counts([2, 0, 0, 0, 0]).await;
    assert!(status(&job).start_time.is_some());
    world.set_phase("Succeeded", 1).await;
    world.until_counts([2, 0, 1, 0, 0]).await;
    world.change("j", json!({"spec": {"suspend": true}})).await;
    let job = world.until("suspended", |job| conditions(job) == ["Suspended"]).await;
    assert_eq!(
        condition_of(&job, "Suspended").unwrap(),
        ("JobSuspended".into(), "Job suspended".into())
    );
    let job = world.until_counts([0, 0, 1, 0, 0]).await;
    assert_eq!(status(&job).start_time, None);
    assert!(world.active_pods().await.is_empty());
    world.restart_controller(quick()).await;
    world.change("j", json!({"spec": {"suspend": false}})).await;
    let job = world.until_counts([2, 0, 1, 0, 0]).await;
    assert!(status(&job).start_time.is_some());
    let suspended = status(&job).conditions.unwrap().remove(0);
    assert_eq!(
        (suspended.status.as_str(), suspended.reason.as_deref()),
        ("False", Some("JobResumed"))
    );
    let events = world.events("j", "Resumed").await;
    for event in ["Normal Suspended Job suspended", "Normal Resumed Job resumed"] {
        assert!(events.contains(&event.to_owned()), "{events:?}");
    }
}

#[tokio::test]
async fn a_job_created_suspended_waits_and_one_without_work_is_complete_all_the_same() {
    let world = World::start().await;
    world.create(json!({"suspend": true, "parallelism": 2})).await;
    world.until("suspended", |job| conditions(job) == ["Suspended"]).await;
    assert!(world.all_pods().await.is_empty());
    world.create_named("none", json!({"suspend": true, "completions": 0})).await;
    let job = world.until_named("none", "over", is_over).await;
    assert_eq!(condition_of(&job, "Complete").unwrap().0, "CompletionsReached");
    assert_eq!(status(&job).start_time, None);
}

#[tokio::test]
async fn an_elastic_job_scales_up_and_down() {
    let scale = |count: i32| json!({"spec": {"completions": count, "parallelism": count}});
    let spec = json!({"completions": 3, "parallelism": 3, "completionMode": "Indexed"});
    let completed = |job: &_| status(job).completed_indexes.unwrap_or_default();

    let up = World::start().await;
    up.create(spec.clone()).await;
    up.until_counts([3, 0, 0, 0, 0]).await;
    up.change("j", scale(4)).await;
    for index in 0..4 {
        up.set_index_phase(index, "Succeeded").await;
    }
    assert_eq!(completed(&up.until_ended("Complete").await), "0-3");

    let down = World::start().await;
    down.create(spec.clone()).await;
    down.set_index_phase(1, "Succeeded").await;
    down.set_index_phase(2, "Failed").await;
    down.until_counts([2, 0, 1, 1, 0]).await;
    down.change("j", scale(1)).await;
    down.until_counts([1, 0, 0, 1, 0]).await;
    down.set_index_phase(0, "Succeeded").await;
    let job = down.until_ended("Complete").await;
    assert_eq!((completed(&job).as_str(), counts(&job)), ("0", [0, 0, 1, 1, 0]));

    let again = World::start().await;
    again.create(spec.clone()).await;
    again.set_index_phase(2, "Succeeded").await;
    again.until_counts([2, 0, 1, 0, 0]).await;
    again.change("j", scale(2)).await;
    again.until_counts([2, 0, 0, 0, 0]).await;
    again.change("j", scale(3)).await;
    for index in 0..3 {
        again.set_index_phase(index, "Succeeded").await;
    }
    assert_eq!(completed(&again.until_ended("Complete").await), "0-2");

    let nothing = World::start().await;
    nothing.create(spec).await;
    nothing.until_counts([3, 0, 0, 0, 0]).await;
    nothing.change("j", scale(0)).await;
    nothing.until_ended("Complete").await;
}

#[tokio::test]
async fn deletion_leaves_no_pod_behind_unless_it_is_told_to() {
    let policies = [
        (PropagationPolicy::Background, 0),
        (PropagationPolicy::Foreground, 0),
        (PropagationPolicy::Orphan, 3),
    ];
    for (policy, left) in policies {
        let world = World::start().await;
        world.create(json!({"parallelism": 3, "completions": 5})).await;
        world.until_counts([3, 0, 0, 0, 0]).await;
        let params =
            DeleteParams { propagation_policy: Some(policy.clone()), ..DeleteParams::default() };
        world.delete("j", &params).await;
        world.until_gone("j").await;
        let what = format!("{left} pods, let go, after {policy:?}");
        world.until_pods(&what, |pods| pods.len() == left && !pods.iter().any(is_tracked)).await;
    }
}

#[tokio::test]
async fn pods_are_let_go_when_their_job_went_while_the_controller_was_away() {
    let mut world = World::start().await;
    world.create(json!({"parallelism": 2})).await;
    world.until_counts([2, 0, 0, 0, 0]).await;
    world.stop_controller().await;
    let orphan = Some(PropagationPolicy::Orphan);
    world.delete("j", &DeleteParams { propagation_policy: orphan, ..now() }).await;
    world.until_gone("j").await;
    assert!(world.all_pods().await.iter().all(is_tracked));
    world.start_controller(quick());
    let pods = world.until_pods("let go", |pods| !pods.iter().any(is_tracked)).await;
    assert_eq!(pods.len(), 2);
}

#[tokio::test]
async fn a_finished_job_is_deleted_when_its_time_is_over() {
    let world = World::start().await;
    world.create(json!({"ttlSecondsAfterFinished": 1})).await;
    world.create_named("kept", json!({"ttlSecondsAfterFinished": 3600})).await;
    world.set_phase("Succeeded", 2).await;
    world.until_named("kept", "over", is_over).await;
    world.until_gone("j").await;
    world.until_pods("one left", |pods| pods.len() == 1).await;
    // The time may be changed afterwards.
    world.change("kept", json!({"spec": {"ttlSecondsAfterFinished": 0}})).await;
    world.until_gone("kept").await;
    world.until_pods("gone", <[_]>::is_empty).await;
}

fn adoptable(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"app": "mine"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "none"}]},
    })
}

#[tokio::test]
async fn pods_that_the_selector_selects_are_adopted_and_others_released() {
    let world = World::start().await;
    world.create_pod(adoptable("stray")).await;
    world
        .create(json!({
            "parallelism": 2, "manualSelector": true,
            "selector": {"matchLabels": {"app": "mine"}},
            "template": {"metadata": {"labels": {"app": "mine"}}},
        }))
        .await;
    world.until_counts([2, 0, 0, 0, 0]).await;
    let stray = world.pods().get("stray").await.unwrap();
    assert!(is_tracked(&stray));
    let owner = &stray.metadata.owner_references.as_ref().unwrap()[0];
    assert_eq!((owner.kind.as_str(), owner.controller), ("Job", Some(true)));
    assert_eq!(world.all_pods().await.len(), 2);
    // Without the label it is no longer one of the Job, which replaces it.
    world.change_pod("stray", json!({"metadata": {"labels": {"app": "other"}}})).await;
    let is_free = |pods: &[k8s_openapi::api::core::v1::Pod]| {
        let stray = pods.iter().find(|pod| pod.metadata.name.as_deref() == Some("stray")).unwrap();
        pods.len() == 3 && stray.metadata.owner_references.is_none() && !is_tracked(stray)
    };
    world.until_pods("released and replaced", is_free).await;
    world.until_counts([2, 0, 0, 0, 0]).await;
}

#[tokio::test]
async fn jobs_that_another_controller_manages_are_left_alone() {
    let world = World::start().await;
    world.create(json!({"managedBy": "example.com/other"})).await;
    world.create_named("ours", json!({"managedBy": "kubernetes.io/job-controller"})).await;
    world.until_named("ours", "active", |job| counts(job)[0] == 1).await;
    assert_eq!(status(&world.job("j").await), Default::default());
    assert_eq!(world.all_pods().await.len(), 1);
    let text = world.metrics_text();
    let external = "job_controller_jobs_by_external_controller_total\
                    {controller_name=\"example.com/other\"} 1\n";
    assert!(text.contains(external), "{text}");
}

#[tokio::test]
async fn a_name_that_is_taken_by_somebody_else_is_no_obstacle() {
    let mut world = World::start().await;
    world.create(json!({})).await;
    world.until_counts([1, 0, 0, 0, 0]).await;
    // The next name is known in advance only to the controller: let it create, then take the name.
    world.stop_controller().await;
    let pod = world.active_pods().await.remove(0);
    let name = pod.metadata.name.clone().unwrap();
    world.let_go(&pod, TRACKING).await;
    world.pods().delete(&name, &now()).await.unwrap();
    world.until_pods("gone", <[_]>::is_empty).await;
    world.create_pod(adoptable(&name)).await;
    world.start_controller(quick());
    let two = |pods: &[k8s_openapi::api::core::v1::Pod]| pods.len() == 2;
    world.until_pods("a pod of another name", two).await;
    world.until("active", |job| counts(job)[0] == 1).await;
}
