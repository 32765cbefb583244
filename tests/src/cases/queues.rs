//! Queues: who is admitted, and what the others are told.

use anyhow::{Result, ensure};
use k8s_openapi::api::{batch::v1::Job, core::v1::LimitRange};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use super::cases;
use crate::{
    queue::{Queue, job, message},
    world::{World, condition, same},
};

cases!(
    a_job_waits_until_it_fits,
    what_can_never_fit_says_so,
    what_a_limit_range_adds_to_pods_is_quota,
    a_job_that_is_deleted_gives_its_quota_back,
    a_job_gets_what_its_flavor_says_and_loses_it_again,
    a_higher_priority_goes_first_and_may_preempt,
    quota_is_borrowed_and_taken_back,
    a_queue_that_is_stopped_holds_and_drains,
    a_workload_is_deactivated_and_made_active_again,
    a_jobset_is_one_workload,
    queues_say_what_is_used,
);

async fn a_job_waits_until_it_fits(world: World) -> Result<()> {
    let queue = Queue::new(&world, 2, json!({}), json!({})).await?;
    queue.job("first", 2).await?;
    let admitted = queue.until_admitted("first").await?;
    same("its words", message(&admitted, "Admitted"), "The workload is admitted".to_owned())?;
    let reserved = format!("Quota reserved in ClusterQueue {}", queue.name);
    same("the words of quota", message(&admitted, "QuotaReserved"), reserved)?;
    world.until_event_of("first", "Started").await?;
    queue.job("second", 1).await?;
    let waits = queue.until("second", ["QuotaReserved", "False", "WaitingForQuota"]).await?;
    let words = format!(
        "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor {}, \
         1 more needed",
        queue.name
    );
    same("why it waits", message(&waits, "QuotaReserved"), words)?;
    let numbers = message(&waits, "lockstep.dev/Waiting");
    ensure!(numbers.contains("cpu"), "there are no numbers in {numbers:?}");
    world.end("first", 0).await?;
    queue.until("first", ["Finished", "True", "Succeeded"]).await?;
    queue.until_admitted("second").await?;
    world.end("second", 0).await?;
    queue.until("second", ["Finished", "True", "Succeeded"]).await?;
    queue.remove().await;
    Ok(())
}

async fn what_can_never_fit_says_so(world: World) -> Result<()> {
    let queue = Queue::new(&world, 2, json!({}), json!({})).await?;
    queue.job("huge", 3).await?;
    let waits = queue.until("huge", ["QuotaReserved", "False", "ExceedsMaxQuota"]).await?;
    let words = format!(
        "couldn't assign flavors to pod set main: insufficient quota for cpu in flavor {}, \
         previously considered podsets requests (0) + current podset request (3) > maximum \
         capacity (2)",
        queue.name
    );
    same("why", message(&waits, "QuotaReserved"), words)?;
    queue.job("small", 1).await?;
    queue.until_admitted("small").await?;
    queue.remove().await;
    Ok(())
}

/// Pods are created with it, so that is what they need room for.
async fn what_a_limit_range_adds_to_pods_is_quota(world: World) -> Result<()> {
    let queue = Queue::new(&world, 3, json!({}), json!({})).await?;
    let defaults = json!({"type": "Container", "defaultRequest": {"cpu": "2"}});
    let range = json!({"metadata": {"name": "defaults"}, "spec": {"limits": [defaults]}});
    let range = serde_json::from_value(range)?;
    world.api::<LimitRange>().create(&PostParams::default(), &range).await?;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    for name in ["first", "second"] {
        let mut plain = job(name, 1);
        let containers = &mut plain["spec"]["template"]["spec"]["containers"];
        containers[0]["resources"] = json!({});
        queue.create_job(plain).await?;
        queue.workload(name).await?;
        if name == "first" {
            queue.until_admitted(name).await?;
        }
    }
    let workload = queue.until_admitted("first").await?;
    let used = &workload["status"]["admission"]["podSetAssignments"][0]["resourceUsage"]["cpu"];
    same("what is used", used, &json!("2"))?;
    let waits = queue.until("second", ["QuotaReserved", "False", "WaitingForQuota"]).await?;
    let words = message(&waits, "QuotaReserved");
    ensure!(words.ends_with("1 more needed"), "it says {words:?}");
    world.end("first", 0).await?;
    queue.until_admitted("second").await?;
    queue.remove().await;
    Ok(())
}

async fn a_job_that_is_deleted_gives_its_quota_back(world: World) -> Result<()> {
    let queue = Queue::new(&world, 1, json!({}), json!({})).await?;
    queue.job("first", 1).await?;
    queue.until_admitted("first").await?;
    queue.job("second", 1).await?;
    queue.until("second", ["QuotaReserved", "False", "WaitingForQuota"]).await?;
    world.api::<Job>().delete("first", &DeleteParams::background()).await?;
    queue.until_admitted("second").await?;
    queue.remove().await;
    Ok(())
}

async fn a_job_gets_what_its_flavor_says_and_loses_it_again(world: World) -> Result<()> {
    let queue = Queue::new(&world, 1, json!({}), json!({})).await?;
    let labels = json!({"spec": {"nodeLabels": {"kubernetes.io/os": "linux"}}});
    queue.patch("ResourceFlavor", &queue.name, labels).await?;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    queue.job("one", 1).await?;
    queue.until_admitted("one").await?;
    world.running("one").await?;
    let template = async || -> Result<serde_json::Value> {
        let job = serde_json::to_value(world.api::<Job>().get("one").await?)?;
        Ok(job["spec"]["template"].clone())
    };
    let running = template().await?;
    same("the selector", &running["spec"]["nodeSelector"]["kubernetes.io/os"], &json!("linux"))?;
    let label = &running["metadata"]["labels"]["kueue.x-k8s.io/podset"];
    same("the label of the pod set", label, &json!("main"))?;
    let workload = queue.workload("one").await?;
    let name = workload["metadata"]["name"].as_str().unwrap_or_default();
    queue.patch("Workload", name, json!({"spec": {"active": false}})).await?;
    queue.until("one", ["QuotaReserved", "False", "Deactivated"]).await?;
    world.until_event_of("one", "Stopped").await?;
    let stopped = template().await?;
    same(
        "the selector is gone",
        &stopped["spec"]["nodeSelector"]["kubernetes.io/os"],
        &json!(null),
    )?;
    same("so is the label", &stopped["metadata"]["labels"]["kueue.x-k8s.io/podset"], &json!(null))?;
    queue.remove().await;
    Ok(())
}

async fn a_higher_priority_goes_first_and_may_preempt(world: World) -> Result<()> {
    let preemption = json!({"preemption": {"withinClusterQueue": "LowerPriority"}});
    let queue = Queue::new(&world, 1, json!({}), preemption).await?;
    let class = json!({"metadata": {"name": queue.name}, "value": 1000});
    queue.make("WorkloadPriorityClass", class).await?;
    queue.job("low", 1).await?;
    queue.until_admitted("low").await?;
    let mut high = job("high", 1);
    high["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = queue.name.clone().into();
    queue.create_job(high).await?;
    queue.until_admitted("high").await?;
    let low = queue.until("low", ["Evicted", "True", "Preempted"]).await?;
    let reason = condition(&low, "Preempted")["reason"].clone();
    same("why it was preempted", reason, json!("InClusterQueue"))?;
    let words = message(&low, "Preempted");
    ensure!(
        words.starts_with("Preempted to accommodate a workload (UID: ")
            && words.contains("due to prioritization in the ClusterQueue"),
        "the words are {words:?}"
    );
    world.end("high", 0).await?;
    queue.until_admitted("low").await?;
    let low = queue.until("low", ["Evicted", "False", "QuotaReserved"]).await?;
    ensure!(message(&low, "Evicted").starts_with("Previously: "), "{low}");
    let api = queue.api("WorkloadPriorityClass");
    api.delete(&queue.name, &DeleteParams::default()).await?;
    queue.remove().await;
    Ok(())
}

async fn quota_is_borrowed_and_taken_back(world: World) -> Result<()> {
    let cohort = json!({"cohortName": world.namespace,
        "preemption": {"reclaimWithinCohort": "Any"}});
    let queue = Queue::new(&world, 1, json!({}), cohort.clone()).await?;
    let other = format!("{}-other", queue.name);
    queue.cluster_queue(&other, 1, json!({}), cohort).await?;
    queue.local_queue("other", &other).await?;
    queue.job("borrows", 2).await?;
    queue.until_admitted("borrows").await?;
    world
        .until("what is borrowed", async || {
            let seen = serde_json::to_value(queue.api("ClusterQueue").get(&queue.name).await?)?;
            let usage = seen["status"]["flavorsUsage"][0]["resources"][0].clone();
            let is_met = usage["total"] == "2" && usage["borrowed"] == "1";
            Ok(if is_met { Ok(()) } else { Err(usage.to_string()) })
        })
        .await?;
    let mut owner = job("owner", 1);
    owner["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "other".into();
    queue.create_job(owner).await?;
    queue.until_admitted("owner").await?;
    let borrower = queue.until("borrows", ["Evicted", "True", "Preempted"]).await?;
    let reason = condition(&borrower, "Preempted")["reason"].clone();
    same("why", reason, json!("InCohortReclamation"))?;
    queue.api("ClusterQueue").delete(&other, &DeleteParams::default()).await?;
    queue.remove().await;
    Ok(())
}

async fn a_queue_that_is_stopped_holds_and_drains(world: World) -> Result<()> {
    let queue = Queue::new(&world, 2, json!({}), json!({})).await?;
    queue.job("first", 1).await?;
    queue.until_admitted("first").await?;
    let stop = |policy: &str| json!({"spec": {"stopPolicy": policy}});
    queue.patch("ClusterQueue", &queue.name, stop("Hold")).await?;
    world
        .until("an inactive queue", async || {
            let seen = serde_json::to_value(queue.api("ClusterQueue").get(&queue.name).await?)?;
            let active = condition(&seen, "Active");
            let is_met = active["reason"] == "Stopped"
                && active["message"] == "Can't admit new workloads: is stopped.";
            Ok(if is_met { Ok(()) } else { Err(active.to_string()) })
        })
        .await?;
    queue.job("second", 1).await?;
    let waits = queue.until("second", ["QuotaReserved", "False", "Suspended"]).await?;
    let words = format!("ClusterQueue {} is inactive", queue.name);
    same("why it waits", message(&waits, "QuotaReserved"), words)?;
    same(
        "the one that runs",
        &condition(&queue.workload("first").await?, "Admitted")["status"],
        &json!("True"),
    )?;
    queue.patch("ClusterQueue", &queue.name, stop("HoldAndDrain")).await?;
    let evicted = queue.until("first", ["Evicted", "True", "ClusterQueueStopped"]).await?;
    same("its words", message(&evicted, "Evicted"), "The ClusterQueue is stopped".to_owned())?;
    queue.until("first", ["Requeued", "False", "ClusterQueueStopped"]).await?;
    queue.patch("ClusterQueue", &queue.name, stop("None")).await?;
    queue.until("first", ["Requeued", "True", "ClusterQueueRestarted"]).await?;
    queue.until_admitted("first").await?;
    queue.until_admitted("second").await?;
    queue.remove().await;
    Ok(())
}

async fn a_workload_is_deactivated_and_made_active_again(world: World) -> Result<()> {
    let queue = Queue::new(&world, 1, json!({}), json!({})).await?;
    queue.job("one", 1).await?;
    let workload = queue.until_admitted("one").await?;
    let name = workload["metadata"]["name"].as_str().unwrap_or_default();
    queue.patch("Workload", name, json!({"spec": {"active": false}})).await?;
    let evicted = queue.until("one", ["Evicted", "True", "Deactivated"]).await?;
    same("its words", message(&evicted, "Evicted"), "The workload is deactivated".to_owned())?;
    queue.until("one", ["QuotaReserved", "False", "Deactivated"]).await?;
    let job = world.api::<Job>().get("one").await?;
    same("the Job is suspended", job.spec.and_then(|spec| spec.suspend), Some(true))?;
    queue.patch("Workload", name, json!({"spec": {"active": true}})).await?;
    queue.until("one", ["Requeued", "True", "Reactivated"]).await?;
    queue.until_admitted("one").await?;
    world.end("one", 0).await?;
    queue.until("one", ["Finished", "True", "Succeeded"]).await?;
    queue.remove().await;
    Ok(())
}

async fn a_jobset_is_one_workload(world: World) -> Result<()> {
    let queue = Queue::new(&world, 3, json!({}), json!({})).await?;
    let mut set = crate::world::manifest(json!({"suspend": true, "replicatedJobs": [
        crate::world::group("a", 2, 1), crate::world::group("b", 1, 1),
    ]}));
    set["metadata"]["labels"] = json!({crate::queue::QUEUE_NAME: "q"});
    for group in set["spec"]["replicatedJobs"].as_array_mut().into_iter().flatten() {
        let pod = &mut group["template"]["spec"]["template"]["spec"];
        pod["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
    }
    world.create(set).await?;
    let admitted = queue.until_admitted("js").await?;
    let sets = admitted["status"]["admission"]["podSetAssignments"].clone();
    let counts: Vec<_> = sets.as_array().into_iter().flatten().map(|one| &one["count"]).collect();
    same("the counts of its pod sets", counts, vec![&json!(2), &json!(1)])?;
    queue.until("js", ["PodsReady", "True", "Started"]).await?;
    for job in ["js-a-0", "js-a-1", "js-b-0"] {
        world.end(job, 0).await?;
    }
    world.until_ended("js", "Completed").await?;
    let finished = queue.until("js", ["Finished", "True", "Succeeded"]).await?;
    let words = "jobset completed successfully".to_owned();
    same("its words", message(&finished, "Finished"), words)?;
    queue.remove().await;
    Ok(())
}

async fn queues_say_what_is_used(world: World) -> Result<()> {
    let queue = Queue::new(&world, 2, json!({}), json!({})).await?;
    queue.job("first", 2).await?;
    queue.until_admitted("first").await?;
    queue.job("second", 1).await?;
    queue.until("second", ["QuotaReserved", "False", "WaitingForQuota"]).await?;
    for kind in ["ClusterQueue", "LocalQueue"] {
        let name = if kind == "LocalQueue" { "q" } else { queue.name.as_str() };
        world
            .until(&format!("the status of the {kind}"), async || {
                let seen = serde_json::to_value(queue.api(kind).get(name).await?)?;
                let status = &seen["status"];
                let is_met = status["pendingWorkloads"] == 1
                    && status["admittedWorkloads"] == 1
                    && status["reservingWorkloads"] == 1
                    && status["flavorsUsage"][0]["resources"][0]["total"] == "2"
                    && condition(&seen, "Active")["status"] == "True";
                Ok(if is_met { Ok(()) } else { Err(status.to_string()) })
            })
            .await?;
    }
    let label = json!({"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "nowhere"}}});
    let params = PatchParams::default();
    world.api::<Job>().patch("second", &params, &Patch::Merge(label)).await?;
    let waits = queue.until("second", ["QuotaReserved", "False", "Misconfigured"]).await?;
    let words = "LocalQueue nowhere doesn't exist".to_owned();
    same("why", message(&waits, "QuotaReserved"), words)?;
    queue.remove().await;
    Ok(())
}
