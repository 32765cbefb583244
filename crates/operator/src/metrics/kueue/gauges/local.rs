//! How things stand with LocalQueues.

use std::fmt;
use std::sync::Arc;

use lockstep_api::kueue::{FlavorUsage, LocalQueue, LocalQueueStatus};
use prometheus_client::encoding::DescriptorEncoder;

use super::{Labels, amount, write};

/// Counts of a LocalQueue: name, help, more labels, and where it is in the status.
type Count = (&'static str, &'static str, &'static [Label], fn(&LocalQueueStatus) -> i32);
type Label = (&'static str, &'static str);

const COUNTS: [Count; 3] = [
    (
        "local_queue_pending_workloads",
        "Workloads that wait, by LocalQueue",
        &[("status", "active")],
        |status| status.pending_workloads,
    ),
    (
        "local_queue_reserving_active_workloads",
        "Workloads that hold quota, by LocalQueue",
        &[],
        |status| status.reserving_workloads,
    ),
    (
        "local_queue_admitted_active_workloads",
        "Workloads that are admitted and have not finished, by LocalQueue",
        &[],
        |status| status.admitted_workloads,
    ),
];

/// What the condition `Active` of a LocalQueue can be.
const STATES: [&str; 3] = ["True", "False", "Unknown"];

/// Writes all of them; what is used only when that is wanted.
pub(super) fn encode(
    all: &[Arc<LocalQueue>],
    role: &'static str,
    encoder: &mut DescriptorEncoder<'_>,
    has_resources: bool,
) -> fmt::Result {
    for (name, help, more, count) in COUNTS {
        let samples = all.iter().map(|queue| {
            let number = queue.status.as_ref().map_or(0, count);
            (labels(queue, more, role), i64::from(number))
        });
        write(encoder, name, help, samples)?;
    }
    let help = "1 for what is true of a LocalQueue being active, 0 for the rest";
    let samples = all.iter().flat_map(|queue| {
        let state = state(queue);
        STATES.map(|one| (labels(queue, &[("active", one)], role), i64::from(one == state)))
    });
    write(encoder, "local_queue_status", help, samples)?;
    if !has_resources {
        return Ok(());
    }
    let help = "What Workloads with quota may use, by LocalQueue, flavor and resource";
    let reserved = usages(all, role, |status| &status.flavors_reservation);
    write(encoder, "local_queue_resource_reservation", help, reserved)?;
    let help = "What admitted Workloads may use, by LocalQueue, flavor and resource";
    let used = usages(all, role, |status| &status.flavors_usage);
    write(encoder, "local_queue_resource_usage", help, used)
}

fn usages(
    all: &[Arc<LocalQueue>],
    role: &'static str,
    of: fn(&LocalQueueStatus) -> &Vec<FlavorUsage>,
) -> impl Iterator<Item = (Labels, f64)> {
    all.iter().flat_map(move |queue| {
        let flavors = queue.status.iter().flat_map(of);
        flavors.flat_map(move |flavor| {
            flavor.resources.iter().map(move |used| {
                let place = [("flavor", flavor.name.as_str()), ("resource", used.name.as_str())];
                (labels(queue, &place, role), amount(&used.total))
            })
        })
    })
}

fn state(queue: &LocalQueue) -> &str {
    let mut conditions = queue.status.iter().flat_map(|status| &status.conditions);
    let active = conditions.find(|condition| condition.type_ == "Active");
    active.map_or("Unknown", |condition| condition.status.as_str())
}

fn labels(queue: &LocalQueue, more: &[(&'static str, &str)], role: &str) -> Labels {
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    let own =
        [("name", part(&queue.metadata.name)), ("namespace", part(&queue.metadata.namespace))];
    let more = more.iter().map(|(key, value)| (*key, (*value).to_owned()));
    own.into_iter().chain(more).chain([("replica_role", role.to_owned())]).collect()
}
