//! Requests of a queue controller.

use std::collections::VecDeque;

use lockstep_api::{
    kueue::{Workload, WorkloadStatus},
    labels::kueue::RESOURCE_IN_USE,
    strategy::Propagation,
};
use lockstep_control::plan::{
    Key,
    queue::{Finalizers, Owner, StatusOfQueue, Write},
    queued::{self, JobKey},
    workload,
};
use lockstep_store::patch::Patch;
use serde_json::{Value, json};

use crate::{
    api::{Api, Kind},
    controller::{self, Answer, request},
};

/// One request about the object of a key.
pub(super) enum Call {
    WriteStatus {
        uid: String,
        version: String,
        status: Box<WorkloadStatus>,
    },
    WriteQueueStatus {
        kind: Kind,
        uid: String,
        version: String,
        status: Value,
    },
    /// Sends a merge patch, which names uid and version.
    Merge(Kind, Value),
    /// The same as a list of operations.
    Operations(Kind, Value),
    ClearStart(Value),
    CreateWorkload(Box<Workload>),
    Delete {
        kind: Kind,
        uid: String,
    },
}

/// Requests that follow each other, each with the object it is about.
pub(super) type Calls = VecDeque<(Key, Call)>;

/// What writes a decision about a Workload.
pub(super) fn decision(write: &Write) -> Call {
    let Write { uid, version, status, .. } = write.clone();
    Call::WriteStatus { uid, version, status: Box::new(status) }
}

/// What writes the status of a queue.
pub(super) fn status(status: &StatusOfQueue) -> (Key, Call) {
    let written = |status| serde_json::to_value(status).expect("a status can be written");
    match status.clone() {
        StatusOfQueue::ClusterQueue { name, uid, version, status } => {
            let status = written(serde_json::to_value(status).unwrap_or_default());
            let kind = Kind::ClusterQueue;
            (everywhere(name), Call::WriteQueueStatus { kind, uid, version, status })
        }
        StatusOfQueue::LocalQueue { key, uid, version, status } => {
            let status = written(serde_json::to_value(status).unwrap_or_default());
            let kind = Kind::LocalQueue;
            (key, Call::WriteQueueStatus { kind, uid, version, status })
        }
    }
}

/// What gives an object its finalizers.
pub(super) fn finalizers(wanted: &Finalizers) -> (Key, Call) {
    let Finalizers { of, uid, version, finalizers } = wanted;
    let (kind, name) = match of {
        Owner::ClusterQueue(name) => (Kind::ClusterQueue, name),
        Owner::ResourceFlavor(name) => (Kind::Flavor, name),
    };
    let meta = json!({"uid": uid, "resourceVersion": version, "finalizers": finalizers});
    (everywhere(name.clone()), Call::Merge(kind, json!({"metadata": meta})))
}

fn everywhere(name: String) -> Key {
    Key { namespace: String::new(), name }
}

/// What a pass over a Workload comes to.
pub(super) fn of_workload(workload: &Workload, steps: Vec<workload::Step>) -> Calls {
    let key = Key::of(&workload.metadata);
    let uid = workload.metadata.uid.clone().unwrap_or_default();
    let version = workload.metadata.resource_version.clone().unwrap_or_default();
    let merge = |mut patch: Value| {
        patch["metadata"]["uid"] = json!(uid);
        patch["metadata"]["resourceVersion"] = json!(version);
        Call::Merge(Kind::Workload, patch)
    };
    let call = |step| {
        Some(match step {
            workload::Step::WriteStatus(status) => {
                Call::WriteStatus { uid: uid.clone(), version: version.clone(), status }
            }
            workload::Step::Deactivate => merge(json!({"spec": {"active": false}})),
            workload::Step::SetPriority(value) => merge(json!({"spec": {"priority": value}})),
            workload::Step::RemoveFinalizer => {
                let known = workload.metadata.finalizers.iter().flatten();
                let left: Vec<&String> = known.filter(|name| *name != RESOURCE_IN_USE).collect();
                merge(json!({"metadata": {"finalizers": left}}))
            }
            workload::Step::Delete => Call::Delete { kind: Kind::Workload, uid: uid.clone() },
            workload::Step::Emit(_) | workload::Step::Note(_) => return None,
        })
    };
    steps.into_iter().filter_map(call).map(|call| (key.clone(), call)).collect()
}

/// What a pass over a job comes to.
pub(super) fn of_job(key: &JobKey, steps: Vec<queued::Step>) -> Calls {
    let kind = match key.kind {
        queued::Kind::Job => Kind::Job,
        queued::Kind::JobSet => Kind::JobSet,
        queued::Kind::Orphan => Kind::Workload,
    };
    let call = |step| {
        Some(match step {
            queued::Step::CreateWorkload(workload) => {
                (Key::of(&workload.metadata), Call::CreateWorkload(workload))
            }
            queued::Step::WriteWorkloadStatus { workload, status } => {
                let (uid, version) = (workload.uid, workload.version);
                (workload.key, Call::WriteStatus { uid, version, status })
            }
            queued::Step::PatchWorkload { workload, patch } => {
                (workload.key, Call::Merge(Kind::Workload, patch))
            }
            queued::Step::DeleteWorkload { workload } => {
                (workload.key, Call::Delete { kind: Kind::Workload, uid: workload.uid })
            }
            queued::Step::PatchJob { patch: queued::Patch::Merge(patch), .. } => {
                (key.key.clone(), Call::Merge(kind, patch))
            }
            queued::Step::PatchJob { patch: queued::Patch::Json(patch), .. } => {
                (key.key.clone(), Call::Operations(kind, patch))
            }
            queued::Step::ClearStartTime { patch, .. } => {
                (key.key.clone(), Call::ClearStart(patch))
            }
            queued::Step::DeleteJob { uid } => (key.key.clone(), Call::Delete { kind, uid }),
            queued::Step::Emit(_) => return None,
        })
    };
    steps.into_iter().filter_map(call).collect()
}

impl controller::Call for Call {
    fn send(&self, api: &mut Api, key: &Key) -> Answer {
        let name = &*key.name;
        match self {
            Self::WriteStatus { uid, version, status } => {
                request::write_status(api, (Kind::Workload, name), (uid, version), status)
            }
            Self::WriteQueueStatus { kind, uid, version, status } => {
                request::write_status(api, (*kind, name), (uid, version), status)
            }
            Self::Merge(kind, patch) => {
                let patch = Patch::merge(patch.to_string().as_bytes())?;
                api.patch(*kind, None, name, &patch).map(Some)
            }
            Self::Operations(kind, patch) => {
                let patch = Patch::json(patch.to_string().as_bytes())?;
                api.patch(*kind, None, name, &patch).map(Some)
            }
            Self::ClearStart(patch) => {
                let patch = Patch::merge(patch.to_string().as_bytes())?;
                api.patch(Kind::Job, Some("status"), name, &patch).map(Some)
            }
            Self::CreateWorkload(workload) => request::create(api, Kind::Workload, workload),
            Self::Delete { kind, uid } => {
                let background = Some(Propagation::Background);
                let deleted = request::delete(api, (*kind, name), uid, background)?;
                // Nothing is answered of what is gone at once.
                let left = api.get(*kind, name).filter(|left| *left.meta.uid == **uid);
                Ok(deleted.filter(|_| left.is_some()))
            }
        }
    }

    fn target<'a>(&'a self, _api: &Api, key: &'a Key) -> Option<(Kind, &'a str)> {
        let kind = match self {
            Self::WriteStatus { .. } => Kind::Workload,
            Self::WriteQueueStatus { kind, .. }
            | Self::Merge(kind, _)
            | Self::Operations(kind, _)
            | Self::Delete { kind, .. } => *kind,
            Self::ClearStart(_) => Kind::Job,
            Self::CreateWorkload(_) => return None,
        };
        Some((kind, &key.name))
    }

    fn told(&self, key: &Key) -> String {
        let name = &key.name;
        match self {
            Self::WriteStatus { version, status, .. } => {
                let status = serde_json::to_string(status).unwrap_or_default();
                format!("writes status of {name} over @{version} {status}")
            }
            Self::WriteQueueStatus { kind, status, .. } => {
                format!("writes status of {kind:?} {name} {status}")
            }
            Self::Merge(kind, patch) | Self::Operations(kind, patch) => {
                format!("patches {kind:?} {name} by {patch}")
            }
            Self::ClearStart(_) => format!("clears the start of Job {name}"),
            Self::CreateWorkload(_) => format!("creates Workload {name}"),
            Self::Delete { kind, .. } => format!("deletes {kind:?} {name}"),
        }
    }
}
