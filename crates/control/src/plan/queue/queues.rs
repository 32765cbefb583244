//! The driver: what is known of queues and workloads, and what follows.

mod answers;
mod seen;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use lockstep_api::{
    kueue::{ClusterQueue, LocalQueue, Workload},
    reasons::kueue::workload::QUOTA_RESERVED,
};

use super::{
    Around, LocalQueueAround, Owner, QueueAround, Settings, Stop, Why,
    activity::Activity,
    additions::Additions,
    agenda::Agenda,
    conditions::{self, Said},
    entry::{self, Entry, Place},
    flavors::Flavors,
    ledger::Ledger,
    pending::Pending,
    pool::Pool,
    status::Tally,
    wait::{Layers, Scope},
};
use crate::{engine::Backoff, plan::Key};

/// All queues and workloads of a cluster.
///
/// The shell tells what its watches bring, first everything there is, and says of each kind when
/// that was all. From then on it calls [`Queues::cycle`] whenever [`Queues::next_due`] has come,
/// carries out the decisions in order, and answers each with [`Queues::written`] or
/// [`Queues::refused`]; of a workload at most one write is under way at a time. What was decided
/// counts at once: nobody else is given what an admission takes, even before it is written.
#[derive(Clone, Debug)]
pub struct Queues {
    pub(super) settings: Settings,
    pub(super) listed: Listed,
    pub(super) flavors: Flavors,
    pub(super) clusters: BTreeMap<Arc<str>, Cluster>,
    pub(super) locals: BTreeMap<Key, Arc<LocalQueue>>,
    pub(super) tallies: BTreeMap<Key, Tally>,
    pub(super) namespaces: BTreeMap<String, BTreeMap<String, String>>,
    pub(super) additions: Additions,
    pub(super) workloads: BTreeMap<Key, Entry>,
    pub(super) by_local: BTreeMap<Key, BTreeSet<Key>>,
    /// Those that hold quota, by ClusterQueue.
    pub(super) by_cluster: BTreeMap<Arc<str>, BTreeSet<Key>>,
    pub(super) ledger: Ledger,
    /// Those that hold quota and are not ready, by whom they count among.
    pub(super) unready: BTreeMap<Scope, BTreeSet<Key>>,
    /// The one that says so, of those that wait for others to be ready.
    pub(super) waiters: BTreeMap<Scope, Key>,
    pub(super) agenda: Agenda,
    pub(super) backoff: Backoff<Key>,
    pub(super) next_id: u64,
    pub(super) touched: BTreeSet<Key>,
}

/// What has been listed at least once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Listed {
    flavors: bool,
    clusters: bool,
    locals: bool,
    namespaces: bool,
    ranges: bool,
    classes: bool,
    workloads: bool,
}

/// A ClusterQueue.
#[derive(Clone, Debug)]
pub(super) struct Cluster {
    pub object: Arc<ClusterQueue>,
    pub pool: Arc<Pool>,
    pub activity: Activity,
    pub pending: Pending,
    /// How many wait and may not be tried.
    pub parked: i32,
}

impl Queues {
    /// A driver that knows of nothing.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            listed: Listed::default(),
            flavors: Flavors::new(),
            clusters: BTreeMap::new(),
            locals: BTreeMap::new(),
            tallies: BTreeMap::new(),
            namespaces: BTreeMap::new(),
            additions: Additions::default(),
            workloads: BTreeMap::new(),
            by_local: BTreeMap::new(),
            by_cluster: BTreeMap::new(),
            ledger: Ledger::default(),
            unready: BTreeMap::new(),
            waiters: BTreeMap::new(),
            agenda: Agenda::default(),
            backoff: Backoff::new(answers::RETRY_FIRST, answers::RETRY_MAX),
            next_id: 0,
            touched: BTreeSet::new(),
        }
    }

    /// How it was set up.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What the queues of a workload are like.
    pub fn around(&self, workload: &Workload) -> Around {
        let key = entry::local_queue(workload);
        let local = self.locals.get(&key);
        let status = workload.status.as_ref();
        let admission = status.and_then(|status| status.admission.as_ref());
        let holding = admission.map(|admission| admission.cluster_queue.as_str());
        let name = holding.or_else(|| local.map(|local| local.spec.cluster_queue.as_str()));
        let flavors = admission.into_iter().flat_map(|it| &it.pod_set_assignments);
        let flavors = flavors.flat_map(|set| set.flavors.values().map(String::as_str));
        let layers = self.layers(workload, name, flavors);
        Around {
            local_queue: local.map_or(LocalQueueAround::Missing, |local| {
                let stop = Stop::of(local.spec.stop_policy.as_deref());
                let cluster = self.clusters.get(local.spec.cluster_queue.as_str());
                let is_open = cluster.is_some_and(|cluster| cluster.activity.is_active());
                let is_terminating = local.metadata.deletion_timestamp.is_some();
                let is_active = is_open && stop == Stop::No && !is_terminating;
                LocalQueueAround::There { stop, is_terminating, is_active }
            }),
            cluster_queue: name.map(|name| self.queue_around(name)),
            is_admitting: self.is_admitting(&Key::of(&workload.metadata)),
            is_found: self.is_found(workload),
            wait: layers.effective(self.settings.wait.as_ref()),
        }
    }

    /// Workloads whose queues have changed and that want a pass.
    pub fn take_touched(&mut self) -> BTreeSet<Key> {
        std::mem::take(&mut self.touched)
    }

    /// Why a workload waits.
    pub fn why(&self, key: &Key) -> Option<&Why> {
        let entry = self.workloads.get(key)?;
        if let Place::Queued { queue, class, .. } = &entry.place {
            // What the last one like it was told is newer than what it was told itself.
            let parked = self.clusters.get(queue).and_then(|it| it.pending.parked(class));
            if let Some(parked) = parked {
                return Some(&parked.why);
            }
        }
        entry.why()
    }

    /// How many workloads are known.
    pub fn len(&self) -> usize {
        self.workloads.len()
    }

    /// Whether no workload is known.
    pub fn is_empty(&self) -> bool {
        self.workloads.is_empty()
    }

    /// When to call [`Queues::cycle`], [`Queues::take_statuses`] and [`Queues::take_finalizers`]
    /// again; a time that has passed if there is something to do; none if only news can change
    /// anything.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.agenda.next_due().filter(|_| self.is_ready())
    }

    /// Before all is known that there is, nothing can be decided.
    pub(super) fn is_ready(&self) -> bool {
        let Listed { flavors, clusters, locals, namespaces, ranges, classes, workloads } =
            self.listed;
        flavors && clusters && locals && namespaces && ranges && classes && workloads
    }

    /// Where it is said how a workload is waited for.
    pub(super) fn layers<'a>(
        &'a self,
        workload: &'a Workload,
        cluster: Option<&str>,
        flavors: impl Iterator<Item = &'a str>,
    ) -> Layers<'a> {
        let flavors: BTreeSet<&str> = flavors.collect();
        let of_flavor = |name: &str| self.flavors.get(name)?.metadata.annotations.as_ref();
        let cluster = cluster.map(|name| {
            let known = self.clusters.get(name);
            let annotations = known.and_then(|it| it.object.metadata.annotations.as_ref());
            (Arc::from(name), annotations)
        });
        let local = entry::local_queue(workload);
        let of_local = self.locals.get(&local).and_then(|it| it.metadata.annotations.as_ref());
        Layers {
            flavors: flavors.into_iter().map(|it| (Arc::from(it), of_flavor(it))).collect(),
            cluster_queue: cluster,
            local_queue: Some((local, of_local)),
            workload: workload.metadata.annotations.as_ref(),
        }
    }

    /// Whether a workload that waits has been told what there is to tell.
    fn is_found(&self, workload: &Workload) -> bool {
        let entry = self.workloads.get(&Key::of(&workload.metadata));
        let verdict = entry.and_then(|entry| entry.verdict.as_ref());
        let quota = verdict.and_then(|verdict| verdict.quota.as_ref());
        quota.zip(workload.status.as_ref()).is_some_and(|((reason, message), status)| {
            let kind = QUOTA_RESERVED;
            let said = Said { kind, is_true: false, reason, message, generation: None };
            conditions::says(&status.conditions, &said)
        })
    }

    fn queue_around(&self, name: &str) -> QueueAround {
        let cluster = self.clusters.get(name);
        QueueAround {
            name: name.to_owned(),
            is_missing: cluster.is_none(),
            stop: cluster.map_or(Stop::No, |cluster| cluster.pool.stop),
            is_terminating: cluster
                .is_some_and(|cluster| cluster.object.metadata.deletion_timestamp.is_some()),
            is_active: cluster.is_some_and(|cluster| cluster.activity.is_active()),
        }
    }

    /// Asks for the finalizers of a ClusterQueue or flavor to be looked at.
    pub(super) fn look_at(&mut self, owner: Owner) {
        self.agenda.finalizers.insert(owner);
    }
}
