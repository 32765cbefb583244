//! What pods and the node use right now: `metrics.k8s.io`, which `kubectl top` reads.
//!
//! Nothing is measured while nobody asks. Whoever asks waits for the time it takes to see something
//! happen, unless somebody else has asked a moment ago.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::response::Response;
use http::StatusCode;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use lockstep_api::{
    Registry, Resource, Scope, Status, Strategy,
    strategy::{Column, Json},
    table,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    call::{Address, Call},
    options::ListOptions,
    respond,
};
use crate::{
    cluster,
    node::{
        runtime::ContainerId,
        usage::{Sample, Usage},
    },
};

const GROUP: &str = "metrics.k8s.io";
const VERSION: &str = "v1beta1";

/// Between two looks: as short as the kernel's books are good for, as long as people like to wait.
const WINDOW: Duration = Duration::from_secs(1);
/// A look that is older says nothing about now.
const WINDOW_MAX: Duration = Duration::from_secs(30);

/// Adds the kinds to what is served.
pub fn register(registry: &mut Registry) {
    for (plural, kind, scope) in
        [("nodes", "NodeMetrics", Scope::Cluster), ("pods", "PodMetrics", Scope::Namespaced)]
    {
        registry.insert(Resource {
            group: GROUP.into(),
            version: VERSION.into(),
            plural: plural.into(),
            singular: "".into(),
            kind: kind.into(),
            short_names: Vec::new(),
            categories: Vec::new(),
            scope,
            verbs: &["get", "list"],
            subresources: Vec::new(),
            // Nothing is ever stored there.
            table: Arc::from(format!("{plural}.{GROUP}")),
            strategy: Arc::new(TopStrategy),
        });
    }
}

/// Whether a resource is one of these.
pub(crate) fn is_usage(resource: &Resource) -> bool {
    &*resource.group == GROUP
}

/// The last look at the machine.
#[derive(Debug, Default)]
pub(crate) struct LastLook(Mutex<Option<Sample>>);

/// Two looks at the machine.
struct Looks {
    first: Sample,
    second: Sample,
}

impl Looks {
    async fn take(last: &LastLook) -> Result<Self, Status> {
        let look = || async {
            let sample = tokio::task::spawn_blocking(Sample::take).await;
            sample.map_err(Status::internal)?.map_err(Status::internal)
        };
        let known = last.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let recent = known.filter(|sample| (WINDOW..WINDOW_MAX).contains(&sample.taken.elapsed()));
        let first = match recent {
            Some(sample) => sample,
            None => {
                let sample = look().await?;
                tokio::time::sleep(WINDOW).await;
                sample
            }
        };
        let second = look().await?;
        *last.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(second.clone());
        Ok(Self { first, second })
    }

    fn window(&self) -> Duration {
        self.second.taken.duration_since(self.first.taken)
    }

    /// What was used between both looks, as the API says it.
    fn usage(&self, before: Usage, after: Usage) -> Value {
        let worked = after.cpu.saturating_sub(before.cpu).as_nanos();
        let cores = worked * 1_000_000_000 / self.window().as_nanos().max(1);
        json!({"cpu": format!("{cores}n"), "memory": format!("{}Ki", after.memory / 1024)})
    }

    fn entry(&self, kind: &str, name: &str, labels: Value) -> Json {
        let now = Timestamp::from_second(Timestamp::now().as_second()).unwrap_or_default();
        let mut entry = Json::new();
        entry.insert("kind".to_owned(), kind.into());
        entry.insert("apiVersion".to_owned(), format!("{GROUP}/{VERSION}").into());
        let mut metadata = json!({"name": name, "creationTimestamp": now.to_string()});
        if !labels.is_null() {
            metadata["labels"] = labels;
        }
        entry.insert("metadata".to_owned(), metadata);
        entry.insert("timestamp".to_owned(), now.to_string().into());
        let window = format!("{:.3}s", self.window().as_secs_f64());
        entry.insert("window".to_owned(), window.into());
        entry
    }

    fn node(&self, name: &str, labels: Value) -> Value {
        let mut entry = self.entry("NodeMetrics", name, labels);
        let usage = self.usage(self.first.machine, self.second.machine);
        entry.insert("usage".to_owned(), usage);
        entry.into()
    }

    /// What the containers of a pod use; none when nothing of it runs here.
    fn pod(&self, call: &Call, pod: &Pod) -> Option<Value> {
        let dirs = call.app.logs.as_ref()?;
        let status = pod.status.as_ref()?;
        let statuses = [&status.container_statuses, &status.init_container_statuses];
        let mut containers = Vec::new();
        for status in statuses.into_iter().flatten().flatten() {
            let is_running = status.state.as_ref().is_some_and(|state| state.running.is_some());
            let id = ContainerId {
                pod_uid: pod.uid().unwrap_or_default(),
                container: status.name.clone(),
                attempt: u32::try_from(status.restart_count).unwrap_or(0),
            };
            let Some(after) = self.second.of(dirs, &id).filter(|_| is_running) else { continue };
            let before = self.first.of(dirs, &id).unwrap_or_default();
            containers.push(json!({"name": status.name, "usage": self.usage(before, after)}));
        }
        if containers.is_empty() {
            return None;
        }
        let mut entry = self.entry("PodMetrics", &pod.name_any(), json!(pod.metadata.labels));
        entry["metadata"]["namespace"] = json!(pod.metadata.namespace);
        entry.insert("containers".to_owned(), containers.into());
        Some(entry.into())
    }
}

/// What one pod or node uses.
pub(crate) async fn one(call: &Call, address: &Address) -> Result<Response, Status> {
    let (namespace, name) = address.key();
    let resource = measured(call, address)?;
    let known = call.app.cluster.get(&resource, namespace, name);
    let object = known.map_err(|_| Status::not_found(&address.resource, name))?;
    let looks = Looks::take(&call.app.last_look).await?;
    let found = shown(call, address, &looks, object.json())?;
    let found = found.ok_or_else(|| Status::not_found(&address.resource, name))?;
    Ok(respond::value(StatusCode::OK, &found, call.output))
}

/// What all pods or nodes use that are selected.
pub(crate) async fn all(call: &Call, address: &Address) -> Result<Response, Status> {
    let options = ListOptions::read(&call.query, false)?;
    let asked = Address {
        resource: measured(call, address)?,
        namespace: address.namespace.clone(),
        name: String::new(),
    };
    let filter = call.filter(&asked, &options)?;
    let page = call.app.cluster.list(&filter, &cluster::ListOptions::default()).await?;
    let looks = Looks::take(&call.app.last_look).await?;
    let mut items = Vec::new();
    for object in &page.items {
        items.extend(shown(call, address, &looks, object.json())?);
    }
    let list = json!({
        "kind": format!("{}List", address.resource.kind),
        "apiVersion": address.resource.api_version(),
        "metadata": {},
        "items": items,
    });
    Ok(respond::value(StatusCode::OK, &list, call.output))
}

/// What is measured: pods and nodes of the core group.
fn measured(call: &Call, address: &Address) -> Result<Arc<Resource>, Status> {
    let catalog = call.app.cluster.catalog();
    let found = catalog.registry().get("", "v1", &address.resource.plural).cloned();
    found.ok_or_else(Status::no_such_resource)
}

fn shown(
    call: &Call,
    address: &Address,
    looks: &Looks,
    object: Json,
) -> Result<Option<Value>, Status> {
    if &*address.resource.plural == "pods" {
        let pod = Pod::deserialize(Value::Object(object)).map_err(Status::internal)?;
        return Ok(looks.pod(call, &pod));
    }
    let metadata = object.get("metadata").cloned().unwrap_or_default();
    let name = metadata["name"].as_str().unwrap_or_default();
    // Nodes that only pretend use nothing.
    let is_here = call.app.node_name.as_deref() == Some(name);
    Ok(is_here.then(|| looks.node(name, metadata["labels"].clone())))
}

/// Nothing is stored, so there is nothing to decide.
struct TopStrategy;

impl Strategy for TopStrategy {
    fn validate_name(&self, _name: &str, _is_prefix: bool) -> Vec<String> {
        Vec::new()
    }

    fn columns(&self) -> &'static [Column] {
        table::NAME_AND_AGE
    }

    fn row(&self, object: &Json, now: Timestamp) -> Vec<Value> {
        table::name_and_age(object, now)
    }
}
