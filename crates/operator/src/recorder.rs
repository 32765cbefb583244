//! Recording events on objects, without ever holding up whoever has something to tell.

mod correlate;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, ObjectReference, Pod};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Resource};
use tokio::sync::{mpsc, watch};
use tracing::debug;

use correlate::{Correlator, Write};

/// How many events may wait to be written; more are dropped and counted.
const WAITING_MAX: usize = 65_536;

/// How many events are written at the same time.
const WRITERS: usize = 8;

/// For how long an event waits, at the most, while there is something better to do.
const PATIENCE: Duration = Duration::from_millis(100);

/// Something to tell about an object.
#[derive(Clone, Debug)]
pub struct Note {
    /// What it is about.
    pub regarding: ObjectReference,
    /// Whether it is a `Warning` rather than `Normal`.
    pub is_warning: bool,
    /// Why, in CamelCase.
    pub reason: String,
    /// For people.
    pub message: String,
}

/// What an event about `object` refers to.
pub fn reference<K: Resource<DynamicType = ()>>(object: &K) -> ObjectReference {
    let meta = object.meta();
    ObjectReference {
        api_version: Some(K::api_version(&()).into_owned()),
        kind: Some(K::kind(&()).into_owned()),
        name: meta.name.clone(),
        namespace: meta.namespace.clone(),
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
        field_path: None,
    }
}

/// What an event about `pod`, or about a part of it, refers to.
pub fn pod_reference(pod: &Pod, field_path: Option<String>) -> ObjectReference {
    ObjectReference { field_path, ..reference(pod) }
}

/// Who tells, and in which of the two forms of events.
#[derive(Clone, Debug, Default)]
pub struct Reporter {
    /// The component or controller.
    pub component: String,
    /// Where it runs.
    pub instance: String,
    /// What it was doing: events are then of the newer form, with a series where they repeat.
    /// Without it they are of the older one, with a count.
    pub action: Option<&'static str>,
}

/// Writes events in the background.
#[derive(Clone)]
pub struct Recorder {
    sender: mpsc::Sender<(Note, Timestamp)>,
    dropped: Arc<AtomicU64>,
}

impl Recorder {
    /// A recorder that speaks for `component` on `host`. It works until the last clone is dropped.
    pub fn spawn(client: Client, component: &str, host: &str) -> Self {
        let (component, instance) = (component.to_owned(), host.to_owned());
        Self::spawn_as(client, Reporter { component, instance, action: None })
    }

    /// A recorder that speaks for `reporter`. It works until the last clone is dropped.
    pub fn spawn_as(client: Client, reporter: Reporter) -> Self {
        let (_, never_busy) = watch::channel(false);
        Self::spawn_behind(client, reporter, never_busy)
    }

    /// The same, for somebody whose own work goes first: while it is `busy` events go on slowly,
    /// however many there are.
    pub fn spawn_behind(client: Client, reporter: Reporter, busy: watch::Receiver<bool>) -> Self {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        tokio::spawn(write_all(client, reporter, receiver, busy));
        Self { sender, dropped: Arc::default() }
    }

    /// Records `note`, soon.
    pub fn record(&self, note: Note) {
        if self.sender.try_send((note, Timestamp::now())).is_err() {
            let count = self.dropped.fetch_add(1, Ordering::Relaxed) + 1;
            debug!(count, "event dropped: too many are waiting");
        }
    }

    /// How many events were dropped because too many were waiting.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

async fn write_all(
    client: Client,
    reporter: Reporter,
    mut receiver: mpsc::Receiver<(Note, Timestamp)>,
    busy: watch::Receiver<bool>,
) {
    let mut correlator = Correlator::new(reporter);
    let mut waiting = VecDeque::new();
    let mut writes = FuturesUnordered::new();
    let mut is_open = true;
    while is_open || !waiting.is_empty() || !writes.is_empty() {
        let next_due = correlator
            .next_due()
            .filter(|_| is_open)
            .map(|at| Duration::try_from(at.duration_since(Timestamp::now())).unwrap_or_default());
        tokio::select! {
            note = receiver.recv(), if is_open && waiting.len() < WRITERS => match note {
                Some((note, at)) => waiting.extend(correlator.note(note, at)),
                None => {
                    is_open = false;
                    // Nobody will tell more: what was held back is written now.
                    waiting.extend(correlator.take_due(Timestamp::MAX));
                }
            },
            Some(same) = writes.next(), if !writes.is_empty() => {
                correlator.written(&same);
                if !is_open {
                    waiting.extend(correlator.take_due(Timestamp::MAX));
                }
            }
            () = tokio::time::sleep(next_due.unwrap_or_default()), if next_due.is_some() => {
                waiting.extend(correlator.take_due(Timestamp::now()));
            }
        }
        while writes.len() < WRITERS
            && let Some(write) = waiting.pop_front()
        {
            let (client, mut busy) = (&client, busy.clone());
            writes.push(async move {
                // Whoever was busy may be gone, and time may be up: it is written all the same.
                let _ = tokio::time::timeout(PATIENCE, busy.wait_for(|is_busy| !is_busy)).await;
                carry_out(client, &write).await;
                write.same
            });
        }
    }
}

async fn carry_out(client: &Client, write: &Write) {
    let event = &write.event;
    let namespace = event.metadata.namespace.as_deref().unwrap_or_default();
    let api: Api<Event> = Api::namespaced(client.clone(), namespace);
    let create = async || crate::write::create_event(client, namespace, event).await;
    let outcome = if write.is_repeated {
        let name = event.metadata.name.as_deref().unwrap_or_default();
        match api.patch(name, &PatchParams::default(), &Patch::Merge(write.patch())).await {
            // It has expired, but what it says goes on.
            Err(kube::Error::Api(status)) if status.code == 404 => create().await,
            patched => patched.map(drop),
        }
    } else {
        create().await
    };
    if let Err(error) = outcome {
        // The namespace may be going away: nothing depends on it.
        debug!(%error, "event not written");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_repeated_event_that_has_expired_is_written_anew() {
        let methods = Arc::new(std::sync::Mutex::new(Vec::new()));
        let seen = Arc::clone(&methods);
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let is_patch = request.method() == http::Method::PATCH;
            seen.lock().unwrap().push(request.method().to_string());
            let not_found = r#"{"kind":"Status","code":404,"reason":"NotFound"}"#;
            let (code, body) = if is_patch { (404, not_found) } else { (201, "{}") };
            let body = kube::client::Body::from(body.as_bytes().to_vec());
            let answer = http::Response::builder().status(code).body(body);
            async move { answer }
        });
        let client = Client::new(service, "default");
        let (sender, receiver) = mpsc::channel(9);
        for _ in 0..2 {
            let regarding =
                ObjectReference { name: Some("p".to_owned()), ..ObjectReference::default() };
            let (reason, message) = ("BackOff".to_owned(), "again".to_owned());
            let note = Note { regarding, is_warning: true, reason, message };
            sender.try_send((note, Timestamp::now())).unwrap();
        }
        drop(sender);
        write_all(client, Reporter::default(), receiver, watch::channel(false).1).await;
        assert_eq!(*methods.lock().unwrap(), ["POST", "PATCH", "POST"]);
    }

    #[tokio::test(start_paused = true)]
    async fn events_wait_while_there_is_something_better_to_do_but_not_for_ever() {
        let written = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&written);
        let service = tower::service_fn(move |_: http::Request<kube::client::Body>| {
            count.fetch_add(1, Ordering::Relaxed);
            let body = kube::client::Body::from(b"{}".to_vec());
            let answer = http::Response::builder().status(201).body(body);
            async move { answer }
        });
        let (tell, busy) = watch::channel(true);
        let client = Client::new(service, "default");
        let recorder = Recorder::spawn_behind(client, Reporter::default(), busy);
        for name in 0..100 {
            let name = Some(name.to_string());
            let regarding = ObjectReference { name, ..ObjectReference::default() };
            let (reason, message) = ("Admitted".to_owned(), "it runs".to_owned());
            recorder.record(Note { regarding, is_warning: false, reason, message });
        }
        let writers = u64::try_from(WRITERS).unwrap();
        for (after, want) in [(PATIENCE / 2, 0), (PATIENCE, writers), (PATIENCE, 2 * writers)] {
            tokio::time::sleep(after).await;
            assert_eq!(written.load(Ordering::Relaxed), want);
        }
        tell.send_replace(false);
        tokio::time::sleep(PATIENCE / 4).await;
        assert_eq!(written.load(Ordering::Relaxed), 100, "nothing else is to be done");
    }
}
