//! Which nodes a pod fits, and why it does not fit the others.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Taint;

use super::cluster::{Cluster, NodeEntry};
use super::spread::Constraint;
use super::taint::{tolerates, untolerated};
use super::wanted::Wanted;

/// How many fitting nodes are enough to choose among.
const FITTING_ENOUGH: usize = 100;

/// The number of pods in each domain of a topology.
pub(super) type Domains<'a> = (&'a str, &'a BTreeMap<String, i64>);

/// Why a pod does not fit a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reject {
    /// What the scheduler says, one or more.
    pub reasons: Vec<String>,
    /// Whether it could fit if other pods left.
    pub is_resolvable: bool,
}

impl Reject {
    fn never(reason: &str) -> Self {
        Self { reasons: vec![reason.to_owned()], is_resolvable: false }
    }

    fn now(reason: &str) -> Self {
        Self { reasons: vec![reason.to_owned()], is_resolvable: true }
    }
}

/// What a search for fitting nodes has cost, and where the next one starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Search {
    /// The label whose nodes were searched; empty for all nodes.
    pub among: (String, String),
    pub considered: u64,
    pub next: usize,
}

/// The cluster as one pod sees it.
pub(super) struct View<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) pod: &'a Wanted,
    /// Domains of pods that keep this one away.
    against: Vec<Domains<'a>>,
    near: Vec<Domains<'a>>,
    apart: Vec<Domains<'a>>,
    /// Whether nobody is there to be near to, and the pod would be near to itself.
    is_first: bool,
    spread: Vec<(&'a Constraint, &'a BTreeMap<String, i64>, i64)>,
}

/// Why a pod fits no node, by the name of the node.
pub(super) type Diagnosis = BTreeMap<String, Reject>;

static NOWHERE: BTreeMap<String, i64> = BTreeMap::new();

impl<'a> View<'a> {
    /// The view of `pod`, whose terms have been registered.
    pub(super) fn of(cluster: &'a Cluster, pod: &'a Wanted) -> Self {
        let counts = |term| cluster.counted.counts(term).unwrap_or(&NOWHERE);
        let domains = |term: &'a super::terms::Term| (term.topology_key.as_str(), counts(term));
        let near: Vec<Domains<'_>> = pod.near.iter().map(domains).collect();
        let is_first = near.iter().all(|(_, counts)| counts.is_empty())
            && pod.near.iter().all(|term| term.is_about(pod, &cluster.namespaces));
        let against = cluster
            .keeping_away
            .about(pod, &cluster.namespaces)
            .into_iter()
            .filter_map(|term| {
                Some((term.topology_key.as_str(), cluster.keeping_away.counts(term)?))
            })
            .collect();
        let mut view = Self {
            cluster,
            pod,
            against,
            near,
            apart: pod.apart.iter().map(domains).collect(),
            is_first,
            spread: Vec::new(),
        };
        view.spread = pod
            .spread
            .iter()
            .filter(|constraint| constraint.is_strict)
            .map(|constraint| {
                let counts = counts(&constraint.term);
                (constraint, counts, view.least(constraint, counts))
            })
            .collect();
        view
    }

    /// Enough fitting nodes to choose among.
    pub(super) fn find_fitting(&self) -> (Vec<&'a NodeEntry>, Search) {
        let nodes = &self.cluster.nodes;
        let label = self.label();
        let among =
            label.map(|(key, value)| (key.to_owned(), value.to_owned())).unwrap_or_default();
        let start = self.cluster.starts.get(&among).copied().unwrap_or(0);
        let mut search = Search { among, considered: 0, next: start };
        let mut fitting = Vec::new();
        let mut look = |slot: usize| {
            if let Some(node) = nodes.get(slot).and_then(Option::as_ref) {
                search.considered += 1;
                search.next = slot + 1;
                if self.check(node).is_ok() {
                    fitting.push(node);
                }
            }
            fitting.len() < FITTING_ENOUGH
        };
        match label {
            Some((key, value)) => {
                let values = self.cluster.by_label.get(key);
                let slots = values.and_then(|values| values.get(value));
                let mut turn = slots
                    .into_iter()
                    .flat_map(|slots| slots.range(start..).chain(slots.range(..start)));
                turn.all(|slot| look(*slot));
            }
            None => {
                let start = start.min(nodes.len());
                (start..nodes.len()).chain(0..start).all(look);
            }
        }
        (fitting, search)
    }

    /// Why the pod fits none of the nodes.
    pub(super) fn diagnose(&self) -> Diagnosis {
        let nodes = self.cluster.nodes.iter().flatten();
        nodes.filter_map(|node| Some((node.name.clone(), self.check(node).err()?))).collect()
    }

    /// Whether the pod fits `node`, in the scheduler's order of questions.
    pub(super) fn check(&self, node: &NodeEntry) -> Result<(), Reject> {
        self.check_node(node)?;
        self.check_room(node)?;
        self.check_spread(node)?;
        self.check_neighbours(node)
    }

    fn check_node(&self, node: &NodeEntry) -> Result<(), Reject> {
        if node.is_unschedulable && !tolerates(&self.pod.tolerations, &cordon()) {
            return Err(Reject::never("node(s) were unschedulable"));
        }
        let effects = ["NoSchedule", "NoExecute"];
        if untolerated(&self.pod.tolerations, &node.taints, &effects).is_some() {
            return Err(Reject::never("node(s) had untolerated taint(s)"));
        }
        if !self.is_wanted(node) {
            return Err(Reject::never("node(s) didn't match Pod's node affinity/selector"));
        }
        Ok(())
    }

    /// Whether the pod's node selector and node affinity are met.
    fn is_wanted(&self, node: &NodeEntry) -> bool {
        self.pod.node_selector.matches(&node.labels)
            && self
                .pod
                .node_required
                .as_ref()
                .is_none_or(|terms| terms.iter().any(|term| term.matches(&node.name, &node.labels)))
    }

    fn check_room(&self, node: &NodeEntry) -> Result<(), Reject> {
        let pod = self.pod;
        if pod.ports.iter().any(|port| is_taken(node, port)) {
            let reason = "node(s) didn't have free ports for the requested pod ports";
            return Err(Reject::now(reason));
        }
        let mut used = &node.used;
        let mut pods_used = node.pods.len();
        let with_nominees;
        let is_ahead = |uid: &String, priority: i32| *uid != pod.uid && priority >= pod.priority;
        if node.nominees.iter().any(|(uid, (priority, _))| is_ahead(uid, *priority)) {
            let mut sum = node.used.clone();
            for (uid, (priority, request)) in &node.nominees {
                if is_ahead(uid, *priority) {
                    sum.add(request);
                    pods_used += 1;
                }
            }
            with_nominees = sum;
            used = &with_nominees;
        }
        let mut reasons = Vec::new();
        let mut is_resolvable = true;
        if i64::try_from(pods_used).unwrap_or(i64::MAX) >= node.pods_max {
            reasons.push("Too many pods".to_owned());
        }
        let (want, have) = (&pod.request, &node.allocatable);
        let mut ask = |name: &str, want: i64, have: i64, used: i64| {
            if want > 0 && want > have - used {
                reasons.push(format!("Insufficient {name}"));
                is_resolvable &= want <= have;
            }
        };
        ask("cpu", want.cpu, have.cpu, used.cpu);
        ask("memory", want.memory, have.memory, used.memory);
        ask("ephemeral-storage", want.storage, have.storage, used.storage);
        for (name, amount) in &want.others {
            let of = |all: &BTreeMap<String, i64>| all.get(name).copied().unwrap_or(0);
            ask(name, *amount, of(&have.others), of(&used.others));
        }
        if reasons.is_empty() { Ok(()) } else { Err(Reject { reasons, is_resolvable }) }
    }

    fn check_spread(&self, node: &NodeEntry) -> Result<(), Reject> {
        for (constraint, counts, least) in &self.spread {
            let Some(domain) = node.labels.get(&constraint.term.topology_key) else {
                return Err(Reject::never(
                    "node(s) didn't match pod topology spread constraints (missing required label)",
                ));
            };
            if !constraint.allows(counts.get(domain).copied().unwrap_or(0), *least) {
                return Err(Reject::now("node(s) didn't match pod topology spread constraints"));
            }
        }
        Ok(())
    }

    fn check_neighbours(&self, node: &NodeEntry) -> Result<(), Reject> {
        let count = |(key, counts): &Domains<'_>| {
            let domain = node.labels.get(*key)?;
            Some(counts.get(domain).copied().unwrap_or(0))
        };
        for domains in &self.near {
            let is_near = match count(domains) {
                None => false,
                Some(found) => found > 0 || self.is_first,
            };
            if !is_near {
                return Err(Reject::never("node(s) didn't match pod affinity rules"));
            }
        }
        if self.apart.iter().any(|domains| count(domains).is_some_and(|found| found > 0)) {
            return Err(Reject::now("node(s) didn't match pod anti-affinity rules"));
        }
        if self.against.iter().any(|domains| count(domains).is_some_and(|found| found > 0)) {
            return Err(Reject::now("node(s) didn't satisfy existing pods anti-affinity rules"));
        }
        Ok(())
    }

    /// The least number of pods in any domain the pod could go to.
    fn least(&self, constraint: &Constraint, counts: &BTreeMap<String, i64>) -> i64 {
        let key = &constraint.term.topology_key;
        let Some(domains) = self.cluster.by_label.get(key) else { return 0 };
        let counts_as_domain = |slots: &BTreeSet<usize>| {
            slots.iter().filter_map(|slot| self.cluster.nodes[*slot].as_ref()).any(|node| {
                let effects = ["NoSchedule", "NoExecute"];
                (!constraint.honours_affinity || self.is_wanted(node))
                    && (!constraint.honours_taints
                        || untolerated(&self.pod.tolerations, &node.taints, &effects).is_none())
            })
        };
        let mut found = 0;
        let mut least = i64::MAX;
        for (domain, slots) in domains {
            if counts_as_domain(slots) {
                found += 1;
                least = least.min(counts.get(domain).copied().unwrap_or(0));
            }
        }
        let is_short = constraint.domains_min.is_some_and(|wanted| found < wanted);
        if is_short || found == 0 { 0 } else { least }
    }

    /// A label that the pod insists on.
    fn label(&self) -> Option<(&'a str, &'a str)> {
        let required = match self.pod.node_required.as_deref() {
            Some([only]) => only.exact(),
            Some(_) | None => None,
        };
        self.pod.node_selector.exact().or(required)
    }
}

fn cordon() -> Taint {
    Taint {
        key: "node.kubernetes.io/unschedulable".to_owned(),
        effect: "NoSchedule".to_owned(),
        ..Taint::default()
    }
}

/// Whether a port of the node is in use; the unspecified address stands for all.
fn is_taken(node: &NodeEntry, (ip, protocol, number): &(String, String, i32)) -> bool {
    node.ports.keys().any(|(other_ip, other_protocol, other)| {
        let is_same_ip = ip == other_ip || ip == "0.0.0.0" || other_ip == "0.0.0.0";
        is_same_ip && protocol == other_protocol && number == other
    })
}
