//! What is known of the Workloads of a run: while a job waits in a queue, its Workload says why.

#[cfg(test)]
mod tests;

use lockstep_api::reasons::kueue::{
    quota_reserved::PENDING_EVALUATION,
    workload::{ADMITTED, EVICTED, REQUEUED},
};
use serde_json::Value;

use super::{Model, Name, Seen, fates::Fate, is_same};
use crate::{
    queueing::{
        self,
        workload::{State, Workload},
    },
    run::{job::Job, jobset::JobSet},
};

/// Of so many jobs that wait it is told when only the numbers change; where more wait, each of them
/// that starts changes the place of all others.
const NUMBERS_TOLD: usize = 10;

/// What a Workload is of: whether that is a JobSet, and which.
pub(super) type Of = (bool, Name);

/// How a queue keeps a job from running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// In a word.
    pub(crate) word: &'static str,
    /// In a sentence about it.
    pub(crate) words: String,
}

/// A job as queues see it.
#[derive(Clone, Copy, Debug)]
struct Queued<'a> {
    workload: Option<&'a Workload>,
    /// The LocalQueue it names.
    queue: Option<&'a str>,
    is_suspended: bool,
}

impl Model {
    /// Takes note of a Workload as it is now.
    pub(crate) fn see_workload(&mut self, object: &Value) -> Seen {
        let mut seen = Seen::default();
        let workload = Workload::read(object);
        let Some(of) = self.whose(&workload) else { return seen };
        let known = self.workloads.get(&of).filter(|known| known.uid == workload.uid);
        // One that has ended may lie beside the one of now.
        if known.is_none()
            && workload.state() == State::Finished
            && self.workloads.contains_key(&of)
        {
            return seen;
        }
        if !self.is_stopping {
            tell_what_happened(known, &workload, &mut seen);
            self.tell_wait(&of, &workload, &mut seen);
        }
        self.workload_names.insert((workload.namespace.clone(), workload.name.clone()));
        self.workloads.insert(of, workload);
        seen
    }

    /// Takes note of a Workload that no longer exists. Its job gets another one, if it goes on.
    pub(crate) fn workload_gone(&mut self, uid: &str) {
        self.workloads.retain(|_, known| known.uid != uid);
    }

    /// Whether a Workload is of a job of this run.
    pub(crate) fn has_workload(&self, name: &Name) -> bool {
        self.workload_names.contains(name)
    }

    /// The Workload of a Job.
    pub(crate) fn workload_of_job(&self, job: &Job) -> Option<&Workload> {
        self.workload(false, (job.namespace.clone(), job.name.clone()))
    }

    /// The Workload of a JobSet.
    pub(crate) fn workload_of_set(&self, set: &JobSet) -> Option<&Workload> {
        self.workload(true, (set.namespace.clone(), set.name.clone()))
    }

    fn workload(&self, is_set: bool, name: Name) -> Option<&Workload> {
        // Most runs have no queues, and how things stand is asked all the time.
        if self.workloads.is_empty() {
            return None;
        }
        self.workloads.get(&(is_set, name))
    }

    fn queued_job<'a>(&'a self, job: &'a Job) -> Queued<'a> {
        Queued {
            workload: self.workload_of_job(job),
            queue: job.queue.as_deref(),
            is_suspended: job.is_suspended && job.manager.is_none(),
        }
    }

    fn queued_set<'a>(&'a self, set: &'a JobSet) -> Queued<'a> {
        Queued {
            workload: self.workload_of_set(set),
            queue: set.queue.as_deref(),
            is_suspended: set.is_suspended() && set.manager().is_none(),
        }
    }

    /// What keeps a Job from ever having pods. That it is suspended is no hindrance while a queue
    /// has it: it is started when its turn has come.
    pub(super) fn hindrance_of_job(&self, job: &Job) -> Option<String> {
        job.hindrance().filter(|_| !self.queued_job(job).is_held())
    }

    /// The same of a JobSet.
    pub(super) fn hindrance_of_set(&self, set: &JobSet) -> Option<String> {
        set.hindrance().filter(|_| !self.queued_set(set).is_held())
    }

    /// What a Job waits for in its queue.
    pub(super) fn why_job_queued(&self, job: &Job) -> Option<String> {
        self.queued_job(job).why().filter(|_| !job.has_ended() && !self.is_stopping)
    }

    /// What a JobSet waits for in its queue.
    pub(super) fn why_set_queued(&self, set: &JobSet) -> Option<String> {
        self.queued_set(set).why().filter(|_| !set.has_ended() && !self.is_stopping)
    }

    /// How a queue keeps a Job from running, in a word and without the reason; nothing when it does
    /// not.
    pub(crate) fn job_place(&self, job: &Job) -> Option<Place> {
        self.queued_job(job).place().filter(|_| !job.has_ended() && !self.is_stopping)
    }

    /// The same of a JobSet.
    pub(crate) fn set_place(&self, set: &JobSet) -> Option<Place> {
        self.queued_set(set).place().filter(|_| !set.has_ended() && !self.is_stopping)
    }

    /// What becomes of a Job by its Workload, where that decides.
    pub(super) fn fate_of_queued_job(&self, job: &Job) -> Option<Fate> {
        let has_pods = || job.active > 0 || self.pods_of(job).any(|pod| !pod.has_ended());
        self.queued_job(job).fate(self.is_private, has_pods)
    }

    /// What becomes of a JobSet by its Workload, where that decides.
    pub(super) fn fate_of_queued_set(&self, set: &JobSet) -> Option<Fate> {
        let has_pods = || {
            let mut jobs = self.jobs_of(set).filter(|job| !job.is_gone);
            jobs.any(|job| job.active > 0 || self.pods_of(job).any(|pod| !pod.has_ended()))
        };
        self.queued_set(set).fate(self.is_private, has_pods)
    }

    /// Whether pods that are not ready in time give way and are tried again: what waits for a place
    /// goes on then, whatever the pods say.
    pub(super) fn is_timed(workload: Option<&Workload>) -> bool {
        let state = workload.map(Workload::state);
        matches!(state, Some(State::Starting | State::Recovering))
    }

    /// What was told of pods that did not get ready, of the Jobs that a Workload is for.
    pub(crate) fn troubles_before(&self, workload: &Workload) -> Vec<&str> {
        let is_its = |job: &Job| {
            let owner = workload.owner.as_ref().filter(|_| job.namespace == workload.namespace);
            owner.is_some_and(|owner| match owner.kind.as_str() {
                "JobSet" => job.member.as_ref().is_some_and(|member| member.set == owner.name),
                _ => job.name == owner.name,
            })
        };
        let jobs = self.jobs.iter().filter(|(_, job)| is_its(job));
        let told = jobs.filter_map(|(name, _)| self.told_of_jobs.get(name)).flatten();
        let mut told: Vec<&str> = told.map(String::as_str).collect();
        told.sort_unstable();
        told.dedup();
        told
    }

    /// The job of this run that a Workload is of.
    fn whose(&self, workload: &Workload) -> Option<Of> {
        let owner = workload.owner.as_ref()?;
        let name = (workload.namespace.clone(), owner.name.clone());
        let (is_set, uid) = match owner.kind.as_str() {
            "JobSet" => (true, &self.sets.get(&name)?.uid),
            "Job" => (false, &self.jobs.get(&name)?.uid),
            _ => return None,
        };
        is_same(uid, &owner.uid).then_some((is_set, name))
    }

    /// Tells why a job waits in its queue, once for each reason, and again when its numbers change.
    fn tell_wait(&mut self, of: &Of, workload: &Workload, seen: &mut Seen) {
        if workload.state() != State::Pending {
            self.told_of_queues.remove(of);
            return;
        }
        let (reason, words) = (workload.waiting().reason, pending_words(workload));
        // Who has not been looked at yet, or not again, is about to be.
        if reason == PENDING_EVALUATION {
            return;
        }
        if let Some((told, known)) = self.told_of_queues.get(of) {
            let is_crowd = self.told_of_queues.len() > NUMBERS_TOLD;
            if *known == words || (is_crowd && *told == reason) {
                return;
            }
        }
        let is_wrong = workload.waits_in_vain();
        seen.tell(is_wrong, format!("{} {words}", workload.what()));
        let change = match self.is_private {
            true => workload.remedy_in_files(),
            false => workload.waiting().change,
        };
        if let Some(change) = change.filter(|_| is_wrong) {
            seen.tell(is_wrong, format!("  to go on: {change}"));
        }
        self.told_of_queues.insert(of.clone(), (reason, words));
    }
}

impl Queued<'_> {
    /// Whether a queue decides when it starts.
    fn is_held(&self) -> bool {
        self.is_suspended && (self.workload.is_some() || self.queue.is_some())
    }

    fn why(&self) -> Option<String> {
        let Some(workload) = self.workload else {
            let queue = self.queue.filter(|_| self.is_suspended)?;
            return Some(format!("is to wait in LocalQueue {queue}; its Workload is not made yet"));
        };
        match workload.state() {
            State::Pending => Some(pending_words(workload)),
            State::Reserved => {
                let said = workload.conditions.get(ADMITTED).filter(|said| !said.is_true);
                let why = said.map(|said| format!(": {}", said.words())).unwrap_or_default();
                Some(format!("has quota and is not admitted yet{why}"))
            }
            State::Stopping | State::Deactivated => Some(stopped_words(workload)),
            State::Finished if self.is_suspended => {
                let said = workload.is("Finished").map(|said| said.words()).unwrap_or_default();
                Some(format!("is not started any more: its Workload has finished: {said}"))
            }
            _ => None,
        }
    }

    fn place(&self) -> Option<Place> {
        let Some(workload) = self.workload else {
            let queue = self.queue.filter(|_| self.is_suspended)?;
            return Some(Place {
                word: "Queued",
                words: format!("is to wait in LocalQueue {queue}"),
            });
        };
        let (word, words) = match workload.state() {
            State::Pending => ("Queued", format!("waits in LocalQueue {}", workload.queue)),
            State::Stopping => ("Evicted", "is evicted and being stopped".to_owned()),
            State::Deactivated => ("Inactive", "is deactivated".to_owned()),
            _ => return None,
        };
        Some(Place { word, words })
    }

    fn fate(&self, is_private: bool, has_pods: impl Fn() -> bool) -> Option<Fate> {
        let Some(workload) = self.workload else {
            // It comes soon, if it comes.
            return (self.is_held() && is_private).then_some(Fate::Stalled);
        };
        match workload.state() {
            // Nobody makes it active again for us, and whoever does it later can run it again.
            State::Deactivated if has_pods() => Some(Fate::Going),
            State::Deactivated => Some(Fate::Failed),
            State::Pending if is_private && workload.waits_in_vain() => Some(Fate::Stalled),
            State::Pending | State::Reserved | State::Stopping => Some(Fate::Going),
            // That the job has ended is told on another watch.
            State::Finished => self.is_suspended.then_some(Fate::Stalled),
            _ => self.is_suspended.then_some(Fate::Going),
        }
    }
}

/// `waits in LocalQueue team: NotEnoughQuota: ...`.
fn pending_words(workload: &Workload) -> String {
    let why = workload.waiting();
    let why = queueing::words(&why.reason, &why.message);
    format!("waits in LocalQueue {}: {why}", workload.queue)
}

/// What ended it before its time.
fn stopped_words(workload: &Workload) -> String {
    let what = match workload.state() {
        State::Deactivated => "is deactivated",
        _ => "is evicted and being stopped",
    };
    match workload.evicted() {
        Some(said) => format!("{what}: {}", said.words()),
        None => what.to_owned(),
    }
}

/// Tells of admissions, evictions, returns to the queue and deactivation, each once.
fn tell_what_happened(known: Option<&Workload>, now: &Workload, seen: &mut Seen) {
    let what = now.what();
    let is_news = |kind: &str| {
        let said = now.is(kind)?;
        let before = known.and_then(|known| known.is(kind));
        let is_same =
            before.is_some_and(|before| before.since == said.since && before.reason == said.reason);
        (!is_same).then_some(said)
    };
    if let Some(said) = is_news(EVICTED).filter(|_| now.is_active) {
        let at = said.since.map(|at| format!(" at {at}")).unwrap_or_default();
        let again = now.retry_at.map(|at| format!("; it is tried again at {at}"));
        let again = again.unwrap_or_default();
        seen.tell(false, format!("{what} was evicted{at}: {}{again}", said.words()));
    }
    if let Some(said) = is_news(REQUEUED).filter(|_| known.is_some()) {
        seen.tell(false, format!("{what} is back in LocalQueue {}: {}", now.queue, said.words()));
    }
    if is_news(ADMITTED).is_some() && now.is(EVICTED).is_none() {
        seen.tell(false, format!("{what} was admitted by ClusterQueue {}", now.cluster_queue));
    }
    let is_off = |workload: &Workload| !workload.is_active && workload.evicted().is_some();
    if is_off(now) && !known.is_some_and(is_off) {
        let often = now.evictions_words().map(|often| format!("; evicted {often}"));
        let why = now.evicted().map(|said| format!(": {}", said.words())).unwrap_or_default();
        seen.tell(true, format!("{what} is deactivated{why}{}", often.unwrap_or_default()));
    }
}
