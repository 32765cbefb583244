//! What an operator says about itself over HTTP: its counters, and whether it lives and is ready.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::routing::get;
use http::{StatusCode, header};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tracing::error;

use crate::lease::Leadership;
use crate::metrics::{Metrics, Process};

/// What Prometheus calls the format of counters.
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Whether the operator has begun to work.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<AtomicBool>);

impl Readiness {
    /// It has.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Serves counters at `/metrics` for as long as the task lives.
pub fn metrics(
    listener: TcpListener,
    metrics: Arc<Metrics>,
    leadership: Option<(String, Leadership)>,
) -> JoinHandle<()> {
    let process = Arc::new(Process::new(leadership));
    let answer = move || {
        let (metrics, process) = (Arc::clone(&metrics), Arc::clone(&process));
        async move { ([(header::CONTENT_TYPE, PROMETHEUS)], process.text(&metrics)) }
    };
    serve(listener, Router::new().route("/metrics", get(answer)))
}

/// Serves whether the process lives at one path, and whether it is ready at another.
pub fn health(
    listener: TcpListener,
    readiness: Readiness,
    (liveness_path, readiness_path): (&str, &str),
) -> JoinHandle<()> {
    let ready = move || {
        let is_ready = readiness.is_set();
        async move {
            match is_ready {
                true => (StatusCode::OK, "ok"),
                false => (StatusCode::INTERNAL_SERVER_ERROR, "not ready"),
            }
        }
    };
    let router = Router::new().route(readiness_path, get(ready));
    let router = match liveness_path == readiness_path {
        true => router,
        false => router.route(liveness_path, get(|| async { "ok" })),
    };
    serve(listener, router)
}

fn serve(listener: TcpListener, router: Router) -> JoinHandle<()> {
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            error!(%error, "serving ended");
        }
    })
}
