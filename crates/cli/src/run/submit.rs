//! Handing the manifests of a run to the cluster.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Result, anyhow};
use lockstep_api::{jobset, labels::kueue::QUEUE_NAME};
use lockstep_local::controllers::machine_queue;
use serde_json::{Value, json};

use super::gang;
use crate::{
    apply::{DryRun, Place},
    catalog::{Catalog, Resource, query},
    cluster::{Cluster, Content},
    exit::{self, Ending, Exit},
    manifest::Manifest,
    refusal::Refused,
};

/// An object as the cluster has it now, and where to find it again.
#[derive(Clone, Debug)]
pub(crate) struct Applied {
    /// Where it is.
    pub(crate) path: String,
    /// What the cluster made of it.
    pub(crate) object: Value,
}

/// Makes the objects. What pods may need comes first; what runs is created, since running something
/// that is there already would mean not to run it.
///
/// # Errors
/// When the cluster refuses one, or something that is to run exists already.
pub(crate) async fn submit(
    cluster: &Cluster,
    manifests: &[Manifest],
    is_private: bool,
) -> Result<Vec<Applied>> {
    let catalog = Catalog::read(cluster).await?;
    if is_private {
        make_namespaces(cluster, manifests).await?;
    }
    let mut ordered: Vec<&Manifest> = manifests.iter().collect();
    // Stable: among themselves, objects keep their order.
    ordered.sort_by_key(|manifest| rank(manifest));
    let mut wanted = Vec::new();
    for manifest in ordered {
        wanted.push(Wanted::of(cluster, &catalog, manifest)?);
    }
    for wanted in &wanted {
        wanted.must_be_new(cluster).await?;
    }
    let mut applied = Vec::new();
    if is_private {
        wait_for_queues(cluster, &wanted).await;
    }
    for wanted in &wanted {
        let made = wanted.make(cluster, &catalog).await;
        applied.push(made.map_err(|error| {
            let refused = error.downcast_ref::<Refused>();
            let ours = refused.filter(|refused| refused.is_callers_fault());
            let exit = ours.map_or(Exit::Cluster, Refused::exit);
            exit::or(error, exit)
        })?);
    }
    Ok(applied)
}

/// Whether a manifest is of something that runs.
pub(crate) fn is_run(manifest: &Manifest) -> bool {
    matches!(
        (manifest.api_version(), manifest.kind()),
        ("v1", "Pod") | ("batch/v1", "Job") | (jobset::API_VERSION, jobset::KIND)
    )
}

fn rank(manifest: &Manifest) -> u8 {
    match manifest.kind() {
        "Namespace" => 0,
        _ if is_run(manifest) => 2,
        _ => 1,
    }
}

struct Wanted<'a> {
    manifest: &'a Manifest,
    resource: &'a Resource,
    namespace: String,
}

impl<'a> Wanted<'a> {
    fn of(cluster: &Cluster, catalog: &'a Catalog, manifest: &'a Manifest) -> Result<Self> {
        let found = catalog.of_kind(manifest.api_version(), manifest.kind());
        let resource = found.ok_or_else(|| {
            let (file, line) = (&manifest.file, manifest.line("kind"));
            let (kind, version) = (manifest.kind(), manifest.api_version());
            let message = format!(
                "error: {file}:{line}: no matches for kind {kind:?} in version {version:?}"
            );
            Ending::error(Exit::Usage, message)
        })?;
        let namespace = match manifest.namespace() {
            "" => cluster.namespace.clone(),
            own => own.to_owned(),
        };
        Ok(Self { manifest, resource, namespace })
    }

    /// Refuses what is there already, before anything is made.
    async fn must_be_new(&self, cluster: &Cluster) -> Result<()> {
        let name = self.manifest.name();
        if !is_run(self.manifest) || name.is_empty() {
            return Ok(());
        }
        match cluster.get(&self.resource.object(&self.namespace, name)).await {
            Err(refusal) if refusal.is_not_found() => Ok(()),
            Err(refusal) => Err(exit::or(refusal.into_error(None), Exit::Cluster)),
            Ok(_) => {
                let (file, line) = (&self.manifest.file, self.manifest.line("metadata.name"));
                let (prefix, space) = (self.resource.prefix(), &self.namespace);
                let kind = self.manifest.kind().to_lowercase();
                let (place, other) = match file.as_str() {
                    gang::FILE => (String::new(), "give another --name"),
                    _ => {
                        (format!("{file}:{line}: "), "give metadata.generateName instead of a name")
                    }
                };
                let message = format!(
                    "error: {place}{prefix}/{name} is in namespace {space} already: delete it first \
                     (lockstep delete {kind} {name} -n {space}), or {other}"
                );
                Err(Ending::error(Exit::Failed, message))
            }
        }
    }

    async fn make(&self, cluster: &Cluster, catalog: &Catalog) -> Result<Applied> {
        let is_new = is_run(self.manifest) || self.manifest.name().is_empty();
        if !is_new {
            let place = Place::of(cluster, catalog, self.manifest, None)
                .map_err(|error| exit::or(error, Exit::Usage))?;
            place.apply(cluster, DryRun::None).await?;
            let path = place.resource.object(&place.namespace, &place.name);
            let object = cluster.get(&path).await?;
            return Ok(Applied { path, object });
        }
        let mut object = Value::Object(self.manifest.object.clone());
        if self.resource.is_namespaced {
            object["metadata"]["namespace"] = json!(self.namespace);
        }
        let path = self.resource.collection(Some(&self.namespace))
            + &query(&[
                ("fieldManager", Some("lockstep-run".to_owned())),
                ("fieldValidation", Some("Strict".to_owned())),
            ]);
        let doing = format!("error when creating {:?}", self.manifest.file);
        let answer = cluster.call("POST", &path, "application/json", Content::Json(&object)).await;
        let made = answer.map_err(|refusal| refusal.into_error(Some(&doing)))?;
        let name = made["metadata"]["name"].as_str();
        let name = name.ok_or_else(|| anyhow!("error: the server's answer has no name"))?;
        Ok(Applied { path: self.resource.object(&self.namespace, name), object: made })
    }
}

/// Waits until the queue of the machine is there, where jobs name it. A controller makes it when it
/// hears of a namespace: a job that comes first would be told that there is no such queue.
async fn wait_for_queues(cluster: &Cluster, wanted: &[Wanted<'_>]) {
    let spaces: BTreeSet<&str> = wanted
        .iter()
        .filter(|it| queue_named(&it.manifest.object) == Some(machine_queue::NAME))
        .map(|it| it.namespace.as_str())
        .collect();
    for space in spaces {
        let name = machine_queue::NAME;
        let path = format!("/apis/kueue.x-k8s.io/v1beta2/namespaces/{space}/localqueues/{name}");
        for _ in 0..QUEUE_LOOKS {
            match cluster.get(&path).await {
                Err(refusal) if refusal.is_not_found() => tokio::time::sleep(QUEUE_LOOK).await,
                _ => break,
            }
        }
    }
}

/// How often, and how far apart, it is looked for a queue. Without it a job waits, and says so.
const QUEUE_LOOKS: usize = 250;
const QUEUE_LOOK: Duration = Duration::from_millis(20);

/// The LocalQueue that a job names.
fn queue_named(object: &serde_json::Map<String, Value>) -> Option<&str> {
    object.get("metadata")?.get("labels")?.get(QUEUE_NAME)?.as_str()
}

/// Makes the namespaces that manifests name and do not bring: in a cluster of one's own nobody else
/// could have.
async fn make_namespaces(cluster: &Cluster, manifests: &[Manifest]) -> Result<()> {
    let named: BTreeSet<&str> = manifests.iter().map(Manifest::namespace).collect();
    let brought =
        |name: &str| manifests.iter().any(|m| m.kind() == "Namespace" && m.name() == name);
    for name in named.into_iter().filter(|name| !name.is_empty() && !brought(name)) {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let path = "/api/v1/namespaces";
        match cluster.call("POST", path, "application/json", Content::Json(&object)).await {
            Err(refusal) if refusal.code() != 409 => {
                return Err(exit::or(refusal.into_error(None), Exit::Cluster));
            }
            _ => {}
        }
    }
    Ok(())
}
