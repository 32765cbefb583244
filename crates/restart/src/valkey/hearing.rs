//! What a leader hears on the bus, and from whom.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval};

use super::letter::Letter;
use super::members::{Members, Sender};
use super::outbox::{Outbox, ToOne};
use super::server::{Error, Listener};
use crate::hub::{Gang, Input, SILENT_MAX, Way, admit};
use crate::ticket::Key;
use crate::wire::{Down, Refusal, frame, parse};

/// How often it is looked for those who are not heard any more.
const SWEEP: Duration = Duration::from_secs(2);
/// How often it is looked whether pods that were not known are known now.
const RETRY: Duration = Duration::from_millis(100);
/// How many pods may wait for that. Those beyond are heard when they say it again.
const STRANGERS_MAX: usize = 4096;

/// The ear of one leader.
pub(super) struct Hearing {
    job: String,
    gang: Gang,
    key: Key,
    outbox: Arc<Outbox>,
    members: Members,
    /// Agents of pods that are not known, or not yet: what they said last, and when.
    strangers: HashMap<String, (Letter, Instant)>,
    /// What the gang is yet to hear. It outlives a connection that ends meanwhile.
    news: VecDeque<Input>,
}

impl Hearing {
    pub(super) fn new(job: &str, gang: Gang, key: Key, outbox: Arc<Outbox>) -> Self {
        Self {
            job: job.to_owned(),
            gang,
            key,
            outbox,
            members: Members::default(),
            strangers: HashMap::new(),
            news: VecDeque::new(),
        }
    }

    /// Takes what was said while nobody listened.
    pub(super) async fn catch_up(&mut self, reports: &[Vec<u8>]) {
        self.members.pardon(Instant::now());
        for report in reports {
            self.hear(report);
            self.gang.pass_on(&mut self.news).await;
        }
    }

    /// Listens, until the connection ends.
    pub(super) async fn run(&mut self, listener: &mut Listener) -> Result<(), Error> {
        let (mut sweeps, mut retries) = (interval(SWEEP), interval(RETRY));
        sweeps.set_missed_tick_behavior(MissedTickBehavior::Delay);
        retries.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.gang.pass_on(&mut self.news).await;
            tokio::select! {
                report = listener.next() => self.hear(&report?),
                _ = sweeps.tick() => self.sweep(),
                _ = retries.tick(), if !self.strangers.is_empty() => {
                    for (letter, heard) in std::mem::take(&mut self.strangers).into_values() {
                        self.welcome(letter, heard);
                    }
                }
            }
        }
    }

    fn hear(&mut self, report: &[u8]) {
        for link in self.outbox.closed() {
            self.members.close(link);
            self.news.push_back(Input::Lost { link });
        }
        let Some(letter) = parse::<Letter>(report) else {
            tracing::debug!(job = self.job, "there is garbage on the bus");
            return;
        };
        let now = Instant::now();
        match self.members.sender(&letter, now) {
            Sender::Known(link) => {
                self.news.push_back(Input::Heard { link, status: letter.status });
            }
            Sender::Past => {}
            Sender::New => self.welcome(letter, now),
        }
    }

    /// Lets somebody in, or not.
    fn welcome(&mut self, letter: Letter, heard: Instant) {
        let gang = |job: &str| (job == self.job).then(|| self.gang.clone());
        let seat = match admit(&self.key, &letter.hello, gang) {
            Ok((_, seat)) => seat,
            Err(Refusal::Pod) => {
                let pod = &letter.hello.pod;
                if self.strangers.len() < STRANGERS_MAX || self.strangers.contains_key(pod) {
                    self.strangers.insert(pod.clone(), (letter, heard));
                }
                return;
            }
            Err(refusal) => {
                tracing::debug!(pod = letter.hello.pod, %refusal, "an agent was not let in");
                self.outbox.refuse(letter.status.session, frame(&Down::Refused(refusal)));
                return;
            }
        };
        self.strangers.remove(&letter.hello.pod);
        let (link, session) = (self.gang.next_link(), letter.status.session);
        let replaced = self.members.enter(&letter, link, heard);
        let alone = Arc::new(ToOne { outbox: Arc::clone(&self.outbox), session, link });
        let way = Way { alone, is_on_air: true };
        self.news.push_back(Input::Connected { link, seat, way });
        self.news.push_back(Input::Heard { link, status: letter.status });
        self.news.extend(replaced.map(|link| Input::Lost { link }));
    }

    /// Parts with those who are not heard any more. What they said last stays, unless their pods
    /// are gone too.
    fn sweep(&mut self) {
        let now = Instant::now();
        let mut gone = Vec::new();
        for (link, pod) in self.members.silent(now, SILENT_MAX) {
            self.news.push_back(Input::Lost { link });
            if self.gang.seat(&pod).is_none() {
                gone.push(pod);
            }
        }
        let is_silent = |heard: Instant| now.saturating_duration_since(heard) > SILENT_MAX;
        gone.extend(
            self.strangers.extract_if(|_, (_, heard)| is_silent(*heard)).map(|(pod, _)| pod),
        );
        self.outbox.remove(gone);
    }
}
