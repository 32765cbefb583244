//! Everything that has to be asked to say why one job waits.

use anyhow::Result;
use lockstep_api::labels::{
    jobset::JOBSET_NAME,
    kueue::{PREBUILT_WORKLOAD, QUEUE_NAME},
};
use serde_json::Value;

use crate::{
    catalog::{Catalog, Resource, escape, query},
    cluster::Cluster,
    describe::text::scalar,
    events::{self, Event},
    queueing::{
        queue::{ClusterQueue, LocalQueue},
        workload::{Owner, Workload},
    },
};

/// The label of the pods of a Job.
const JOB_NAME: &str = "batch.kubernetes.io/job-name";

/// What is known of one job. What a server does not tell is left out.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Its kind, name and uid; of a Workload that is of nobody, the Workload itself.
    pub(super) subject: Owner,
    /// Its namespace.
    pub(super) namespace: String,
    /// The Job or JobSet; nothing when it is gone, or of a kind that is not known here.
    pub(super) job: Option<Value>,
    /// Whether the cluster has queues at all.
    pub(super) has_queues: bool,
    /// Its Workload.
    pub(super) workload: Option<Workload>,
    /// All Workloads there are.
    pub(super) workloads: Vec<Workload>,
    /// The LocalQueues of all namespaces.
    pub(super) local_queues: Vec<LocalQueue>,
    /// All ClusterQueues.
    pub(super) cluster_queues: Vec<ClusterQueue>,
    /// Its pods.
    pub(super) pods: Vec<Value>,
    /// What happened to it.
    pub(super) events: Vec<Event>,
}

impl Seen {
    /// Asks for all of it, beginning with `object`.
    pub(super) async fn of(
        cluster: &Cluster,
        catalog: &Catalog,
        resource: &Resource,
        object: Value,
    ) -> Result<Self> {
        let namespace = scalar(&object["metadata"]["namespace"]);
        let (kind, object) = rise(cluster, catalog, &resource.kind, object).await;
        let meta = &object["metadata"];
        let mut seen = Self {
            subject: Owner {
                kind: kind.clone(),
                name: scalar(&meta["name"]),
                uid: scalar(&meta["uid"]),
            },
            namespace,
            ..Self::default()
        };
        seen.read_queues(cluster, catalog).await;
        if kind == "Workload" {
            let workload = Workload::read(&object);
            if let Some(owner) = &workload.owner {
                seen.subject = owner.clone();
            }
            seen.workload = Some(workload);
        } else {
            seen.workload = seen.own_workload(&object);
            seen.job = Some(object);
        }
        seen.read_pods(cluster).await;
        Ok(seen)
    }

    /// The LocalQueue that a job names, if it does.
    pub(super) fn queue_named(&self) -> Option<String> {
        let label = |job: &Value| job["metadata"]["labels"][QUEUE_NAME].as_str().map(str::to_owned);
        let named = self.workload.as_ref().map(|workload| workload.queue.clone());
        named.or_else(|| self.job.as_ref().and_then(label)).filter(|name| !name.is_empty())
    }

    /// The LocalQueue it is to wait in, if there is one of the name.
    pub(super) fn local_queue(&self) -> Option<&LocalQueue> {
        let name = self.queue_named()?;
        self.local_queues
            .iter()
            .find(|queue| queue.namespace == self.namespace && queue.name == name)
    }

    /// The ClusterQueue a Workload waits in or has quota in.
    pub(super) fn cluster_queue_of(&self, workload: &Workload) -> Option<&ClusterQueue> {
        let local = self
            .local_queues
            .iter()
            .find(|queue| queue.namespace == workload.namespace && queue.name == workload.queue);
        let name = match workload.cluster_queue.as_str() {
            "" => &local?.cluster_queue,
            name => name,
        };
        self.cluster_queues.iter().find(|queue| queue.name == *name)
    }

    /// The Workload of a Job or JobSet: the one that says so, or that it names itself.
    fn own_workload(&self, job: &Value) -> Option<Workload> {
        let meta = &job["metadata"];
        let prebuilt = ["annotations", "labels"]
            .iter()
            .find_map(|place| meta[place][PREBUILT_WORKLOAD].as_str());
        let is_its = |workload: &&Workload| {
            let owner = workload.owner.as_ref();
            workload.namespace == self.namespace
                && (owner.is_some_and(|owner| owner.uid == self.subject.uid)
                    || (owner.is_none() && prebuilt == Some(workload.name.as_str())))
        };
        // One that has ended may lie beside the one of now.
        let mut own: Vec<&Workload> = self.workloads.iter().filter(is_its).collect();
        own.sort_by_key(|workload| {
            (workload.is("Finished").is_some(), std::cmp::Reverse(workload.created))
        });
        own.first().map(|workload| (*workload).clone())
    }

    async fn read_queues(&mut self, cluster: &Cluster, catalog: &Catalog) {
        let kind = |plural: &str| catalog.one(&format!("{plural}.kueue.x-k8s.io")).ok();
        let Some(workloads) = kind("workloads") else { return };
        self.has_queues = true;
        // Whoever may not see all of them sees those of the namespace.
        let mut items = items(cluster, &workloads.collection(None)).await;
        if items.is_none() {
            items = self::items(cluster, &workloads.collection(Some(&self.namespace))).await;
        }
        self.workloads = items.iter().flatten().map(Workload::read).collect();
        if let Some(local) = kind("localqueues") {
            let mut items = self::items(cluster, &local.collection(None)).await;
            if items.is_none() {
                items = self::items(cluster, &local.collection(Some(&self.namespace))).await;
            }
            self.local_queues = items.iter().flatten().map(LocalQueue::read).collect();
        }
        if let Some(queues) = kind("clusterqueues") {
            let items = self::items(cluster, &queues.collection(None)).await;
            self.cluster_queues = items.iter().flatten().map(ClusterQueue::read).collect();
        }
    }

    async fn read_pods(&mut self, cluster: &Cluster) {
        let namespace = escape(&self.namespace);
        let Owner { kind, name, uid } = &self.subject;
        let label = if kind == "JobSet" { JOBSET_NAME } else { JOB_NAME };
        let pairs = [("labelSelector", Some(format!("{label}={name}")))];
        let path = format!("/api/v1/namespaces/{namespace}/pods") + &query(&pairs);
        self.pods = items(cluster, &path).await.unwrap_or_default();
        let pairs = [("fieldSelector", Some(format!("involvedObject.uid={uid}")))];
        let path = format!("/api/v1/namespaces/{namespace}/events") + &query(&pairs);
        let list = cluster.get(&path).await.unwrap_or_default();
        self.events = events::sorted(&list);
    }
}

/// What queues see: of a pod its Job, of a Job of a JobSet the JobSet, of a Workload its job.
async fn rise(cluster: &Cluster, catalog: &Catalog, kind: &str, object: Value) -> (String, Value) {
    let (mut kind, mut object) = (kind.to_owned(), object);
    loop {
        let owners = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        let is_known = |owner: &&Value| {
            let wanted = if kind == "Job" { vec!["JobSet"] } else { vec!["Job", "JobSet"] };
            owner["controller"] == true && wanted.iter().any(|known| owner["kind"] == *known)
        };
        let Some(owner) = owners.iter().find(is_known) else { return (kind, object) };
        let (version, owner_kind) = (scalar(&owner["apiVersion"]), scalar(&owner["kind"]));
        let Some(resource) = catalog.of_kind(&version, &owner_kind) else { return (kind, object) };
        let namespace = scalar(&object["metadata"]["namespace"]);
        let path = resource.object(&namespace, &scalar(&owner["name"]));
        match cluster.get(&path).await {
            Ok(found) if found["metadata"]["uid"] == owner["uid"] => {
                (kind, object) = (owner_kind, found);
            }
            _ => return (kind, object),
        }
    }
}

async fn items(cluster: &Cluster, path: &str) -> Option<Vec<Value>> {
    cluster.get(path).await.ok()?["items"].as_array().cloned()
}
