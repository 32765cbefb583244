//! Jobs in a namespace that has a quota.

use k8s_openapi::api::core::v1::ResourceQuota;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use super::support::*;

#[tokio::test]
async fn a_job_that_a_quota_holds_up_says_so_and_goes_on_trying() {
    let world = World::start().await;
    let quotas: Api<ResourceQuota> = Api::namespaced(world.client.clone(), "default");
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}});
    let quota = serde_json::from_value(quota).unwrap();
    quotas.create(&PostParams::default(), &quota).await.unwrap();
    loop {
        let quota = quotas.get("q").await.unwrap();
        if quota.status.is_some_and(|status| status.used.is_some()) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    world.create(json!({"parallelism": 2, "completions": 2})).await;
    world.until_counts([1, 0, 0, 0, 0]).await;
    let events = world.events("j", "FailedCreate").await;
    let why = "is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1";
    let is_told = |event: &String| {
        event.starts_with("Warning FailedCreate Error creating: pods \"j-") && event.ends_with(why)
    };
    assert!(events.iter().any(is_told), "{events:?}");
    // The first makes room for the second when it ends.
    world.set_phase("Succeeded", 1).await;
    world.until_counts([1, 0, 1, 0, 0]).await;
    world.set_phase("Succeeded", 1).await;
    let job = world.until("over", is_over).await;
    assert_eq!(conditions(&job).last().map(String::as_str), Some("Complete"));
}
