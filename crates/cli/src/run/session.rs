//! Following a run until nothing can happen any more: what is heard goes into the model, what the
//! model says goes to the screen.

mod contact;
mod fading;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use anyhow::Result;
use futures::{StreamExt, stream::BoxStream};
use jiff::Timestamp;
use kube::{core::DynamicObject, runtime::watcher};
use lockstep_local::{embedded::Killer, observe::Change};
use serde_json::Value;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    task::JoinHandle,
    time::{Instant, MissedTickBehavior, interval, sleep_until},
};

use self::{
    contact::{Contact, Verdict},
    fading::Fading,
};
use super::{
    archive::Archive,
    followers::{Followers, Piece},
    model::{ContainerId, Model, Seen, State},
    screen::Screen,
    stop,
    view::{self, Frame},
    watches::{About, Heard},
};
use crate::{
    cluster::Cluster,
    exit::{Ending, Exit},
    refusal,
    signals::Signals,
};

/// How long a cluster has to answer when it is in doubt.
const DOUBT: Duration = Duration::from_secs(10);

/// How long a run that waits for something from outside does so.
const PATIENCE: Duration = Duration::from_secs(15);

/// How often the block is drawn anew, and how often those who read lines hear of progress.
const FRAME: Duration = Duration::from_millis(100);
const PROGRESS: Duration = Duration::from_secs(1);

/// How often people hear what an ending waits for.
const REMINDER: Duration = Duration::from_secs(5);

/// How long containers that were killed, or logs that do not end, are waited for.
const QUICK: Duration = Duration::from_secs(2);
const LOGS_SILENT: Duration = Duration::from_secs(10);

/// How many lines of each log are remembered.
const TAIL: usize = 10;

/// How many logs that cannot be read are told one by one.
const UNREADABLE_TOLD: usize = 3;

/// The last lines of each container.
pub(crate) type Tails = BTreeMap<ContainerId, VecDeque<String>>;

/// A run that is being followed.
pub(crate) struct Session {
    pub(crate) cluster: Cluster,
    pub(crate) model: Model,
    pub(crate) screen: Screen,
    /// Nothing when nobody wants logs.
    pub(crate) followers: Option<Followers>,
    /// What is kept for the report, if one is wanted.
    pub(crate) archive: Option<Archive>,
    pub(crate) tails: Tails,
    watches: BoxStream<'static, Vec<Heard>>,
    resized: Option<Signal>,
    block: Vec<String>,
    drawn_at: Option<Instant>,
    progress: BTreeMap<String, String>,
    contact: Contact,
    /// Whether something goes on that is no longer waited for.
    has_given_up: bool,
    /// What is good to have and cannot be watched, as far as that was told.
    told_unwatched: Vec<About>,
    unreadable: usize,
}

impl Session {
    /// Follows `model` through `watches`.
    pub(crate) fn new(
        cluster: Cluster,
        model: Model,
        screen: Screen,
        watches: BoxStream<'static, Vec<Heard>>,
    ) -> Self {
        let resized =
            if screen.is_live() { signal(SignalKind::window_change()).ok() } else { None };
        Self {
            cluster,
            model,
            screen,
            followers: None,
            archive: None,
            tails: Tails::new(),
            watches,
            resized,
            block: Vec::new(),
            drawn_at: None,
            progress: BTreeMap::new(),
            contact: Contact::default(),
            has_given_up: false,
            told_unwatched: Vec::new(),
            unreadable: 0,
        }
    }

    /// Follows until the run is over, and returns how it ended.
    ///
    /// # Errors
    /// When the cluster cannot be watched or stdout cannot be written.
    pub(crate) async fn follow(
        &mut self,
        signals: &mut Signals,
        deadline: Option<Instant>,
    ) -> Result<Exit> {
        let mut stalled: Option<Instant> = None;
        let mut patience = PATIENCE;
        let mut clock = self.clock();
        loop {
            match self.model.state() {
                State::Over(exit) => return Ok(exit),
                State::Going => stalled = None,
                state @ (State::Stalled | State::Doomed) => {
                    patience = if state == State::Doomed { QUICK } else { PATIENCE };
                    stalled.get_or_insert_with(Instant::now);
                }
            }
            let end = stalled.map(|since| since + patience);
            tokio::select! {
                heard = self.watches.next() => {
                    let has_changed = self.hear(heard.unwrap_or_default()).await?;
                    if has_changed && stalled.is_some() {
                        stalled = Some(Instant::now());
                    }
                }
                Some(piece) = next_piece(&mut self.followers) => self.print(piece)?,
                _ = clock.tick() => self.tick(),
                () = next_resize(&mut self.resized) => self.redraw(),
                () = signals.next() => return Ok(Exit::Interrupted),
                () = until(deadline) => return Ok(Exit::TimedOut),
                () = until(end) => return Ok(Exit::Failed),
            }
            if self.screen.is_unread() {
                self.screen.note("stdout is closed: nobody reads the logs, so the run ends");
                return Ok(Exit::Interrupted);
            }
            self.refresh();
        }
    }

    /// Ends what still runs, and goes on showing what it writes. Another signal kills it. What does
    /// not end is given up: nobody may be there to send a signal.
    pub(crate) async fn stop(&mut self, signals: &mut Signals, killer: Option<Killer>) {
        let cluster = self.cluster.clone();
        let requests = stop::requests(&self.model);
        self.model.begin_stop();
        let mut asking = Some(tokio::spawn(async move { requests.send(&cluster).await }));
        let mut clock = self.clock();
        let mut reminder = interval(REMINDER);
        reminder.reset();
        let mut limit = None;
        let mut fading = Fading::new();
        let mut look = interval(QUICK);
        while asking.is_some() || !self.model.has_stopped() {
            tokio::select! {
                heard = self.watches.next() => {
                    if self.hear(heard.unwrap_or_default()).await.is_err() {
                        return;
                    }
                }
                Some(piece) = next_piece(&mut self.followers) => drop(self.print(piece)),
                refused = answer(&mut asking) => {
                    asking = None;
                    refused.iter().for_each(|why| self.screen.note(why));
                }
                _ = clock.tick() => self.tick(),
                () = next_resize(&mut self.resized) => self.redraw(),
                _ = reminder.tick() => self.remind(),
                _ = look.tick() => if fading.is_over(&self.model, asking.is_some()) {
                    self.give_up();
                    return;
                },
                () = signals.next(), if limit.is_none() => match &killer {
                    Some(killer) => {
                        killer.kill_all();
                        limit = Some(Instant::now() + QUICK);
                    }
                    None => {
                        self.has_given_up = true;
                        return;
                    }
                },
                () = until(limit) => return,
            }
            self.refresh();
        }
    }

    /// Prints the last lines, which may still be on their way.
    ///
    /// # Errors
    /// When stdout cannot be written.
    pub(crate) async fn drain(&mut self) -> Result<()> {
        if let Some(followers) = &mut self.followers {
            followers.close();
        }
        let mut end = Instant::now() + LOGS_SILENT;
        loop {
            let piece = tokio::time::timeout_at(end, next_piece(&mut self.followers)).await;
            // What nobody ends may write for ever.
            if !self.has_given_up {
                end = Instant::now() + LOGS_SILENT;
            }
            match piece {
                Ok(Some(piece)) => self.print(piece)?,
                Ok(None) => return Ok(()),
                Err(_) => {
                    self.screen.note("the logs do not end; what comes now is not shown");
                    return Ok(());
                }
            }
        }
    }

    /// Shows how things stand a last time and leaves it there.
    pub(crate) fn settle(&mut self) {
        if self.screen.is_live() {
            self.redraw();
            self.screen.leave();
        } else {
            self.tell_progress();
        }
    }

    fn clock(&self) -> tokio::time::Interval {
        let mut clock = interval(if self.screen.is_live() { FRAME } else { PROGRESS });
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        clock.reset();
        clock
    }

    /// Takes note of changes; whether one was about a Job or pod.
    async fn hear(&mut self, heard: Vec<Heard>) -> Result<bool> {
        let mut has_changed = false;
        for (about, change) in heard {
            match change {
                Ok(change) => {
                    // That a list is asked for does not say that it comes.
                    let is_answer = !matches!(change, Change::Listing);
                    if is_answer && self.contact.heard(about) {
                        self.screen.note("the cluster answers again");
                    }
                    has_changed |= about != About::Event;
                    self.take(about, change)?;
                }
                Err(error) => self.miss(about, error).await?,
            }
        }
        Ok(has_changed)
    }

    fn take(&mut self, about: About, change: Change<DynamicObject>) -> Result<()> {
        let seen = match (about, change) {
            (_, Change::Listing | Change::Synced) => return Ok(()),
            (About::Job, Change::Gone(key)) => {
                self.model.job_gone(&key.namespace, &key.name, &key.uid);
                return Ok(());
            }
            (About::JobSet, Change::Gone(key)) => {
                self.model.set_gone(&key.namespace, &key.name, &key.uid);
                return Ok(());
            }
            (About::Pod, Change::Gone(key)) => {
                self.model.pod_gone(&key.namespace, &key.name, &key.uid);
                return Ok(());
            }
            (About::Workload, Change::Gone(key)) => {
                self.model.workload_gone(&key.uid);
                return Ok(());
            }
            (About::Event, Change::Gone(_)) => return Ok(()),
            (about, Change::Put(object)) => {
                let object = serde_json::to_value(&*object)?;
                let seen = match about {
                    About::JobSet => self.model.see_set(&object),
                    About::Job => self.model.see_job(&object),
                    About::Workload => self.model.see_workload(&object),
                    About::Pod => self.model.see_pod(&object),
                    About::Event => self.model.see_event(&object),
                };
                self.keep(about, object);
                seen
            }
        };
        self.act(seen);
        Ok(())
    }

    fn act(&mut self, seen: Seen) {
        for note in &seen.notes {
            if note.is_error || !self.screen.is_quiet() {
                self.screen.note(&note.text);
            }
        }
        if let Some(followers) = &mut self.followers {
            seen.logs.into_iter().for_each(|source| followers.begin(source));
        }
    }

    fn keep(&mut self, about: About, object: Value) {
        if let Some(archive) = &mut self.archive {
            archive.see(about, object, &self.model);
        }
    }

    /// Takes note of an attempt to watch that failed. Events are good to have, the rest is needed.
    async fn miss(&mut self, about: About, error: watcher::Error) -> Result<()> {
        let verdict = self.contact.missed(about);
        let why = refusal::innermost(&error);
        let is_lost = match verdict {
            Verdict::Again => false,
            Verdict::New => {
                let seconds = contact::PATIENCE.as_secs();
                self.screen
                    .note(&format!("the cluster does not answer, trying for {seconds}s: {why}"));
                false
            }
            Verdict::Doubtful => !self.answers().await,
            Verdict::Lost => true,
        };
        if about.is_extra() {
            // Where nothing can be watched, that is said already.
            let is_news =
                is_lost && self.contact.is_well() && !self.told_unwatched.contains(&about);
            if is_news {
                self.told_unwatched.push(about);
                let what = if about == About::Event { "events" } else { "Workloads" };
                self.screen.note(&format!("{what} cannot be watched: {why}"));
            }
            return Ok(());
        }
        if !is_lost {
            if verdict == Verdict::Doubtful {
                self.contact.answers(about);
            }
            return Ok(());
        }
        let mut message = format!("error: the cluster failed during the run: {why}");
        for line in self.model.what_stays() {
            message.push('\n');
            message.push_str(&line);
        }
        Err(Ending::error(Exit::Cluster, message))
    }

    /// Whether the cluster says anything at all.
    async fn answers(&self) -> bool {
        let answer = tokio::time::timeout(DOUBT, self.cluster.get("/version")).await;
        matches!(answer, Ok(Ok(_)))
    }

    /// Prints a piece of a log, and all that can be had without waiting.
    fn print(&mut self, piece: Piece) -> Result<()> {
        let mut next = Some(piece);
        while let Some(piece) = next.take() {
            match piece {
                Piece::Written(source, bytes) => {
                    remember(&mut self.tails, &source.container, &bytes);
                    if let Some(archive) = &mut self.archive {
                        archive.log(&source.container, &bytes)?;
                    }
                    self.screen.log(&source.label, source.worker, &bytes)?;
                }
                Piece::Unreadable(source, why) => {
                    self.unreadable += 1;
                    if self.unreadable <= UNREADABLE_TOLD {
                        let (pod, container) = (&source.container.pod, &source.container.name);
                        self.screen.note(&format!("no log of {pod}/{container}: {why}"));
                    } else if self.unreadable == UNREADABLE_TOLD + 1 {
                        self.screen.note("the logs of more containers cannot be read");
                    }
                }
            }
            next = self.followers.as_mut().and_then(Followers::ready);
        }
        Ok(())
    }

    fn tick(&mut self) {
        if self.screen.is_live() {
            self.redraw();
        } else {
            self.tell_progress();
        }
    }

    /// Draws the block again when something was printed over it.
    fn refresh(&mut self) {
        if !self.screen.is_live() || !self.screen.is_bare() {
            return;
        }
        match self.drawn_at {
            // What it says is still fresh; working it out for each line of a log is too much.
            Some(at) if at.elapsed() < FRAME => self.screen.draw(&self.block),
            _ => self.redraw(),
        }
    }

    fn redraw(&mut self) {
        let (width, height) = self.screen.size();
        let frame = Frame {
            // The last column is left free: what is written there may or may not begin a line.
            width: width.saturating_sub(1),
            height: (height / 2).max(3),
            paint: self.screen.paint(),
            now: Timestamp::now(),
        };
        self.block = view::block(&self.model, &frame);
        self.drawn_at = Some(Instant::now());
        self.screen.draw(&self.block);
    }

    /// Tells those who read lines how far the Jobs are, when that has changed.
    fn tell_progress(&mut self) {
        if self.screen.is_quiet() {
            return;
        }
        let sets = self.model.sets.values();
        let sets = sets.map(|set| (&set.uid, view::plain_set(&self.model, set)));
        let jobs = self.model.lone_jobs().map(|job| (&job.uid, view::plain(&self.model, job)));
        for (uid, line) in sets.chain(jobs) {
            if self.progress.get(uid) != Some(&line) {
                self.screen.note(&line);
                self.progress.insert(uid.clone(), line);
            }
        }
    }

    /// Leaves what does not end.
    fn give_up(&mut self) {
        let names = self.going();
        if !names.is_empty() {
            self.has_given_up = true;
            self.screen.note(&format!("{} did not end; not waiting any longer", some_of(&names)));
        }
    }

    fn going(&self) -> Vec<String> {
        self.model.running().map(|pod| format!("pod/{}", pod.name)).collect()
    }

    /// Says what an ending waits for.
    fn remind(&mut self) {
        let names = self.going();
        if !names.is_empty() {
            self.screen.note(&format!("still waiting for {} to end", some_of(&names)));
        }
    }
}

/// The first few of many names.
pub(crate) fn some_of(names: &[String]) -> String {
    const SHOWN: usize = 5;
    match names.len() {
        0..=SHOWN => names.join(", "),
        count => format!("{} and {} more", names[..SHOWN].join(", "), count - SHOWN),
    }
}

/// Keeps the last lines of a log, as far as they can be told apart.
fn remember(tails: &mut Tails, container: &ContainerId, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> =
        text.lines().rev().filter(|line| !line.trim().is_empty()).take(TAIL).collect();
    if lines.is_empty() {
        return;
    }
    let tail = tails.entry(container.clone()).or_default();
    tail.extend(lines.into_iter().rev().map(ToOwned::to_owned));
    tail.drain(..tail.len().saturating_sub(TAIL));
}

async fn next_piece(followers: &mut Option<Followers>) -> Option<Piece> {
    followers.as_mut()?.next().await
}

async fn answer(asking: &mut Option<JoinHandle<Vec<String>>>) -> Vec<String> {
    match asking {
        Some(asking) => asking.await.unwrap_or_default(),
        None => std::future::pending().await,
    }
}

async fn next_resize(resized: &mut Option<Signal>) {
    match resized {
        Some(resized) => _ = resized.recv().await,
        None => std::future::pending().await,
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
