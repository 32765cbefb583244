//! The driver: many Jobs, what is due, and what became of the steps.

mod orphans;
mod results;
mod route;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::api::{
    batch::v1::{Job, JobStatus},
    core::v1::Pod,
};

use crate::engine::{self, Failure, Stale, Turns, after};
use crate::plan::Key;
use crate::plan::job::{
    Action, BUILT_IN, Creation, Fact, Memory, Metric, Options, Plan, PodRef, Step, View, Waiting,
    conditions, fact, memory::Stage, plan, seen,
};

pub use orphans::Orphan;
use orphans::Orphans;
use route::Routes;

/// All Jobs of a cluster and when each wants a pass.
///
/// The shell tells what its watches bring. A watch begins, and begins anew when it broke off, with
/// a listing: [`Jobs::jobs_listing`], [`Jobs::job_seen`] for each, [`Jobs::jobs_listed`]; the same
/// for pods. After that [`Jobs::job_seen`], [`Jobs::job_gone`], [`Jobs::pod_seen`] and
/// [`Jobs::pod_gone`] as it happens. Once both have been listed it asks [`Jobs::next`] for passes,
/// carries out the steps of each, reports what became of them, and says [`Jobs::done`]. Passes over
/// different Jobs may run at the same time; a Job is in one pass at a time. [`Jobs::next_orphan`]
/// has a second, smaller kind of work. When there is nothing to do the shell sleeps until
/// [`Jobs::next_due`], or until something is seen.
///
/// Lists must be read from the API itself, not from a cache that may be behind.
#[derive(Clone, Debug)]
pub struct Jobs {
    options: Options,
    entries: BTreeMap<Key, Entry>,
    queue: Turns<Key>,
    routes: Routes,
    orphans: Orphans,
    facts: Vec<Fact>,
    is_listed: Listed,
    /// Moves with each listing of all Jobs.
    listing: u64,
    /// The newest version of any pod that a watch has brought: what happened to pods before it is
    /// known. Versions of Jobs and pods are numbers of one sequence.
    pods_through: u64,
}

/// What has been listed at least once.
#[derive(Clone, Copy, Debug, Default)]
struct Listed {
    jobs: bool,
    pods: bool,
}

/// One Job.
#[derive(Clone, Debug)]
struct Entry {
    view: View,
    memory: Memory,
    /// The pass that is running.
    pass: Option<Pass>,
    stale: Option<Stale>,
    waiting: Option<Waiting>,
    listing: u64,
    doubt: Doubt,
}

/// What may be missing in what is known of the pods of a Job.
#[derive(Clone, Copy, Debug, Default)]
struct Doubt {
    /// A create was not answered: there may be a pod that nobody here has seen.
    is_pod_unknown: bool,
    /// The version of the Job in which somebody else has written its status. Whoever did so has
    /// seen pods as they were then, and pods that are known from before may be counted already.
    told: u64,
    /// The newest such version that the pods were listed after.
    listed: u64,
}

/// What happens in a pass.
#[derive(Clone, Debug)]
struct Pass {
    course: engine::Pass,
    action: Option<Action>,
    creation: Creation,
    doubt: Doubt,
}

/// What a pass was, for the histogram of their duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// Label `completion_mode`.
    pub completion_mode: &'static str,
    /// Label `result`.
    pub result: &'static str,
    /// Label `action`.
    pub action: &'static str,
}

impl Jobs {
    /// A driver that knows of no Jobs.
    pub fn new(options: Options) -> Self {
        Self {
            queue: Turns::new(options.api_backoff_base, options.api_backoff_max),
            orphans: Orphans::new(&options),
            entries: BTreeMap::new(),
            routes: Routes::default(),
            facts: Vec::new(),
            is_listed: Listed::default(),
            listing: 0,
            pods_through: 0,
            options,
        }
    }

    /// A listing of all Jobs begins: what is not seen from now on until it ends is gone.
    pub fn jobs_listing(&mut self) {
        self.listing += 1;
    }

    /// The listing of all Jobs has ended.
    pub fn jobs_listed(&mut self, now: Timestamp) {
        let listing = self.listing;
        let gone = self.entries.iter().filter(|(_, entry)| entry.listing < listing);
        let gone: Vec<Key> = gone.map(|(key, _)| key.clone()).collect();
        for key in gone {
            self.drop_job(&key, now);
        }
        self.is_listed.jobs = true;
    }

    /// Notes a version of a Job.
    pub fn job_seen(&mut self, job: &Job, now: Timestamp) {
        let key = Key::of(&job.metadata);
        let uid = job.metadata.uid.as_deref().unwrap_or_default();
        if self.entries.get(&key).is_some_and(|entry| entry.view.uid() != uid) {
            let known = seen::version(&self.entries[&key].view.job().metadata);
            if seen::version(&job.metadata) < known {
                return;
            }
            self.drop_job(&key, now);
        }
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.listing = self.listing;
            let generation = entry.view.job().metadata.generation;
            let is_new_status = entry.view.job().status != job.status;
            if entry.view.observe_job(job) {
                if is_new_status {
                    entry.doubt.told = seen::version(&job.metadata);
                }
                let is_new_spec = job.metadata.generation != generation;
                let at = if is_new_spec { now } else { self.gathered(now) };
                self.queue.add(key.clone(), at);
                if !self.entries[&key].adopts(&self.options) {
                    self.free_orphans(&key.namespace, now);
                }
            }
            return;
        }
        let mut view = View::new(job.clone());
        self.routes.claim(&key, &mut view);
        let manager = job.spec.as_ref().and_then(|spec| spec.managed_by.as_deref());
        if let Some(manager) = manager.filter(|manager| *manager != self.options.controller) {
            self.facts.push(Metric::ExternalJobs.fact(1, &[manager]));
        }
        let (memory, listing) = (Memory::default(), self.listing);
        let is_told = job.status.as_ref().is_some_and(|status| *status != JobStatus::default());
        let told = if is_told { seen::version(&job.metadata) } else { 0 };
        let doubt = Doubt { told, ..Doubt::default() };
        self.entries.insert(
            key.clone(),
            Entry { view, memory, pass: None, stale: None, waiting: None, listing, doubt },
        );
        self.queue.add(key, now);
    }

    /// Notes that a Job is gone.
    pub fn job_gone(&mut self, key: &Key, uid: &str, now: Timestamp) {
        if self.entries.get(key).is_some_and(|entry| entry.view.uid() == uid) {
            self.drop_job(key, now);
        }
    }

    /// The next pass to run, if one is due. It has begun: carry it out, then say [`Jobs::done`].
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
                Some(until) => {
                    self.facts.push(Metric::StaleSyncsSkipped.fact(1, &["batch", "jobs"]));
                    Plan { next: Some(until), ..Plan::wait(Waiting::CatchingUp) }
                }
                None => {
                    let plan = plan(&entry.view, &entry.memory, &self.options, now);
                    entry.look_twice(plan, self.pods_through)
                }
            };
            entry.begin(&plan);
            return Some((key, plan));
        }
    }

    /// Ends the pass over a Job.
    pub fn done(&mut self, key: &Key, now: Timestamp) -> Option<Done> {
        let ended = self.entries.get_mut(key).and_then(|entry| {
            let pass = entry.pass.take()?;
            if pass.course.failure.is_none() && !pass.course.only_looks {
                entry.memory.failed_last = None;
            }
            Some((pass, entry.view.revision(), fact::mode(&entry.view)))
        });
        let Some((Pass { course, action, .. }, revision, mode)) = ended else {
            self.queue.abandon(key);
            return None;
        };
        self.queue.end(key, &course, revision, self.options.api_backoff_base, now);
        let result = if course.failure == Some(Failure::Error) { "error" } else { "success" };
        let action = action?.as_str();
        self.facts.push(Metric::Syncs.fact(1, &[mode, result, action]));
        Some(Done { completion_mode: mode, result, action })
    }

    /// When the shell should ask again.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.next_pass_due().into_iter().chain(self.next_orphan_due()).min()
    }

    /// When it should ask [`Jobs::next`] again.
    pub fn next_pass_due(&self) -> Option<Timestamp> {
        self.queue.next_due().filter(|_| self.is_ready())
    }

    /// When it should ask [`Jobs::next_orphan`] again.
    pub fn next_orphan_due(&self) -> Option<Timestamp> {
        self.orphans.next_due().filter(|_| self.is_ready())
    }

    /// What was counted since this was asked last.
    pub fn take_facts(&mut self) -> Vec<Fact> {
        std::mem::take(&mut self.facts)
    }

    /// Why a Job did not move in its last pass; nothing if it did.
    pub fn waiting(&self, key: &Key) -> Option<&Waiting> {
        self.entries.get(key)?.waiting.as_ref()
    }

    /// What is known of a Job.
    pub fn view(&self, key: &Key) -> Option<&View> {
        self.entries.get(key).map(|entry| &entry.view)
    }

    /// The Jobs that are known.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.entries.keys()
    }

    /// How it was set up.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// How many Jobs wait for a pass.
    pub fn queue_len(&self) -> usize {
        self.queue.len()
    }

    /// Before all is known that there is, nothing can be decided.
    fn is_ready(&self) -> bool {
        self.is_listed.jobs && self.is_listed.pods
    }

    /// Asks for a pass over a Job because of something that may be followed by more of its kind.
    fn enqueue(&mut self, key: &Key, now: Timestamp) {
        let at = self.gathered(now);
        self.queue.add(key.clone(), at);
    }

    fn gathered(&self, now: Timestamp) -> Timestamp {
        after(now, self.options.batch_period)
    }

    /// Forgets a Job. Pods it has not counted are nobody's now: they must not be kept by it.
    fn drop_job(&mut self, key: &Key, now: Timestamp) {
        let Some(entry) = self.entries.remove(key) else { return };
        self.queue.remove(key);
        // Those it owned, and those it might have adopted.
        let left = entry.view.tracked().chain(entry.view.orphans().cloned());
        let left: Vec<PodRef> = left.collect();
        self.routes.disown(key, entry.view.uid());
        for pod in left {
            self.orphans.add_left(pod, now);
        }
        // Pods that waited to be adopted wait for nobody now.
        self.free_orphans(&key.namespace, now);
    }
}

impl Entry {
    /// Whether pods without an owner may become pods of this Job.
    fn adopts(&self, options: &Options) -> bool {
        let job = self.view.job();
        let manager = job.spec.as_ref().and_then(|spec| spec.managed_by.as_deref());
        manager.unwrap_or(BUILT_IN) == options.controller
            && job.metadata.deletion_timestamp.is_none()
            && conditions::finished(job).is_none()
    }

    fn stale_until(&mut self, now: Timestamp) -> Option<Timestamp> {
        let until = self.stale?.holds(seen::version(&self.view.job().metadata), now);
        self.stale = self.stale.filter(|_| until.is_some());
        until
    }

    /// Notes a version of a pod; whether it is news. One that is new here and was made before the
    /// pods were listed was not among them: somebody else may have counted it, and it may be gone.
    fn observe_pod(&mut self, pod: &Pod) -> bool {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let is_new = self.view.pod_with_uid(uid).is_none();
        let is_news = self.view.observe_pod(pod);
        if is_new && is_news && seen::version(&pod.metadata) < self.doubt.told {
            self.doubt.listed = 0;
        }
        is_news
    }

    /// The plan, unless it does something and what it was made on may miss something: then the pods
    /// are listed first.
    fn look_twice(&self, plan: Plan, pods_through: u64) -> Plan {
        let Doubt { is_pod_unknown, told, listed } = self.doubt;
        let is_doubtful = is_pod_unknown || told > listed.max(pods_through);
        if !(is_doubtful && plan.steps.iter().any(is_change)) {
            return plan;
        }
        let steps = vec![Step::Relist { uids: self.view.uids() }];
        Plan { steps, action: Some(Action::Reconciling), ..Plan::default() }
    }

    fn begin(&mut self, plan: &Plan) {
        self.waiting = plan.waiting.clone();
        if matches!(plan.waiting, Some(Waiting::UnknownCompletionMode(_))) {
            self.memory.told_unknown_mode = true;
        }
        let course = engine::Pass {
            version: seen::version(&self.view.job().metadata),
            revision: self.view.revision(),
            next: plan.next,
            wants_change: plan.steps.iter().any(is_change),
            only_looks: matches!(plan.steps.as_slice(), [Step::Relist { .. }]),
            failure: None,
            gone: BTreeSet::new(),
        };
        let (action, creation, doubt) = (plan.action, plan.creation, self.doubt);
        self.pass = Some(Pass { course, action, creation, doubt });
    }

    fn fail(&mut self, failure: Failure, stage: Option<Stage>) {
        self.memory.failed_last = stage.or(self.memory.failed_last);
        if let Some(pass) = &mut self.pass {
            pass.course.fail(failure);
        }
    }
}

fn is_change(step: &Step) -> bool {
    !matches!(step, Step::Emit(_) | Step::Note(_))
}
