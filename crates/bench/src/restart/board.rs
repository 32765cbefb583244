//! Where all of a fleet write down what happened when, and the last one tells.

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::clock::now;

/// What is known of one restart, on the side of the fleet. Times are those of [`super::clock`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    /// When the failure was.
    pub(super) failed: u64,
    /// When the last one was told to stop.
    pub(super) told: u64,
    /// When the last worker was gone.
    pub(super) stopped: u64,
    /// When half of the workers, nearly all and all of them ran.
    pub(super) started: [u64; 3],
}

impl Times {
    /// Reads what a board has said.
    pub(super) fn read(line: &str) -> Option<Self> {
        let mut words = line.strip_prefix("running ")?.split(' ').map(|word| word.parse().ok());
        let mut next = || words.next().flatten();
        let (failed, told, stopped) = (next()?, next()?, next()?);
        Some(Self { failed, told, stopped, started: [next()?, next()?, next()?] })
    }
}

/// The board of one fleet.
pub(super) struct Board {
    size: usize,
    failed: AtomicU64,
    told: AtomicU64,
    stopped: AtomicU64,
    /// Which start of the workers this is, and when each of them was.
    started: Mutex<(u32, Vec<u64>)>,
    led: AtomicUsize,
}

impl Board {
    pub(super) fn new(size: u32) -> Self {
        Self {
            size: size as usize,
            failed: AtomicU64::new(now()),
            told: AtomicU64::new(0),
            stopped: AtomicU64::new(0),
            started: Mutex::default(),
            led: AtomicUsize::new(0),
        }
    }

    /// Something fails now.
    pub(super) fn failed(&self) {
        self.failed.store(now(), Ordering::SeqCst);
    }

    /// Somebody is told to stop.
    pub(super) fn told(&self) {
        self.told.fetch_max(now(), Ordering::SeqCst);
    }

    /// A worker has stopped.
    pub(super) fn stopped(&self) {
        self.stopped.fetch_max(now(), Ordering::SeqCst);
    }

    /// A worker runs, for this time. When all do, the board tells.
    pub(super) fn started(&self, epoch: u32) {
        let mut started = self.started.lock().unwrap();
        if epoch != started.0 {
            // If not all had been started before, they never will be.
            *started = (epoch, Vec::with_capacity(self.size));
        }
        started.1.push(now());
        if started.1.len() < self.size {
            return;
        }
        let mut times = std::mem::take(&mut started.1);
        drop(started);
        times.sort_unstable();
        let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)];
        let load = |time: &AtomicU64| time.load(Ordering::SeqCst);
        let (failed, told, stopped) = (load(&self.failed), load(&self.told), load(&self.stopped));
        let (half, nearly, last) = (at(50), at(99), at(100));
        say(&format!("running {failed} {told} {stopped} {half} {nearly} {last}"));
    }

    /// An agent has heard from a leader that is new to it. When all have, the board tells.
    pub(super) fn led(&self) {
        if self.led.fetch_add(1, Ordering::SeqCst) + 1 == self.size {
            self.led.store(0, Ordering::SeqCst);
            say(&format!("led {}", now()));
        }
    }
}

/// Tells whoever runs the fleet.
pub(super) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").unwrap();
    out.flush().unwrap();
}
