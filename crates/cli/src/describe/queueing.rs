//! Workloads, ClusterQueues and LocalQueues in full.

use lockstep_api::duration::human;
use serde_json::Value;

use super::{
    job::selector,
    moment, object_head, of_pod, owner,
    template::list,
    text::{Text, or_none, scalar},
};
use crate::{
    queueing::{
        self,
        queue::{ClusterQueue, Counts, LocalQueue},
        times,
        workload::{State, Workload},
    },
    table::pairs,
};

/// Describes a Workload, up to its events.
pub(super) fn workload(object: &Value, text: &mut Text) {
    let (spec, status) = (&object["spec"], &object["status"]);
    let workload = Workload::read(object);
    object_head(object, text);
    owner(&object["metadata"], text);
    text.field(0, "Created At", moment(&object["metadata"]["creationTimestamp"]));
    text.field(0, "State", workload.state().word());
    text.field(0, "Local Queue", or_none(&spec["queueName"]));
    if !workload.cluster_queue.is_empty() {
        text.field(0, "Cluster Queue", &workload.cluster_queue);
    }
    text.field(0, "Priority", workload.priority.to_string());
    let class = match scalar(&spec["priorityClassRef"]["name"]) {
        name if name.is_empty() => scalar(&spec["priorityClassName"]),
        name => format!("{} ({})", name, scalar(&spec["priorityClassRef"]["kind"])),
    };
    text.known(0, "Priority Class", &Value::String(class));
    text.field(0, "Active", workload.is_active.to_string());
    if let Some(seconds) = spec["maximumExecutionTimeSeconds"].as_i64() {
        let past = status["accumulatedPastExecutionTimeSeconds"].as_i64().unwrap_or_default();
        let shown = format!("{}, {} used before", human(seconds), human(past));
        text.field(0, "May Run For", shown);
    }
    if workload.state() == State::Pending {
        let why = workload.waiting();
        text.field(0, "Waiting", queueing::words(&why.reason, &why.message));
        text.known(0, "To Go On", &why.change.map_or(Value::Null, Value::String));
    }
    if workload.state() == State::Deactivated {
        text.field(0, "To Go On", workload.reactivation());
    }
    requeue(status, text);
    pod_sets(spec, status, text);
    checks(&status["admissionChecks"], text);
    evictions(&workload, text);
    conditions(status, text);
}

fn requeue(status: &Value, text: &mut Text) {
    let state = &status["requeueState"];
    if !state.is_object() {
        return;
    }
    text.line(0, "Requeue State:");
    text.field(1, "Count", state["count"].as_i64().unwrap_or_default().to_string());
    if state["requeueAt"].is_string() {
        text.field(1, "Tried Again At", moment(&state["requeueAt"]));
    }
}

/// Each pod set: how many pods, what all of them ask for, and what they were given.
fn pod_sets(spec: &Value, status: &Value, text: &mut Text) {
    text.end_block();
    text.line(0, "Pod Sets:");
    text.line(1, "Name\tPods\tReclaimable\tAsk For\tGiven");
    text.line(1, "----\t----\t-----------\t-------\t-----");
    for set in list(&spec["podSets"]) {
        let count = set["count"].as_i64().unwrap_or(1);
        let asked = of_pod(&set["template"], "requests");
        let asked: Vec<(String, _)> =
            asked.iter().map(|(of, each)| (of.clone(), times(each, count))).collect();
        let asked = queueing::list(asked.iter().map(|(of, all)| (of, all)));
        let given = list(&status["admission"]["podSetAssignments"]);
        let given = given.iter().find(|given| given["name"] == set["name"]).map(given_words);
        let free = list(&status["reclaimablePods"]);
        let free = free.iter().find(|free| free["name"] == set["name"]);
        let cells = [
            scalar(&set["name"]),
            count.to_string(),
            free.map_or_else(|| "0".to_owned(), |free| scalar(&free["count"])),
            if asked.is_empty() { "<none>".to_owned() } else { asked },
            given.unwrap_or_else(|| "<none>".to_owned()),
        ];
        text.line(1, &cells.join("\t"));
    }
    text.end_block();
}

/// `4 cpu of spot, 4Gi memory of spot`.
fn given_words(given: &Value) -> String {
    let usage = given["resourceUsage"].as_object().into_iter().flatten();
    let words: Vec<String> = usage
        .map(|(resource, amount)| {
            format!("{} {resource} of {}", scalar(amount), or_none(&given["flavors"][resource]))
        })
        .collect();
    if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
}

fn checks(checks: &Value, text: &mut Text) {
    if list(checks).is_empty() {
        return;
    }
    text.line(0, "Admission Checks:");
    text.line(1, "Name\tState\tMessage");
    text.line(1, "----\t-----\t-------");
    for check in list(checks) {
        let cells = ["name", "state", "message"].map(|field| scalar(&check[field]));
        text.line(1, &cells.join("\t"));
    }
}

fn evictions(workload: &Workload, text: &mut Text) {
    if workload.evictions.is_empty() {
        return;
    }
    text.line(0, "Evictions:");
    text.line(1, "Reason\tCause\tCount");
    text.line(1, "------\t-----\t-----");
    for one in &workload.evictions {
        let cause = if one.cause.is_empty() { "<none>" } else { &one.cause };
        text.line(1, &format!("{}\t{cause}\t{}", one.reason, one.count));
    }
}

/// Describes a ClusterQueue and the LocalQueues that lead to it, up to its events.
pub(super) fn cluster_queue(object: &Value, doors: &[Value], text: &mut Text) {
    let spec = &object["spec"];
    let queue = ClusterQueue::read(object);
    object_head(object, text);
    text.field(0, "Created At", moment(&object["metadata"]["creationTimestamp"]));
    text.field(0, "Active", active(queue.fault(), queue.active.is_some()));
    text.field(0, "Cohort", if queue.cohort.is_empty() { "<none>" } else { &queue.cohort });
    text.known(0, "Queueing Strategy", &spec["queueingStrategy"]);
    text.known(0, "Stop Policy", &spec["stopPolicy"]);
    text.field(0, "Namespaces", namespaces(&spec["namespaceSelector"]));
    let preemption = &spec["preemption"];
    if preemption.is_object() {
        text.line(0, "Preemption:");
        text.known(1, "Within Cluster Queue", &preemption["withinClusterQueue"]);
        text.known(1, "Reclaim Within Cohort", &preemption["reclaimWithinCohort"]);
        text.known(1, "Borrow Within Cohort", &preemption["borrowWithinCohort"]["policy"]);
    }
    counts(queue.counts, text);
    text.end_block();
    text.line(0, "Quota:");
    text.line(1, "Flavor\tResource\tNominal\tBorrowing Limit\tUsed\tBorrowed");
    text.line(1, "------\t--------\t-------\t---------------\t----\t--------");
    for quota in &queue.quotas {
        let limit = quota.borrowing_limit.map(|limit| limit.to_string());
        let cells = [
            quota.flavor.clone(),
            quota.resource.clone(),
            quota.nominal.to_string(),
            limit.unwrap_or_else(|| "<none>".to_owned()),
            quota.used.to_string(),
            quota.borrowed.to_string(),
        ];
        text.line(1, &cells.join("\t"));
    }
    text.end_block();
    let doors = doors.iter().map(LocalQueue::read).filter(|it| it.cluster_queue == queue.name);
    let doors: Vec<String> = doors
        .map(|it| {
            let Counts { pending, admitted, .. } = it.counts;
            format!("{}/{} ({pending} pending, {admitted} admitted)", it.namespace, it.name)
        })
        .collect();
    text.list(0, "Local Queues", &doors);
    conditions(&object["status"], text);
}

/// Describes a LocalQueue, up to its events.
pub(super) fn local_queue(object: &Value, text: &mut Text) {
    let queue = LocalQueue::read(object);
    object_head(object, text);
    text.field(0, "Created At", moment(&object["metadata"]["creationTimestamp"]));
    text.field(0, "Active", active(queue.fault(), queue.active.is_some()));
    text.field(0, "Cluster Queue", &queue.cluster_queue);
    text.known(0, "Stop Policy", &object["spec"]["stopPolicy"]);
    counts(queue.counts, text);
    text.end_block();
    if !queue.used.is_empty() {
        text.line(0, "Usage:");
        text.line(1, "Flavor\tResource\tUsed");
        text.line(1, "------\t--------\t----");
        for (flavor, resource, used) in &queue.used {
            text.line(1, &format!("{flavor}\t{resource}\t{used}"));
        }
        text.end_block();
    }
    conditions(&object["status"], text);
}

/// Describes a ResourceFlavor, up to its events.
pub(super) fn resource_flavor(object: &Value, text: &mut Text) {
    let spec = &object["spec"];
    object_head(object, text);
    text.field(0, "Node Labels", pairs(&spec["nodeLabels"]));
    let taints = list(&spec["nodeTaints"]).iter().map(super::node::taint);
    text.list(0, "Node Taints", &taints.collect::<Vec<_>>());
    let tolerations = list(&spec["tolerations"]).iter().map(|one| {
        let value = scalar(&one["value"]);
        let value = if value.is_empty() { value } else { format!("={value}") };
        format!("{}{value}:{}", scalar(&one["key"]), scalar(&one["effect"]))
    });
    text.list(0, "Tolerations", &tolerations.collect::<Vec<_>>());
    text.known(0, "Topology", &spec["topologyName"]);
}

fn active(fault: Option<String>, is_known: bool) -> String {
    match fault {
        Some(why) => format!("no ({why})"),
        None if is_known => "yes".to_owned(),
        None => "<unknown>".to_owned(),
    }
}

/// Of which namespaces a ClusterQueue takes jobs.
fn namespaces(chosen: &Value) -> String {
    match selector(chosen) {
        _ if chosen.is_null() => "none (no namespaceSelector)".to_owned(),
        all if all.is_empty() => "all".to_owned(),
        some => some,
    }
}

fn counts(counts: Counts, text: &mut Text) {
    text.field(0, "Pending Workloads", counts.pending.to_string());
    text.field(0, "Reserving Workloads", counts.reserving.to_string());
    text.field(0, "Admitted Workloads", counts.admitted.to_string());
}

fn conditions(status: &Value, text: &mut Text) {
    if list(&status["conditions"]).is_empty() {
        return;
    }
    text.end_block();
    text.line(0, "Conditions:");
    text.line(1, "Type\tStatus\tSince\tReason\tMessage");
    text.line(1, "----\t------\t-----\t------\t-------");
    for condition in list(&status["conditions"]) {
        let cells = [
            scalar(&condition["type"]),
            scalar(&condition["status"]),
            moment(&condition["lastTransitionTime"]),
            scalar(&condition["reason"]),
            scalar(&condition["message"]).replace('\n', "; "),
        ];
        text.line(1, &cells.join("\t"));
    }
    text.end_block();
}
