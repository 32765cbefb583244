//! Nobody is given what is not there.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use lockstep_api::{
    kueue::{ClusterQueue, ResourceQuota, Workload},
    quantity,
};

use super::{Admitter, Checker, QueueBook, Violation, WorkBook, ensure};

/// Of each flavor, thousandths.
pub(super) type Usage = BTreeMap<String, i64>;

impl Checker {
    /// Who is admitted finds room: in its queue, with what that may borrow, and in its cohort.
    /// What others have admitted whom nobody could know of is no fault of whoever admits.
    pub(super) fn check_quota(&self, book: &WorkBook, admitter: Admitter) -> Result<(), Violation> {
        let Some(name) = queue_of(&book.workload) else { return Ok(()) };
        let Some(queue) = self.queues.clusters.get(name) else {
            return Err(Violation(format!("{} is admitted by nobody, {name}", book.name)));
        };
        let is_known =
            |other: &&WorkBook| other.admitted.is_some_and(|admitted| admitter.knows(admitted));
        let holders: Vec<&WorkBook> =
            self.queues.holders().filter(is_known).chain([book]).collect();
        let usage_of = |name: &str| -> Usage {
            let mut sum = Usage::new();
            for holder in holders.iter().filter(|it| queue_of(&it.workload) == Some(name)) {
                for (flavor, amount) in usage(&holder.workload) {
                    *sum.entry(flavor).or_default() += amount;
                }
            }
            sum
        };
        for flavor in usage(&book.workload).keys() {
            let used = usage_of(name).get(flavor).copied().unwrap_or_default();
            let most = self.queues.most(queue, flavor);
            ensure(used <= most, || {
                format!(
                    "{} is admitted: {name} uses {used}m of {flavor}, it has {most}m",
                    book.name
                )
            })?;
            let (mut shared, mut free) = (0, 0);
            for other in self.queues.cohort(queue) {
                let other_name = other.metadata.name.as_deref().unwrap_or_default();
                let used = usage_of(other_name).get(flavor).copied().unwrap_or_default();
                let (own, lent) = own_and_lent(other, flavor);
                shared += (used - own).max(0);
                free += lent;
            }
            ensure(shared <= free, || {
                format!("{} is admitted: {shared}m of {flavor} are shared, of {free}m", book.name)
            })?;
        }
        Ok(())
    }
}

impl QueueBook {
    /// A queue and those it shares with.
    fn cohort<'a>(&'a self, queue: &'a ClusterQueue) -> impl Iterator<Item = &'a ClusterQueue> {
        let cohort = queue.spec.cohort_name.as_str();
        self.clusters.values().map(|other| &**other).filter(move |other| {
            let is_it = other.metadata.name == queue.metadata.name;
            is_it || (!cohort.is_empty() && other.spec.cohort_name == cohort)
        })
    }

    /// The most a queue can ever use of a flavor.
    pub(super) fn most(&self, queue: &ClusterQueue, flavor: &str) -> i64 {
        let Some(quota) = quota(queue, flavor) else { return 0 };
        let nominal = milli(&quota.nominal_quota);
        if queue.spec.cohort_name.is_empty() {
            return nominal;
        }
        let others = self.cohort(queue).filter(|it| it.metadata.name != queue.metadata.name);
        let lent: i64 = others.map(|other| own_and_lent(other, flavor).1).sum();
        let limit = quota.borrowing_limit.as_ref().map_or(i64::MAX, milli);
        nominal + lent.min(limit)
    }
}

/// What a queue has of a flavor for itself alone, and what it lets others use.
fn own_and_lent(queue: &ClusterQueue, flavor: &str) -> (i64, i64) {
    let Some(quota) = quota(queue, flavor) else { return (0, 0) };
    let nominal = milli(&quota.nominal_quota);
    let lent = quota.lending_limit.as_ref().map_or(nominal, milli).min(nominal);
    (nominal - lent, lent)
}

fn quota<'a>(queue: &'a ClusterQueue, flavor: &str) -> Option<&'a ResourceQuota> {
    let mut flavors = queue.spec.resource_groups.iter().flat_map(|group| &group.flavors);
    flavors.find(|it| it.name == flavor)?.resources.iter().find(|it| it.name == "cpu")
}

/// The queue whose quota a Workload holds.
pub(super) fn queue_of(workload: &Workload) -> Option<&str> {
    let admission = workload.status.as_ref()?.admission.as_ref()?;
    Some(&admission.cluster_queue)
}

/// What a Workload holds: less with every pod that has ended for good.
fn usage(workload: &Workload) -> Usage {
    let mut sum = Usage::new();
    let Some(status) = &workload.status else { return sum };
    for set in status.admission.iter().flat_map(|admission| &admission.pod_set_assignments) {
        let Some(flavor) = set.flavors.get("cpu") else { continue };
        let total = set.resource_usage.get("cpu").map_or(0, milli);
        let pods = i64::from(set.count.unwrap_or(1)).max(1);
        let over = status.reclaimable_pods.iter().filter(|pods| pods.name == set.name);
        let over: i64 = over.map(|pods| i64::from(pods.count)).sum();
        let mut specs = workload.spec.pod_sets.iter().filter(|it| it.name == set.name);
        // Who had ended before the admission is not among those that were admitted.
        let needed = specs.next().map_or(pods, |spec| i64::from(spec.count) - over);
        *sum.entry(flavor.clone()).or_default() += total / pods * needed.min(pods).max(0);
    }
    sum
}

fn milli(quantity: &Quantity) -> i64 {
    quantity::Quantity::parse(&quantity.0).map_or(0, |quantity| quantity.milli_value())
}

/// What a Workload asks for of one flavor.
pub(super) fn wanted(workload: &Workload) -> i64 {
    let of_set = |set: &lockstep_api::kueue::PodSet| {
        let pod = set.template.spec.as_ref();
        let containers = pod.into_iter().flat_map(|pod| &pod.containers);
        let requests = containers.filter_map(|it| it.resources.as_ref()?.requests.as_ref());
        let cpu: i64 = requests.filter_map(|it| it.get("cpu")).map(milli).sum();
        cpu * i64::from(set.count)
    };
    workload.spec.pod_sets.iter().map(of_set).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_had_ended_before_the_admission_is_not_taken_off_again() {
        // Of four: how many were admitted, how many have ended for good, what is used.
        let cases = [(4, 0, 4000), (4, 1, 3000), (3, 1, 3000), (3, 2, 2000), (3, 9, 0)];
        for (admitted, over, want) in cases {
            let workload: Workload = serde_json::from_value(json!({
                "spec": {"podSets": [{"name": "main", "count": 4}]},
                "status": {"reclaimablePods": [{"name": "main", "count": over}],
                    "admission": {"clusterQueue": "q", "podSetAssignments": [{"name": "main",
                        "flavors": {"cpu": "f"}, "count": admitted,
                        "resourceUsage": {"cpu": admitted.to_string()}}]}}
            }))
            .unwrap();
            assert_eq!(usage(&workload)["f"], want, "{admitted} {over}");
        }
    }
}
