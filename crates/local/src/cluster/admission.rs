//! What objects go through beyond what their kind says: what webhooks are on other clusters.

mod accounts;
mod queueing;

use k8s_openapi::api::core::v1::{Node, Pod};
use lockstep_api::{Status, field::ErrorList, json, labels::jobset::JOBSET_NAME, strategy::Json};
use lockstep_control::plan::exclusive::{self, Surroundings};
use lockstep_store::{
    Object,
    rest::{Admission, Scene},
};
use serde::de::DeserializeOwned;

pub use queueing::QueueingPolicy;

/// Gives pods what their service account brings along, sends those of JobSets that are to have a
/// domain of nodes for themselves where they belong, and jobs into queues.
#[derive(Debug, Default)]
pub(super) struct Webhooks {
    pub(super) queueing: QueueingPolicy,
}

impl Admission for Webhooks {
    fn admit(&self, scene: &Scene<'_>, object: &mut Json) -> Result<(), Status> {
        self.queueing.fill_new(scene, object);
        let is_pod = scene.resource.group.is_empty() && scene.resource.plural == "pods";
        if !is_pod {
            return Ok(());
        }
        accounts::admit(scene, object)?;
        if json::at(object, &["metadata", "annotations", JOBSET_NAME]).is_none() {
            return Ok(());
        }
        // What is no pod at all is refused with better words later.
        let Ok(pod) = serde_json::from_value::<Pod>(object.clone().into()) else { return Ok(()) };
        match exclusive::admit(&pod, &Around(scene)) {
            Ok(amendment) => {
                amendment.apply(object);
                Ok(())
            }
            Err(denial) => Err(Status::denied(denial.to_string())),
        }
    }

    fn validate(&self, scene: &Scene<'_>, object: &Json, old: Option<&Json>) -> ErrorList {
        self.queueing.validate(scene, object, old)
    }
}

struct Around<'a>(&'a Scene<'a>);

impl Around<'_> {
    fn table(&self, plural: &str) -> Option<&str> {
        Some(&*self.0.catalog.registry().get("", "v1", plural)?.table)
    }
}

impl Surroundings for Around<'_> {
    fn pods_named(&self, beginning: &str) -> Vec<Pod> {
        let Some(table) = self.table("pods") else { return Vec::new() };
        let namespace = self.0.namespace;
        let start = format!("{namespace}/{beginning}");
        let pods = self.0.view.range(table, Some(namespace), Some(&start));
        let near = pods.take_while(|(key, _)| key.starts_with(&start));
        near.filter_map(|(_, object)| typed(object)).collect()
    }

    fn node(&self, name: &str) -> Option<Node> {
        typed(self.0.view.get(self.table("nodes")?, name)?)
    }
}

fn typed<K: DeserializeOwned>(object: &Object) -> Option<K> {
    serde_json::from_slice(&object.bare().concat()).ok()
}
