//! Being told to stop: once for an orderly end, twice for a quick one.

use std::{future::Future, pin::pin, time::Duration};

use anyhow::{Context, Result};
use lockstep_local::embedded::Killer;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How long a cluster whose containers were killed may still take.
const QUICK: Duration = Duration::from_secs(2);

/// The signals that ask the process to stop.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Nothing when whoever started us wants hang-ups ignored, as `nohup` does.
    hang_up: Option<Signal>,
}

impl Signals {
    /// Takes the signals over from the system, which would end the process at once.
    pub(crate) fn listen() -> Result<Self> {
        let take = |kind| signal(kind).context("cannot listen for signals");
        let is_ignored = ignores_hang_up(&std::fs::read_to_string("/proc/self/status")?);
        Ok(Self {
            interrupt: take(SignalKind::interrupt())?,
            terminate: take(SignalKind::terminate())?,
            hang_up: if is_ignored { None } else { Some(take(SignalKind::hangup())?) },
        })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            Some(_) = async { self.hang_up.as_mut()?.recv().await } => {}
        }
    }

    /// Waits for `ending`. Another signal kills the containers, and then it gets little time.
    pub(crate) async fn or_quickly(&mut self, ending: impl Future<Output = ()>, killer: Killer) {
        let mut ending = pin!(ending);
        tokio::select! {
            () = &mut ending => {}
            () = self.next() => {
                killer.kill_all();
                // What has not ended by then ends with this process, or is found at the next start.
                let _in_time = tokio::time::timeout(QUICK, ending).await;
            }
        }
    }
}

/// Whether hang-ups are ignored, by the text of `/proc/self/status`.
fn ignores_hang_up(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hang_ups_are_ignored_where_the_mask_says_so() {
        let status = |mask: &str| format!("Name:\tx\nSigIgn:\t{mask}\nSigCgt:\t0000000000000001\n");
        assert!(ignores_hang_up(&status("0000000000001001")));
        assert!(!ignores_hang_up(&status("0000000000001000")));
        assert!(!ignores_hang_up(""));
    }
}
