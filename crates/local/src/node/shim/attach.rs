//! Clients that see what the main process writes while it writes it.
//!
//! Whoever is attached gets everything: while one has not taken what there is, the container has to
//! wait with more, as it would for a terminal. But not for long: a client that is stuck is let go.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use super::log_writer::Stream;
use super::stdio::Ours;
use super::wire::Streams;

/// How long a container waits for a client that does not read.
const PATIENCE: Duration = Duration::from_secs(10);

/// One client.
pub(super) struct Attached {
    sinks: [Option<Sink>; 2],
    /// Whether it has the input of the main process.
    pub(super) has_input: bool,
}

/// Where the client reads one of the streams.
struct Sink {
    fd: OwnedFd,
    pending: Vec<u8>,
    stuck_since: Option<Instant>,
}

impl Attached {
    /// A client for some streams. Also gives back the ends that it reads.
    pub(super) fn new(wanted: Streams) -> io::Result<(Self, Ours)> {
        let (mut sinks, mut ours) = ([None, None], Ours::default());
        let [out, err] = &mut sinks;
        for (is_wanted, sink, end) in
            [(wanted.out, out, &mut ours.out), (wanted.err, err, &mut ours.err)]
        {
            if is_wanted {
                let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
                *end = Some(read);
                *sink = Some(Sink { fd: write, pending: Vec::new(), stuck_since: None });
            }
        }
        Ok((Self { sinks, has_input: wanted.input }, ours))
    }

    /// Gives the client what the main process wrote.
    pub(super) fn offer(&mut self, stream: Stream, output: &[u8], now: Instant) {
        let sink = &mut self.sinks[stream as usize];
        if let Some(open) = sink {
            open.pending.extend_from_slice(output);
            if open.flush(now).is_err() {
                // It does not read this one any more.
                *sink = None;
            }
        }
    }

    /// Gives the client more of what it did not take yet.
    pub(super) fn flush(&mut self, now: Instant) {
        for sink in &mut self.sinks {
            if sink.as_mut().is_some_and(|open| open.flush(now).is_err()) {
                *sink = None;
            }
        }
    }

    /// Where the client has to make room first, and for which stream.
    pub(super) fn stuck(&self) -> impl Iterator<Item = (Stream, &OwnedFd)> {
        [Stream::Out, Stream::Err].into_iter().zip(&self.sinks).filter_map(|(stream, sink)| {
            let sink = sink.as_ref().filter(|sink| !sink.pending.is_empty())?;
            Some((stream, &sink.fd))
        })
    }

    /// Until when the client has to have made room.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let since = self.sinks.iter().flatten().filter_map(|sink| sink.stuck_since).min();
        since.and_then(|since| since.checked_add(PATIENCE))
    }

    /// Waits until the client has everything, or has had enough time for it.
    pub(super) fn finish(&mut self) {
        self.flush(Instant::now());
        while let Some(deadline) = self.deadline() {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 0, tv_nsec: 0 });
            let mut fds: Vec<_> =
                self.stuck().map(|(_, fd)| PollFd::new(fd, PollFlags::OUT)).collect();
            match poll(&mut fds, Some(&timeout)) {
                Ok(0) => return,
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
            self.flush(Instant::now());
        }
    }
}

impl Sink {
    fn flush(&mut self, now: Instant) -> rustix::io::Result<()> {
        while !self.pending.is_empty() {
            match rustix::io::write(&self.fd, &self.pending) {
                Ok(count) => {
                    self.pending.drain(..count);
                    self.stuck_since = None;
                }
                Err(Errno::AGAIN) => {
                    self.stuck_since.get_or_insert(now);
                    return Ok(());
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        self.stuck_since = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_get_everything_in_order_and_are_let_go_when_stuck() {
        let wanted = Streams { out: true, ..Streams::default() };
        let (mut client, ours) = Attached::new(wanted).unwrap();
        let read = ours.out.unwrap();
        let start = Instant::now();
        let lines: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
        client.offer(Stream::Err, b"nobody asked", start);
        assert_eq!((client.stuck().count(), client.deadline()), (0, None));
        client.offer(Stream::Out, &lines, start);
        assert_eq!(client.stuck().count(), 1);
        assert_eq!(client.deadline(), Some(start + PATIENCE));
        let mut seen = Vec::new();
        while seen.len() < lines.len() {
            let mut chunk = [0; 10_000];
            let count = rustix::io::read(&read, &mut chunk).unwrap();
            seen.extend_from_slice(&chunk[..count]);
            client.flush(start + Duration::from_secs(9));
        }
        assert!(seen == lines);
        assert_eq!((client.stuck().count(), client.deadline()), (0, None));
        drop(read);
        client.offer(Stream::Out, b"nobody reads", start);
        assert_eq!(client.stuck().count(), 0);
    }
}
