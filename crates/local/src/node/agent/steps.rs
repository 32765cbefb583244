//! Carrying out steps, and what follows when they are done.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use kube::{Client, ResourceExt};
use lockstep_control::plan::pod::{Event, Role, Step, containers, spec_of, thresholds};
use lockstep_operator::write;
use tracing::warn;

use super::backend::{Backend, Outcome, Told};
use super::patch::status_patch;
use super::{Agent, Message, STALE_PATIENCE};
use crate::recorder::{Note, pod_reference};

impl<B: Backend> Agent<B> {
    /// Carries out one step, or sets it going. Gives back what came of it if that is known at once.
    pub(super) fn carry_out(&mut self, uid: &str, pod: &Arc<Pod>, step: Step) -> Option<Outcome> {
        let backend = Arc::clone(&self.backend);
        let pod = Arc::clone(pod);
        match step {
            Step::SetUp => {
                if let Some(result) = backend.set_up_at_once(&pod) {
                    return Some(Outcome::SetUp(result));
                }
                self.report(uid, async move { Outcome::SetUp(backend.set_up(pod).await) });
            }
            Step::Start { container, attempt } => {
                if let Some(result) = backend.start_at_once(&pod, &container, attempt) {
                    return Some(Outcome::Started { container, attempt, result });
                }
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
                    write_status(&client, &pod, &status).await
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
                let uid = uid.to_owned();
                self.pods.remove(&uid);
                self.queue.remove(&uid);
                self.backoff.succeeded(&uid);
            }
        }
        None
    }

    /// Notes what became of a step.
    pub(super) fn done(&mut self, uid: String, outcome: Outcome, now: Timestamp) {
        let options = &self.options.pods;
        let Some(entry) = self.pods.get_mut(&uid) else { return };
        let memory = &mut entry.memory;
        let mut at = now;
        let mut notes = Vec::new();
        let is_write =
            matches!(outcome, Outcome::Written(_) | Outcome::Stale(_) | Outcome::Deleted(_));
        let mut patience = Duration::ZERO;
        match outcome {
            Outcome::SetUp(Ok(ip)) => memory.set_up(ip),
            Outcome::SetUp(Err(message)) => memory.set_up_failed(message, options, now),
            Outcome::Started { container, attempt, result: Ok(launched) } => {
                memory.started(&container, attempt, launched.at);
                if let Some(exit) = launched.exit {
                    memory.exited(&container, attempt, exit);
                }
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
            Outcome::Written(Ok(version)) => {
                entry.is_failing = false;
                self.backoff.succeeded(&uid);
                if version > super::version(&entry.pod) {
                    entry.awaited = Some(version);
                    return;
                }
                memory.status_written();
            }
            Outcome::Stale(version) => {
                memory.status_written();
                // Unless it has told already, the watch is about to tell what the pod is by now, or
                // that it is gone.
                entry.is_failing = version == super::version(&entry.pod);
                patience = STALE_PATIENCE;
            }
            Outcome::Written(Err(error)) => {
                warn!(pod = %entry.pod.name_any(), %error, "status not written");
                memory.status_written();
                entry.is_failing = true;
            }
            Outcome::Deleted(Ok(())) => {
                entry.is_failing = false;
                self.backoff.succeeded(&uid);
            }
            Outcome::Deleted(Err(error)) => {
                warn!(pod = %entry.pod.name_any(), %error, "pod not deleted");
                memory.delete_failed();
                entry.is_failing = true;
            }
        }
        if entry.is_failing && is_write {
            at = now.checked_add(self.backoff.failed(&uid).max(patience)).unwrap_or(now);
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

/// Writes the status.
async fn write_status(client: &Client, pod: &Pod, status: &PodStatus) -> Outcome {
    let patch = match status_patch(pod, status) {
        Ok(patch) => patch,
        Err(error) => return Outcome::Written(Err(kube::Error::SerdeError(error))),
    };
    let namespace = pod.namespace().unwrap_or_default();
    match write::patch_pod_status(client, (&namespace, &pod.name_any()), patch).await {
        // It is gone, has changed meanwhile, or another one has taken its name.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {
            Outcome::Stale(super::version(pod))
        }
        written => Outcome::Written(written.map(|version| super::number(&version))),
    }
}

async fn confirm_delete(client: &Client, pod: &Pod) -> kube::Result<()> {
    let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
    let uid = pod.uid().unwrap_or_default();
    match write::confirm_pod_deletion(client, (&namespace, &name, &uid)).await {
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::FutureExt;
    use futures::future::BoxFuture;
    use lockstep_control::plan::pod::{HookKind, Known, ProbeKind, ProbeOutcome, StartFailure};

    use super::super::{AgentOptions, Launched};
    use super::*;
    use crate::feeds::Feeds;

    /// A backend that starts everything at once.
    struct Instantly;

    impl Backend for Instantly {
        fn owns(&self, node: &str) -> bool {
            node == "n"
        }

        fn host_ip(&self, _node: &str) -> String {
            "127.0.0.1".to_owned()
        }

        fn set_up(&self, _pod: Arc<Pod>) -> BoxFuture<'static, Result<String, String>> {
            async { Ok("127.0.0.2".to_owned()) }.boxed()
        }

        fn start(
            &self,
            _pod: Arc<Pod>,
            _container: String,
            _attempt: u32,
        ) -> BoxFuture<'static, Result<Launched, StartFailure>> {
            async { Ok(Launched { at: Timestamp::now(), notes: Vec::new(), exit: None }) }.boxed()
        }

        fn run_hook(
            &self,
            _pod: Arc<Pod>,
            _container: String,
            _attempt: u32,
            _kind: HookKind,
            _within: Option<Duration>,
        ) -> BoxFuture<'static, bool> {
            async { true }.boxed()
        }

        fn probe(
            &self,
            _pod: Arc<Pod>,
            _container: String,
            _attempt: u32,
            _kind: ProbeKind,
        ) -> BoxFuture<'static, ProbeOutcome> {
            async { ProbeOutcome::Success }.boxed()
        }

        fn terminate(&self, _pod_uid: &str, _container: &str, _attempt: u32, _signal: i32) {}

        fn kill(&self, _pod_uid: &str, _container: &str, _attempt: u32) {}

        fn forget(&self, _pod_uid: &str) {}

        fn recover(&self) -> Vec<(String, Vec<Known>)> {
            Vec::new()
        }

        fn tells_events(&self) -> bool {
            false
        }
    }

    /// A server with one pod, which answers every patch with `code`; counts them.
    fn client(code: u16, count: &Arc<AtomicUsize>) -> Client {
        let count = Arc::clone(count);
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let is_patch = request.method() == http::Method::PATCH;
            let is_watch = request.uri().query().unwrap_or_default().contains("watch=true");
            let is_pods = request.uri().path().ends_with("/pods");
            count.fetch_add(usize::from(is_patch), Ordering::SeqCst);
            let answer = match (is_patch, is_watch) {
                (true, _) => Some((code, format!(r#"{{"kind":"Status","code":{code}}}"#))),
                (_, true) => None,
                _ => {
                    let pod = r#"{"metadata":{"name":"p","namespace":"ns","uid":"u",
                        "resourceVersion":"1"},"spec":{"nodeName":"n","containers":
                        [{"name":"c"}]},"status":{"phase":"Pending"}}"#;
                    let items = if is_pods { pod } else { "" };
                    let meta = r#""metadata":{"resourceVersion":"1"}"#;
                    Some((200, format!(r#"{{{meta},"items":[{items}]}}"#)))
                }
            };
            async move {
                let Some((code, text)) = answer else { return std::future::pending().await };
                http::Response::builder()
                    .status(code)
                    .body(kube::client::Body::from(text.into_bytes()))
            }
        });
        Client::new(service, "default")
    }

    #[tokio::test]
    async fn a_status_that_is_not_taken_is_written_again_later_and_later() {
        let mut agents = Vec::new();
        for code in [404, 409, 500] {
            let count = Arc::<AtomicUsize>::default();
            let client = client(code, &count);
            let feeds = Feeds::start(&client);
            let (ends, receiver) = tokio::sync::mpsc::unbounded_channel();
            let options = AgentOptions::for_node("n");
            let pods = feeds.pods.clone();
            let agent = Agent::start(client, pods, Arc::new(Instantly), receiver, options);
            agents.push((code, count, agent, ends, feeds));
        }
        let limit = std::time::Instant::now() + Duration::from_secs(30);
        for (code, count, ..) in &agents {
            while count.load(Ordering::SeqCst) < 2 {
                assert!(std::time::Instant::now() < limit, "{code}: it is not tried again");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        // After 0, 200, 600 and 1400 milliseconds.
        tokio::time::sleep(Duration::from_millis(900)).await;
        for (code, count, ..) in &agents {
            let count = count.load(Ordering::SeqCst);
            assert!(count <= 5, "{code}: {count} writes in about a second");
        }
    }
}
