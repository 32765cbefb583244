//! Jobs that grow and shrink with their replicated job while they run.

use anyhow::Result;
use kube::ResourceExt;
use serde_json::json;

use super::cases;
use crate::world::{World, group, same};

cases!(jobs_that_run_change_their_size, a_new_size_holds_after_a_restart);

async fn resize(world: &World, size: i32) -> Result<()> {
    world
        .edit("js", |jobset| {
            let job = &mut jobset["spec"]["replicatedJobs"][0]["template"]["spec"];
            job["parallelism"] = size.into();
            job["completions"] = size.into();
        })
        .await
}

/// Waits until the Jobs have these sizes: parallelism and completions.
async fn until_sizes(world: &World, want: &[i32]) -> Result<()> {
    world
        .until(&format!("Jobs of sizes {want:?}"), async || {
            let jobs = world.jobs().await?;
            let sizes = jobs.iter().map(|job| job.spec.as_ref());
            let sizes: Vec<_> =
                sizes.map(|spec| spec.map(|spec| (spec.parallelism, spec.completions))).collect();
            let is_met = sizes.iter().copied().eq(want.iter().map(|n| Some((Some(*n), Some(*n)))));
            Ok(if is_met { Ok(()) } else { Err(format!("they are {sizes:?}")) })
        })
        .await
}

async fn jobs_that_run_change_their_size(world: World) -> Result<()> {
    world.jobset(json!({"replicatedJobs": [group("a", 2, 2), group("b", 1, 1)]})).await?;
    let before: Vec<_> = world.running("js-a-0").await?.iter().map(ResourceExt::uid).collect();
    resize(&world, 4).await?;
    until_sizes(&world, &[4, 4, 1]).await?;
    let after: Vec<_> = world.running("js-a-0").await?.iter().map(ResourceExt::uid).collect();
    same("pods that ran on", before.iter().all(|uid| after.contains(uid)), true)?;
    resize(&world, 1).await?;
    until_sizes(&world, &[1, 1, 1]).await?;
    for job in ["js-a-0", "js-a-1", "js-b-0"] {
        world.end(job, 0).await?;
    }
    world.until_ended("js", "Completed").await.map(drop)
}

async fn a_new_size_holds_after_a_restart(world: World) -> Result<()> {
    let spec = json!({"failurePolicy": {"maxRestarts": 1}, "replicatedJobs": [group("a", 1, 1)]});
    world.jobset(spec).await?;
    world.running("js-a-0").await?;
    resize(&world, 3).await?;
    until_sizes(&world, &[3]).await?;
    world.end_one("js-a-0", 1).await?;
    world.until_jobs(1, &["js-a-0"]).await?;
    until_sizes(&world, &[3]).await?;
    world.end("js-a-0", 0).await?;
    world.until_ended("js", "Completed").await.map(drop)
}
