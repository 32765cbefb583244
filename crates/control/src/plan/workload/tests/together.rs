//! The scheduler and passes over one workload at the same time: neither takes back what the other
//! says, whoever writes first.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::plan::queue::{Queues, Settings};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    Scheduler,
    Pass,
}

/// Both drivers, and an API with one workload.
struct Both {
    queues: Queues,
    workloads: Workloads,
    workload: Arc<Workload>,
    version: u64,
    now: Timestamp,
    /// `reason: message`, warnings with an exclamation mark.
    events: Vec<String>,
    first: First,
}

const LATER: Refusal = Refusal { kind: RefusalKind::Conflict, message: String::new() };

impl Both {
    /// A workload that asks for one cpu of queue `lq`, with these members. There is a ClusterQueue
    /// `cq` of two.
    fn new(first: First, spec: Value) -> Self {
        let container = json!({"name": "c", "resources": {"requests": {"cpu": "1"}}});
        let mut object = json!({
            "metadata": {"name": "w", "namespace": "ns", "uid": "w", "generation": 1,
                         "resourceVersion": "10"},
            "spec": {"queueName": "lq", "podSets": [{"name": "main", "count": 1,
                     "template": {"spec": {"containers": [container]}}}]},
        });
        for (key, value) in spec.as_object().into_iter().flatten() {
            object["spec"][key] = value.clone();
        }
        let workload: Workload = serde_json::from_value(object).unwrap();
        let mut both = Self {
            queues: Queues::new(Settings::default()),
            workloads: Workloads::new(Options::default()),
            workload: Arc::new(workload),
            version: 10,
            now: at(1000),
            events: Vec::new(),
            first,
        };
        let flavor = json!({"metadata": {"name": "f", "uid": "f"}});
        let flavor = serde_json::from_value(flavor).unwrap();
        both.queues.flavor_seen(&Arc::new(flavor), both.now);
        both.queues.namespace_seen("ns", &BTreeMap::new(), both.now);
        both.cluster_queue(json!({}));
        both.local_queue(json!({}));
        both.queues.flavors_listed();
        both.queues.cluster_queues_listed();
        both.queues.local_queues_listed();
        both.queues.namespaces_listed();
        both.queues.limit_ranges_listed();
        both.queues.runtime_classes_listed();
        both.queues.workloads_listed();
        both.tell();
        both
    }

    fn cluster_queue(&mut self, more: Value) {
        let quota = json!({"name": "cpu", "nominalQuota": "2"});
        let mut spec = json!({"namespaceSelector": {}, "resourceGroups": [{
            "coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [quota]}]}]});
        for (key, value) in more.as_object().into_iter().flatten() {
            spec[key] = value.clone();
        }
        self.version += 1;
        let queue = json!({"spec": spec, "metadata": {
            "name": "cq", "uid": "cq", "resourceVersion": self.version.to_string()}});
        let queue = serde_json::from_value(queue).unwrap();
        self.queues.cluster_queue_seen(&Arc::new(queue), self.now);
    }

    fn local_queue(&mut self, more: Value) {
        let mut queue = json!({"spec": {"clusterQueue": "cq"}, "metadata": {
            "namespace": "ns", "name": "lq", "uid": "lq"}});
        self.version += 1;
        queue["metadata"]["resourceVersion"] = self.version.to_string().into();
        for (key, value) in more.as_object().into_iter().flatten() {
            queue["spec"][key] = value.clone();
        }
        let queue = serde_json::from_value(queue).unwrap();
        self.queues.local_queue_seen(&Arc::new(queue), self.now);
    }

    fn edit(&mut self, change: impl FnOnce(&mut Workload)) {
        change(Arc::make_mut(&mut self.workload));
        self.tell();
    }

    /// Both hear of a new version.
    fn tell(&mut self) {
        self.version += 1;
        let workload = Arc::make_mut(&mut self.workload);
        workload.metadata.resource_version = Some(self.version.to_string());
        self.queues.workload_seen(&self.workload, self.now);
        self.workloads.seen(&self.workload, self.now);
    }

    fn note(&mut self, event: &Event) {
        let mark = if event.is_warning { "!" } else { "" };
        self.events.push(format!("{mark}{}: {}", event.reason, event.message));
    }

    /// Writes a status if the workload has this version; whether it has.
    fn write(&mut self, version: &str, status: WorkloadStatus) -> bool {
        let is_it = self.workload.metadata.resource_version.as_deref() == Some(version);
        if is_it {
            self.edit(|workload| workload.status = Some(status));
        }
        is_it
    }

    /// Carries out what both decide at the same time until neither decides anything.
    fn rest(&mut self) {
        for _ in 0..40 {
            let decisions = self.queues.cycle(self.now).decisions;
            for key in self.queues.take_touched() {
                self.workloads.touch(&key, self.now);
            }
            let _ = (self.queues.take_statuses(self.now), self.queues.take_finalizers(self.now));
            let queues = &self.queues;
            let plan = self.workloads.next((self.now, 0.0), |it| queues.around(it));
            if decisions.is_empty() && plan.is_none() {
                let due = [self.queues.next_due(), self.workloads.next_due()];
                let Some(due) = due.into_iter().flatten().min() else { return };
                self.now = self.now.max(due);
                continue;
            }
            let version = self.workload.metadata.resource_version.clone().unwrap();
            if self.first == First::Pass {
                self.pass(plan.clone(), &version);
            }
            for decision in decisions {
                let write = decision.write().clone();
                if self.write(&write.version, write.status) {
                    write.events.iter().for_each(|event| self.note(event));
                } else {
                    self.queues.refused(&write.key, write.id, &LATER, self.now);
                }
            }
            if self.first == First::Scheduler {
                self.pass(plan, &version);
            }
        }
        panic!("they never come to rest: {:?} {:?}", self.events, self.workload.status);
    }

    fn pass(&mut self, plan: Option<(Key, Plan)>, version: &str) {
        let Some((key, plan)) = plan else { return };
        for step in plan.steps {
            match step {
                Step::WriteStatus(status) if self.write(version, *status.clone()) => {}
                Step::WriteStatus(_) => {
                    self.workloads.refused(&key, &LATER, self.now);
                    break;
                }
                Step::Emit(event) => self.note(&event),
                Step::Note(_) => {}
                Step::Deactivate | Step::SetPriority(_) | Step::RemoveFinalizer | Step::Delete => {
                    panic!("nobody asks for {step:?}")
                }
            }
        }
        self.workloads.done(&key, self.now);
    }

    fn said(&self, kind: &str) -> (&str, &str, &str) {
        let status = self.workload.status.as_ref().expect("a status");
        let Condition { status, reason, message, .. } = status.condition(kind).expect("a word");
        (status, reason, message)
    }
}

fn gate(by: &str) -> Option<BTreeMap<String, String>> {
    let gate = lockstep_api::labels::kueue::ADMISSION_GATED_BY;
    Some([(gate.to_owned(), by.to_owned())].into())
}

#[test]
fn what_the_scheduler_finds_wrong_stays_and_is_told_once() {
    let container = |request: &str| json!({"name": "c", "resources": {"requests": {"cpu": request}, "limits": {"cpu": "1"}}});
    let sets = |containers: Value| {
        json!({"podSets": [{"name": "main", "count": 1,
                            "template": {"spec": {"containers": containers}}}]})
    };
    let wrong = "resources validation failed: spec.podSets[0].template.spec.containers[0]: Invalid \
                 value: [\"cpu\"]: requests must not exceed its limits";
    let unwanted = "Workload namespace doesn't match ClusterQueue selector";
    // So much is wrong that the message is cut.
    let many: Vec<Value> = (0..300).map(|_| container("2")).collect();
    let cases = [
        (sets(json!([container("2")])), json!({}), Some(wrong)),
        (json!({}), json!({"namespaceSelector": null}), Some(unwanted)),
        (sets(many.into()), json!({}), None),
    ];
    for (spec, queue, message) in cases {
        for first in [First::Scheduler, First::Pass] {
            let mut both = Both::new(first, spec.clone());
            both.cluster_queue(queue.clone());
            both.rest();
            let (status, reason, said) = both.said(conditions::QUOTA_RESERVED);
            assert_eq!((status, reason), ("False", quota_reserved::MISCONFIGURED), "{first:?}");
            assert_eq!(said, message.unwrap_or(said), "{first:?}");
            let told = both.events.len();
            assert!(told == 1 && both.events[0].starts_with("!Misconfigured: "), "{first:?}");
            // Passes come for other reasons too.
            both.tell();
            both.rest();
            assert_eq!(both.events.len(), told, "{first:?}");
        }
    }
}

#[test]
fn what_was_wrong_is_taken_back_when_it_is_not_any_more() {
    for first in [First::Scheduler, First::Pass] {
        let mut both = Both::new(first, json!({"active": true}));
        both.cluster_queue(json!({"namespaceSelector": null}));
        both.edit(|workload| {
            // It is kept from being tried for another reason, so that nobody admits it.
            let status = workload.status.get_or_insert_default();
            status.say((conditions::REQUEUED, false), ("NodeFailures", ""), None, at(1000));
        });
        both.rest();
        assert_eq!(both.said(conditions::QUOTA_RESERVED).1, quota_reserved::MISCONFIGURED);
        both.cluster_queue(json!({}));
        both.rest();
        let message = "Workload is pending evaluation in the scheduling queue";
        let want = ("False", quota_reserved::PENDING_EVALUATION, message);
        assert_eq!(both.said(conditions::QUOTA_RESERVED), want, "{first:?}");
    }
}

// What queues, gates and users do is said by passes alone.
#[test]
fn whether_there_is_an_event_does_not_depend_on_who_writes_first() {
    type Case = (&'static str, fn(&mut Both), &'static str, &'static [&'static str]);
    let cases: [Case; 6] = [
        (
            "no LocalQueue",
            |both| both.edit(|workload| "other".clone_into(&mut workload.spec.queue_name)),
            "Misconfigured",
            &[],
        ),
        (
            "a LocalQueue that is stopped",
            |both| both.local_queue(json!({"stopPolicy": "Hold"})),
            "Suspended",
            &[],
        ),
        (
            "no ClusterQueue",
            |both| both.queues.cluster_queue_gone("cq", "cq", at(1000)),
            "Misconfigured",
            &[],
        ),
        (
            "a ClusterQueue that is stopped",
            |both| both.cluster_queue(json!({"stopPolicy": "Hold"})),
            "Suspended",
            &[],
        ),
        (
            "a gate",
            |both| both.edit(|workload| workload.metadata.annotations = gate("me")),
            "AdmissionGated",
            &["AdmissionGated: Workload admission is gated by: me"],
        ),
        (
            "not active",
            |both| both.edit(|workload| workload.spec.active = Some(false)),
            "Deactivated",
            &["EvictedDueToDeactivated: The workload is deactivated"],
        ),
    ];
    for (what, setup, reason, events) in cases {
        for first in [First::Scheduler, First::Pass] {
            let mut both = Both::new(first, json!({}));
            setup(&mut both);
            both.rest();
            assert_eq!(both.said(conditions::QUOTA_RESERVED).1, reason, "{what}, {first:?}");
            assert_eq!(both.events, events, "{what}, {first:?}");
            assert_eq!(both.said(conditions::WAITING).0, "True", "{what}: the scheduler's own");
        }
    }
}
