//! The client of an operator: sends no more than it may, no faster than it may.
//!
//! Leadership decides whether writes are sent, and nothing else: reads and watches go on, so that
//! whoever comes to lead knows everything already.

mod pace;

use std::sync::Arc;

use http::{HeaderValue, Method, Request, header};
use kube::Client;
use kube::client::Body;
use tower::BoxError;

use crate::lease::Leadership;
use crate::metrics::Metrics;

pub use pace::Pace;

/// Why a request was not sent.
#[derive(Debug, thiserror::Error)]
#[error("not sent: this operator does not lead")]
pub struct NotLeading;

/// A client that sends through `client`: all requests at `pace`, writes only while leading, and
/// with `agent` as the name it gives itself. What it sends is counted.
pub fn restrained(
    client: Client,
    leadership: &Leadership,
    pace: Option<Pace>,
    agent: &HeaderValue,
    metrics: &Arc<Metrics>,
) -> Client {
    let namespace = client.default_namespace().to_owned();
    let leadership = leadership.clone();
    let (agent, metrics) = (agent.clone(), Arc::clone(metrics));
    let service = tower::service_fn(move |mut request: Request<Body>| {
        let (client, leadership, pace) = (client.clone(), leadership.clone(), pace.clone());
        let metrics = Arc::clone(&metrics);
        request.headers_mut().insert(header::USER_AGENT, agent.clone());
        async move {
            if let Some(pace) = pace {
                pace.wait().await;
            }
            // After the waiting: only what may be sent at this moment is.
            if is_write(request.method()) && !leadership.may_send() {
                return Err(BoxError::from(NotLeading));
            }
            let method = request.method().clone();
            let answer = client.send(request).await;
            metrics.requests.answered(&method, answer.as_ref().ok().map(http::Response::status));
            answer.map_err(BoxError::from)
        }
    });
    Client::new(service, namespace)
}

fn is_write(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Mutex;

    use http::Response;
    use k8s_openapi::api::core::v1::Pod;
    use kube::Api;
    use kube::api::DeleteParams;

    use super::*;

    #[tokio::test]
    async fn without_leadership_only_reads_are_sent() {
        let sent = Arc::<Mutex<Vec<String>>>::default();
        let heard = Arc::clone(&sent);
        let service = tower::service_fn(move |request: Request<Body>| {
            let agent = request.headers()[header::USER_AGENT].to_str().unwrap();
            heard.lock().unwrap().push(format!("{} {agent}", request.method()));
            async { Ok::<_, Infallible>(Response::new(Body::from(b"{}".to_vec()))) }
        });
        let client = Client::new(service, "default");
        let agent = HeaderValue::from_static("lockstep/1");
        for (leadership, want) in [
            (Leadership::alone(), ["GET lockstep/1", "DELETE lockstep/1"].as_slice()),
            (Leadership::never(), &["GET lockstep/1"]),
        ] {
            let metrics = Arc::default();
            let client = restrained(client.clone(), &leadership, None, &agent, &metrics);
            let api: Api<Pod> = Api::default_namespaced(client);
            api.get_opt("p").await.unwrap();
            let deleted = api.delete("p", &DeleteParams::default()).await;
            assert_eq!(deleted.is_ok(), leadership.may_send());
            if let Err(error) = deleted {
                assert!(error.to_string().contains("does not lead"), "{error}");
            }
            assert_eq!(std::mem::take(&mut *sent.lock().unwrap()), want);
            let mut text = String::new();
            metrics.write(&mut text).unwrap();
            let count = |method| {
                let line =
                    format!("rest_client_requests_total{{code=\"200\",method=\"{method}\"}} 1");
                text.contains(&line)
            };
            assert_eq!((count("GET"), count("DELETE")), (true, leadership.may_send()), "{text}");
        }
    }
}
