//! A sign of life: a file that the worker touches, or a line that it writes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use regex::bytes::Regex;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::log::Ear;

/// How often it is looked within the time that a worker may be silent. One that goes silent is
/// noticed by so much later than that at most.
const LOOKS: u32 = 10;

/// How a worker shows that it lives.
#[derive(Debug)]
pub struct Heartbeat {
    sign: Sign,
    within: Duration,
    /// Since when nothing was seen of the worker that runs.
    since: Option<Instant>,
    /// What was seen last; nothing before the first look at a worker.
    seen: Option<Mark>,
    looked: Option<Instant>,
    /// A look that has not come back yet.
    look: Option<Look>,
}

#[derive(Debug)]
enum Sign {
    File(PathBuf),
    Line(Regex, Arc<AtomicU64>),
}

/// What is another one after each sign of life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Touched(Option<SystemTime>),
    Lines(u64),
}

#[derive(Debug)]
struct Look {
    begun: Instant,
    mark: oneshot::Receiver<Mark>,
}

impl Heartbeat {
    /// A worker that touches `file` at least every `within`.
    pub const fn touching(file: PathBuf, within: Duration) -> Self {
        Self::new(Sign::File(file), within)
    }

    /// A worker that writes a line with `pattern` in it at least every `within`, to its standard
    /// output or standard error.
    pub fn writing(pattern: Regex, within: Duration) -> Self {
        Self::new(Sign::Line(pattern, Arc::default()), within)
    }

    const fn new(sign: Sign, within: Duration) -> Self {
        Self { sign, within, since: None, seen: None, looked: None, look: None }
    }

    /// What has to listen to the worker, if it is not seen.
    pub(super) fn ear(&self) -> Option<Ear> {
        match &self.sign {
            Sign::File(_) => None,
            Sign::Line(pattern, heard) => Some(Ear::new(pattern.clone(), Arc::clone(heard))),
        }
    }

    /// A worker was started.
    pub(super) fn begin(&mut self) {
        self.since = Some(Instant::now());
        (self.seen, self.looked, self.look) = (None, None, None);
    }

    /// It has ended.
    pub(super) fn stop(&mut self) {
        (self.since, self.look) = (None, None);
    }

    /// Looks from time to time, until the worker has been silent for too long. It may be given up
    /// at any moment, and called again.
    pub(super) async fn missed(&mut self) {
        loop {
            let Some(since) = self.since else { return std::future::pending().await };
            if self.look.is_none() {
                sleep_until(self.next_look(since)).await;
                self.look = Some(self.sign.look());
            }
            let Some(look) = &mut self.look else { continue };
            let begun = look.begun;
            // A file system that does not answer for as long shows no life either.
            let mark = timeout_at(begun + self.within, &mut look.mark).await;
            self.look = None;
            self.looked = Some(begun);
            let is_sign = matches!(mark, Ok(Ok(mark)) if self.seen != Some(mark));
            if let Ok(Ok(mark)) = mark
                && is_sign
            {
                (self.seen, self.since) = (Some(mark), Some(Instant::now()));
            } else if begun >= since + self.within || mark.is_err() {
                self.since = None;
                return;
            }
        }
    }

    /// When to look: soon after the start, a few times, and when the time is up.
    fn next_look(&self, since: Instant) -> Instant {
        match self.looked {
            None => since,
            Some(looked) => (looked + self.within / LOOKS).min(since + self.within),
        }
    }
}

impl Sign {
    fn look(&self) -> Look {
        let (tell, mark) = oneshot::channel();
        match self {
            Self::Line(_, heard) => {
                let _ = tell.send(Mark::Lines(heard.load(Ordering::Relaxed)));
            }
            Self::File(file) => {
                let file = file.clone();
                // Not in this thread, which others wait for: a file may be far away. Nor in one of
                // the runtime's, which would not end before all of them do.
                let looking = thread::Builder::new().spawn(move || {
                    // Nobody may wait for it any more.
                    let _ = tell.send(Mark::Touched(touched(&file)));
                });
                if let Err(error) = looking {
                    tracing::warn!(%error, "cannot look for a sign of life");
                }
            }
        }
        Look { begun: Instant::now(), mark }
    }
}

fn touched(file: &Path) -> Option<SystemTime> {
    file.metadata().and_then(|metadata| metadata.modified()).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tokio::time::timeout;

    use super::*;

    const WITHIN: Duration = Duration::from_millis(1500);

    #[tokio::test]
    async fn who_touches_a_file_lives_and_who_stops_is_missed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("alive");
        let mut heartbeat = Heartbeat::touching(file.clone(), WITHIN);
        heartbeat.begin();
        for beat in 0..5 {
            fs::write(&file, beat.to_string()).unwrap();
            let missed = timeout(WITHIN / 3, heartbeat.missed()).await;
            assert!(missed.is_err(), "beat {beat}: it was touched");
        }
        let begun = Instant::now();
        let missed = timeout(WITHIN * 20, heartbeat.missed()).await;
        assert!(missed.is_ok() && begun.elapsed() >= WITHIN / 2, "{:?}", begun.elapsed());
        let missed = timeout(WITHIN, heartbeat.missed()).await;
        assert!(missed.is_err(), "once is enough");
    }

    #[tokio::test]
    async fn a_file_system_that_does_not_answer_holds_up_nobody() {
        let mut heartbeat = Heartbeat::touching(PathBuf::from("/nowhere"), WITHIN);
        heartbeat.begin();
        let (_never, mark) = oneshot::channel();
        heartbeat.look = Some(Look { begun: Instant::now(), mark });
        let others = timeout(WITHIN / 3, heartbeat.missed()).await;
        assert!(others.is_err(), "others have their turn meanwhile");
        assert!(timeout(WITHIN * 20, heartbeat.missed()).await.is_ok(), "nothing shows life");
    }
}
