//! Decisions of the scheduler on their way to the API: what admits and evicts first, what only says
//! why somebody waits after it. What is said of queues has a share.

mod of_queues;
mod of_workloads;

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Api, Client};
use lockstep_api::kueue::{ClusterQueue, LocalQueue, ResourceFlavor, Workload};
use lockstep_control::plan::queue::{Decision, Finalizers, Owner, StatusOfQueue, Write};
use lockstep_control::plan::{Event, Key, Refusal};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::Message;
use crate::metrics::Metrics;
use crate::observe::Teller;
use crate::recorder::{Note, Recorder, Reporter, reference};
use crate::requests::refusal;
use crate::write;

use of_queues::{OfQueue, OfQueues, Subject};
use of_workloads::{OfWorkloads, Purpose};

/// What became of a decision.
pub(super) enum Outcome {
    Written(Purpose, Arc<Workload>),
    Refused { purpose: Purpose, key: Key, id: u64, refusal: Refusal },
    ClusterQueueWritten(Arc<ClusterQueue>),
    ClusterQueueRefused { name: String, refusal: Refusal },
    LocalQueueWritten(Arc<LocalQueue>),
    LocalQueueRefused { key: Key, refusal: Refusal },
    FlavorWritten(Arc<ResourceFlavor>),
    FinalizersRefused { of: Owner, refusal: Refusal },
}

impl Outcome {
    /// Of which queue or flavor this tells, and what version it has now if it was written.
    fn of_queue(&self) -> Option<(Subject, Option<u64>)> {
        let name = |meta: &ObjectMeta| meta.name.clone().unwrap_or_default();
        let version = |meta: &ObjectMeta| meta.resource_version.as_deref()?.parse().ok();
        Some(match self {
            Self::Written(..) | Self::Refused { .. } => return None,
            Self::ClusterQueueWritten(queue) => {
                let owner = Owner::ClusterQueue(name(&queue.metadata));
                (Subject::Owner(owner), version(&queue.metadata))
            }
            Self::FlavorWritten(flavor) => {
                let owner = Owner::ResourceFlavor(name(&flavor.metadata));
                (Subject::Owner(owner), version(&flavor.metadata))
            }
            Self::LocalQueueWritten(queue) => {
                (Subject::LocalQueue(Key::of(&queue.metadata)), version(&queue.metadata))
            }
            Self::ClusterQueueRefused { name, .. } => {
                (Subject::Owner(Owner::ClusterQueue(name.clone())), None)
            }
            Self::LocalQueueRefused { key, .. } => (Subject::LocalQueue(key.clone()), None),
            Self::FinalizersRefused { of, .. } => (Subject::Owner(of.clone()), None),
        })
    }
}

/// Who events about admissions come from.
const SCHEDULER: &str = "kueue-admission";

/// How many decisions may wait to be sent before no more are made.
const WAITING_MAX: usize = 4_096;

/// One of so many that are under way may be about queues: they are written of all the time, and
/// must not keep those waiting that are to be admitted.
const QUEUES_SHARE: usize = 8;

/// Decisions that are on their way. They end with this.
pub(super) struct Decisions {
    shared: Arc<Shared>,
    of_workloads: OfWorkloads<Errand>,
    /// What is said of queues and flavors.
    of_queues: OfQueues,
    in_flight_max: usize,
    tasks: JoinSet<()>,
    /// Whether somebody is being admitted or evicted.
    busy: watch::Sender<bool>,
}

struct Shared {
    client: Client,
    recorder: Recorder,
    metrics: Arc<Metrics>,
    teller: Teller<Message>,
}

/// One write, with the Workloads that events are about.
struct Errand {
    write: Box<Write>,
    events: Vec<(Arc<Workload>, Event)>,
}

impl Decisions {
    pub(super) fn new(
        client: &Client,
        instance: &str,
        metrics: &Arc<Metrics>,
        teller: Teller<Message>,
        in_flight_max: usize,
    ) -> Self {
        let (busy, is_busy) = watch::channel(false);
        let (component, instance) = (SCHEDULER.to_owned(), instance.to_owned());
        let reporter = Reporter { component, instance, action: None };
        let shared = Shared {
            client: client.clone(),
            // Events tell of admissions: they must not hold any up.
            recorder: Recorder::spawn_behind(client.clone(), reporter, is_busy),
            metrics: Arc::clone(metrics),
            teller,
        };
        Self {
            shared: Arc::new(shared),
            of_workloads: OfWorkloads::default(),
            of_queues: OfQueues::default(),
            in_flight_max,
            tasks: JoinSet::new(),
            busy,
        }
    }

    /// Whether more may be decided. What waits here was decided on what was known then.
    pub(super) fn has_room(&self) -> bool {
        self.of_workloads.urgent_len() < WAITING_MAX
    }

    /// Sends a decision, soon; `known` is a Workload as it was seen.
    pub(super) fn send(
        &mut self,
        decision: Decision,
        known: impl Fn(&Key) -> Option<Arc<Workload>>,
    ) {
        let (purpose, mut write) = match decision {
            Decision::Admit(write) | Decision::Preempt(write) => (Purpose::Decides, write),
            Decision::Pend(write) => (Purpose::Explains, write),
        };
        let own = std::mem::take(&mut write.events).into_iter();
        let own = own.filter_map(|event| Some((known(&write.key)?, event)));
        let mut events: Vec<_> = own.collect();
        let elsewhere = std::mem::take(&mut write.events_elsewhere).into_iter();
        events.extend(elsewhere.filter_map(|(key, event)| Some((known(&key)?, event))));
        let key = write.key.clone();
        self.of_workloads.add(key, purpose, Errand { write: Box::new(write), events });
        self.go_on();
    }

    pub(super) fn send_status(&mut self, status: StatusOfQueue) {
        self.of_queues.add(OfQueue::Status(Box::new(status)));
        self.go_on();
    }

    pub(super) fn send_finalizers(&mut self, finalizers: Finalizers) {
        self.of_queues.add(OfQueue::Finalizers(finalizers));
        self.go_on();
    }

    /// One of those under way was answered.
    pub(super) fn answered(&mut self, outcome: &Outcome) {
        while self.tasks.try_join_next().is_some() {}
        if let Outcome::Written(purpose, _) | Outcome::Refused { purpose, .. } = outcome {
            self.of_workloads.answered(*purpose);
        }
        if let Some((subject, version)) = outcome.of_queue() {
            self.of_queues.answered(&subject, version);
        }
        self.go_on();
    }

    fn go_on(&mut self) {
        let queues_max = self.in_flight_max.div_ceil(QUEUES_SHARE);
        while self.of_queues.in_flight() < queues_max {
            let Some(write) = self.of_queues.next() else { break };
            let shared = Arc::clone(&self.shared);
            self.tasks.spawn(async move {
                let outcome = match write {
                    OfQueue::Status(status) => shared.write_status(*status).await,
                    OfQueue::Finalizers(finalizers) => shared.write_finalizers(finalizers).await,
                };
                shared.teller.tell(Message::Outcome(outcome)).await;
            });
        }
        let room = self.in_flight_max.saturating_sub(self.of_queues.in_flight());
        while let Some((purpose, errand)) = self.of_workloads.next(room) {
            let shared = Arc::clone(&self.shared);
            self.tasks.spawn(async move {
                let outcome = shared.write(purpose, errand).await;
                shared.teller.tell(Message::Outcome(outcome)).await;
            });
        }
        let is_busy = self.of_workloads.is_deciding();
        self.busy.send_if_modified(|was| std::mem::replace(was, is_busy) != is_busy);
    }
}

impl Shared {
    async fn write(&self, purpose: Purpose, Errand { write, events }: Errand) -> Outcome {
        let Write { id, key, uid, version, status, fact, .. } = *write;
        let object = (key.namespace.as_str(), key.name.as_str(), uid.as_str());
        match write::workload_status(&self.client, object, &version, &status).await {
            Ok(workload) => {
                self.metrics.kueue.decided(&fact, &workload);
                for (workload, Event { is_warning, reason, message }) in events {
                    let regarding = reference(&*workload);
                    self.recorder.record(Note { regarding, is_warning, reason, message });
                }
                Outcome::Written(purpose, Arc::new(workload))
            }
            Err(error) => Outcome::Refused { purpose, key, id, refusal: refusal(&error) },
        }
    }

    async fn write_status(&self, status: StatusOfQueue) -> Outcome {
        match status {
            StatusOfQueue::ClusterQueue { name, uid, version, status } => {
                let api: Api<ClusterQueue> = Api::all(self.client.clone());
                match write::queue_status(&api, (&name, &uid), &version, &status).await {
                    Ok(queue) => Outcome::ClusterQueueWritten(Arc::new(queue)),
                    Err(error) => Outcome::ClusterQueueRefused { name, refusal: refusal(&error) },
                }
            }
            StatusOfQueue::LocalQueue { key, uid, version, status } => {
                let api: Api<LocalQueue> = Api::namespaced(self.client.clone(), &key.namespace);
                match write::queue_status(&api, (&key.name, &uid), &version, &status).await {
                    Ok(queue) => Outcome::LocalQueueWritten(Arc::new(queue)),
                    Err(error) => Outcome::LocalQueueRefused { key, refusal: refusal(&error) },
                }
            }
        }
    }

    async fn write_finalizers(&self, wanted: Finalizers) -> Outcome {
        let Finalizers { of, uid, version, finalizers } = wanted;
        let written = match &of {
            Owner::ClusterQueue(name) => {
                let api: Api<ClusterQueue> = Api::all(self.client.clone());
                let written = write::finalizers(&api, (name, &uid), &version, &finalizers).await;
                written.map(|queue| Outcome::ClusterQueueWritten(Arc::new(queue)))
            }
            Owner::ResourceFlavor(name) => {
                let api: Api<ResourceFlavor> = Api::all(self.client.clone());
                let written = write::finalizers(&api, (name, &uid), &version, &finalizers).await;
                written.map(|flavor| Outcome::FlavorWritten(Arc::new(flavor)))
            }
        };
        written.unwrap_or_else(|error| Outcome::FinalizersRefused { of, refusal: refusal(&error) })
    }
}
