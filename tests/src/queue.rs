//! A queue of its own for a case, and jobs that wait in it.

use anyhow::{Context, Result};
use k8s_openapi::api::batch::v1::Job;
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use crate::world::{World, condition};

/// The label by which jobs wait in a queue.
pub(crate) const QUEUE_NAME: &str = "kueue.x-k8s.io/queue-name";

/// A LocalQueue `q` and a ClusterQueue behind it, named after the namespace of the case.
#[derive(Clone)]
pub(crate) struct Queue {
    pub(crate) world: World,
    pub(crate) name: String,
}

impl Queue {
    /// A queue with so many CPUs, and these annotations and members of the spec beside.
    pub(crate) async fn new(
        world: &World,
        cpus: u32,
        annotations: Value,
        more: Value,
    ) -> Result<Self> {
        let name = world.namespace.clone();
        let queue = Self { world: world.clone(), name };
        queue.make("ResourceFlavor", json!({"metadata": {"name": queue.name}, "spec": {}})).await?;
        queue.cluster_queue(&queue.name, cpus, annotations, more).await?;
        queue.local_queue("q", &queue.name).await?;
        Ok(queue)
    }

    /// One more ClusterQueue of the same flavor.
    pub(crate) async fn cluster_queue(
        &self,
        name: &str,
        cpus: u32,
        annotations: Value,
        more: Value,
    ) -> Result<()> {
        let mut spec = json!({
            "namespaceSelector": {},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{
                "name": self.name,
                "resources": [{"name": "cpu", "nominalQuota": cpus.to_string()}],
            }]}],
        });
        if let (Value::Object(spec), Value::Object(more)) = (&mut spec, more) {
            spec.extend(more);
        }
        let metadata = json!({"name": name, "annotations": annotations});
        self.make("ClusterQueue", json!({"metadata": metadata, "spec": spec})).await.map(drop)
    }

    pub(crate) async fn local_queue(&self, name: &str, of: &str) -> Result<()> {
        let queue = json!({"metadata": {"name": name}, "spec": {"clusterQueue": of}});
        self.make("LocalQueue", queue).await.map(drop)
    }

    pub(crate) async fn make(&self, kind: &str, mut object: Value) -> Result<Value> {
        object["apiVersion"] = "kueue.x-k8s.io/v1beta2".into();
        object["kind"] = kind.into();
        let (api, object) = (self.api(kind), serde_json::from_value(object)?);
        let made = api.create(&PostParams::default(), &object).await;
        let made = made.with_context(|| format!("the {kind} is refused"))?;
        Ok(serde_json::to_value(made)?)
    }

    /// All objects of a kind of queueing.
    pub(crate) fn api(&self, kind: &str) -> Api<DynamicObject> {
        let gvk = GroupVersionKind::gvk("kueue.x-k8s.io", "v1beta2", kind);
        let plural = match kind {
            "WorkloadPriorityClass" => "workloadpriorityclasses".to_owned(),
            _ => format!("{}s", kind.to_lowercase()),
        };
        let resource = ApiResource::from_gvk_with_plural(&gvk, &plural);
        match kind {
            "LocalQueue" | "Workload" => {
                Api::namespaced_with(self.world.client.clone(), &self.world.namespace, &resource)
            }
            _ => Api::all_with(self.world.client.clone(), &resource),
        }
    }

    pub(crate) async fn patch(&self, kind: &str, name: &str, patch: Value) -> Result<()> {
        let params = PatchParams::default();
        self.api(kind).patch(name, &params, &Patch::Merge(patch)).await.map(drop)?;
        Ok(())
    }

    /// A Job of one pod for each of so many CPUs, suspended, in the queue `q`.
    pub(crate) async fn job(&self, name: &str, cpus: u32) -> Result<()> {
        self.create_job(job(name, cpus)).await
    }

    pub(crate) async fn create_job(&self, job: Value) -> Result<()> {
        let api = self.world.api::<Job>();
        api.create(&PostParams::default(), &serde_json::from_value(job)?).await?;
        Ok(())
    }

    /// The Workload of a job, once there is one.
    pub(crate) async fn workload(&self, job: &str) -> Result<Value> {
        self.world
            .until(&format!("a Workload of {job}"), async || {
                let all = self.api("Workload").list(&ListParams::default()).await?.items;
                let is_of = |one: &DynamicObject| {
                    one.owner_references().iter().any(|owner| owner.name == job)
                };
                let found = all.into_iter().find(is_of);
                Ok(match found {
                    Some(workload) => Ok(serde_json::to_value(workload)?),
                    None => Err("there is none".to_owned()),
                })
            })
            .await
    }

    /// Waits until the Workload of a job has a condition: type, status, reason; the Workload then.
    pub(crate) async fn until(&self, job: &str, wanted: [&str; 3]) -> Result<Value> {
        self.world
            .until(&format!("{wanted:?} of the Workload of {job}"), async || {
                let workload = self.workload(job).await?;
                let found = condition(&workload, wanted[0]);
                let is_met = found["status"] == wanted[1] && found["reason"] == wanted[2];
                Ok(if is_met { Ok(workload) } else { Err(workload["status"].to_string()) })
            })
            .await
    }

    /// Waits until a job is admitted.
    pub(crate) async fn until_admitted(&self, job: &str) -> Result<Value> {
        self.until(job, ["Admitted", "True", "Admitted"]).await
    }

    /// Removes what is in no namespace.
    pub(crate) async fn remove(&self) {
        for kind in ["ClusterQueue", "ResourceFlavor"] {
            let _later = self.api(kind).delete(&self.name, &DeleteParams::default()).await;
        }
    }
}

/// A Job of one pod for each of so many CPUs, suspended, in the queue `q`.
pub(crate) fn job(name: &str, cpus: u32) -> Value {
    json!({
        "metadata": {"name": name, "labels": {QUEUE_NAME: "q"}},
        "spec": {
            "suspend": true, "parallelism": cpus, "completions": cpus, "backoffLimit": 10,
            "template": {"spec": {
                "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
                "nodeSelector": {"lockstep.dev/fake-node": "true"},
                "containers": [{
                    "name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}},
                }],
            }},
        },
    })
}

/// The same, whose pods are placed only when the case opens their gates.
pub(crate) fn gated_job(name: &str, cpus: u32) -> Value {
    let mut job = job(name, cpus);
    job["spec"]["template"]["spec"]["schedulingGates"] =
        json!([{"name": "lockstep.dev/conformance"}]);
    job
}

/// The message of a condition.
pub(crate) fn message(object: &Value, kind: &str) -> String {
    condition(object, kind)["message"].as_str().unwrap_or_default().to_owned()
}
