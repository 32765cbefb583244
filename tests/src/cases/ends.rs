//! How JobSets end, and what is told of it.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::cases;
use crate::world::{World, condition, group, group_status, same};

cases!(
    all_jobs_complete_a_set,
    a_target_completes_a_set,
    any_job_completes_a_set,
    a_set_is_deleted_after_its_time,
    a_job_that_is_deleted_after_its_time_counts_and_is_not_run_again,
    what_cannot_be_created_is_told_once,
    a_set_of_another_controller_is_left_alone,
);

async fn completed(world: &World) -> Result<Value> {
    let jobset = world.until_ended("js", "Completed").await?;
    let condition = condition(&jobset, "Completed");
    same("the reason", &condition["reason"], &json!("AllJobsCompleted"))?;
    same("the message", &condition["message"], &json!("jobset completed successfully"))?;
    world.until_event("AllJobsCompleted").await?;
    Ok(jobset)
}

async fn all_jobs_complete_a_set(world: World) -> Result<()> {
    world.jobset(json!({"replicatedJobs": [group("a", 2, 2)]})).await?;
    world.end("js-a-0", 0).await?;
    world.end("js-a-1", 0).await?;
    completed(&world).await?;
    world
        .until("the counts", async || {
            let status = world.get("js").await?["status"]["replicatedJobsStatus"][0].clone();
            let want = json!({"name": "a", "active": 0, "failed": 0, "ready": 0, "succeeded": 2,
                "suspended": 0});
            Ok(if status == want { Ok(()) } else { Err(status.to_string()) })
        })
        .await
}

async fn a_target_completes_a_set(world: World) -> Result<()> {
    let spec = json!({"replicatedJobs": [group("a", 1, 1), group("b", 2, 1)],
        "successPolicy": {"operator": "All", "targetReplicatedJobs": ["a"]}});
    world.jobset(spec).await?;
    world.running("js-b-1").await?;
    world.end("js-a-0", 0).await?;
    completed(&world).await?;
    // What still runs is ended.
    world.until_jobs(0, &["js-a-0"]).await
}

async fn any_job_completes_a_set(world: World) -> Result<()> {
    let spec = json!({"replicatedJobs": [group("a", 2, 1)], "successPolicy": {"operator": "Any"}});
    world.jobset(spec).await?;
    world.end("js-a-1", 0).await?;
    completed(&world).await.map(drop)
}

async fn a_set_is_deleted_after_its_time(world: World) -> Result<()> {
    let spec = json!({"replicatedJobs": [group("a", 1, 1)], "ttlSecondsAfterFinished": 2});
    world.jobset(spec).await?;
    world.end("js-a-0", 0).await?;
    completed(&world).await?;
    world
        .until("the JobSet is gone", async || {
            let is_there = world.jobsets().get_opt("js").await?.is_some();
            Ok(if is_there { Err("it is there".to_owned()) } else { Ok(()) })
        })
        .await
}

async fn a_job_that_is_deleted_after_its_time_counts_and_is_not_run_again(
    world: World,
) -> Result<()> {
    let mut fleeting = group("a", 2, 1);
    fleeting["template"]["spec"]["ttlSecondsAfterFinished"] = 1.into();
    let rule = json!({"name": "leave", "action": "FailJob", "targetReplicatedJobs": ["a"]});
    let spec = json!({"failurePolicy": {"maxRestarts": 1, "rules": [rule]},
        "successPolicy": {"operator": "All", "targetReplicatedJobs": ["b"]},
        "replicatedJobs": [fleeting, group("b", 1, 1)]});
    world.jobset(spec).await?;
    world.end("js-a-0", 0).await?;
    world.end("js-a-1", 1).await?;
    world.until_jobs(0, &["js-b-0"]).await?;
    world.still_jobs(&["js-b-0"]).await?;
    let counts = |jobset: &Value| {
        let own = group_status(jobset, "a");
        (own["succeeded"].clone(), own["failed"].clone())
    };
    same("the counts", counts(&world.get("js").await?), (json!(1), json!(1)))?;
    // The next attempt runs all of it.
    world.end("js-b-0", 1).await?;
    world.until_jobs(1, &["js-a-0", "js-a-1", "js-b-0"]).await?;
    for job in ["js-a-0", "js-a-1", "js-b-0"] {
        world.end(job, 0).await?;
    }
    completed(&world).await.map(drop)
}

async fn what_cannot_be_created_is_told_once(world: World) -> Result<()> {
    // Two that may not be set together, which only the API of Jobs knows.
    let mut bad = group("a", 1, 1);
    bad["template"]["spec"]["podReplacementPolicy"] = "TerminatingOrFailed".into();
    bad["template"]["spec"]["podFailurePolicy"] = json!({"rules": [
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}]});
    world.jobset(json!({"replicatedJobs": [bad]})).await?;
    let event = world.until_event("JobCreationFailed").await?;
    let said = event.message.unwrap_or_default();
    let begins = "job \"js-a-0\" creation failed with error: ";
    ensure!(said.starts_with(begins), "the message is {said:?}");
    same("the reporter", event.reporting_component.as_deref(), Some("jobset"))?;
    same("the type", event.type_.as_deref(), Some("Warning"))?;
    world
        .until("one event, told again", async || {
            let all = world.api::<k8s_openapi::api::core::v1::Event>();
            let all = all.list(&kube::api::ListParams::default()).await?.items;
            let mut told =
                all.iter().filter(|it| it.reason.as_deref() == Some("JobCreationFailed"));
            let count = told.next().and_then(|event| event.series.as_ref()?.count);
            ensure!(told.next().is_none(), "there are two such events");
            Ok(if count > Some(1) { Ok(()) } else { Err(format!("its count is {count:?}")) })
        })
        .await
}

async fn a_set_of_another_controller_is_left_alone(world: World) -> Result<()> {
    let spec = json!({"managedBy": "example.com/other", "replicatedJobs": [group("a", 1, 1)]});
    world.jobset(spec).await?;
    world.still_jobs(&[]).await
}
