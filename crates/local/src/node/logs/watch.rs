//! Tells when something changes in a folder. One inotify instance serves all readers, because a
//! user may have only some hundred of them.

use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use tokio::sync::watch;

/// Changes of one folder, for as long as this lives.
pub(super) struct Changes {
    watcher: &'static Watcher,
    number: i32,
    receiver: watch::Receiver<u64>,
}

impl Changes {
    /// Forgets the changes until now.
    pub(super) fn mark_seen(&mut self) {
        self.receiver.borrow_and_update();
    }

    /// Waits for a change since the last one seen. Returns whether the folder is still there.
    pub(super) async fn changed(&mut self) -> bool {
        self.receiver.changed().await.is_ok()
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        let mut folders = self.watcher.lock();
        // The other receiver counted here is our own, which is dropped after this.
        if folders.get(&self.number).is_some_and(|sender| sender.receiver_count() == 1) {
            folders.remove(&self.number);
            let _ = inotify::remove_watch(&self.watcher.inotify, self.number);
        }
    }
}

/// Watches a folder.
pub(super) fn changes_in(dir: &Path) -> io::Result<Changes> {
    static WATCHER: OnceLock<Result<Arc<Watcher>, io::ErrorKind>> = OnceLock::new();
    let watcher = WATCHER.get_or_init(|| Watcher::start().map_err(|error| error.kind()));
    let watcher: &'static Watcher = watcher.as_ref().map_err(|kind| io::Error::from(*kind))?;
    let mut folders = watcher.lock();
    let flags = WatchFlags::MODIFY
        | WatchFlags::CREATE
        | WatchFlags::DELETE
        | WatchFlags::MOVE
        | WatchFlags::DELETE_SELF;
    let number = inotify::add_watch(&watcher.inotify, dir, flags)?;
    let sender = folders.entry(number).or_insert_with(|| watch::Sender::new(0));
    Ok(Changes { watcher, number, receiver: sender.subscribe() })
}

struct Watcher {
    inotify: OwnedFd,
    folders: Mutex<HashMap<i32, watch::Sender<u64>>>,
}

impl Watcher {
    fn start() -> io::Result<Arc<Self>> {
        let inotify = inotify::init(CreateFlags::CLOEXEC)?;
        let watcher = Arc::new(Self { inotify, folders: Mutex::default() });
        let in_thread = Arc::clone(&watcher);
        thread::Builder::new().name("log-watch".to_owned()).spawn(move || in_thread.run())?;
        Ok(watcher)
    }

    fn run(&self) {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.inotify, &mut buffer);
        loop {
            let Ok(event) = reader.next() else { return };
            let mut folders = self.lock();
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                // Changes were lost, so everybody has to look.
                for sender in folders.values() {
                    sender.send_modify(|count| *count += 1);
                }
            } else if event.events().contains(ReadFlags::IGNORED) {
                // Removed by us, or the folder is gone: readers notice by the sender's end.
                folders.remove(&event.wd());
            } else if let Some(sender) = folders.get(&event.wd()) {
                sender.send_modify(|count| *count += 1);
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<i32, watch::Sender<u64>>> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
