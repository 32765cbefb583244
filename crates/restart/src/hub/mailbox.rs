//! What one agent is to be told next: one slot, in which the newer takes the place of the older.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use lockstep_control::plan::restart::Order;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::Notify;

/// What carries orders to an agent, or to all of a gang at once.
pub(crate) trait Carrier: Send + Sync {
    /// Takes an order, and the frame it is in, in place of one that was not sent yet.
    fn carry(&self, order: &Order, frame: &Bytes);

    /// Nothing more is to be said, once that was sent.
    fn close(&self);
}

/// The slot of one connection.
///
/// A frame is short, and a connection nearly always has room for it. So whoever puts one in writes
/// it at once where that can be done: thousands of tasks that are woken to write one frame each
/// take longer than the writing. What does not fit waits for the connection's own task.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    slot: Mutex<Slot>,
    notify: Notify,
}

#[derive(Debug, Default)]
struct Slot {
    /// Where to write at once.
    writer: Option<Arc<OwnedWriteHalf>>,
    /// What is left of a frame that was begun: nothing may come between.
    rest: Option<Bytes>,
    frame: Option<Bytes>,
    /// Whether the connection's task is writing.
    is_busy: bool,
    is_closed: bool,
}

impl Mailbox {
    /// The slot of a connection, with what writes to it if that may be shared.
    pub(super) fn new(writer: Option<Arc<OwnedWriteHalf>>) -> Self {
        Self { slot: Mutex::new(Slot { writer, ..Slot::default() }), notify: Notify::new() }
    }

    /// Puts a frame in, whatever was there.
    pub(super) fn put(&self, frame: Bytes) {
        if !self.lock().put(frame) {
            self.notify.notify_one();
        }
    }

    /// The connection has ended: nothing is written any more.
    pub(super) fn end(&self) {
        *self.lock() = Slot { is_closed: true, ..Slot::default() };
    }

    /// Waits for what the connection's task has to write; `None` when the connection is to be
    /// closed. What was taken before must have been written.
    pub(super) async fn take(&self) -> Option<Bytes> {
        self.lock().is_busy = false;
        loop {
            let notified = self.notify.notified();
            {
                let mut slot = self.lock();
                if let Some(frame) = slot.rest.take().or_else(|| slot.frame.take()) {
                    slot.is_busy = true;
                    return Some(frame);
                }
                if slot.is_closed {
                    return None;
                }
            }
            notified.await;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Carrier for Mailbox {
    fn carry(&self, _: &Order, frame: &Bytes) {
        self.put(frame.clone());
    }

    fn close(&self) {
        self.lock().is_closed = true;
        self.notify.notify_one();
    }
}

impl Slot {
    /// Whether the frame is written, and nothing is left to do.
    fn put(&mut self, frame: Bytes) -> bool {
        let is_free = !self.is_busy && self.rest.is_none();
        let written = match &self.writer {
            // An error is found again by the connection's task, which ends of it.
            Some(writer) if is_free => writer.try_write(&frame).unwrap_or(0),
            Some(_) | None => 0,
        };
        self.frame = None;
        if written == frame.len() {
            return true;
        }
        if written > 0 {
            self.rest = Some(frame.slice(written..));
        } else {
            self.frame = Some(frame);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    #[tokio::test]
    async fn the_newest_is_all_that_is_sent() {
        let mailbox = Mailbox::default();
        mailbox.put(Bytes::from_static(b"old"));
        mailbox.put(Bytes::from_static(b"new"));
        mailbox.close();
        assert_eq!(mailbox.take().await, Some(Bytes::from_static(b"new")));
        assert_eq!(mailbox.take().await, None);
    }

    #[tokio::test]
    async fn frames_stay_whole_however_slowly_they_are_read() {
        const LENGTH: usize = 100_000;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut agent = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (_, writer) = listener.accept().await.unwrap().0.into_split();
        let writer = Arc::new(writer);
        writer.writable().await.unwrap();
        let mailbox = Arc::new(Mailbox::new(Some(Arc::clone(&writer))));
        // Far more than fits: some are written at once, one in part, most are replaced.
        for number in 0..200 {
            mailbox.put(Bytes::from(vec![number; LENGTH]));
        }
        mailbox.close();
        let writing = async {
            while let Some(frame) = mailbox.take().await {
                let mut left = &frame[..];
                while !left.is_empty() {
                    writer.writable().await.unwrap();
                    left = &left[writer.try_write(left).unwrap_or(0)..];
                }
            }
            mailbox.end();
            drop(writer);
        };
        let mut got = Vec::new();
        let (_, read) = tokio::join!(writing, agent.read_to_end(&mut got));
        read.unwrap();
        assert_eq!(got.len() % LENGTH, 0);
        assert!(got.chunks(LENGTH).all(|frame| frame.iter().all(|byte| *byte == frame[0])));
        let numbers: Vec<u8> = got.chunks(LENGTH).map(|frame| frame[0]).collect();
        assert!(numbers.len() < 200 && numbers.is_sorted());
        assert_eq!(numbers.last(), Some(&199));
    }
}
