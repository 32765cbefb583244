//! The driver: many JobSets, what is due, and what became of the steps.

mod results;
pub(super) mod route;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::{api::batch::v1::Job, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use lockstep_api::jobset::{JobSet, names};

use super::in_place::Gang;
use super::{Event, Options, Plan, Step, View, Waiting, plan};
use crate::engine::{self, Failure, Stale, Turns};
use crate::plan::Key;
use route::Routes;

/// All JobSets of a cluster and when each wants a pass.
///
/// The shell tells what its watches bring. A watch begins, and begins anew when it broke off, with
/// a listing: [`JobSets::jobs_listing`], [`JobSets::job_seen`] for each, [`JobSets::job_gone`] for
/// each that was there before and no longer is, [`JobSets::jobs_listed`]; the same for Services and
/// for the sets themselves. Once all three have been listed it asks [`JobSets::next`] for passes,
/// carries out the steps of each, reports what became of them, and says [`JobSets::done`]. Passes
/// over different sets may run at the same time; a set is in one pass at a time. When there is
/// nothing to do the shell sleeps until [`JobSets::next_due`], or until something is seen.
#[derive(Clone, Debug)]
pub struct JobSets {
    options: Options,
    entries: BTreeMap<Key, Entry>,
    queue: Turns<Key>,
    routes: Routes,
    is_listed: Listed,
}

/// What has been listed at least once.
#[derive(Clone, Copy, Debug, Default)]
struct Listed {
    jobsets: bool,
    jobs: bool,
    services: bool,
}

/// One JobSet.
#[derive(Clone, Debug)]
struct Entry {
    view: View,
    /// The pass that is running.
    pass: Option<Pass>,
    stale: Option<Stale>,
    waiting: Option<Waiting>,
}

/// What happens in a pass.
#[derive(Clone, Debug)]
struct Pass {
    course: engine::Pass,
    /// Whether it writes what JobSet does not have.
    writes_beyond: bool,
}

/// How a pass ended, for the label `result` of the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All of it was done.
    Success,
    /// All of it was done, and there will be more at a known time.
    SuccessForNow,
    /// Something could not be done; it is tried again.
    Error,
}

impl JobSets {
    /// A driver that knows of no sets.
    pub fn new(options: Options) -> Self {
        Self {
            queue: Turns::new(options.api_backoff_base, options.api_backoff_max),
            entries: BTreeMap::new(),
            routes: Routes::default(),
            is_listed: Listed::default(),
            options,
        }
    }

    /// All sets that there are have been told.
    pub fn jobsets_listed(&mut self) {
        self.is_listed.jobsets = true;
    }

    /// Notes a version of a set.
    pub fn jobset_seen(&mut self, jobset: &JobSet, now: Timestamp) {
        let key = Key::of(&jobset.metadata);
        let uid = jobset.metadata.uid.as_deref().unwrap_or_default();
        if let Some(entry) = self.entries.get_mut(&key) {
            if entry.view.uid() == uid {
                if entry.view.jobset_seen(jobset.clone()) {
                    self.queue.add(key, now);
                }
                return;
            }
            if version(&jobset.metadata) < version(&entry.view.jobset().metadata) {
                return;
            }
            self.drop_jobset(&key);
        }
        let mut view = View::new(jobset.clone(), self.options.gates);
        for job in self.routes.jobs_of(uid).filter(|job| is_beside(job, &key)) {
            view.job_seen(Arc::clone(job));
        }
        self.routes.set_known(uid, &key);
        self.entries.insert(key.clone(), Entry { view, pass: None, stale: None, waiting: None });
        self.queue.add(key, now);
    }

    /// Notes that a set is gone.
    pub fn jobset_gone(&mut self, key: &Key, uid: &str) {
        if self.entries.get(key).is_some_and(|entry| entry.view.uid() == uid) {
            self.drop_jobset(key);
        }
    }

    /// A listing of all Jobs begins.
    pub fn jobs_listing(&mut self) {
        self.routes.jobs_listing();
    }

    /// The listing of all Jobs has ended: what was neither seen nor made since it began is gone.
    pub fn jobs_listed(&mut self, now: Timestamp) {
        self.is_listed.jobs = true;
        for (key, uid) in self.routes.jobs_listed() {
            self.job_gone(&key, &uid, now);
        }
    }

    /// Notes a version of a Job. Those that belong to no set are nobody's business here.
    pub fn job_seen(&mut self, job: &Arc<Job>, now: Timestamp) {
        self.routes.told(job.metadata.uid.as_deref().unwrap_or_default());
        self.see_job(job, now);
    }

    /// Notes that a Job is gone.
    pub fn job_gone(&mut self, key: &Key, uid: &str, now: Timestamp) {
        let Some(owner) = self.routes.forget_job(uid) else { return };
        let Some(set) = self.routes.set_of(&owner).cloned() else { return };
        let Some(entry) = self.entries.get_mut(&set) else { return };
        if let Some(pass) = &mut entry.pass {
            pass.course.gone.insert(uid.to_owned());
        }
        if entry.view.job_gone(&key.name, uid, now) {
            self.queue.add(set, now);
        }
    }

    /// Notes what is known of the workers of a set that restarts in place.
    pub fn gang_seen(&mut self, key: &Key, uid: &str, gang: Arc<Gang>, now: Timestamp) {
        let entry = self.entries.get_mut(key).filter(|entry| entry.view.uid() == uid);
        if entry.is_some_and(|entry| entry.view.gang_seen(gang)) {
            self.queue.add(key.clone(), now);
        }
    }

    /// Somebody else may have led the workers of all sets: what was known of them is old.
    pub fn gangs_lost(&mut self) {
        self.entries.values_mut().for_each(|entry| entry.view.gang_lost());
    }

    /// A listing of all Services begins.
    pub fn services_listing(&mut self) {
        self.routes.services_listing();
    }

    /// The listing of all Services has ended: what was neither seen nor made since it began is
    /// gone.
    pub fn services_listed(&mut self, now: Timestamp) {
        self.is_listed.services = true;
        for (key, uid) in self.routes.services_listed() {
            self.service_gone(&key, &uid, now);
        }
    }

    /// Notes that a Service is there.
    pub fn service_seen(&mut self, meta: &ObjectMeta) {
        self.routes.service_seen(meta);
    }

    /// Notes that a Service is gone: a set that needs it makes another.
    pub fn service_gone(&mut self, key: &Key, uid: &str, now: Timestamp) {
        let was_known = self.routes.service_gone(key, uid);
        let first = Key { namespace: key.namespace.clone(), name: String::new() };
        let sets = self.entries.range(first..);
        let near = sets.take_while(|(set, _)| set.namespace == key.namespace);
        let concerned = near.filter(|(_, entry)| subdomain(&entry.view) == key.name);
        let concerned: Vec<Key> = concerned.map(|(set, _)| set.clone()).collect();
        for set in concerned {
            if let Some(pass) = self.entries.get_mut(&set).and_then(|entry| entry.pass.as_mut()) {
                // Its creation may not have been answered yet.
                pass.course.gone.insert(uid.to_owned());
            }
            if was_known {
                self.queue.add(set, now);
            }
        }
    }

    /// The next pass to run, if one is due. It has begun: carry it out, then say
    /// [`JobSets::done`].
    pub fn next(&mut self, now: Timestamp) -> Option<(Key, Plan)> {
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
                Some(until) => Plan { next: Some(until), ..Plan::wait(Waiting::CatchingUp) },
                None => {
                    let service = subdomain(&entry.view);
                    let has_service = self.routes.has_service(&key.namespace, service);
                    entry.view.service_seen(has_service);
                    let plan = plan(&entry.view, &self.options, now);
                    entry.tell_invalid(plan)
                }
            };
            entry.begin(&plan);
            return Some((key, plan));
        }
    }

    /// Ends the pass over a set.
    pub fn done(&mut self, key: &Key, now: Timestamp) -> Option<Ended> {
        let entry = self.entries.get_mut(key);
        let ended = entry.and_then(|entry| {
            let is_invalid = matches!(entry.waiting, Some(Waiting::Invalid(_)));
            Some((entry.pass.take()?, entry.view.revision(), is_invalid))
        });
        let Some((Pass { course, .. }, revision, is_invalid)) = ended else {
            self.queue.abandon(key);
            return None;
        };
        let outdated = self.options.api_backoff_max.min(OUTDATED);
        self.queue.end(key, &course, revision, outdated, now);
        Some(match (course.failure, course.next) {
            (Some(Failure::Error), _) => Ended::Error,
            _ if is_invalid => Ended::Error,
            (_, Some(_)) => Ended::SuccessForNow,
            (_, None) => Ended::Success,
        })
    }

    /// When the shell should ask [`JobSets::next`] again.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.queue.next_due().filter(|_| self.is_ready())
    }

    /// Why a set did not move in its last pass; nothing if it did.
    pub fn waiting(&self, key: &Key) -> Option<&Waiting> {
        self.entries.get(key)?.waiting.as_ref()
    }

    /// What is known of a set.
    pub fn view(&self, key: &Key) -> Option<&View> {
        self.entries.get(key).map(|entry| &entry.view)
    }

    /// The sets that are known.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.entries.keys()
    }

    /// How it was set up.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// How many sets wait for a pass.
    pub fn queue_len(&self) -> usize {
        self.queue.len()
    }

    /// Before all is known that there is, nothing can be decided.
    fn is_ready(&self) -> bool {
        self.is_listed.jobsets && self.is_listed.jobs && self.is_listed.services
    }

    fn see_job(&mut self, job: &Arc<Job>, now: Timestamp) {
        let owner = route::owner(job).map(str::to_owned);
        // A Job that has changed hands is gone from where it was.
        let uid = job.metadata.uid.as_deref().unwrap_or_default();
        if self.routes.owner_of(uid).is_some_and(|known| Some(known) != owner.as_deref()) {
            self.job_gone(&Key::of(&job.metadata), uid, now);
        }
        let Some(owner) = owner else { return };
        if !self.routes.job_seen(&owner, job) {
            return;
        }
        let Some(set) = self.routes.set_of(&owner).filter(|set| is_beside(job, set)) else {
            return;
        };
        let set = set.clone();
        let entry = self.entries.get_mut(&set);
        if entry.is_some_and(|entry| entry.view.job_seen(Arc::clone(job))) {
            self.queue.add(set, now);
        }
    }

    /// Forgets a set. Its Jobs belong to the garbage collector.
    fn drop_jobset(&mut self, key: &Key) {
        let Some(entry) = self.entries.remove(key) else { return };
        self.queue.remove(key);
        self.routes.set_gone(entry.view.uid());
    }
}

/// How long to wait for news of a Job that was not what it was seen as.
const OUTDATED: std::time::Duration = std::time::Duration::from_secs(1);

impl Entry {
    fn stale_until(&mut self, now: Timestamp) -> Option<Timestamp> {
        let until = self.stale?.holds(version(&self.view.jobset().metadata), now);
        self.stale = self.stale.filter(|_| until.is_some());
        until
    }

    /// The plan, with an event if the set cannot be worked on and that is news.
    fn tell_invalid(&self, mut plan: Plan) -> Plan {
        if let Some(Waiting::Invalid(why)) = &plan.waiting
            && self.waiting != plan.waiting
        {
            plan.steps.push(Step::Emit(Event::invalid(why)));
        }
        plan
    }

    fn begin(&mut self, plan: &Plan) {
        self.waiting = plan.waiting.clone();
        let course = engine::Pass {
            version: version(&self.view.jobset().metadata),
            revision: self.view.revision(),
            next: plan.next,
            wants_change: plan.steps.iter().any(is_change),
            only_looks: plan.waiting == Some(Waiting::CatchingUp),
            failure: None,
            gone: BTreeSet::new(),
        };
        let writes_beyond = plan.steps.iter().any(writes_beyond);
        self.pass = Some(Pass { course, writes_beyond });
    }

    fn fail(&mut self, failure: Failure) {
        if let Some(pass) = &mut self.pass {
            pass.course.fail(failure);
        }
    }
}

/// Whether a Job is in the namespace of a set. One elsewhere that names the set as its owner is not
/// the set's, and goes with the next collection of garbage.
fn is_beside(job: &Job, set: &Key) -> bool {
    job.metadata.namespace.as_deref().unwrap_or_default() == set.namespace
}

fn is_change(step: &Step) -> bool {
    !matches!(step, Step::Emit(_) | Step::Note(_))
}

fn writes_beyond(step: &Step) -> bool {
    matches!(step, Step::WriteStatus(write) if write.status.lockstep.is_some())
}

/// The name of the Service of a set.
fn subdomain(view: &View) -> &str {
    let jobset = view.jobset();
    names::subdomain(jobset.metadata.name.as_deref().unwrap_or_default(), &jobset.spec)
}

/// The version of an object as a number. Versions of one kind are ordered.
fn version(meta: &ObjectMeta) -> u64 {
    meta.resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or(0)
}
