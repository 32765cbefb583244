//! A controller whose client may send no more than fifty requests a second.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::Client;
use lockstep_local::controllers::{self, ControllerOptions};
use lockstep_local::embedded::{Embedded, Options};
use lockstep_local::feeds::Feeds;
use lockstep_local::node::fake::{self, FakeOptions};
use lockstep_local::scheduler::{self, SchedulerOptions};
use lockstep_operator::job::{self, JobOptions};
use lockstep_operator::metrics::Metrics;
use tokio::sync::Mutex;

use super::scale;
use crate::meter;
use crate::report::{Budget, Report};

const REQUESTS_PER_SECOND: u32 = 50;
const SIZE: usize = 1_000;
const NODES: usize = 10;

/// Runs a Job, and says how long passes took.
pub(crate) async fn measure(report: &mut Report) {
    let embedded = Embedded::start(Options::default()).await.unwrap();
    let client = embedded.client();
    let feeds = Feeds::start(&client);
    let mut tasks = controllers::spawn(&client, &feeds, &ControllerOptions::default());
    let followed = (&feeds.pods, &feeds.nodes);
    tasks.push(fake::spawn(client.clone(), followed, FakeOptions::new(NODES)));
    tasks.push(scheduler::spawn(client.clone(), &feeds, SchedulerOptions::default()));
    let metrics = Arc::<Metrics>::default();
    let followed = job::Feeds { jobs: feeds.jobs.clone(), pods: feeds.pods.clone() };
    let slow = limited(client.clone());
    tasks.extend(job::spawn(&slow, &followed, &metrics, JobOptions::default()));
    meter::until_nodes(&client, NODES).await;
    let begun = Instant::now();
    scale::create(&client, SIZE).await;
    scale::until_complete(&client).await;
    let took = begun.elapsed().as_secs_f64();
    let what = format!("Job of {SIZE} with {REQUESTS_PER_SECOND} requests/s, apply to Complete");
    report.add(&what, took, "s", Budget::None);
    let mut text = String::new();
    metrics.write(&mut text).unwrap();
    let p99 = percentile(&text);
    let what = format!("sync latency with {REQUESTS_PER_SECOND} requests/s, p99, at most");
    report.add(&what, p99, "s", Budget::AtMost(15.0));
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
    embedded.shutdown().await;
}

/// A client that passes requests on at an even pace.
fn limited(client: Client) -> Client {
    let pace = Duration::from_secs(1) / REQUESTS_PER_SECOND;
    let next = Arc::new(Mutex::new(Instant::now()));
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (client, next) = (client.clone(), Arc::clone(&next));
        async move {
            let at = {
                let mut next = next.lock().await;
                let at = (*next).max(Instant::now());
                *next = at + pace;
                at
            };
            tokio::time::sleep_until(at.into()).await;
            client.send(request).await
        }
    });
    Client::new(service, "default")
}

/// The bound of the bucket that holds the slowest of the quickest 99 of a hundred passes.
fn percentile(text: &str) -> f64 {
    let mut buckets: Vec<(f64, f64)> = Vec::new();
    for line in text.lines() {
        let name = "job_controller_job_sync_duration_seconds_bucket{";
        let Some(rest) = line.strip_prefix(name) else { continue };
        let (labels, count) = rest.split_once("} ").unwrap();
        let bound = labels.split("le=\"").nth(1).unwrap().split('"').next().unwrap();
        let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().unwrap() };
        let count: f64 = count.split(' ').next().unwrap().parse().unwrap();
        match buckets.iter_mut().find(|(known, _)| *known == bound) {
            Some((_, sum)) => *sum += count,
            None => buckets.push((bound, count)),
        }
    }
    buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total = buckets.last().map_or(0.0, |(_, count)| *count);
    let found = buckets.iter().find(|(_, count)| *count >= total * 0.99);
    found.map_or(f64::INFINITY, |(bound, _)| *bound)
}
