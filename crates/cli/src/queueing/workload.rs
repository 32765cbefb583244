//! One Workload: where it stands, what it waits for, what it holds.

#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;

use jiff::Timestamp;
use lockstep_api::{
    kueue::wait::Overrides,
    quantity::Quantity,
    reasons::kueue::{
        evicted::PODS_READY_TIMEOUT,
        pods_ready::WAIT_FOR_RECOVERY,
        quota_reserved, waiting,
        workload::{ADMITTED, EVICTED, FINISHED, PODS_READY, QUOTA_RESERVED, REQUEUED, WAITING},
    },
};
use serde_json::Value;

use super::{
    Amounts, Said,
    advice::{advice, advice_in_files},
    amount, conditions, moment, overrides, times,
};
use crate::describe::{of_pod, text::scalar};

/// Where a Workload stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It has ended.
    Finished,
    /// It was evicted, and what is left of it is being stopped.
    Stopping,
    /// Nobody will start it before it is made active again.
    Deactivated,
    /// It waits in its queue.
    Pending,
    /// It has quota, and something else is to happen before it may run.
    Reserved,
    /// It may run, and its pods have never all been ready since.
    Starting,
    /// It runs, and pods that were ready are not.
    Recovering,
    /// It runs, and all its pods are ready.
    Running,
    /// It may run, and nobody counts its pods.
    Admitted,
}

impl State {
    /// The word for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Finished => "Finished",
            Self::Stopping => "Stopping",
            Self::Deactivated => "Deactivated",
            Self::Pending => "Pending",
            Self::Reserved => "QuotaReserved",
            Self::Starting => "Starting",
            Self::Recovering => "Recovering",
            Self::Running => "Running",
            Self::Admitted => "Admitted",
        }
    }
}

/// What a Workload is of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owner {
    /// `Job`, `JobSet`, or another kind.
    pub(crate) kind: String,
    /// Its name.
    pub(crate) name: String,
    /// Its uid.
    pub(crate) uid: String,
}

/// Why a Workload waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waiting {
    /// In a word.
    pub(crate) reason: String,
    /// With the numbers.
    pub(crate) message: String,
    /// The smallest change that would let it go on, if the server names one.
    pub(crate) change: Option<String>,
}

/// How often a Workload was evicted for one cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Evictions {
    /// Why.
    pub(crate) reason: String,
    /// Why exactly, where that is more.
    pub(crate) cause: String,
    /// How often.
    pub(crate) count: i64,
}

/// A Workload as it was last seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Workload {
    /// Its namespace.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
    /// Its uid.
    pub(crate) uid: String,
    /// What it is of.
    pub(crate) owner: Option<Owner>,
    /// The LocalQueue it is to wait in.
    pub(crate) queue: String,
    /// How important it is.
    pub(crate) priority: i64,
    /// Whether it may be started at all.
    pub(crate) is_active: bool,
    /// When it was made.
    pub(crate) created: Option<Timestamp>,
    /// The ClusterQueue it has quota in; empty while it has none.
    pub(crate) cluster_queue: String,
    /// What it holds.
    pub(crate) held: Amounts,
    /// What it asks for, by resource.
    pub(crate) asked: BTreeMap<String, Quantity>,
    /// How many pods each of its pod sets has.
    pub(crate) pod_sets: Vec<(String, i64)>,
    /// How often it came back into its queue after its pods were not ready in time.
    pub(crate) requeues: i64,
    /// When it may be tried again.
    pub(crate) retry_at: Option<Timestamp>,
    /// What it says itself of how long its pods may take.
    pub(crate) overrides: Overrides,
    /// How often it was evicted for what.
    pub(crate) evictions: Vec<Evictions>,
    /// What is said of it.
    pub(crate) conditions: BTreeMap<String, Said>,
}

impl Workload {
    /// Reads a Workload of either version.
    pub(crate) fn read(object: &Value) -> Self {
        let (meta, spec, status) = (&object["metadata"], &object["spec"], &object["status"]);
        let all = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let count = |value: &Value| value.as_i64().unwrap_or_default();
        let owners = all(&meta["ownerReferences"]);
        let owner = owners.iter().find(|owner| owner["controller"] == true);
        let evictions = all(&status["schedulingStats"]["evictions"]).into_iter();
        let pod_sets = all(&spec["podSets"]);
        Self {
            namespace: scalar(&meta["namespace"]),
            name: scalar(&meta["name"]),
            uid: scalar(&meta["uid"]),
            owner: owner.map(|owner| Owner {
                kind: scalar(&owner["kind"]),
                name: scalar(&owner["name"]),
                uid: scalar(&owner["uid"]),
            }),
            queue: scalar(&spec["queueName"]),
            priority: count(&spec["priority"]),
            is_active: spec["active"] != false,
            created: moment(&meta["creationTimestamp"]),
            cluster_queue: scalar(&status["admission"]["clusterQueue"]),
            held: held(&status["admission"]),
            asked: asked(status, &pod_sets),
            pod_sets: pod_sets
                .iter()
                .map(|set| (scalar(&set["name"]), set["count"].as_i64().unwrap_or(1)))
                .collect(),
            requeues: count(&status["requeueState"]["count"]),
            retry_at: moment(&status["requeueState"]["requeueAt"]),
            overrides: overrides(object),
            evictions: evictions
                .map(|one| Evictions {
                    reason: scalar(&one["reason"]),
                    cause: scalar(&one["underlyingCause"]),
                    count: count(&one["count"]),
                })
                .collect(),
            conditions: conditions(status),
        }
    }

    /// What a condition says, if it is true.
    pub(crate) fn is(&self, kind: &str) -> Option<&Said> {
        self.conditions.get(kind).filter(|said| said.is_true)
    }

    /// Where it stands.
    pub(crate) fn state(&self) -> State {
        let ready = self.conditions.get(PODS_READY);
        if self.is(FINISHED).is_some() {
            State::Finished
        } else if self.is(EVICTED).is_some() && self.is(QUOTA_RESERVED).is_some() {
            State::Stopping
        } else if !self.is_active {
            State::Deactivated
        } else if self.is(ADMITTED).is_some() {
            match ready {
                None => State::Admitted,
                Some(ready) if ready.is_true => State::Running,
                Some(ready) if ready.reason == WAIT_FOR_RECOVERY => State::Recovering,
                Some(_) => State::Starting,
            }
        } else if self.is(QUOTA_RESERVED).is_some() {
            State::Reserved
        } else {
            State::Pending
        }
    }

    /// Why it waits: our own condition, or what Kueue says. A second line of ours is the smallest
    /// change that would help.
    pub(crate) fn waiting(&self) -> Waiting {
        if let Some(ours) = self.is(WAITING) {
            let (message, change) = match ours.message.split_once('\n') {
                Some((message, change)) => (message, Some(change.to_owned())),
                None => (ours.message.as_str(), None),
            };
            return Waiting { reason: ours.reason.clone(), message: message.to_owned(), change };
        }
        match self.conditions.get(QUOTA_RESERVED).filter(|said| !said.is_true) {
            Some(said) => {
                Waiting { reason: said.reason.clone(), message: said.message.clone(), change: None }
            }
            None => Waiting {
                reason: quota_reserved::PENDING_EVALUATION.to_owned(),
                message: "nobody has looked at it yet".to_owned(),
                change: None,
            },
        }
    }

    /// What would let it go on: what the server names, or what is known to help.
    pub(crate) fn remedy(&self, cluster_queue: Option<&str>) -> Option<String> {
        let why = self.waiting();
        why.change.or_else(|| advice(&why.reason, self, cluster_queue))
    }

    /// The same in a cluster that ends with its run: what can be changed there is what is run.
    pub(crate) fn remedy_in_files(&self) -> Option<String> {
        advice_in_files(&self.waiting().reason, self)
    }

    /// Whether it waits for what does not come by itself: somebody has to change something.
    pub(crate) fn waits_in_vain(&self) -> bool {
        matches!(
            self.waiting().reason.as_str(),
            waiting::NEVER_FITS
                | waiting::NO_MATCHING_FLAVOR
                | waiting::QUEUE_MISSING
                | waiting::QUEUE_STOPPED
                | waiting::QUEUE_INACTIVE
                | waiting::NAMESPACE_MISMATCH
                | waiting::GATED
                | waiting::ON_HOLD
                | waiting::INVALID_REQUESTS
                | quota_reserved::EXCEEDS_MAX_QUOTA
                | quota_reserved::MISCONFIGURED
                | quota_reserved::SUSPENDED
                | quota_reserved::ADMISSION_GATED
        )
    }

    /// Whether it stands in line in its queue: one that may not be tried yet has no place there.
    pub(crate) fn is_in_line(&self) -> bool {
        let put_off = self.conditions.get(REQUEUED).is_some_and(|said| !said.is_true);
        let is_out = matches!(
            self.waiting().reason.as_str(),
            waiting::QUEUE_MISSING
                | waiting::QUEUE_STOPPED
                | waiting::QUEUE_INACTIVE
                | waiting::NAMESPACE_MISMATCH
                | waiting::BACK_OFF
                | waiting::NOT_REQUEUED
                | waiting::GATED
                | waiting::ON_HOLD
                | waiting::INVALID_REQUESTS
                | quota_reserved::MISCONFIGURED
                | quota_reserved::SUSPENDED
                | quota_reserved::ADMISSION_GATED
        );
        self.state() == State::Pending && !put_off && !is_out
    }

    /// Whether it stands in its queue before `other`.
    pub(crate) fn is_before(&self, other: &Self) -> bool {
        let key = |it: &Self| (std::cmp::Reverse(it.priority), it.queued_at(), it.uid.clone());
        key(self) < key(other)
    }

    /// The time by which it stands in its queue: those whose pods were not ready in time start over
    /// at the end.
    fn queued_at(&self) -> Option<Timestamp> {
        let late = self.is(EVICTED).filter(|said| said.reason == PODS_READY_TIMEOUT);
        late.and_then(|said| said.since).or(self.created)
    }

    /// Why it was evicted last; `Requeued` remembers that until it is tried again.
    pub(crate) fn evicted(&self) -> Option<&Said> {
        let put_off = self.conditions.get(REQUEUED).filter(|said| !said.is_true);
        self.is(EVICTED).or(put_off)
    }

    /// How often it was evicted, by cause: `PodsReadyTimeout (WaitForStart) 2 times`.
    pub(crate) fn evictions_words(&self) -> Option<String> {
        let words = self.evictions.iter().map(|one| {
            let cause = match one.cause.as_str() {
                "" => String::new(),
                cause => format!(" ({cause})"),
            };
            let often =
                if one.count == 1 { "once".to_owned() } else { format!("{} times", one.count) };
            format!("{often} for {}{cause}", one.reason)
        });
        let words: Vec<String> = words.collect();
        (!words.is_empty()).then(|| words.join(", "))
    }

    /// The command that lets it go on after it was deactivated.
    pub(crate) fn reactivation(&self) -> String {
        format!(
            "kubectl patch workloads.kueue.x-k8s.io {} -n {} --type=merge -p '{{\"spec\":{{\"active\":true}}}}'",
            self.name, self.namespace
        )
    }

    /// What it is of, in the words of the command line: `job/train`.
    pub(crate) fn what(&self) -> String {
        match &self.owner {
            Some(owner) => format!("{}/{}", owner.kind.to_lowercase(), owner.name),
            None => format!("workload/{}", self.name),
        }
    }
}

/// What an admission gives, by flavor and resource.
fn held(admission: &Value) -> Amounts {
    let mut held = Amounts::new();
    for set in admission["podSetAssignments"].as_array().into_iter().flatten() {
        for (resource, given) in set["resourceUsage"].as_object().into_iter().flatten() {
            let flavor = scalar(&set["flavors"][resource]);
            let known = held.entry((flavor, resource.clone())).or_insert(Quantity::ZERO);
            *known = known.plus(&amount(given));
        }
    }
    held
}

/// What is asked for: what the scheduler counted, or what the pods say.
fn asked(status: &Value, pod_sets: &[Value]) -> BTreeMap<String, Quantity> {
    let mut asked: BTreeMap<String, Quantity> = BTreeMap::new();
    let mut add = |resource: &str, more: Quantity| {
        let known = asked.entry(resource.to_owned()).or_insert(Quantity::ZERO);
        *known = known.plus(&more);
    };
    let counted = status["resourceRequests"].as_array().filter(|counted| !counted.is_empty());
    for set in counted.into_iter().flatten() {
        for (resource, given) in set["resources"].as_object().into_iter().flatten() {
            add(resource, amount(given));
        }
    }
    if counted.is_none() {
        for set in pod_sets {
            let count = set["count"].as_i64().unwrap_or(1);
            for (resource, each) in of_pod(&set["template"], "requests") {
                add(&resource, times(&each, count));
            }
        }
    }
    asked.retain(|_, amount| !amount.is_zero());
    asked
}
