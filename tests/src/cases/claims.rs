//! The volume claims of a JobSet: theirs are made before its Jobs, and go or stay as it says.

use anyhow::{Context, Result};
use k8s_openapi::api::{batch::v1::Job, core::v1::PersistentVolumeClaim};
use kube::{Resource, ResourceExt, api::DeleteParams};
use serde_json::{Value, json};

use super::cases;
use crate::world::{World, group, same};

cases!(claims_are_made_for_who_mounts_them, claims_go_or_stay_with_the_set);

/// A set with a claim `gone` that goes with it, and a claim `kept` that stays. Only its first
/// replicated job mounts them. It is suspended: without storage to be had its pods cannot run.
fn spec() -> Value {
    let template = |name: &str| {
        json!([{"metadata": {"name": name, "labels": {"team": "blue"}},
            "spec": {"accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Mi"}}}}])
    };
    let mut mounting = group("a", 1, 1);
    mounting["template"]["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = json!([
        {"name": "gone", "mountPath": "/gone"}, {"name": "kept", "mountPath": "/kept"}]);
    json!({"suspend": true, "replicatedJobs": [mounting, group("b", 1, 1)],
        "volumeClaimPolicies": [
            {"templates": template("gone"), "retentionPolicy": {"whenDeleted": "Delete"}},
            {"templates": template("kept"), "retentionPolicy": {"whenDeleted": "Retain"}}]})
}

async fn claims_are_made_for_who_mounts_them(world: World) -> Result<()> {
    world.jobset(spec()).await?;
    world.until_jobs(0, &["js-a-0", "js-b-0"]).await?;
    let uid = world.get("js").await?["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    for (name, owner) in [("gone-js", Some(uid)), ("kept-js", None)] {
        // There are no Jobs before there are claims.
        let claims = world.api::<PersistentVolumeClaim>();
        let claim = claims.get_opt(name).await?.with_context(|| format!("no claim {name}"))?;
        let found = claim.owner_references().first().map(|owner| owner.uid.clone());
        same(&format!("the owner of {name}"), found, owner)?;
        let labels = ["team", "jobset.sigs.k8s.io/jobset-name"];
        let labels = labels.map(|key| claim.labels().get(key).map(String::as_str));
        same(&format!("the labels of {name}"), labels, [Some("blue"), Some("js")])?;
    }
    for (job, want) in
        [("js-a-0", vec![("gone", "gone-js"), ("kept", "kept-js")]), ("js-b-0", Vec::new())]
    {
        let job = serde_json::to_value(world.api::<Job>().get(job).await?)?;
        let volumes = job["spec"]["template"]["spec"]["volumes"].as_array();
        let found: Vec<_> = volumes
            .into_iter()
            .flatten()
            .map(|volume| (&volume["name"], &volume["persistentVolumeClaim"]["claimName"]))
            .filter_map(|(name, claim)| Some((name.as_str()?, claim.as_str()?)))
            .collect();
        same("the volumes of a Job", found, want)?;
    }
    Ok(())
}

async fn claims_go_or_stay_with_the_set(world: World) -> Result<()> {
    world.jobset(spec()).await?;
    world.until_jobs(0, &["js-a-0", "js-b-0"]).await?;
    let claims = world.api::<PersistentVolumeClaim>();
    let kept = claims.get("kept-js").await?.uid();
    world.jobsets().delete("js", &DeleteParams::default()).await?;
    world
        .until("the claim goes", async || {
            let found = claims.get_opt("gone-js").await?;
            Ok(if found.is_none() { Ok(()) } else { Err("it is there".to_owned()) })
        })
        .await?;
    let left = claims.get_opt("kept-js").await?.context("the claim that stays is gone")?;
    same("the claim that stays", left.uid(), kept)?;
    same("whether it is about to go", left.meta().deletion_timestamp.is_some(), false)
}
