//! What is known of a workload.

use std::{cmp::Reverse, collections::BTreeSet, sync::Arc};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockstep_api::{
    kueue::{Admission, RequeuingTimestamp, Workload},
    reasons::kueue::{evicted, workload as kinds},
};

use super::{
    Settings, Why,
    additions::Additions,
    amount::{self, Amounts, FlavorResource},
    conditions,
    ledger::{Held, Standing},
    pending::Rank,
    request::{self, Need, Request},
    wait::Scope,
};
use crate::plan::Key;

/// What is known of a workload.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub object: Arc<Workload>,
    pub uid: String,
    pub version: u64,
    pub needs: Arc<Vec<Need>>,
    /// What is wrong with them.
    pub fault: Option<String>,
    /// The same for all that fit and fail alike.
    pub class: Arc<str>,
    pub place: Place,
    /// The LocalQueue it is counted in.
    pub local: Key,
    /// What was decided and has not been answered.
    pub flight: Option<Flight>,
    pub verdict: Option<Verdict>,
    /// When it is looked at again.
    pub timer: Option<Timestamp>,
    /// When a change of words only is written.
    pub words_at: Option<Timestamp>,
    /// Not tried before then, because the API did not take what was decided.
    pub refused_until: Option<Timestamp>,
    /// Whether it was to give way and the API did not take that.
    pub wakes_others: bool,
}

/// Where a workload stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Place {
    /// It is over, or never was here.
    Away,
    /// It holds quota.
    Holding(Holding),
    /// It waits and may be tried.
    Queued { queue: Arc<str>, rank: Arc<Rank>, class: Arc<str> },
    /// It waits and may not be tried. In a queue it counts as one that waits there.
    Out { queue: Option<Arc<str>> },
}

/// What a workload holds, and among whom it counts as not ready.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Holding {
    pub queue: Arc<str>,
    pub held: Held,
    pub unready: BTreeSet<Scope>,
}

impl Holding {
    /// Whether as much is held of the same queue, whatever else has changed.
    pub(super) fn holds_as(&self, other: &Self) -> bool {
        let (held, others) = (&self.held, &other.held);
        self.queue == other.queue
            && held.usage == others.usage
            && held.is_admitted == others.is_admitted
    }
}

/// What was decided and has not been answered.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    pub id: u64,
    /// When it was decided, and on which version.
    pub at: Timestamp,
    pub version: u64,
    pub kind: FlightKind,
}

impl Flight {
    pub(super) fn new(id: u64, version: u64, kind: FlightKind, at: Timestamp) -> Self {
        Self { id, at, version, kind }
    }
}

#[derive(Clone, Debug)]
pub(super) enum FlightKind {
    Admit(Arc<Admission>),
    Evict,
    Pend,
}

/// Why a workload waits, in all the words there are for it.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    /// Reason and message of `QuotaReserved`; as it is if there are none.
    pub quota: Option<(&'static str, String)>,
    pub why: Arc<Why>,
    pub found: Found,
    /// How many came before it, if not too many, and how many waited in all.
    pub position: Option<(Option<usize>, usize)>,
}

/// How it was found out why a workload waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// It was tried: what it asked for is shown.
    Tried,
    /// One that is like it was tried. Where it has been told the same already, its own words say
    /// more than ours.
    Alike,
    /// Nobody was tried.
    Untried,
}

impl Entry {
    pub(super) fn new(object: &Arc<Workload>, settings: &Settings, additions: &Additions) -> Self {
        let Request { needs, fault } = request::of(object, settings, additions);
        Self {
            uid: object.metadata.uid.clone().unwrap_or_default(),
            version: version(&object.metadata),
            class: class(object, &needs),
            needs: Arc::new(needs),
            fault,
            object: Arc::clone(object),
            place: Place::Away,
            local: local_queue(object),
            flight: None,
            verdict: None,
            timer: None,
            words_at: None,
            refused_until: None,
            wakes_others: false,
        }
    }

    /// Takes a newer version.
    pub(super) fn renew(
        &mut self,
        object: &Arc<Workload>,
        settings: &Settings,
        additions: &Additions,
    ) {
        let (old, new) = (&self.object, object);
        let reclaimable = |it: &Workload| it.status.as_ref().map(|it| it.reclaimable_pods.clone());
        let asks_else = old.spec != new.spec
            || reclaimable(old).unwrap_or_default() != reclaimable(new).unwrap_or_default();
        self.version = version(&object.metadata);
        self.object = Arc::clone(object);
        if asks_else {
            self.ask(settings, additions);
        }
    }

    /// Counts anew what it asks for; whether that is something else.
    pub(super) fn ask(&mut self, settings: &Settings, additions: &Additions) -> bool {
        let Request { needs, fault } = request::of(&self.object, settings, additions);
        let is_news = needs != *self.needs || fault != self.fault;
        self.class = class(&self.object, &needs);
        (self.needs, self.fault) = (Arc::new(needs), fault);
        is_news
    }

    pub(super) fn priority(&self) -> i32 {
        self.object.spec.priority.unwrap_or(0)
    }

    /// Whether it was told to go and has not come back. One that is about to be admitted has: what
    /// its conditions say is about the time before.
    pub(super) fn is_evicted(&self) -> bool {
        match self.flight.as_ref().map(|flight| &flight.kind) {
            Some(FlightKind::Evict) => true,
            Some(FlightKind::Admit(_)) => false,
            Some(FlightKind::Pend) | None => conditions::is_true(&self.object, kinds::EVICTED),
        }
    }

    pub(super) fn is_admitting(&self) -> bool {
        matches!(&self.flight, Some(flight) if matches!(flight.kind, FlightKind::Admit(_)))
    }

    /// The admission it has, or is about to have.
    pub(super) fn admission(&self) -> Option<&Admission> {
        if let Some(Flight { kind: FlightKind::Admit(admission), .. }) = &self.flight {
            return Some(admission);
        }
        let status = self.object.status.as_ref()?;
        status.admission.as_ref().filter(|_| holds_quota(&self.object))
    }

    /// Its place in its queue.
    pub(super) fn rank(&self, by: RequeuingTimestamp) -> Rank {
        Rank {
            priority: Reverse(self.priority()),
            at: queued_at(&self.object, by),
            uid: self.uid.clone(),
            key: Key::of(&self.object.metadata),
        }
    }

    /// Where it stands among those who hold something.
    pub(super) fn standing(&self, key: &Key) -> Standing {
        let reserved = conditions::of(&self.object, kinds::QUOTA_RESERVED);
        let reserved = reserved.filter(|it| it.status == "True");
        // One whose admission is still being written is the most recent of all.
        let reserved_at = reserved.map_or(Timestamp::MAX, |it| it.last_transition_time.0);
        Standing {
            priority: self.priority(),
            reserved_at: Reverse(reserved_at),
            uid: self.uid.clone(),
            key: key.clone(),
        }
    }

    /// Why it waits.
    pub(super) fn why(&self) -> Option<&Why> {
        self.verdict.as_ref().map(|verdict| &*verdict.why)
    }
}

/// The LocalQueue a workload waits in.
pub(super) fn local_queue(workload: &Workload) -> Key {
    Key {
        namespace: workload.metadata.namespace.clone().unwrap_or_default(),
        name: workload.spec.queue_name.clone(),
    }
}

/// Whether quota is reserved for a workload.
pub(super) fn holds_quota(workload: &Workload) -> bool {
    conditions::is_true(workload, kinds::QUOTA_RESERVED)
        && workload.status.as_ref().is_some_and(|status| status.admission.is_some())
}

/// The time by which a workload stands in its queue.
pub(super) fn queued_at(workload: &Workload, by: RequeuingTimestamp) -> Timestamp {
    if let Some(condition) = conditions::of(workload, kinds::EVICTED)
        && condition.status == "True"
    {
        let counts = condition.reason == evicted::ADMISSION_CHECK
            || condition.reason == evicted::PODS_READY_TIMEOUT
                && by == RequeuingTimestamp::Eviction;
        if counts {
            return condition.last_transition_time.0;
        }
    }
    created_at(workload)
}

pub(super) fn created_at(workload: &Workload) -> Timestamp {
    workload.metadata.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |at| at.0)
}

/// What an admission uses. Pods that were not needed any more when it was made are not in it; those
/// that are not needed since then are taken off.
pub(super) fn usage(workload: &Workload, admission: &Admission) -> Amounts {
    let mut usage = Amounts::new();
    for set in &admission.pod_set_assignments {
        let spec = workload.spec.pod_sets.iter().find(|it| it.name == set.name);
        let count = set.count.or_else(|| spec.map(|it| it.count)).map_or(0, i64::from);
        let needed = spec.map_or(count, |spec| {
            i64::from(spec.count).saturating_sub(request::reclaimable(workload, &set.name))
        });
        let left = needed.min(count).max(0);
        for (resource, quantity) in &set.resource_usage {
            let Some(flavor) = set.flavors.get(resource) else { continue };
            let whole = amount::read(resource, quantity).unwrap_or(0).max(0);
            let amount = if left < count { share(whole, left, count) } else { whole };
            let what = FlavorResource {
                flavor: Arc::from(flavor.as_str()),
                resource: Arc::from(resource.as_str()),
            };
            let sum = usage.entry(what).or_insert(0);
            *sum = sum.saturating_add(amount);
        }
    }
    usage.retain(|_, amount| *amount > 0);
    usage
}

fn share(whole: i64, left: i64, of: i64) -> i64 {
    let part = i128::from(whole) * i128::from(left) / i128::from(of.max(1));
    i64::try_from(part).unwrap_or(i64::MAX)
}

/// All that decides whether a workload fits, as text.
fn class(workload: &Workload, needs: &[Need]) -> Arc<str> {
    let sets = workload.spec.pod_sets.iter().zip(needs).map(|(set, need)| {
        let resources: Vec<(&str, i64)> =
            need.resources.iter().map(|(name, amount)| (&**name, *amount)).collect();
        let spec = set.template.spec.as_ref();
        let spec = spec.map(|it| (&it.node_selector, &it.affinity, &it.tolerations));
        (need.count, resources, set.min_count, &set.topology_request, spec)
    });
    let gates = workload.spec.preemption_gates.len();
    let shown = (workload.spec.priority.unwrap_or(0), gates, sets.collect::<Vec<_>>());
    Arc::from(serde_json::to_string(&shown).unwrap_or_default())
}

/// The version of an object as a number. Versions of one kind are ordered.
pub(super) fn version(meta: &ObjectMeta) -> u64 {
    meta.resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn evicted(reason: &str) -> Workload {
        let condition = |kind: &str, reason: &str| {
            json!({"type": kind, "status": "True", "reason": reason, "message": "",
                   "lastTransitionTime": "2026-01-01T00:01:00Z"})
        };
        serde_json::from_value(json!({
            "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"},
            "status": {"conditions": [condition("Evicted", reason)]}
        }))
        .unwrap()
    }

    // rule: queueing 2.8.2
    #[test]
    fn only_some_evictions_move_a_workload_back() {
        use RequeuingTimestamp::{Creation, Eviction};
        let cases = [
            ("PodsReadyTimeout", Eviction, 60),
            ("PodsReadyTimeout", Creation, 0),
            ("AdmissionCheck", Eviction, 60),
            ("AdmissionCheck", Creation, 60),
            ("Preempted", Eviction, 0),
        ];
        let created = created_at(&evicted(""));
        for (reason, by, want) in cases {
            let at = queued_at(&evicted(reason), by);
            assert_eq!(at.duration_since(created).as_secs(), want, "{reason} {by:?}");
        }
    }

    #[test]
    fn pods_that_are_not_needed_any_more_use_nothing() {
        let read = |value: Value| -> Workload { serde_json::from_value(value).unwrap() };
        // Of four: how many were admitted, how many are not needed, what is used. Those that were
        // not needed already are not among those that were admitted.
        let cases = [
            (4, 0, 4000),
            (4, 1, 3000),
            (4, 4, 0),
            (4, 9, 0),
            (3, 1, 3000),
            (3, 2, 2000),
            (2, 1, 2000),
        ];
        for (admitted, reclaimable, want) in cases {
            let workload = read(json!({
                "spec": {"podSets": [{"name": "main", "count": 4}]},
                "status": {"reclaimablePods": [{"name": "main", "count": reclaimable}],
                    "admission": {"clusterQueue": "q", "podSetAssignments": [{"name": "main",
                        "flavors": {"cpu": "f"}, "count": admitted,
                        "resourceUsage": {"cpu": admitted.to_string()}}]}}
            }));
            let admission = workload.status.as_ref().unwrap().admission.as_ref().unwrap();
            let got = usage(&workload, admission).values().sum::<i64>();
            assert_eq!(got, want, "{admitted} {reclaimable}");
        }
    }
}
