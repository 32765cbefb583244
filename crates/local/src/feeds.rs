//! The watches that the parts of a cluster share.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{LimitRange, Namespace, Node, Pod, Service};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::runtime::watcher;
use kube::{Api, Client};
use lockstep_api::jobset::JobSet;
use lockstep_api::kueue::{
    ClusterQueue, LocalQueue, ResourceFlavor, Workload, WorkloadPriorityClass,
};
use lockstep_operator::queue;

use crate::observe::Feed;

/// What everybody in the process follows. Fetched and decoded once, whoever listens.
#[derive(Clone)]
pub struct Feeds {
    /// All pods.
    pub pods: Feed<Pod>,
    /// All nodes.
    pub nodes: Feed<Node>,
    /// All Jobs.
    pub jobs: Feed<Job>,
    /// All JobSets.
    pub jobsets: Feed<JobSet>,
    /// All Services.
    pub services: Feed<Service>,
    /// All namespaces.
    pub namespaces: Feed<Namespace>,
    /// All LimitRanges.
    pub limit_ranges: Feed<LimitRange>,
    /// All ResourceFlavors.
    pub flavors: Feed<ResourceFlavor>,
    /// All ClusterQueues.
    pub cluster_queues: Feed<ClusterQueue>,
    /// All LocalQueues.
    pub local_queues: Feed<LocalQueue>,
    /// All Workloads.
    pub workloads: Feed<Workload>,
    /// All classes of priority of Workloads.
    pub classes: Feed<WorkloadPriorityClass>,
    /// All classes of priority of pods.
    pub pod_classes: Feed<PriorityClass>,
}

impl Feeds {
    /// Starts following.
    pub fn start(client: &Client) -> Self {
        let config = || watcher::Config::default().page_size(5_000);
        Self {
            pods: Feed::start(Api::all(client.clone()), config()),
            nodes: Feed::start(Api::all(client.clone()), config()),
            jobs: Feed::start(Api::all(client.clone()), config()),
            jobsets: Feed::start(Api::all(client.clone()), config()),
            services: Feed::start(Api::all(client.clone()), config()),
            namespaces: Feed::start(Api::all(client.clone()), config()),
            limit_ranges: Feed::start(Api::all(client.clone()), config()),
            flavors: Feed::start(Api::all(client.clone()), config()),
            cluster_queues: Feed::start(Api::all(client.clone()), config()),
            local_queues: Feed::start(Api::all(client.clone()), config()),
            workloads: Feed::start(Api::all(client.clone()), config()),
            classes: Feed::start(Api::all(client.clone()), config()),
            pod_classes: Feed::start(Api::all(client.clone()), config()),
        }
    }

    /// What the queue controller follows.
    pub fn of_queues(&self) -> queue::Feeds {
        let jobs = queue::JobFeeds {
            jobs: self.jobs.clone(),
            jobsets: self.jobsets.clone(),
            classes: self.classes.clone(),
            pod_classes: self.pod_classes.clone(),
        };
        queue::Feeds {
            flavors: self.flavors.clone(),
            cluster_queues: self.cluster_queues.clone(),
            local_queues: self.local_queues.clone(),
            workloads: self.workloads.clone(),
            namespaces: self.namespaces.clone(),
            limit_ranges: self.limit_ranges.clone(),
            // No RuntimeClass is served here: a process has no overhead.
            runtime_classes: None,
            jobs: Some(jobs),
        }
    }
}
