//! Gathering what pods take from the API.

use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};

use tokio::task::JoinSet;

use super::Inner;
use crate::node::network::Network;
use crate::node::sources::{NodeFacts, References, Sources};
use crate::observe::{Change, ObjectKey, follow};

/// All services, kept up to date, and their names made to resolve. The watches end with it.
pub(super) struct Services {
    all: Arc<Mutex<BTreeMap<(String, String), Service>>>,
    _watches: JoinSet<()>,
}

impl Services {
    /// Follows the services of the cluster.
    pub(super) fn follow(client: &Client, network: Network) -> Self {
        let all = Arc::<Mutex<BTreeMap<(String, String), Service>>>::default();
        let mut watches = JoinSet::new();
        let (api, known) = (Api::<Service>::all(client.clone()), Arc::clone(&all));
        watches.spawn(async move {
            let mut changes = std::pin::pin!(follow(api, watcher::Config::default()));
            while let Some(change) = changes.next().await {
                let mut all = known.lock().unwrap_or_else(PoisonError::into_inner);
                match change {
                    Change::Put(service) => {
                        let key = (service.namespace().unwrap_or_default(), service.name_any());
                        all.insert(key, Arc::unwrap_or_clone(service));
                    }
                    Change::Gone(key) => drop(all.remove(&(key.namespace, key.name))),
                    Change::Listing | Change::Synced => {}
                }
            }
        });
        let api: Api<EndpointSlice> = Api::all(client.clone());
        watches.spawn(async move {
            let mut slices = Slices::default();
            let mut changes = std::pin::pin!(follow(api, watcher::Config::default()));
            while let Some(change) = changes.next().await {
                slices.apply(change, &network);
            }
        });
        Self { all, _watches: watches }
    }

    fn list(&self) -> Vec<Service> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.values().cloned().collect()
    }
}

/// The addresses behind each service.
#[derive(Default)]
struct Slices {
    services: HashMap<ObjectKey, (String, Vec<Ipv4Addr>)>,
}

impl Slices {
    fn apply(&mut self, change: Change<EndpointSlice>, network: &Network) {
        let touched = match change {
            Change::Put(slice) => {
                let label = slice.labels().get("kubernetes.io/service-name").cloned();
                let Some(service) = label else { return };
                let ready = slice.endpoints.iter().flatten().filter(|endpoint| {
                    endpoint.conditions.as_ref().and_then(|it| it.ready) != Some(false)
                });
                let addresses = ready
                    .flat_map(|endpoint| &endpoint.addresses)
                    .filter_map(|address| address.parse().ok())
                    .collect();
                let key = ObjectKey::of(&*slice);
                let namespace = key.namespace.clone();
                self.services.insert(key, (service.clone(), addresses));
                (namespace, service)
            }
            Change::Gone(key) => match self.services.remove(&key) {
                Some((service, _)) => (key.namespace, service),
                None => return,
            },
            Change::Listing => return,
            Change::Synced => return network.services_known(),
        };
        let (namespace, service) = touched;
        let mut all: Vec<Ipv4Addr> = self
            .services
            .iter()
            .filter(|(key, (name, _))| key.namespace == namespace && *name == service)
            .flat_map(|(_, (_, addresses))| addresses.iter().copied())
            .collect();
        all.sort();
        network.publish_service(&namespace, &service, &all);
    }
}

impl Inner {
    /// Everything `pod` refers to that is `wanted`. What does not exist is left out; not being able
    /// to ask is an error.
    pub(super) async fn gather(
        &self,
        pod: &Pod,
        wanted: References,
        pod_ip: &str,
    ) -> kube::Result<Sources> {
        let namespace = pod.namespace().unwrap_or_default();
        let mut sources = Sources {
            services: self.services.list(),
            node: NodeFacts {
                host_ip: self.options.host_ip.clone(),
                allocatable: self.options.allocatable.clone(),
            },
            pod_ip: pod_ip.to_owned(),
            ..Sources::default()
        };
        let config_maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), &namespace);
        for name in wanted.config_maps {
            if let Some(found) = config_maps.get_opt(&name).await? {
                sources.config_maps.insert(name, found);
            }
        }
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &namespace);
        for name in wanted.secrets {
            if let Some(found) = secrets.get_opt(&name).await? {
                sources.secrets.insert(name, found);
            }
        }
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.client.clone(), &namespace);
        for name in wanted.claims {
            if let Some(found) = claims.get_opt(&name).await? {
                sources.claims.insert(name, found);
            }
        }
        for (audience, seconds) in wanted.tokens {
            let token = self.tokens.token(&self.client, pod, &audience, seconds).await?;
            if let Some(token) = token {
                sources.tokens.insert((audience, seconds), token);
            }
        }
        Ok(sources)
    }
}
