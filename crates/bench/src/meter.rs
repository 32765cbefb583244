//! What a process and its server have done so far.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, Client};

/// Waits until so many nodes are there.
pub(crate) async fn until_nodes(client: &Client, count: usize) {
    let api: Api<Node> = Api::all(client.clone());
    while api.list_metadata(&ListParams::default()).await.unwrap().items.len() < count {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// How many requests of each kind the server has answered; `all` are the writes.
pub(crate) async fn requests(client: &Client) -> BTreeMap<String, f64> {
    let request = http::Request::get("/metrics").body(Vec::new()).unwrap();
    let text = client.request_text(request).await.unwrap();
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        let Some(rest) = line.strip_prefix("apiserver_request_total{") else { continue };
        let (labels, count) = rest.split_once("} ").unwrap();
        let label = |name: &str| label(labels, name);
        // A real server names methods, ours what they are for.
        let verb = match label("verb").to_lowercase().as_str() {
            "post" => "create".to_owned(),
            "put" => "update".to_owned(),
            other => other.to_owned(),
        };
        let resource = label("resource");
        let count: f64 = count.parse().unwrap();
        *counts.entry(format!("{verb} {resource} {}", label("code"))).or_insert(0.0) += count;
        if ["create", "update", "patch", "delete"].contains(&verb.as_str()) {
            *counts.entry("all".to_owned()).or_insert(0.0) += count;
        }
    }
    counts
}

/// How many requests an operator has made, by verb and code. It tells at `address`.
pub(crate) fn requests_made(address: &str) -> BTreeMap<String, f64> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        let Some(rest) = line.strip_prefix("rest_client_requests_total{") else { continue };
        let (labels, count) = rest.split_once("} ").unwrap();
        let what = format!("{} {}", label(labels, "method"), label(labels, "code"));
        *counts.entry(what).or_insert(0.0) += count.parse::<f64>().unwrap();
    }
    counts
}

/// The value of a label in a line of metrics.
fn label(labels: &str, name: &str) -> String {
    let from = labels.split(',').find_map(|it| it.strip_prefix(&format!("{name}=\"")));
    from.unwrap_or_default().trim_end_matches('"').to_owned()
}

/// What has come to it since.
pub(crate) fn difference(
    before: &BTreeMap<String, f64>,
    after: &BTreeMap<String, f64>,
) -> Vec<(String, f64)> {
    let since = |(what, count): (&String, &f64)| {
        (what.clone(), count - before.get(what).copied().unwrap_or(0.0))
    };
    after.iter().map(since).filter(|(_, count)| *count > 0.0).collect()
}

/// How much time a process has had on a core.
pub(crate) fn cpu_seconds(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    ticks / 100.0
}

/// How much memory a process has.
pub(crate) fn resident_bytes(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() * 1024.0
}
