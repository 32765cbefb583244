//! The way of what a client sends to one port: some of it may wait, and one port whose process does
//! not read must not keep the others from what is theirs.
//!
//! Clients do not heed windows, so what is not wanted can only be left unread for all ports of a
//! connection at once. A port that is slow has that done for it. One that takes nothing at all,
//! with everything full, is given up.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc},
    time::timeout,
};

/// How many bytes may wait for a port.
pub(super) const ROOM: usize = 4 << 20;
/// How many bytes are passed on at once.
const PIECE: usize = 32 << 10;
/// How long a port may take nothing, with all of its room used, while others wait for it.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Why a port was given up.
pub(super) const STUCK: &str = "the process does not read what was sent to the port";

/// Where bytes go in.
pub(super) struct Entrance {
    queue: mpsc::UnboundedSender<Piece>,
    room: Arc<Semaphore>,
    stuck: Arc<Notify>,
}

/// Where they come out.
pub(super) struct Exit {
    queue: mpsc::UnboundedReceiver<Piece>,
    /// What was taken last, which takes room until the next is asked for.
    taken: Option<OwnedSemaphorePermit>,
}

/// Tells the one who takes that it was given up.
pub(super) struct GivenUp(Arc<Notify>);

/// Some bytes with the room that they take.
type Piece = (Bytes, OwnedSemaphorePermit);

/// A new way.
pub(super) fn pipe() -> (Entrance, Exit, GivenUp) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let stuck = Arc::new(Notify::new());
    let room = Arc::new(Semaphore::new(ROOM));
    let entrance = Entrance { queue: sender, room, stuck: Arc::clone(&stuck) };
    (entrance, Exit { queue: receiver, taken: None }, GivenUp(stuck))
}

impl Entrance {
    /// Passes bytes on, as soon as there is room for them; `false` when nothing more is wanted.
    pub(super) async fn push(&self, mut bytes: Bytes) -> bool {
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(PIECE));
            let count = u32::try_from(piece.len()).unwrap_or(u32::MAX);
            let room = Arc::clone(&self.room).acquire_many_owned(count);
            let Ok(room) = timeout(PATIENCE, room).await else {
                self.stuck.notify_one();
                return false;
            };
            let is_passed_on = room.is_ok_and(|room| self.queue.send((piece, room)).is_ok());
            if !is_passed_on {
                return false;
            }
        }
        true
    }
}

impl Exit {
    /// The next bytes; nothing when there will be none. What came before has been used.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        self.taken = None;
        let (bytes, room) = self.queue.recv().await?;
        self.taken = Some(room);
        Some(bytes)
    }
}

impl GivenUp {
    /// Waits until that happens.
    pub(super) async fn wait(&self) {
        self.0.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, sleep};

    use super::*;

    fn bytes(count: usize) -> Bytes {
        Bytes::from(vec![7; count])
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_nothing_is_given_up_and_nobody_waits_for_longer() {
        let (entrance, mut exit, given_up) = pipe();
        assert!(entrance.push(bytes(ROOM)).await, "there is room");
        let start = Instant::now();
        assert!(!entrance.push(bytes(1)).await);
        assert_eq!(start.elapsed(), PATIENCE);
        given_up.wait().await;
        drop(entrance);
        let mut count = 0;
        while let Some(bytes) = exit.next().await {
            count += bytes.len();
        }
        assert_eq!(count, ROOM, "what was let in comes out");
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_slow_is_waited_for() {
        let (entrance, mut exit, given_up) = pipe();
        let take = async {
            let mut count = 0;
            while let Some(bytes) = exit.next().await {
                count += bytes.len();
                sleep(PATIENCE / 2).await;
            }
            count
        };
        let push = async {
            assert!(entrance.push(bytes(2 * ROOM)).await);
            drop(entrance);
        };
        let (count, ()) = tokio::join!(take, push);
        assert_eq!(count, 2 * ROOM);
        assert!(timeout(PATIENCE, given_up.wait()).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_let_in_for_who_has_gone() {
        let (entrance, exit, _) = pipe();
        assert!(entrance.push(bytes(ROOM)).await);
        let gone = async {
            sleep(PATIENCE / 2).await;
            drop(exit);
        };
        let (is_wanted, ()) = tokio::join!(entrance.push(bytes(1)), gone);
        assert!(!is_wanted);
    }
}
