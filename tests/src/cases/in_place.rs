//! Restarts in place, with real agents around real workers.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{ConfigMap, Pod, Secret},
};
use kube::{
    ResourceExt,
    api::{DeleteParams, ListParams},
};
use serde_json::{Value, json};

use super::cases;
use crate::{
    player::played,
    world::{World, condition, manifest, same},
};

cases!(
    workers_restart_in_place,
    one_restart_too_many_fails_the_set,
    workers_that_get_nowhere_fail_the_set,
    an_exit_code_may_restart_uncounted,
    an_exit_code_may_be_for_the_failure_policy,
    a_job_that_fails_makes_all_anew,
    a_deleted_pod_is_replaced_and_all_restart,
    an_agent_that_does_not_answer_is_replaced,
    a_suspended_set_comes_back,
    a_set_that_is_deleted_in_a_restart_leaves_nothing,
    what_cannot_restart_in_place_does_not_start
);

const TIMEOUT: &str = "alpha.jobset.sigs.k8s.io/inplace-timeout";
const RESTARTS: &str = "alpha.jobset.sigs.k8s.io/inplace-restarts";

/// A worker that runs until its gang is restarted, and succeeds then.
const STAYS: &str = "[ $LOCKSTEP_EPOCH -gt 0 ] || sleep 120";

/// A set of four workers: worker 2 does `fails` after a moment, the others run until they are
/// restarted.
fn set(fails: &str, job: Value, policy: Value, annotations: Value) -> Value {
    let script = format!("if [ $JOB_COMPLETION_INDEX = 2 ]; then sleep 0.3; {fails}; fi; {STAYS}");
    let mut spec = json!({
        "parallelism": 4, "completions": 4,
        "template": {"spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": "none", "command": ["sh", "-c", script]}],
        }},
    });
    for (key, value) in job.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    let mut set = manifest(json!({
        "failurePolicy": policy,
        "replicatedJobs": [{"name": "w", "template": {"spec": spec}}],
    }));
    set["metadata"]["annotations"] = annotations;
    set["metadata"]["annotations"][TIMEOUT] = "60s".into();
    set
}

fn count(jobset: &Value) -> &Value {
    &jobset["metadata"]["annotations"][RESTARTS]
}

/// Waits until the workers have been started for this epoch, all of them.
async fn until_epoch(world: &World, epoch: i64) -> Result<Value> {
    world
        .until(&format!("epoch {epoch}"), async || {
            let jobset = world.get("js").await?;
            let told = &jobset["status"]["lockstep"]["inPlace"];
            let is_met = told["epoch"] == epoch && told["phase"] == "Running";
            Ok(if is_met { Ok(jobset) } else { Err(jobset["status"].to_string()) })
        })
        .await
}

/// The pods of the set that are not on their way out: index and uid.
async fn pods(world: &World) -> Result<Vec<(String, String)>> {
    let mut pods = world.api::<Pod>().list(&ListParams::default()).await?.items;
    pods.retain(|pod| pod.metadata.deletion_timestamp.is_none());
    let index = "batch.kubernetes.io/job-completion-index";
    let mut pods: Vec<_> = pods
        .iter()
        .map(|pod| {
            let index = pod.labels().get(index).cloned().unwrap_or_default();
            (index, pod.uid().unwrap_or_default())
        })
        .collect();
    pods.sort();
    Ok(pods)
}

/// Waits until all four pods are played.
async fn started(world: &World) -> Result<Vec<Pod>> {
    let pods = world.running("js-w-0").await?;
    until_epoch(world, 0).await?;
    Ok(pods)
}

async fn workers_restart_in_place(world: World) -> Result<()> {
    played(world, async |world, _| {
        let fails = "[ $LOCKSTEP_EPOCH -gt 0 ] || exit 3";
        world.create(set(fails, json!({}), json!({"maxRestarts": 3}), json!({}))).await?;
        world.running("js-w-0").await?;
        let before = pods(world).await?;
        let jobset = world.until_ended("js", "Completed").await?;
        same("the pods", pods(world).await?, before)?;
        same("the count", count(&jobset), &json!("1"))?;
        same("status.restarts", &jobset["status"]["restarts"], &json!(0))?;
        let told = &jobset["status"]["lockstep"]["inPlace"];
        same("the epoch", &told["epoch"], &json!(1))?;
        let restart = &told["lastRestarts"][0];
        same("the worker", &restart["worker"], &json!("js-w-0-2"))?;
        same("the cause", &restart["cause"], &json!("exited with code 3"))?;
        world.until_event("InPlaceRestart").await.map(drop)
    })
    .await
}

async fn one_restart_too_many_fails_the_set(world: World) -> Result<()> {
    played(world, async |world, _| {
        world.create(set("exit 1", json!({}), json!({"maxRestarts": 1}), json!({}))).await?;
        let jobset = world.until_ended("js", "Failed").await?;
        same("the count", count(&jobset), &json!("2"))?;
        let failed = condition(&jobset, "Failed");
        same("the reason", &failed["reason"], &json!("ReachedMaxRestarts"))?;
        let want =
            "jobset failed due to reaching max number of restarts (first failed job: js-w-0)";
        same("the message", &failed["message"], &json!(want))
    })
    .await
}

async fn workers_that_get_nowhere_fail_the_set(world: World) -> Result<()> {
    played(world, async |world, _| {
        let annotations = json!({"lockstep.dev/inplace-max-stalled": "2"});
        let stays = "trap 'exit 0' TERM; exit 1";
        world.create(set(stays, json!({}), json!({"maxRestarts": 100}), annotations)).await?;
        let jobset = world.until_ended("js", "Failed").await?;
        let failed = condition(&jobset, "Failed");
        same("the reason", &failed["reason"], &json!("NoProgress"))?;
        same("the count", count(&jobset), &json!("2"))
    })
    .await
}

/// A Job that does this about exit code 42 of its pods.
fn judging(action: &str) -> Value {
    json!({"podFailurePolicy": {"rules": [
        {"action": action, "onExitCodes": {"operator": "In", "values": [42]}}]}})
}

async fn an_exit_code_may_restart_uncounted(world: World) -> Result<()> {
    played(world, async |world, _| {
        let fails = "[ $LOCKSTEP_EPOCH -gt 0 ] || exit 42";
        world.create(set(fails, judging("Ignore"), json!({"maxRestarts": 0}), json!({}))).await?;
        let jobset = world.until_ended("js", "Completed").await?;
        same("the count", count(&jobset), &json!("0"))?;
        let told = &jobset["status"]["lockstep"]["inPlace"];
        same("restarts", &told["restarts"], &json!(1))
    })
    .await
}

async fn an_exit_code_may_be_for_the_failure_policy(world: World) -> Result<()> {
    played(world, async |world, _| {
        let policy = json!({"maxRestarts": 3, "rules": [
        {"name": "bug", "action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]}]});
        world.create(set("exit 42", judging("FailJob"), policy, json!({}))).await?;
        let jobset = world.until_ended("js", "Failed").await?;
        let failed = condition(&jobset, "Failed");
        same("the reason", &failed["reason"], &json!("FailJobSetFailurePolicyAction"))?;
        same("the count", count(&jobset), &json!("0"))
    })
    .await
}

async fn a_job_that_fails_makes_all_anew(world: World) -> Result<()> {
    played(world, async |world, _| {
        // Epochs go on over attempts, so that the second one succeeds.
        let fails = "[ $LOCKSTEP_EPOCH -gt 0 ] || exit 42";
        world.create(set(fails, judging("FailJob"), json!({"maxRestarts": 3}), json!({}))).await?;
        let before = started(world).await?;
        let jobset = world.until_ended("js", "Completed").await?;
        same("status.restarts", &jobset["status"]["restarts"], &json!(1))?;
        same("the count", count(&jobset), &json!("1"))?;
        let left = pods(world).await?;
        let is_new = |uid: &String| before.iter().all(|pod| pod.uid().as_ref() != Some(uid));
        ensure!(left.iter().all(|(_, uid)| is_new(uid)), "some pods are left: {left:?}");
        Ok(())
    })
    .await
}

async fn a_deleted_pod_is_replaced_and_all_restart(world: World) -> Result<()> {
    played(world, async |world, _| {
        world.create(set(STAYS, json!({}), json!({"maxRestarts": 3}), json!({}))).await?;
        let before = started(world).await?;
        let gone = before.first().context("there are no pods")?;
        world.api::<Pod>().delete(&gone.name_any(), &DeleteParams::default()).await?;
        let jobset = world.until_ended("js", "Completed").await?;
        same("the count", count(&jobset), &json!("1"))?;
        same("status.restarts", &jobset["status"]["restarts"], &json!(0))?;
        let after = pods(world).await?;
        let is_left = |pod: &&Pod| after.iter().any(|(_, uid)| pod.uid().as_ref() == Some(uid));
        same("pods that stayed", before.iter().filter(is_left).count(), 3)
    })
    .await
}

async fn an_agent_that_does_not_answer_is_replaced(world: World) -> Result<()> {
    played(world, async |world, player| {
        let fails = "[ $LOCKSTEP_EPOCH -gt 0 ] || { sleep 3; exit 1; }";
        world.create(set(fails, json!({}), json!({"maxRestarts": 3}), json!({}))).await?;
        let before = started(world).await?;
        let deaf = before.iter().find(|pod| pod.name_any().starts_with("js-w-0-0"));
        let deaf = deaf.context("worker 0 has no pod")?;
        player.signal(&deaf.name_any(), "STOP")?;
        let jobset = world.until_ended("js", "Completed").await?;
        same("the count", count(&jobset), &json!("1"))?;
        same("status.restarts", &jobset["status"]["restarts"], &json!(0))?;
        let after = pods(world).await?;
        let is_left = |pod: &&Pod| after.iter().any(|(_, uid)| pod.uid().as_ref() == Some(uid));
        same("pods that stayed", before.iter().filter(is_left).count(), 3)
    })
    .await
}

async fn a_suspended_set_comes_back(world: World) -> Result<()> {
    played(world, async |world, _| {
        world.create(set(STAYS, json!({}), json!({"maxRestarts": 0}), json!({}))).await?;
        started(world).await?;
        world.patch("js", json!({"spec": {"suspend": true}})).await?;
        world
            .until("no pods", async || {
                let left = pods(world).await?;
                Ok(if left.is_empty() { Ok(()) } else { Err(format!("there are {left:?}")) })
            })
            .await?;
        let jobset = world.get("js").await?;
        same("the count", count(&jobset), &json!("0"))?;
        world.patch("js", json!({"spec": {"suspend": false}})).await?;
        let jobset = world.until_ended("js", "Completed").await?;
        same("the count", count(&jobset), &json!("0"))?;
        same("status.restarts", &jobset["status"]["restarts"], &json!(0))
    })
    .await
}

async fn a_set_that_is_deleted_in_a_restart_leaves_nothing(world: World) -> Result<()> {
    played(world, async |world, _| {
        // The others take a second to stop, in which the set is deleted.
        let stays = "trap '' TERM; while :; do sleep 0.1; done";
        let fails = format!("[ $LOCKSTEP_EPOCH = 0 ] && exit 1; fi; if true; then {stays}");
        world.create(set(&fails, json!({}), json!({"maxRestarts": 3}), json!({}))).await?;
        world
            .until("a restart", async || {
                let jobset = world.get("js").await?;
                let phase = &jobset["status"]["lockstep"]["inPlace"]["phase"];
                Ok(if phase == "Stopping" { Ok(()) } else { Err(jobset["status"].to_string()) })
            })
            .await?;
        world.jobsets().delete("js", &DeleteParams::background()).await?;
        let left = async || -> Result<Vec<String>> {
            let all = ListParams::default();
            let mut left: Vec<String> = Vec::new();
            left.extend(world.api::<Pod>().list(&all).await?.iter().map(|it| it.name_any()));
            left.extend(world.api::<Job>().list(&all).await?.iter().map(|it| it.name_any()));
            left.extend(world.api::<Secret>().list(&all).await?.iter().map(|it| it.name_any()));
            let maps = world.api::<ConfigMap>().list(&all).await?;
            left.extend(maps.iter().map(|it| it.name_any()));
            left.retain(|name| name.starts_with("js-"));
            Ok(left)
        };
        world
            .until("nothing", async || {
                let left = left().await?;
                Ok(if left.is_empty() { Ok(()) } else { Err(format!("there are {left:?}")) })
            })
            .await?;
        tokio::time::sleep(Duration::from_secs(2)).await;
        same("what came back", left().await?, Vec::new())
    })
    .await
}

async fn what_cannot_restart_in_place_does_not_start(world: World) -> Result<()> {
    let mut set = set(STAYS, json!({}), json!({}), json!({}));
    let job = &mut set["spec"]["replicatedJobs"][0]["template"]["spec"];
    job["template"]["spec"]["containers"][0]["command"] = Value::Null;
    let want = "template.spec.containers[0].command: Required value";
    // Where nobody checks it before, the controller does.
    match world.create(set).await {
        Err(error) => ensure!(error.to_string().contains(want), "{error}"),
        Ok(_) => {
            let event = world.until_event("InvalidJobSet").await?;
            let said = event.message.unwrap_or_default();
            ensure!(said.contains(want), "{said}");
            world.still_jobs(&[]).await?;
        }
    }
    Ok(())
}
