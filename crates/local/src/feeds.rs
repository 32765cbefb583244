//! The watches that the parts of a cluster share.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Node, Pod, Service};
use kube::runtime::watcher;
use kube::{Api, Client};
use lockstep_api::jobset::JobSet;

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
        }
    }
}
