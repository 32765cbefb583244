//! A whole operator: the controllers that a cluster lacks, over one client, as one of several
//! processes of which one leads.
//!
//! Jobs belong to the cluster's own controllers. What comes on top of them is ours.

use std::fmt;
use std::sync::Arc;

use futures::future::select_all;
use http::{HeaderValue, Request};
use k8s_openapi::api::core::v1::{LimitRange, Namespace};
use k8s_openapi::api::node::v1::RuntimeClass;
use kube::api::ListParams;
use kube::runtime::watcher;
use kube::{Api, Client};
use lockstep_api::jobset::JobSet;
use lockstep_api::kueue;
use lockstep_api::labels::jobset as labels;
use lockstep_restart::place::Place;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::config::FeatureGates;
use crate::jobset::{self, InPlace, JobSetOptions, Keys};
use crate::lease::{Election, KUEUE_LEASE, KUEUE_NAMESPACE, Leadership, LeaseOptions};
use crate::metrics::Metrics;
use crate::observe::Feed;
use crate::queue::{self, QueueOptions};
use crate::sender::{Pace, restrained};

pub use lockstep_control::plan::jobset::in_place::{AgentSource, Way, Wiring};

/// How many objects are asked for at a time.
const PAGE: u32 = 500;

/// What kind of operator.
#[derive(Debug)]
pub struct OperatorOptions {
    /// Which features are on.
    pub gates: FeatureGates,
    /// By which Lease several agree who leads; without one, this is the only one.
    pub lease: Option<LeaseOptions>,
    /// The Lease that whoever leads holds too while it admits anybody ([`queue_lease`]).
    pub queue_lease: Option<LeaseOptions>,
    /// How fast requests may be sent.
    pub pace: Option<Pace>,
    /// What it calls itself in requests.
    pub agent: HeaderValue,
    /// Where it runs, for events.
    pub instance: String,
    /// Where workers that restart in place find it; without it nobody restarts there.
    pub door: Option<Door>,
    /// How queues work; without it there are none.
    pub queues: Option<QueueOptions>,
}

/// Where the agents of workers that restart in place come in.
pub struct Door {
    /// What they connect to.
    pub place: Place,
    /// What lets them in.
    pub keys: Keys,
    /// How they are told to get there.
    pub wiring: Wiring,
    /// What listens for them, if that is done here.
    pub serving: Option<JoinHandle<()>>,
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door").field("wiring", &self.wiring).finish_non_exhaustive()
    }
}

/// Why an operator cannot work on a cluster.
#[derive(Debug, thiserror::Error)]
pub enum Obstacle {
    /// It does not answer, or refuses to.
    #[error("the cluster does not answer")]
    Unreachable(#[source] kube::Error),
    /// Nobody has told it what JobSets are.
    #[error(
        "the cluster does not know JobSets: it serves no {} of {}; `lockstep manifests --only \
         crds` prints their definition",
        plural(),
        api_version()
    )]
    NoJobSets,
    /// It may not see what it has to.
    #[error(
        "it may not list {what}, which queues need; `lockstep manifests --only rbac` prints \
             what an operator must be allowed to do"
    )]
    Forbidden {
        /// A kind, in the plural.
        what: &'static str,
        /// What the cluster says.
        #[source]
        source: kube::Error,
    },
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

/// Whether a cluster knows the kinds of queueing.
///
/// # Errors
/// When it does not answer.
pub async fn knows_queues(client: &Client) -> Result<bool, Obstacle> {
    let path = format!("/apis/{}", kueue::API_VERSION);
    let request = Request::get(path).body(Vec::new()).expect("a path is a valid request");
    let known = match client.request::<Value>(request).await {
        Ok(known) => known,
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(false),
        Err(error) => return Err(Obstacle::Unreachable(error)),
    };
    let resources: Vec<&Value> = known["resources"].as_array().into_iter().flatten().collect();
    let serves = |plural: &str| resources.iter().any(|resource| resource["name"] == plural);
    Ok(kueue::KINDS.iter().all(|kind| serves(kind.plural)))
}

/// Whether a cluster has RuntimeClasses, which add to what pods ask for as LimitRanges do. Without
/// these, nobody could be told what is free.
///
/// # Errors
/// When it does not answer, or the operator may not see them.
pub async fn knows_runtime_classes(client: &Client) -> Result<bool, Obstacle> {
    lists::<LimitRange>(client, "limitranges").await?;
    lists::<RuntimeClass>(client, "runtimeclasses").await
}

/// Whether a kind is there to be listed.
async fn lists<K>(client: &Client, what: &'static str) -> Result<bool, Obstacle>
where
    K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + fmt::Debug,
{
    let all: Api<K> = Api::all(client.clone());
    match all.list_metadata(&ListParams::default().limit(1)).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(source @ kube::Error::Api(_)) if is_forbidden(&source) => {
            Err(Obstacle::Forbidden { what, source })
        }
        Err(error) => Err(Obstacle::Unreachable(error)),
    }
}

fn is_forbidden(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403)
}

/// The Lease of Kueue, for an operator that agrees with others by `lease`. Where Kueue may run, it
/// and we never admit the same Workloads.
///
/// # Errors
/// When the cluster does not answer.
pub async fn queue_lease(client: &Client, lease: &LeaseOptions) -> Result<LeaseOptions, Obstacle> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = match namespaces.get_metadata_opt(KUEUE_NAMESPACE).await {
        Ok(None) => lease.namespace.clone(),
        Ok(Some(_)) => KUEUE_NAMESPACE.to_owned(),
        // Where one may not look, it may be.
        Err(kube::Error::Api(status)) if status.code == 403 => KUEUE_NAMESPACE.to_owned(),
        Err(error) => return Err(Obstacle::Unreachable(error)),
    };
    Ok(LeaseOptions { namespace, name: KUEUE_LEASE.to_owned(), ..lease.clone() })
}

fn api_version() -> String {
    <JobSet as kube::Resource>::api_version(&()).into_owned()
}

fn plural() -> String {
    <JobSet as kube::Resource>::plural(&()).into_owned()
}

/// An operator at work.
pub struct Operator {
    /// The first is what all controllers go by.
    elections: Vec<Election>,
    leadership: Leadership,
    controllers: Vec<JoinHandle<()>>,
}

impl Operator {
    /// Starts it. Without leadership it watches, and does nothing.
    pub fn start(client: &Client, metrics: &Arc<Metrics>, options: OperatorOptions) -> Self {
        let OperatorOptions { pace, agent, gates, instance, door, queues, .. } = options;
        let election = options.lease.map(|lease| Election::start(client, lease));
        let leadership = election.as_ref().map_or_else(Leadership::alone, Election::leadership);
        let queue_lease = options.queue_lease.filter(|_| queues.is_some());
        let of_queues =
            queue_lease.map(|lease| Election::start_within(client, lease, leadership.clone()));
        let admits = of_queues.as_ref().map_or_else(|| leadership.clone(), Election::leadership);
        let admitting = restrained(client.clone(), &admits, pace.clone(), &agent, metrics);
        let client = restrained(client.clone(), &leadership, pace, &agent, metrics);
        let config = || watcher::Config::default().page_size(PAGE);
        let feeds = jobset::Feeds {
            jobsets: Feed::start(Api::all(client.clone()), config()),
            jobs: Feed::start(Api::all(client.clone()), config()),
            services: Feed::start(Api::all(client.clone()), config()),
        };
        let mut controllers = Vec::new();
        if let Some(wanted) = queues {
            let followed = queue_feeds(&client, &feeds, wanted.has_runtime_classes, config);
            let wanted = QueueOptions { instance: instance.clone(), leadership: admits, ..wanted };
            controllers.push(queue::spawn(&admitting, &followed, metrics, wanted));
        }
        let jobsets =
            JobSetOptions { instance, leadership: leadership.clone(), ..JobSetOptions::default() };
        let mut jobsets = jobsets.with_gates(gates);
        if let Some(Door { place, keys, wiring, serving }) = door {
            // Pods of sets alone: a cluster has many others.
            let of_sets = config().labels(labels::JOBSET_UID);
            let pods = Feed::start(Api::all(client.clone()), of_sets);
            jobsets.in_place = Some(InPlace { place, keys, wiring, pods });
            controllers.extend(serving);
        }
        controllers.push(jobset::spawn(&client, &feeds, metrics, jobsets));
        Self { elections: election.into_iter().chain(of_queues).collect(), leadership, controllers }
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
        // What one leads only beside another is given back first.
        for election in std::mem::take(&mut self.elections).into_iter().rev() {
            election.resign().await;
        }
    }
}

/// What the queue controller follows, with what is followed already.
fn queue_feeds(
    client: &Client,
    shared: &jobset::Feeds,
    has_runtime_classes: bool,
    config: impl Fn() -> watcher::Config,
) -> queue::Feeds {
    let jobs = queue::JobFeeds {
        jobs: shared.jobs.clone(),
        jobsets: shared.jobsets.clone(),
        classes: Feed::start(Api::all(client.clone()), config()),
        pod_classes: Feed::start(Api::all(client.clone()), config()),
    };
    queue::Feeds {
        flavors: Feed::start(Api::all(client.clone()), config()),
        cluster_queues: Feed::start(Api::all(client.clone()), config()),
        local_queues: Feed::start(Api::all(client.clone()), config()),
        workloads: Feed::start(Api::all(client.clone()), config()),
        namespaces: Feed::start(Api::all(client.clone()), config()),
        limit_ranges: Feed::start(Api::all(client.clone()), config()),
        runtime_classes: has_runtime_classes
            .then(|| Feed::start(Api::all(client.clone()), config())),
        jobs: Some(jobs),
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.controllers.iter().for_each(JoinHandle::abort);
    }
}
