//! Plays those who run what is admitted: workloads take their time and finish, and those that are
//! evicted stop.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use jiff::Timestamp;
use kube::runtime::watcher;
use kube::{Api, Client};
use lockstep_api::kueue::{Workload, WorkloadStatus};
use lockstep_operator::observe::{Change, follow};
use lockstep_operator::write::workload_status;
use tokio::task::JoinSet;

use super::books::{Books, Todo};
use super::objects;
use crate::meter::resident_bytes;

/// How many writes are on their way at the same time.
const WRITES: usize = 64;

/// Nothing stands still for so long unless something is wrong.
const STUCK: Duration = Duration::from_secs(60);

/// How long to wait before a write is tried again that was not answered.
const RETRY: Duration = Duration::from_millis(200);

/// What became of a run.
pub(super) struct Played {
    pub(super) books: Books,
    /// Writes that met a newer version than they were made of.
    pub(super) conflicts: usize,
    /// Writes that failed otherwise.
    pub(super) failures: usize,
    /// The most memory this process had.
    pub(super) memory: f64,
}

/// Plays until all workloads have finished.
pub(super) async fn play(client: Client, books: Books) -> Played {
    let config = watcher::Config::default().page_size(5_000);
    let mut changes = std::pin::pin!(follow(Api::<Workload>::all(client.clone()), config));
    let mut player = Player::new(client, books);
    let mut tick = tokio::time::interval(Duration::from_millis(500));
    while !player.played.books.is_over() {
        let due = player.due.first().map(|(at, _)| *at);
        let until = due.unwrap_or_else(Instant::now);
        tokio::select! {
            change = changes.next() => player.hear(change.expect("a watch goes on for ever")),
            () = tokio::time::sleep_until(until.into()), if due.is_some() => player.look(),
            Some(write) = player.writes.join_next() => player.answered(write.unwrap()),
            _ = tick.tick() => player.check_health(),
        }
        player.go_on();
    }
    while let Some(write) = player.writes.join_next().await {
        player.answered(write.unwrap());
    }
    player.check_health();
    player.assert_over();
    player.played
}

struct Player {
    client: Client,
    played: Played,
    /// Whom to look at, and when.
    due: BTreeSet<(Instant, String)>,
    /// Whom to write of.
    waiting: VecDeque<String>,
    /// The version of each that was last written of: nobody is told twice.
    acted_on: HashMap<String, u64>,
    finishes: HashMap<String, usize>,
    writes: JoinSet<Written>,
    last_news: Instant,
}

struct Written {
    key: String,
    is_finish: bool,
    outcome: kube::Result<Workload>,
}

impl Player {
    fn new(client: Client, books: Books) -> Self {
        let played = Played { books, conflicts: 0, failures: 0, memory: 0.0 };
        Self {
            client,
            played,
            due: BTreeSet::new(),
            waiting: VecDeque::new(),
            acted_on: HashMap::new(),
            finishes: HashMap::new(),
            writes: JoinSet::new(),
            last_news: Instant::now(),
        }
    }

    fn hear(&mut self, change: Change<Workload>) {
        let books = &mut self.played.books;
        match change {
            Change::Listing => books.listing(),
            Change::Synced => books.listed(),
            Change::Gone(key) => panic!("nobody deletes workloads, but {key:?} is gone"),
            Change::Put(workload) => {
                let (key, now) = (objects::key(&workload), Instant::now());
                books.seen(workload, now);
                self.last_news = now;
                self.consider(key, now);
            }
        }
    }

    /// Looks at those whose time has come.
    fn look(&mut self) {
        let now = Instant::now();
        while self.due.first().is_some_and(|(at, _)| *at <= now) {
            let (_, key) = self.due.pop_first().unwrap();
            self.consider(key, now);
        }
    }

    fn consider(&mut self, key: String, now: Instant) {
        match self.played.books.todo(&key) {
            Todo::Nothing => {}
            Todo::Finish(at) if at > now => drop(self.due.insert((at, key))),
            Todo::Finish(_) | Todo::Release => self.waiting.push_back(key),
        }
    }

    /// Writes what is to be written, as much as may be on its way.
    fn go_on(&mut self) {
        while self.writes.len() < WRITES {
            let Some(key) = self.waiting.pop_front() else { return };
            let workload = Arc::clone(&self.played.books.get(&key).object);
            let version = objects::version(&workload);
            // What is written of is heard of, and so is what it met instead.
            if self.acted_on.get(&key) == Some(&version) {
                continue;
            }
            let (status, is_finish) = match self.played.books.todo(&key) {
                Todo::Finish(at) if at <= Instant::now() => {
                    (objects::finished(&workload, Timestamp::now()), true)
                }
                Todo::Release => (objects::released(&workload, Timestamp::now()), false),
                Todo::Finish(_) | Todo::Nothing => continue,
            };
            self.acted_on.insert(key.clone(), version);
            self.writes.spawn(write(self.client.clone(), workload, status, (key, is_finish)));
        }
    }

    fn answered(&mut self, written: Written) {
        let Written { key, is_finish, outcome } = written;
        match outcome {
            Ok(_) if is_finish => *self.finishes.entry(key).or_default() += 1,
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 409 => self.played.conflicts += 1,
            Err(error) => {
                tracing::warn!(%key, %error, "not written, trying again");
                self.played.failures += 1;
                self.acted_on.remove(&key);
                self.due.insert((Instant::now() + RETRY, key));
            }
        }
    }

    /// All have finished, and each was ended once, whoever else wrote at that time.
    fn assert_over(&self) {
        let Played { books, failures, .. } = &self.played;
        books.assert_over();
        assert!(self.finishes.values().all(|count| *count == 1), "a workload was ended twice");
        // A write that was not answered may have been the one.
        assert!(self.finishes.len() + failures >= books.finished, "a workload ended on its own");
    }

    fn check_health(&mut self) {
        let played = &mut self.played;
        played.memory = played.memory.max(resident_bytes(std::process::id()));
        let left = || played.books.unfinished();
        assert!(self.last_news.elapsed() < STUCK, "nothing moves any more: {:#?}", left());
    }
}

async fn write(
    client: Client,
    workload: Arc<Workload>,
    status: WorkloadStatus,
    (key, is_finish): (String, bool),
) -> Written {
    let meta = &workload.metadata;
    let text = |text: &Option<String>| text.clone().unwrap();
    let (namespace, name, uid) = (text(&meta.namespace), text(&meta.name), text(&meta.uid));
    let object = (namespace.as_str(), name.as_str(), uid.as_str());
    let version = text(&meta.resource_version);
    let outcome = workload_status(&client, object, &version, &status).await;
    Written { key, is_finish, outcome }
}
