//! What is counted about requests to the API, as clients written in Go count it.

use http::{Method, StatusCode};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

type Answer = [(&'static str, String); 2];

/// Counters of requests.
pub struct RequestMetrics {
    answered: Family<Answer, Counter>,
}

impl RequestMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let answered = Family::default();
        let help = "Number of HTTP requests, by status code and method";
        registry.register("rest_client_requests", help, answered.clone());
        Self { answered }
    }

    /// Counts a request: the code it was answered with, or none when it was not answered.
    pub fn answered(&self, method: &Method, code: Option<StatusCode>) {
        let code = code.map_or_else(|| "<error>".to_owned(), |code| code.as_str().to_owned());
        self.answered.get_or_create(&[("code", code), ("method", method.to_string())]).inc();
    }
}
