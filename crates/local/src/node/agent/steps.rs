//! Carrying out steps, and what follows when they are done.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client, ResourceExt};
use lockstep_control::plan::pod::{Event, Role, Step, containers, spec_of, thresholds};
use tracing::warn;

use super::backend::{Backend, Outcome, Told};
use super::patch::status_patch;
use super::{Agent, Message};
use crate::recorder::{Note, pod_reference};

/// The longest wait between two tries of a write.
const RETRY_MAX: Duration = Duration::from_secs(10);

impl<B: Backend> Agent<B> {
    /// Carries out one step, or sets it going.
    pub(super) fn carry_out(&mut self, uid: &str, pod: &Arc<Pod>, step: Step) {
        let backend = Arc::clone(&self.backend);
        let pod = Arc::clone(pod);
        match step {
            Step::SetUp => {
                self.report(uid, async move { Outcome::SetUp(backend.set_up(pod).await) });
            }
            Step::Start { container, attempt } => {
                let starts = Arc::clone(&self.starts);
                self.report(uid, async move {
                    let _permit = starts.acquire().await;
                    let result = backend.start(pod, container.clone(), attempt).await;
                    Outcome::Started { container, attempt, result }
                });
            }
            Step::RunHook { container, attempt, kind, within } => self.report(uid, async move {
                let is_ok = backend.run_hook(pod, container.clone(), attempt, kind, within).await;
                Outcome::Hook { container, attempt, kind, is_ok }
            }),
            Step::Probe { container, attempt, kind } => self.report(uid, async move {
                let outcome = backend.probe(pod, container.clone(), attempt, kind).await;
                Outcome::Probed { container, attempt, kind, outcome }
            }),
            Step::Terminate { container, attempt, signal } => {
                backend.terminate(uid, &container, attempt, signal);
            }
            Step::Kill { container, attempt } => backend.kill(uid, &container, attempt),
            Step::Emit(event) => self.tell(&pod, event),
            Step::WriteStatus(status) => {
                let (client, writes) = (self.client.clone(), Arc::clone(&self.writes));
                self.report(uid, async move {
                    let _permit = writes.acquire().await;
                    Outcome::Written(write_status(&client, &pod, &status).await)
                });
            }
            Step::ConfirmDelete => {
                let (client, writes) = (self.client.clone(), Arc::clone(&self.writes));
                self.report(uid, async move {
                    let _permit = writes.acquire().await;
                    Outcome::Deleted(confirm_delete(&client, &pod).await)
                });
            }
            Step::TearDown => backend.tear_down(uid),
            Step::Forget => {
                backend.forget(uid);
                self.pods.remove(uid);
                self.queue.remove(&uid.to_owned());
            }
        }
    }

    /// Notes what became of a step.
    pub(super) fn done(&mut self, uid: String, outcome: Outcome, now: Timestamp) {
        let options = &self.options.pods;
        let Some(entry) = self.pods.get_mut(&uid) else { return };
        let memory = &mut entry.memory;
        let mut at = now;
        let mut notes = Vec::new();
        match outcome {
            Outcome::SetUp(Ok(ip)) => memory.set_up(ip),
            Outcome::SetUp(Err(message)) => memory.set_up_failed(message, options, now),
            Outcome::Started { container, attempt, result: Ok(launched) } => {
                memory.started(&container, attempt, launched.at);
                notes.extend(launched.notes.into_iter().map(|told| (told, container.clone())));
            }
            Outcome::Started { container, attempt, result: Err(failure) } => {
                memory.start_failed(&container, attempt, failure, options, now);
            }
            Outcome::Hook { container, attempt, kind, is_ok } => {
                memory.hook_done(&container, attempt, kind, is_ok);
            }
            Outcome::Probed { container, attempt, kind, outcome } => {
                let spec = containers(&entry.pod).find(|(_, it)| it.name == container);
                let limits = spec.and_then(|(_, it)| spec_of(it, kind)).map(thresholds);
                memory.probed(&container, attempt, kind, &outcome, limits.unwrap_or((3, 1)));
            }
            Outcome::Written(Ok(Some(pod))) => {
                memory.status_written();
                entry.failures = 0;
                if super::version(&pod) > super::version(&entry.pod) {
                    entry.pod = Arc::from(pod);
                }
            }
            // The watch is about to tell what the pod is by now, or that it is gone.
            Outcome::Written(Ok(None)) => {
                memory.status_written();
                at = later(now, &mut entry.failures);
            }
            Outcome::Written(Err(error)) => {
                warn!(pod = %entry.pod.name_any(), %error, "status not written");
                memory.status_written();
                at = later(now, &mut entry.failures);
            }
            Outcome::Deleted(Ok(())) => entry.failures = 0,
            Outcome::Deleted(Err(error)) => {
                warn!(pod = %entry.pod.name_any(), %error, "pod not deleted");
                memory.delete_failed();
                at = later(now, &mut entry.failures);
            }
        }
        let pod = Arc::clone(&entry.pod);
        for (told, container) in notes {
            let Told { is_warning, reason, message } = told;
            let container = Some(container);
            self.tell(&pod, Event { is_warning, reason, message, container });
        }
        self.queue.add(uid, at);
    }

    /// Runs `work` beside the agent and tells it the outcome.
    fn report(&self, uid: &str, work: impl Future<Output = Outcome> + Send + 'static) {
        let (sender, uid) = (self.sender.clone(), uid.to_owned());
        tokio::spawn(async move {
            let outcome = work.await;
            // The agent has ended when nobody hears this.
            let _ = sender.send(Message::Done { uid, outcome }).await;
        });
    }

    fn tell(&self, pod: &Pod, event: Event) {
        if !self.backend.tells_events() {
            return;
        }
        let part = event.container.as_ref().map(|name| {
            let role = containers(pod).find(|(_, it)| it.name == *name).map(|(role, _)| role);
            match role {
                Some(Role::Init | Role::Sidecar) => format!("spec.initContainers{{{name}}}"),
                Some(Role::Main) | None => format!("spec.containers{{{name}}}"),
            }
        });
        self.recorder.record(Note {
            regarding: pod_reference(pod, part),
            is_warning: event.is_warning,
            reason: event.reason.to_owned(),
            message: event.message,
        });
    }
}

/// When to try a write again that failed.
fn later(now: Timestamp, failures: &mut u32) -> Timestamp {
    let factor = 1_u32.checked_shl(*failures).unwrap_or(u32::MAX);
    *failures = failures.saturating_add(1);
    let wait = Duration::from_millis(200).saturating_mul(factor).min(RETRY_MAX);
    now.checked_add(wait).unwrap_or(now)
}

/// Writes the status; gives back the object as it is now, `None` when it is no longer the one we
/// know.
async fn write_status(
    client: &Client,
    pod: &Pod,
    status: &PodStatus,
) -> kube::Result<Option<Box<Pod>>> {
    let patch = status_patch(pod, status).map_err(kube::Error::SerdeError)?;
    let api: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
    let params = PatchParams::default();
    match api.patch_status(&pod.name_any(), &params, &Patch::Strategic(patch)).await {
        Ok(pod) => Ok(Some(Box::new(pod))),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        // The pod has changed meanwhile, or another one has taken its name.
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(None),
        Err(error) => Err(error),
    }
}

async fn confirm_delete(client: &Client, pod: &Pod) -> kube::Result<()> {
    let api: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
    let params = DeleteParams {
        grace_period_seconds: Some(0),
        preconditions: Some(Preconditions { uid: pod.uid(), resource_version: None }),
        ..DeleteParams::default()
    };
    match api.delete(&pod.name_any(), &params).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        Err(error) => Err(error),
    }
}
