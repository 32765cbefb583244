//! A queue controller: three drivers in one process, as the shell has them. What one of them writes
//! the others hear at once.
//!
//! Other than the controllers of Jobs it has many requests under way at the same time: which of
//! them arrives next is drawn, and so is which answer comes back next.

mod begin;
mod call;
mod hear;
mod tell;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use lockstep_api::kueue::{ClusterQueue, WaitForPodsReady, WorkloadPriorityClass, WorkloadStatus};
use lockstep_api::labels::NAMESPACE_NAME;
use lockstep_control::plan::{
    Key,
    queue::{Finalizers, Queues, Settings, StatusOfQueue, Write},
    queued::{self, JobKey, QueuedJobs},
    workload::{self, Workloads},
};

use crate::{
    api::{Kind, NAMESPACE},
    chance::Chance,
    check::{Checker, Violation},
    cluster::{Cluster, Happening},
    controller::{self, Actor, Answer, request},
    faults::Faults,
    manifest::queue::CLASSES,
    watch::{Seen, Watch},
};
use call::Calls;

const ACTOR: &str = "queues";
const KINDS: [Kind; 6] =
    [Kind::Flavor, Kind::ClusterQueue, Kind::LocalQueue, Kind::Workload, Kind::Job, Kind::JobSet];
/// Retries come soon, so that worlds come to rest.
const BACKOFF_MAX: Duration = Duration::from_secs(4);

/// What somebody may change behind the back of the drivers, before they see it or before it is
/// sent.
pub enum Meddled<'a> {
    /// How the scheduler is set up.
    Settings(&'a mut Settings),
    /// A ClusterQueue that is seen.
    ClusterQueue(&'a mut ClusterQueue),
    /// A Job that is seen.
    Job(&'a mut Job),
    /// The status of a Workload of this name that is about to be written.
    Status(&'a str, &'a mut WorkloadStatus),
}

/// Who changes things behind the back of the drivers. A test that wants a broken planner is one.
pub type Meddler = fn(Meddled<'_>);

/// A request under way, with those that follow it.
struct Errand {
    /// How many were begun before it.
    turn: u64,
    /// What the controller had seen when it was planned.
    seen: Seen,
    of: Of,
    /// The first is the one under way.
    calls: Calls,
    /// What the API said to it; nobody has heard of it yet.
    answer: Option<Answer>,
}

/// What asked for a request.
enum Of {
    Decision(Box<Write>, bool),
    Status(Box<StatusOfQueue>),
    Finalizers(Finalizers),
    Workload(Key),
    Job(JobKey),
}

/// One process that takes itself for the leader.
pub(crate) struct QueueController {
    number: usize,
    queues: Queues,
    workloads: Workloads,
    jobs: QueuedJobs,
    meddler: Option<Meddler>,
    watches: Vec<Watch>,
    listed: BTreeSet<Kind>,
    is_coming: [bool; Kind::COUNT],
    errands: Vec<Errand>,
    /// How many requests were begun.
    turns: u64,
    /// Which of them was the first to admit somebody of whom nobody knows yet what became of that,
    /// and what was seen then. What is said again was decided then.
    admissions: BTreeMap<Key, (u64, Seen)>,
    /// What it had seen when it planned the request it made last, and which one that was.
    seen: Seen,
    turn: u64,
    works_at: Option<Timestamp>,
    chance: Chance,
}

impl QueueController {
    /// A controller that has just started.
    pub(crate) fn new(
        (number, seed): (usize, u64),
        wait: Option<WaitForPodsReady>,
        meddler: Option<Meddler>,
        now: Timestamp,
    ) -> Self {
        let mut settings = Settings { wait: wait.clone(), ..Settings::default() };
        if let Some(meddle) = meddler {
            meddle(Meddled::Settings(&mut settings));
        }
        let options =
            workload::Options { api_backoff_max: BACKOFF_MAX, ..workload::Options::default() };
        let of_jobs = queued::Settings {
            wait_for_pods_ready: wait,
            api_backoff_max: BACKOFF_MAX,
            ..queued::Settings::default()
        };
        let mut controller = Self {
            number,
            queues: Queues::new(settings),
            workloads: Workloads::new(options),
            jobs: QueuedJobs::new(of_jobs),
            meddler,
            watches: KINDS.into_iter().map(Watch::new).collect(),
            listed: BTreeSet::new(),
            is_coming: [false; Kind::COUNT],
            errands: Vec::new(),
            turns: 0,
            admissions: BTreeMap::new(),
            seen: Seen::default(),
            turn: 0,
            works_at: None,
            chance: Chance::new(seed, &format!("queues {number}")),
        };
        controller.tell_of_what_stays(now);
        controller
    }

    /// The namespace and the classes of priority never change.
    fn tell_of_what_stays(&mut self, now: Timestamp) {
        let labels = BTreeMap::from([(NAMESPACE_NAME.to_owned(), NAMESPACE.to_owned())]);
        self.queues.namespace_seen(NAMESPACE, &labels, now);
        self.queues.namespaces_listed();
        self.queues.limit_ranges_listed();
        self.queues.runtime_classes_listed();
        self.jobs.namespace_seen(NAMESPACE, &labels, now);
        self.jobs.namespaces_listed();
        for (name, value) in CLASSES {
            let mut class = WorkloadPriorityClass { value, ..WorkloadPriorityClass::default() };
            class.metadata.name = Some(name.to_owned());
            self.jobs.priority_class_seen(&class, now);
            self.workloads.priority_class_seen(&class, now);
        }
        self.jobs.priority_classes_listed();
        self.jobs.pod_priority_classes_listed();
    }

    fn watch(&mut self, kind: Kind) -> Option<&mut Watch> {
        self.watches.iter_mut().find(|watch| watch.kind() == kind)
    }

    /// Nothing is done before everything was listed.
    fn is_synced(&self) -> bool {
        self.listed.len() == KINDS.len()
    }

    fn next_due(&self) -> Option<Timestamp> {
        let due = [self.queues.next_due(), self.workloads.next_due(), self.jobs.next_due()];
        due.into_iter().flatten().min().filter(|_| self.is_synced())
    }

    /// Begins requests that follow each other.
    fn start(&mut self, of: Of, calls: Calls) {
        let (mut turn, mut seen) = (self.turns, Seen::by(&self.watches));
        if let Of::Decision(write, true) = &of {
            (turn, seen) = *self.admissions.entry(write.key.clone()).or_insert((turn, seen));
        }
        self.errands.push(Errand { turn, seen, of, calls, answer: None });
        self.turns += 1;
    }

    /// One of the requests under way arrives, or its answer does.
    fn go_on(&mut self, cluster: &mut Cluster, faults: &mut Faults) -> Result<(), Violation> {
        let count = u32::try_from(self.errands.len()).unwrap_or(u32::MAX);
        if count == 0 {
            return Ok(());
        }
        let drawn = self.chance.below(count) as usize;
        let at = self.first_of(drawn);
        let errand = &mut self.errands[at];
        if errand.answer.is_some() {
            self.tell(at, &mut cluster.api);
            return Ok(());
        }
        let Some((key, call)) = errand.calls.front() else { return Ok(()) };
        (self.seen, self.turn) = (errand.seen, errand.turn);
        let answer = request::send((call, key), (ACTOR, self.number), cluster, faults)?;
        errand.answer = Some(answer);
        Ok(())
    }

    /// Of what is decided about one Workload the first arrives first.
    fn first_of(&self, at: usize) -> usize {
        let Of::Decision(write, _) = &self.errands[at].of else { return at };
        let is_same =
            |errand: &Errand| matches!(&errand.of, Of::Decision(one, _) if one.key == write.key);
        self.errands.iter().position(is_same).unwrap_or(at)
    }
}

impl Actor for QueueController {
    /// What it had seen when it planned the request it has just made.
    fn seen(&self) -> Seen {
        self.seen
    }

    fn turn(&self) -> u64 {
        self.turn
    }

    fn lose_watch(&mut self, kind: Kind) {
        self.watch(kind).into_iter().for_each(Watch::lose);
    }

    fn hear(&mut self, cluster: &mut Cluster, kind: Kind, max: usize) {
        self.is_coming[kind as usize] = false;
        let Some(watch) = self.watch(kind) else { return };
        let news = watch.hear(&cluster.api, max);
        cluster.say(ACTOR, || format!("{} {}", self.number, controller::told(&news)));
        news.iter().for_each(|news| self.take_in(&mut cluster.api, kind, news));
    }

    fn work(
        &mut self,
        cluster: &mut Cluster,
        faults: &mut Faults,
        checker: Option<&Checker>,
    ) -> Result<(), Violation> {
        self.works_at = None;
        if self.is_synced() {
            self.begin(cluster, checker)?;
        }
        self.go_on(cluster, faults)
    }

    fn plan(&mut self, cluster: &mut Cluster, faults: &mut Faults) {
        for watch in &self.watches {
            let kind = watch.kind();
            if !self.is_coming[kind as usize] && watch.is_behind(&cluster.api) {
                self.is_coming[kind as usize] = true;
                let lag = faults.lag();
                cluster.after(lag, Happening::Deliver { controller: self.number, kind });
            }
        }
        let due = match self.errands.is_empty() {
            false if self.works_at.is_some() => return,
            false => Some(cluster.now() + faults.latency()),
            true => self.next_due().map(|due| due.max(cluster.now())),
        };
        let Some(due) = due.filter(|due| self.works_at.is_none_or(|at| *due < at)) else { return };
        self.works_at = Some(due);
        cluster.at(due, Happening::Work { controller: self.number });
    }
}
