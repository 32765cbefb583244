//! What the measurements share.

use std::time::Duration;

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use lockstep_local::embedded::{Embedded, Options};

/// A cluster with an API server and no node; durable when a folder is given.
pub(crate) async fn cluster(folder: Option<&std::path::Path>) -> Embedded {
    let options = Options {
        data_dir: folder.map(Into::into),
        listen: Some("127.0.0.1:0".parse().unwrap()),
        ..Options::default()
    };
    Embedded::start(options).await.unwrap()
}

/// A client that goes over TCP and TLS.
pub(crate) async fn over_tls(embedded: &Embedded) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(embedded.kubeconfig().unwrap()).unwrap();
    let options = KubeConfigOptions::default();
    Client::try_from(Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap()).unwrap()
}

/// The resident memory of this process in MiB.
pub(crate) fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// The value below which a share of the sorted times lies.
pub(crate) fn percentile(sorted: &[Duration], share: f64) -> Duration {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index into a list that is in memory"
    )]
    let at = (sorted.len() as f64 * share) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
}
