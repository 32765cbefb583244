//! A namespace to try things in, and what can be seen and done there.

use std::{
    fmt::Debug,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use futures::future::try_join_all;
use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{Event, Namespace, Pod},
};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

/// How long something that must happen may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// For how long something that must not happen is waited for.
const STILLNESS: Duration = Duration::from_secs(2);

const LOOK: Duration = Duration::from_millis(100);

/// A namespace of a cluster.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) client: Client,
    pub(crate) namespace: String,
}

impl World {
    /// A new namespace for a case of this name.
    pub(crate) async fn new(client: Client, case: &str) -> Result<Self> {
        let api: Api<Namespace> = Api::all(client.clone());
        let mut short: String = case.replace('_', "-").chars().take(50).collect();
        short.push('-');
        let namespace = json!({"metadata": {"generateName": short}});
        let made = api.create(&PostParams::default(), &serde_json::from_value(namespace)?).await?;
        Ok(Self { client, namespace: made.name_any() })
    }

    /// Removes it, with everything in it, some time later.
    pub(crate) async fn remove(&self) {
        let api: Api<Namespace> = Api::all(self.client.clone());
        let _left_behind = api.delete(&self.namespace, &DeleteParams::background()).await;
    }

    /// All objects of a built-in kind.
    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) fn jobsets(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("jobset.x-k8s.io", "v1alpha2", "JobSet");
        let resource = ApiResource::from_gvk_with_plural(&kind, "jobsets");
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    /// Creates a JobSet. Its pods go to fake nodes.
    pub(crate) async fn create(&self, mut manifest: Value) -> kube::Result<Value> {
        for group in list(&mut manifest["spec"]["replicatedJobs"]) {
            let pod = &mut group["template"]["spec"]["template"]["spec"];
            pod["nodeSelector"]["lockstep.dev/fake-node"] = "true".into();
        }
        let object = serde_json::from_value(manifest).map_err(kube::Error::SerdeError)?;
        let made = self.jobsets().create(&PostParams::default(), &object).await?;
        serde_json::to_value(made).map_err(kube::Error::SerdeError)
    }

    /// Creates a JobSet `js` with this spec.
    pub(crate) async fn jobset(&self, spec: Value) -> Result<()> {
        self.create(manifest(spec)).await.map(drop).context("the JobSet is refused")
    }

    /// Creates the JobSet of an example; says what it is called.
    pub(crate) async fn example(&self, file: &str) -> Result<String> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(file);
        let text = std::fs::read_to_string(&path).with_context(|| format!("no {file}"))?;
        let manifest: Value =
            serde_saphyr::from_str(&text).with_context(|| format!("{file} is no YAML"))?;
        let made = self.create(manifest).await?;
        Ok(made["metadata"]["name"].as_str().unwrap_or_default().to_owned())
    }

    /// A JobSet as it is now.
    pub(crate) async fn get(&self, name: &str) -> Result<Value> {
        Ok(serde_json::to_value(self.jobsets().get(name).await?)?)
    }

    /// Changes a JobSet.
    pub(crate) async fn patch(&self, name: &str, patch: Value) -> kube::Result<()> {
        let params = PatchParams::default();
        self.jobsets().patch(name, &params, &Patch::Merge(patch)).await.map(drop)
    }

    /// Changes a JobSet as a whole, again if somebody else does so at the same time.
    pub(crate) async fn edit(&self, name: &str, change: impl Fn(&mut Value)) -> Result<()> {
        loop {
            let mut jobset = self.get(name).await?;
            change(&mut jobset);
            let changed = serde_json::from_value(jobset)?;
            match self.jobsets().replace(name, &PostParams::default(), &changed).await {
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                answer => return Ok(answer.map(drop)?),
            }
        }
    }

    /// The Jobs that are there and not on their way out, by name.
    pub(crate) async fn jobs(&self) -> Result<Vec<Job>> {
        let mut jobs = self.api::<Job>().list(&ListParams::default()).await?.items;
        jobs.retain(|job| job.metadata.deletion_timestamp.is_none());
        jobs.sort_by_key(ResourceExt::name_any);
        Ok(jobs)
    }

    /// Waits until there are exactly these Jobs, by name, of one attempt.
    pub(crate) async fn until_jobs(&self, attempt: u32, names: &[&str]) -> Result<()> {
        let mut wanted: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        wanted.sort();
        self.until(&format!("Jobs {wanted:?} of attempt {attempt}"), async || {
            let found: Vec<(String, String)> =
                self.jobs().await?.iter().map(|job| (job.name_any(), attempt_of(job))).collect();
            let is_met = found.iter().all(|(_, of)| *of == attempt.to_string())
                && found.iter().map(|(name, _)| name).eq(&wanted);
            Ok(if is_met { Ok(()) } else { Err(format!("there are {found:?}")) })
        })
        .await
    }

    /// Waits until the Jobs are suspended or not, in the order of their names.
    pub(crate) async fn until_suspended(&self, want: &[bool]) -> Result<()> {
        self.until(&format!("Jobs suspended {want:?}"), async || {
            let jobs = self.jobs().await?;
            let found: Vec<bool> = jobs
                .iter()
                .map(|job| job.spec.as_ref().and_then(|spec| spec.suspend).unwrap_or_default())
                .collect();
            Ok(if found == want { Ok(()) } else { Err(format!("they are {found:?}")) })
        })
        .await
    }

    /// Sees to it that no other Jobs come for a while.
    pub(crate) async fn still_jobs(&self, names: &[&str]) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < STILLNESS {
            let found: Vec<String> = self.jobs().await?.iter().map(ResourceExt::name_any).collect();
            ensure!(found.iter().eq(names), "there are Jobs {found:?} and not only {names:?}");
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// The pods of a Job that run, once all do that should.
    pub(crate) async fn running(&self, job: &str) -> Result<Vec<Pod>> {
        self.in_phase(job, "Running").await
    }

    /// The pods of a Job that are in a phase, once all are that should.
    async fn in_phase(&self, job: &str, wanted_phase: &str) -> Result<Vec<Pod>> {
        self.until(&format!("all pods of Job {job} are {wanted_phase}"), async || {
            let Some(owner) = self.api::<Job>().get_opt(job).await? else {
                return Ok(Err("the Job is not there".to_owned()));
            };
            let spec = owner.spec.clone().unwrap_or_default();
            let limit = spec.completions.unwrap_or(i32::MAX);
            let wanted = spec.parallelism.unwrap_or(1).min(limit);
            let uid = owner.uid().unwrap_or_default();
            let params =
                ListParams::default().labels(&format!("batch.kubernetes.io/controller-uid={uid}"));
            let mut pods = self.api::<Pod>().list(&params).await?.items;
            pods.retain(|pod| {
                phase(pod) == wanted_phase && pod.metadata.deletion_timestamp.is_none()
            });
            let is_met = i32::try_from(pods.len()) == Ok(wanted)
                && owner.metadata.deletion_timestamp.is_none();
            Ok(if is_met { Ok(pods) } else { Err(format!("{} of {wanted} are", pods.len())) })
        })
        .await
    }

    /// Lets the pods of a Job be placed that wait at a gate, once all of them do.
    pub(crate) async fn open(&self, job: &str) -> Result<()> {
        let pods = self.in_phase(job, "Pending").await?;
        let open = Patch::Merge(json!({"spec": {"schedulingGates": null}}));
        for pod in pods {
            let params = PatchParams::default();
            self.api::<Pod>().patch(&pod.name_any(), &params, &open).await?;
        }
        Ok(())
    }

    /// Ends all pods of a Job with an exit code, once they run.
    pub(crate) async fn end(&self, job: &str, code: i32) -> Result<()> {
        let pods = self.running(job).await?;
        try_join_all(pods.iter().map(|pod| self.end_pod(pod, code))).await.map(drop)
    }

    /// Ends one pod of a Job with an exit code, once they run.
    pub(crate) async fn end_one(&self, job: &str, code: i32) -> Result<()> {
        let pods = self.running(job).await?;
        self.end_pod(pods.first().context("the Job has no pods")?, code).await
    }

    pub(crate) async fn end_pod(&self, pod: &Pod, code: i32) -> Result<()> {
        let patch = json!({"metadata": {"uid": pod.uid(), "annotations": {
            "lockstep.dev/fake-run-seconds": "0",
            "lockstep.dev/fake-exit-code": code.to_string(),
        }}});
        let params = PatchParams::default();
        self.api::<Pod>().patch(&pod.name_any(), &params, &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Waits until a JobSet has a condition: type, status, reason.
    pub(crate) async fn until_condition(&self, name: &str, wanted: [&str; 3]) -> Result<Value> {
        self.until(&format!("condition {wanted:?}"), async || {
            let jobset = self.get(name).await?;
            let condition = condition(&jobset, wanted[0]);
            let is_met = condition["status"] == wanted[1] && condition["reason"] == wanted[2];
            Ok(if is_met { Ok(jobset) } else { Err(jobset["status"].to_string()) })
        })
        .await
    }

    /// Waits until a JobSet has ended like this; says what it is like then.
    pub(crate) async fn until_ended(&self, name: &str, state: &str) -> Result<Value> {
        self.until(&format!("the end {state}"), async || {
            let jobset = self.get(name).await?;
            let ended = &jobset["status"]["terminalState"];
            if ended.is_string() && ended != state {
                bail!("it ended as {ended} instead of {state}: {}", jobset["status"]);
            }
            Ok(if ended == state { Ok(jobset) } else { Err(jobset["status"].to_string()) })
        })
        .await
    }

    /// Waits for an event of this reason about the JobSet `js`; says what it is.
    pub(crate) async fn until_event(&self, reason: &str) -> Result<Event> {
        self.until_event_of("js", reason).await
    }

    /// Waits for an event of this reason about a JobSet; says what it is.
    pub(crate) async fn until_event_of(&self, name: &str, reason: &str) -> Result<Event> {
        self.until(&format!("an event {reason} about {name}"), async || {
            let mut events = self.api::<Event>().list(&ListParams::default()).await?.items;
            events.retain(|event| event.involved_object.name.as_deref() == Some(name));
            let reasons: Vec<_> = events.iter().map(|event| event.reason.clone()).collect();
            let found = events.into_iter().find(|event| event.reason.as_deref() == Some(reason));
            Ok(found.ok_or_else(|| format!("there are {reasons:?}")))
        })
        .await
    }

    /// Looks again and again until `look` finds what is waited for; else it says what it found.
    pub(crate) async fn until<T>(
        &self,
        what: &str,
        look: impl AsyncFn() -> Result<Result<T, String>>,
    ) -> Result<T> {
        let begun = Instant::now();
        loop {
            match look().await? {
                Ok(found) => return Ok(found),
                Err(found) if begun.elapsed() > PATIENCE => {
                    bail!("waited for {what}; {found}");
                }
                Err(_) => tokio::time::sleep(LOOK).await,
            }
        }
    }
}

/// A JobSet `js` with this spec.
pub(crate) fn manifest(spec: Value) -> Value {
    json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
        "metadata": {"name": "js"}, "spec": spec,
    })
}

/// A replicated job whose pods run until they are ended, and fail their Job when they fail.
pub(crate) fn group(name: &str, replicas: i32, pods: i32) -> Value {
    json!({"name": name, "replicas": replicas, "template": {"spec": {
        "parallelism": pods, "completions": pods, "backoffLimit": 0,
        "template": {"spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": "none"}],
        }},
    }}})
}

/// A replicated job of one Job whose pod is placed only when the case opens its gate.
pub(crate) fn gated(name: &str) -> Value {
    let mut group = group(name, 1, 1);
    let pod = &mut group["template"]["spec"]["template"]["spec"];
    pod["schedulingGates"] = json!([{"name": "lockstep.dev/conformance"}]);
    group
}

/// The same with more members.
pub(crate) fn with(mut group: Value, members: Value) -> Value {
    if let (Value::Object(group), Value::Object(members)) = (&mut group, members) {
        group.extend(members);
    }
    group
}

/// A condition of a JobSet; null when there is none.
pub(crate) fn condition(jobset: &Value, kind: &str) -> Value {
    let conditions = jobset["status"]["conditions"].as_array();
    let found = conditions.into_iter().flatten().find(|condition| condition["type"] == kind);
    found.cloned().unwrap_or_default()
}

/// What the status of a JobSet says of a replicated job; null when it says nothing.
pub(crate) fn group_status(jobset: &Value, name: &str) -> Value {
    let groups = jobset["status"]["replicatedJobsStatus"].as_array();
    let found = groups.into_iter().flatten().find(|group| group["name"] == name);
    found.cloned().unwrap_or_default()
}

/// The attempt that a Job belongs to.
pub(crate) fn attempt_of(job: &Job) -> String {
    job.labels().get("jobset.sigs.k8s.io/restart-attempt").cloned().unwrap_or_default()
}

/// Fails unless both are the same.
pub(crate) fn same<T: PartialEq + Debug>(what: &str, got: T, want: T) -> Result<()> {
    ensure!(got == want, "{what} is {got:?} instead of {want:?}");
    Ok(())
}

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

fn list(value: &mut Value) -> impl Iterator<Item = &mut Value> {
    value.as_array_mut().into_iter().flatten()
}
