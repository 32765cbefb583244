//! The stories of KEP-262 and KEP-104, with the manifests of `examples/`. What their containers
//! would do, the case makes the pods do.

use anyhow::Result;
use serde_json::{Value, json};

use super::cases;
use crate::world::{World, condition, same};

cases!(
    kep_262_story_1_a_bug_fails_maintenance_restarts,
    kep_262_story_2_all_restart_together,
    kep_262_story_3_maintenance_is_not_counted,
    kep_262_story_4_each_group_has_its_rule,
    kep_104_story_1_the_driver_is_first,
    kep_104_story_2_queue_then_drivers_then_workers,
);

/// How often it has restarted, and how many of those count.
fn restarts(jobset: &Value) -> (i64, i64) {
    let count = |name: &str| jobset["status"][name].as_i64().unwrap_or_default();
    (count("restarts"), count("restartsCountTowardsMax"))
}

async fn kep_262_story_1_a_bug_fails_maintenance_restarts(world: World) -> Result<()> {
    let name = world.example("jobset-fail-fast.yaml").await?;
    let job = format!("{name}-buggy-job-0");
    world.end(&job, 143).await?;
    world.until_jobs(1, &[&job]).await?;
    world.end(&job, 1).await?;
    let jobset = world.until_ended(&name, "Failed").await?;
    same("restarts", restarts(&jobset), (1, 1))?;
    let reason = &condition(&jobset, "Failed")["reason"];
    same("the reason", reason, &json!("FailJobSetFailurePolicyAction"))
}

async fn kep_262_story_2_all_restart_together(world: World) -> Result<()> {
    let name = world.example("jobset-restart.yaml").await?;
    let job = format!("{name}-buggy-job-0");
    world.end_one(&job, 1).await?;
    world.until_jobs(1, &[&job]).await?;
    world.end(&job, 0).await?;
    let jobset = world.until_ended(&name, "Completed").await?;
    same("restarts", restarts(&jobset), (1, 1))
}

async fn kep_262_story_3_maintenance_is_not_counted(world: World) -> Result<()> {
    let name = world.example("jobset-ignore-max-restarts.yaml").await?;
    let job = format!("{name}-workers-0");
    for (attempt, code) in [(1, 143), (2, 143), (3, 1)] {
        world.end(&job, code).await?;
        world.until_jobs(attempt, &[&job]).await?;
    }
    world.end(&job, 0).await?;
    let jobset = world.until_ended(&name, "Completed").await?;
    same("restarts", restarts(&jobset), (3, 1))
}

async fn kep_262_story_4_each_group_has_its_rule(world: World) -> Result<()> {
    let name = world.example("jobset-different-policies.yaml").await?;
    let [server, first, second] =
        ["parameter-server-0", "workers-0", "workers-1"].map(|job| format!("{name}-{job}"));
    let all = [server.as_str(), first.as_str(), second.as_str()];
    for (attempt, failing) in [(1, &second), (2, &second), (3, &server)] {
        world.end_one(failing, 1).await?;
        world.until_jobs(attempt, &all).await?;
    }
    world.end(&first, 0).await?;
    world.end(&second, 0).await?;
    let jobset = world.until_ended(&name, "Completed").await?;
    same("restarts", restarts(&jobset), (3, 1))
}

async fn kep_104_story_1_the_driver_is_first(world: World) -> Result<()> {
    let name = world.example("jobset-driver-first.yaml").await?;
    let [driver, workers] = ["driver-0", "workers-0"].map(|job| format!("{name}-{job}"));
    world.until_jobs(0, &[&driver, &workers]).await?;
    let jobs = world.jobs().await?;
    let ready = jobs[0].status.as_ref().and_then(|status| status.ready);
    same("pods of the driver that are ready when there are workers", ready, Some(1))?;
    world.end(&workers, 0).await?;
    world.until_ended(&name, "Completed").await.map(drop)
}

async fn kep_104_story_2_queue_then_drivers_then_workers(world: World) -> Result<()> {
    let name = world.example("jobset-in-order.yaml").await?;
    let groups = ["messagequeue-0", "driver-0", "driver-1", "worker-0", "worker-1"];
    let jobs = groups.map(|job| format!("{name}-{job}"));
    world.until_jobs(0, &jobs.each_ref().map(String::as_str)).await?;
    let wanted = ["StartupPolicyCompleted", "True", "InOrderStartupPolicyCompleted"];
    world.until_condition(&name, wanted).await?;
    for job in &jobs[1..] {
        world.end(job, 0).await?;
    }
    world.until_ended(&name, "Completed").await.map(drop)
}
