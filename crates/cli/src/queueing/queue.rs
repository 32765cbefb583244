//! ClusterQueues and LocalQueues: what they have, what is used, whether they admit anybody.

use lockstep_api::{
    kueue::wait::Overrides,
    quantity::Quantity,
    reasons::kueue::queue::{ACTIVE, CLUSTER_QUEUE_DOES_NOT_EXIST},
};
use serde_json::{Value, json};

use super::{Said, amount, conditions, overrides};
use crate::describe::text::scalar;

/// How many Workloads a queue has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Those that wait.
    pub(crate) pending: i64,
    /// Those that have quota.
    pub(crate) reserving: i64,
    /// Those that may run.
    pub(crate) admitted: i64,
}

impl Counts {
    fn read(status: &Value) -> Self {
        let count = |field: &str| status[field].as_i64().unwrap_or_default();
        Self {
            pending: count("pendingWorkloads"),
            reserving: count("reservingWorkloads"),
            admitted: count("admittedWorkloads"),
        }
    }

    /// Whether there is nobody.
    pub(crate) fn is_idle(&self) -> bool {
        self.pending == 0 && self.reserving == 0
    }
}

/// What a ClusterQueue has of one resource in one flavor.
#[derive(Clone, Debug)]
pub(crate) struct Quota {
    /// The flavor.
    pub(crate) flavor: String,
    /// The resource.
    pub(crate) resource: String,
    /// What is its own.
    pub(crate) nominal: Quantity,
    /// How much it may borrow beyond that, if that is limited.
    pub(crate) borrowing_limit: Option<Quantity>,
    /// What is given away, borrowed or not.
    pub(crate) used: Quantity,
    /// What of that is borrowed.
    pub(crate) borrowed: Quantity,
}

/// A ClusterQueue as it was last seen.
#[derive(Clone, Debug)]
pub(crate) struct ClusterQueue {
    /// Its name.
    pub(crate) name: String,
    /// The cohort it borrows in; empty for none.
    pub(crate) cohort: String,
    /// Who goes first.
    pub(crate) strategy: String,
    /// Whether it is stopped on purpose.
    pub(crate) stop_policy: String,
    /// Whether it admits anybody; nothing while nobody has looked at it.
    pub(crate) active: Option<Said>,
    /// Who is there.
    pub(crate) counts: Counts,
    /// What it has.
    pub(crate) quotas: Vec<Quota>,
    /// What it says of how long pods may take.
    pub(crate) overrides: Overrides,
}

impl ClusterQueue {
    /// Reads a ClusterQueue of either version.
    pub(crate) fn read(object: &Value) -> Self {
        let (spec, status) = (&object["spec"], &object["status"]);
        let cohort = match scalar(&spec["cohortName"]) {
            new if new.is_empty() => scalar(&spec["cohort"]),
            new => new,
        };
        let mut quotas = Vec::new();
        for group in items(&spec["resourceGroups"]) {
            for flavor in items(&group["flavors"]) {
                for resource in items(&flavor["resources"]) {
                    quotas.push(quota(flavor, resource, status));
                }
            }
        }
        Self {
            name: scalar(&object["metadata"]["name"]),
            cohort,
            strategy: scalar(&spec["queueingStrategy"]),
            stop_policy: scalar(&spec["stopPolicy"]),
            active: conditions(status).remove(ACTIVE),
            counts: Counts::read(status),
            quotas,
            overrides: overrides(object),
        }
    }

    /// One that somebody names and that does not exist.
    pub(crate) fn missing(name: &str) -> Self {
        let said = Said {
            reason: CLUSTER_QUEUE_DOES_NOT_EXIST.to_owned(),
            message: "there is no such ClusterQueue".to_owned(),
            ..Said::default()
        };
        let mut queue = Self::read(&Value::Null);
        name.clone_into(&mut queue.name);
        queue.active = Some(said);
        queue
    }

    /// Why it admits nobody, if that is so.
    pub(crate) fn fault(&self) -> Option<String> {
        fault(self.active.as_ref())
    }

    /// Whether it shares what it has with `other`, which may be itself.
    pub(crate) fn shares_with(&self, other: &Self) -> bool {
        self.name == other.name || (!self.cohort.is_empty() && self.cohort == other.cohort)
    }

    /// It for programs.
    pub(crate) fn json(&self) -> Value {
        let quotas = self.quotas.iter().map(|quota| {
            json!({
                "flavor": quota.flavor,
                "resource": quota.resource,
                "nominalQuota": quota.nominal.to_string(),
                "borrowingLimit": quota.borrowing_limit.map(|limit| limit.to_string()),
                "used": quota.used.to_string(),
                "borrowed": quota.borrowed.to_string(),
            })
        });
        json!({
            "name": self.name,
            "cohort": self.cohort,
            "queueingStrategy": self.strategy,
            "stopPolicy": self.stop_policy,
            "active": active(self.active.as_ref()),
            "pendingWorkloads": self.counts.pending,
            "reservingWorkloads": self.counts.reserving,
            "admittedWorkloads": self.counts.admitted,
            "quotas": quotas.collect::<Vec<_>>(),
        })
    }
}

/// A LocalQueue as it was last seen.
#[derive(Clone, Debug)]
pub(crate) struct LocalQueue {
    /// Its namespace.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
    /// The ClusterQueue it leads to.
    pub(crate) cluster_queue: String,
    /// Whether jobs can be put into it; nothing while nobody has looked at it.
    pub(crate) active: Option<Said>,
    /// Who is there.
    pub(crate) counts: Counts,
    /// What those who came through it use: flavor, resource and amount.
    pub(crate) used: Vec<(String, String, Quantity)>,
    /// What it says of how long pods may take.
    pub(crate) overrides: Overrides,
}

impl LocalQueue {
    /// Reads a LocalQueue of either version.
    pub(crate) fn read(object: &Value) -> Self {
        let (meta, status) = (&object["metadata"], &object["status"]);
        let mut used = Vec::new();
        for flavor in items(&status["flavorsReservation"]) {
            for resource in items(&flavor["resources"]) {
                let names = (scalar(&flavor["name"]), scalar(&resource["name"]));
                used.push((names.0, names.1, amount(&resource["total"])));
            }
        }
        Self {
            namespace: scalar(&meta["namespace"]),
            name: scalar(&meta["name"]),
            cluster_queue: scalar(&object["spec"]["clusterQueue"]),
            active: conditions(status).remove(ACTIVE),
            counts: Counts::read(status),
            used,
            overrides: overrides(object),
        }
    }

    /// Why nothing can be put into it, if that is so.
    pub(crate) fn fault(&self) -> Option<String> {
        fault(self.active.as_ref())
    }

    /// Whether it would admit nobody even if its ClusterQueue did.
    pub(crate) fn has_own_fault(&self) -> bool {
        let of_cluster_queue = ["ClusterQueueIsInactive", "ClusterQueueDoesNotExist"];
        let said = self.active.as_ref().filter(|said| !said.is_true);
        said.is_some_and(|said| !of_cluster_queue.contains(&said.reason.as_str()))
    }

    /// It for programs.
    pub(crate) fn json(&self) -> Value {
        let used = self.used.iter().map(|(flavor, resource, much)| {
            json!({"flavor": flavor, "resource": resource, "used": much.to_string()})
        });
        json!({
            "namespace": self.namespace,
            "name": self.name,
            "active": active(self.active.as_ref()),
            "pendingWorkloads": self.counts.pending,
            "reservingWorkloads": self.counts.reserving,
            "admittedWorkloads": self.counts.admitted,
            "usage": used.collect::<Vec<_>>(),
        })
    }
}

fn quota(flavor: &Value, resource: &Value, status: &Value) -> Quota {
    let used = items(&status["flavorsReservation"])
        .iter()
        .filter(|used| used["name"] == flavor["name"])
        .flat_map(|used| items(&used["resources"]))
        .find(|used| used["name"] == resource["name"]);
    let limit = &resource["borrowingLimit"];
    Quota {
        flavor: scalar(&flavor["name"]),
        resource: scalar(&resource["name"]),
        nominal: amount(&resource["nominalQuota"]),
        borrowing_limit: (!limit.is_null()).then(|| amount(limit)),
        used: used.map_or(Quantity::ZERO, |used| amount(&used["total"])),
        borrowed: used.map_or(Quantity::ZERO, |used| amount(&used["borrowed"])),
    }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn fault(active: Option<&Said>) -> Option<String> {
    active.filter(|said| !said.is_true).map(Said::words)
}

fn active(said: Option<&Said>) -> Value {
    said.map_or(
        Value::Null,
        |said| json!({"status": said.is_true, "reason": said.reason, "message": said.message}),
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// ClusterQueue `pool` of cohort `all`: 8 cpu and 32Gi of flavor `spot`, of which `used` and
    /// 16Gi are used.
    pub(crate) fn cluster_queue(name: &str, used: &str, borrowed: &str) -> Value {
        let usage = |name: &str, total: &str, borrowed: &str| json!({"name": name, "total": total, "borrowed": borrowed});
        json!({"metadata": {"name": name},
            "spec": {"cohortName": "all", "namespaceSelector": {}, "queueingStrategy": "BestEffortFIFO", "stopPolicy": "None",
                "resourceGroups": [{"coveredResources": ["cpu", "memory"], "flavors": [
                    {"name": "spot", "resources": [
                        {"name": "cpu", "nominalQuota": "8", "borrowingLimit": "4"},
                        {"name": "memory", "nominalQuota": "32Gi"}]}]}]},
            "status": {"pendingWorkloads": 3, "reservingWorkloads": 2, "admittedWorkloads": 2,
                "flavorsReservation": [{"name": "spot", "resources": [
                    usage("cpu", used, borrowed), usage("memory", "16Gi", "0")]}],
                "conditions": [{"type": "Active", "status": "True", "reason": "Ready",
                    "message": "Can admit new workloads"}]}})
    }

    /// A LocalQueue of ClusterQueue `cluster`.
    pub(crate) fn local_queue(namespace: &str, name: &str, cluster: &str, pending: i64) -> Value {
        json!({"metadata": {"namespace": namespace, "name": name},
            "spec": {"clusterQueue": cluster},
            "status": {"pendingWorkloads": pending, "reservingWorkloads": pending.min(1),
                "admittedWorkloads": pending.min(1),
                "flavorsReservation": [{"name": "spot", "resources": [
                    {"name": "cpu", "total": "2"}]}],
                "conditions": [{"type": "Active", "status": "True", "reason": "Ready",
                    "message": "Can submit new workloads to localQueue"}]}})
    }

    #[test]
    fn both_versions_are_read() {
        let new = ClusterQueue::read(&cluster_queue("pool", "10", "2"));
        let mut old = cluster_queue("old", "0", "0");
        old["spec"]["cohortName"] = Value::Null;
        old["spec"]["cohort"] = json!("all");
        let old = ClusterQueue::read(&old);
        assert!(new.shares_with(&old) && new.shares_with(&new));
        let cpu = &new.quotas[0];
        let shown = [cpu.nominal, cpu.used, cpu.borrowed].map(|amount| amount.to_string());
        assert_eq!(shown, ["8", "10", "2"]);
        assert_eq!(new.fault(), None);
    }
}
