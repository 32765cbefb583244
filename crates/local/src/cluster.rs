//! The cluster's state as the rest of this process uses it: a store, a journal under it, and one
//! thread that makes writes safe and lets readers see them.
//!
//! Whatever costs time (filling in, checking, patching, encoding) happens in the caller on a
//! snapshot. The lock is held only to put a finished change in and to let a batch become visible.

mod admission;
mod commit;
mod janitor;
mod list;
mod watch;
mod write;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwap;
use jiff::Timestamp;
use lockstep_api::{Registry, Resource, Status, definition::PLURAL as DEFINITIONS};
use lockstep_store::{Batch, Limits, Object, Revision, Snapshot, Store, object, rest::Catalog};
use tokio::sync::watch as signal;

pub use admission::QueueingPolicy;
pub use list::ListOptions;
pub use watch::Watch;
pub use write::{Deleted, Guard, WriteOptions, Written};

use crate::journal::{Journal, JournalError, disk::DiskJournal};
use admission::Webhooks;
use commit::Core;
use list::Retained;

/// How a cluster's state is kept.
#[derive(Debug)]
pub struct Options {
    /// The kinds served.
    pub registry: Registry,
    /// Where to keep it; nowhere means in memory only.
    pub data_dir: Option<PathBuf>,
    /// How much history watchers may go back.
    pub limits: Limits,
    /// What is decided about jobs that wait in queues.
    pub queueing: QueueingPolicy,
}

/// Why a cluster cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// An object in the journal is not what we wrote.
    #[error("{table} {key} in the journal cannot be read")]
    Object {
        /// The table.
        table: String,
        /// The key.
        key: String,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// The system would not start the committer.
    #[error("cannot start the thread that writes the journal")]
    Thread(#[source] std::io::Error),
}

/// The state of the cluster. Clones are the same cluster; when the last is dropped the journal is
/// closed.
#[derive(Clone)]
pub struct Cluster(Arc<Inner>);

struct Inner {
    uid: String,
    core: Arc<Shared>,
    /// Nothing without a journal, and once it is closed.
    committer: Mutex<Option<std::thread::JoinHandle<()>>>,
}

/// What the callers and the committer share.
struct Shared {
    /// The kinds that are built in.
    built_in: Catalog,
    /// The kinds served: those, and those that users have defined.
    catalog: ArcSwap<Catalog>,
    core: Mutex<Core>,
    /// Tells the committer that there is something to do.
    work: std::sync::Condvar,
    /// What readers see.
    published: ArcSwap<Snapshot>,
    progress: signal::Sender<Progress>,
    /// What last became visible of each table: wakes those who watch it, and is all they need if
    /// they keep up.
    tables: ArcSwap<Tables>,
    /// States that a list in pages goes on from.
    retained: Mutex<Retained>,
}

/// Whom to wake, by table.
type Tables = BTreeMap<Arc<str>, signal::Sender<Arc<Batch>>>;

/// How far publication has come.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    revision: Revision,
    /// How often staged changes were given up.
    roll_backs: u64,
    is_closed: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Core> {
        // A panic while the lock is held is a bug, but what it guards is whole between calls.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves the kinds that are defined in a state. Watches of kinds that are defined anew end, as
    /// what they show may look different now.
    fn redefine(&self, published: &Snapshot) {
        let before = self.catalog.load();
        let catalog = self.built_in.with_definitions(published, &before);
        let known = self.tables.load();
        let tables = catalog.tables().map(|(table, _)| {
            let is_same = before.generation(table) == catalog.generation(table);
            let sender = known.get(table).filter(|_| is_same).cloned();
            let silence = || signal::Sender::new(Arc::new(Batch::silence(table, published)));
            (Arc::clone(table), sender.unwrap_or_else(silence))
        });
        self.tables.store(Arc::new(tables.collect()));
        self.catalog.store(Arc::new(catalog));
    }
}

impl Cluster {
    /// Opens the cluster of a data directory, or a new one in memory. Inside a runtime it also
    /// cleans up after itself: what nobody owns any more goes.
    ///
    /// # Errors
    /// When the directory is in use, or what is in it cannot be read.
    pub fn open(options: Options) -> Result<Self, OpenError> {
        let journal = options
            .data_dir
            .map(|dir| DiskJournal::open(&dir))
            .transpose()?
            .map(|journal| Box::new(journal) as Box<dyn Journal>);
        let webhooks = Webhooks { queueing: options.queueing };
        let catalog = Catalog::new(options.registry).with_admission(Arc::new(webhooks));
        Self::with_journal(catalog, options.limits, journal)
    }

    fn with_journal(
        catalog: Catalog,
        limits: Limits,
        mut journal: Option<Box<dyn Journal>>,
    ) -> Result<Self, OpenError> {
        let loaded = journal.as_mut().map(|journal| journal.load()).transpose()?;
        let (store, uid) = match loaded {
            Some(loaded) => {
                (recover(&catalog, loaded.objects, loaded.highest, limits)?, loaded.cluster_uid)
            }
            None => (Store::new(limits), uuid::Uuid::new_v4().to_string()),
        };
        let published = store.published().clone();
        let progress = Progress { revision: published.revision(), ..Progress::default() };
        let core = Arc::new(Shared {
            catalog: ArcSwap::from_pointee(catalog.clone()),
            built_in: catalog,
            core: Mutex::new(Core::new(store, journal.is_some())),
            work: std::sync::Condvar::new(),
            published: ArcSwap::from_pointee(published.clone()),
            progress: signal::Sender::new(progress),
            tables: ArcSwap::default(),
            retained: Mutex::default(),
        });
        core.redefine(&published);
        let committer = journal
            .map(|journal| commit::start(Arc::clone(&core), journal))
            .transpose()
            .map_err(OpenError::Thread)?;
        janitor::start(&core);
        let committer = Mutex::new(committer);
        Ok(Self(Arc::new(Inner { uid, core, committer })))
    }

    /// The kinds served now.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.0.core.catalog.load_full()
    }

    /// Who this cluster is.
    pub fn uid(&self) -> &str {
        &self.0.uid
    }

    /// Everything that may be seen now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.0.core.published.load_full()
    }

    /// One object.
    ///
    /// # Errors
    /// 404 when it is not there.
    pub fn get(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Arc<Object>, Status> {
        let snapshot = self.0.core.published.load();
        let found = snapshot.get(&resource.table, &object::key(namespace, name));
        found.cloned().ok_or_else(|| Status::not_found(resource, name))
    }

    /// One object, as it is when `revision` may be seen.
    ///
    /// # Errors
    /// 404 when it is not there, 504 when it takes too long.
    pub async fn get_since(
        &self,
        revision: Revision,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Arc<Object>, Status> {
        self.wait_for(revision, list::PATIENCE).await?;
        self.get(resource, namespace, name)
    }

    /// Waits until `revision` may be seen.
    ///
    /// # Errors
    /// 504 when that takes longer than `timeout`.
    pub async fn wait_for(
        &self,
        revision: Revision,
        timeout: Duration,
    ) -> Result<Arc<Snapshot>, Status> {
        let mut progress = self.0.core.progress.subscribe();
        let reached = progress.wait_for(|progress| progress.revision >= revision);
        match tokio::time::timeout(timeout, reached).await {
            Ok(Ok(_)) => Ok(self.snapshot()),
            _ => Err(Status::too_large_resource_version(revision, self.snapshot().revision())),
        }
    }

    /// Why writes fail at the moment, if they do.
    pub fn read_only_reason(&self) -> Option<String> {
        self.0.core.lock().failure.clone()
    }

    /// Makes safe what was written, closes the journal and gives its directory back, whoever still
    /// has a clone: from now on writes fail. Blocks until that is done.
    pub fn close(&self) {
        self.0.close();
    }
}

impl Inner {
    fn close(&self) {
        self.core.progress.send_modify(|progress| progress.is_closed = true);
        self.core.lock().is_closed = true;
        self.core.work.notify_all();
        // Held until the thread has ended: whoever closes second must not be done first.
        let mut committer = self.committer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(committer) = committer.take() {
            let _panicked = committer.join();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.close();
    }
}

fn recover(
    catalog: &Catalog,
    objects: Vec<(String, String, bytes::Bytes)>,
    highest: Revision,
    limits: Limits,
) -> Result<Store, OpenError> {
    // What kinds there are is said by objects too.
    let (definitions, others): (Vec<_>, Vec<_>) =
        objects.into_iter().partition(|(table, ..)| table == DEFINITIONS);
    let definitions = read_back(catalog, definitions)?;
    let defined = Store::recover(definitions.clone(), highest, limits);
    let catalog = catalog.with_definitions(defined.published(), catalog);
    let mut recovered = definitions;
    recovered.extend(read_back(&catalog, others)?);
    Ok(Store::recover(recovered, highest, limits))
}

/// A table, a key, and what is there.
type Entry = (Arc<str>, Arc<str>, Arc<Object>);

fn read_back(
    catalog: &Catalog,
    objects: Vec<(String, String, bytes::Bytes)>,
) -> Result<Vec<Entry>, OpenError> {
    let mut recovered = Vec::with_capacity(objects.len());
    for (table, key, body) in objects {
        // Kinds that are no longer served keep their objects out of sight.
        let Some((name, resource)) = catalog.tables().find(|(name, _)| ***name == *table) else {
            continue;
        };
        let object = Object::recover(body, &*resource.strategy)
            .map_err(|source| OpenError::Object { table, key: key.clone(), source })?;
        recovered.push((Arc::clone(name), Arc::from(key), Arc::new(object)));
    }
    Ok(recovered)
}

fn now() -> Timestamp {
    Timestamp::now()
}

#[cfg(test)]
mod tests;
