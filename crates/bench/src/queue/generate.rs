//! Makes the objects of a shape.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::serde::Serialize;
use k8s_openapi::serde::de::DeserializeOwned;
use kube::api::{ListParams, PostParams};
use kube::core::Request;
use kube::{Api, Client, Resource};
use lockstep_api::kueue::{ClusterQueue, LocalQueue};
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::objects;
use super::shape::{Class, Queue, Shape};

/// When each workload was made, by namespace and name.
pub(super) type Births = Arc<Mutex<HashMap<String, Instant>>>;

/// How many requests are on their way at the same time: servers refuse when they are too many.
const REQUESTS: usize = 128;

/// Makes the flavor, and of each queue the namespace, the ClusterQueue and the LocalQueue.
pub(super) async fn queues(client: &Client, shape: &Shape) {
    create(Api::all(client.clone()), &objects::flavor()).await;
    futures::stream::iter(shape.all_queues())
        .for_each_concurrent(REQUESTS, |queue| async move {
            let Queue { name, .. } = &queue;
            let namespace: Namespace =
                serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
            create(Api::all(client.clone()), &namespace).await;
            create(Api::<ClusterQueue>::all(client.clone()), &objects::cluster_queue(&queue)).await;
            let api: Api<LocalQueue> = Api::namespaced(client.clone(), name);
            create(api, &objects::local_queue(&queue)).await;
        })
        .await;
}

/// Makes the workloads: those of each class and queue at their pace, all sets at the same time.
pub(super) async fn workloads(client: Client, shape: Shape, births: Births) {
    let slots = Arc::new(Semaphore::new(REQUESTS));
    let mut sets = JoinSet::new();
    for queue in shape.all_queues() {
        for (nth, class) in shape.classes.into_iter().enumerate() {
            let maker = Maker {
                client: client.clone(),
                queue: queue.name.clone(),
                births: Arc::clone(&births),
                slots: Arc::clone(&slots),
            };
            sets.spawn(maker.make(class, nth));
        }
    }
    while let Some(made) = sets.join_next().await {
        made.unwrap();
    }
}

struct Maker {
    client: Client,
    queue: String,
    births: Births,
    slots: Arc<Semaphore>,
}

impl Maker {
    async fn make(self, class: Class, set: usize) {
        let api = Api::namespaced(self.client.clone(), &self.queue);
        for nth in 0..class.count {
            tokio::time::sleep(class.every).await;
            let workload = objects::workload(&self.queue, &class, set, nth);
            let _slot = self.slots.acquire().await.unwrap();
            self.births.lock().unwrap().insert(objects::key(&workload), Instant::now());
            create(api.clone(), &workload).await;
        }
    }
}

/// Waits until all ClusterQueues say that nobody waits and nobody holds anything.
pub(super) async fn until_at_rest(client: &Client) {
    let api: Api<ClusterQueue> = Api::all(client.clone());
    let limit = Instant::now() + Duration::from_secs(60);
    loop {
        let queues = api.list(&ListParams::default()).await.unwrap().items;
        let busy = queues.iter().find(|queue| {
            let status = queue.status.clone().unwrap_or_default();
            status.pending_workloads + status.reserving_workloads + status.admitted_workloads > 0
        });
        let Some(busy) = busy else { return };
        assert!(Instant::now() < limit, "all have finished, and yet: {busy:#?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Creates an object with its kind, which our types do not write and servers want.
async fn create<K>(api: Api<K>, object: &K)
where
    K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
{
    let mut body = serde_json::to_value(object).unwrap();
    body["apiVersion"] = K::api_version(&()).into();
    body["kind"] = K::kind(&()).into();
    let request = Request::new(api.resource_url());
    let request = request.create(&PostParams::default(), body.to_string().into()).unwrap();
    api.into_client().request::<K>(request).await.unwrap();
}
