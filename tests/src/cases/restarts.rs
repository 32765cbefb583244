//! What happens when a Job fails.

use anyhow::{Result, ensure};
use kube::ResourceExt;
use serde_json::{Value, json};

use super::cases;
use crate::world::{World, attempt_of, condition, group, group_status, same};

cases!(
    without_a_policy_a_failure_is_final,
    a_restart_makes_all_jobs_anew_and_is_counted,
    the_limit_of_restarts_is_final,
    a_restart_may_be_left_uncounted,
    a_rule_fails_the_set_at_once,
    a_rule_is_for_its_target_only,
    one_job_is_restarted_alone,
    attempts_do_not_overlap_when_asked_not_to,
);

const FIRST: &str = " (first failed job: js-a-0)";

fn policy(max: i32, rules: Value) -> Value {
    json!({"failurePolicy": {"maxRestarts": max, "rules": rules},
        "replicatedJobs": [group("a", 1, 2), group("b", 1, 1)]})
}

const BOTH: [&str; 2] = ["js-a-0", "js-b-0"];

async fn failed(world: &World, reason: &str, message: &str) -> Result<Value> {
    let jobset = world.until_ended("js", "Failed").await?;
    let condition = condition(&jobset, "Failed");
    same("the reason", &condition["reason"], &json!(reason))?;
    same("the message", &condition["message"], &json!(format!("{message}{FIRST}")))?;
    Ok(jobset)
}

async fn without_a_policy_a_failure_is_final(world: World) -> Result<()> {
    world.jobset(json!({"replicatedJobs": [group("a", 1, 2), group("b", 1, 1)]})).await?;
    world.until_jobs(0, &BOTH).await?;
    world.end_one("js-a-0", 1).await?;
    failed(&world, "FailedJobs", "jobset failed due to one or more job failures").await?;
    // What still runs is ended.
    world.until_jobs(0, &["js-a-0"]).await
}

async fn a_restart_makes_all_jobs_anew_and_is_counted(world: World) -> Result<()> {
    world.jobset(policy(3, json!([]))).await?;
    world.until_jobs(0, &BOTH).await?;
    let before: Vec<_> = world.jobs().await?.iter().map(ResourceExt::uid).collect();
    world.end_one("js-a-0", 1).await?;
    world.until_jobs(1, &BOTH).await?;
    let jobs = world.jobs().await?;
    ensure!(jobs.iter().all(|job| !before.contains(&job.uid())), "a Job was not made anew");
    let jobset = world.until_condition("js", ["RestartingJobSet", "False", "JobsReady"]).await?;
    let status = &jobset["status"];
    same(
        "restarts",
        (&status["restarts"], &status["restartsCountTowardsMax"]),
        (&json!(1), &json!(1)),
    )?;
    for reason in ["DefaultFailurePolicy", "RestartJobSetFailurePolicyAction"] {
        let event = world.until_event(reason).await?;
        let want = format!("applying RestartJobSet failure policy action{FIRST}");
        same("the message", event.message.as_deref(), Some(want.as_str()))?;
        same("the type", event.type_.as_deref(), Some("Warning"))?;
    }
    world.end("js-a-0", 0).await?;
    world.end("js-b-0", 0).await?;
    world.until_ended("js", "Completed").await.map(drop)
}

async fn the_limit_of_restarts_is_final(world: World) -> Result<()> {
    world.jobset(policy(1, json!([]))).await?;
    world.end_one("js-a-0", 1).await?;
    world.until_jobs(1, &BOTH).await?;
    world.end_one("js-a-0", 1).await?;
    let message = "jobset failed due to reaching max number of restarts";
    let jobset = failed(&world, "ReachedMaxRestarts", message).await?;
    same("restarts", &jobset["status"]["restarts"], &json!(1))
}

async fn a_restart_may_be_left_uncounted(world: World) -> Result<()> {
    let rules = json!([{"name": "free", "action": "RestartJobSetAndIgnoreMaxRestarts"}]);
    world.jobset(policy(0, rules)).await?;
    for attempt in 1..=2 {
        world.end_one("js-a-0", 1).await?;
        world.until_jobs(attempt, &BOTH).await?;
    }
    let jobset = world.get("js").await?;
    same("restarts", &jobset["status"]["restarts"], &json!(2))?;
    let counted = jobset["status"]["restartsCountTowardsMax"].as_i64().unwrap_or_default();
    same("restartsCountTowardsMax", counted, 0)?;
    let condition = condition(&jobset, "RestartingJobSet");
    if condition["status"] == "True" {
        same("the reason", &condition["reason"], &json!("FailurePolicy_free"))?;
    }
    world.until_event("FailurePolicy_free").await.map(drop)
}

async fn a_rule_fails_the_set_at_once(world: World) -> Result<()> {
    let rules = json!([{"name": "r", "action": "FailJobSet",
        "onJobFailureReasons": ["BackoffLimitExceeded"]}]);
    world.jobset(policy(5, rules)).await?;
    world.end_one("js-a-0", 1).await?;
    let message = "applying FailJobSet failure policy action";
    failed(&world, "FailJobSetFailurePolicyAction", message).await.map(drop)
}

async fn a_rule_is_for_its_target_only(world: World) -> Result<()> {
    let rules = json!([{"name": "r", "action": "FailJobSet", "targetReplicatedJobs": ["b"]}]);
    world.jobset(policy(5, rules)).await?;
    world.end_one("js-a-0", 1).await?;
    // No rule is for it, so everything restarts.
    world.until_jobs(1, &BOTH).await?;
    world.end("js-b-0", 1).await?;
    let jobset = world.until_ended("js", "Failed").await?;
    let reason = &condition(&jobset, "Failed")["reason"];
    same("the reason", reason, &json!("FailJobSetFailurePolicyAction"))
}

async fn one_job_is_restarted_alone(world: World) -> Result<()> {
    let rules = json!([{"name": "r", "action": "RestartJob"}]);
    world.jobset(policy(5, rules)).await?;
    world.until_jobs(0, &BOTH).await?;
    let other = world.jobs().await?.pop().and_then(|job| job.uid());
    let uid = |jobs: Vec<k8s_openapi::api::batch::v1::Job>| jobs.first().and_then(ResourceExt::uid);
    let failing = uid(world.jobs().await?);
    world.end_one("js-a-0", 1).await?;
    world
        .until("the Job is made anew", async || {
            let jobs = world.jobs().await?;
            let labels = jobs.first().map(|job| job.labels().clone()).unwrap_or_default();
            let own = labels.get("jobset.sigs.k8s.io/job-restart-attempt").cloned();
            let is_met = jobs.len() == 2 && own.as_deref() == Some("1");
            Ok(if is_met { Ok(()) } else { Err(format!("{} Jobs, {own:?}", jobs.len())) })
        })
        .await?;
    let jobs = world.jobs().await?;
    ensure!(uid(jobs.clone()) != failing, "the Job that failed is still there");
    same("the other Job", jobs.last().and_then(ResourceExt::uid), other)?;
    same("its attempt", jobs.first().map(attempt_of), Some("0".to_owned()))?;
    let jobset = world.get("js").await?;
    same("jobRestarts", &group_status(&jobset, "a")["jobRestarts"], &json!([1]))?;
    same("restarts", jobset["status"]["restarts"].as_i64().unwrap_or_default(), 0)
}

async fn attempts_do_not_overlap_when_asked_not_to(world: World) -> Result<()> {
    let mut spec = policy(3, json!([]));
    spec["failurePolicy"]["restartStrategy"] = "BlockingRecreate".into();
    world.jobset(spec).await?;
    world.running("js-b-0").await?;
    world.end_one("js-a-0", 1).await?;
    world
        .until("all Jobs of the next attempt", async || {
            let all = world.api::<k8s_openapi::api::batch::v1::Job>();
            let all = all.list(&kube::api::ListParams::default()).await?.items;
            let of = |attempt: &str| all.iter().filter(|job| attempt_of(job) == attempt).count();
            let (old, new) = (of("0"), of("1"));
            ensure!(old == 0 || new == 0, "{old} Jobs are left and {new} are there already");
            Ok(if new == 2 { Ok(()) } else { Err(format!("{old} old, {new} new")) })
        })
        .await
}
