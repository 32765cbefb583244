//! CronJobs over the API: what is refused, and that Jobs come of them.

use std::time::Duration;

use axum::body::Body;
use lockstep_local::{
    auth::User, controllers::cron_job, embedded::Options, feeds::Feeds, node::fake::FakeOptions,
};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::support::Api;

const CRONS: &str = "/apis/batch/v1/namespaces/default/cronjobs";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";

fn cron(schedule: &str) -> Value {
    json!({
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "c"},
        "spec": {"schedule": schedule, "jobTemplate": {"spec": {"template": {"spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "m", "image": "i", "command": ["true"]}],
        }}}}},
    })
}

async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    for _ in 0..400 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("never: {what}");
}

#[tokio::test]
async fn what_a_cron_job_leaves_out_is_filled_in_and_what_cannot_be_refused() {
    let api = Api::start().await;
    let created = api.post(CRONS, &cron("*/5 * * * *")).await;
    assert_eq!(created.code, 201, "{}", created.text);
    let spec = created.json()["spec"].clone();
    assert_eq!(spec["concurrencyPolicy"], "Allow");
    assert_eq!(spec["suspend"], false);
    assert_eq!(
        (&spec["successfulJobsHistoryLimit"], &spec["failedJobsHistoryLimit"]),
        (&json!(3), &json!(1))
    );
    assert_eq!(spec["jobTemplate"]["spec"].get("completions"), None, "that is for the Job");
    let mut wrong = cron("61 * * * *");
    wrong["metadata"]["name"] = "w".into();
    let refused = api.post(CRONS, &wrong).await;
    assert_eq!(
        (refused.code, refused.message().as_str()),
        (
            422,
            "CronJob.batch \"w\" is invalid: spec.schedule: Invalid value: \"61 * * * *\": end of \
             range (61) above maximum (59): 61"
        )
    );
    let status = format!("{CRONS}/c/status");
    let patch = r#"{"status": {"lastScheduleTime": "2026-01-01T00:00:00Z"}}"#;
    let patched = api.patch(&status, "merge", patch).await;
    assert_eq!(patched.code, 200, "{}", patched.text);
    assert_eq!(patched.json()["metadata"]["generation"], 1);
}

#[tokio::test]
async fn a_cron_job_starts_a_job_when_its_time_comes() {
    let fake_nodes = Some(FakeOptions::new(1));
    let api = Api::with_options(Options { fake_nodes, ..Options::default() }).await;
    assert_eq!(api.post(CRONS, &cron("@every 1s")).await.code, 201);
    until("a job", async || !api.get(JOBS).await.names().is_empty()).await;
    let job = api.get(JOBS).await.json()["items"][0].clone();
    let name = job["metadata"]["name"].as_str().unwrap().to_owned();
    let scheduled =
        job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"].clone();
    let at: jiff::Timestamp = scheduled.as_str().unwrap().parse().unwrap();
    assert_eq!(name, format!("c-{}", at.as_second() / 60));
    assert_eq!(job["metadata"]["ownerReferences"][0]["kind"], "CronJob");
    let path = format!("{CRONS}/c");
    until("it is written down", async || {
        api.get(&path).await.json()["status"]["lastScheduleTime"].is_string()
    })
    .await;
    let suspend = r#"{"spec": {"suspend": true}}"#;
    assert_eq!(api.patch(&path, "merge", suspend).await.code, 200);
    let events = "/api/v1/namespaces/default/events?fieldSelector=involvedObject.kind%3DCronJob";
    until("it is told", async || {
        let listed = api.get(events).await.json();
        listed["items"].as_array().unwrap().iter().any(|event| {
            event["reason"] == "SuccessfulCreate"
                && event["message"] == format!("Created job {name}")
        })
    })
    .await;
    // The Jobs go with it.
    assert_eq!(api.delete(&path, "").await.code, 200);
    until("nothing is left", async || api.get(JOBS).await.names().is_empty()).await;
}

/// A client whose Jobs of CronJobs with this name are never created, nor refused.
fn stuck_client(api: &Api, stuck: &'static str) -> kube::Client {
    let router = api.embedded.server().router();
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let router = router.clone();
        async move {
            let (parts, body) = request.into_parts();
            let is_create = parts.method == http::Method::POST && parts.uri.path() == JOBS;
            let bytes = http_body_util::BodyExt::collect(body).await?.to_bytes();
            let prefix = format!("\"name\":\"{stuck}-");
            if is_create && String::from_utf8_lossy(&bytes).contains(&prefix) {
                std::future::pending::<()>().await;
            }
            let mut request = http::Request::from_parts(parts, Body::from(bytes));
            request.extensions_mut().insert(User::component("cronjob-controller"));
            let Ok(answer) = router.oneshot(request).await;
            Ok::<_, tower::BoxError>(answer)
        }
    });
    kube::Client::new(service, "default")
}

#[tokio::test]
async fn one_that_takes_long_holds_up_no_other() {
    let api = Api::start().await;
    let client = stuck_client(&api, "a");
    let feeds = Feeds::start(&client);
    let controller = cron_job::spawn(client, &feeds);
    for name in ["a", "b", "c"] {
        let mut cron = cron("@every 1s");
        cron["metadata"]["name"] = name.into();
        assert_eq!(api.post(CRONS, &cron).await.code, 201);
    }
    for name in ["b", "c"] {
        until(name, async || {
            let jobs = api.get(JOBS).await.names();
            jobs.iter().any(|job| job.starts_with(&format!("{name}-")))
        })
        .await;
    }
    let jobs = api.get(JOBS).await.names();
    assert!(!jobs.iter().any(|job| job.starts_with("a-")), "{jobs:?}");
    controller.abort();
}
