//! Sends a request and takes the answer apart.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{Request, Response, header};
use http_body_util::BodyExt as _;
use kube::{Client, client::Body};
use serde_json::{Value, json};

use super::{level::level, script::Step};
use crate::shell;

/// How long something may take to become true.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server, and what was kept of its answers.
pub(super) struct Party {
    client: Client,
    saved: BTreeMap<String, String>,
}

/// What a server answered, leveled.
#[derive(Debug)]
pub(super) struct Answer {
    code: u16,
    headers: Value,
    body: Value,
}

impl Answer {
    /// All of it as one value.
    pub(super) fn shown(&self) -> Value {
        json!({"code": self.code, "headers": self.headers, "body": self.body})
    }
}

impl Party {
    /// Makes the namespace, and waits until pods can be made in it.
    pub(super) async fn new(client: Client, namespace: &str) -> Result<Self> {
        let mut party = Self { client, saved: BTreeMap::new() };
        let object = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}
        });
        let request = Request::post("/api/v1/namespaces")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(serde_json::to_vec(&object)?))?;
        let (code, _, body) = party.send(request).await?;
        if code != 201 {
            bail!("no namespace: {body}");
        }
        let account = format!("/api/v1/namespaces/{namespace}/serviceaccounts/default");
        let end = Instant::now() + PATIENCE;
        while party.send(Request::get(&account).body(Body::empty())?).await?.0 != 200 {
            if Instant::now() > end {
                bail!("{namespace} got no service account");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        party.saved.insert("ns".to_owned(), namespace.to_owned());
        Ok(party)
    }

    /// Sends a step, again and again if it waits for something.
    pub(super) async fn ask(&mut self, step: &Step) -> Result<Answer> {
        let end = Instant::now() + PATIENCE;
        loop {
            let (code, headers, mut body) = self.send(self.request(step)?).await?;
            let holds = |(at, wanted): (&String, &Value)| body.pointer(at) == Some(wanted);
            if !step.until.iter().all(holds) {
                if Instant::now() > end {
                    bail!("{:?} did not come true: {body}", step.until);
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
            for (name, at) in &step.save {
                let found = body.pointer(at).with_context(|| format!("no {at} in {body}"))?;
                let text = found.as_str().map_or_else(|| found.to_string(), Into::into);
                self.saved.insert(name.clone(), text);
            }
            level(&mut body, &self.saved);
            let mut headers = headers;
            level(&mut headers, &self.saved);
            return Ok(Answer { code, headers, body });
        }
    }

    fn request(&self, step: &Step) -> Result<Request<Body>> {
        let (verb, path) = step.target()?;
        let mut request = Request::builder().method(verb).uri(self.filled(path));
        request = request.header(header::ACCEPT, step.accept());
        let body = match (&step.body, &step.text, &step.sample) {
            (None, None, None) => return Ok(request.body(Body::empty())?),
            (Some(body), ..) => self.filled(&serde_json::to_string(body)?).into_bytes(),
            (_, Some(text), _) => self.filled(text).into_bytes(),
            (.., Some(kind)) => sample(kind)?,
        };
        request = request.header(header::CONTENT_TYPE, step.media_type());
        Ok(request.body(Body::from(body))?)
    }

    /// A text with the values of what was saved. Longer names first: one may begin with another.
    fn filled(&self, text: &str) -> String {
        let mut names: Vec<&String> = self.saved.keys().collect();
        names.sort_by_key(|name| std::cmp::Reverse(name.len()));
        let fill =
            |text: String, name: &&String| text.replace(&format!("${name}"), &self.saved[*name]);
        names.iter().fold(text.to_owned(), fill)
    }

    async fn send(&self, request: Request<Body>) -> Result<(u16, Value, Value)> {
        let shown = format!("{} {}", request.method(), request.uri());
        let answer = tokio::time::timeout(PATIENCE, self.client.send(request)).await;
        let answer = answer.with_context(|| format!("{shown}: no answer"))?;
        let answer: Response<Body> = answer.with_context(|| shown.clone())?;
        let (head, body) = answer.into_parts();
        let collected = tokio::time::timeout(PATIENCE, body.collect()).await;
        let bytes = collected.with_context(|| format!("{shown}: no end"))??.to_bytes();
        let values = |name: header::HeaderName| -> Vec<String> {
            let all = head.headers.get_all(name);
            all.iter().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
        };
        let headers = json!({
            "cache-control": values(header::CACHE_CONTROL),
            "content-type": values(header::CONTENT_TYPE),
            "location": values(header::LOCATION),
            "retry-after": values(header::RETRY_AFTER),
            "warning": values(header::WARNING),
        });
        Ok((head.status.as_u16(), headers, read(&bytes)))
    }
}

/// A body as JSON: a list of all events if it is a stream of them, a text if it is none.
fn read(bytes: &[u8]) -> Value {
    let values: Result<Vec<Value>, _> =
        serde_json::Deserializer::from_slice(bytes).into_iter().collect();
    match values {
        Ok(mut values) if values.len() == 1 && values[0].get("object").is_none() => {
            values.remove(0)
        }
        Ok(values) => Value::Array(values),
        Err(_) => String::from_utf8_lossy(bytes).into_owned().into(),
    }
}

/// The bytes of an object in protobuf, as Go writes them.
fn sample(kind: &str) -> Result<Vec<u8>> {
    let path = shell::root().join("crates/api/openapi/samples.json");
    let samples: Value = serde_json::from_slice(&std::fs::read(path)?)?;
    let found = samples.get(kind).with_context(|| format!("no sample of {kind}"))?;
    let text = found["protobuf"].as_str().context("a sample has its protobuf form")?;
    Ok(STANDARD.decode(text)?)
}
