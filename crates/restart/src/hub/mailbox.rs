//! What one agent is to be told next: one slot, in which the newer takes the place of the older.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

/// The slot of one connection.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    slot: Mutex<Slot>,
    notify: Notify,
}

#[derive(Debug, Default)]
struct Slot {
    frame: Option<Bytes>,
    is_closed: bool,
}

impl Mailbox {
    /// Puts a frame in, whatever was there.
    pub(super) fn put(&self, frame: Bytes) {
        self.lock().frame = Some(frame);
        self.notify.notify_one();
    }

    /// The connection is to be closed, once what is in the slot was sent.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.notify.notify_one();
    }

    /// Waits for the next frame; `None` when the connection is to be closed.
    pub(super) async fn take(&self) -> Option<Bytes> {
        loop {
            let notified = self.notify.notified();
            {
                let mut slot = self.lock();
                if let Some(frame) = slot.frame.take() {
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

#[cfg(test)]
mod tests {
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
}
