//! What a Job controller drives: passes over Jobs, and beside them pods that are nobody's and Jobs
//! that have been kept long enough.

mod call;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use lockstep_control::plan::{
    Key, Refusal, RefusalKind,
    job::{Jobs, Options, Plan, PodRef, Waiting, ttl::Ttls},
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

/// The driver of Jobs, and the one of their last moments.
pub(crate) struct JobDriver {
    jobs: Jobs,
    ttls: Ttls,
}

impl JobDriver {
    /// A driver that knows nothing yet.
    pub(crate) fn new(options: Options) -> Self {
        Self { ttls: Ttls::new(&options), jobs: Jobs::new(options) }
    }
}

impl Driver for JobDriver {
    const ACTOR: &'static str = "controller";
    const KINDS: &'static [Kind] = &[Kind::Job, Kind::Pod];
    type Plan = Plan;
    type Waiting = Waiting;
    type Call = Call;

    fn hear(&mut self, api: &mut Api, kind: Kind, news: &News) {
        let (now, jobs) = (api.now(), &mut self.jobs);
        match (kind, news) {
            (Kind::Job, News::Listing) => jobs.jobs_listing(),
            (Kind::Job, News::Seen(object)) => {
                let job = api.job(object);
                self.ttls.job_seen(&job, now);
                jobs.job_seen(&job, now);
            }
            (Kind::Job, News::Gone(object)) => {
                self.ttls.job_gone(&key(object));
                jobs.job_gone(&key(object), &object.meta.uid, now);
            }
            // What is not listed is gone: the driver of Jobs finds out by itself.
            (Kind::Job, News::Missing(object)) => self.ttls.job_gone(&key(object)),
            (Kind::Job, News::Listed) => jobs.jobs_listed(now),
            (Kind::Pod, News::Listing) => jobs.pods_listing(),
            (Kind::Pod, News::Seen(object)) => jobs.pod_seen(&api.pod(object), now),
            (Kind::Pod, News::Gone(object)) => {
                let meta = &object.meta;
                jobs.pod_gone(&PodRef::new(&meta.namespace, &meta.name, &meta.uid), now);
            }
            (Kind::Pod, News::Listed) => jobs.pods_listed(now),
            (Kind::Pod, News::Missing(_)) => {}
            (
                Kind::JobSet
                | Kind::Service
                | Kind::Workload
                | Kind::ClusterQueue
                | Kind::LocalQueue
                | Kind::Flavor,
                _,
            ) => {}
        }
    }

    fn next_due(&self) -> Option<Timestamp> {
        self.jobs.next_due().into_iter().chain(self.ttls.next_due()).min()
    }

    fn next(&mut self, now: Timestamp) -> Option<(Key, Plan)> {
        self.jobs.next(now)
    }

    fn next_beside(&mut self, now: Timestamp) -> Option<(Key, Call)> {
        if let Some(orphan) = self.jobs.next_orphan(now) {
            let PodRef { namespace, name, .. } = orphan.pod.clone();
            return Some((Key { namespace, name }, Call::LetGo(orphan)));
        }
        self.ttls.next(now).map(|(key, _)| (key, Call::Expire))
    }

    fn summary(plan: &Plan) -> (usize, Option<&Waiting>) {
        (plan.steps.len(), plan.waiting.as_ref())
    }

    fn cut(plan: Plan) -> Result<Vec<Vec<Call>>, Violation> {
        Ok(plan.steps.into_iter().flat_map(call::cut).collect())
    }

    fn accepted(
        &mut self,
        api: &mut Api,
        key: &Key,
        call: Call,
        object: Option<Arc<Object>>,
    ) -> Option<Call> {
        let (now, jobs) = (api.now(), &mut self.jobs);
        match (call, object) {
            (Call::WriteStatus(_), Some(job)) => jobs.status_written(key, &api.job(&job)),
            (Call::Relist { uids }, _) => {
                let pods: Vec<Arc<Object>> = api.list(Kind::Pod).cloned().collect();
                let pods: Vec<Pod> = pods.iter().map(|pod| (*api.pod(pod)).clone()).collect();
                jobs.relisted(key, &uids, &pods);
            }
            (Call::Create(_), Some(pod)) => drop(jobs.created(key, &api.pod(&pod))),
            (Call::Delete(pod), object) => {
                let answer = object.map(|pod| api.pod(&pod));
                jobs.deleted(key, &pod, answer.as_deref());
            }
            (Call::Strip(pod), Some(object)) => {
                jobs.patched(key, &api.pod(&object));
                return Some(Call::Delete(pod));
            }
            (Call::Adopt { .. } | Call::Release { .. } | Call::Unpin(_), Some(pod)) => {
                jobs.patched(key, &api.pod(&pod));
            }
            (Call::LetGo(orphan), _) => jobs.orphan_done(&orphan.pod, None, now),
            (Call::Expire, _) => self.ttls.done(key),
            // All others write, and the API shows what it has written.
            (_, None) => {}
        }
        None
    }

    fn refused(&mut self, api: &mut Api, key: &Key, call: Call, refusal: &Refusal) -> bool {
        let (now, jobs) = (api.now(), &mut self.jobs);
        let is_gone = refusal.kind == RefusalKind::NotFound;
        match call {
            Call::WriteStatus(_) | Call::Relist { .. } => {
                jobs.failed(key, refusal, now);
                return true;
            }
            Call::Create(new) => {
                let is_there = refusal.kind == RefusalKind::AlreadyExists;
                let found = api.get(Kind::Pod, &new.name).filter(|_| is_there).cloned();
                let found = found.map(|pod| api.pod(&pod));
                jobs.create_failed(key, &new, refusal, found.as_deref());
                return true;
            }
            Call::Adopt { .. } if refusal.kind == RefusalKind::Conflict => {
                jobs.failed(key, refusal, now);
            }
            Call::Adopt { pod, .. } | Call::Release { pod, .. } | Call::Unpin(pod) => {
                jobs.patch_failed(key, &pod, refusal);
            }
            Call::Strip(pod) | Call::Delete(pod) => drop(jobs.delete_failed(key, &pod, refusal)),
            Call::LetGo(orphan) => jobs.orphan_done(&orphan.pod, Some(refusal), now),
            Call::Expire if refusal.kind == RefusalKind::Other => self.ttls.failed(key, now),
            Call::Expire => self.ttls.done(key),
        }
        !is_gone
    }

    fn done(&mut self, key: &Key, now: Timestamp) {
        self.jobs.done(key, now);
    }

    fn check_rest(checker: &Checker, key: &Key, waiting: &Waiting) -> Result<(), Violation> {
        checker.check_rest(&key.name, waiting)
    }
}
