//! A controller of a simulated cluster: the real driver and planners, with watches that lag and
//! requests that go wrong. It does what a shell does, and decides nothing.

pub(crate) mod call;

use std::collections::VecDeque;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use lockstep_control::plan::job::{Jobs, Key, Options, Plan, PodRef, Waiting, ttl::Ttls};
use lockstep_store::{Object, Revision};

use crate::{
    api::Kind,
    check::Violation,
    cluster::{Cluster, Happening},
    faults::Faults,
    watch::{News, Watch},
};
use call::Call;

/// Who changes plans behind the back of the planner. A test that wants a broken planner is one.
pub type Meddler = fn(&mut Plan);

const ACTOR: &str = "controller";

/// One process that takes itself for the leader.
#[derive(Debug)]
pub struct Controller {
    number: usize,
    jobs: Jobs,
    job_watch: Watch,
    pod_watch: Watch,
    pass: Option<Pass>,
    meddler: Option<Meddler>,
    ttls: Ttls,
    /// Whether news of a kind is on its way.
    is_coming: [bool; Kind::COUNT],
    /// When it works next.
    works_at: Option<Timestamp>,
    /// The Job it has found nothing to do for just now, and why.
    rested: Option<(Key, Waiting)>,
}

/// What is left of a pass.
#[derive(Debug)]
struct Pass {
    /// The Job; nothing for a pod that is nobody's.
    key: Option<Key>,
    /// What is to be done, each with the number of its group: a failure ends the pass after the
    /// group.
    calls: VecDeque<(usize, Call)>,
    failed: Option<usize>,
    seen: Seen,
}

/// What a controller had seen when it planned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The last revision of Jobs.
    pub jobs: Revision,
    /// The last revision of pods.
    pub pods: Revision,
}

impl Controller {
    /// A controller that has just started.
    pub fn new(number: usize, options: Options, meddler: Option<Meddler>) -> Self {
        Self {
            number,
            ttls: Ttls::new(&options),
            jobs: Jobs::new(options),
            job_watch: Watch::new(Kind::Job),
            pod_watch: Watch::new(Kind::Pod),
            pass: None,
            meddler,
            is_coming: [false; Kind::COUNT],
            works_at: None,
            rested: None,
        }
    }

    /// What it had seen when it planned what it does now.
    pub fn seen(&self) -> Seen {
        let now = Seen { jobs: self.job_watch.seen(), pods: self.pod_watch.seen() };
        self.pass.as_ref().map_or(now, |pass| pass.seen)
    }

    /// Loses the watch of one kind.
    pub fn lose_watch(&mut self, kind: Kind) {
        self.watch(kind).lose();
    }

    /// Hears the next `max` things about one kind.
    pub fn hear(&mut self, cluster: &mut Cluster, kind: Kind, max: usize) {
        self.is_coming[kind as usize] = false;
        let now = cluster.now();
        let is_listing = !self.watch(kind).has_begun();
        let news = self.watch(kind).hear(&cluster.api, max);
        let number = self.number;
        cluster.say(ACTOR, || {
            let verb = if is_listing { "lists" } else { "hears of" };
            format!("{number} {verb} {}", told(&news))
        });
        match kind {
            Kind::Job if is_listing => self.jobs.jobs_listing(),
            Kind::Pod if is_listing => self.jobs.pods_listing(),
            Kind::Job | Kind::Pod | Kind::JobSet | Kind::Service => {}
        }
        for news in &news {
            match (kind, news) {
                (Kind::Job, News::Seen(object)) => self.see_job(&cluster.api.job(object), now),
                (Kind::Pod, News::Seen(object)) => {
                    self.jobs.pod_seen(&cluster.api.pod(object), now);
                }
                (Kind::Job, News::Gone(object)) => {
                    let (namespace, name) = (&object.meta.namespace, &object.meta.name);
                    let key = Key { namespace: namespace.to_string(), name: name.to_string() };
                    self.ttls.job_gone(&key);
                    // What is not listed is gone: this driver finds out by itself.
                    if !is_listing {
                        self.jobs.job_gone(&key, &object.meta.uid, now);
                    }
                }
                (Kind::Pod, News::Gone(_)) if is_listing => {}
                (Kind::Pod, News::Gone(object)) => self.jobs.pod_gone(&reference(object), now),
                (Kind::JobSet | Kind::Service, _) => {}
            }
        }
        match kind {
            Kind::Job if is_listing => self.jobs.jobs_listed(now),
            Kind::Pod if is_listing => self.jobs.pods_listed(now),
            Kind::Job | Kind::Pod | Kind::JobSet | Kind::Service => {}
        }
    }

    /// Begins the next pass, or does the next thing of the one it is in.
    ///
    /// # Errors
    /// When a plan or a request is not what it must be.
    pub fn work(&mut self, cluster: &mut Cluster, faults: &mut Faults) -> Result<(), Violation> {
        self.works_at = None;
        // News is absorbed at the same time; only one thing at a time is done about it.
        let Some(pass) = &mut self.pass else { return self.begin(cluster) };
        if let Some((group, call)) = pass.calls.pop_front() {
            let has_failed = self.call(cluster, faults, call)?;
            self.note_failure(has_failed.then_some(group));
        }
        if self.pass.as_ref().is_some_and(|pass| pass.calls.is_empty()) {
            self.end(cluster);
        }
        Ok(())
    }

    /// The Job it has just found nothing to do for, and why, if it knows all there is to know.
    pub fn take_rested(&mut self, cluster: &Cluster) -> Option<(Key, Waiting)> {
        let watches = [&self.job_watch, &self.pod_watch];
        let knows_all = !watches.into_iter().any(|watch| watch.is_behind(&cluster.api));
        self.rested.take().filter(|_| knows_all)
    }

    /// Plans when it hears and works next.
    pub fn plan(&mut self, cluster: &mut Cluster, faults: &mut Faults) {
        for kind in [Kind::Job, Kind::Pod] {
            if !self.is_coming[kind as usize] && self.watch(kind).is_behind(&cluster.api) {
                self.is_coming[kind as usize] = true;
                let lag = faults.lag();
                cluster.after(lag, Happening::Deliver { controller: self.number, kind });
            }
        }
        let due = match &self.pass {
            Some(_) if self.works_at.is_some() => return,
            Some(_) => Some(cluster.now() + faults.latency()),
            None => {
                let due = self.jobs.next_due().into_iter().chain(self.ttls.next_due()).min();
                due.map(|due| due.max(cluster.now()))
            }
        };
        let Some(due) = due.filter(|due| self.works_at.is_none_or(|at| *due < at)) else { return };
        self.works_at = Some(due);
        cluster.at(due, Happening::Work { controller: self.number });
    }

    fn begin(&mut self, cluster: &mut Cluster) -> Result<(), Violation> {
        let (now, number, seen) = (cluster.now(), self.number, self.seen());
        if let Some((key, mut plan)) = self.jobs.next(now) {
            if plan.steps.is_empty() && plan.waiting.is_none() {
                return Err(Violation(format!("{} has nothing to do and says not why", key.name)));
            }
            if let Some(meddle) = self.meddler {
                meddle(&mut plan);
            }
            cluster.say(ACTOR, || match &plan.waiting {
                Some(waiting) => format!("{number} plans {}: waits, {waiting}", key.name),
                None => format!("{number} plans {}: {} steps", key.name, plan.steps.len()),
            });
            if plan.steps.is_empty() {
                self.rested = plan.waiting.map(|waiting| (key.clone(), waiting));
            }
            let calls = call::cut(plan.steps);
            self.pass = Some(Pass { key: Some(key), calls, failed: None, seen });
        } else if let Some(orphan) = self.jobs.next_orphan(now) {
            let calls = VecDeque::from([(0, Call::LetGo(orphan))]);
            self.pass = Some(Pass { key: None, calls, failed: None, seen });
        } else if let Some((key, _)) = self.ttls.next(now) {
            let calls = VecDeque::from([(0, Call::Expire(key))]);
            self.pass = Some(Pass { key: None, calls, failed: None, seen });
        }
        if self.pass.as_ref().is_some_and(|pass| pass.calls.is_empty()) {
            self.end(cluster);
        }
        Ok(())
    }

    fn see_job(&mut self, job: &Job, now: Timestamp) {
        self.ttls.job_seen(job, now);
        self.jobs.job_seen(job, now);
    }

    /// After a failure the rest of its group is tried, nothing after it.
    fn note_failure(&mut self, group: Option<usize>) {
        let Some(pass) = &mut self.pass else { return };
        pass.failed = pass.failed.or(group);
        if let Some(failed) = pass.failed {
            pass.calls.retain(|(group, _)| *group <= failed);
        }
    }

    fn end(&mut self, cluster: &Cluster) {
        if let Some(Pass { key: Some(key), .. }) = self.pass.take() {
            self.jobs.done(&key, cluster.now());
        }
    }

    fn watch(&mut self, kind: Kind) -> &mut Watch {
        match kind {
            Kind::Job => &mut self.job_watch,
            Kind::Pod | Kind::JobSet | Kind::Service => &mut self.pod_watch,
        }
    }
}

pub(crate) fn told(news: &[News]) -> String {
    let one = |news: &News| match news {
        News::Seen(object) => format!("{}@{}", object.meta.name, object.revision()),
        News::Gone(object) => format!("the end of {}", object.meta.name),
    };
    news.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn reference(pod: &Object) -> PodRef {
    PodRef::new(&pod.meta.namespace, &pod.meta.name, &pod.meta.uid)
}
