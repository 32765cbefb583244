//! How fast containers start. Not a test of anything: run it by hand.

use std::time::Instant;

use super::support::{Node, script};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement, to be run alone"]
async fn start_rate() {
    let mut node = Node::new();
    for (name, count, parallel) in [("one", 100, 1), ("many", 400, 8)] {
        let begun = Instant::now();
        let mut waiting = 0;
        let mut took = Vec::new();
        for number in 0..count {
            let mut launch = script(&format!("{name}{number}"), "");
            launch.command = vec!["true".to_owned()];
            let start = Instant::now();
            if parallel == 1 {
                node.runtime.start(launch).await.unwrap();
                took.push(start.elapsed());
            } else {
                let runtime = node.runtime.clone();
                tokio::spawn(async move { runtime.start(launch).await.unwrap() });
            }
            waiting += 1;
            if waiting == parallel {
                node.exited().await;
                waiting -= 1;
            }
        }
        for _ in 0..waiting {
            node.exited().await;
        }
        let rate = f64::from(count) / begun.elapsed().as_secs_f64();
        took.sort();
        println!("{name}: {rate:.0} containers/s, median start {:?}", took.get(took.len() / 2));
    }
    let launch = script("memory", "sleep 60");
    let started = node.runtime.start(launch).await.unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", started.pid)).unwrap();
    let shim = stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap().to_owned();
    let rollup = std::fs::read_to_string(format!("/proc/{shim}/smaps_rollup")).unwrap();
    println!("{rollup}");
}
