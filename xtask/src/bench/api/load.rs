//! What requests cost: how many in a second, how long they take, what the server works for each.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use http::Request;
use kube::Client;

use super::{Pair, commands::median, processes::Group};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// How many objects a list has.
const LISTED: usize = 100;

/// A kind of request.
#[derive(Clone, Copy, Debug)]
enum Ask {
    Get,
    List,
    Create,
    Patch,
    Apply,
}

impl Ask {
    const ALL: [Self; 5] = [Self::Get, Self::List, Self::Create, Self::Patch, Self::Apply];

    fn name(self) -> String {
        match self {
            Self::Get => "get".to_owned(),
            Self::List => format!("list of {LISTED}"),
            Self::Create => "create".to_owned(),
            Self::Patch => "merge patch".to_owned(),
            Self::Apply => "server-side apply".to_owned(),
        }
    }

    /// The request of number `at`. Writers each have objects of their own.
    fn request(self, at: usize, worker: usize) -> Result<Request<Vec<u8>>> {
        let made = match self {
            Self::Get => Request::get(format!("{MAPS}/listed-0")).body(Vec::new()),
            Self::List => Request::get(format!("{MAPS}?labelSelector=bench")).body(Vec::new()),
            Self::Create => {
                let body = object(&format!("made-{at}"), "made", at);
                Request::post(MAPS).header("content-type", "application/json").body(body)
            }
            Self::Patch => Request::patch(format!("{MAPS}/listed-{worker}"))
                .header("content-type", "application/merge-patch+json")
                .body(format!(r#"{{"data":{{"value":"{at}"}}}}"#).into_bytes()),
            Self::Apply => {
                let name = format!("applied-{worker}");
                let uri = format!("{MAPS}/{name}?fieldManager=bench&force=true");
                Request::patch(uri)
                    .header("content-type", "application/apply-patch+yaml")
                    .body(object(&name, "applied", at))
            }
        };
        made.context("a request that can be sent")
    }
}

/// A ConfigMap of about a kilobyte.
fn object(name: &str, label: &str, at: usize) -> Vec<u8> {
    let filling = "x".repeat(900);
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","labels":{{"{label}":"yes"}}}},"data":{{"value":"{at}","filling":"{filling}"}}}}"#
    )
    .into_bytes()
}

/// What came of one kind of request on one server.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    per_second: f64,
    median: f64,
    worst_of_100: f64,
    cpu: f64,
}

/// Sends all kinds of requests to both servers and prints what came of them.
pub(super) async fn measure(
    clients: &Pair<Client>,
    processes: &Pair<Group>,
    requests: usize,
    workers: usize,
) -> Result<()> {
    for client in [&clients.ours, &clients.theirs] {
        for at in 0..LISTED.max(workers) {
            let body = object(&format!("listed-{at}"), "bench", at);
            let request = Request::post(MAPS).header("content-type", "application/json");
            client.request_text(request.body(body)?).await?;
        }
    }
    println!("\n{requests} requests of each kind, {workers} at a time, objects of 1 KB");
    println!("ours: lockstep up, all of it; theirs: kube-apiserver and etcd");
    println!(
        "{:<20} {:>17} {:>17} {:>17} {:>23}",
        "", "requests/s", "median ms", "99 % ms", "CPU µs/request, ratio"
    );
    for ask in Ask::ALL {
        let ours = run(&clients.ours, &processes.ours, ask, requests, workers).await?;
        let theirs = run(&clients.theirs, &processes.theirs, ask, requests, workers).await?;
        println!(
            "{:<20} {:>8.0} {:>8.0} {:>8.2} {:>8.2} {:>8.2} {:>8.2} {:>8.0} {:>8.0} {:>5.2}",
            ask.name(),
            ours.per_second,
            theirs.per_second,
            ours.median * 1e3,
            theirs.median * 1e3,
            ours.worst_of_100 * 1e3,
            theirs.worst_of_100 * 1e3,
            ours.cpu * 1e6,
            theirs.cpu * 1e6,
            ours.cpu / theirs.cpu
        );
    }
    Ok(())
}

async fn run(
    client: &Client,
    processes: &Group,
    ask: Ask,
    requests: usize,
    workers: usize,
) -> Result<Outcome> {
    let next = Arc::new(AtomicUsize::new(0));
    let (began, worked) = (Instant::now(), processes.cpu()?);
    let tasks: Vec<_> = (0..workers)
        .map(|worker| {
            let (client, next) = (client.clone(), Arc::clone(&next));
            tokio::spawn(async move {
                let mut took = Vec::new();
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= requests {
                        return anyhow::Ok(took);
                    }
                    let began = Instant::now();
                    client.request_text(ask.request(at, worker)?).await?;
                    took.push(began.elapsed());
                }
            })
        })
        .collect();
    let mut took: Vec<Duration> = Vec::new();
    for task in tasks {
        took.extend(task.await??);
    }
    let (elapsed, worked) = (began.elapsed(), processes.cpu()?.saturating_sub(worked));
    took.sort_unstable();
    let worst_of_100 = took.get(took.len() * 99 / 100).map_or(0.0, Duration::as_secs_f64);
    #[expect(clippy::cast_precision_loss, reason = "a count of requests is small")]
    let count = requests as f64;
    Ok(Outcome {
        per_second: count / elapsed.as_secs_f64(),
        median: median(took),
        worst_of_100,
        cpu: worked.as_secs_f64() / count,
    })
}
