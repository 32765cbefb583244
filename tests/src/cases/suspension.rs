//! Standing still, and going on.

use anyhow::Result;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::cases;
use crate::world::{World, condition, gated, group, same};

cases!(
    a_suspended_set_runs_when_resumed,
    a_running_set_is_suspended,
    order_holds_when_resumed,
    a_set_is_suspended_while_it_starts_and_resumed_in_order,
    templates_may_change_while_suspended,
);

fn plain(order: &str) -> Value {
    json!({"suspend": true, "startupPolicy": {"startupPolicyOrder": order},
        "replicatedJobs": [group("a", 1, 1), group("b", 1, 1)]})
}

const BOTH: [&str; 2] = ["js-a-0", "js-b-0"];

async fn suspend(world: &World, is_on: bool) -> Result<()> {
    Ok(world.patch("js", json!({"spec": {"suspend": is_on}})).await?)
}

async fn a_suspended_set_runs_when_resumed(world: World) -> Result<()> {
    world.jobset(plain("AnyOrder")).await?;
    world.until_jobs(0, &BOTH).await?;
    world.until_suspended(&[true, true]).await?;
    let jobset = world.until_condition("js", ["Suspended", "True", "SuspendedJobs"]).await?;
    same(
        "the message",
        &condition(&jobset, "Suspended")["message"],
        &json!("jobset is suspended"),
    )?;
    suspend(&world, false).await?;
    world.until_suspended(&[false, false]).await?;
    world.until_condition("js", ["Suspended", "False", "ResumeJobs"]).await?;
    world.until_event("ResumeJobs").await?;
    for job in BOTH {
        world.end(job, 0).await?;
    }
    world.until_ended("js", "Completed").await.map(drop)
}

async fn a_running_set_is_suspended(world: World) -> Result<()> {
    world.jobset(json!({"replicatedJobs": [group("a", 1, 1), group("b", 1, 1)]})).await?;
    world.running("js-b-0").await?;
    suspend(&world, true).await?;
    world.until_suspended(&[true, true]).await?;
    world.until_condition("js", ["Suspended", "True", "SuspendedJobs"]).await?;
    suspend(&world, false).await?;
    world.running("js-a-0").await.map(drop)
}

async fn order_holds_when_resumed(world: World) -> Result<()> {
    let mut spec = plain("InOrder");
    let pods = &mut spec["replicatedJobs"][0]["template"]["spec"]["template"]["spec"];
    pods["nodeSelector"] = json!({"there-is": "no-such"});
    world.jobset(spec).await?;
    // While suspended, order holds nothing back.
    world.until_jobs(0, &BOTH).await?;
    suspend(&world, false).await?;
    world.until_suspended(&[false, true]).await?;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    world.until_suspended(&[false, true]).await
}

/// A scenario of KEP-104.
async fn a_set_is_suspended_while_it_starts_and_resumed_in_order(world: World) -> Result<()> {
    let spec = json!({"startupPolicy": {"startupPolicyOrder": "InOrder"},
        "replicatedJobs": [gated("a"), group("b", 1, 1)]});
    world.jobset(spec).await?;
    world.until_jobs(0, &["js-a-0"]).await?;
    world.still_jobs(&["js-a-0"]).await?;
    suspend(&world, true).await?;
    world.until_jobs(0, &BOTH).await?;
    world.until_suspended(&[true, true]).await?;
    world.until_condition("js", ["Suspended", "True", "SuspendedJobs"]).await?;
    suspend(&world, false).await?;
    world.until_suspended(&[false, true]).await?;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    world.until_suspended(&[false, true]).await?;
    // Until all of it has started it counts as suspended.
    let jobset = world.get("js").await?;
    same("Suspended", &condition(&jobset, "Suspended")["status"], &json!("True"))?;
    let starting = condition(&jobset, "JobSetStartupPolicyCompleted");
    let found = (&starting["status"], &starting["message"]);
    same("what starts", found, (&json!("False"), &json!("replicated job a is starting")))?;
    world.open("js-a-0").await?;
    world.until_suspended(&[false, false]).await?;
    world.until_condition("js", ["Suspended", "False", "ResumeJobs"]).await?;
    for job in BOTH {
        world.end(job, 0).await?;
    }
    world.until_ended("js", "Completed").await.map(drop)
}

async fn templates_may_change_while_suspended(world: World) -> Result<()> {
    world.jobset(plain("AnyOrder")).await?;
    world.until_jobs(0, &BOTH).await?;
    world
        .edit("js", |jobset| {
            let template = &mut jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"];
            template["metadata"]["labels"] = json!({"queue": "fast"});
            jobset["spec"]["suspend"] = false.into();
        })
        .await?;
    let pods = world.running("js-a-0").await?;
    let label = pods.first().and_then(|pod| pod.labels().get("queue").cloned());
    same("the label of a pod", label.as_deref(), Some("fast"))
}
