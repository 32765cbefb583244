//! What a worker writes, where somebody has to listen to it: it is passed on as it comes, byte by
//! byte, and lines are looked at on the way.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use regex::bytes::Regex;

/// How much of a line is looked at.
const LINE_MAX: usize = 8 * 1024;
/// How long the last lines may take to be passed on when the agent ends.
const LAST_LINES_WITHIN: Duration = Duration::from_secs(1);

/// What listens for lines of a worker.
#[derive(Clone, Debug)]
pub(super) struct Ear {
    pattern: Regex,
    heard: Arc<AtomicU64>,
}

impl Ear {
    /// Counts lines with this in them.
    pub(super) const fn new(pattern: Regex, heard: Arc<AtomicU64>) -> Self {
        Self { pattern, heard }
    }

    fn hear(&self, line: &[u8]) {
        if self.pattern.is_match(line) {
            self.heard.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The log of a worker that is listened to.
#[derive(Debug)]
pub(super) struct Log {
    ear: Ear,
    /// What passes on what the last worker has written; each ends when that is done.
    passing: Vec<Receiver<()>>,
}

impl Log {
    pub(super) const fn new(ear: Ear) -> Self {
        Self { ear, passing: Vec::new() }
    }

    /// Passes on what this worker writes, after what the one before has written.
    pub(super) fn follow(&mut self, worker: &mut Child) -> io::Result<()> {
        let mut before = std::mem::take(&mut self.passing).into_iter();
        if let Some(pipe) = worker.stdout.take() {
            self.pass_on(pipe, &io::stdout(), before.next())?;
        }
        if let Some(pipe) = worker.stderr.take() {
            self.pass_on(pipe, &io::stderr(), before.next())?;
        }
        Ok(())
    }

    /// Waits until all was passed on, but not for ever: somebody out of reach may hold the pipe.
    pub(super) fn finish(&mut self) {
        for passing in self.passing.drain(..) {
            let _ended = passing.recv_timeout(LAST_LINES_WITHIN);
        }
    }

    fn pass_on(
        &mut self,
        from: impl Read + Send + 'static,
        to: &impl AsFd,
        before: Option<Receiver<()>>,
    ) -> io::Result<()> {
        let to = File::from(to.as_fd().try_clone_to_owned()?);
        let ear = self.ear.clone();
        let (over, passing) = mpsc::channel::<()>();
        thread::Builder::new().name("log".to_owned()).spawn(move || {
            if let Some(before) = before {
                let _ended = before.recv();
            }
            // Whoever reads the log has gone: the worker finds out as it would without us.
            let _gone = pass_on(from, to, &ear);
            drop(over);
        })?;
        self.passing.push(passing);
        Ok(())
    }
}

fn pass_on(mut from: impl Read, mut to: impl Write, ear: &Ear) -> io::Result<()> {
    let (mut buffer, mut line) = ([0; LINE_MAX], Vec::new());
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let read = &buffer[..count];
        to.write_all(read)?;
        for piece in read.split_inclusive(|byte| *byte == b'\n') {
            let room = LINE_MAX - line.len();
            line.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                ear.hear(line.trim_ascii_end());
                line.clear();
            }
        }
    }
    ear.hear(&line);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives so many bytes at a time.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(buffer.len()).min(self.0.len());
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    #[test]
    fn all_is_passed_on_and_lines_are_heard_however_they_come() {
        let mut text = b"step 1\nother\r\nstep 2\r\n".to_vec();
        // Longer than is looked at, not of any encoding, and without an end.
        text.extend(vec![0xff; 3 * LINE_MAX]);
        text.extend(b"step 3\nno step 4\nstep 5");
        let pattern = Regex::new(r"^step \d+$").unwrap();
        for size in [1, 3, 7, LINE_MAX, usize::MAX] {
            let heard = Arc::<AtomicU64>::default();
            let ear = Ear::new(pattern.clone(), Arc::clone(&heard));
            let mut got = Vec::new();
            pass_on(Pieces(&text, size), &mut got, &ear).unwrap();
            assert_eq!(got, text, "in pieces of {size}");
            assert_eq!(heard.load(Ordering::Relaxed), 3, "in pieces of {size}");
        }
    }
}
