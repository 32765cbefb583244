//! A cluster to run Jobs in.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::batch::v1::{Job, JobStatus};
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use lockstep_control::plan::job::Options;
use lockstep_local::embedded::{self, Embedded, NodeOptions};
use lockstep_local::feeds::Feeds;
use lockstep_local::node::fake::FakeOptions;
use lockstep_local::node::runtime::RuntimeOptions;
use lockstep_operator::job::{self, JobOptions};
use lockstep_operator::metrics::Metrics;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// A test fails when something takes longer than this.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) const TRACKING: &str = "batch.kubernetes.io/job-tracking";
pub(crate) const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// A cluster with a Job controller. Everything ends with it.
pub(crate) struct World {
    pub(crate) client: Client,
    pub(crate) metrics: Arc<Metrics>,
    feeds: Option<Feeds>,
    controller: Vec<JoinHandle<()>>,
    _embedded: Embedded,
}

impl Drop for World {
    fn drop(&mut self) {
        self.controller.iter().for_each(JoinHandle::abort);
    }
}

/// Options that do not make a test wait.
pub(crate) fn quick() -> JobOptions {
    JobOptions {
        jobs: Options {
            api_backoff_base: Duration::from_millis(20),
            api_backoff_max: Duration::from_millis(200),
            pod_backoff_base: Duration::from_millis(1),
            pod_backoff_max: Duration::from_millis(5),
            ..Options::default()
        },
        ..JobOptions::default()
    }
}

impl World {
    /// A cluster without nodes: what becomes of pods is up to the test.
    pub(crate) async fn start() -> Self {
        Self::with(quick()).await
    }

    /// The same, with a controller that works like this.
    pub(crate) async fn with(options: JobOptions) -> Self {
        let mut world = Self::of(embedded::Options::default()).await;
        world.feeds = Some(Feeds::start(&world.client));
        world.start_controller(options);
        world
    }

    /// A cluster with so many nodes that only pretend.
    pub(crate) async fn with_fake_nodes(count: usize) -> Self {
        let fake_nodes = Some(FakeOptions::new(count));
        Self::of(embedded::Options { fake_nodes, jobs: quick(), ..embedded::Options::default() })
            .await
    }

    /// A cluster whose pods are processes.
    pub(crate) async fn with_processes() -> Self {
        let shim = Some(PathBuf::from(env!("CARGO_BIN_EXE_lockstep-shim")));
        let runtime = RuntimeOptions { shim, die_with_parent: true, ..RuntimeOptions::from_env() };
        let capacity = [("cpu", "64"), ("memory", "64Gi")].map(|(name, amount)| {
            let amount = serde_json::from_value(json!(amount)).unwrap();
            (name.to_owned(), amount)
        });
        let node = NodeOptions { runtime, capacity: capacity.into(), ..NodeOptions::default() };
        let options = embedded::Options::default();
        Self::of(embedded::Options { node: Some(node), jobs: quick(), ..options }).await
    }

    async fn of(options: embedded::Options) -> Self {
        // Shown with the output of a test that fails.
        let level = tracing::Level::WARN;
        let _ = tracing_subscriber::fmt().with_test_writer().with_max_level(level).try_init();
        let embedded = Box::pin(Embedded::start(options)).await.unwrap();
        let client = embedded.client();
        let metrics = Arc::default();
        Self { client, metrics, feeds: None, controller: Vec::new(), _embedded: embedded }
    }

    pub(crate) fn start_controller(&mut self, options: JobOptions) {
        let feeds = self.feeds.as_ref().expect("a world whose controller is its own");
        let feeds = job::Feeds { jobs: feeds.jobs.clone(), pods: feeds.pods.clone() };
        self.controller = job::spawn(&self.client, &feeds, &self.metrics, options);
    }

    /// Ends the controller in the middle of whatever it does.
    pub(crate) async fn stop_controller(&mut self) {
        for task in self.controller.drain(..) {
            task.abort();
            let _ = task.await;
        }
    }

    pub(crate) async fn restart_controller(&mut self, options: JobOptions) {
        self.stop_controller().await;
        self.start_controller(options);
    }

    pub(crate) fn jobs(&self) -> Api<Job> {
        Api::namespaced(self.client.clone(), "default")
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), "default")
    }

    /// Creates a Job called `j` of this spec; its pods run `sh -c true` unless it says otherwise.
    pub(crate) async fn create(&self, spec: Value) -> Job {
        self.create_named("j", spec).await
    }

    pub(crate) async fn create_named(&self, name: &str, mut spec: Value) -> Job {
        let template = &mut spec["template"]["spec"];
        let defaults = json!({
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "c", "image": "none", "command": ["sh", "-c", "true"]}],
        });
        for (key, value) in defaults.as_object().unwrap() {
            if template[key].is_null() {
                template[key] = value.clone();
            }
        }
        let job = json!({"metadata": {"name": name}, "spec": spec});
        let job: Job = serde_json::from_value(job).unwrap();
        self.jobs().create(&PostParams::default(), &job).await.unwrap()
    }

    pub(crate) async fn job(&self, name: &str) -> Job {
        self.jobs().get(name).await.unwrap()
    }

    /// Changes a Job with a merge patch.
    pub(crate) async fn change(&self, name: &str, patch: Value) -> Job {
        let params = PatchParams::default();
        self.jobs().patch(name, &params, &Patch::Merge(patch)).await.unwrap()
    }

    pub(crate) async fn delete(&self, name: &str, params: &DeleteParams) {
        self.jobs().delete(name, params).await.unwrap();
    }

    /// Waits until the Job is as wanted; fails with the Job as it is when that takes too long.
    pub(crate) async fn until(&self, what: &str, is: impl Fn(&Job) -> bool) -> Job {
        self.until_named("j", what, is).await
    }

    pub(crate) async fn until_named(
        &self,
        name: &str,
        what: &str,
        is: impl Fn(&Job) -> bool,
    ) -> Job {
        let limit = Instant::now() + PATIENCE;
        loop {
            let job = self.jobs().get_opt(name).await.unwrap();
            if let Some(job) = job.as_ref().filter(|job| is(job)) {
                return job.clone();
            }
            if Instant::now() > limit {
                let status = job.and_then(|job| job.status);
                let shown = serde_json::to_string_pretty(&status).unwrap();
                panic!("{name} is not {what}: {shown}\n{:#?}", self.all_pods().await);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until the counts are these: active, ready, succeeded, failed, terminating.
    pub(crate) async fn until_counts(&self, wanted: [i32; 5]) -> Job {
        self.until(&format!("{wanted:?}"), |job| counts(job) == wanted).await
    }

    /// Waits until the Job has ended with this condition.
    pub(crate) async fn until_ended(&self, condition: &str) -> Job {
        let job = self.until("over", is_over).await;
        assert!(condition_of(&job, condition).is_some(), "{:#?}", job.status);
        job
    }

    pub(crate) async fn until_pods(&self, what: &str, is: impl Fn(&[Pod]) -> bool) -> Vec<Pod> {
        let limit = Instant::now() + PATIENCE;
        loop {
            let pods = self.all_pods().await;
            if is(&pods) {
                return pods;
            }
            assert!(Instant::now() < limit, "not {what}: {pods:#?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) async fn all_pods(&self) -> Vec<Pod> {
        self.pods().list(&ListParams::default()).await.unwrap().items
    }

    /// Pods that neither have ended nor are ending.
    pub(crate) async fn active_pods(&self) -> Vec<Pod> {
        let mut pods = self.all_pods().await;
        pods.retain(is_active);
        pods
    }

    /// Sets the phase of `count` active pods, waiting until there are so many.
    pub(crate) async fn set_phase(&self, phase: &str, count: usize) {
        let enough = |pods: &[Pod]| pods.iter().filter(|pod| is_active(pod)).count() >= count;
        let pods = self.until_pods(&format!("{count} active"), enough).await;
        for pod in pods.into_iter().filter(is_active).take(count) {
            self.set_pod_phase(&pod, phase).await;
        }
    }

    /// Sets the phase of the active pod of an index.
    pub(crate) async fn set_index_phase(&self, index: i32, phase: &str) {
        let is_it = |pod: &Pod| is_active(pod) && index_of(pod) == Some(index);
        let what = format!("index {index} active");
        let pods = self.until_pods(&what, |pods| pods.iter().any(is_it)).await;
        self.set_pod_phase(pods.iter().find(|pod| is_it(pod)).unwrap(), phase).await;
    }

    pub(crate) async fn set_pod_phase(&self, pod: &Pod, phase: &str) {
        self.set_pod_status(pod, json!({"phase": phase})).await;
    }

    pub(crate) async fn set_pod_status(&self, pod: &Pod, status: Value) {
        let patch = Patch::Strategic(json!({"status": status}));
        let params = PatchParams::default();
        self.pods().patch_status(&pod.name_any(), &params, &patch).await.unwrap();
    }

    /// Succeeds the active pod of an index of a Job.
    pub(crate) async fn succeed_of(&self, job: &str, index: i32) {
        let is_it = |pod: &Pod| {
            let is_of = pod.owner_references().iter().any(|owner| owner.name == job);
            is_of && is_active(pod) && index_of(pod) == Some(index)
        };
        let what = format!("index {index} of {job} active");
        let pods = self.until_pods(&what, |pods| pods.iter().any(is_it)).await;
        self.set_pod_phase(pods.iter().find(|pod| is_it(pod)).unwrap(), "Succeeded").await;
    }

    /// Takes a finalizer off a pod, if that is still there.
    pub(crate) async fn let_go(&self, pod: &Pod, finalizer: &str) {
        let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": [finalizer]}});
        let (name, params) = (pod.name_any(), PatchParams::default());
        match self.pods().patch(&name, &params, &Patch::Strategic(patch)).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            outcome => drop(outcome.unwrap()),
        }
    }

    pub(crate) async fn create_pod(&self, pod: Value) -> Pod {
        let pod: Pod = serde_json::from_value(pod).unwrap();
        self.pods().create(&PostParams::default(), &pod).await.unwrap()
    }

    pub(crate) async fn change_pod(&self, name: &str, patch: Value) {
        let params = PatchParams::default();
        self.pods().patch(name, &params, &Patch::Merge(patch)).await.unwrap();
    }

    pub(crate) async fn until_gone(&self, name: &str) {
        let limit = Instant::now() + PATIENCE;
        while let Some(job) = self.jobs().get_opt(name).await.unwrap() {
            assert!(Instant::now() < limit, "{name} is still there: {job:#?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// What Prometheus would read.
    pub(crate) fn metrics_text(&self) -> String {
        let mut text = String::new();
        self.metrics.write(&mut text).unwrap();
        text
    }

    /// `type reason message` of all events on a Job, once one of them has this reason.
    pub(crate) async fn events(&self, name: &str, reason: &str) -> Vec<String> {
        let api: Api<Event> = Api::namespaced(self.client.clone(), "default");
        let limit = Instant::now() + PATIENCE;
        loop {
            let all = api.list(&ListParams::default()).await.unwrap();
            let about = all.items.into_iter().filter(|event| {
                event.involved_object.name.as_deref() == Some(name)
                    && event.involved_object.kind.as_deref() == Some("Job")
            });
            let shown: Vec<String> = about
                .map(|event| {
                    let parts = [event.type_, event.reason, event.message];
                    parts.map(Option::unwrap_or_default).join(" ")
                })
                .collect();
            if shown.iter().any(|event| event.split(' ').nth(1) == Some(reason)) {
                return shown;
            }
            assert!(Instant::now() < limit, "no event {reason} on {name}: {shown:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Deletes at once.
pub(crate) fn now() -> DeleteParams {
    DeleteParams::default().grace_period(0)
}

pub(crate) fn background() -> DeleteParams {
    DeleteParams::background()
}

pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

pub(crate) fn is_active(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none() && !matches!(phase(pod), "Succeeded" | "Failed")
}

pub(crate) fn is_tracked(pod: &Pod) -> bool {
    pod.finalizers().iter().any(|finalizer| finalizer == TRACKING)
}

pub(crate) fn index_of(pod: &Pod) -> Option<i32> {
    pod.annotations().get(INDEX)?.parse().ok()
}

/// The indexes of active pods.
pub(crate) fn active_indexes(pods: &[Pod]) -> Vec<i32> {
    let active = pods.iter().filter(|pod| is_active(pod));
    let mut indexes: Vec<i32> = active.filter_map(index_of).collect();
    indexes.sort_unstable();
    indexes
}

pub(crate) fn status(job: &Job) -> JobStatus {
    job.status.clone().unwrap_or_default()
}

pub(crate) fn counts(job: &Job) -> [i32; 5] {
    let status = status(job);
    let all = [status.active, status.ready, status.succeeded, status.failed, status.terminating];
    all.map(Option::unwrap_or_default)
}

/// Reason and message of a condition that is true.
pub(crate) fn condition_of(job: &Job, kind: &str) -> Option<(String, String)> {
    let status = job.status.as_ref()?;
    let condition = status
        .conditions
        .iter()
        .flatten()
        .find(|condition| condition.type_ == kind && condition.status == "True")?;
    let reason = condition.reason.clone().unwrap_or_default();
    Some((reason, condition.message.clone().unwrap_or_default()))
}

/// The types of the conditions that are true, in order.
pub(crate) fn conditions(job: &Job) -> Vec<String> {
    let status = status(job);
    let all = status.conditions.into_iter().flatten();
    all.filter(|condition| condition.status == "True").map(|condition| condition.type_).collect()
}

pub(crate) fn is_over(job: &Job) -> bool {
    condition_of(job, "Complete").is_some() || condition_of(job, "Failed").is_some()
}
