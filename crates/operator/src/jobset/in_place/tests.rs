use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Request, Response};
use kube::client::Body;
use lockstep_control::plan::jobset::in_place::{AgentSource, Way};
use lockstep_restart::hub::Hub;
use lockstep_restart::ticket::Key as TicketKey;
use serde_json::json;
use tokio::sync::mpsc::UnboundedReceiver;

use super::*;
use crate::observe::{Inbox, ObjectKey};

/// A cluster that has nothing.
pub(super) fn client() -> Client {
    client_after(0)
}

/// The same, which never answers the first requests.
pub(super) fn client_after(silent: usize) -> Client {
    let asked = Arc::new(AtomicUsize::new(0));
    let service = tower::service_fn(move |_: Request<Body>| {
        let is_silent = asked.fetch_add(1, Ordering::Relaxed) < silent;
        answer(is_silent)
    });
    Client::new(service, "default")
}

async fn answer(is_silent: bool) -> Result<Response<Body>, Infallible> {
    if is_silent {
        std::future::pending::<()>().await;
    }
    let body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "code": 404,
                      "status": "Failure", "message": "none", "reason": "NotFound"});
    let response = Response::builder().status(404).body(Body::from(body.to_string().into_bytes()));
    Ok(response.unwrap())
}

pub(super) fn jobset() -> JobSet {
    let object = json!({
        "metadata": {"name": "js", "namespace": "ns", "uid": "set", "annotations": {
            labels::IN_PLACE_TIMEOUT: "60s", labels::IN_PLACE_RESTARTS: "0"}},
        "spec": {"replicatedJobs": [{"name": "w", "replicas": 1, "template": {"spec": {
            "parallelism": 2, "completions": 2, "template": {}}}}]},
    });
    serde_json::from_value(object).unwrap()
}

fn pod(name: &str, second: u32, phase: &str) -> Arc<Pod> {
    let object = json!({
        "metadata": {
            "name": name, "namespace": "ns", "uid": name,
            "creationTimestamp": format!("2026-11-15T12:00:{second:02}Z"),
            "labels": {labels::JOBSET_UID: "set", labels::RESTART_ATTEMPT: "0"},
        },
        "status": {"phase": phase},
    });
    Arc::new(serde_json::from_value(object).unwrap())
}

/// Gangs, and what the leader of the set would hear. Nobody leads anything.
struct Heard {
    gangs: Gangs,
    news: UnboundedReceiver<News>,
}

impl Heard {
    fn new() -> Self {
        let key = TicketKey::new(b"key");
        let way = Way::Orchestrator { address: "127.0.0.1:1".to_owned(), ca: String::new() };
        let wanted = InPlace {
            place: Place::Hub(Hub::new(key.clone())),
            keys: Keys { tickets: key, bus_password: None },
            wiring: Wiring { way, agent: AgentSource::Path("/bin/lockstep".to_owned()) },
            pods: Feed::start(kube::Api::all(client()), kube::runtime::watcher::Config::default()),
        };
        let teller = Inbox::new().teller();
        let gangs = Gangs::new(&client(), &wanted, teller, &Arc::default());
        let (_, news) = mpsc::unbounded_channel();
        Self { gangs, news }
    }

    /// From now on somebody leads.
    fn lead(&mut self) {
        let (news, receiver) = mpsc::unbounded_channel();
        let task = tokio::spawn(std::future::pending());
        let set = Set { jobset: Arc::new(jobset()), led: Some(Led { news, task }) };
        self.gangs.sets.insert("set".to_owned(), set);
        self.news = receiver;
        self.gangs.introduce("set");
    }

    fn list(&mut self, pods: &[Arc<Pod>]) {
        self.gangs.pod_changed(Change::Listing);
        for pod in pods {
            self.gangs.pod_changed(Change::Put(Arc::clone(pod)));
        }
    }

    fn heard(&mut self) -> Vec<String> {
        let mut heard = Vec::new();
        while let Ok(news) = self.news.try_recv() {
            heard.push(match news {
                News::Set(_) => "set".to_owned(),
                News::Pod(pod) => pod.name_any(),
                News::PodGone(uid) => format!("{uid} gone"),
                News::PodsKnown => "all".to_owned(),
            });
        }
        heard
    }
}

#[tokio::test]
async fn who_takes_over_hears_of_a_pod_before_the_one_that_took_its_place() {
    // Enough of them that no map has them in order by chance.
    let pods: Vec<_> = (0..20)
        .map(|at| pod(&format!("p{at:02}"), at, if at == 19 { "Running" } else { "Failed" }))
        .collect();
    let mut want: Vec<String> = pods.iter().map(|pod| pod.name_any()).collect();
    want.push("all".to_owned());
    let mut heard = Heard::new();
    heard.list(&pods);
    heard.gangs.pod_changed(Change::Synced);
    heard.lead();
    assert_eq!(heard.heard(), want);
}

#[tokio::test]
async fn a_listing_is_told_in_the_order_in_which_pods_were_made() {
    let mut heard = Heard::new();
    heard.lead();
    let failed = pod("b", 1, "Failed");
    heard.list(&[pod("a", 2, "Running"), Arc::clone(&failed)]);
    assert_eq!(heard.heard(), Vec::<String>::new(), "there may be more");
    heard.gangs.pod_changed(Change::Synced);
    assert_eq!(heard.heard(), ["b", "a", "all"]);
    // So is one that fills a gap in what was watched.
    heard.list(&[pod("a", 2, "Failed"), pod("A", 3, "Running")]);
    heard.gangs.pod_changed(Change::Gone(ObjectKey::of(&*failed)));
    heard.gangs.pod_changed(Change::Synced);
    assert_eq!(heard.heard(), ["b gone", "a", "A", "all"]);
    // In between, pods are made one after the other.
    heard.gangs.pod_changed(Change::Put(pod("c", 4, "Pending")));
    assert_eq!(heard.heard(), ["c"]);
}

#[tokio::test]
async fn a_set_is_led_from_when_it_has_begun_until_it_is_over() {
    let mut heard = Heard::new();
    let gangs = &mut heard.gangs;
    let is_led = |gangs: &Gangs| gangs.sets.contains_key("set");
    let count = |jobset: &mut JobSet, count: Option<&str>| {
        let annotations = jobset.metadata.annotations.as_mut().unwrap();
        annotations.remove(labels::IN_PLACE_RESTARTS);
        annotations.extend(count.map(|it| (labels::IN_PLACE_RESTARTS.to_owned(), it.to_owned())));
    };
    let mut set = jobset();
    for (of, is_begun) in [(None, false), (Some("4"), false), (Some("0"), true)] {
        count(&mut set, of);
        gangs.jobset_seen(&set);
        assert_eq!(is_led(gangs), is_begun, "a new set with a count of {of:?}");
    }
    // Somebody drops the count.
    count(&mut set, None);
    gangs.jobset_seen(&set);
    assert!(is_led(gangs));
    // Who has just come sees from the status that there are agents.
    gangs.jobset_gone("set");
    let told = json!({"lockstep": {"inPlace": {"epoch": 0}}});
    set.status = Some(serde_json::from_value(told).unwrap());
    gangs.jobset_seen(&set);
    assert!(is_led(gangs));
    set.status.as_mut().unwrap().terminal_state = "Completed".to_owned();
    gangs.jobset_seen(&set);
    assert!(!is_led(gangs));
}

#[tokio::test]
async fn who_begins_to_lead_is_told_so_once() {
    let mut heard = Heard::new();
    let told = [true, true, false, false, true].map(|leads| heard.gangs.leads(leads));
    assert_eq!(told, [true, false, false, false, true]);
}
