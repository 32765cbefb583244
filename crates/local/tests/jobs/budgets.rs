//! Jobs whose pods have a budget.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use kube::api::{EvictParams, PostParams};
use kube::{Api, ResourceExt};
use lockstep_local::controllers::disruption;
use lockstep_local::feeds::Feeds;
use serde_json::json;

use super::support::*;

/// A world whose budgets are counted.
async fn counting() -> World {
    let world = World::start().await;
    disruption::spawn(world.client.clone(), &Feeds::start(&world.client));
    world
}

/// Creates a budget over the pods of the Job `j`.
async fn create(world: &World, mut spec: serde_json::Value) -> Api<PodDisruptionBudget> {
    let budgets = Api::namespaced(world.client.clone(), "default");
    spec["selector"] = json!({"matchLabels": {"job-name": "j"}});
    let budget = json!({"metadata": {"name": "b"}, "spec": spec});
    budgets.create(&PostParams::default(), &serde_json::from_value(budget).unwrap()).await.unwrap();
    budgets
}

async fn until(
    budgets: &Api<PodDisruptionBudget>,
    what: &str,
    is: impl Fn(&PodDisruptionBudgetStatus) -> bool,
) {
    let mut seen = None;
    for _ in 0..1_000 {
        seen = budgets.get("b").await.unwrap().status;
        if seen.as_ref().is_some_and(&is) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("never {what}: {seen:?}");
}

async fn make_ready(world: &World, pod: &Pod) {
    let conditions = json!([{"type": "Ready", "status": "True"}]);
    world.set_pod_status(pod, json!({"phase": "Running", "conditions": conditions})).await;
}

#[tokio::test]
async fn evictions_wait_until_those_who_went_are_replaced() {
    let world = counting().await;
    let budgets = create(&world, json!({"minAvailable": 2})).await;
    until(&budgets, "looked at", |status| status.observed_generation == Some(1)).await;
    world.create(json!({"parallelism": 3, "completions": 3})).await;
    let pods = world.until_pods("three", |pods| pods.len() == 3).await;
    for pod in &pods {
        make_ready(&world, pod).await;
    }
    until(&budgets, "one to spare", |status| status.disruptions_allowed == Some(1)).await;
    let evict = |pod: &Pod| {
        let (pods, name) = (world.pods(), pod.name_any());
        async move { pods.evict(&name, &EvictParams::default()).await }
    };
    evict(&pods[0]).await.unwrap();
    let refused = evict(&pods[1]).await.unwrap_err();
    assert!(
        matches!(&refused, kube::Error::Api(status) if status.code == 429),
        "the budget is spent: {refused}"
    );
    let is_new = |pod: &Pod| !pods.iter().any(|old| old.name_any() == pod.name_any());
    let now = world.until_pods("replaced", |pods| pods.iter().any(is_new)).await;
    make_ready(&world, now.iter().find(|pod| is_new(pod)).unwrap()).await;
    until(&budgets, "one to spare again", |status| {
        status.disruptions_allowed == Some(1) && status.disrupted_pods.is_none()
    })
    .await;
    evict(&pods[1]).await.unwrap();
}

#[tokio::test]
async fn parts_of_a_job_are_told_to_be_unknown() {
    let world = counting().await;
    let budgets = create(&world, json!({"maxUnavailable": 1})).await;
    world.create(json!({"parallelism": 1})).await;
    let why = "jobs.batch does not implement the scale subresource";
    until(&budgets, "told", |status| {
        let conditions = status.conditions.iter().flatten();
        conditions.into_iter().any(|it| it.reason == "SyncFailed" && it.message == why)
    })
    .await;
}
