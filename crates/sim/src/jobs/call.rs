//! Requests of a Job controller: what a step comes to.

use std::{ops::Range, sync::Arc};

use lockstep_api::{Status, strategy::Propagation};
use lockstep_control::plan::{
    Key,
    job::{
        NewPod, Orphan, PodRef, StatusWrite, Step, patch, slow_start,
        ttl::{Expiry, expiry},
    },
};
use lockstep_store::{Object, patch::Patch};
use serde_json::Value;

use crate::{
    api::{Api, Kind},
    controller::{self, Answer, request},
};

/// One request.
pub(crate) enum Call {
    WriteStatus(Box<StatusWrite>),
    Adopt {
        job_uid: String,
        pod: PodRef,
    },
    Release {
        job_uid: String,
        pod: PodRef,
    },
    Relist {
        uids: Vec<String>,
    },
    Create(NewPod),
    /// Takes the finalizer off a pod, which is deleted then. Without that it must not be: its end
    /// would count.
    Strip(PodRef),
    Delete(PodRef),
    Unpin(PodRef),
    /// Takes the finalizer off a pod that is nobody's.
    LetGo(Orphan),
    /// Deletes a Job that has been kept long enough, unless it says otherwise by now.
    Expire,
}

/// Cuts a step into groups of requests.
pub(super) fn cut(step: Step) -> Vec<Vec<Call>> {
    let group = match step {
        Step::WriteStatus(write) => vec![Call::WriteStatus(write)],
        Step::Adopt { job_uid, pods } => {
            let adopt = |pod| Call::Adopt { job_uid: job_uid.clone(), pod };
            pods.into_iter().map(adopt).collect()
        }
        Step::Release { job_uid, pods } => {
            let release = |pod| Call::Release { job_uid: job_uid.clone(), pod };
            pods.into_iter().map(release).collect()
        }
        Step::Relist { uids } => vec![Call::Relist { uids }],
        Step::Create(pods) => {
            let batch =
                |range: Range<usize>| pods[range].iter().cloned().map(Call::Create).collect();
            return slow_start(pods.len()).map(batch).collect();
        }
        Step::Delete { pods, strip_finalizer_first: true } => {
            pods.into_iter().map(Call::Strip).collect()
        }
        Step::Delete { pods, strip_finalizer_first: false } => {
            pods.into_iter().map(Call::Delete).collect()
        }
        Step::RemoveFinalizers(pods) => pods.into_iter().map(Call::Unpin).collect(),
        Step::Emit(_) | Step::Note(_) => Vec::new(),
    };
    vec![group]
}

impl controller::Call for Call {
    fn send(&self, api: &mut Api, key: &Key) -> Answer {
        let job = &key.name;
        match self {
            Self::WriteStatus(write) => {
                let version = (&*write.uid, &*write.resource_version);
                request::write_status(api, (Kind::Job, job), version, &write.status)
            }
            Self::Adopt { job_uid, pod } => {
                if job_of(api, job, job_uid).is_none_or(|job| job.meta.is_deleting()) {
                    return Err(Status::modified(api.resource(Kind::Job), job));
                }
                send_patch(api, pod, &patch::adopt(pod, job, job_uid))
            }
            Self::Release { job_uid, pod } => send_patch(api, pod, &patch::release(pod, job_uid)),
            Self::Relist { .. } => Ok(None),
            Self::Create(new) => request::create(api, Kind::Pod, &new.pod),
            Self::Strip(pod) | Self::Unpin(pod) => {
                send_patch(api, pod, &patch::remove_finalizer(pod))
            }
            Self::LetGo(Orphan { pod, unseen }) => {
                if let Some((key, uid)) = unseen
                    && job_of(api, &key.name, uid).is_some()
                {
                    return Err(Status::modified(api.resource(Kind::Job), &key.name));
                }
                send_patch(api, pod, &patch::remove_finalizer(pod))
            }
            Self::Delete(pod) => request::delete(api, (Kind::Pod, &pod.name), &pod.uid, None),
            Self::Expire => {
                let Some(found) = api.get(Kind::Job, job).cloned() else { return Ok(None) };
                match expiry(&api.job(&found)) {
                    Expiry::At(at) if at <= api.now() => {}
                    Expiry::At(_) | Expiry::Never | Expiry::Unknown => return Ok(None),
                }
                let propagation = Some(Propagation::Foreground);
                request::delete(api, (Kind::Job, job), &found.meta.uid, propagation)
            }
        }
    }

    fn target<'a>(&'a self, api: &Api, key: &'a Key) -> Option<(Kind, &'a str)> {
        match self {
            Self::WriteStatus(write) => {
                job_of(api, &key.name, &write.uid).map(|_| (Kind::Job, &*key.name))
            }
            Self::Adopt { pod, .. }
            | Self::Release { pod, .. }
            | Self::Strip(pod)
            | Self::Delete(pod)
            | Self::Unpin(pod)
            | Self::LetGo(Orphan { pod, .. }) => Some((Kind::Pod, &pod.name)),
            Self::Relist { .. } | Self::Create(_) | Self::Expire => None,
        }
    }

    fn told(&self, key: &Key) -> String {
        match self {
            Self::WriteStatus(write) => {
                let status = serde_json::to_string(&write.status).unwrap_or_default();
                format!("writes status over @{} {status}", write.resource_version)
            }
            Self::Adopt { pod, .. } => format!("adopts {}", pod.name),
            Self::Release { pod, .. } => format!("releases {}", pod.name),
            Self::Relist { uids } => format!("lists pods, looking for {}", uids.join(", ")),
            Self::Create(new) => format!("creates {} (index {:?})", new.name, new.index),
            Self::Strip(pod) => format!("strips {}", pod.name),
            Self::Delete(pod) => format!("deletes {}", pod.name),
            Self::Unpin(pod) => format!("unpins {}", pod.name),
            Self::LetGo(orphan) => format!("lets go of {}", orphan.pod.name),
            Self::Expire => format!("deletes {}, which has been kept enough", key.name),
        }
    }
}

/// The Job of this name, if it is still the one that has this uid.
fn job_of<'a>(api: &'a Api, name: &str, uid: &str) -> Option<&'a Arc<Object>> {
    api.get(Kind::Job, name).filter(|job| *job.meta.uid == *uid)
}

fn send_patch(api: &mut Api, pod: &PodRef, patch: &Value) -> Answer {
    let patch = Patch::strategic(patch.to_string().as_bytes())?;
    api.patch(Kind::Pod, None, &pod.name, &patch).map(Some)
}
