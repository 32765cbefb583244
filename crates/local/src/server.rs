//! The API server: Kubernetes' REST API over the cluster's store.
//!
//! One router serves the socket and, as the tower service under `kube::Client`, the parts of this
//! process. It decides nothing about objects: what a write comes to is planned in `lockstep-store`,
//! what a kind allows is in `lockstep-api`. Here requests are read, and answers written.

mod authenticate;
mod authorize;
pub mod body;
mod call;
mod discovery;
mod dispatch;
mod entry;
mod error;
mod limits;
mod listen;
mod metrics;
mod negotiate;
mod nonresource;
mod openapi;
mod options;
mod present;
pub mod protocols;
pub(crate) mod query;
mod request;
mod respond;
mod reviews;
mod subresources;
mod top;
mod verbs;
pub(crate) mod websocket;

use std::{convert::Infallible, sync::Arc};

use axum::{Router, body::Body};
use tokio::{net::TcpListener, sync::watch};
use tower::ServiceExt;

use crate::{
    auth::{Token, User, signer::Signer},
    cluster::Cluster,
    node::{dirs::NodeDirs, network::PodAddresses},
};
pub use limits::Limits;
pub use reviews::register as register_reviews;
pub use top::register as register_usage;

/// What the server is made of.
pub struct Parts {
    /// The state it serves.
    pub cluster: Cluster,
    /// What the administrator's clients must know.
    pub token: Token,
    /// What the tokens of service accounts are signed with.
    pub signer: Signer,
    /// Names the server goes by, beside addresses and `localhost`.
    pub names: Vec<String>,
    /// How much is served at once.
    pub limits: Limits,
    /// Where the node keeps the logs of pods, if there is a node.
    pub logs: Option<NodeDirs>,
    /// What the node of this machine is called, if there is one.
    pub node_name: Option<String>,
    /// What the controllers of this process count.
    pub controllers: Arc<lockstep_operator::metrics::Metrics>,
}

/// The API server. Clones are the same server.
#[derive(Clone)]
pub struct Server(Arc<App>);

/// What every request sees.
pub(crate) struct App {
    pub(crate) cluster: Cluster,
    pub(crate) token: Token,
    pub(crate) signer: Signer,
    pub(crate) roles: authorize::RoleCache,
    pub(crate) names: Vec<String>,
    pub(crate) gate: limits::Gate,
    pub(crate) metrics: metrics::Metrics,
    pub(crate) documents: openapi::Documents,
    pub(crate) stop: watch::Sender<bool>,
    pub(crate) logs: Option<NodeDirs>,
    pub(crate) addresses: PodAddresses,
    pub(crate) node_name: Option<String>,
    pub(crate) last_look: top::LastLook,
    connections_max: usize,
}

impl Server {
    /// A server that nobody reaches yet.
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(App {
            metrics: metrics::Metrics::new(&parts.cluster, parts.controllers),
            cluster: parts.cluster,
            token: parts.token,
            signer: parts.signer,
            roles: authorize::RoleCache::default(),
            names: parts.names,
            logs: parts.logs,
            addresses: PodAddresses::default(),
            node_name: parts.node_name,
            last_look: top::LastLook::default(),
            gate: limits::Gate::new(parts.limits),
            documents: openapi::Documents::default(),
            stop: watch::Sender::new(false),
            connections_max: parts.limits.connections_max,
        }))
    }

    /// The API as a tower service. A request without a [`User`] in its extensions must carry a
    /// token.
    pub fn router(&self) -> Router {
        Router::new().fallback(entry::handle).with_state(Arc::clone(&self.0))
    }

    /// A client that calls the server in-process, as `user`.
    pub fn client(&self, user: User) -> kube::Client {
        let app = Arc::clone(&self.0);
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(user.clone());
            let answer = entry::handle(axum::extract::State(Arc::clone(&app)), request);
            async move { Ok::<_, Infallible>(answer.await) }
        });
        kube::Client::new(service.boxed_clone(), "default")
    }

    /// Where the node says which address it gave to a pod: ports of others are not connected to.
    pub fn addresses(&self) -> &PodAddresses {
        &self.0.addresses
    }

    /// Serves connections until [`Server::stop`] is called.
    pub async fn listen(&self, listener: TcpListener, tls: Arc<rustls::ServerConfig>) {
        let stop = self.0.stop.subscribe();
        listen::serve(listener, tls, self.router(), self.0.connections_max, stop).await;
    }

    /// Ends watches and connections; requests that are being answered may finish.
    pub fn stop(&self) {
        self.0.stop.send_replace(true);
    }
}

impl App {
    /// Whether [`Server::stop`] was called.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.stop.borrow()
    }
}
