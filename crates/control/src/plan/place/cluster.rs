//! Nodes and the pods on them, with the aggregates placement reads.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Node, Taint};

use super::filter::Search;
use super::request::Resources;
use super::select::Labels;
use super::terms::{Term, Terms};
use super::wanted::Wanted;

/// How many counted terms are kept before all are forgotten and counted afresh.
const TERMS_MAX: usize = 10_000;

/// How many shapes of pods that fit nowhere are kept in mind.
const FAILURES_MAX: usize = 1_000;

/// Nodes and the pods on them.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    pub(super) nodes: Vec<Option<NodeEntry>>,
    pub(super) slots: BTreeMap<String, usize>,
    free: BTreeSet<usize>,
    /// Nodes by label: key, value, slots.
    pub(super) by_label: BTreeMap<String, BTreeMap<String, BTreeSet<usize>>>,
    /// Pods that are bound to a node and have not ended, by uid.
    pub(super) pods: BTreeMap<String, Wanted>,
    pub(super) namespaces: BTreeMap<String, Labels>,
    nominees: BTreeMap<String, String>,
    /// For each term by which a pod keeps others away: how many such pods are where.
    pub(super) keeping_away: Terms,
    /// For each term that a pod to be placed has asked about: how many pods it finds where.
    pub(super) counted: Terms,
    /// Where the next search among the nodes of a label (or all) starts: after the last one looked
    /// at, so that nodes are filled evenly and full ones are not looked at first every time.
    pub(super) starts: BTreeMap<(String, String), usize>,
    version: u64,
    failures: BTreeMap<String, (u64, String)>,
    /// What placement has cost so far.
    pub counters: Counters,
}

/// What placement has cost: for tests that hold it to its promise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Nodes looked at.
    pub nodes_considered: u64,
    /// Pods walked to count a term that was not known.
    pub pods_walked: u64,
    /// Placements answered from what a pod of the same shape was told.
    pub failures_reused: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct NodeEntry {
    pub name: String,
    pub labels: Labels,
    pub taints: Vec<Taint>,
    pub is_unschedulable: bool,
    pub allocatable: Resources,
    pub pods_max: i64,
    pub used: Resources,
    pub pods: BTreeSet<String>,
    pub ports: BTreeMap<(String, String, i32), u32>,
    /// Pods that wait for this node to become free: priority and request by uid.
    pub nominees: BTreeMap<String, (i32, Resources)>,
}

impl NodeEntry {
    fn of(node: &Node) -> Self {
        let spec = node.spec.clone().unwrap_or_default();
        let status = node.status.clone().unwrap_or_default();
        let list = status.allocatable.or(status.capacity);
        let pods_max = list.as_ref().and_then(|list| list.get("pods")).and_then(|quantity| {
            lockstep_api::quantity::Quantity::parse(&quantity.0).ok().map(|it| it.value())
        });
        Self {
            name: node.metadata.name.clone().unwrap_or_default(),
            labels: node.metadata.labels.clone().unwrap_or_default(),
            taints: spec.taints.unwrap_or_default(),
            is_unschedulable: spec.unschedulable.unwrap_or(false),
            allocatable: Resources::from_list(list.as_ref()),
            pods_max: pods_max.unwrap_or(0),
            ..Self::default()
        }
    }

    /// Whether the node itself is the same, whatever is on it.
    fn is_as(&self, other: &Self) -> bool {
        self.labels == other.labels
            && self.taints == other.taints
            && self.is_unschedulable == other.is_unschedulable
            && self.allocatable == other.allocatable
            && self.pods_max == other.pods_max
    }
}

impl Cluster {
    /// Notes a node, new or changed.
    pub fn put_node(&mut self, node: &Node) {
        let mut entry = NodeEntry::of(node);
        let name = entry.name.clone();
        if let Some(slot) = self.slots.get(&name).copied()
            && let Some(old) = self.nodes[slot].as_mut()
            && old.labels == entry.labels
        {
            // Heartbeats change nothing that matters here.
            if !old.is_as(&entry) {
                std::mem::swap(old, &mut entry);
                (old.used, old.pods) = (entry.used, entry.pods);
                (old.ports, old.nominees) = (entry.ports, entry.nominees);
                self.version += 1;
            }
            return;
        }
        let pods = self.take_node(&name);
        let slot = self.free.pop_first().unwrap_or(self.nodes.len());
        for (key, value) in &entry.labels {
            let values = self.by_label.entry(key.clone()).or_default();
            values.entry(value.clone()).or_default().insert(slot);
        }
        if slot == self.nodes.len() {
            self.nodes.push(None);
        }
        self.nodes[slot] = Some(entry);
        self.slots.insert(name, slot);
        for pod in pods {
            self.count(pod);
        }
        self.version += 1;
    }

    /// Forgets a node. Its pods still exist; they count again if the node comes back.
    pub fn remove_node(&mut self, name: &str) {
        let pods = self.take_node(name);
        for pod in pods {
            self.pods.insert(pod.uid.clone(), pod);
        }
        self.version += 1;
    }

    /// Notes the labels of a namespace.
    pub fn put_namespace(&mut self, name: &str, labels: Labels) {
        if self.namespaces.get(name) != Some(&labels) {
            self.namespaces.insert(name.to_owned(), labels);
            self.counted.clear();
            self.version += 1;
        }
    }

    /// Notes a pod as it is now: it counts while it is bound to a node and has not ended.
    pub fn put_pod(&mut self, pod: Wanted) {
        if let Some(old) = self.pods.get_mut(&pod.uid)
            && old.node == pod.node
            && old.labels == pod.labels
            && old.request == pod.request
            && !pod.is_over
        {
            (old.is_terminating, old.is_preempted) = (pod.is_terminating, pod.is_preempted);
            old.started_at = pod.started_at;
            return;
        }
        let was_bound = self.discount(&pod.uid).is_some();
        if pod.node.is_some() && !pod.is_over {
            self.unnominate(&pod.uid);
            self.count(pod);
        } else if was_bound {
            self.version += 1;
        }
    }

    /// Forgets a pod.
    pub fn remove_pod(&mut self, uid: &str) {
        self.unnominate(uid);
        if self.discount(uid).is_some() {
            self.version += 1;
        }
    }

    /// Counts `pod` on `node` before the API says so.
    pub fn assume(&mut self, pod: &Wanted, node: &str) {
        self.put_pod(Wanted { node: Some(node.to_owned()), ..pod.clone() });
    }

    /// Keeps room on `node` for `pod` against pods of lower priority.
    pub fn nominate(&mut self, pod: &Wanted, node: &str) {
        self.unnominate(&pod.uid);
        if let Some(entry) = self.node_mut(node) {
            entry.nominees.insert(pod.uid.clone(), (pod.priority, pod.request.clone()));
            self.nominees.insert(pod.uid.clone(), node.to_owned());
        }
    }

    /// Gives up the room kept for a pod.
    pub fn unnominate(&mut self, uid: &str) {
        if let Some(node) = self.nominees.remove(uid) {
            if let Some(entry) = self.node_mut(&node) {
                entry.nominees.remove(uid);
            }
            self.version += 1;
        }
    }

    /// How many nodes there are.
    pub fn node_count(&self) -> usize {
        self.slots.len()
    }

    /// How many pods count.
    pub fn pod_count(&self) -> usize {
        self.pods.len()
    }

    pub(super) fn node(&self, name: &str) -> Option<&NodeEntry> {
        self.nodes.get(*self.slots.get(name)?)?.as_ref()
    }

    fn node_mut(&mut self, name: &str) -> Option<&mut NodeEntry> {
        self.nodes.get_mut(*self.slots.get(name)?)?.as_mut()
    }

    /// Takes a node out, with the pods that are on it.
    fn take_node(&mut self, name: &str) -> Vec<Wanted> {
        let Some(slot) = self.slots.get(name).copied() else { return self.pods_waiting_for(name) };
        let uids = self.nodes[slot].as_ref().map(|node| node.pods.clone()).unwrap_or_default();
        let pods = uids.iter().filter_map(|uid| self.discount(uid)).collect();
        self.slots.remove(name);
        self.free.insert(slot);
        if let Some(entry) = self.nodes[slot].take() {
            for (key, value) in &entry.labels {
                if let Some(values) = self.by_label.get_mut(key)
                    && let Some(set) = values.get_mut(value)
                {
                    set.remove(&slot);
                    if set.is_empty() {
                        values.remove(value);
                    }
                }
            }
        }
        pods
    }

    /// Pods bound to a node that is not there (yet).
    fn pods_waiting_for(&mut self, name: &str) -> Vec<Wanted> {
        let uids: Vec<String> = self
            .pods
            .values()
            .filter(|pod| pod.node.as_deref() == Some(name))
            .map(|pod| pod.uid.clone())
            .collect();
        uids.iter().filter_map(|uid| self.pods.remove(uid)).collect()
    }

    /// Counts a bound pod.
    pub(super) fn count(&mut self, pod: Wanted) {
        let name = pod.node.clone().unwrap_or_default();
        if let Some(node) = self.node_mut(&name) {
            node.used.add(&pod.request);
            node.pods.insert(pod.uid.clone());
            for port in &pod.ports {
                *node.ports.entry(port.clone()).or_insert(0) += 1;
            }
            self.change_terms(&pod, &name, 1);
        }
        self.pods.insert(pod.uid.clone(), pod);
    }

    /// Takes a pod out of all counts.
    pub(super) fn discount(&mut self, uid: &str) -> Option<Wanted> {
        let pod = self.pods.remove(uid)?;
        let name = pod.node.clone().unwrap_or_default();
        let mut was_there = false;
        if let Some(node) = self.node_mut(&name) {
            was_there = node.pods.remove(uid);
            if was_there {
                node.used.subtract(&pod.request);
                for port in &pod.ports {
                    if let Some(count) = node.ports.get_mut(port) {
                        *count -= 1;
                        if *count == 0 {
                            node.ports.remove(port);
                        }
                    }
                }
            }
        }
        if was_there {
            self.change_terms(&pod, &name, -1);
        }
        Some(pod)
    }

    fn change_terms(&mut self, pod: &Wanted, node: &str, amount: i64) {
        let Some(node) = self.slots.get(node).and_then(|slot| self.nodes[*slot].as_ref()) else {
            return;
        };
        for term in &pod.apart {
            if let Some(domain) = node.labels.get(&term.topology_key) {
                self.keeping_away.register(term);
                self.keeping_away.change(term, domain, amount, false);
            }
        }
        let about: Vec<Term> =
            self.counted.about(pod, &self.namespaces).into_iter().cloned().collect();
        for term in about {
            if let Some(domain) = node.labels.get(&term.topology_key) {
                self.counted.change(&term, domain, amount, true);
            }
        }
    }

    /// Counts, once, the pods found by each term that `pod` asks about.
    pub(super) fn register_terms(&mut self, pod: &Wanted) {
        if self.counted.len() > TERMS_MAX {
            self.counted.clear();
        }
        let preferred = pod.preferred.iter().map(|(_, term)| term);
        let spread = pod.spread.iter().map(|constraint| &constraint.term);
        for term in pod.near.iter().chain(&pod.apart).chain(preferred).chain(spread) {
            if self.counted.contains(term) {
                continue;
            }
            self.counted.register(term);
            for placed in self.pods.values() {
                self.counters.pods_walked += 1;
                let domain = placed
                    .node
                    .as_ref()
                    .and_then(|node| self.nodes[*self.slots.get(node)?].as_ref())
                    .and_then(|node| node.labels.get(&term.topology_key));
                if let Some(domain) = domain
                    && term.is_about(placed, &self.namespaces)
                {
                    self.counted.change(term, domain, 1, true);
                }
            }
        }
    }

    pub(super) fn note_search(&mut self, search: Search) {
        self.counters.nodes_considered += search.considered;
        self.starts.insert(search.among, search.next);
    }

    /// What a pod of the same shape was told since the last change that could help it.
    pub(super) fn known_failure(&mut self, pod: &Wanted) -> Option<String> {
        let (version, message) = self.failures.get(&pod.shape)?;
        if *version != self.version || !self.is_plain(pod) {
            return None;
        }
        self.counters.failures_reused += 1;
        Some(message.clone())
    }

    pub(super) fn note_failure(&mut self, pod: &Wanted, message: &str) {
        if !self.is_plain(pod) {
            return;
        }
        if self.failures.len() >= FAILURES_MAX {
            self.failures.clear();
        }
        self.failures.insert(pod.shape.clone(), (self.version, message.to_owned()));
    }

    /// Whether labels, of this pod and of others, have no say in where it goes.
    fn is_plain(&self, pod: &Wanted) -> bool {
        pod.near.is_empty()
            && pod.apart.is_empty()
            && pod.spread.is_empty()
            && pod.nominated.is_none()
            && self.keeping_away.len() == 0
    }
}
