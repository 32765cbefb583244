//! What the watches bring.

use std::sync::Arc;

use jiff::Timestamp;
use lockstep_api::kueue::{ClusterQueue, Workload};
use lockstep_control::plan::Key;
use lockstep_store::Object;

use super::{Meddled, QueueController};
use crate::{
    api::{Api, Kind},
    controller::key,
    watch::News,
};

impl QueueController {
    pub(super) fn take_in(&mut self, api: &mut Api, kind: Kind, news: &News) {
        let now = api.now();
        match news {
            News::Seen(object) => self.see(api, kind, object),
            News::Gone(object) | News::Missing(object) => self.lose(kind, object, now),
            News::Listing if kind == Kind::Workload => self.jobs.workloads_listing(),
            News::Listing => {}
            News::Listed => {
                self.listed.insert(kind);
                self.all_listed(kind, now);
            }
        }
    }

    fn see(&mut self, api: &mut Api, kind: Kind, object: &Arc<Object>) {
        let now = api.now();
        match kind {
            Kind::Flavor => {
                let flavor = api.flavor(object);
                self.jobs.flavor_seen(&flavor, now);
                self.queues.flavor_seen(&flavor, now);
            }
            Kind::ClusterQueue => self.see_cluster_queue(api, object),
            Kind::LocalQueue => self.queues.local_queue_seen(&api.local_queue(object), now),
            Kind::Workload => {
                let workload = api.workload(object);
                self.jobs.workload_seen(&workload, now);
                self.workload_seen(&workload, now);
            }
            Kind::Job => {
                let mut job = api.job(object);
                if let Some(meddle) = self.meddler {
                    meddle(Meddled::Job(Arc::make_mut(&mut job)));
                }
                self.jobs.job_seen(&job, now);
            }
            Kind::JobSet => self.jobs.jobset_seen(&api.jobset(object), now),
            Kind::Pod | Kind::Service => {}
        }
    }

    fn see_cluster_queue(&mut self, api: &mut Api, object: &Arc<Object>) {
        let queue = self.cluster_queue(api, object);
        self.queues.cluster_queue_seen(&queue, api.now());
    }

    /// A ClusterQueue, as whoever meddles has it.
    pub(super) fn cluster_queue(&self, api: &mut Api, object: &Arc<Object>) -> Arc<ClusterQueue> {
        let mut queue = api.cluster_queue(object);
        if let Some(meddle) = self.meddler {
            meddle(Meddled::ClusterQueue(Arc::make_mut(&mut queue)));
        }
        queue
    }

    fn lose(&mut self, kind: Kind, object: &Object, now: Timestamp) {
        let (key, uid) = (key(object), &object.meta.uid);
        match kind {
            Kind::Flavor => {
                self.jobs.flavor_gone(&key.name);
                self.queues.flavor_gone(&key.name, now);
            }
            Kind::ClusterQueue => self.queues.cluster_queue_gone(&key.name, uid, now),
            Kind::LocalQueue => self.queues.local_queue_gone(&key, uid, now),
            Kind::Workload => {
                self.jobs.workload_gone(&key, uid, now);
                self.workload_gone(&key, uid, now);
            }
            Kind::Job => self.jobs.job_gone(&key, uid, now),
            Kind::JobSet => self.jobs.jobset_gone(&key, uid, now),
            Kind::Pod | Kind::Service => {}
        }
    }

    fn all_listed(&mut self, kind: Kind, now: Timestamp) {
        match kind {
            Kind::Flavor => {
                self.jobs.flavors_listed();
                self.queues.flavors_listed();
            }
            Kind::ClusterQueue => self.queues.cluster_queues_listed(),
            Kind::LocalQueue => self.queues.local_queues_listed(),
            Kind::Workload => {
                for (key, uid) in self.jobs.workloads_listed(now) {
                    self.workload_gone(&key, &uid, now);
                }
                self.queues.workloads_listed();
            }
            Kind::Job => self.jobs.jobs_listed(),
            Kind::JobSet => self.jobs.jobsets_listed(),
            Kind::Pod | Kind::Service => {}
        }
    }

    /// A Workload is gone, as the driver of jobs knows already.
    pub(super) fn workload_gone(&mut self, key: &Key, uid: &str, now: Timestamp) {
        self.queues.workload_gone(key, uid, now);
        self.workloads.gone(key, uid, now);
    }

    /// A Workload was seen, or written for a job.
    pub(super) fn workload_seen(&mut self, workload: &Arc<Workload>, now: Timestamp) {
        self.queues.workload_seen(workload, now);
        self.workloads.seen(workload, now);
        let wait = self.queues.around(workload).wait;
        self.jobs.wait_seen(&Key::of(&workload.metadata), wait, now);
    }

    /// A Workload was written by the scheduler, or in a pass over it.
    pub(super) fn workload_written(&mut self, workload: &Arc<Workload>, now: Timestamp) {
        self.queues.written(workload, now);
        self.workloads.written(workload, now);
        self.jobs.workload_written_elsewhere(workload, now);
    }
}
