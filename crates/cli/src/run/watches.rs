//! Everything a run hears of the cluster, in one row.

use std::collections::BTreeSet;

use futures::{StreamExt, stream::BoxStream};
use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{Event, Pod},
};
use kube::{
    Api,
    core::{ApiResource, DynamicObject},
    runtime::watcher,
};
use lockstep_local::observe::{self, Change};

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
}

/// A change, or an attempt to watch that failed.
pub(crate) type Heard = (About, Result<Change<DynamicObject>, watcher::Error>);

/// How many changes are handed over together.
const BATCH_MAX: usize = 256;

/// Watches Jobs, pods and events, of these namespaces or of all when there are none.
pub(crate) fn watch(
    cluster: &Cluster,
    namespaces: &BTreeSet<String>,
    has_jobs: bool,
) -> BoxStream<'static, Vec<Heard>> {
    let kinds = [
        (About::Job, ApiResource::erase::<Job>(&())),
        (About::Pod, ApiResource::erase::<Pod>(&())),
        (About::Event, ApiResource::erase::<Event>(&())),
    ];
    let mut streams = Vec::new();
    for (about, resource) in kinds {
        if about == About::Job && !has_jobs {
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
            let changes = observe::attempt(api, watcher::Config::default());
            streams.push(changes.map(move |change| (about, change)).boxed());
        }
    }
    futures::stream::select_all(streams).ready_chunks(BATCH_MAX).boxed()
}
