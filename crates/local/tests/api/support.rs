use axum::body::Body;
use futures::StreamExt;
use http::{HeaderMap, Request};
use http_body_util::BodyExt;
use lockstep_local::{
    auth::User,
    embedded::{Embedded, Options},
};
use serde_json::{Value, json};
use tower::ServiceExt;

/// A cluster without a node: objects stay as clients leave them.
pub(crate) struct Api {
    pub(crate) embedded: Embedded,
}

pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e}: {}", self.text))
    }

    pub(crate) fn message(&self) -> String {
        self.json()["message"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|v| v.to_str().unwrap()).unwrap_or_default()
    }

    /// The names of a list's items.
    pub(crate) fn names(&self) -> Vec<String> {
        let listed = self.json();
        let items = listed["items"].as_array().expect("a list has items");
        items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }
}

impl Api {
    pub(crate) async fn start() -> Self {
        Self::with_options(Options::default()).await
    }

    pub(crate) async fn with_options(options: Options) -> Self {
        Self { embedded: Embedded::start(options).await.unwrap() }
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.embedded.server().router().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Answer {
            code: parts.status.as_u16(),
            headers: parts.headers,
            text: String::from_utf8_lossy(&bytes).into_owned(),
        }
    }

    pub(crate) async fn with(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        self.send(request(method, path, headers, body)).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.with("GET", path, &[], "").await
    }

    /// What is at a path, once it is as wanted.
    pub(crate) async fn until(&self, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let wait = async {
            loop {
                let answer = self.get(path).await.json();
                if is_so(&answer) {
                    return answer;
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        let patience = std::time::Duration::from_secs(30);
        tokio::time::timeout(patience, wait).await.expect("it becomes so")
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.with("POST", path, &[("content-type", "application/json")], &body.to_string()).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        self.with("PUT", path, &[("content-type", "application/json")], &body.to_string()).await
    }

    pub(crate) async fn delete(&self, path: &str, body: &str) -> Answer {
        self.with("DELETE", path, &[], body).await
    }

    pub(crate) async fn patch(&self, path: &str, kind: &str, body: &str) -> Answer {
        let content_type = match kind {
            "json" => "application/json-patch+json",
            "merge" => "application/merge-patch+json",
            "strategic" => "application/strategic-merge-patch+json",
            other => other,
        };
        self.with("PATCH", path, &[("content-type", content_type)], body).await
    }

    /// Creates config maps in `default`.
    pub(crate) async fn config_maps(&self, names: &[&str]) {
        for name in names {
            let answer = self.post(CONFIG_MAPS, &config_map(name)).await;
            assert_eq!(answer.code, 201, "{}", answer.text);
        }
    }

    /// The stream of a watch, line by line.
    pub(crate) async fn watch(&self, path: &str, headers: &[(&str, &str)]) -> Events {
        let request = request("GET", path, headers, "");
        let response = self.embedded.server().router().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200);
        Events { stream: response.into_body(), buffer: String::new() }
    }
}

pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";

pub(crate) fn request(
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut request = request.body(Body::from(body.to_owned())).unwrap();
    request.extensions_mut().insert(User::admin());
    request
}

pub(crate) fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "v"}})
}

pub(crate) fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [{"name": "c", "image": "i", "command": ["true"]}]},
    })
}

pub(crate) struct Events {
    stream: Body,
    buffer: String,
}

impl Events {
    /// The next event, or nothing at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((line, rest)) = self.buffer.split_once('\n') {
                let event = serde_json::from_str(line).unwrap();
                self.buffer = rest.to_owned();
                return Some(event);
            }
            let frame = (&mut self.stream).into_data_stream().next().await?.unwrap();
            self.buffer += std::str::from_utf8(&frame).unwrap();
        }
    }

    /// The next events as `TYPE name`.
    pub(crate) async fn take(&mut self, count: usize) -> Vec<String> {
        let mut taken = Vec::new();
        for _ in 0..count {
            let event = self.next().await.expect("the stream goes on");
            let kind = event["type"].as_str().unwrap();
            let name = event["object"]["metadata"]["name"].as_str().unwrap_or("-");
            taken.push(format!("{kind} {name}"));
        }
        taken
    }
}
