//! Where a shape is played: an embedded cluster with a queue controller, and how both are reached.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use http::HeaderValue;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use lockstep_local::embedded::{Embedded, Options};
use lockstep_local::feeds::Feeds;
use lockstep_operator::config::Queueing;
use lockstep_operator::lease::Leadership;
use lockstep_operator::metrics::Metrics;
use lockstep_operator::queue::{self, QueueOptions};
use lockstep_operator::sender::{Pace, restrained};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// What upstream's controller may send when it is measured: a second, and at once.
const LIMIT: (f64, u32) = (50.0, 100);

/// How the controller and the load reach the API.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    InProcess,
    /// Over a socket, with TLS.
    Http,
    /// In-process, the controller with no more requests a second than upstream's has.
    Limited,
}

impl Way {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::InProcess => "in-process",
            Self::Http => "HTTP and TLS",
            Self::Limited => "50 requests/s",
        }
    }
}

/// A cluster. Over HTTP, the controller and the load have threads of their own, so that it can be
/// told who needs how much; in-process, the work of the server is done by whoever calls it.
pub(super) struct Place<'a> {
    way: Way,
    embedded: Embedded,
    server: &'a Runtime,
    apart: Option<Apart>,
    pub(super) metrics: Arc<Metrics>,
}

struct Apart {
    controller: Runtime,
    load: Runtime,
}

const CONTROLLER: &str = "controller";

impl<'a> Place<'a> {
    pub(super) fn start(runtime: &'a Runtime, way: Way) -> Self {
        let is_apart = way == Way::Http;
        let listen = is_apart.then(|| SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let options = Options { listen, ..Options::default() };
        let embedded = runtime.block_on(Embedded::start(options)).unwrap();
        let apart = is_apart.then(|| Apart { controller: named(CONTROLLER), load: named("load") });
        Self { way, embedded, server: runtime, apart, metrics: Arc::default() }
    }

    /// Where the load runs.
    pub(super) fn load(&self) -> &Runtime {
        self.apart.as_ref().map_or(self.server, |apart| &apart.load)
    }

    /// A client, for the threads this is called on.
    pub(super) async fn client(&self) -> Client {
        let Some(text) = self.embedded.kubeconfig() else { return self.embedded.client() };
        let kubeconfig = Kubeconfig::from_yaml(text).unwrap();
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        Client::try_from(config).unwrap()
    }

    /// Starts the queue controller as a cluster does, except that it does not wait for pods: there
    /// are none.
    pub(super) fn start_controller(&self) -> JoinHandle<()> {
        let runtime = self.apart.as_ref().map_or(self.server, |apart| &apart.controller);
        let metrics = &self.metrics;
        let mut client = runtime.block_on(self.client());
        // What is spawned from here on runs there.
        let _entered = runtime.enter();
        if self.way == Way::Limited {
            let agent = HeaderValue::from_static("lockstep-bench");
            let pace = Pace::new(LIMIT.0, LIMIT.1);
            client = restrained(client, &Leadership::alone(), pace, &agent, metrics);
        }
        let queueing = Queueing { wait_for_pods_ready: None, ..Queueing::default() };
        let options = QueueOptions::default().configured(&queueing);
        queue::spawn(&client, &Feeds::start(&client).of_queues(), metrics, options)
    }

    /// The time the threads of the controller have had on a core, if it has any.
    pub(super) fn controller_seconds(&self) -> Option<f64> {
        self.apart.as_ref().map(|_| thread_seconds(CONTROLLER))
    }

    pub(super) fn stop(self, controller: &JoinHandle<()>) {
        controller.abort();
        drop(self.apart);
        self.server.block_on(self.embedded.shutdown());
    }
}

/// Threads of this name, as many as there are cores.
fn named(name: &str) -> Runtime {
    Builder::new_multi_thread().enable_all().thread_name(name).build().unwrap()
}

/// The time that threads of this name have had on a core.
fn thread_seconds(name: &str) -> f64 {
    let mut seconds = 0.0;
    for thread in fs::read_dir("/proc/self/task").unwrap() {
        // A thread that has just ended cannot be asked any more.
        let Ok(stat) = fs::read_to_string(thread.unwrap().path().join("stat")) else { continue };
        let Some((own, rest)) = stat.rsplit_once(") ") else { continue };
        if own.split_once('(').is_some_and(|(_, own)| own == name) {
            let fields: Vec<&str> = rest.split(' ').collect();
            let ticks = [fields[11], fields[12]].map(|field| field.parse::<f64>().unwrap());
            seconds += (ticks[0] + ticks[1]) / 100.0;
        }
    }
    seconds
}
