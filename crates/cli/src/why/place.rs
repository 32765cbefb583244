//! Where a Workload stands in its queue, and who has what it waits for.

use lockstep_api::quantity::Quantity;
use serde_json::{Value, json};

use super::gather::Seen;
use crate::queueing::{
    Amounts, fraction,
    queue::ClusterQueue,
    workload::{State, Workload},
};

/// How many are named at the most.
const SHOWN: usize = 5;

/// A place in a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// From 1 on.
    pub(super) place: usize,
    /// How many wait.
    pub(super) of: usize,
    /// The next few before it, the very next one last.
    pub(super) before: Vec<String>,
}

/// Who has quota that others wait for.
#[derive(Clone, Debug)]
pub(super) struct Holder {
    /// The job, as in `job/train`.
    pub(super) what: String,
    /// Its namespace.
    pub(super) namespace: String,
    /// The ClusterQueue it came through.
    pub(super) cluster_queue: String,
    /// How much.
    pub(super) held: Amounts,
}

impl Holder {
    /// It for programs.
    pub(super) fn json(&self) -> Value {
        let held = self.held.iter().map(|((flavor, resource), amount)| {
            json!({"flavor": flavor, "resource": resource, "amount": amount.to_string()})
        });
        json!({
            "job": self.what,
            "namespace": self.namespace,
            "clusterQueue": self.cluster_queue,
            "holds": held.collect::<Vec<_>>(),
        })
    }
}

/// The place of a Workload among those that stand in line in its ClusterQueue, if it does.
pub(super) fn place(seen: &Seen, workload: &Workload) -> Option<Place> {
    if !workload.is_in_line() {
        return None;
    }
    let queue = &seen.cluster_queue_of(workload)?.name;
    let waits = |other: &&Workload| {
        other.is_in_line() && seen.cluster_queue_of(other).is_some_and(|its| its.name == *queue)
    };
    let mut before: Vec<&Workload> = Vec::new();
    let mut of = 1;
    for other in seen.workloads.iter().filter(waits).filter(|other| other.uid != workload.uid) {
        of += 1;
        if other.is_before(workload) {
            before.push(other);
        }
    }
    let place = before.len() + 1;
    before.sort_by(|a, b| {
        if a.is_before(b) { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater }
    });
    let skipped = before.len().saturating_sub(SHOWN);
    let before = before.into_iter().skip(skipped).map(|other| named(other, workload)).collect();
    Some(Place { place, of, before })
}

/// Who has quota that a Workload could be given, the largest first, and how many more there are.
pub(super) fn holders(seen: &Seen, workload: &Workload) -> (Vec<Holder>, usize) {
    let Some(queue) = seen.cluster_queue_of(workload) else { return (Vec::new(), 0) };
    let mut holders = Vec::new();
    for other in seen.workloads.iter().filter(|other| other.uid != workload.uid) {
        let has_ended = other.state() == State::Finished;
        let its = seen.cluster_queues.iter().find(|its| its.name == other.cluster_queue);
        if has_ended || !its.is_some_and(|its| its.shares_with(queue)) {
            continue;
        }
        let mut held = other.held.clone();
        held.retain(|(_, resource), amount| {
            let is_wanted = workload.asked.is_empty() || workload.asked.contains_key(resource);
            is_wanted && !amount.is_zero()
        });
        if held.is_empty() {
            continue;
        }
        let share = share(&held, seen, queue);
        let holder = Holder {
            what: other.what(),
            namespace: other.namespace.clone(),
            cluster_queue: other.cluster_queue.clone(),
            held,
        };
        holders.push((share, holder));
    }
    holders.sort_by(|(a, one), (b, other)| b.total_cmp(a).then(one.what.cmp(&other.what)));
    let more = holders.len().saturating_sub(SHOWN);
    holders.truncate(SHOWN);
    (holders.into_iter().map(|(_, holder)| holder).collect(), more)
}

/// The largest part that is held of any resource that there is: that makes cores and bytes
/// comparable.
fn share(held: &Amounts, seen: &Seen, queue: &ClusterQueue) -> f64 {
    let shares = held.iter().map(|((flavor, resource), amount)| {
        let all = seen.cluster_queues.iter().filter(|its| its.shares_with(queue));
        let all = all.flat_map(|its| &its.quotas);
        let of = all.filter(|quota| quota.flavor == *flavor && quota.resource == *resource);
        let total = of.fold(Quantity::ZERO, |sum, quota| sum.plus(&quota.nominal));
        fraction(amount, &total)
    });
    shares.fold(0.0, f64::max)
}

/// `job/train`, or `job/train (research)` for one of another namespace.
fn named(other: &Workload, beside: &Workload) -> String {
    if other.namespace == beside.namespace {
        other.what()
    } else {
        format!("{} ({})", other.what(), other.namespace)
    }
}
