//! Recording events on objects, without ever holding up whoever has something to tell.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::sync::mpsc;
use tracing::debug;

/// How many events may wait to be written; more are dropped and counted.
const WAITING_MAX: usize = 16_384;

/// How many events are written at the same time.
const WRITERS: usize = 8;

/// How many events are remembered, to count repetitions instead of writing them again.
const REMEMBERED_MAX: usize = 4_096;

/// The longest message the API accepts.
const MESSAGE_MAX: usize = 1024;

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

/// What an event about `pod`, or about a part of it, refers to.
pub fn pod_reference(pod: &Pod, field_path: Option<String>) -> ObjectReference {
    let meta = &pod.metadata;
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        name: meta.name.clone(),
        namespace: meta.namespace.clone(),
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
        field_path,
    }
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
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        let source =
            EventSource { component: Some(component.to_owned()), host: Some(host.to_owned()) };
        tokio::spawn(write_all(client, source, receiver));
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

/// What makes two events the same.
type Sameness = (Option<String>, Option<String>, String, String);

/// An event that was told before.
#[derive(Clone)]
struct Remembered {
    name: String,
    count: i32,
    first_at: Timestamp,
}

/// What to do about a note.
enum Write {
    New(Box<Event>),
    /// The event is there already, most likely: it expires after a while.
    Again(Box<Event>),
}

async fn write_all(
    client: Client,
    source: EventSource,
    receiver: mpsc::Receiver<(Note, Timestamp)>,
) {
    let mut remembered: HashMap<Sameness, Remembered> = HashMap::new();
    let notes = futures::stream::unfold(receiver, |mut receiver| async {
        receiver.recv().await.map(|note| (note, receiver))
    });
    let writes = notes.map(|(note, at)| next_write(&mut remembered, &source, note, at));
    let client = &client;
    writes.for_each_concurrent(WRITERS, |write| carry_out(client, write)).await;
}

fn next_write(
    remembered: &mut HashMap<Sameness, Remembered>,
    source: &EventSource,
    mut note: Note,
    at: Timestamp,
) -> Write {
    cut(&mut note.message);
    let about = &note.regarding;
    let same =
        (about.uid.clone(), about.field_path.clone(), note.reason.clone(), note.message.clone());
    let namespace =
        about.namespace.clone().filter(|it| !it.is_empty()).unwrap_or_else(|| "default".to_owned());
    if remembered.len() >= REMEMBERED_MAX && !remembered.contains_key(&same) {
        remembered.clear();
    }
    let of = about.name.as_deref().unwrap_or_default();
    let name = || format!("{of}.{:x}", at.as_nanosecond());
    let known = remembered.entry(same).or_insert_with(|| Remembered {
        name: name(),
        count: 0,
        first_at: at,
    });
    known.count = known.count.saturating_add(1);
    let Remembered { name, count, first_at } = known.clone();
    let event = Box::new(Event {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(namespace),
            ..ObjectMeta::default()
        },
        type_: Some(if note.is_warning { "Warning" } else { "Normal" }.to_owned()),
        reason: Some(note.reason),
        message: Some(note.message),
        first_timestamp: Some(Time(first_at)),
        last_timestamp: Some(Time(at)),
        count: Some(count),
        reporting_component: source.component.clone(),
        reporting_instance: source.host.clone(),
        source: Some(source.clone()),
        involved_object: note.regarding,
        ..Event::default()
    });
    if count == 1 { Write::New(event) } else { Write::Again(event) }
}

async fn carry_out(client: &Client, write: Write) {
    let (Write::New(event) | Write::Again(event)) = &write;
    let namespace = event.metadata.namespace.as_deref().unwrap_or_default();
    let api: Api<Event> = Api::namespaced(client.clone(), namespace);
    let create = async || api.create(&PostParams::default(), event).await.map(drop);
    let outcome = match &write {
        Write::New(_) => create().await,
        Write::Again(_) => {
            let name = event.metadata.name.as_deref().unwrap_or_default();
            let patch = json!({"count": event.count, "lastTimestamp": event.last_timestamp});
            match api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await {
                // It has expired, but what it says goes on.
                Err(kube::Error::Api(status)) if status.code == 404 => create().await,
                patched => patched.map(drop),
            }
        }
    };
    if let Err(error) = outcome {
        // The namespace may be going away: nothing depends on it.
        debug!(%error, "event not written");
    }
}

fn cut(message: &mut String) {
    if message.len() > MESSAGE_MAX {
        let mut end = MESSAGE_MAX - 4;
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        message.truncate(end);
        message.push_str(" ...");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(message: &str) -> Note {
        Note {
            regarding: ObjectReference { name: Some("p".to_owned()), ..ObjectReference::default() },
            is_warning: true,
            reason: "BackOff".to_owned(),
            message: message.to_owned(),
        }
    }

    #[test]
    fn repetitions_are_counted_instead_of_written_again() {
        let mut remembered = HashMap::new();
        let source = EventSource::default();
        let mut next =
            |message: &str| next_write(&mut remembered, &source, note(message), Timestamp::now());
        let is_again = |write, wanted| matches!(write, Write::Again(it) if it.count == wanted);
        assert!(matches!(next("a"), Write::New(_)));
        assert!(is_again(next("a"), Some(2)));
        assert!(matches!(next("b"), Write::New(_)));
        assert!(is_again(next("a"), Some(3)));
    }

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
        let mut remembered = HashMap::new();
        for _ in 0..2 {
            let source = EventSource::default();
            let write = next_write(&mut remembered, &source, note("a"), Timestamp::now());
            carry_out(&client, write).await;
        }
        assert_eq!(*methods.lock().unwrap(), ["POST", "PATCH", "POST"]);
    }

    #[test]
    fn long_messages_are_cut_at_a_character() {
        let mut message = "é".repeat(1000);
        cut(&mut message);
        assert!(message.len() <= MESSAGE_MAX && message.ends_with(" ..."));
    }
}
