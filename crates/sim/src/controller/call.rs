//! Requests: what a step comes to, and what comes back.

use std::{collections::VecDeque, sync::Arc};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use lockstep_api::{
    Status, json,
    strategy::{Json, Propagation},
};
use lockstep_control::plan::job::{
    Key, NewPod, Orphan, PodRef, Refusal, RefusalKind, StatusWrite, Step, patch, slow_start,
    ttl::{Expiry, expiry},
};
use lockstep_store::{Object, patch::Patch, rest::DeleteOptions};
use serde_json::{Value, json};

use super::{ACTOR, Controller};
use crate::{
    api::{Api, Kind, map},
    check::Violation,
    cluster::Cluster,
    faults::{Faults, Trouble},
};

/// One request.
#[derive(Clone, Debug)]
pub(super) enum Call {
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
    /// Takes the finalizer off a pod that is deleted next.
    Strip(PodRef),
    Delete(PodRef),
    Unpin(PodRef),
    /// Takes the finalizer off a pod that is nobody's.
    LetGo(Orphan),
    /// Deletes a Job that has been kept long enough, unless it says otherwise by now.
    Expire(Key),
}

/// Cuts steps into requests, each with the number of its group: what is after the group of a
/// request that failed is not tried.
pub(super) fn cut(steps: Vec<Step>) -> VecDeque<(usize, Call)> {
    let mut calls = VecDeque::new();
    let mut group = 0;
    for step in steps {
        group += 1;
        match step {
            Step::WriteStatus(write) => calls.push_back((group, Call::WriteStatus(write))),
            Step::Adopt { job_uid, pods } => calls.extend(pods.into_iter().map(|pod| {
                let job_uid = job_uid.clone();
                (group, Call::Adopt { job_uid, pod })
            })),
            Step::Release { job_uid, pods } => calls.extend(pods.into_iter().map(|pod| {
                let job_uid = job_uid.clone();
                (group, Call::Release { job_uid, pod })
            })),
            Step::Relist { uids } => {
                calls.push_back((group, Call::Relist { uids }));
            }
            Step::Create(pods) => {
                for batch in slow_start(pods.len()) {
                    group += 1;
                    calls.extend(pods[batch].iter().map(|pod| (group, Call::Create(pod.clone()))));
                }
            }
            Step::Delete { pods, strip_finalizer_first } => {
                for pod in pods {
                    if strip_finalizer_first {
                        calls.push_back((group, Call::Strip(pod.clone())));
                    }
                    calls.push_back((group, Call::Delete(pod)));
                }
            }
            Step::RemoveFinalizers(pods) => {
                calls.extend(pods.into_iter().map(|pod| (group, Call::Unpin(pod))));
            }
            Step::Emit(_) | Step::Note(_) => {}
        }
    }
    calls
}

impl Controller {
    /// Sends one request and reports what became of it; whether it failed.
    pub(super) fn call(
        &mut self,
        cluster: &mut Cluster,
        faults: &mut Faults,
        call: Call,
    ) -> Result<bool, Violation> {
        let trouble = faults.request();
        if trouble == Trouble::Conflict {
            disturb(&mut cluster.api, &call);
        }
        let answer = match trouble {
            Trouble::None | Trouble::Conflict => self.send(&mut cluster.api, &call),
            Trouble::Refused => Err(Status::internal("connection refused")),
            Trouble::Unanswered => {
                let _ = self.send(&mut cluster.api, &call);
                Err(Status::internal("connection lost"))
            }
            Trouble::Twice => {
                let _ = self.send(&mut cluster.api, &call);
                self.send(&mut cluster.api, &call)
            }
        };
        let number = self.number;
        cluster.say(ACTOR, || {
            let said = match &answer {
                Ok(Some(object)) => format!("ok, @{}", object.revision()),
                Ok(None) => "ok".to_owned(),
                Err(status) => format!("{} {}", status.code, status.message),
            };
            let is_fine = trouble == Trouble::None;
            let how = if is_fine { String::new() } else { format!(" [{trouble:?}]") };
            format!("{number}{how} {said}: {}", call.told())
        });
        if let Err(status) = &answer
            && (status.code == 422 || status.code == 400)
        {
            return Err(Violation(format!("the API refuses to {}: {status}", call.told())));
        }
        Ok(self.report(cluster, call, answer))
    }

    fn send(&self, api: &mut Api, call: &Call) -> Result<Option<Arc<Object>>, Status> {
        match call {
            Call::WriteStatus(write) => self.write_status(api, write).map(Some),
            Call::Adopt { job_uid, pod } => {
                let key = self.key().expect("pods are adopted for a Job");
                let job = api.get(Kind::Job, &key.name);
                let is_there =
                    job.is_some_and(|job| *job.meta.uid == **job_uid && !job.meta.is_deleting());
                if !is_there {
                    return Err(Status::modified(api.resource(Kind::Job), &key.name));
                }
                send_patch(api, pod, &patch::adopt(pod, &key.name, job_uid)).map(Some)
            }
            Call::Release { job_uid, pod } => {
                send_patch(api, pod, &patch::release(pod, job_uid)).map(Some)
            }
            Call::Relist { .. } => Ok(None),
            Call::Create(new) => {
                let mut pod = map(serde_json::to_value(&new.pod).expect("a pod can be written"));
                pod.remove("apiVersion");
                pod.remove("kind");
                api.create(Kind::Pod, pod).map(Some)
            }
            Call::Strip(pod) | Call::Unpin(pod) => {
                send_patch(api, pod, &patch::remove_finalizer(pod)).map(Some)
            }
            Call::LetGo(Orphan { pod, unseen }) => {
                if let Some((key, uid)) = unseen
                    && api.get(Kind::Job, &key.name).is_some_and(|job| *job.meta.uid == **uid)
                {
                    return Err(Status::modified(api.resource(Kind::Job), &key.name));
                }
                send_patch(api, pod, &patch::remove_finalizer(pod)).map(Some)
            }
            Call::Delete(pod) => {
                let uid = Some(pod.uid.clone());
                let options = DeleteOptions { uid, ..DeleteOptions::default() };
                api.delete(Kind::Pod, &pod.name, &options).map(Some)
            }
            Call::Expire(key) => {
                let Some(job) = api.get(Kind::Job, &key.name).cloned() else { return Ok(None) };
                let uid = Some(job.meta.uid.to_string());
                match expiry(&api.job(&job)) {
                    Expiry::At(at) if at <= api.now() => {}
                    Expiry::At(_) | Expiry::Never | Expiry::Unknown => return Ok(None),
                }
                let propagation = Some(Propagation::Foreground);
                let options = DeleteOptions { uid, propagation, ..DeleteOptions::default() };
                api.delete(Kind::Job, &key.name, &options).map(Some)
            }
        }
    }

    fn write_status(&self, api: &mut Api, write: &StatusWrite) -> Result<Arc<Object>, Status> {
        let name = self.key().expect("a status is that of a Job").name.clone();
        api.edit(Kind::Job, Some("status"), &name, |job| {
            let meta = json::object_mut(job, "metadata");
            meta.insert("uid".to_owned(), json!(write.uid));
            meta.insert("resourceVersion".to_owned(), json!(write.resource_version));
            let status = serde_json::to_value(&write.status).expect("a status can be written");
            job.insert("status".to_owned(), status);
        })
    }

    /// Tells the driver what became of a request; whether it failed.
    fn report(
        &mut self,
        cluster: &mut Cluster,
        call: Call,
        answer: Result<Option<Arc<Object>>, Status>,
    ) -> bool {
        let now = cluster.now();
        let Some(key) = self.key().cloned() else {
            self.report_beside(call, answer.map_err(|status| refusal(&status)), now);
            return false;
        };
        let answer = answer.map_err(|status| refusal(&status));
        let (jobs, api) = (&mut self.jobs, &mut cluster.api);
        match (call, answer) {
            (Call::WriteStatus(_), Ok(object)) => {
                object.iter().for_each(|job| jobs.status_written(&key, &api.job(job)));
                false
            }
            (Call::Relist { uids }, Ok(_)) => {
                let pods: Vec<Arc<Object>> = api.list(Kind::Pod).cloned().collect();
                let pods: Vec<Pod> = pods.iter().map(|pod| (*api.pod(pod)).clone()).collect();
                jobs.relisted(&key, &uids, &pods);
                false
            }
            (Call::WriteStatus(_) | Call::Relist { .. }, Err(refusal)) => {
                jobs.failed(&key, &refusal, now);
                true
            }
            (Call::Create(_), Ok(object)) => {
                object.iter().for_each(|pod| drop(jobs.created(&key, &api.pod(pod))));
                false
            }
            (Call::Create(new), Err(refusal)) => {
                let found = api.get(Kind::Pod, &new.name).cloned().map(|pod| api.pod(&pod));
                let is_there = refusal.kind == RefusalKind::AlreadyExists;
                let found = found.as_deref().filter(|_| is_there);
                jobs.create_failed(&key, &new, &refusal, found);
                true
            }
            (Call::Delete(pod), Ok(object)) => {
                let answer = object.map(|pod| api.pod(&pod));
                jobs.deleted(&key, &pod, answer.as_deref());
                false
            }
            (Call::Delete(pod), Err(refusal)) => {
                jobs.delete_failed(&key, &pod, &refusal);
                refusal.kind != RefusalKind::NotFound
            }
            (_, Ok(object)) => {
                object.iter().for_each(|pod| jobs.patched(&key, &api.pod(pod)));
                false
            }
            (Call::Strip(pod), Err(refusal)) => {
                jobs.delete_failed(&key, &pod, &refusal);
                // Without that the pod must not be deleted: its end would count.
                if let Some(pass) = &mut self.pass {
                    pass.calls.pop_front();
                }
                refusal.kind != RefusalKind::NotFound
            }
            (Call::Adopt { .. }, Err(refusal)) if refusal.kind == RefusalKind::Conflict => {
                jobs.failed(&key, &refusal, now);
                true
            }
            (Call::Adopt { pod, .. } | Call::Release { pod, .. }, Err(refusal)) => {
                jobs.patch_failed(&key, &pod, &refusal);
                refusal.kind != RefusalKind::NotFound
            }
            (Call::Unpin(pod) | Call::LetGo(Orphan { pod, .. }), Err(refusal)) => {
                jobs.patch_failed(&key, &pod, &refusal);
                refusal.kind != RefusalKind::NotFound
            }
            (Call::Expire(_), Err(_)) => false,
        }
    }

    /// What became of a request that is part of no pass over a Job.
    fn report_beside<T>(&mut self, call: Call, answer: Result<T, Refusal>, now: Timestamp) {
        match (call, answer) {
            (Call::LetGo(Orphan { pod, .. }), answer) => {
                self.jobs.orphan_done(&pod, answer.err().as_ref(), now);
            }
            (Call::Expire(key), Err(refusal)) if refusal.kind == RefusalKind::Other => {
                self.ttls.failed(&key, now);
            }
            (Call::Expire(key), _) => self.ttls.done(&key),
            _ => {}
        }
    }

    fn key(&self) -> Option<&Key> {
        self.pass.as_ref()?.key.as_ref()
    }
}

impl Call {
    fn told(&self) -> String {
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
            Self::Expire(key) => format!("deletes {}, which has been kept enough", key.name),
        }
    }
}

fn send_patch(api: &mut Api, pod: &PodRef, patch: &Value) -> Result<Arc<Object>, Status> {
    let body = patch.to_string();
    api.patch(Kind::Pod, None, &pod.name, &Patch::strategic(body.as_bytes())?)
}

/// Somebody else writes what the request is about, just before it arrives.
fn disturb(api: &mut Api, call: &Call) {
    let (kind, name) = match call {
        Call::WriteStatus(write) => {
            let job = api.list(Kind::Job).find(|job| *job.meta.uid == *write.uid);
            let Some(job) = job else { return };
            (Kind::Job, job.meta.name.to_string())
        }
        Call::Adopt { pod, .. }
        | Call::Release { pod, .. }
        | Call::Strip(pod)
        | Call::Delete(pod)
        | Call::Unpin(pod)
        | Call::LetGo(Orphan { pod, .. }) => (Kind::Pod, pod.name.clone()),
        Call::Relist { .. } | Call::Create(_) | Call::Expire(_) => return,
    };
    note(api, kind, &name);
}

/// Somebody writes something that matters to nobody.
pub(crate) fn note(api: &mut Api, kind: Kind, name: &str) {
    let note = |object: &mut Json| {
        let meta = json::object_mut(object, "metadata");
        let notes = json::object_mut(meta, "annotations");
        let count = json::text(notes, &["sim/disturbed"]).len();
        notes.insert("sim/disturbed".to_owned(), json!("x".repeat(count + 1)));
    };
    // What is not there cannot be disturbed.
    let _ = api.edit(kind, None, name, note);
}

/// A no, as drivers want to hear it.
pub(crate) fn refusal(status: &Status) -> Refusal {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let causes = causes.map(|cause| cause.reason.as_str());
    let kind = RefusalKind::of(status.code, &status.reason, &status.message, causes);
    Refusal { kind, message: status.message.clone() }
}
