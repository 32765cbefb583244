use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use kube::{Client, client::Body};
use serde_json::json;

use super::*;
use crate::run::{screen::Manner, style::Color, watches};

fn pod(status: &Value) -> Value {
    let metadata = json!({"namespace": "default", "name": "p", "uid": "u", "resourceVersion": "2"});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": status})
}

type Answer = UnsyncBoxBody<Bytes, std::io::Error>;

fn answer(text: String) -> Answer {
    Full::from(text).map_err(|never| match never {}).boxed_unsync()
}

fn silence() -> Answer {
    StreamBody::new(futures::stream::pending()).boxed_unsync()
}

/// A cluster with one pod whose n-th watch answers with `watch(n)`, and without events.
fn cluster(
    status: Value,
    watch: impl Fn(usize) -> Answer + Clone + Send + Sync + 'static,
) -> Cluster {
    let count = Arc::new(AtomicUsize::new(0));
    let service = tower::service_fn(move |request: Request<Body>| {
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let is_about_events = request.uri().path().ends_with("/events");
        let body = match (is_watch, is_about_events) {
            (true, true) => silence(),
            (true, false) => watch(count.fetch_add(1, Ordering::Relaxed)),
            (false, _) => {
                let items = if is_about_events { json!([]) } else { json!([pod(&status)]) };
                let metadata = json!({"resourceVersion": "1"});
                answer(json!({"metadata": metadata, "items": items}).to_string())
            }
        };
        async move { Ok::<_, std::convert::Infallible>(Response::new(body)) }
    });
    Cluster::inside(Client::new(service, "default"), "default")
}

fn session(cluster: Cluster, applied: &Value) -> Session {
    let mut model = Model::new(true);
    model.add(applied);
    let screen = Screen::new(Manner {
        color: Color::Never,
        is_quiet: true,
        has_logs: false,
        logs_beside_data: false,
    });
    let watches = watches::watch(&cluster, &BTreeSet::new(), &[About::Pod, About::Event]);
    Session::new(cluster, model, screen, watches)
}

async fn ending(cluster: Cluster) -> Result<Exit> {
    let mut signals = Signals::listen().expect("signals");
    session(cluster, &pod(&json!({}))).follow(&mut signals, None).await
}

/// How long it takes to end what was applied, on a cluster where a pod runs on whatever one asks.
async fn stopping(applied: &Value) -> (Duration, Session) {
    let mut signals = Signals::listen().expect("signals");
    let cluster = cluster(json!({"phase": "Running"}), |_| silence());
    let mut session = session(cluster, applied);
    let begun = Instant::now();
    let stopped = tokio::time::timeout(Duration::from_secs(3600), session.stop(&mut signals, None));
    stopped.await.expect("it comes to an end");
    (begun.elapsed(), session)
}

#[tokio::test(start_paused = true)]
async fn pods_that_do_not_end_are_given_up_after_their_grace() {
    let (took, session) = stopping(&pod(&json!({"phase": "Running"}))).await;
    // Of a pod that does not say, everybody takes it to be 30 seconds.
    assert!(took >= PATIENCE + Duration::from_secs(30), "{took:?}");
    assert!(session.has_given_up);
}

#[tokio::test(start_paused = true)]
async fn a_set_without_pods_that_nobody_suspends_is_not_waited_for() {
    let metadata = json!({"namespace": "default", "name": "set", "uid": "s"});
    let set = json!({"kind": "JobSet", "metadata": metadata, "spec": {"replicatedJobs": []}});
    let (took, session) = stopping(&set).await;
    assert!(took < PATIENCE, "{took:?}");
    assert!(!session.has_given_up, "nothing runs");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_is_begun_again() {
    let cluster = cluster(json!({"phase": "Running"}), |count| {
        if count < 5 {
            return answer(String::new());
        }
        let change = json!({"type": "MODIFIED", "object": pod(&json!({"phase": "Succeeded"}))});
        answer(format!("{change}\n"))
    });
    assert_eq!(ending(cluster).await.unwrap(), Exit::Success);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_cannot_be_watched_has_failed() {
    let garbage = |_| answer("no JSON\n".to_owned());
    let begun = Instant::now();
    let error = ending(cluster(json!({"phase": "Running"}), garbage)).await.unwrap_err();
    assert_eq!(crate::exit::of(&error), Exit::Cluster, "{error}");
    assert!(begun.elapsed() >= contact::PATIENCE, "it gets time to come back");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_the_server_has_forgotten_begins_anew_with_a_list() {
    // The pod goes while nobody watches; only a new list can tell.
    let (lists, watches) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let service = tower::service_fn(move |request: Request<Body>| {
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let is_about_events = request.uri().path().ends_with("/events");
        let running = pod(&json!({"phase": "Running"}));
        let list = |items: Value| {
            answer(json!({"metadata": {"resourceVersion": "1"}, "items": items}).to_string())
        };
        let expired = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
            "reason": "Expired", "code": 410, "message": "too old resource version"});
        let (code, body) = match (is_watch, is_about_events) {
            (true, true) => (200, silence()),
            (false, true) => (200, list(json!([]))),
            (true, false) if watches.fetch_add(1, Ordering::Relaxed) == 0 => {
                (410, answer(expired.to_string()))
            }
            (true, false) => (200, silence()),
            (false, false) if lists.fetch_add(1, Ordering::Relaxed) == 0 => {
                (200, list(json!([running])))
            }
            (false, false) => (200, list(json!([]))),
        };
        let response = Response::builder().status(code).body(body).expect("a response");
        async move { Ok::<_, std::convert::Infallible>(response) }
    });
    let cluster = Cluster::inside(Client::new(service, "default"), "default");
    assert_eq!(ending(cluster).await.unwrap(), Exit::Failed, "the pod was deleted");
}

#[tokio::test(start_paused = true)]
async fn pods_without_a_place_are_given_up_only_when_nothing_changes() {
    let unplaced = json!({"phase": "Pending", "conditions":
        [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]});
    let begun = Instant::now();
    assert_eq!(ending(cluster(unplaced, |_| silence())).await.unwrap(), Exit::Failed);
    assert!(begun.elapsed() >= PATIENCE);
}

#[test]
fn the_last_lines_of_a_log_are_remembered() {
    let container = ContainerId::default();
    let mut tails = Tails::new();
    for at in 0..30 {
        remember(&mut tails, &container, format!("line {at}\n\n").as_bytes());
    }
    remember(&mut tails, &container, b"a\nb\n");
    let tail = &tails[&container];
    assert_eq!(tail.len(), TAIL);
    assert_eq!((tail[0].as_str(), tail[9].as_str()), ("line 22", "b"));
}

#[test]
fn many_names_are_cut_short() {
    let names: Vec<String> = (0..7).map(|at| at.to_string()).collect();
    assert_eq!(some_of(&names[..2]), "0, 1");
    assert_eq!(some_of(&names), "0, 1, 2, 3, 4 and 2 more");
}
