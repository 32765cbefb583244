//! How things stand with queues: read from the objects when somebody asks, so that nothing
//! has to be taken back when a queue, a flavor or leadership is gone.

mod local;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use lockstep_api::kueue::{
    ClusterQueue, ClusterQueueStatus, FlavorUsage, LocalQueue, ResourceQuota,
};
use lockstep_api::quantity::Quantity;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue};
use prometheus_client::metrics::MetricType;

use super::{Labels, Replica};

/// All queues, as they were seen last.
#[derive(Debug, Default)]
pub(super) struct Gauges {
    pub(super) replica: Replica,
    /// Whether quota and usage are told too, which may be a lot.
    pub(super) has_resources: AtomicBool,
    queues: Mutex<BTreeMap<String, Arc<ClusterQueue>>>,
    /// How many wait in a ClusterQueue without being tried. Objects do not say.
    inadmissible: Mutex<BTreeMap<String, i32>>,
    /// By namespace and name.
    local_queues: Mutex<BTreeMap<(String, String), Arc<LocalQueue>>>,
}

/// What a ClusterQueue can be.
const STATES: [&str; 3] = ["pending", "active", "terminating"];

impl Gauges {
    pub(super) fn seen(&self, queue: &Arc<ClusterQueue>) {
        let name = queue.metadata.name.clone().unwrap_or_default();
        locked(&self.queues).insert(name, Arc::clone(queue));
    }

    pub(super) fn gone(&self, name: &str) {
        locked(&self.queues).remove(name);
        locked(&self.inadmissible).remove(name);
    }

    pub(super) fn inadmissible(&self, name: &str, number: i32) {
        let mut all = locked(&self.inadmissible);
        match all.get_mut(name) {
            Some(known) => *known = number,
            None => drop(all.insert(name.to_owned(), number)),
        }
    }

    pub(super) fn local_seen(&self, queue: &Arc<LocalQueue>) {
        let meta = &queue.metadata;
        let part = |part: &Option<String>| part.clone().unwrap_or_default();
        let key = (part(&meta.namespace), part(&meta.name));
        locked(&self.local_queues).insert(key, Arc::clone(queue));
    }

    pub(super) fn local_gone(&self, namespace: &str, name: &str) {
        locked(&self.local_queues).remove(&(namespace.to_owned(), name.to_owned()));
    }
}

fn locked<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Collector for Gauges {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let all: Vec<Arc<ClusterQueue>> = locked(&self.queues).values().cloned().collect();
        let mut scene = Scene { all: &all, role: self.replica.role(), encoder: &mut encoder };
        scene.states()?;
        match self.replica.follows() {
            // What it knew while it led is old.
            true => scene.pending(&BTreeMap::new())?,
            false => scene.pending(&locked(&self.inadmissible))?,
        }
        let help = "Workloads that hold quota, by ClusterQueue";
        scene.counts("reserving_active_workloads", help, |it| it.reserving_workloads)?;
        let help = "Workloads that are admitted and have not finished, by ClusterQueue";
        scene.counts("admitted_active_workloads", help, |it| it.admitted_workloads)?;
        let has_resources = self.has_resources.load(Ordering::Relaxed);
        let doors: Vec<Arc<LocalQueue>> = locked(&self.local_queues).values().cloned().collect();
        local::encode(&doors, self.replica.role(), scene.encoder, has_resources)?;
        if !has_resources {
            return Ok(());
        }
        let help = "What Workloads with quota may use, by flavor and resource";
        scene.usages("cluster_queue_resource_reservation", help, |it| &it.flavors_reservation)?;
        let help = "What admitted Workloads may use, by flavor and resource";
        scene.usages("cluster_queue_resource_usage", help, |it| &it.flavors_usage)?;
        let help = "What a ClusterQueue has, by flavor and resource";
        scene.quotas("cluster_queue_nominal_quota", help, |it| Some(&it.nominal_quota))?;
        let help = "What a ClusterQueue may borrow, by flavor and resource";
        scene.quotas("cluster_queue_borrowing_limit", help, |it| it.borrowing_limit.as_ref())?;
        let help = "What others may borrow of a ClusterQueue, by flavor and resource";
        scene.quotas("cluster_queue_lending_limit", help, |it| it.lending_limit.as_ref())
    }
}

/// What is written, and for whom.
struct Scene<'a, 'b> {
    all: &'a [Arc<ClusterQueue>],
    role: &'static str,
    encoder: &'a mut DescriptorEncoder<'b>,
}

impl Scene<'_, '_> {
    fn states(&mut self) -> fmt::Result {
        let help = "1 for the state that a ClusterQueue is in, 0 for the others";
        let samples = self.all.iter().flat_map(|queue| {
            let state = state(queue);
            STATES
                .map(|one| (labels(queue, &[("status", one)], self.role), i64::from(one == state)))
        });
        write(self.encoder, "cluster_queue_status", help, samples)
    }

    /// Those who wait: who is tried as soon as it is his turn, and who is not before something
    /// changes.
    fn pending(&mut self, inadmissible: &BTreeMap<String, i32>) -> fmt::Result {
        let help = "Workloads that wait, by ClusterQueue and by whether they are tried";
        let samples = self.all.iter().flat_map(|queue| {
            let pending = queue.status.as_ref().map_or(0, |status| status.pending_workloads);
            let name = queue.metadata.name.as_deref().unwrap_or_default();
            // What the object says is older.
            let parked = inadmissible.get(name).copied().unwrap_or(0).min(pending);
            [("active", pending - parked), ("inadmissible", parked)].map(|(status, number)| {
                (labels(queue, &[("status", status)], self.role), i64::from(number))
            })
        });
        write(self.encoder, "pending_workloads", help, samples)
    }

    fn counts(
        &mut self,
        name: &str,
        help: &str,
        count: fn(&ClusterQueueStatus) -> i32,
    ) -> fmt::Result {
        let samples = self.all.iter().map(|queue| {
            let number = queue.status.as_ref().map_or(0, count);
            (labels(queue, &[], self.role), i64::from(number))
        });
        write(self.encoder, name, help, samples)
    }

    fn usages(
        &mut self,
        name: &str,
        help: &str,
        of: fn(&ClusterQueueStatus) -> &Vec<FlavorUsage>,
    ) -> fmt::Result {
        let samples = self.all.iter().flat_map(|queue| {
            let flavors = queue.status.iter().flat_map(of);
            flavors.flat_map(|flavor| {
                flavor.resources.iter().map(|used| {
                    let labels = place(queue, &flavor.name, &used.name, self.role);
                    (labels, amount(&used.total))
                })
            })
        });
        write(self.encoder, name, help, samples)
    }

    /// What is not limited is without end.
    fn quotas(
        &mut self,
        name: &str,
        help: &str,
        of: fn(&ResourceQuota) -> Option<&Text>,
    ) -> fmt::Result {
        let samples = self.all.iter().flat_map(|queue| {
            let flavors = queue.spec.resource_groups.iter().flat_map(|group| &group.flavors);
            flavors.flat_map(|flavor| {
                flavor.resources.iter().map(|quota| {
                    let labels = place(queue, &flavor.name, &quota.name, self.role);
                    (labels, of(quota).map_or(f64::INFINITY, amount))
                })
            })
        });
        write(self.encoder, name, help, samples)
    }
}

fn write<V: EncodeGaugeValue>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    samples: impl Iterator<Item = (Labels, V)>,
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in samples {
        metric.encode_family(&labels)?.encode_gauge(&value)?;
    }
    Ok(())
}

fn state(queue: &ClusterQueue) -> &'static str {
    let mut conditions = queue.status.iter().flat_map(|status| &status.conditions);
    match conditions.find(|condition| condition.type_ == "Active") {
        Some(active) if active.status == "True" => "active",
        Some(active) if active.reason == "Terminating" => "terminating",
        _ => "pending",
    }
}

fn labels(queue: &ClusterQueue, more: &[(&'static str, &str)], role: &str) -> Labels {
    let name = queue.metadata.name.clone().unwrap_or_default();
    let more = more.iter().map(|(key, value)| (*key, (*value).to_owned()));
    let own = std::iter::once(("cluster_queue", name)).chain(more);
    own.chain([("replica_role", role.to_owned())]).collect()
}

/// One resource of one flavor of one queue.
fn place(queue: &ClusterQueue, flavor: &str, resource: &str, role: &str) -> Labels {
    let cohort = ("cohort", queue.spec.cohort_name.clone());
    let more = [("flavor", flavor), ("resource", resource)];
    std::iter::once(cohort).chain(labels(queue, &more, role)).collect()
}

/// An amount as a number. More digits than such a number has are lost.
fn amount(text: &Text) -> f64 {
    let parsed = Quantity::parse(&text.0).unwrap_or(Quantity::ZERO);
    // What is whole may be too large for thousandths.
    match parsed.is_whole() {
        true => parsed.value() as f64,
        false => parsed.milli_value() as f64 / 1000.0,
    }
}
