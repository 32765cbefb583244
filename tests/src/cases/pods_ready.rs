//! KEP-349: pods have to be ready in time, and others wait meanwhile. The block of the
//! configuration is given by annotations of each case's own ClusterQueue.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::{ResourceExt, api::ListParams};
use serde_json::{Value, json};

use super::cases;
use crate::{
    queue::{Queue, gated_job, message},
    world::{World, condition, same},
};

cases!(
    kep_349_story_1_gangs_do_not_deadlock,
    kep_349_story_2_a_gang_that_does_not_recover_is_evicted,
    kep_349_no_workload_is_admitted_while_another_is_not_ready,
    kep_349_a_workload_is_admitted_when_all_others_are_ready,
    kep_349_who_exceeds_the_timeout_is_suspended_and_put_back,
    kep_349_who_exceeds_the_recovery_timeout_is_suspended_and_put_back,
    who_comes_back_too_often_is_deactivated,
);

fn blocking() -> Value {
    json!({"lockstep.dev/block-admission": "true", "lockstep.dev/pods-ready-timeout": "5m"})
}

fn evicting(seconds: u32) -> Value {
    json!({
        "lockstep.dev/pods-ready-timeout": format!("{seconds}s"),
        "lockstep.dev/requeuing-backoff-base-seconds": "1",
    })
}

/// A JobSet of two stages, in the queue `q`, whose second stage is placed when its gate is opened.
fn staged(name: &str) -> Value {
    let mut set = crate::world::manifest(json!({
        "suspend": true, "startupPolicy": {"startupPolicyOrder": "InOrder"},
        "replicatedJobs": [crate::world::group("workers", 1, 2), crate::world::gated("driver")],
    }));
    set["metadata"] = json!({"name": name, "labels": {crate::queue::QUEUE_NAME: "q"}});
    for group in set["spec"]["replicatedJobs"].as_array_mut().into_iter().flatten() {
        let pod = &mut group["template"]["spec"]["template"]["spec"];
        pod["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
    }
    set
}

async fn is_admitted(queue: &Queue, job: &str) -> Result<bool> {
    Ok(condition(&queue.workload(job).await?, "Admitted")["status"] == "True")
}

/// There is quota for both, and yet the second waits until all stages of the first are ready.
async fn kep_349_story_1_gangs_do_not_deadlock(world: World) -> Result<()> {
    let queue = Queue::new(&world, 20, blocking(), json!({})).await?;
    world.create(staged("first")).await?;
    queue.until_admitted("first").await?;
    world.create(staged("second")).await?;
    let waits = queue.until("second", ["QuotaReserved", "False", "WaitingForPodsReady"]).await?;
    let words = "waiting for all admitted workloads to be in PodsReady condition".to_owned();
    same("why it waits", message(&waits, "QuotaReserved"), words)?;
    world
        .until("the second stage", async || {
            let said = message(&queue.workload("first").await?, "lockstep.dev/StartupStage");
            let is_met = said == "replicated job driver is starting (2 of 2)";
            Ok(if is_met { Ok(()) } else { Err(said) })
        })
        .await?;
    ensure!(!is_admitted(&queue, "second").await?, "it is admitted too early");
    world.open("first-driver-0").await?;
    queue.until("first", ["PodsReady", "True", "Started"]).await?;
    queue.until_admitted("second").await?;
    world.open("second-driver-0").await?;
    for set in ["first", "second"] {
        world.end(&format!("{set}-workers-0"), 0).await?;
        world.end(&format!("{set}-driver-0"), 0).await?;
        world.until_ended(set, "Completed").await?;
        queue.until(set, ["Finished", "True", "Succeeded"]).await?;
    }
    queue.remove().await;
    Ok(())
}

/// A pod fails, and the one that replaces it cannot be placed.
async fn kep_349_story_2_a_gang_that_does_not_recover_is_evicted(world: World) -> Result<()> {
    let queue = Queue::new(&world, 1, evicting(4), json!({})).await?;
    queue.create_job(gated_job("one", 1)).await?;
    queue.until_admitted("one").await?;
    world.open("one").await?;
    queue.until("one", ["PodsReady", "True", "Started"]).await?;
    world.end_one("one", 1).await?;
    let lost = queue.until("one", ["PodsReady", "False", "WaitForRecovery"]).await?;
    let words = "At least one pod has failed, waiting for recovery".to_owned();
    same("its words", message(&lost, "PodsReady"), words)?;
    queue.until("one", ["Evicted", "True", "PodsReadyTimeout"]).await?;
    queue.until("one", ["Requeued", "True", "BackoffFinished"]).await?;
    queue.remove().await;
    Ok(())
}

async fn kep_349_no_workload_is_admitted_while_another_is_not_ready(world: World) -> Result<()> {
    let queue = Queue::new(&world, 4, blocking(), json!({})).await?;
    queue.create_job(gated_job("first", 1)).await?;
    queue.until_admitted("first").await?;
    let waits = queue.until("first", ["PodsReady", "False", "WaitForStart"]).await?;
    let words = "Not all pods are ready or succeeded".to_owned();
    same("its words", message(&waits, "PodsReady"), words)?;
    queue.job("second", 1).await?;
    queue.until("second", ["QuotaReserved", "False", "WaitingForPodsReady"]).await?;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    ensure!(!is_admitted(&queue, "second").await?, "it is admitted too early");
    world.open("first").await?;
    queue.until_admitted("second").await?;
    queue.remove().await;
    Ok(())
}

async fn kep_349_a_workload_is_admitted_when_all_others_are_ready(world: World) -> Result<()> {
    let queue = Queue::new(&world, 4, blocking(), json!({})).await?;
    for name in ["first", "second", "third"] {
        queue.job(name, 1).await?;
        queue.until_admitted(name).await?;
        let ready = queue.until(name, ["PodsReady", "True", "Started"]).await?;
        let words = "All pods reached readiness and the workload is running".to_owned();
        same("its words", message(&ready, "PodsReady"), words)?;
    }
    queue.remove().await;
    Ok(())
}

async fn kep_349_who_exceeds_the_timeout_is_suspended_and_put_back(world: World) -> Result<()> {
    let queue = Queue::new(&world, 1, evicting(2), json!({})).await?;
    queue.create_job(gated_job("one", 1)).await?;
    let workload = queue.until_admitted("one").await?;
    let evicted = queue.until("one", ["Evicted", "True", "PodsReadyTimeout"]).await?;
    let name = workload["metadata"]["name"].as_str().unwrap_or_default();
    let words = format!("Exceeded the PodsReady timeout {}/{name}", world.namespace);
    same("its words", message(&evicted, "Evicted"), words)?;
    same("how often", &evicted["status"]["requeueState"]["count"], &json!(1))?;
    queue.until("one", ["Requeued", "True", "BackoffFinished"]).await?;
    // It is tried again, and its pods may be placed now.
    queue.until("one", ["Evicted", "False", "QuotaReserved"]).await?;
    world.open("one").await?;
    queue.until("one", ["PodsReady", "True", "Started"]).await?;
    world.end("one", 0).await?;
    queue.until("one", ["Finished", "True", "Succeeded"]).await?;
    queue.remove().await;
    Ok(())
}

async fn kep_349_who_exceeds_the_recovery_timeout_is_suspended_and_put_back(
    world: World,
) -> Result<()> {
    let mut annotations = evicting(300);
    annotations["lockstep.dev/pods-ready-recovery-timeout"] = "2s".into();
    let queue = Queue::new(&world, 1, annotations, json!({})).await?;
    queue.create_job(gated_job("one", 1)).await?;
    queue.until_admitted("one").await?;
    world.open("one").await?;
    queue.until("one", ["PodsReady", "True", "Started"]).await?;
    world.end_one("one", 1).await?;
    let evicted = queue.until("one", ["Evicted", "True", "PodsReadyTimeout"]).await?;
    let counted = &evicted["status"]["schedulingStats"]["evictions"][0];
    let found = (&counted["reason"], &counted["underlyingCause"]);
    same("what is counted", found, (&json!("PodsReadyTimeout"), &json!("WaitForRecovery")))?;
    queue.until("one", ["PodsReady", "False", "WaitForStart"]).await?;
    queue.remove().await;
    Ok(())
}

async fn who_comes_back_too_often_is_deactivated(world: World) -> Result<()> {
    let mut annotations = evicting(2);
    annotations["lockstep.dev/requeuing-backoff-limit-count"] = "1".into();
    let queue = Queue::new(&world, 1, annotations, json!({})).await?;
    queue.create_job(gated_job("one", 1)).await?;
    let reason = "DeactivatedDueToRequeuingLimitExceeded";
    let evicted = queue.until("one", ["Evicted", "True", reason]).await?;
    let words = "The workload is deactivated due to exceeding the maximum number of re-queuing \
                 retries";
    same("its words", message(&evicted, "Evicted"), words.to_owned())?;
    same("it is inactive", &evicted["spec"]["active"], &json!(false))?;
    queue.until("one", ["Requeued", "False", reason]).await?;
    world
        .until("no pods", async || {
            let pods = world.api::<Pod>().list(&ListParams::default()).await?.items;
            let names: Vec<String> = pods.iter().map(ResourceExt::name_any).collect();
            Ok(if names.is_empty() { Ok(()) } else { Err(format!("there are {names:?}")) })
        })
        .await?;
    queue.remove().await;
    Ok(())
}
