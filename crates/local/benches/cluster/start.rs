//! From nothing to ready, and what it costs to be idle.

use super::measure::{cluster, resident_mib};

pub(crate) async fn run() {
    let folder = tempfile::tempdir().unwrap();
    for round in ["new folder", "existing folder"] {
        let embedded = cluster(Some(folder.path())).await;
        println!(
            "start, {round}: ready in {:.1} ms, {} MiB resident",
            embedded.ready_after().as_secs_f64() * 1e3,
            resident_mib()
        );
        embedded.shutdown().await;
    }
    let embedded = cluster(None).await;
    println!("start, in memory: ready in {:.1} ms", embedded.ready_after().as_secs_f64() * 1e3);
    embedded.shutdown().await;
}
