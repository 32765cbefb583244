//! The API server behind a command: how it is found, and one request to it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use futures::AsyncBufRead;
use http::{Request, Response, StatusCode, header};
use kube::{
    Client, Config,
    client::Body,
    config::{KubeConfigOptions, Kubeconfig},
};
use lockstep_api::Status;
use serde_json::Value;

use crate::{
    args::Connection,
    datadir,
    exit::{self, Ending, Exit},
    output,
    refusal::Refusal,
};

/// A server and the namespace commands work in.
#[derive(Clone)]
pub(crate) struct Cluster {
    client: Client,
    /// The namespace of objects that do not name one.
    pub(crate) namespace: String,
}

/// What a request carries.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Content<'a> {
    /// Nothing.
    Nothing,
    /// An object.
    Json(&'a Value),
    /// A JSON merge patch.
    MergePatch(&'a Value),
    /// What is to be true of an object.
    Configuration(&'a Value),
}

/// What is accepted beside an object: a server that makes tables sends one.
pub(crate) const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

const JSON: &str = "application/json";

impl Cluster {
    /// The cluster a command is about: the one named, else `$KUBECONFIG`, else a running
    /// `lockstep up`, else the user's own kubeconfig.
    pub(crate) async fn find(connection: &Connection) -> Result<Self> {
        let options =
            KubeConfigOptions { context: connection.context.clone(), ..Default::default() };
        let kubeconfig = read_kubeconfig(connection).map_err(|e| exit::or(e, Exit::Usage))?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &options)
            .await
            .context("the kubeconfig cannot be used")
            .map_err(|error| exit::or(error, Exit::Usage))?;
        let server = config.cluster_url.to_string();
        let default_namespace = config.default_namespace.clone();
        let client =
            Client::try_from(config).with_context(|| format!("cannot talk to {server}"))?;
        let namespace = connection.namespace.clone().unwrap_or(default_namespace);
        Ok(Self { client, namespace })
    }

    /// A cluster inside this process.
    pub(crate) fn inside(client: Client, namespace: &str) -> Self {
        Self { client, namespace: namespace.to_owned() }
    }

    /// The client itself.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// GETs JSON.
    pub(crate) async fn get(&self, path: &str) -> Result<Value, Refusal> {
        self.call("GET", path, JSON, Content::Nothing).await
    }

    /// GETs a Table, or whatever the server makes of it.
    pub(crate) async fn table(&self, path: &str) -> Result<Value, Refusal> {
        self.call("GET", path, TABLE, Content::Nothing).await
    }

    /// Makes one request; warnings of the server are printed.
    pub(crate) async fn call(
        &self,
        method: &str,
        path: &str,
        accept: &str,
        content: Content<'_>,
    ) -> Result<Value, Refusal> {
        let response = self.send(method, path, accept, content).await?;
        let body = whole(response).await?;
        serde_json::from_slice(&body).map_err(|error| Refusal::Garbled(error.to_string()))
    }

    /// Makes one request, and keeps warnings of the server to itself.
    pub(crate) async fn call_quietly(
        &self,
        method: &str,
        path: &str,
        content: Content<'_>,
    ) -> Result<Value, Refusal> {
        let response = self.answer(method, path, JSON, content).await?;
        let body = whole(response).await?;
        serde_json::from_slice(&body).map_err(|error| Refusal::Garbled(error.to_string()))
    }

    /// GETs text.
    pub(crate) async fn text(&self, path: &str) -> Result<String, Refusal> {
        let response = self.send("GET", path, "*/*", Content::Nothing).await?;
        let body = whole(response).await?;
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    /// GETs a body that is read as it comes.
    pub(crate) async fn stream(
        &self,
        path: &str,
        accept: &str,
    ) -> Result<impl AsyncBufRead + Send + Unpin + use<>, Refusal> {
        let request = Request::get(path)
            .header(header::ACCEPT, accept)
            .body(Vec::new())
            .map_err(|error| Refusal::Garbled(error.to_string()))?;
        Ok(Box::pin(self.client.request_stream(request).await?))
    }

    /// Makes a request whose warnings are printed.
    async fn send(
        &self,
        method: &str,
        path: &str,
        accept: &str,
        content: Content<'_>,
    ) -> Result<Response<Body>, Refusal> {
        let response = self.answer(method, path, accept, content).await?;
        print_warnings(&response);
        Ok(response)
    }

    async fn answer(
        &self,
        method: &str,
        path: &str,
        accept: &str,
        content: Content<'_>,
    ) -> Result<Response<Body>, Refusal> {
        let (media_type, body) = match content {
            Content::Nothing => (None, Vec::new()),
            Content::Json(value) => (Some(JSON), value.to_string().into_bytes()),
            Content::MergePatch(value) => {
                (Some("application/merge-patch+json"), value.to_string().into_bytes())
            }
            Content::Configuration(value) => {
                (Some("application/apply-patch+yaml"), value.to_string().into_bytes())
            }
        };
        let mut request =
            Request::builder().method(method).uri(path).header(header::ACCEPT, accept);
        if let Some(media_type) = media_type {
            request = request.header(header::CONTENT_TYPE, media_type);
        }
        let request =
            request.body(Body::from(body)).map_err(|e| Refusal::Garbled(e.to_string()))?;
        Ok(self.client.send(request).await?)
    }
}

/// The body of an answer that is none but good.
async fn whole(response: Response<Body>) -> Result<Vec<u8>, Refusal> {
    let code = response.status();
    let body = response.into_body().collect_bytes().await?;
    if code.is_success() { Ok(body.to_vec()) } else { Err(refused(code, &body)) }
}

fn refused(code: StatusCode, body: &[u8]) -> Refusal {
    match serde_json::from_slice::<Status>(body) {
        Ok(status) if status.code != 0 => Refusal::Status(Box::new(status)),
        _ => {
            Refusal::Http { code: code.as_u16(), body: String::from_utf8_lossy(body).into_owned() }
        }
    }
}

/// Prints `Warning: 299 - "text"` headers as kubectl does.
fn print_warnings(response: &Response<Body>) {
    for value in response.headers().get_all(header::WARNING) {
        let text = String::from_utf8_lossy(value.as_bytes());
        let quoted = text.splitn(3, ' ').nth(2).unwrap_or(&text);
        let plain = quoted.trim_matches('"').replace("\\\"", "\"").replace("\\\\", "\\");
        output::note(format!("Warning: {plain}"));
    }
}

fn read_kubeconfig(connection: &Connection) -> Result<Kubeconfig> {
    if let Some(path) = &connection.kubeconfig {
        return read_file(path);
    }
    if let Some(folder) = &connection.data_dir {
        let path = datadir::kubeconfig(folder);
        if !path.exists() {
            let message = format!(
                "there is no cluster in {0}: start one with `lockstep up --data-dir {0}`",
                folder.display()
            );
            return Err(Ending::error(Exit::Cluster, message));
        }
        return read_file(&path);
    }
    if let Some(merged) = Kubeconfig::from_env().context("$KUBECONFIG cannot be read")? {
        return Ok(merged);
    }
    let folder = datadir::default()?;
    if datadir::running(&folder).is_some() {
        return read_file(&datadir::kubeconfig(&folder));
    }
    match home_kubeconfig() {
        Some(path) if path.exists() => read_file(&path),
        _ => Err(Ending::error(
            Exit::Cluster,
            "no cluster: start one with `lockstep up --detach`, or name one with --kubeconfig or \
             $KUBECONFIG",
        )),
    }
}

fn read_file(path: &Path) -> Result<Kubeconfig> {
    std::fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
    Kubeconfig::read_from(path).with_context(|| format!("cannot read {}", path.display()))
}

fn home_kubeconfig() -> Option<PathBuf> {
    std::env::home_dir().map(|home| home.join(".kube").join("config"))
}
