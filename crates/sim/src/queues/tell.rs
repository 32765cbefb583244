//! What became of requests.

use std::sync::Arc;

use jiff::Timestamp;
use lockstep_control::plan::{
    Key, Refusal, RefusalKind,
    queue::{Owner, StatusOfQueue, Write},
    queued::JobKey,
};
use lockstep_store::Object;

use super::{Errand, Of, QueueController, call::Call};
use crate::{
    api::{Api, Kind},
    controller::{Answer, request},
};

type Said = Result<Option<Arc<Object>>, Refusal>;

impl QueueController {
    /// Tells the driver that asked for a request what became of it.
    pub(super) fn tell(&mut self, at: usize, api: &mut Api) {
        let now = api.now();
        let mut errand = self.errands.remove(at);
        let Some(answer) = errand.answer.take() else { return };
        let Some((key, call)) = errand.calls.pop_front() else { return };
        let said = said(answer);
        let is_gone = |refusal: &Refusal| {
            matches!(call, Call::Delete { .. }) && refusal.kind == RefusalKind::NotFound
        };
        if said.as_ref().is_err_and(|refusal| !is_gone(refusal)) {
            errand.calls.clear();
        }
        match &errand.of {
            Of::Decision(write, _) => self.decision_answered(api, write, &said),
            Of::Status(status) => self.status_answered(api, status, said),
            Of::Finalizers(wanted) => self.finalizers_answered(api, &wanted.of, said),
            Of::Workload(workload) => match (said, &call) {
                (Ok(Some(_)), Call::Delete { .. }) | (Ok(None), _) => {}
                (Ok(Some(object)), _) => self.workload_written(&api.workload(&object), now),
                (Err(refusal), _) => drop(self.workloads.refused(workload, &refusal, now)),
            },
            Of::Job(job) => self.job_answered(api, job, (&key, &call), said),
        }
        if errand.calls.is_empty() {
            self.end_pass(&errand.of, now);
        } else {
            self.errands.push(Errand { ..errand });
        }
    }

    fn decision_answered(&mut self, api: &mut Api, write: &Write, said: &Said) {
        let now = api.now();
        match said {
            Ok(Some(object)) => self.workload_written(&api.workload(object), now),
            Ok(None) => {}
            Err(refusal) => self.queues.refused(&write.key, write.id, refusal, now),
        }
    }

    fn status_answered(&mut self, api: &mut Api, status: &StatusOfQueue, said: Said) {
        let now = api.now();
        match (status, said) {
            (_, Ok(None)) => {}
            (StatusOfQueue::ClusterQueue { .. }, Ok(Some(object))) => {
                let queue = self.cluster_queue(api, &object);
                self.queues.cluster_queue_written(&queue, now);
            }
            (StatusOfQueue::LocalQueue { .. }, Ok(Some(object))) => {
                self.queues.local_queue_written(&api.local_queue(&object), now);
            }
            (StatusOfQueue::ClusterQueue { name, .. }, Err(_)) => {
                self.queues.cluster_queue_status_refused(name, now);
            }
            (StatusOfQueue::LocalQueue { key, .. }, Err(_)) => {
                self.queues.local_queue_status_refused(key, now);
            }
        }
    }

    fn finalizers_answered(&mut self, api: &mut Api, of: &Owner, said: Said) {
        let now = api.now();
        match (of, said) {
            (_, Ok(None)) => {}
            (Owner::ClusterQueue(_), Ok(Some(object))) => {
                let queue = self.cluster_queue(api, &object);
                self.queues.cluster_queue_written(&queue, now);
            }
            (Owner::ResourceFlavor(_), Ok(Some(object))) => {
                self.queues.flavor_written(&api.flavor(&object), now);
            }
            (_, Err(_)) => self.queues.finalizers_refused(of, now),
        }
    }

    fn job_answered(
        &mut self,
        api: &mut Api,
        job: &JobKey,
        (key, call): (&Key, &Call),
        said: Said,
    ) {
        let now = api.now();
        match (call, said) {
            (Call::CreateWorkload(_), Err(refusal)) => {
                let is_there = refusal.kind == RefusalKind::AlreadyExists;
                let found = api.get(Kind::Workload, &key.name).cloned().filter(|_| is_there);
                let found = found.map(|object| (*api.workload(&object)).clone());
                drop(self.jobs.workload_not_created(job, &refusal, found, now));
            }
            (Call::Delete { kind: Kind::Workload, uid }, Ok(None)) => {
                self.jobs.workload_deleted(key, uid, now);
                self.workload_gone(key, uid, now);
            }
            (Call::Delete { kind: Kind::Workload, uid }, Err(refusal))
                if refusal.kind == RefusalKind::NotFound =>
            {
                self.jobs.workload_deleted(key, uid, now);
                self.workload_gone(key, uid, now);
            }
            (Call::Delete { .. }, Err(refusal)) if refusal.kind == RefusalKind::NotFound => {}
            (_, Err(refusal)) => drop(self.jobs.refused(job, &refusal, now)),
            (
                Call::WriteStatus { .. }
                | Call::CreateWorkload(_)
                | Call::Merge(Kind::Workload, _)
                | Call::Delete { kind: Kind::Workload, .. },
                Ok(Some(object)),
            ) => self.written_for_job(api, job, &object),
            (Call::Merge(Kind::Job, _) | Call::ClearStart(_), Ok(Some(object))) => {
                self.jobs.job_written(job, (*api.job(&object)).clone(), now);
            }
            (Call::Operations(Kind::JobSet, _), Ok(Some(object))) => {
                self.jobs.jobset_written(job, (*api.jobset(&object)).clone(), now);
            }
            (_, Ok(_)) => {}
        }
    }

    fn written_for_job(&mut self, api: &mut Api, job: &JobKey, object: &Arc<Object>) {
        let now: Timestamp = api.now();
        let workload = api.workload(object);
        self.jobs.workload_written(job, (*workload).clone(), now);
        // One that has gone while the answer was on its way is nobody's business any more.
        let known = self.jobs.workload(&Key::of(&workload.metadata));
        if known.is_some_and(|known| known.metadata.uid == workload.metadata.uid) {
            self.workload_seen(&workload, now);
        }
    }
}

fn said(answer: Answer) -> Said {
    answer.map_err(|status| request::refusal(&status))
}
