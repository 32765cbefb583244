//! A JobSet controller of a simulated cluster: the real driver and planner, beside the controllers
//! of Jobs, with watches that lag and requests that go wrong.

mod call;

use std::{collections::VecDeque, sync::Arc};

use jiff::Timestamp;
use lockstep_control::plan::{
    Key,
    jobset::{JobSets, Options, Plan, Waiting},
};
use lockstep_store::Object;

use crate::{
    api::Kind,
    check::{SetsSeen, Violation},
    cluster::{Cluster, Happening},
    controller::told,
    faults::Faults,
    watch::{News, Watch},
};
use call::Call;

/// Who changes plans behind the back of the planner. A test that wants a broken planner is one.
pub type Meddler = fn(&mut Plan);

const ACTOR: &str = "jobsets";
const KINDS: [Kind; 3] = [Kind::JobSet, Kind::Job, Kind::Service];

/// One process that takes itself for the leader.
#[derive(Debug)]
pub struct SetController {
    number: usize,
    sets: JobSets,
    watches: [Watch; KINDS.len()],
    pass: Option<Pass>,
    meddler: Option<Meddler>,
    /// Whether news of a kind is on its way.
    is_coming: [bool; Kind::COUNT],
    /// When it works next.
    works_at: Option<Timestamp>,
    /// The set it has found nothing to do for just now, and why.
    rested: Option<(Key, Waiting)>,
}

/// What is left of a pass.
#[derive(Debug)]
struct Pass {
    key: Key,
    /// What is to be done, each with the number of its group: a failure ends the pass after the
    /// group.
    calls: VecDeque<(usize, Call)>,
    failed: Option<usize>,
    seen: SetsSeen,
}

impl SetController {
    /// A controller that has just started.
    pub fn new(number: usize, meddler: Option<Meddler>) -> Self {
        Self {
            number,
            sets: JobSets::new(Options::default()),
            watches: KINDS.map(Watch::new),
            pass: None,
            meddler,
            is_coming: [false; Kind::COUNT],
            works_at: None,
            rested: None,
        }
    }

    /// What it had seen when it planned what it does now.
    pub fn seen(&self) -> SetsSeen {
        let [sets, jobs, _] = &self.watches;
        let now = SetsSeen { sets: sets.seen(), jobs: jobs.seen() };
        self.pass.as_ref().map_or(now, |pass| pass.seen)
    }

    /// Loses the watch of one kind.
    pub fn lose_watch(&mut self, kind: Kind) {
        self.watch(kind).into_iter().for_each(Watch::lose);
    }

    /// Hears the next `max` things about one kind.
    pub fn hear(&mut self, cluster: &mut Cluster, kind: Kind, max: usize) {
        self.is_coming[kind as usize] = false;
        let now = cluster.now();
        let Some(watch) = self.watch(kind) else { return };
        let is_listing = !watch.has_begun();
        let news = watch.hear(&cluster.api, max);
        let number = self.number;
        cluster.say(ACTOR, || {
            let verb = if is_listing { "lists" } else { "hears of" };
            format!("{number} {verb} {}", told(&news))
        });
        match kind {
            Kind::Job if is_listing => self.sets.jobs_listing(),
            Kind::Service if is_listing => self.sets.services_listing(),
            Kind::Job | Kind::Service | Kind::JobSet | Kind::Pod => {}
        }
        for news in &news {
            self.take_in(cluster, kind, news, now);
        }
        match kind {
            Kind::JobSet if is_listing => self.sets.jobsets_listed(),
            Kind::Job if is_listing => self.sets.jobs_listed(now),
            Kind::Service if is_listing => self.sets.services_listed(now),
            Kind::Job | Kind::Service | Kind::JobSet | Kind::Pod => {}
        }
    }

    fn take_in(&mut self, cluster: &mut Cluster, kind: Kind, news: &News, now: Timestamp) {
        match (kind, news) {
            (Kind::JobSet, News::Seen(object)) => {
                self.sets.jobset_seen(&cluster.api.jobset(object), now);
            }
            (Kind::JobSet, News::Gone(object)) => {
                self.sets.jobset_gone(&key(object), &object.meta.uid);
            }
            (Kind::Job, News::Seen(object)) => self.sets.job_seen(&cluster.api.job(object), now),
            (Kind::Job, News::Gone(object)) => {
                self.sets.job_gone(&key(object), &object.meta.uid, now);
            }
            (Kind::Service, News::Seen(object)) => {
                let service = call::service(object);
                self.sets.service_seen(&service.metadata);
            }
            (Kind::Service, News::Gone(object)) => {
                self.sets.service_gone(&key(object), &object.meta.uid, now);
            }
            (Kind::Pod, _) => {}
        }
    }

    /// Begins the next pass, or does the next thing of the one it is in.
    ///
    /// # Errors
    /// When a plan or a request is not what it must be.
    pub fn work(&mut self, cluster: &mut Cluster, faults: &mut Faults) -> Result<(), Violation> {
        self.works_at = None;
        let Some(pass) = &mut self.pass else { return self.begin(cluster) };
        if let Some((group, call)) = pass.calls.pop_front() {
            let has_failed = self.call(cluster, faults, call)?;
            self.note_failure(has_failed.then_some(group));
        }
        self.end_if_done(cluster);
        Ok(())
    }

    /// The set it has just found nothing to do for, and why, if it knows all there is to know.
    pub fn take_rested(&mut self, cluster: &Cluster) -> Option<(Key, Waiting)> {
        let knows_all = !self.watches.iter().any(|watch| watch.is_behind(&cluster.api));
        self.rested.take().filter(|_| knows_all)
    }

    /// Plans when it hears and works next.
    pub fn plan(&mut self, cluster: &mut Cluster, faults: &mut Faults) {
        for (kind, watch) in KINDS.into_iter().zip(&self.watches) {
            if !self.is_coming[kind as usize] && watch.is_behind(&cluster.api) {
                self.is_coming[kind as usize] = true;
                let lag = faults.lag();
                cluster.after(lag, Happening::Deliver { controller: self.number, kind });
            }
        }
        let due = match &self.pass {
            Some(_) if self.works_at.is_some() => return,
            Some(_) => Some(cluster.now() + faults.latency()),
            None => self.sets.next_due().map(|due| due.max(cluster.now())),
        };
        let Some(due) = due.filter(|due| self.works_at.is_none_or(|at| *due < at)) else { return };
        self.works_at = Some(due);
        cluster.at(due, Happening::Work { controller: self.number });
    }

    fn begin(&mut self, cluster: &mut Cluster) -> Result<(), Violation> {
        let (number, seen) = (self.number, self.seen());
        let Some((key, mut plan)) = self.sets.next(cluster.now()) else { return Ok(()) };
        if plan.steps.is_empty() && plan.waiting.is_none() {
            return Err(Violation(format!("set {} has nothing to do and says not why", key.name)));
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
        let calls = call::cut(plan.steps)?;
        self.pass = Some(Pass { key, calls, failed: None, seen });
        self.end_if_done(cluster);
        Ok(())
    }

    /// After a failure the rest of its group is tried, nothing after it.
    fn note_failure(&mut self, group: Option<usize>) {
        let Some(pass) = &mut self.pass else { return };
        pass.failed = pass.failed.or(group);
        if let Some(failed) = pass.failed {
            pass.calls.retain(|(group, _)| *group <= failed);
        }
    }

    fn end_if_done(&mut self, cluster: &Cluster) {
        if let Some(pass) = self.pass.take_if(|pass| pass.calls.is_empty()) {
            self.sets.done(&pass.key, cluster.now());
        }
    }

    fn watch(&mut self, kind: Kind) -> Option<&mut Watch> {
        let at = KINDS.iter().position(|known| *known == kind)?;
        self.watches.get_mut(at)
    }
}

fn key(object: &Arc<Object>) -> Key {
    Key { namespace: object.meta.namespace.to_string(), name: object.meta.name.to_string() }
}
