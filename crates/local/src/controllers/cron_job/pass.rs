//! One pass over a CronJob: what is to be done about it, done.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{CronJob, CronJobStatus, Job};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
};
use lockstep_control::plan::{
    Event, Key,
    cronjob::{self, Step, View},
};
use serde_json::json;
use tracing::debug;

use super::owner;
use crate::recorder::{Note, Recorder, reference};

/// What a pass begins with.
pub(super) struct Pass {
    pub(super) client: Client,
    pub(super) recorder: Recorder,
    pub(super) key: Key,
    pub(super) cron: Arc<CronJob>,
    /// The Jobs that are known, by uid.
    pub(super) jobs: BTreeMap<String, Arc<Job>>,
    pub(super) learned: Learned,
}

/// What a pass knows before the watches tell it.
#[derive(Default)]
pub(super) struct Learned {
    /// Jobs that were started, or asked for.
    pub(super) jobs: Vec<Arc<Job>>,
    /// The version that was written.
    pub(super) written: Option<u64>,
}

impl Pass {
    /// Does what is to be done; when to look again.
    pub(super) async fn run(&mut self) -> kube::Result<Option<Timestamp>> {
        self.look_for_missing().await?;
        let uid = self.cron.uid().unwrap_or_default();
        let is_own = |job: &&Job| owner(job).is_some_and(|owner| owner.uid == uid);
        let jobs: Vec<&Job> = self.jobs.values().map(|job| &**job).filter(is_own).collect();
        let plan = cronjob::plan(View { cron: &self.cron, jobs: &jobs }, Timestamp::now());
        debug!(cronjob = %self.key, waiting = ?plan.waiting, steps = plan.steps.len(), "planned");
        for event in plan.events {
            self.tell(event);
        }
        for step in plan.steps {
            self.apply(step).await?;
        }
        Ok(plan.wake_at)
    }

    /// Asks for Jobs that should run and were not heard of: their news may be late.
    async fn look_for_missing(&mut self) -> kube::Result<()> {
        let cron = Arc::clone(&self.cron);
        let active = cron.status.iter().flat_map(|status| status.active.iter().flatten());
        for wanted in active {
            let (Some(name), Some(uid)) = (&wanted.name, &wanted.uid) else { continue };
            if self.jobs.contains_key(uid) {
                continue;
            }
            if let Some(job) = self.jobs_api().get_opt(name).await?
                && job.uid().as_ref() == Some(uid)
            {
                self.learn(job);
            }
        }
        Ok(())
    }

    async fn apply(&mut self, step: Step) -> kube::Result<()> {
        match step {
            Step::Delete { name, uid, done } => {
                let exactly = Preconditions { uid: Some(uid), ..Preconditions::default() };
                let how = DeleteParams::background().preconditions(exactly);
                match self.jobs_api().delete(&name, &how).await {
                    Ok(_) => self.tell(done),
                    Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
                    Err(error) => {
                        let message = format!("Deleted job: {}", words(&error));
                        self.tell(warning("FailedDelete", message));
                        return Err(error);
                    }
                }
                Ok(())
            }
            Step::Start { job, mut status, done } => {
                let Some(started) = self.start(&job, done).await? else {
                    return Ok(());
                };
                status.active.get_or_insert_default().push(cronjob::reference(&started));
                self.learn(started);
                self.record(&status).await
            }
            Step::Record(status) => self.record(&status).await,
        }
    }

    /// Creates a Job; nothing when its name belongs to somebody else, or nothing can be created.
    async fn start(&self, job: &Job, done: Event) -> kube::Result<Option<Job>> {
        let api = self.jobs_api();
        match api.create(&PostParams::default(), job).await {
            Ok(created) => {
                self.tell(done);
                Ok(Some(created))
            }
            Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {
                let there = api.get_opt(&job.name_any()).await?;
                let is_ours =
                    |job: &Job| owner(job).map(|owner| &owner.uid) == self.cron.uid().as_ref();
                Ok(there.filter(is_ours))
            }
            Err(kube::Error::Api(status)) if is_ending(&status.message) => Ok(None),
            Err(error) => {
                let message = format!("Error creating job: {}", words(&error));
                self.tell(warning("FailedCreate", message));
                Err(error)
            }
        }
    }

    async fn record(&mut self, status: &CronJobStatus) -> kube::Result<()> {
        let (key, cron) = (&self.key, &self.cron);
        let api: Api<CronJob> = Api::namespaced(self.client.clone(), &key.namespace);
        // Whoever wrote in between is heard of, and planned on, next.
        let patch = json!({
            "metadata": { "resourceVersion": cron.resource_version(), "uid": cron.uid() },
            "status": {
                "active": status.active,
                "lastScheduleTime": status.last_schedule_time,
                "lastSuccessfulTime": status.last_successful_time,
            },
        });
        match api.patch_status(&key.name, &PatchParams::default(), &Patch::Merge(&patch)).await {
            Ok(written) => {
                let version = written.resource_version().and_then(|version| version.parse().ok());
                self.learned.written = version.or(self.learned.written);
                Ok(())
            }
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn learn(&mut self, job: Job) {
        let job = Arc::new(job);
        self.jobs.insert(job.uid().unwrap_or_default(), Arc::clone(&job));
        self.learned.jobs.push(job);
    }

    fn jobs_api(&self) -> Api<Job> {
        Api::namespaced(self.client.clone(), &self.key.namespace)
    }

    fn tell(&self, event: Event) {
        let Event { is_warning, reason, message } = event;
        self.recorder.record(Note {
            regarding: reference(&*self.cron),
            is_warning,
            reason,
            message,
        });
    }
}

fn warning(reason: &str, message: String) -> Event {
    Event { is_warning: true, reason: reason.to_owned(), message }
}

/// What the API server said, if it was the one who spoke.
fn words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

/// Whether nothing can be created because the namespace goes.
fn is_ending(message: &str) -> bool {
    message.contains("because it is being terminated")
}
