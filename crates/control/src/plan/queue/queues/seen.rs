//! What the watches bring.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use k8s_openapi::api::{core::v1::LimitRange, node::v1::RuntimeClass};
use lockstep_api::kueue::{ClusterQueue, LocalQueue, ResourceFlavor, Workload};

use super::{Cluster, Queues};
use crate::plan::{
    Key,
    queue::{
        Owner,
        activity::Activity,
        agenda::QueueRef,
        entry::{self, Entry, Place, version},
        pending::Pending,
        pool::Pool,
    },
};

impl Queues {
    /// All flavors that there are have been told.
    pub fn flavors_listed(&mut self) {
        self.listed.flavors = true;
    }

    /// All ClusterQueues that there are have been told.
    pub fn cluster_queues_listed(&mut self) {
        self.listed.clusters = true;
    }

    /// All LocalQueues that there are have been told.
    pub fn local_queues_listed(&mut self) {
        self.listed.locals = true;
    }

    /// All namespaces that there are have been told.
    pub fn namespaces_listed(&mut self) {
        self.listed.namespaces = true;
    }

    /// All LimitRanges that there are have been told.
    pub fn limit_ranges_listed(&mut self) {
        self.listed.ranges = true;
    }

    /// All RuntimeClasses that there are have been told.
    pub fn runtime_classes_listed(&mut self) {
        self.listed.classes = true;
    }

    /// All workloads that there are have been told.
    pub fn workloads_listed(&mut self) {
        self.listed.workloads = true;
    }

    /// Notes a version of a flavor.
    pub fn flavor_seen(&mut self, flavor: &Arc<ResourceFlavor>, now: Timestamp) {
        let name = flavor.metadata.name.clone().unwrap_or_default();
        let old = self.flavors.get(&name);
        if old.is_some_and(|old| version(&old.metadata) > version(&flavor.metadata)) {
            return;
        }
        let is_same = old.is_some_and(|old| {
            old.spec == flavor.spec && old.metadata.annotations == flavor.metadata.annotations
        });
        self.look_at(Owner::ResourceFlavor(name.clone()));
        self.flavors.insert(name.clone(), Arc::clone(flavor));
        if !is_same {
            self.flavor_changed(&name, now);
        }
    }

    /// Notes that a flavor is gone.
    pub fn flavor_gone(&mut self, name: &str, now: Timestamp) {
        if self.flavors.remove(name).is_some() {
            self.flavor_changed(name, now);
        }
    }

    /// Notes a version of a ClusterQueue.
    pub fn cluster_queue_seen(&mut self, queue: &Arc<ClusterQueue>, now: Timestamp) {
        let name: Arc<str> = Arc::from(queue.metadata.name.as_deref().unwrap_or_default());
        let old = self.clusters.get(&name);
        if old.is_some_and(|old| version(&old.object.metadata) > version(&queue.metadata)) {
            return;
        }
        let changed = old.is_none_or(|old| {
            let (old, new) = (&old.object, queue);
            old.spec != new.spec
                || old.metadata.uid != new.metadata.uid
                || old.metadata.annotations != new.metadata.annotations
                || old.metadata.deletion_timestamp.is_some()
                    != new.metadata.deletion_timestamp.is_some()
        });
        self.agenda.statuses.mark(QueueRef::Cluster(Arc::clone(&name)));
        self.look_at(Owner::ClusterQueue(name.to_string()));
        if let Some(known) = self.clusters.get_mut(&name)
            && !changed
        {
            known.object = Arc::clone(queue);
            return;
        }
        let flavors = self.clusters.get(&name).map(|old| flavors_of(&old.pool)).unwrap_or_default();
        let pool = Arc::new(Pool::of(queue, &self.settings));
        let activity = Activity::of(queue, &pool, &self.flavors);
        let flavors = flavors.union(&flavors_of(&pool)).cloned().collect();
        match self.clusters.get_mut(&name) {
            Some(known) => {
                known.object = Arc::clone(queue);
                known.pool = pool;
                known.activity = activity;
            }
            None => {
                let object = Arc::clone(queue);
                let pending = Pending::default();
                let cluster = Cluster { object, pool, activity, pending, parked: 0 };
                self.clusters.insert(Arc::clone(&name), cluster);
            }
        }
        self.cluster_changed(&name, &flavors, now);
    }

    /// Notes that a ClusterQueue is gone.
    pub fn cluster_queue_gone(&mut self, name: &str, uid: &str, now: Timestamp) {
        let is_it = |cluster: &Cluster| cluster.object.metadata.uid.as_deref() == Some(uid);
        if !self.clusters.get(name).is_some_and(is_it) {
            return;
        }
        let name: Arc<str> = Arc::from(name);
        let flavors = self.clusters.get(&name).map(|old| flavors_of(&old.pool)).unwrap_or_default();
        self.wake_tree(&name);
        self.clusters.remove(&name);
        self.resettle_cluster(&name, now);
        self.ledger.drop_pool(&name);
        self.agenda.ready.remove(&name);
        self.agenda.blocked.remove(&name);
        self.agenda.joined.remove(&name);
        self.agenda.statuses.forget(&QueueRef::Cluster(Arc::clone(&name)));
        for flavor in flavors {
            self.look_at(Owner::ResourceFlavor(flavor.to_string()));
        }
    }

    /// Notes a version of a LocalQueue.
    pub fn local_queue_seen(&mut self, queue: &Arc<LocalQueue>, now: Timestamp) {
        let key = Key::of(&queue.metadata);
        let old = self.locals.get(&key);
        if old.is_some_and(|old| version(&old.metadata) > version(&queue.metadata)) {
            return;
        }
        self.agenda.statuses.mark(QueueRef::Local(key.clone()));
        let is_same = old.is_some_and(|old| {
            let (old_meta, meta) = (&old.metadata, &queue.metadata);
            old.spec == queue.spec
                && old_meta.annotations == meta.annotations
                && old_meta.deletion_timestamp.is_some() == meta.deletion_timestamp.is_some()
        });
        self.locals.insert(key.clone(), Arc::clone(queue));
        if !is_same {
            self.resettle_local(&key, now);
            // Its annotations may say that its workloads need not wait any more.
            self.head_changed(&Arc::from(queue.spec.cluster_queue.as_str()));
        }
    }

    /// Notes that a LocalQueue is gone.
    pub fn local_queue_gone(&mut self, key: &Key, uid: &str, now: Timestamp) {
        let known = self.locals.get(key).and_then(|local| local.metadata.uid.as_deref());
        if known == Some(uid) {
            self.locals.remove(key);
            self.agenda.statuses.forget(&QueueRef::Local(key.clone()));
            self.resettle_local(key, now);
        }
    }

    /// Notes a namespace and its labels.
    pub fn namespace_seen(
        &mut self,
        name: &str,
        labels: &BTreeMap<String, String>,
        now: Timestamp,
    ) {
        if self.namespaces.get(name) != Some(labels) {
            self.namespaces.insert(name.to_owned(), labels.clone());
            self.resettle_namespace(name, now);
        }
    }

    /// Notes that a namespace is gone.
    pub fn namespace_gone(&mut self, name: &str, now: Timestamp) {
        if self.namespaces.remove(name).is_some() {
            self.resettle_namespace(name, now);
        }
    }

    /// Notes a version of a LimitRange.
    pub fn limit_range_seen(&mut self, range: &Arc<LimitRange>, now: Timestamp) {
        let Key { namespace, name } = Key::of(&range.metadata);
        if self.additions.put_range(&namespace, &name, range) {
            self.range_changed(&namespace, now);
        }
    }

    /// Notes that a LimitRange is gone.
    pub fn limit_range_gone(&mut self, key: &Key, now: Timestamp) {
        if self.additions.remove_range(&key.namespace, &key.name) {
            self.range_changed(&key.namespace, now);
        }
    }

    /// Notes a version of a RuntimeClass.
    pub fn runtime_class_seen(&mut self, class: &RuntimeClass, now: Timestamp) {
        let name = class.metadata.name.as_deref().unwrap_or_default();
        if self.additions.put_class(name, class) {
            self.class_changed(name, now);
        }
    }

    /// Notes that a RuntimeClass is gone.
    pub fn runtime_class_gone(&mut self, name: &str, now: Timestamp) {
        if self.additions.remove_class(name) {
            self.class_changed(name, now);
        }
    }

    /// Notes a version of a workload.
    pub fn workload_seen(&mut self, workload: &Arc<Workload>, now: Timestamp) {
        let key = Key::of(&workload.metadata);
        let uid = workload.metadata.uid.as_deref().unwrap_or_default();
        if let Some(entry) = self.workloads.get(&key) {
            if version(&workload.metadata) < entry.version {
                return;
            }
            if entry.uid != uid {
                self.drop_workload(&key);
            }
        }
        let mut says_else = false;
        match self.workloads.get_mut(&key) {
            Some(entry) => {
                says_else = entry.object.metadata.annotations != workload.metadata.annotations;
                let is_news = version(&workload.metadata) != entry.version;
                entry.renew(workload, &self.settings, &self.additions);
                if is_news {
                    self.note_news(&key);
                }
            }
            None => {
                let entry = Entry::new(workload, &self.settings, &self.additions);
                self.workloads.insert(key.clone(), entry);
            }
        }
        self.settle_flight(&key);
        self.settle(&key, now);
        let place = self.workloads.get(&key).map(|entry| &entry.place).filter(|_| says_else);
        if let Some(queue) = place.and_then(|place| self.queue_held_up_by(place)) {
            self.head_changed(&queue);
        }
    }

    /// Notes that a workload is gone.
    pub fn workload_gone(&mut self, key: &Key, uid: &str, _now: Timestamp) {
        if self.workloads.get(key).is_some_and(|entry| entry.uid == uid) {
            self.drop_workload(key);
        }
    }

    fn drop_workload(&mut self, key: &Key) {
        self.put(key, Place::Away);
        let Some(entry) = self.workloads.remove(key) else { return };
        self.agenda.set_timer(key, entry.timer, None);
        self.agenda.forget_words(key, entry.words_at);
        self.agenda.to_write.remove(key);
        self.agenda.orders.remove(key);
        self.waiters.retain(|_, waiter| waiter != key);
        self.backoff.succeeded(key);
        self.touched.remove(key);
        self.forget_local(&entry.local, key);
    }

    /// A workload is not of this LocalQueue any more.
    fn forget_local(&mut self, local: &Key, key: &Key) {
        if let Some(others) = self.by_local.get_mut(local) {
            others.remove(key);
            if others.is_empty() {
                self.by_local.remove(local);
            }
        }
    }

    fn flavor_changed(&mut self, name: &str, now: Timestamp) {
        let users: Vec<Arc<str>> = self
            .clusters
            .iter()
            .filter(|(_, cluster)| cluster.pool.flavors().any(|flavor| &**flavor == name))
            .map(|(queue, _)| Arc::clone(queue))
            .collect();
        for queue in users {
            if let Some(cluster) = self.clusters.get_mut(&queue) {
                cluster.activity = Activity::of(&cluster.object, &cluster.pool, &self.flavors);
            }
            self.agenda.statuses.mark(QueueRef::Cluster(Arc::clone(&queue)));
            self.cluster_changed(&queue, &BTreeSet::new(), now);
        }
    }

    /// A ClusterQueue has changed, or what it refers to.
    fn cluster_changed(&mut self, name: &Arc<str>, flavors: &BTreeSet<Arc<str>>, now: Timestamp) {
        // Those it shared with before, and those it shares with now.
        self.wake_tree(name);
        let Some(cluster) = self.clusters.get_mut(name) else { return };
        let is_open = cluster.activity.is_active();
        cluster.pending.set_strict(cluster.pool.is_strict);
        self.ledger.set_pool(name, Arc::clone(&cluster.pool), is_open);
        self.wake_tree(name);
        self.resettle_cluster(name, now);
        for flavor in flavors {
            self.look_at(Owner::ResourceFlavor(flavor.to_string()));
        }
    }

    /// Looks again where all workloads of a ClusterQueue stand.
    fn resettle_cluster(&mut self, name: &Arc<str>, now: Timestamp) {
        let locals: Vec<Key> = self
            .locals
            .iter()
            .filter(|(_, local)| local.spec.cluster_queue == **name)
            .map(|(key, _)| key.clone())
            .collect();
        for local in locals {
            self.agenda.statuses.mark(QueueRef::Local(local.clone()));
            self.resettle_local(&local, now);
        }
        let holding = self.by_cluster.get(name).cloned().unwrap_or_default();
        self.resettle(holding, now);
    }

    fn resettle_local(&mut self, key: &Key, now: Timestamp) {
        let workloads = self.by_local.get(key).cloned().unwrap_or_default();
        self.resettle(workloads, now);
    }

    fn resettle_namespace(&mut self, name: &str, now: Timestamp) {
        self.resettle(self.of_namespace(name), now);
    }

    fn of_namespace(&self, name: &str) -> BTreeSet<Key> {
        let first = Key { namespace: name.to_owned(), name: String::new() };
        let near = self.workloads.range(first..).take_while(|(key, _)| key.namespace == name);
        near.map(|(key, _)| key.clone()).collect()
    }

    fn range_changed(&mut self, namespace: &str, now: Timestamp) {
        self.ask_anew(self.of_namespace(namespace), now);
    }

    fn class_changed(&mut self, name: &str, now: Timestamp) {
        let is_of = |entry: &Entry| {
            let sets = entry.object.spec.pod_sets.iter();
            let mut pods = sets.filter_map(|set| set.template.spec.as_ref());
            pods.any(|pod| pod.runtime_class_name.as_deref() == Some(name))
        };
        let theirs = self.workloads.iter().filter(|(_, entry)| is_of(entry));
        self.ask_anew(theirs.map(|(key, _)| key.clone()).collect(), now);
    }

    /// The pods of these will be made otherwise. What they hold already they go on holding.
    fn ask_anew(&mut self, mut keys: BTreeSet<Key>, now: Timestamp) {
        keys.retain(|key| {
            let entry = self.workloads.get_mut(key);
            entry.is_some_and(|entry| entry.ask(&self.settings, &self.additions))
        });
        self.resettle(keys, now);
    }

    fn resettle(&mut self, keys: BTreeSet<Key>, now: Timestamp) {
        for key in &keys {
            self.settle(key, now);
        }
        self.touched.extend(keys);
    }

    /// Sees to it that a workload is found by its LocalQueue.
    pub(in crate::plan::queue) fn index(&mut self, key: &Key) {
        let Some(entry) = self.workloads.get(key) else { return };
        let local = entry::local_queue(&entry.object);
        if local != entry.local {
            let old = entry.local.clone();
            self.put(key, Place::Away);
            self.forget_local(&old, key);
        }
        if let Some(entry) = self.workloads.get_mut(key) {
            entry.local = local.clone();
        }
        self.by_local.entry(local).or_default().insert(key.clone());
    }
}

fn flavors_of(pool: &Pool) -> BTreeSet<Arc<str>> {
    pool.flavors().cloned().collect()
}
