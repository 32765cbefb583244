//! What a JobSet controller drives, beside the controllers of Jobs.

mod call;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Service;
use lockstep_control::plan::{
    Key, Refusal, RefusalKind,
    jobset::{JobSets, Plan, Waiting},
};
use lockstep_store::Object;

use crate::{
    api::{Api, Kind},
    check::{Checker, Violation},
    controller::{Driver, key},
    watch::News,
};
use call::Call;

/// Who changes plans behind the back of the planner. A test that wants a broken planner is one.
pub type Meddler = fn(&mut Plan);

impl Driver for JobSets {
    const ACTOR: &'static str = "jobsets";
    const KINDS: &'static [Kind] = &[Kind::JobSet, Kind::Job, Kind::Service];
    type Plan = Plan;
    type Waiting = Waiting;
    type Call = Call;

    fn hear(&mut self, api: &mut Api, kind: Kind, news: &News) {
        let now = api.now();
        match (kind, news) {
            (Kind::JobSet, News::Seen(set)) => self.jobset_seen(&api.jobset(set), now),
            (Kind::JobSet, News::Gone(set) | News::Missing(set)) => {
                self.jobset_gone(&key(set), &set.meta.uid);
            }
            (Kind::JobSet, News::Listed) => self.jobsets_listed(),
            (Kind::Job, News::Listing) => self.jobs_listing(),
            (Kind::Job, News::Seen(job)) => self.job_seen(&api.job(job), now),
            (Kind::Job, News::Gone(job) | News::Missing(job)) => {
                self.job_gone(&key(job), &job.meta.uid, now);
            }
            (Kind::Job, News::Listed) => self.jobs_listed(now),
            (Kind::Service, News::Listing) => self.services_listing(),
            (Kind::Service, News::Seen(object)) => self.service_seen(&service(object).metadata),
            (Kind::Service, News::Gone(object) | News::Missing(object)) => {
                self.service_gone(&key(object), &object.meta.uid, now);
            }
            (Kind::Service, News::Listed) => self.services_listed(now),
            (Kind::JobSet, News::Listing) => {}
            (
                Kind::Pod | Kind::Workload | Kind::ClusterQueue | Kind::LocalQueue | Kind::Flavor,
                _,
            ) => {}
        }
    }

    fn next_due(&self) -> Option<Timestamp> {
        Self::next_due(self)
    }

    fn next(&mut self, now: Timestamp) -> Option<(Key, Plan)> {
        Self::next(self, now)
    }

    fn summary(plan: &Plan) -> (usize, Option<&Waiting>) {
        (plan.steps.len(), plan.waiting.as_ref())
    }

    fn cut(plan: Plan) -> Result<Vec<Vec<Call>>, Violation> {
        plan.steps.into_iter().map(call::cut).collect()
    }

    fn accepted(
        &mut self,
        api: &mut Api,
        key: &Key,
        call: Call,
        object: Option<Arc<Object>>,
    ) -> Option<Call> {
        let (now, object) = (api.now(), object?);
        match call {
            Call::WriteStatus(_) => drop(self.status_written(key, &api.jobset(&object))),
            Call::DeleteSet { .. } => {}
            Call::DeleteJob(job) => {
                let left = api.get(Kind::Job, &job.name);
                let is_left = left.is_some_and(|left| {
                    left.meta.uid == object.meta.uid && left.meta.is_deleting()
                });
                match is_left {
                    true => self.job_written(key, (*api.job(&object)).clone(), now),
                    false => self.job_deleted(&job, now),
                }
            }
            Call::CreateJob(_) | Call::PatchJob(..) | Call::ClearStart(_) => {
                self.job_written(key, (*api.job(&object)).clone(), now);
            }
            Call::CreateService(_) => self.service_created(key, &service(&object)),
        }
        None
    }

    fn refused(&mut self, api: &mut Api, key: &Key, call: Call, refusal: &Refusal) -> bool {
        let now = api.now();
        let is_there = refusal.kind == RefusalKind::AlreadyExists;
        match call {
            Call::WriteStatus(_) | Call::DeleteSet { .. } => {
                drop(self.failed(key, refusal, now));
                true
            }
            Call::CreateJob(job) => {
                let name = job.metadata.name.as_deref().unwrap_or_default();
                let found = api.get(Kind::Job, name).cloned().filter(|_| is_there);
                let found = found.map(|job| (*api.job(&job)).clone());
                self.job_not_created(key, refusal, found, now);
                true
            }
            Call::DeleteJob(job) | Call::PatchJob(job, _) | Call::ClearStart(job) => {
                drop(self.job_not_written(key, &job, refusal, now));
                refusal.kind != RefusalKind::NotFound
            }
            Call::CreateService(wanted) => {
                let name = wanted.metadata.name.as_deref().unwrap_or_default();
                let found = api.get(Kind::Service, name).filter(|_| is_there);
                let found = found.map(|object| service(object));
                drop(self.service_not_created(key, refusal, found.as_ref()));
                found.is_none()
            }
        }
    }

    fn done(&mut self, key: &Key, now: Timestamp) {
        Self::done(self, key, now);
    }

    fn check_rest(checker: &Checker, key: &Key, waiting: &Waiting) -> Result<(), Violation> {
        checker.check_set_rest(&key.name, waiting)
    }
}

/// A Service, as its kind.
fn service(object: &Object) -> Service {
    serde_json::from_slice(&object.body).expect("the API has accepted it as its kind")
}
