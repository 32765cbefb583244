//! The record of a set's restarts, in a ConfigMap that goes with the set.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::PostParams;
use kube::{Api, Client};
use lockstep_api::jobset::{API_VERSION, KIND};
use lockstep_control::plan::jobset::in_place::secret;
use lockstep_control::plan::restart::{Expected, Record};
use lockstep_control::plan::{Key, RefusalKind};
use lockstep_restart::hub::{RecordStore, Written};
use tokio::sync::Mutex;
use tracing::warn;

use crate::requests::refusal;

const RECORD: &str = "record";
/// How often a write is tried at once, when somebody else has written in between.
const TRIES: usize = 4;

/// Keeps the record of one set.
pub(super) struct ConfigMaps {
    api: Api<ConfigMap>,
    set: Key,
    uid: String,
    /// What was there when it was last looked at.
    known: Mutex<Known>,
}

#[derive(Clone, Default)]
struct Known {
    /// The version of the ConfigMap, if there is one.
    version: Option<String>,
    record: Option<Record>,
}

impl ConfigMaps {
    pub(super) fn new(client: Client, set: Key, uid: &str) -> Self {
        let api = Api::namespaced(client, &set.namespace);
        Self { api, set, uid: uid.to_owned(), known: Mutex::default() }
    }

    /// The record that is there.
    pub(super) async fn read(&self) -> kube::Result<Option<Record>> {
        let mut known = self.known.lock().await;
        *known = self.fetch().await?;
        Ok(known.record)
    }

    async fn fetch(&self) -> kube::Result<Known> {
        let found = self.api.get_opt(&secret(&self.set.name)).await?;
        let Some(map) = found else { return Ok(Known::default()) };
        let mut owners = map.metadata.owner_references.iter().flatten();
        if !owners.any(|owner| owner.uid == self.uid) {
            // Of a set that had this name before, and is being cleaned up after.
            return Ok(Known::default());
        }
        let text = map.data.as_ref().and_then(|data| data.get(RECORD));
        let record = text.and_then(|text| {
            serde_json::from_str(text)
                .inspect_err(|error| warn!(jobset = %self.set, %error, "the record is unreadable"))
                .ok()
        });
        Ok(Known { version: map.metadata.resource_version, record })
    }

    async fn put(&self, record: Record, version: Option<String>) -> kube::Result<Known> {
        let text = serde_json::to_string(&record).map_err(kube::Error::SerdeError)?;
        let name = secret(&self.set.name);
        let map = ConfigMap {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                namespace: Some(self.set.namespace.clone()),
                owner_references: Some(vec![owner(&self.set.name, &self.uid)]),
                resource_version: version.clone(),
                ..ObjectMeta::default()
            },
            data: Some(BTreeMap::from([(RECORD.to_owned(), text)])),
            ..ConfigMap::default()
        };
        let params = PostParams::default();
        let written = match version {
            None => self.api.create(&params, &map).await?,
            Some(_) => self.api.replace(&name, &params, &map).await?,
        };
        Ok(Known { version: written.metadata.resource_version, record: Some(record) })
    }

    async fn write_checked(&self, record: Record, expected: Expected) -> Written {
        let mut known = self.known.lock().await;
        for _ in 0..TRIES {
            if !expected.allows(known.record.as_ref(), &record) {
                return Written::Refused(known.record.map_or(0, |there| there.fence));
            }
            let error = match self.put(record, known.version.clone()).await {
                Ok(written) => {
                    *known = written;
                    return Written::Yes;
                }
                Err(error) => error,
            };
            let refused = refusal(&error);
            let is_outdated = matches!(
                refused.kind,
                RefusalKind::Conflict | RefusalKind::AlreadyExists | RefusalKind::NotFound
            );
            if !is_outdated {
                warn!(jobset = %self.set, error = %refused, "restart record not written");
                return Written::Unsure;
            }
            match self.fetch().await {
                Ok(found) => *known = found,
                Err(_) => return Written::Unsure,
            }
        }
        Written::Unsure
    }
}

impl RecordStore for ConfigMaps {
    fn write<'a>(
        &'a self,
        _job: &'a str,
        record: Record,
        expected: Expected,
    ) -> Pin<Box<dyn Future<Output = Written> + Send + 'a>> {
        Box::pin(self.write_checked(record, expected))
    }
}

/// The reference to the set in what it owns.
pub(super) fn owner(set_name: &str, uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: API_VERSION.to_owned(),
        kind: KIND.to_owned(),
        name: set_name.to_owned(),
        uid: uid.to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}
