//! A worker that does nothing but say when it was started, when it was asked to stop, and in which
//! epoch.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use tokio::signal::unix::{SignalKind, signal};

use super::clock::now;

/// Where workers write to, in the folder of their fleet.
pub(super) const SAID: &str = "said";

/// The file that makes a worker deaf to being asked.
pub(super) fn deaf(slot: u32) -> String {
    format!("deaf-{slot}")
}

/// Works until it is told not to.
pub(super) async fn work(folder: &str, slot: &str) {
    let folder = Path::new(folder);
    let mut asked = signal(SignalKind::terminate()).unwrap();
    // Short lines are written as a whole, also by many at once.
    let mut said = OpenOptions::new().append(true).open(folder.join(SAID)).unwrap();
    let epoch = std::env::var("LOCKSTEP_EPOCH").unwrap();
    let mut say = |what: &str| {
        let line = format!("{what} {slot} {} {} {epoch}\n", std::process::id(), now());
        said.write_all(line.as_bytes()).unwrap();
    };
    say("started");
    loop {
        asked.recv().await;
        say("asked");
        if !folder.join(deaf(slot.parse().unwrap())).exists() {
            return;
        }
    }
}
