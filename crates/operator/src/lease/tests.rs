//! Operators that compete for one Lease, over a server that can be made to fail.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Value, json};

use super::*;

/// A server that has one Lease at most.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    lease: Option<Value>,
    version: u64,
    /// Who cannot reach the server.
    cut_off: Option<String>,
}

impl Server {
    fn client(&self, who: &'static str) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let method = request.method().clone();
                let body = request.into_body().collect().await.unwrap().to_bytes();
                if server.0.lock().unwrap().cut_off.as_deref() == Some(who) {
                    std::future::pending::<()>().await;
                }
                let (code, answer) = server.answer(&method, &body);
                let mut response = Response::new(Body::from(answer.to_string().into_bytes()));
                *response.status_mut() = code;
                Ok::<_, Infallible>(response)
            }
        });
        Client::new(service, "default")
    }

    fn answer(&self, method: &Method, body: &[u8]) -> (StatusCode, Value) {
        let mut state = self.0.lock().unwrap();
        let refusal = |code: StatusCode| {
            let reason = if code == StatusCode::NOT_FOUND { "NotFound" } else { "Conflict" };
            (code, json!({"kind": "Status", "code": code.as_u16(), "reason": reason}))
        };
        let sent: Option<Value> = serde_json::from_slice(body).ok();
        let known = state.lease.as_ref().map(|lease| lease["metadata"]["resourceVersion"].clone());
        let Some(mut sent) = sent else {
            let lease = state.lease.clone();
            return lease.map_or_else(|| refusal(StatusCode::NOT_FOUND), |l| (StatusCode::OK, l));
        };
        let is_current = match *method {
            Method::POST => known.is_none(),
            _ => known.as_ref() == Some(&sent["metadata"]["resourceVersion"]),
        };
        if !is_current {
            return refusal(StatusCode::CONFLICT);
        }
        state.version += 1;
        sent["metadata"]["resourceVersion"] = state.version.to_string().into();
        state.lease = Some(sent.clone());
        (StatusCode::OK, sent)
    }

    fn cut_off(&self, who: Option<&str>) {
        self.0.lock().unwrap().cut_off = who.map(str::to_owned);
    }

    fn holder(&self) -> String {
        let state = self.0.lock().unwrap();
        let lease = state.lease.as_ref().expect("a lease");
        lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
    }

    fn candidate(&self, who: &'static str) -> Election {
        Election::start(&self.client(who), LeaseOptions::new("default", who))
    }
}

async fn seconds(count: u64) {
    tokio::time::sleep(Duration::from_secs(count)).await;
}

#[tokio::test(start_paused = true)]
async fn one_leads_and_keeps_leading() {
    let server = Server::default();
    let a = server.candidate("a");
    seconds(1).await;
    let b = server.candidate("b");
    for _ in 0..60 {
        seconds(1).await;
        assert!(a.leadership().may_send() && !b.leadership().may_send());
    }
    assert_eq!(server.holder(), "a");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_stops_before_another_begins() {
    let server = Server::default();
    let a = server.candidate("a");
    seconds(1).await;
    let b = server.candidate("b");
    seconds(5).await;
    server.cut_off(Some("a"));
    let cut = Instant::now();
    let (mut stopped, mut begun) = (None, None);
    while begun.is_none() {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let passed = cut.elapsed();
        assert!(passed < Duration::from_secs(30), "nobody leads");
        match (a.leadership().may_send(), b.leadership().may_send()) {
            (true, true) => panic!("both lead after {passed:?}"),
            (false, false) => _ = stopped.get_or_insert(passed),
            (false, true) => begun = Some(passed),
            (true, false) => {}
        }
    }
    let stopped = stopped.expect("there is a time without a leader");
    assert!(stopped <= Duration::from_secs(10), "{stopped:?}");
    assert!(begun.unwrap() >= stopped + Duration::from_secs(3), "{begun:?} {stopped:?}");
    // Whoever comes back finds another in its place.
    server.cut_off(None);
    seconds(30).await;
    assert!(!a.leadership().may_send() && b.leadership().may_send());
}

#[tokio::test(start_paused = true)]
async fn who_has_to_lead_elsewhere_leads_no_longer_than_there() {
    let (elsewhere, here) = (Server::default(), Server::default());
    let within = |who: &'static str, leadership| {
        let options = LeaseOptions::new("default", who);
        Election::start_within(&here.client(who), options, leadership)
    };
    let a = elsewhere.candidate("a");
    seconds(1).await;
    let b = elsewhere.candidate("b");
    let of_b = within("b", b.leadership());
    let of_a = within("a", a.leadership());
    seconds(30).await;
    assert!(of_a.leadership().may_send(), "it leads there");
    assert_eq!(here.holder(), "a", "who does not lead there has not even tried");
    elsewhere.cut_off(Some("a"));
    let mut moved = false;
    for _ in 0..60 {
        seconds(1).await;
        let leads = |election: &Election| election.leadership().may_send();
        assert!(!leads(&of_a) || leads(&a), "longer than elsewhere");
        assert!(!leads(&of_b) || leads(&b), "longer than elsewhere");
        assert!(!(leads(&of_a) && leads(&of_b)));
        moved |= leads(&of_b);
    }
    assert!(moved && here.holder() == "b");
    // Somebody else here is no reason to stop there.
    here.cut_off(Some("b"));
    let stranger = here.candidate("kueue");
    seconds(40).await;
    here.cut_off(None);
    seconds(10).await;
    assert!(stranger.leadership().may_send() && b.leadership().may_send());
    assert!(!of_b.leadership().may_send());
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_leadership_is_told_of_it_and_of_its_end() {
    let server = Server::default();
    server.cut_off(Some("a"));
    let a = server.candidate("a");
    let mut leadership = a.leadership();
    seconds(30).await;
    assert!(!leadership.may_send());
    server.cut_off(None);
    leadership.changed().await;
    assert!(leadership.may_send());
    // Renewals are no changes: the end is the next.
    seconds(30).await;
    server.cut_off(Some("a"));
    leadership.changed().await;
    assert!(!leadership.may_send());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_given_back_is_taken_at_once() {
    let server = Server::default();
    let a = server.candidate("a");
    seconds(1).await;
    let b = server.candidate("b");
    seconds(5).await;
    a.resign().await;
    assert_eq!(server.holder(), "");
    seconds(3).await;
    assert!(b.leadership().may_send());
    assert_eq!(server.holder(), "b");
}

#[tokio::test(start_paused = true)]
async fn somebody_alone_always_leads() {
    let leadership = Leadership::alone();
    seconds(60 * 60 * 24 * 365).await;
    assert!(leadership.may_send());
}
