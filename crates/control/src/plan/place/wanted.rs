//! What placement needs to know of a pod, read once from the object.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Pod, PodAffinityTerm, PodSpec, PodStatus, Toleration, WeightedPodAffinityTerm,
};

use super::request::Resources;
use super::select::{Labels, NodeTerm, Selector, node_terms};
use super::spread::Constraint;
use super::terms::Term;

/// A pod as placement sees it.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Its uid.
    pub uid: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its priority; greater goes first.
    pub priority: i32,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it started, if it has.
    pub started_at: Option<Timestamp>,
    /// The node it is bound to.
    pub node: Option<String>,
    /// The node it waits for to become free.
    pub nominated: Option<String>,
    /// Whether scheduling gates hold it back.
    pub is_gated: bool,
    /// Whether it has ended.
    pub is_over: bool,
    /// Whether it is being deleted.
    pub is_terminating: bool,
    /// The scheduler that is to place it.
    pub scheduler: String,
    pub(super) is_preempted: bool,
    pub(super) may_preempt: bool,
    pub(super) labels: Labels,
    pub(super) request: Resources,
    pub(super) tolerations: Vec<Toleration>,
    pub(super) node_selector: Selector,
    pub(super) node_required: Option<Vec<NodeTerm>>,
    pub(super) node_preferred: Vec<(i64, NodeTerm)>,
    pub(super) near: Vec<Term>,
    pub(super) apart: Vec<Term>,
    /// Weight (negative to be apart) and term.
    pub(super) preferred: Vec<(i64, Term)>,
    pub(super) spread: Vec<Constraint>,
    /// Address, protocol and port on the node.
    pub(super) ports: BTreeSet<(String, String, i32)>,
    /// The same for all pods that fit and fail alike.
    pub(super) shape: String,
}

impl Wanted {
    /// Reads a pod.
    pub fn of(pod: &Pod) -> Self {
        let spec = pod.spec.clone().unwrap_or_default();
        let status = pod.status.clone().unwrap_or_default();
        let meta = &pod.metadata;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let (namespace, labels) = (text(&meta.namespace), meta.labels.clone().unwrap_or_default());
        let (near, apart, preferred) = terms(&spec, &namespace);
        let of_nodes = spec.affinity.as_ref().and_then(|it| it.node_affinity.clone());
        let of_nodes = of_nodes.unwrap_or_default();
        Self {
            uid: text(&meta.uid),
            name: text(&meta.name),
            priority: spec.priority.unwrap_or(0),
            created_at: meta.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |at| at.0),
            started_at: status.start_time.as_ref().map(|at| at.0),
            node: spec.node_name.clone().filter(|node| !node.is_empty()),
            nominated: status.nominated_node_name.clone().filter(|node| !node.is_empty()),
            is_gated: spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty()),
            is_over: matches!(status.phase.as_deref(), Some("Succeeded" | "Failed")),
            is_terminating: meta.deletion_timestamp.is_some(),
            scheduler: spec.scheduler_name.clone().unwrap_or_else(|| "default-scheduler".into()),
            is_preempted: is_preempted(&status),
            may_preempt: spec.preemption_policy.as_deref() != Some("Never"),
            request: Resources::of_pod(&spec),
            tolerations: spec.tolerations.clone().unwrap_or_default(),
            node_selector: Selector::of_map(&spec.node_selector.clone().unwrap_or_default()),
            node_required: node_terms(
                of_nodes.required_during_scheduling_ignored_during_execution.as_ref(),
            ),
            node_preferred: of_nodes
                .preferred_during_scheduling_ignored_during_execution
                .iter()
                .flatten()
                .filter_map(|it| Some((i64::from(it.weight), NodeTerm::of(&it.preference)?)))
                .collect(),
            near,
            apart,
            preferred,
            spread: spec
                .topology_spread_constraints
                .iter()
                .flatten()
                .map(|it| Constraint::of(it, &namespace, &labels))
                .collect(),
            ports: host_ports(&spec),
            shape: shape(&spec, &namespace),
            labels,
            namespace,
        }
    }
}

fn is_preempted(status: &PodStatus) -> bool {
    status.conditions.iter().flatten().any(|condition| {
        condition.type_ == "DisruptionTarget"
            && condition.status == "True"
            && condition.reason.as_deref() == Some("PreemptionByScheduler")
    })
}

/// The required terms to be near, those to be apart, and the preferred ones with their weights.
fn terms(spec: &PodSpec, namespace: &str) -> (Vec<Term>, Vec<Term>, Vec<(i64, Term)>) {
    let affinity = spec.affinity.clone().unwrap_or_default();
    let near = affinity.pod_affinity.unwrap_or_default();
    let apart = affinity.pod_anti_affinity.unwrap_or_default();
    let read = |list: Option<Vec<PodAffinityTerm>>| -> Vec<Term> {
        list.iter().flatten().map(|term| Term::of(term, namespace)).collect()
    };
    let weigh = |list: Option<Vec<WeightedPodAffinityTerm>>, sign: i64| -> Vec<(i64, Term)> {
        let weighed = |it: &WeightedPodAffinityTerm| {
            (sign * i64::from(it.weight), Term::of(&it.pod_affinity_term, namespace))
        };
        list.iter().flatten().map(weighed).collect()
    };
    let mut preferred = weigh(near.preferred_during_scheduling_ignored_during_execution, 1);
    preferred.extend(weigh(apart.preferred_during_scheduling_ignored_during_execution, -1));
    (
        read(near.required_during_scheduling_ignored_during_execution),
        read(apart.required_during_scheduling_ignored_during_execution),
        preferred,
    )
}

fn host_ports(spec: &PodSpec) -> BTreeSet<(String, String, i32)> {
    let sidecars = spec
        .init_containers
        .iter()
        .flatten()
        .filter(|container| container.restart_policy.as_deref() == Some("Always"));
    let ports = spec.containers.iter().chain(sidecars).flat_map(|it| it.ports.iter().flatten());
    ports
        .filter_map(|port| {
            let number = port.host_port.filter(|number| *number > 0)?;
            let ip = port.host_ip.clone().filter(|ip| !ip.is_empty());
            let protocol = port.protocol.clone().unwrap_or_else(|| "TCP".to_owned());
            Some((ip.unwrap_or_else(|| "0.0.0.0".to_owned()), protocol, number))
        })
        .collect()
}

/// Everything but labels that placement looks at, as text. Pods of one job have the same.
fn shape(spec: &PodSpec, namespace: &str) -> String {
    let requests: Vec<_> = spec
        .init_containers
        .iter()
        .flatten()
        .chain(&spec.containers)
        .map(|it| (&it.resources, &it.ports, &it.restart_policy))
        .collect();
    let shown = (
        requests,
        (&spec.node_selector, &spec.affinity, &spec.tolerations, &spec.priority),
        (&spec.topology_spread_constraints, &spec.overhead, &spec.preemption_policy),
        namespace,
    );
    serde_json::to_string(&shown).unwrap_or_default()
}
