//! Gives a real server the custom kinds that ours has built in.

use std::{
    fs,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use http::{Request, StatusCode, header};
use kube::{Client, client::Body};
use serde_json::Value;

use crate::shell;

/// Where their definitions are, as they are published.
const FOLDER: &str = "deploy/crds";

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// How long it may take until a kind is served.
const PATIENCE: Duration = Duration::from_secs(30);

/// Creates all definitions, and waits until their kinds are served.
pub(super) async fn custom_kinds(client: &Client) -> Result<()> {
    let folder = shell::root().join(FOLDER);
    let mut served = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("no {}", folder.display()))? {
        let path = entry?.path();
        let definition: Value = serde_saphyr::from_str(&fs::read_to_string(&path)?)
            .with_context(|| format!("{} is no definition", path.display()))?;
        let request = Request::post(DEFINITIONS)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(serde_json::to_vec(&definition)?))?;
        let code = client.send(request).await?.status();
        ensure!(code == StatusCode::CREATED, "{}: {code}", path.display());
        served.extend(paths(&definition));
    }
    ensure!(!served.is_empty(), "{} has no definitions", folder.display());
    let end = Instant::now() + PATIENCE;
    for path in served {
        while !client.send(Request::get(&path).body(Body::empty())?).await?.status().is_success() {
            if Instant::now() > end {
                bail!("{path} is not served");
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    Ok(())
}

/// Where the objects of a kind are listed, in each version that is served.
fn paths(definition: &Value) -> Vec<String> {
    let spec = &definition["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
    let versions = spec["versions"].as_array().into_iter().flatten();
    let served = versions.filter(|version| version["served"] == true);
    served.map(|version| format!("/apis/{group}/{}/{plural}", text(&version["name"]))).collect()
}
