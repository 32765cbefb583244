//! What a JobSet is made of: Jobs, pods, a Service; their names, labels and owners.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use serde_json::json;

use super::cases;
use crate::world::{World, group, same, with};

cases!(jobs_have_names_and_labels, pods_find_each_other, deleting_a_set_deletes_all_of_it);

async fn jobs_have_names_and_labels(world: World) -> Result<()> {
    let tailed = with(group("workers", 2, 2), json!({"groupName": "tail"}));
    let spec = json!({"replicatedJobs": [group("driver", 1, 1), tailed],
        "coordinator": {"replicatedJob": "driver", "jobIndex": 0, "podIndex": 0}});
    world.jobset(spec).await?;
    world.until_jobs(0, &["js-driver-0", "js-workers-0", "js-workers-1"]).await?;
    let jobset = world.get("js").await?;
    let uid = jobset["metadata"]["uid"].as_str().unwrap_or_default();
    let jobs = world.jobs().await?;
    let last = jobs.last().context("there are Jobs")?;
    let want = [
        ("jobset-name", "js"),
        ("jobset-uid", uid),
        ("replicatedjob-name", "workers"),
        ("replicatedjob-replicas", "2"),
        ("global-replicas", "3"),
        ("job-index", "1"),
        ("job-global-index", "2"),
        ("restart-attempt", "0"),
        ("group-name", "tail"),
        ("group-replicas", "2"),
        ("job-group-index", "1"),
        ("coordinator", "js-driver-0-0.js"),
    ];
    let pods = world.running("js-workers-1").await?;
    for (key, value) in want {
        let key = format!("jobset.sigs.k8s.io/{key}");
        let pod = pods.first().context("there are pods")?;
        let found = [last.labels(), last.annotations(), pod.labels(), pod.annotations()]
            .map(|all| all.get(&key).map(String::as_str));
        same(&key, found, [Some(value); 4])?;
    }
    let owner = last.owner_references().first().context("the Job has an owner")?;
    same("the owner", (owner.kind.as_str(), owner.uid.as_str()), ("JobSet", uid))?;
    same("controller", owner.controller, Some(true))?;
    let mode = last.spec.as_ref().and_then(|spec| spec.completion_mode.as_deref());
    same("completionMode", mode, Some("Indexed"))
}

async fn pods_find_each_other(world: World) -> Result<()> {
    world.jobset(json!({"replicatedJobs": [group("a", 1, 2)]})).await?;
    let pods = world.running("js-a-0").await?;
    for pod in &pods {
        let spec = pod.spec.as_ref().context("a pod has a spec")?;
        same("subdomain", spec.subdomain.as_deref(), Some("js"))?;
        let hostname = spec.hostname.as_deref().unwrap_or_default();
        ensure!(hostname == "js-a-0-0" || hostname == "js-a-0-1", "hostname is {hostname}");
        let name = pod.name_any();
        ensure!(name.starts_with(&format!("{hostname}-")), "{name} is not named after {hostname}");
    }
    let service = world.api::<Service>().get("js").await.context("there is no Service")?;
    let spec = service.spec.clone().unwrap_or_default();
    same("clusterIP", spec.cluster_ip.as_deref(), Some("None"))?;
    same("publishNotReadyAddresses", spec.publish_not_ready_addresses, Some(true))?;
    let selector = spec.selector.unwrap_or_default();
    let want = [("jobset.sigs.k8s.io/jobset-name".to_owned(), "js".to_owned())];
    same("the selector", selector, want.into())
}

async fn deleting_a_set_deletes_all_of_it(world: World) -> Result<()> {
    world.jobset(json!({"replicatedJobs": [group("a", 2, 1)]})).await?;
    world.running("js-a-1").await?;
    world.jobsets().delete("js", &kube::api::DeleteParams::default()).await?;
    world
        .until("nothing is left", async || {
            let jobs = world.api::<k8s_openapi::api::batch::v1::Job>();
            let jobs = jobs.list(&kube::api::ListParams::default()).await?.items.len();
            let service = world.api::<Service>().get_opt("js").await?.is_some();
            let is_met = jobs == 0 && !service;
            Ok(if is_met { Ok(()) } else { Err(format!("{jobs} Jobs, Service: {service}")) })
        })
        .await
}
