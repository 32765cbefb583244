//! What is to be said of one job: decided here, printed elsewhere.

use jiff::Timestamp;
use lockstep_api::{
    duration::human,
    labels::kueue::QUEUE_NAME,
    reasons::kueue::workload::{
        ADMITTED, DEACTIVATION_TARGET, EVICTED, FINISHED, PODS_READY, QUOTA_RESERVED, REQUEUED,
        STAGE,
    },
};
use serde_json::{Value, json};

use super::{
    gather::Seen,
    place::{self, Holder, Place},
    pods,
};
use crate::{
    queueing::{
        list,
        workload::{State, Waiting, Workload},
    },
    run::{
        job::{self, Job},
        jobset::{self, JobSet},
    },
};

/// What comes before the place in a queue, in our own condition.
const POSITION: &str = "; position ";

/// What is to be said of one job.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// `job/train`.
    pub(super) what: String,
    pub(super) namespace: String,
    /// Where it stands, in a word.
    pub(super) state: &'static str,
    /// Where it stands, in a line.
    pub(super) summary: String,
    pub(super) queue: Option<String>,
    pub(super) cluster_queue: Option<String>,
    pub(super) workload: Option<String>,
    /// Why, in a word and in a sentence.
    pub(super) because: Option<(String, String)>,
    /// What it asks for.
    pub(super) asks: Option<String>,
    pub(super) place: Option<Place>,
    pub(super) holders: Vec<Holder>,
    pub(super) holders_more: usize,
    /// Which part of it starts.
    pub(super) stage: Option<String>,
    /// Which pods are not ready, and why.
    pub(super) pods: Vec<String>,
    /// Until when they have to be.
    pub(super) deadline: Option<Timestamp>,
    /// How often it was evicted, for what.
    pub(super) evictions: Option<String>,
    pub(super) requeues: i64,
    /// When it is tried again.
    pub(super) retry_at: Option<Timestamp>,
    /// What lets it go on.
    pub(super) change: Option<String>,
}

impl Report {
    /// What is to be said of what was seen.
    pub(super) fn of(seen: &Seen, now: Timestamp) -> Self {
        let subject = &seen.subject;
        let mut report = Self {
            what: format!("{}/{}", subject.kind.to_lowercase(), subject.name),
            namespace: seen.namespace.clone(),
            queue: seen.queue_named(),
            cluster_queue: seen.local_queue().map(|queue| queue.cluster_queue.clone()),
            ..Self::default()
        };
        match &seen.workload {
            Some(workload) => report.of_workload(seen, workload, now),
            None => report.without_workload(seen),
        }
        report.note_gang(seen);
        report
    }

    /// Workers that restart in place may wait while all is well with their queue.
    fn note_gang(&mut self, seen: &Seen) {
        let set = seen.job.as_ref().filter(|_| seen.subject.kind == "JobSet").map(JobSet::read);
        let Some(set) = set.filter(|set| !set.has_ended()) else { return };
        let Some(told) = set.in_place() else { return };
        let doing = match told.phase.as_str() {
            "Forming" => "its workers start when all of them are there",
            "Stopping" => "its workers restart in place",
            "Recreating" => {
                "all its Jobs are made anew, as a restart in place has not come to its end"
            }
            "Surrendered" => "its failure policy decides about a worker that has failed",
            _ => return,
        };
        self.summary = format!("{}; {doing} (epoch {})", self.summary, told.epoch);
        if let Some(why) = set.why_workers_wait().filter(|_| self.because.is_none()) {
            self.because = Some(("InPlaceRestart".to_owned(), why));
        }
    }

    fn of_workload(&mut self, seen: &Seen, workload: &Workload, now: Timestamp) {
        if !workload.cluster_queue.is_empty() {
            self.cluster_queue = Some(workload.cluster_queue.clone());
        }
        let state = workload.state();
        self.state = state.word();
        self.workload = Some(workload.name.clone());
        self.asks = Some(asks(workload)).filter(|asks| !asks.is_empty());
        self.evictions = evictions(workload, now);
        self.requeues = workload.requeues;
        self.summary = self.summary(workload, state, now);
        match state {
            State::Pending => self.pending(seen, workload, now),
            State::Reserved => {
                let open = workload.conditions.get(ADMITTED).filter(|said| !said.is_true);
                self.because = open.map(|said| (said.reason.clone(), said.message.clone()));
            }
            State::Starting | State::Recovering | State::Admitted => self.starting(seen, workload),
            State::Stopping => {
                let evicted = workload.evicted();
                self.because = evicted.map(|said| (said.reason.clone(), said.message.clone()));
                self.retry_at = workload.retry_at;
            }
            State::Deactivated => {
                let target = workload.is(DEACTIVATION_TARGET);
                let told = workload.evicted().or(target);
                let told = told.map(|said| (said.reason.clone(), said.message.clone()));
                self.because = told.or_else(|| {
                    Some((
                        "Deactivated".to_owned(),
                        "somebody has set spec.active to false".to_owned(),
                    ))
                });
                self.change = Some(workload.reactivation());
            }
            State::Finished | State::Running => {}
        }
    }

    fn pending(&mut self, seen: &Seen, workload: &Workload, now: Timestamp) {
        let Waiting { reason, message, .. } = workload.waiting();
        self.change = workload.remedy(self.cluster_queue.as_deref());
        self.place = place::place(seen, workload);
        // Its place is told once, and as it is now: what it was told is older.
        let message = match (&self.place, message.rsplit_once(POSITION)) {
            (Some(_), Some((why, _))) => why.to_owned(),
            _ => message,
        };
        self.because = Some((reason, message));
        if !workload.waits_in_vain() {
            (self.holders, self.holders_more) = place::holders(seen, workload);
        }
        let put_off = workload.conditions.get(REQUEUED).is_some_and(|said| !said.is_true);
        self.retry_at = workload.retry_at.filter(|at| put_off || *at > now);
    }

    fn starting(&mut self, seen: &Seen, workload: &Workload) {
        self.stage = workload.is(STAGE).map(|said| said.message.clone());
        self.pods = pods::lines(seen, workload);
        let clock = match workload.state() {
            State::Recovering => workload.conditions.get(PODS_READY),
            _ => workload.is(STAGE).or_else(|| workload.is(ADMITTED)),
        };
        // What is said for all is not to be seen from here; what is said for one counts more
        // anyway.
        let pool = seen.cluster_queue_of(workload).map(|queue| &queue.overrides);
        let door = seen.local_queue().map(|queue| &queue.overrides);
        let mut said = [Some(&workload.overrides), door, pool].into_iter().flatten();
        let allowed = match workload.state() {
            State::Starting => said.find_map(|said| said.timeout),
            State::Recovering => said.find_map(|said| said.recovery_timeout),
            _ => None,
        };
        let allowed = allowed.filter(|time| !time.is_zero());
        let since = clock.and_then(|said| said.since);
        self.deadline = since.zip(allowed).and_then(|(since, time)| since.checked_add(time).ok());
    }

    /// Where a Workload stands, in a line.
    fn summary(&self, workload: &Workload, state: State, now: Timestamp) -> String {
        let what = &self.what;
        let pool = match &self.cluster_queue {
            Some(name) => format!("ClusterQueue {name}"),
            None => "a ClusterQueue that is not known".to_owned(),
        };
        let ago = |kind: &str| {
            let since = workload.conditions.get(kind).and_then(|said| said.since);
            since.map(|since| format!(" {} ago", human(now.duration_since(since).as_secs())))
        };
        let ago = |kind: &str| ago(kind).unwrap_or_default();
        match state {
            State::Pending => {
                let since = workload.conditions.get(QUOTA_RESERVED).and_then(|said| said.since);
                let since = since.max(workload.created);
                let age =
                    since.map(|at| format!(", for {}", human(now.duration_since(at).as_secs())));
                let queue = self.queue.as_deref().unwrap_or("<none>");
                let of = self.cluster_queue.as_ref().map(|_| format!(" of {pool}"));
                let (of, age) = (of.unwrap_or_default(), age.unwrap_or_default());
                format!("{what} waits in LocalQueue {queue}{of}{age}")
            }
            State::Reserved => format!("{what} has quota in {pool} and is not admitted yet"),
            State::Starting => {
                let ago = ago(ADMITTED);
                format!("{what} was admitted by {pool}{ago}; not all of its pods are ready")
            }
            State::Recovering => {
                let ago = ago(PODS_READY);
                format!("{what} runs in {pool}; it lost pods{ago} that are not back yet")
            }
            State::Running => {
                format!("{what} runs in {pool}, admitted{}; all its pods are ready", ago(ADMITTED))
            }
            State::Admitted => format!("{what} runs in {pool}, admitted{}", ago(ADMITTED)),
            State::Stopping => format!("{what} is evicted from {pool} and is being stopped"),
            State::Deactivated => {
                format!("{what} is deactivated: it is not started before somebody activates it")
            }
            State::Finished => {
                let said = workload.is(FINISHED).map(|said| said.words()).unwrap_or_default();
                format!("{what} has finished{}: {said}", ago(FINISHED))
            }
        }
    }

    /// A job that no Workload was made for: in no queue, or not yet.
    fn without_workload(&mut self, seen: &Seen) {
        let what = &self.what;
        if let Some(end) = seen.job.as_ref().and_then(|job| ended(&seen.subject.kind, job)) {
            self.state = State::Finished.word();
            self.summary = format!("{what} has finished: {end}");
            return;
        }
        let here: Vec<&str> = seen
            .local_queues
            .iter()
            .filter(|queue| queue.namespace == seen.namespace)
            .map(|queue| queue.name.as_str())
            .collect();
        let here = match here.as_slice() {
            [] => format!("there is none in namespace {}", seen.namespace),
            names => format!("there are: {}", names.join(", ")),
        };
        let Some(queue) = &self.queue else {
            self.state = "NotQueued";
            self.summary = format!(
                "{what} is in no queue: its pods start as soon as there is a place for each"
            );
            self.change = seen.has_queues.then(|| {
                format!(
                    "it needs no queue; to join one, set the label {QUEUE_NAME} to a LocalQueue while it is suspended, \
                     or when it is made ({here}); lockstep run --queue NAME does that"
                )
            });
            return;
        };
        self.state = "NoWorkload";
        self.summary = format!("{what} is to wait in LocalQueue {queue} and has no Workload yet");
        let told = seen.events.iter().rev().find(|event| event.kind == "Warning");
        let (reason, message) = if !seen.has_queues {
            (
                "NoQueues",
                "this cluster does not serve kueue.x-k8s.io: nobody queues jobs here".to_owned(),
            )
        } else if seen.local_queue().is_none() {
            let space = &seen.namespace;
            self.change =
                Some(format!("name another LocalQueue in the label {QUEUE_NAME}; {here}"));
            ("QueueMissing", format!("LocalQueue {queue} does not exist in namespace {space}"))
        } else if let Some(event) = told {
            (event.reason.as_str(), event.message.clone())
        } else {
            (
                "Pending",
                "its Workload is made by the controller of the queues, which has not done so \
                 yet"
                .to_owned(),
            )
        };
        self.because = Some((reason.to_owned(), message));
    }

    /// It for programs. What does not apply is null.
    pub(super) fn json(&self) -> Value {
        let because = self.because.as_ref();
        json!({
            "job": self.what,
            "namespace": self.namespace,
            "state": self.state,
            "summary": self.summary,
            "workload": self.workload,
            "localQueue": self.queue,
            "clusterQueue": self.cluster_queue,
            "reason": because.map(|(reason, _)| reason),
            "message": because.map(|(_, message)| message),
            "asks": self.asks,
            "position": self.place.as_ref().map(|place| {
                json!({"place": place.place, "of": place.of, "before": place.before})
            }),
            "heldBy": self.holders.iter().map(Holder::json).collect::<Vec<_>>(),
            "heldByMore": self.holders_more,
            "stage": self.stage,
            "pods": self.pods,
            "deadline": self.deadline.map(|at| at.to_string()),
            "evictions": self.evictions,
            "requeues": self.requeues,
            "retryAt": self.retry_at.map(|at| at.to_string()),
            "change": self.change,
        })
    }
}

/// How often it was evicted for what, and how it came to the last time where that is not the reason
/// why it stands where it stands.
fn evictions(workload: &Workload, now: Timestamp) -> Option<String> {
    let often = workload.evictions_words();
    let last = workload.is(EVICTED).filter(|_| workload.state() == State::Pending);
    let last = last.map(|said| {
        let ago = said.since.map(|at| format!(" {} ago", human(now.duration_since(at).as_secs())));
        format!("last{}: {}", ago.unwrap_or_default(), said.words())
    });
    let words: Vec<String> = often.into_iter().chain(last).collect();
    (!words.is_empty()).then(|| words.join("; "))
}

fn asks(workload: &Workload) -> String {
    let pods: i64 = workload.pod_sets.iter().map(|(_, count)| count).sum();
    let amounts = list(&workload.asked);
    match (amounts.as_str(), pods) {
        ("", _) => String::new(),
        (amounts, 1) => format!("{amounts} for 1 pod"),
        (amounts, pods) => format!("{amounts} for {pods} pods"),
    }
}

/// How a job ended, if it has.
fn ended(kind: &str, object: &Value) -> Option<String> {
    let (word, why) = if kind == "JobSet" {
        let set = JobSet::read(object);
        let over = matches!(set.phase, jobset::Phase::Completed | jobset::Phase::Failed);
        over.then_some((set.phase.word(), set.why))?
    } else {
        let job = Job::read(object);
        let over = matches!(job.phase, job::Phase::Complete | job::Phase::Failed);
        over.then_some((job.phase.word(), job.why))?
    };
    Some(crate::queueing::words(word, &crate::queueing::words(&why.reason, &why.message)))
}
