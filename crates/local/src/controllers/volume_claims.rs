//! Volume claims are bound to folders of this machine. The folder of a claim goes with it, and a
//! claim goes when no pod uses it any more.

mod users;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
    runtime::watcher,
};
use lockstep_api::kinds::volume_claim::PROTECTION;
use lockstep_control::engine::{WorkQueue, after};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tracing::{info, warn};

use self::users::Users;
use crate::{
    feeds::Feeds,
    observe::{Change, Inbox},
    recorder::{Note, Recorder, reference},
};

/// How long to wait after a write that failed.
const RETRY: Duration = Duration::from_secs(1);

/// A claim: namespace and name.
type Key = (String, String);

/// Starts the controller; `folder` is where volumes are, if there is a node that has any.
pub fn spawn(client: Client, feeds: &Feeds, folder: Option<PathBuf>) -> JoinHandle<()> {
    let pods = feeds.pods.clone();
    tokio::spawn(async move {
        let mut inbox = Inbox::new();
        inbox.listen(&pods, users::has_claims, Message::Pod);
        let claims: Api<PersistentVolumeClaim> = Api::all(client.clone());
        inbox.watch(claims, watcher::Config::default(), Message::Claim);
        let controller = Controller {
            recorder: Recorder::spawn(client.clone(), "persistentvolume-controller", ""),
            client,
            folder,
            claims: BTreeMap::new(),
            users: Users::default(),
            queue: WorkQueue::new(),
            has_swept: false,
        };
        controller.run(inbox).await;
    })
}

enum Message {
    Pod(Change<Pod>),
    Claim(Change<PersistentVolumeClaim>),
}

struct Controller {
    client: Client,
    recorder: Recorder,
    folder: Option<PathBuf>,
    claims: BTreeMap<Key, Arc<PersistentVolumeClaim>>,
    users: Users,
    queue: WorkQueue<Key>,
    /// Whether folders are gone whose claims went while nobody watched.
    has_swept: bool,
}

impl Controller {
    async fn run(mut self, mut inbox: Inbox<Message>) {
        loop {
            let due = self.queue.next_due().filter(|_| inbox.is_synced());
            for message in inbox.next(due).await {
                self.hear(message).await;
            }
            if inbox.is_synced() && !self.has_swept {
                self.sweep().await;
            }
            while inbox.is_synced()
                && let Some(key) = self.queue.take_due(Timestamp::now())
            {
                let is_done = self.settle(&key).await;
                self.queue.done(&key);
                if !is_done {
                    self.queue.add(key, after(Timestamp::now(), RETRY));
                }
            }
        }
    }

    async fn hear(&mut self, message: Message) {
        let now = Timestamp::now();
        match message {
            Message::Pod(change) => {
                for key in self.users.apply(change) {
                    self.queue.add(key, now);
                }
            }
            Message::Claim(Change::Put(claim)) => {
                let key = (claim.namespace().unwrap_or_default(), claim.name_any());
                self.claims.insert(key.clone(), claim);
                self.queue.add(key, now);
            }
            Message::Claim(Change::Gone(key)) => {
                let name = (key.namespace, key.name);
                let known = self.claims.get(&name);
                if known.is_some_and(|claim| claim.uid().as_deref() == Some(&*key.uid)) {
                    self.claims.remove(&name);
                }
                self.remove(vec![key.uid]).await;
            }
            Message::Claim(Change::Listing | Change::Synced) => {}
        }
    }

    /// Does what is to be done about a claim; whether nothing is left to try again.
    async fn settle(&mut self, key: &Key) -> bool {
        let Some(claim) = self.claims.get(key).cloned() else { return true };
        if claim.metadata.deletion_timestamp.is_some() {
            let is_held = claim.finalizers().iter().any(|name| name == PROTECTION);
            return !is_held || self.users.has(key) || self.release(&claim).await;
        }
        let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
        if phase == Some("Bound") {
            return true;
        }
        match unfit(&claim) {
            Some(why) => self.refuse(&claim, why),
            None => return self.bind(&claim).await,
        }
        true
    }

    /// Gives a claim its volume, and then says so: a claim whose volume is not written down is not
    /// bound.
    async fn bind(&self, claim: &PersistentVolumeClaim) -> bool {
        let spec = claim.spec.clone().unwrap_or_default();
        let uid = claim.uid().unwrap_or_default();
        let named = spec.volume_name.filter(|name| !name.is_empty());
        if named.is_none() {
            let annotations = json!({"pv.kubernetes.io/bind-completed": "yes",
                "pv.kubernetes.io/bound-by-controller": "yes"});
            let patch = json!({
                "metadata": {"uid": uid, "annotations": annotations},
                "spec": {"volumeName": format!("pvc-{uid}")},
            });
            if !self.patch(claim, &patch, false).await {
                return false;
            }
        }
        let size = spec.resources.and_then(|resources| resources.requests).unwrap_or_default();
        let capacity = size.get("storage").cloned().unwrap_or_default();
        let status = json!({"phase": "Bound", "accessModes": spec.access_modes,
            "capacity": {"storage": capacity}});
        let is_bound =
            self.patch(claim, &json!({"metadata": {"uid": uid}, "status": status}), true).await;
        if is_bound {
            info!(claim = claim.name_any(), "volume claim bound");
        }
        is_bound
    }

    /// Says why a claim stays without a volume.
    fn refuse(&self, claim: &PersistentVolumeClaim, why: &str) {
        self.recorder.record(Note {
            regarding: reference(claim),
            is_warning: true,
            reason: "ProvisioningFailed".to_owned(),
            message: why.to_owned(),
        });
    }

    /// Lets a claim go that nobody uses.
    async fn release(&self, claim: &PersistentVolumeClaim) -> bool {
        let left: Vec<&String> =
            claim.finalizers().iter().filter(|name| *name != PROTECTION).collect();
        let patch = json!({"metadata": {"uid": claim.uid(), "finalizers": left,
            "resourceVersion": claim.resource_version()}});
        self.patch(claim, &patch, false).await
    }

    async fn patch(&self, claim: &PersistentVolumeClaim, patch: &Value, is_status: bool) -> bool {
        let (namespace, name) = (claim.namespace().unwrap_or_default(), claim.name_any());
        let api: Api<PersistentVolumeClaim> = Api::namespaced(self.client.clone(), &namespace);
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        let answer = match is_status {
            true => api.patch_status(&name, &params, &patch).await,
            false => api.patch(&name, &params, &patch).await,
        };
        match answer {
            Ok(_) => true,
            // It is another one now, or none: the watch tells.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => true,
            Err(error) => {
                warn!(claim = name, %error, "volume claim not written, trying again");
                false
            }
        }
    }

    /// Removes the folders of claims that went while nobody watched.
    async fn sweep(&mut self) {
        self.has_swept = true;
        let Some(folder) = self.folder.clone() else { return };
        let known: BTreeSet<String> =
            self.claims.values().filter_map(|claim| claim.uid()).collect();
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let left: Vec<String> = names.filter(|name| !known.contains(name)).collect();
        self.remove(left).await;
    }

    /// Removes folders, which may take a while.
    async fn remove(&self, uids: Vec<String>) {
        let Some(folder) = self.folder.clone().filter(|_| !uids.is_empty()) else { return };
        let removing = tokio::task::spawn_blocking(move || {
            uids.iter().filter(|uid| !uid.is_empty()).for_each(|uid| remove(&folder.join(uid)));
        });
        drop(removing.await);
    }
}

fn remove(dir: &Path) {
    if dir.is_dir()
        && let Err(error) = fs::remove_dir_all(dir)
    {
        warn!(path = %dir.display(), %error, "cannot remove the volume of a claim");
    }
}

/// Why there is no volume on this machine for a claim.
fn unfit(claim: &PersistentVolumeClaim) -> Option<&'static str> {
    let spec = claim.spec.as_ref()?;
    if spec.volume_mode.as_deref() == Some("Block") {
        return Some("volumes of this cluster are folders; volumeMode must be Filesystem");
    }
    if spec.data_source.is_some() || spec.data_source_ref.is_some() {
        return Some("volumes of this cluster begin empty; dataSource must not be set");
    }
    None
}
