//! The statuses that decisions come to, and what is told about them.

use std::sync::Arc;

use jiff::Timestamp;
use lockstep_api::{
    kueue::{Admission, EvictionCount, PodSetRequest, Workload, WorkloadStatus},
    labels::kueue::JOB_UID,
    reasons::kueue::{admitted, evicted, preempted, quota_reserved as reasons, workload as kinds},
};

use super::{
    Event, Fact, Write, amount,
    conditions::{self, Said},
    entry::{Entry, Found, Place, Verdict, created_at},
};
use crate::plan::Key;

/// What a write says beside the status.
struct Told {
    events: Vec<Event>,
    elsewhere: Vec<(Key, Event)>,
    fact: Fact,
}

/// A workload is given `admission`, after the flavors `considered`.
pub(super) fn admit(
    entry: &Entry,
    admission: &Admission,
    considered: &str,
    (id, now): (u64, Timestamp),
) -> Write {
    let workload = &entry.object;
    let queue = &admission.cluster_queue;
    let mut status = workload.status.clone().unwrap_or_default();
    let mut say = |kind: &str, is_true: bool, reason: &str, message: &str| {
        let generation = workload.metadata.generation;
        let said = Said { kind, is_true, reason, message, generation };
        conditions::set(&mut status.conditions, &said, now);
    };
    let reserved = format!("Quota reserved in ClusterQueue {queue}");
    say(kinds::QUOTA_RESERVED, true, reasons::RESERVED, &reserved);
    for kind in [kinds::EVICTED, kinds::PREEMPTED] {
        if let Some(old) = conditions::of(workload, kind).filter(|it| it.status == "True") {
            let message = format!("Previously: {}", old.message);
            say(kind, false, reasons::RESERVED, &message);
        }
    }
    let kept_out = conditions::of(workload, kinds::REQUEUED).filter(|it| it.status == "False");
    if let Some((reason, words)) = kept_out.and_then(|it| conditions::restarted(&it.reason)) {
        say(kinds::REQUEUED, true, reason, words);
    }
    say(kinds::ADMITTED, true, admitted::ADMITTED, "The workload is admitted");
    conditions::remove(&mut status.conditions, kinds::WAITING);
    status.admission = Some(admission.clone());
    status.resource_requests.clear();
    let waited = waited_seconds(workload, now);
    let mut told = format!("{reserved}, wait time since queued was {waited}s");
    if !considered.is_empty() {
        told = format!("{told}; Flavors considered: {considered}");
    }
    let events = vec![
        Event::normal(reasons::RESERVED, conditions::event_message(&told)),
        Event::normal(
            admitted::ADMITTED,
            format!("Admitted by ClusterQueue {queue}, wait time since reservation was 0s"),
        ),
    ];
    let fact = Fact::Admitted { cluster_queue: queue.clone(), waited_seconds: waited };
    write(entry, id, status, Told { events, elsewhere: Vec::new(), fact })
}

/// For how long a workload has waited.
fn waited_seconds(workload: &Workload, now: Timestamp) -> i64 {
    let requeued = conditions::of(workload, kinds::REQUEUED).map(|it| it.last_transition_time.0);
    let since = requeued.unwrap_or_else(|| created_at(workload));
    now.duration_since(since).as_secs().max(0)
}

/// Somebody that a workload gives way to, or the workload itself.
pub(super) struct Party<'a> {
    pub object: &'a Workload,
    pub queue: &'a Arc<str>,
    pub cohort: Option<&'a Arc<str>>,
}

impl Party<'_> {
    fn path(&self) -> String {
        match self.cohort {
            None => format!("/{}", self.queue),
            Some(cohort) => format!("/{cohort}/{}", self.queue),
        }
    }

    fn uid(&self) -> &str {
        known(self.object.metadata.uid.as_deref())
    }

    fn job_uid(&self) -> &str {
        let labels = self.object.metadata.labels.as_ref();
        known(labels.and_then(|labels| labels.get(JOB_UID)).map(String::as_str))
    }

    fn priority(&self) -> i32 {
        self.object.spec.priority.unwrap_or(0)
    }
}

fn known(text: Option<&str>) -> &str {
    text.filter(|text| !text.is_empty()).unwrap_or("UNKNOWN")
}

/// A workload gives way to `preemptor`.
pub(super) fn preempt(
    entry: &Entry,
    victim: &Party<'_>,
    preemptor: &Party<'_>,
    reason: &'static str,
    (id, now): (u64, Timestamp),
) -> Write {
    let due_to = match reason {
        preempted::IN_CLUSTER_QUEUE => "prioritization in the ClusterQueue",
        _ => "reclamation within the cohort",
    };
    let message = format!(
        "Preempted to accommodate a workload (UID: {}, JobUID: {}) due to {due_to}; preemptor path: \
         {}; preemptee path: {}",
        preemptor.uid(),
        preemptor.job_uid(),
        preemptor.path(),
        victim.path(),
    );
    let workload = &entry.object;
    let mut status = workload.status.clone().unwrap_or_default();
    for (kind, reason) in [(kinds::EVICTED, evicted::PREEMPTED), (kinds::PREEMPTED, reason)] {
        let generation = workload.metadata.generation;
        let said = Said { kind, is_true: true, reason, message: &message, generation };
        conditions::set(&mut status.conditions, &said, now);
    }
    count_eviction(&mut status, evicted::PREEMPTED, "");
    status.forget_places();
    let priorities = format!(
        "preemptor effective priority: {0} (base: {0}, boost: 0); preemptee effective priority: {1} \
         (base: {1}, boost: 0)",
        preemptor.priority(),
        victim.priority(),
    );
    let key = Key::of(&workload.metadata);
    let elsewhere = format!(
        "Preempted workload {key} (UID: {}) in ClusterQueue {}; {priorities}",
        victim.uid(),
        victim.queue,
    );
    let event = |reason: &str, text: &str| Event::normal(reason, conditions::event_message(text));
    let told = Told {
        events: vec![
            event("EvictedDueToPreempted", &message),
            event("Preempted", &format!("{message}; {priorities}")),
        ],
        elsewhere: vec![(
            Key::of(&preemptor.object.metadata),
            event("PreemptedWorkload", &elsewhere),
        )],
        fact: Fact::Preempted {
            preemptor_queue: preemptor.queue.to_string(),
            cluster_queue: victim.queue.to_string(),
            reason,
        },
    };
    write(entry, id, status, told)
}

fn count_eviction(status: &mut WorkloadStatus, reason: &str, cause: &str) {
    let evictions = &mut status.scheduling_stats.get_or_insert_default().evictions;
    let known = evictions.iter_mut().find(|it| it.reason == reason && it.underlying_cause == cause);
    match known {
        Some(known) => known.count = known.count.saturating_add(1),
        None => evictions.push(EvictionCount {
            reason: reason.to_owned(),
            underlying_cause: cause.to_owned(),
            count: 1,
        }),
    }
}

/// What changes when a workload is told why it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Nothing.
    Nothing,
    /// Words and numbers only.
    Words,
    /// What it waits for.
    Reason,
}

/// A workload is told why it waits.
pub(super) fn pend(entry: &Entry, verdict: &Verdict, id: u64, now: Timestamp) -> (Change, Write) {
    let workload = &entry.object;
    let mut status = workload.status.clone().unwrap_or_default();
    let generation = workload.metadata.generation;
    let text = waiting_message(entry, verdict);
    let waiting = Said {
        kind: kinds::WAITING,
        is_true: true,
        reason: verdict.why.reason(),
        message: &text,
        generation,
    };
    let quota = verdict.quota.as_ref().map(|(reason, message)| Said {
        kind: kinds::QUOTA_RESERVED,
        is_true: false,
        reason,
        message,
        generation,
    });
    let mut change = Change::Nothing;
    let mut events = Vec::new();
    for said in quota.iter().chain([&waiting]) {
        if conditions::says(&status.conditions, said) {
            continue;
        }
        let old = conditions::find(&status.conditions, said.kind);
        let is_old = old
            .is_some_and(|old| old.reason == said.reason && (old.status == "True") == said.is_true);
        if is_old && said.kind == kinds::QUOTA_RESERVED && verdict.found == Found::Alike {
            continue;
        }
        if !is_old {
            change = Change::Reason;
            if said.kind == kinds::QUOTA_RESERVED {
                let message = conditions::event_message(said.message);
                events.push(Event::warning(said.reason, message));
            }
        } else if change == Change::Nothing {
            change = Change::Words;
        }
        conditions::set(&mut status.conditions, said, now);
    }
    if verdict.found == Found::Tried {
        let requests = requests(entry);
        if status.resource_requests != requests {
            status.resource_requests = requests;
            change = if change == Change::Nothing { Change::Words } else { change };
        }
    }
    let fact = Fact::Pending { reason: verdict.why.reason() };
    (change, write(entry, id, status, Told { events, elsewhere: Vec::new(), fact }))
}

fn waiting_message(entry: &Entry, verdict: &Verdict) -> String {
    let Place::Queued { queue, .. } = &entry.place else { return verdict.why.to_string() };
    match verdict.position {
        None => verdict.why.to_string(),
        Some((Some(before), all)) => {
            let at = before.saturating_add(1);
            format!("{}; position {at} of {all} in ClusterQueue {queue}", verdict.why)
        }
        Some((None, all)) => {
            format!(
                "{}; position beyond {POSITIONS_MAX} of {all} in ClusterQueue {queue}",
                verdict.why
            )
        }
    }
}

/// How many positions are counted.
pub(super) const POSITIONS_MAX: usize = 100;

fn requests(entry: &Entry) -> Vec<PodSetRequest> {
    let sets = entry.needs.iter().map(|need| PodSetRequest {
        name: need.name.to_string(),
        resources: need
            .resources
            .iter()
            .map(|(resource, it)| (resource.to_string(), amount::write(resource, *it)))
            .collect(),
    });
    sets.collect()
}

fn write(entry: &Entry, id: u64, status: WorkloadStatus, told: Told) -> Write {
    Write {
        id,
        key: Key::of(&entry.object.metadata),
        uid: entry.uid.clone(),
        version: entry.object.metadata.resource_version.clone().unwrap_or_default(),
        status,
        events: told.events,
        events_elsewhere: told.elsewhere,
        fact: told.fact,
    }
}
