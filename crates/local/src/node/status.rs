//! The Node object: what a node is and has, and the heartbeat that says it is alive.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{
    Node, NodeAddress, NodeCondition, NodeDaemonEndpoints, NodeSpec, NodeStatus, NodeSystemInfo,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, OwnerReference, Time};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tokio::task::JoinHandle;
use tracing::{info, warn};

use super::devices::Devices;

/// Where the heartbeats of nodes are.
pub const LEASE_NAMESPACE: &str = "kube-node-lease";

/// How long a heartbeat counts.
pub const LEASE_SECONDS: i32 = 40;

/// How often a node gives a heartbeat.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// How often a node writes its status even if nothing has changed.
const REPORT: Duration = Duration::from_secs(300);

/// What a node is.
#[derive(Clone, Debug, Default)]
pub struct NodeDescription {
    /// Its name.
    pub name: String,
    /// Its address.
    pub ip: String,
    /// What it has.
    pub capacity: BTreeMap<String, Quantity>,
    /// Labels beyond those every node has.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// The name of its operating system.
    pub os_image: String,
    /// The version of its kernel.
    pub kernel: String,
}

impl NodeDescription {
    /// This machine under the given name. `overrides` replace or add to what is found.
    pub fn of_machine(name: &str, ip: &str, overrides: &BTreeMap<String, Quantity>) -> Self {
        let mut capacity = BTreeMap::new();
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let mut put = |name: &str, amount: String| {
            capacity.insert(name.to_owned(), Quantity(amount));
        };
        put("cpu", cpus.to_string());
        put("memory", format!("{}Ki", memory_kib(&read("/proc/meminfo"))));
        put("ephemeral-storage", format!("{}Ki", storage_kib()));
        put("pods", "110".to_owned());
        for (name, count) in Devices::find().capacity() {
            put(name, count.to_string());
        }
        capacity.extend(overrides.iter().map(|(name, amount)| (name.clone(), amount.clone())));
        Self {
            name: name.to_owned(),
            ip: ip.to_owned(),
            capacity,
            os_image: os_name(&read("/etc/os-release")),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            ..Self::default()
        }
    }

    /// The object that describes the node, as of `now`.
    pub fn object(&self, now: Timestamp) -> Node {
        let arch = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        let own = [
            ("kubernetes.io/hostname", self.name.as_str()),
            ("kubernetes.io/os", std::env::consts::OS),
            ("kubernetes.io/arch", arch),
            ("beta.kubernetes.io/os", std::env::consts::OS),
            ("beta.kubernetes.io/arch", arch),
        ];
        let mut labels: BTreeMap<String, String> =
            own.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        labels.extend(self.labels.clone());
        let address = |kind: &str, address: &str| NodeAddress {
            type_: kind.to_owned(),
            address: address.to_owned(),
        };
        Node {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                labels: Some(labels),
                annotations: Some(self.annotations.clone()).filter(|all| !all.is_empty()),
                ..ObjectMeta::default()
            },
            spec: Some(NodeSpec::default()),
            status: Some(NodeStatus {
                capacity: Some(self.capacity.clone()),
                allocatable: Some(self.capacity.clone()),
                conditions: Some(conditions(now)),
                addresses: Some(vec![
                    address("InternalIP", &self.ip),
                    address("Hostname", &self.name),
                ]),
                daemon_endpoints: Some(NodeDaemonEndpoints::default()),
                node_info: Some(NodeSystemInfo {
                    architecture: arch.to_owned(),
                    operating_system: std::env::consts::OS.to_owned(),
                    os_image: self.os_image.clone(),
                    kernel_version: self.kernel.clone(),
                    kubelet_version: lockstep_api::KUBERNETES_VERSION.to_owned(),
                    kube_proxy_version: lockstep_api::KUBERNETES_VERSION.to_owned(),
                    container_runtime_version: concat!("proc://", env!("CARGO_PKG_VERSION"))
                        .to_owned(),
                    ..NodeSystemInfo::default()
                }),
                ..NodeStatus::default()
            }),
        }
    }
}

/// Registers the node and keeps giving its heartbeat until the task is aborted.
pub fn spawn(client: Client, description: NodeDescription) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut reported: Option<Timestamp> = None;
        loop {
            let now = Timestamp::now();
            let is_due = reported.is_none_or(|at| {
                Duration::try_from(now.duration_since(at)).is_ok_and(|passed| passed >= REPORT)
            });
            let mut wait = HEARTBEAT;
            if is_due || !is_known_ready(&client, &description.name).await {
                match register(&client, &description).await {
                    Ok(()) => reported = Some(now),
                    Err(error) => {
                        warn!(node = %description.name, %error, "node not registered");
                        wait = Duration::from_millis(500);
                    }
                }
            }
            if let Err(error) = renew_lease(&client, &description.name).await {
                warn!(node = %description.name, %error, "heartbeat failed");
                wait = wait.min(Duration::from_secs(1));
            }
            tokio::time::sleep(wait).await;
        }
    })
}

/// Makes the object say what the node is; what others have written to it stays.
pub async fn register(client: &Client, description: &NodeDescription) -> kube::Result<()> {
    let api: Api<Node> = Api::all(client.clone());
    let wanted = description.object(Timestamp::now());
    let Some(old) = api.get_opt(&description.name).await? else {
        match api.create(&PostParams::default(), &wanted).await {
            Ok(_) => info!(node = %description.name, "node registered"),
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(error),
        }
        // A create may not set the status where it is a subresource.
        return report(&api, &wanted).await;
    };
    let is_labelled =
        wanted.labels().iter().all(|(key, value)| old.labels().get(key) == Some(value));
    if !is_labelled {
        let patch = json!({"metadata": {"labels": wanted.metadata.labels}});
        api.patch(&description.name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    }
    let mut wanted = wanted;
    keep_times(&mut wanted, &old);
    report(&api, &wanted).await
}

async fn report(api: &Api<Node>, wanted: &Node) -> kube::Result<()> {
    let patch = json!({"status": wanted.status});
    let name = wanted.name_any();
    api.patch_status(&name, &PatchParams::default(), &Patch::Strategic(patch)).await.map(drop)
}

/// Whether the API knows the node and thinks that it is ready: after a pause of this process it may
/// have been given up.
async fn is_known_ready(client: &Client, name: &str) -> bool {
    let api: Api<Node> = Api::all(client.clone());
    match api.get_opt(name).await {
        Ok(None) => false,
        Ok(Some(node)) => {
            let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
            conditions.iter().any(|it| it.type_ == "Ready" && it.status == "True")
        }
        // Not being able to ask is not "gone".
        Err(_) => true,
    }
}

/// Gives one heartbeat.
pub(super) async fn renew_lease(client: &Client, name: &str) -> kube::Result<()> {
    let api: Api<Lease> = Api::namespaced(client.clone(), LEASE_NAMESPACE);
    let now = MicroTime(Timestamp::now());
    let patch = json!({"spec": {"renewTime": now}});
    match api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await {
        Ok(_) => return Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        Err(error) => return Err(error),
    }
    let nodes: Api<Node> = Api::all(client.clone());
    let owner = nodes.get_opt(name).await?.map(|node| OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Node".to_owned(),
        name: name.to_owned(),
        uid: node.uid().unwrap_or_default(),
        ..OwnerReference::default()
    });
    let lease = Lease {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(LEASE_NAMESPACE.to_owned()),
            owner_references: owner.map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(name.to_owned()),
            lease_duration_seconds: Some(LEASE_SECONDS),
            renew_time: Some(now),
            ..LeaseSpec::default()
        }),
    };
    api.create(&PostParams::default(), &lease).await.map(drop)
}

/// A condition that has not changed keeps the time of its last change.
fn keep_times(wanted: &mut Node, old: &Node) {
    let old = old.status.as_ref().and_then(|status| status.conditions.as_deref());
    let new = wanted.status.as_mut().and_then(|status| status.conditions.as_mut());
    for condition in new.into_iter().flatten() {
        let before = old.unwrap_or_default().iter().find(|it| it.type_ == condition.type_);
        if let Some(before) = before.filter(|before| before.status == condition.status) {
            condition.last_transition_time.clone_from(&before.last_transition_time);
        }
    }
}

fn conditions(now: Timestamp) -> Vec<NodeCondition> {
    let all = [
        (
            "MemoryPressure",
            "False",
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available",
        ),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ];
    all.iter()
        .map(|(kind, status, reason, message)| NodeCondition {
            type_: (*kind).to_owned(),
            status: (*status).to_owned(),
            reason: Some((*reason).to_owned()),
            message: Some((*message).to_owned()),
            last_heartbeat_time: Some(Time(now)),
            last_transition_time: Some(Time(now)),
        })
        .collect()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn memory_kib(meminfo: &str) -> u64 {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn storage_kib() -> u64 {
    rustix::fs::statvfs("/").map_or(0, |stat| stat.f_blocks.saturating_mul(stat.f_frsize) / 1024)
}

fn os_name(release: &str) -> String {
    let line = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    line.map_or_else(|| "Linux".to_owned(), |name| name.trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_described_by_what_it_has() {
        let overrides = BTreeMap::from([("cpu".to_owned(), Quantity("64".to_owned()))]);
        let node = NodeDescription::of_machine("n", "127.0.0.1", &overrides);
        let object = node.object(Timestamp::UNIX_EPOCH);
        let status = object.status.as_ref().unwrap();
        let capacity = status.capacity.as_ref().unwrap();
        assert_eq!(capacity["cpu"].0, "64");
        assert_eq!(capacity["pods"].0, "110");
        assert!(capacity["memory"].0.ends_with("Ki") && capacity["memory"].0 != "0Ki");
        assert_eq!(object.labels()["kubernetes.io/hostname"], "n");
        let info = status.node_info.as_ref().unwrap();
        assert_eq!(info.kubelet_version, lockstep_api::KUBERNETES_VERSION);
    }

    #[test]
    fn files_of_the_system_are_read_leniently() {
        assert_eq!(memory_kib("MemFree: 1 kB\nMemTotal:  123 kB\n"), 123);
        assert_eq!(memory_kib("nonsense"), 0);
        assert_eq!(os_name("NAME=x\nPRETTY_NAME=\"Some Linux 1\"\n"), "Some Linux 1");
        assert_eq!(os_name(""), "Linux");
    }

    #[test]
    fn conditions_keep_the_time_of_their_last_change() {
        let node = NodeDescription { name: "n".to_owned(), ..NodeDescription::default() };
        let old = node.object(Timestamp::UNIX_EPOCH);
        let mut new = node.object(Timestamp::from_second(99).unwrap());
        keep_times(&mut new, &old);
        let conditions = new.status.unwrap().conditions.unwrap();
        for condition in conditions {
            assert_eq!(condition.last_transition_time, Some(Time(Timestamp::UNIX_EPOCH)));
            assert_ne!(condition.last_heartbeat_time, condition.last_transition_time);
        }
    }
}
