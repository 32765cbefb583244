//! What starts when: `InOrder` and `dependsOn`.

use anyhow::Result;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::cases;
use crate::world::{World, condition, gated, group, same, with};

cases!(
    in_order_each_group_waits_for_the_one_before,
    order_holds_after_a_restart,
    a_restart_waits_for_the_first_again,
    a_dependency_waits_for_ready,
    a_dependency_waits_for_complete,
    a_dependency_is_waited_for_again_after_a_restart,
    a_restart_of_one_job_leaves_those_that_depend_on_it_alone,
    any_order_starts_all_at_once,
);

fn in_order(first: Value) -> Value {
    json!({"startupPolicy": {"startupPolicyOrder": "InOrder"}, "failurePolicy": {"maxRestarts": 1},
        "replicatedJobs": [first, group("b", 2, 1)]})
}

/// A group whose pods are placed nowhere, so that it is never ready.
fn unplaced(name: &str) -> Value {
    let mut group = group(name, 1, 1);
    group["template"]["spec"]["template"]["spec"]["nodeSelector"] = json!({"there-is": "no-such"});
    group
}

async fn in_order_each_group_waits_for_the_one_before(world: World) -> Result<()> {
    world.jobset(in_order(unplaced("a"))).await?;
    world.until_jobs(0, &["js-a-0"]).await?;
    world.still_jobs(&["js-a-0"]).await?;
    let jobset = world
        .until_condition(
            "js",
            ["StartupPolicyInProgress", "True", "InOrderStartupPolicyInProgress"],
        )
        .await?;
    let starting = condition(&jobset, "JobSetStartupPolicyCompleted");
    same("the seed's condition", &starting["status"], &json!("False"))?;
    same("its reason", &starting["reason"], &json!("StartupPolicyInOrder"))?;
    same("its message", &starting["message"], &json!("replicated job a is starting"))
}

async fn order_holds_after_a_restart(world: World) -> Result<()> {
    world.jobset(in_order(group("a", 1, 1))).await?;
    let all = ["js-a-0", "js-b-0", "js-b-1"];
    world.until_jobs(0, &all).await?;
    world
        .until_condition("js", ["StartupPolicyCompleted", "True", "InOrderStartupPolicyCompleted"])
        .await?;
    world.running("js-b-0").await?;
    world.end("js-b-1", 1).await?;
    world.until_jobs(1, &all).await?;
    let jobset = world
        .until_condition("js", ["StartupPolicyCompleted", "True", "InOrderStartupPolicyCompleted"])
        .await?;
    same("restarts", &jobset["status"]["restarts"], &json!(1))?;
    let jobs = world.jobs().await?;
    let made: Vec<_> = jobs.iter().map(|job| job.metadata.creation_timestamp.clone()).collect();
    same("the first is the oldest", made.iter().all(|at| *at >= made[0]), true)
}

async fn a_restart_waits_for_the_first_again(world: World) -> Result<()> {
    world.jobset(in_order(gated("a"))).await?;
    let all = ["js-a-0", "js-b-0", "js-b-1"];
    world.until_jobs(0, &["js-a-0"]).await?;
    world.open("js-a-0").await?;
    world.until_jobs(0, &all).await?;
    world.end("js-b-1", 1).await?;
    world.until_jobs(1, &["js-a-0"]).await?;
    world.still_jobs(&["js-a-0"]).await?;
    let wanted = ["JobSetStartupPolicyCompleted", "False", "StartupPolicyInOrder"];
    let jobset = world.until_condition("js", wanted).await?;
    let message = &condition(&jobset, wanted[0])["message"];
    same("the message", message, &json!("replicated job a is starting"))?;
    world.open("js-a-0").await?;
    world.until_jobs(1, &all).await?;
    for job in all {
        world.end(job, 0).await?;
    }
    world.until_ended("js", "Completed").await.map(drop)
}

async fn a_dependency_waits_for_ready(world: World) -> Result<()> {
    let depends = |name: &str, on: &str| {
        with(group(name, 1, 1), json!({"dependsOn": [{"name": on, "status": "Ready"}]}))
    };
    let groups = json!([group("a", 1, 1), depends("b", "a"), unplaced("c"), depends("d", "c")]);
    world.jobset(json!({"replicatedJobs": groups})).await?;
    let want = ["js-a-0", "js-b-0", "js-c-0"];
    world.until_jobs(0, &want).await?;
    world.still_jobs(&want).await
}

async fn a_dependency_waits_for_complete(world: World) -> Result<()> {
    let last = with(group("b", 1, 1), json!({"dependsOn": [{"name": "a", "status": "Complete"}]}));
    world.jobset(json!({"replicatedJobs": [group("a", 2, 1), last]})).await?;
    world.until_jobs(0, &["js-a-0", "js-a-1"]).await?;
    world.end("js-a-0", 0).await?;
    world.still_jobs(&["js-a-0", "js-a-1"]).await?;
    world.end("js-a-1", 0).await?;
    world.until_jobs(0, &["js-a-0", "js-a-1", "js-b-0"]).await?;
    world.end("js-b-0", 0).await?;
    world.until_ended("js", "Completed").await.map(drop)
}

/// A set whose replicated job `b` waits for `a` to be ready.
fn dependent(first: Value, rules: Value) -> Value {
    let last = with(group("b", 1, 1), json!({"dependsOn": [{"name": "a", "status": "Ready"}]}));
    json!({"replicatedJobs": [first, last], "failurePolicy": {"maxRestarts": 1, "rules": rules}})
}

async fn a_dependency_is_waited_for_again_after_a_restart(world: World) -> Result<()> {
    world.jobset(dependent(gated("a"), json!([]))).await?;
    for attempt in 0..2 {
        world.until_jobs(attempt, &["js-a-0"]).await?;
        world.still_jobs(&["js-a-0"]).await?;
        world.open("js-a-0").await?;
        world.until_jobs(attempt, &["js-a-0", "js-b-0"]).await?;
        if attempt == 0 {
            world.end("js-b-0", 1).await?;
        }
    }
    // And when it is suspended and goes on.
    for is_on in [true, false] {
        world.patch("js", json!({"spec": {"suspend": is_on}})).await?;
        world.until_suspended(&[is_on, true]).await?;
    }
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    world.until_suspended(&[false, true]).await?;
    world.open("js-a-0").await?;
    world.until_suspended(&[false, false]).await
}

async fn a_restart_of_one_job_leaves_those_that_depend_on_it_alone(world: World) -> Result<()> {
    let rules = json!([{"name": "r", "action": "RestartJob", "targetReplicatedJobs": ["a"]}]);
    world.jobset(dependent(gated("a"), rules)).await?;
    world.open("js-a-0").await?;
    let both = ["js-a-0", "js-b-0"];
    world.until_jobs(0, &both).await?;
    let before: Vec<_> = world.jobs().await?.iter().map(ResourceExt::uid).collect();
    world.end("js-a-0", 1).await?;
    world.until_event("RestartJobFailurePolicyAction").await?;
    // It is not ready again, and what has started because it was runs on.
    world
        .until("the Job is made anew", async || {
            let after: Vec<_> = world.jobs().await?.iter().map(ResourceExt::uid).collect();
            let is_met = after.len() == 2 && after[0] != before[0];
            Ok(if is_met { Ok(()) } else { Err(format!("{} Jobs", after.len())) })
        })
        .await?;
    world.still_jobs(&both).await?;
    same("the Job that depends", world.jobs().await?[1].uid(), before[1].clone())
}

async fn any_order_starts_all_at_once(world: World) -> Result<()> {
    world.jobset(json!({"replicatedJobs": [unplaced("a"), group("b", 1, 1)]})).await?;
    world.until_jobs(0, &["js-a-0", "js-b-0"]).await?;
    world.running("js-b-0").await?;
    let jobset = world.get("js").await?;
    let kinds = ["StartupPolicyInProgress", "JobSetStartupPolicyCompleted"];
    same("conditions", kinds.map(|kind| condition(&jobset, kind)), [Value::Null, Value::Null])
}
