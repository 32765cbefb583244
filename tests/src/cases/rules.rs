//! What the rules of a failure policy do, each action for what it is for.

use anyhow::{Result, ensure};
use futures::future::try_join_all;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::cases;
use crate::world::{World, condition, group, group_status, manifest, same};

cases!(
    every_action_is_for_its_target,
    a_job_left_failed_leaves_the_others_alone,
    a_job_left_failed_does_not_keep_a_set_from_completing,
    a_replicated_job_is_restarted_alone,
    a_rule_has_a_limit_of_its_own,
);

const ALL: [&str; 3] = ["js-a-0", "js-a-1", "js-b-0"];

fn groups() -> Value {
    json!([group("a", 2, 1), group("b", 1, 1)])
}

/// What an action comes to when the first Job of `a` fails: the restarts of the set, those that
/// count, the restarts of the Jobs of `a`, those that count, and how the set ended.
fn outcome(action: &str) -> Value {
    match action {
        "FailJobSet" => json!([0, 0, [], [], "Failed"]),
        "RestartJobSet" => json!([1, 1, [], [], null]),
        "RestartJobSetAndIgnoreMaxRestarts" => json!([1, 0, [], [], null]),
        "RestartJob" => json!([0, 0, [1, 0], [1, 0], null]),
        "RestartJobAndIgnoreMaxRestarts" => json!([0, 0, [1, 0], [], null]),
        "RestartReplicatedJob" => json!([0, 0, [1, 1], [1, 0], null]),
        _ => json!([0, 0, [], [], null]),
    }
}

fn found(jobset: &Value) -> Value {
    let or = |value: &Value, default: Value| if value.is_null() { default } else { value.clone() };
    let (status, own) = (&jobset["status"], group_status(jobset, "a"));
    json!([
        or(&status["restarts"], json!(0)),
        or(&status["restartsCountTowardsMax"], json!(0)),
        or(&own["jobRestarts"], json!([])),
        or(&own["jobRestartsCountTowardsMax"], json!([])),
        status["terminalState"],
    ])
}

/// The table of KEP-262: every action, for all, for the one that fails, and for another, where the
/// set restarts by default.
async fn every_action_is_for_its_target(world: World) -> Result<()> {
    let actions = [
        "FailJobSet",
        "RestartJobSet",
        "RestartJobSetAndIgnoreMaxRestarts",
        "RestartJob",
        "RestartJobAndIgnoreMaxRestarts",
        "RestartReplicatedJob",
        "FailJob",
    ];
    let targets = [json!([]), json!(["a"]), json!(["b"])];
    let cells = actions.iter().enumerate().flat_map(|(row, action)| {
        targets
            .iter()
            .enumerate()
            .map(move |(column, target)| (format!("js-{row}-{column}"), *action, target.clone()))
    });
    try_join_all(cells.map(|(name, action, target)| {
        let world = world.clone();
        async move { cell(&world, &name, action, &target).await }
    }))
    .await
    .map(drop)
}

async fn cell(world: &World, name: &str, action: &str, target: &Value) -> Result<()> {
    let rule = json!({"name": "r", "action": action, "targetReplicatedJobs": target});
    let mut set = manifest(json!({"replicatedJobs": groups(),
        "failurePolicy": {"maxRestarts": 5, "rules": [rule]}}));
    set["metadata"]["name"] = name.into();
    world.create(set).await?;
    world.running(&format!("{name}-b-0")).await?;
    world.end(&format!("{name}-a-0"), 1).await?;
    let is_other = *target == json!(["b"]);
    let applied = if is_other { "RestartJobSet" } else { action };
    let event = world.until_event_of(name, &format!("{applied}FailurePolicyAction")).await?;
    let said = event.message.unwrap_or_default();
    let want = format!("applying {applied} failure policy action (first failed job: {name}-a-0)");
    same(&format!("what is told of {action} for {target}"), said, want)?;
    if is_other {
        world.until_event_of(name, "DefaultFailurePolicy").await?;
    }
    let got = found(&world.get(name).await?);
    same(&format!("what comes of {action} for {target}"), got, outcome(applied))
}

fn leaving(success: Value) -> Value {
    let rule = json!({"name": "leave", "action": "FailJob", "targetReplicatedJobs": ["a"]});
    json!({"replicatedJobs": groups(), "successPolicy": success,
        "failurePolicy": {"maxRestarts": 5, "rules": [rule]}})
}

async fn a_job_left_failed_leaves_the_others_alone(world: World) -> Result<()> {
    world.jobset(leaving(json!({"operator": "All"}))).await?;
    world.until_jobs(0, &ALL).await?;
    let before: Vec<_> = world.jobs().await?.iter().map(ResourceExt::uid).collect();
    world.end("js-a-1", 1).await?;
    let event = world.until_event("FailJobFailurePolicyAction").await?;
    let want = "applying FailJob failure policy action (first failed job: js-a-1)";
    same("the message", event.message.as_deref(), Some(want))?;
    world.still_jobs(&ALL).await?;
    let after: Vec<_> = world.jobs().await?.iter().map(ResourceExt::uid).collect();
    same("the Jobs", after, before)?;
    world.end("js-a-0", 0).await?;
    world.end("js-b-0", 0).await?;
    // It counts as ended, so that nothing is left to wait for.
    let jobset = world.until_ended("js", "Failed").await?;
    let failed = condition(&jobset, "Failed");
    same("the reason", &failed["reason"], &json!("FailedJobs"))?;
    let want = "jobset failed due to one or more job failures (first failed job: js-a-1)";
    same("the message", &failed["message"], &json!(want))
}

async fn a_job_left_failed_does_not_keep_a_set_from_completing(world: World) -> Result<()> {
    world.jobset(leaving(json!({"operator": "All", "targetReplicatedJobs": ["b"]}))).await?;
    world.end("js-a-0", 1).await?;
    world.until_event("FailJobFailurePolicyAction").await?;
    world.end("js-b-0", 0).await?;
    let jobset = world.until_ended("js", "Completed").await?;
    same("failed Jobs", &group_status(&jobset, "a")["failed"], &json!(1))
}

async fn a_replicated_job_is_restarted_alone(world: World) -> Result<()> {
    let rule = json!({"name": "r", "action": "RestartReplicatedJob"});
    world
        .jobset(json!({"replicatedJobs": groups(),
            "failurePolicy": {"maxRestarts": 1, "rules": [rule]}}))
        .await?;
    world.until_jobs(0, &ALL).await?;
    let before: Vec<_> = world.jobs().await?.iter().map(ResourceExt::uid).collect();
    world.end("js-a-0", 1).await?;
    let anew = world
        .until("both Jobs are made anew", async || {
            let jobs = world.jobs().await?;
            let of = |job: &k8s_openapi::api::batch::v1::Job| {
                job.labels().get("jobset.sigs.k8s.io/job-restart-attempt").cloned()
            };
            let found: Vec<_> = jobs.iter().map(of).collect();
            let want = ["1", "1", "0"].map(|text| Some(text.to_owned()));
            Ok(if found == want { Ok(jobs) } else { Err(format!("they are of {found:?}")) })
        })
        .await?;
    let after: Vec<_> = anew.iter().map(ResourceExt::uid).collect();
    ensure!(after[0] != before[0] && after[1] != before[1], "a Job was not made anew");
    same("the Job of the other replicated job", &after[2], &before[2])?;
    world.until_jobs(0, &ALL).await?;
    // It has counted once, for all of them.
    world.end("js-a-1", 1).await?;
    let jobset = world.until_ended("js", "Failed").await?;
    same("the reason", &condition(&jobset, "Failed")["reason"], &json!("ReachedMaxRestarts"))
}

/// KEP-262's story 4: workers restart for ever, the parameter server so many times.
async fn a_rule_has_a_limit_of_its_own(world: World) -> Result<()> {
    let rule = |name: &str, target: &str| {
        json!({"name": name, "action": "RestartJobSetAndIgnoreMaxRestarts",
            "targetReplicatedJobs": [target]})
    };
    let mut set = manifest(json!({"replicatedJobs": groups(),
        "failurePolicy": {"rules": [rule("workers", "a"), rule("server", "b")]}}));
    set["metadata"]["annotations"] = json!({"lockstep.dev/max-restarts.server": "1"});
    world.create(set).await?;
    for (attempt, job) in [(1, "js-a-0"), (2, "js-b-0"), (3, "js-a-1")] {
        world.end(job, 1).await?;
        world.until_jobs(attempt, &ALL).await?;
    }
    world.end("js-b-0", 1).await?;
    let jobset = world.until_ended("js", "Failed").await?;
    let failed = condition(&jobset, "Failed");
    same("the reason", &failed["reason"], &json!("ReachedMaxRestarts"))?;
    let want = "jobset failed due to reaching max number of restarts of failure policy rule \
                server (first failed job: js-b-0)";
    same("the message", &failed["message"], &json!(want))?;
    let used = &jobset["status"]["lockstep"]["ruleRestarts"];
    same("restarts by rule", used, &json!({"workers": 2, "server": 1}))
}
