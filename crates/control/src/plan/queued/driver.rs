//! The driver: many jobs, what is due, and what became of the steps.

mod hear;
mod results;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use lockstep_api::kueue::Workload;

use super::known::Known;
use super::waiting::Need;
use super::{JobKey, Object, Plan, Settings, Step, Waiting, plan};
use crate::engine::{self, Failure, Stale, Turns, after};
use crate::plan::Key;

/// All jobs that may wait in queues, and when each wants a pass.
///
/// The shell tells what its watches bring, in any order: jobs, Workloads, ResourceFlavors, classes
/// and namespaces. Objects are to be told as the API has them, not filled in: patches are made for
/// them. A watch begins, and begins anew when it broke off, with a listing; for Workloads the
/// beginning is told too ([`QueuedJobs::workloads_listing`]). Once all kinds have been listed it
/// asks [`QueuedJobs::next`] for passes, carries out the steps of each, reports what became of
/// them, and says [`QueuedJobs::done`]. Passes over different jobs may run at the same time; a job
/// is in one pass at a time. When there is nothing to do the shell sleeps until
/// [`QueuedJobs::next_due`], or until something is seen.
#[derive(Clone, Debug)]
pub struct QueuedJobs {
    settings: Settings,
    known: Known,
    entries: BTreeMap<JobKey, Entry>,
    /// Jobs that wait for something that will be seen.
    needs: BTreeMap<Need, BTreeSet<JobKey>>,
    queue: Turns<JobKey>,
    /// Jobs in a pass.
    running: BTreeSet<JobKey>,
    is_listed: Listed,
    /// Workloads that no watch has told of so far, only the answer to a request, and the listing
    /// that was the last by then.
    answered: BTreeMap<Key, (String, u64)>,
    workloads_listing: u64,
}

/// What has been listed at least once.
#[derive(Clone, Copy, Debug, Default)]
struct Listed {
    jobs: bool,
    jobsets: bool,
    workloads: bool,
    flavors: bool,
    classes: bool,
    pod_classes: bool,
    namespaces: bool,
}

/// One job.
#[derive(Clone, Debug, Default)]
struct Entry {
    /// Moves with everything that is seen of the job and its Workloads.
    revision: u64,
    /// The pass that is running.
    pass: Option<engine::Pass>,
    stale: Option<Stale>,
    waiting: Option<Waiting>,
    /// How many of its Workloads have vanished since the job itself was last heard of.
    vanished: u32,
}

impl QueuedJobs {
    /// A driver that knows of no jobs.
    pub fn new(settings: Settings) -> Self {
        Self {
            queue: Turns::new(settings.api_backoff_base, settings.api_backoff_max),
            known: Known::default(),
            entries: BTreeMap::new(),
            needs: BTreeMap::new(),
            running: BTreeSet::new(),
            is_listed: Listed::default(),
            answered: BTreeMap::new(),
            workloads_listing: 0,
            settings,
        }
    }

    /// The next pass to run, if one is due. It has begun: carry it out, then say
    /// [`QueuedJobs::done`].
    pub fn next(&mut self, now: Timestamp) -> Option<(JobKey, Plan)> {
        if !self.is_ready() {
            return None;
        }
        loop {
            let key = self.queue.take_due(now)?;
            let Some(entry) = self.entries.get_mut(&key) else {
                self.queue.abandon(&key);
                continue;
            };
            let plan = match entry.stale_until(now) {
                Some(until) => Plan::wait_until(Waiting::CatchingUp, until),
                None => plan(&self.known, &self.settings, &key, now),
            };
            let plan = entry.tell_news(plan);
            let needed = entry.waiting.as_ref().and_then(Waiting::need);
            entry.begin(&plan);
            let needs = entry.waiting.as_ref().and_then(Waiting::need);
            self.note_need(&key, needed, needs);
            self.running.insert(key.clone());
            return Some((key, plan));
        }
    }

    /// Ends the pass over a job.
    pub fn done(&mut self, key: &JobKey, now: Timestamp) {
        self.running.remove(key);
        let ended = self.entries.get_mut(key).and_then(|entry| entry.pass.take());
        let Some(pass) = ended else {
            self.queue.abandon(key);
            return;
        };
        let revision = self.entries.get(key).map_or(0, |entry| entry.revision);
        let outdated = self.settings.api_backoff_max.min(OUTDATED);
        self.queue.end(key, &pass, revision, outdated, now);
        self.drop_if_gone(key);
    }

    /// What a pass over a job would do now.
    #[cfg(test)]
    pub(super) fn replan(&self, key: &JobKey, now: Timestamp) -> Plan {
        plan(&self.known, &self.settings, key, now)
    }

    /// When the shell should ask [`QueuedJobs::next`] again.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.queue.next_due().filter(|_| self.is_ready())
    }

    /// Why a job did not move in its last pass; nothing if it did.
    pub fn waiting(&self, key: &JobKey) -> Option<&Waiting> {
        self.entries.get(key)?.waiting.as_ref()
    }

    /// What is known of a job.
    pub fn job(&self, key: &JobKey) -> Option<&Object> {
        self.known.job(key)
    }

    /// What is known of a Workload.
    pub fn workload(&self, key: &Key) -> Option<&Workload> {
        self.known.workload(key)
    }

    /// The Workloads of a job, by their names; there is more than one only for a moment.
    pub fn workloads_of(&self, key: &JobKey) -> impl Iterator<Item = &Workload> {
        self.known.workloads_of(key)
    }

    /// The jobs that are known.
    pub fn keys(&self) -> impl Iterator<Item = &JobKey> {
        self.entries.keys()
    }

    /// How it was set up.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How many jobs wait for a pass.
    pub fn queue_len(&self) -> usize {
        self.queue.len()
    }

    /// Before all is known that there is, nothing can be decided.
    fn is_ready(&self) -> bool {
        let listed = self.is_listed;
        let has_jobs = listed.jobs && (listed.jobsets || !self.settings.jobsets);
        let has_queues = listed.workloads && listed.flavors && listed.classes;
        has_jobs && has_queues && listed.pod_classes && listed.namespaces
    }

    /// A Workload of a job is gone. If that happens again and again, and nothing is heard of the
    /// job, the job is most likely gone too, and its Workloads with it: to make the next at once
    /// would go on for as long as the news takes.
    fn lose_workload(&mut self, job: JobKey, now: Timestamp) {
        let Settings { api_backoff_base, api_backoff_max, .. } = self.settings;
        self.touch(job.clone(), now);
        let Some(entry) = self.entries.get_mut(&job) else { return };
        if let Some(doublings) = entry.vanished.checked_sub(1) {
            let delay = engine::delay(api_backoff_base, api_backoff_max, doublings);
            entry.stale = Some(Stale { version: entry.revision, until: after(now, delay) });
        }
        entry.vanished = entry.vanished.saturating_add(1);
        self.drop_if_gone(&job);
    }

    /// Something of a job has been seen.
    fn touch(&mut self, key: JobKey, now: Timestamp) {
        self.entries.entry(key.clone()).or_default().revision += 1;
        self.queue.add(key, now);
    }

    fn wake(&mut self, keys: impl IntoIterator<Item = JobKey>, now: Timestamp) {
        for key in keys {
            if self.entries.contains_key(&key) {
                self.queue.add(key, now);
            }
        }
    }

    /// What some jobs waited for is there.
    fn met(&mut self, need: &Need, now: Timestamp) {
        let jobs = self.needs.get(need).cloned().unwrap_or_default();
        self.wake(jobs, now);
    }

    fn note_need(&mut self, key: &JobKey, needed: Option<Need>, needs: Option<Need>) {
        if needed == needs {
            return;
        }
        if let Some(needed) = needed
            && let Some(jobs) = self.needs.get_mut(&needed)
        {
            jobs.remove(key);
            if jobs.is_empty() {
                self.needs.remove(&needed);
            }
        }
        if let Some(needs) = needs {
            self.needs.entry(needs).or_default().insert(key.clone());
        }
    }

    /// Forgets a job of which nothing is left.
    fn drop_if_gone(&mut self, key: &JobKey) {
        let is_there =
            self.known.job(key).is_some() || self.known.workloads_of(key).next().is_some();
        let Some(entry) = self.entries.get(key).filter(|entry| !is_there && entry.pass.is_none())
        else {
            return;
        };
        let needed = entry.waiting.as_ref().and_then(Waiting::need);
        self.note_need(key, needed, None);
        self.entries.remove(key);
        self.queue.remove(key);
    }

    /// Takes in a version of a Workload.
    fn see_workload(&mut self, workload: Arc<Workload>, now: Timestamp) {
        let key = Key::of(&workload.metadata);
        if let Some(concerned) = self.known.workload_seen(workload) {
            for job in concerned {
                self.touch(job, now);
            }
            self.met(&Need::Workload(key), now);
        }
    }
}

/// How long to wait for news of an object that was not what it was seen as.
const OUTDATED: Duration = Duration::from_secs(1);

impl Entry {
    fn stale_until(&mut self, now: Timestamp) -> Option<Timestamp> {
        let until = self.stale?.holds(self.revision, now);
        self.stale = self.stale.filter(|_| until.is_some());
        until
    }

    /// The plan, with an event if the job waits for something that users should see to, and that is
    /// news.
    fn tell_news(&self, mut plan: Plan) -> Plan {
        if self.waiting != plan.waiting
            && let Some(event) = plan.waiting.as_ref().and_then(Waiting::event)
        {
            plan.steps.push(Step::Emit(event));
        }
        plan
    }

    fn begin(&mut self, plan: &Plan) {
        // Whoever only waits for news of what it has done itself still waits for what it did.
        let only_looks = plan.waiting == Some(Waiting::CatchingUp);
        if !only_looks {
            self.waiting = plan.waiting.clone();
        }
        self.pass = Some(engine::Pass {
            version: self.revision,
            revision: self.revision,
            next: plan.next,
            wants_change: plan.steps.iter().any(|step| !matches!(step, Step::Emit(_))),
            only_looks,
            failure: None,
            gone: BTreeSet::new(),
        });
    }

    fn fail(&mut self, failure: Failure) {
        if let Some(pass) = &mut self.pass {
            pass.fail(failure);
        }
    }
}
