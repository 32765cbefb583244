//! Addresses and names of pods on one machine.
//!
//! Every pod gets a loopback address of its own, so that pods can listen on the same port. A
//! cluster claims one of the networks 127.64.0.0/16 to 127.127.0.0/16 for itself. Names are found
//! in one hosts file per namespace, which containers see as `/etc/hosts`.

mod addresses;
mod given;
mod hosts;
mod names;

use std::fmt::Write;
use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::HostAlias;

pub use self::given::PodAddresses;
pub use self::names::Names;

use self::addresses::{Addresses, Claim};
use self::hosts::Hosts;
use super::dirs::NodeDirs;

/// Who a pod is on the network.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodName {
    /// Its namespace.
    pub namespace: String,
    /// Its host name: `spec.hostname`, or its name.
    pub hostname: String,
    /// `spec.subdomain`.
    pub subdomain: Option<String>,
}

/// The network of one cluster.
#[derive(Clone)]
pub struct Network {
    inner: Arc<Inner>,
}

struct Inner {
    state: Mutex<State>,
    dirs: NodeDirs,
    /// Held for as long as the cluster lives.
    _claim: Claim,
}

struct State {
    addresses: Addresses,
    hosts: Hosts,
}

impl Network {
    /// Claims a network for the cluster of `dirs`. Fails if other clusters have all of them.
    pub fn claim(dirs: &NodeDirs) -> io::Result<Self> {
        let claim = Claim::first_free(dirs.data())?;
        let machine = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
        let state = State {
            addresses: Addresses::new(claim.network()),
            hosts: Hosts::new(dirs.hosts(), &machine),
        };
        let inner = Inner { state: Mutex::new(state), dirs: dirs.clone(), _claim: claim };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The address of a pod: the one it has, one that was promised to its name, or a new one.
    pub fn address(&self, uid: &str, name: &PodName) -> io::Result<Ipv4Addr> {
        self.lock().addresses.of_pod(uid, name).ok_or_else(|| {
            io::Error::new(io::ErrorKind::AddrNotAvailable, "all addresses for pods are in use")
        })
    }

    /// Notes the address a pod had before this process started; `false` when another pod has it, or
    /// no pod can have it.
    pub fn adopt(&self, uid: &str, address: Ipv4Addr) -> bool {
        self.lock().addresses.adopt(uid, address)
    }

    /// Makes the names of a pod resolve to its address.
    pub fn publish(&self, uid: &str, name: &PodName, address: Ipv4Addr) {
        written(self.lock().hosts.set_pod(uid, name, address));
    }

    /// Makes the name of a service resolve to these addresses.
    pub fn publish_service(&self, namespace: &str, name: &str, addresses: &[Ipv4Addr]) {
        written(self.lock().hosts.set_service(namespace, name, addresses));
    }

    /// Says that all pods of the node have been adopted: what else is left of an earlier process
    /// belongs to nobody.
    pub fn pods_known(&self) {
        written(self.lock().hosts.pods_known());
    }

    /// Says that all services have been published.
    pub fn services_known(&self) {
        written(self.lock().hosts.services_known());
    }

    /// Takes the address and the names of a pod back.
    pub fn release(&self, uid: &str) {
        let mut state = self.lock();
        state.addresses.release(uid);
        written(state.hosts.remove_pod(uid));
    }

    /// The hosts file for the pods of a namespace, complete as of now.
    pub fn hosts_file(&self, namespace: &str) -> io::Result<PathBuf> {
        self.lock().hosts.file(namespace)
    }

    /// The hosts file for one pod that has aliases, complete as of now.
    pub fn hosts_file_of(
        &self,
        uid: &str,
        namespace: &str,
        aliases: &[HostAlias],
    ) -> io::Result<PathBuf> {
        let path = self.inner.dirs.pod_hosts(uid);
        self.lock().hosts.file_of(uid, namespace, &path, &alias_lines(aliases))
    }

    /// The hosts file for a pod on the network of the machine: the machine's, and its aliases.
    pub fn machine_hosts_file(&self, uid: &str, aliases: &[HostAlias]) -> io::Result<PathBuf> {
        let path = self.inner.dirs.pod_hosts(uid);
        if !path.exists() {
            let machine = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
            let text = format!("{}\n\n{}", machine.trim_end(), alias_lines(aliases));
            hosts::create(&path, &text)?;
        }
        Ok(path)
    }

    /// The names a pod of `namespace` can use, for a container without a hosts file of its own.
    ///
    /// Members of the pod's own gang (`subdomain`) that `texts` mention but that do not run yet are
    /// promised an address, which they get when they come. Aliases are names too.
    pub fn names<'a>(
        &self,
        pod: &PodName,
        aliases: &[HostAlias],
        texts: impl IntoIterator<Item = &'a str>,
    ) -> Names {
        let mut state = self.lock();
        let mut all = state.hosts.names(&pod.namespace);
        for alias in aliases {
            let Ok(address) = alias.ip.parse() else { continue };
            all.extend(alias.hostnames.iter().flatten().map(|name| (name.clone(), address)));
        }
        let Some(subdomain) = &pod.subdomain else { return all.into_iter().collect() };
        for text in texts {
            for mentioned in names::mentioned(text) {
                let Some(hostname) = names::member(mentioned, subdomain, &pod.namespace) else {
                    continue;
                };
                if all.contains_key(mentioned) {
                    continue;
                }
                let member = PodName { hostname: hostname.to_owned(), ..pod.clone() };
                if let Some(address) = state.addresses.promise(&member) {
                    all.insert(mentioned.to_owned(), address);
                }
            }
        }
        all.into_iter().collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is changed in whole steps, so it is sound even after a panic.
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lines of a hosts file for the aliases of a pod, as a kubelet writes them.
fn alias_lines(aliases: &[HostAlias]) -> String {
    let mut lines = String::from("# Entries added by HostAliases.\n");
    for alias in aliases {
        let names = alias.hostnames.as_deref().unwrap_or_default();
        writeln!(lines, "{}\t{}", alias.ip, names.join("\t")).expect("a String takes anything");
    }
    lines
}

/// Names that cannot be written do not hold up their pods: what resolves them says what is missing.
fn written(outcome: io::Result<()>) {
    if let Err(error) = outcome {
        tracing::warn!(%error, "cannot write the hosts files");
    }
}
