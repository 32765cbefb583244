//! Everything a run hears of the cluster, in one row.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use futures::{Stream, StreamExt, stream::BoxStream};
use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{Event, Pod},
};
use kube::{
    Api,
    core::{ApiResource, DynamicObject},
    runtime::watcher,
};
use lockstep_api::{jobset::JobSet, kueue::Workload};
use lockstep_local::observe::{self, Change, ObjectKey};

use crate::cluster::Cluster;

/// What a change is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    /// A Job.
    Job,
    /// A pod.
    Pod,
    /// An event.
    Event,
    /// A JobSet.
    JobSet,
    /// A Workload.
    Workload,
}

impl About {
    /// Whether a run goes on without hearing of it: events are good to have, and who may run jobs
    /// may not be allowed to see their Workloads.
    pub(crate) fn is_extra(self) -> bool {
        matches!(self, Self::Event | Self::Workload)
    }
}

/// A change, or an attempt to watch that failed.
pub(crate) type Heard = (About, Result<Change<DynamicObject>, watcher::Error>);

/// How many changes are handed over together.
const BATCH_MAX: usize = 256;

/// Watches `wanted` and what belongs to it, of these namespaces or of all when there are none.
pub(crate) fn watch(
    cluster: &Cluster,
    namespaces: &BTreeSet<String>,
    wanted: &[About],
) -> BoxStream<'static, Vec<Heard>> {
    let kinds = [
        (About::JobSet, ApiResource::erase::<JobSet>(&())),
        (About::Job, ApiResource::erase::<Job>(&())),
        (About::Workload, ApiResource::erase::<Workload>(&())),
        (About::Pod, ApiResource::erase::<Pod>(&())),
        (About::Event, ApiResource::erase::<Event>(&())),
    ];
    let mut streams = Vec::new();
    for (about, resource) in kinds {
        if !wanted.contains(&about) {
            continue;
        }
        let client = cluster.client();
        let apis: Vec<Api<DynamicObject>> = if namespaces.is_empty() {
            vec![Api::all_with(client.clone(), &resource)]
        } else {
            let one = |name: &String| Api::namespaced_with(client.clone(), name, &resource);
            namespaces.iter().map(one).collect()
        };
        for api in apis {
            streams.push(changes(api).map(move |change| (about, change)).boxed());
        }
    }
    futures::stream::select_all(streams).ready_chunks(BATCH_MAX).boxed()
}

/// How long a watch that must begin anew is left alone.
const PAUSE: Duration = Duration::from_millis(500);

/// The changes of one kind. A watch that is refused because the server has forgotten what came
/// after it (410) begins anew with a list; by itself it would ask for the same for ever.
fn changes(
    api: Api<DynamicObject>,
) -> impl Stream<Item = Result<Change<DynamicObject>, watcher::Error>> + Send {
    let begun = Following { api, changes: None, roll: Roll::default(), next: VecDeque::new() };
    futures::stream::unfold(begun, |mut following| async move {
        let change = following.next().await;
        Some((change, following))
    })
}

struct Following {
    api: Api<DynamicObject>,
    changes: Option<BoxStream<'static, Result<Change<DynamicObject>, watcher::Error>>>,
    roll: Roll,
    next: VecDeque<Change<DynamicObject>>,
}

impl Following {
    async fn next(&mut self) -> Result<Change<DynamicObject>, watcher::Error> {
        loop {
            if let Some(change) = self.next.pop_front() {
                return Ok(change);
            }
            let api = &self.api;
            let changes = self.changes.get_or_insert_with(|| {
                observe::attempt(api.clone(), watcher::Config::default()).boxed()
            });
            match changes.next().await {
                Some(Ok(change)) => self.next.extend(self.roll.call(change)),
                Some(Err(error)) if is_forgotten(&error) => {
                    self.changes = None;
                    tokio::time::sleep(PAUSE).await;
                }
                Some(Err(error)) => return Err(error),
                None => self.changes = None,
            }
        }
    }
}

fn is_forgotten(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::WatchStartFailed(kube::Error::Api(status)) => status.code == 410,
        _ => false,
    }
}

/// Which objects there are, to tell of those that went while nobody watched.
#[derive(Debug, Default)]
struct Roll {
    known: BTreeMap<(String, String), String>,
    listed: BTreeMap<(String, String), String>,
}

impl Roll {
    /// What a change means, to those who heard all changes before.
    fn call(&mut self, change: Change<DynamicObject>) -> Vec<Change<DynamicObject>> {
        let mut changes = Vec::new();
        match &change {
            Change::Listing => self.listed.clear(),
            Change::Put(object) => {
                let key = ObjectKey::of(&**object);
                let name = (key.namespace, key.name);
                self.listed.insert(name.clone(), key.uid.clone());
                self.known.insert(name, key.uid);
            }
            Change::Gone(key) => {
                let name = (key.namespace.clone(), key.name.clone());
                self.listed.remove(&name);
                self.known.remove(&name);
            }
            Change::Synced => {
                let before = std::mem::replace(&mut self.known, std::mem::take(&mut self.listed));
                let gone = before.into_iter().filter(|(name, _)| !self.known.contains_key(name));
                changes.extend(gone.map(|((namespace, name), uid)| {
                    Change::Gone(ObjectKey { namespace, name, uid })
                }));
            }
        }
        changes.push(change);
        changes
    }
}
