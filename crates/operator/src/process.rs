//! A whole operator: the controllers that a cluster lacks, over one client, as one of several
//! processes of which one leads.
//!
//! Jobs belong to the cluster's own controllers. What comes on top of them is ours.

use std::sync::Arc;

use futures::future::select_all;
use http::{HeaderValue, Request};
use kube::runtime::watcher;
use kube::{Api, Client};
use lockstep_api::jobset::JobSet;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::config::FeatureGates;
use crate::jobset::{self, JobSetOptions};
use crate::lease::{Election, Leadership, LeaseOptions};
use crate::metrics::Metrics;
use crate::observe::Feed;
use crate::sender::{Pace, restrained};

/// How many objects are asked for at a time.
const PAGE: u32 = 500;

/// What kind of operator.
#[derive(Debug)]
pub struct OperatorOptions {
    /// Which features are on.
    pub gates: FeatureGates,
    /// By which Lease several agree who leads; without one, this is the only one.
    pub lease: Option<LeaseOptions>,
    /// How fast requests may be sent.
    pub pace: Option<Pace>,
    /// What it calls itself in requests.
    pub agent: HeaderValue,
    /// Where it runs, for events.
    pub instance: String,
}

/// Why an operator cannot work on a cluster.
#[derive(Debug, thiserror::Error)]
pub enum Obstacle {
    /// It does not answer, or refuses to.
    #[error("the cluster does not answer")]
    Unreachable(#[source] kube::Error),
    /// Nobody has told it what JobSets are.
    #[error(
        "the cluster does not know JobSets: it serves no {} of {}; apply \
         deploy/crds/jobsets.jobset.x-k8s.io.yaml first",
        plural(),
        api_version()
    )]
    NoJobSets,
}

/// Finds out whether an operator can work on a cluster.
///
/// # Errors
/// When it cannot.
pub async fn check(client: &Client) -> Result<(), Obstacle> {
    let get = |path: String| async move {
        let request = Request::get(path).body(Vec::new()).expect("a path is a valid request");
        client.request::<Value>(request).await
    };
    get("/version".to_owned()).await.map_err(Obstacle::Unreachable)?;
    let known = match get(format!("/apis/{}", api_version())).await {
        Ok(known) => known,
        Err(kube::Error::Api(status)) if status.code == 404 => return Err(Obstacle::NoJobSets),
        Err(error) => return Err(Obstacle::Unreachable(error)),
    };
    let mut resources = known["resources"].as_array().into_iter().flatten();
    match resources.any(|resource| resource["name"] == *plural()) {
        true => Ok(()),
        false => Err(Obstacle::NoJobSets),
    }
}

fn api_version() -> String {
    <JobSet as kube::Resource>::api_version(&()).into_owned()
}

fn plural() -> String {
    <JobSet as kube::Resource>::plural(&()).into_owned()
}

/// An operator at work.
pub struct Operator {
    election: Option<Election>,
    leadership: Leadership,
    controllers: Vec<JoinHandle<()>>,
}

impl Operator {
    /// Starts it. Without leadership it watches, and does nothing.
    pub fn start(client: &Client, metrics: &Arc<Metrics>, options: OperatorOptions) -> Self {
        let election = options.lease.map(|lease| Election::start(client, lease));
        let leadership = election.as_ref().map_or_else(Leadership::alone, Election::leadership);
        let OperatorOptions { pace, agent, gates, instance, .. } = options;
        let client = restrained(client.clone(), &leadership, pace, &agent, metrics);
        let config = || watcher::Config::default().page_size(PAGE);
        let feeds = jobset::Feeds {
            jobsets: Feed::start(Api::all(client.clone()), config()),
            jobs: Feed::start(Api::all(client.clone()), config()),
            services: Feed::start(Api::all(client.clone()), config()),
        };
        let jobsets =
            JobSetOptions { instance, leadership: leadership.clone(), ..JobSetOptions::default() };
        let jobsets = jobsets.with_gates(gates);
        let controllers = vec![jobset::spawn(&client, &feeds, metrics, jobsets)];
        Self { election, leadership, controllers }
    }

    /// Whether it leads.
    pub fn leadership(&self) -> &Leadership {
        &self.leadership
    }

    /// Returns when a controller has ended, which none does by itself.
    pub async fn broken(&mut self) {
        let _ended = select_all(&mut self.controllers).await;
    }

    /// Stops sending, then gives leadership up.
    pub async fn stop(mut self) {
        for controller in std::mem::take(&mut self.controllers) {
            controller.abort();
            let _aborted = controller.await;
        }
        if let Some(election) = self.election.take() {
            election.resign().await;
        }
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.controllers.iter().for_each(JoinHandle::abort);
    }
}
