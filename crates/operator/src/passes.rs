//! Passes: the steps of a plan, carried out beside the task that decided on them.
//!
//! What every controller of a kind has in common. One task holds its driver. Each pass runs in a
//! task of its own, one over an object at a time; what became of its steps comes back as
//! [`News`], in the same row as what the watches tell, so that the driver knows of its own writes
//! before it plans again.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{FutureExt, StreamExt};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use lockstep_control::plan::{Event, Refusal};
use tokio::task::JoinSet;
use tracing::error;

use crate::metrics::{Metrics, QueueMetrics};
use crate::observe::Teller;
use crate::recorder::{Note, Recorder};
use crate::requests::concurrently;

/// What is particular to the passes of one controller.
pub(crate) trait Kind: Sized + 'static {
    /// What tells the objects of its passes apart.
    type Key: Ord + Clone + fmt::Display + Send + Sync + 'static;
    /// What its plans are made of.
    type Step: Send + 'static;
    /// What became of a request.
    type Answer: Send + 'static;
    /// What its steps need beside what all do.
    type Shared: Send + Sync + 'static;
    /// What the controller hears.
    type Message: From<News<Self>> + Send + 'static;

    /// What a pass is over, in lower case.
    const NAME: &'static str;

    /// The counters of its queue.
    fn queue(metrics: &Metrics) -> &QueueMetrics;

    /// Whether a step makes no request. What is told of a write that was made is part of it,
    /// however long the write took.
    fn only_tells(step: &Self::Step) -> bool;

    /// Whether a pass may go on after this.
    fn is_fine(answer: &Self::Answer) -> bool;

    /// What became of a request of which nothing more is known.
    fn failed(refusal: Refusal) -> Self::Answer;

    /// Carries out one step; false ends the pass.
    fn carry_out(pass: &Pass<Self>, step: Self::Step) -> impl Future<Output = bool> + Send;
}

/// What a pass tells.
pub(crate) enum News<K: Kind> {
    /// What became of a request.
    Answer(K::Key, Box<K::Answer>),
    /// It is over.
    Done(K::Key),
}

/// How many passes, and how much of each.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many passes may run at the same time.
    pub passes_max: usize,
    /// How many requests of one pass may be on their way at the same time.
    pub requests_max: usize,
    /// A pass that has taken this long begins no more requests; the rest is for the next one.
    pub pass_time_max: Duration,
}

/// What all passes of a controller work with.
pub(crate) struct Tools<K: Kind> {
    pub(crate) client: Client,
    pub(crate) recorder: Recorder,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) teller: Teller<K::Message>,
    pub(crate) limits: Limits,
    pub(crate) shared: K::Shared,
}

/// The passes that are under way. They end with this.
pub(crate) struct Passes<K: Kind> {
    tools: Arc<Tools<K>>,
    running: BTreeMap<K::Key, Running>,
    tasks: JoinSet<()>,
}

/// A pass that is under way.
pub(crate) struct Running {
    /// What it is over, for events.
    pub(crate) object: Arc<ObjectReference>,
    since: Instant,
    ticket: u64,
}

impl Running {
    /// How long it has been under way.
    pub(crate) fn took(&self) -> Duration {
        self.since.elapsed()
    }
}

impl<K: Kind> Passes<K> {
    pub(crate) fn new(tools: Tools<K>) -> Self {
        Self { tools: Arc::new(tools), running: BTreeMap::new(), tasks: JoinSet::new() }
    }

    /// Whether one more may begin.
    pub(crate) fn has_room(&self) -> bool {
        self.running.len() < self.tools.limits.passes_max
    }

    /// Begins a pass over an object that has been due since then. Whether it takes time: one
    /// without steps is to be ended at once.
    pub(crate) fn begin(
        &mut self,
        key: &K::Key,
        object: ObjectReference,
        due: Option<Timestamp>,
        steps: Vec<K::Step>,
    ) -> bool {
        let waited = due.map_or(0.0, |due| Timestamp::now().duration_since(due).as_secs_f64());
        let ticket = K::queue(&self.tools.metrics).started(waited.max(0.0));
        let (object, since) = (Arc::new(object), Instant::now());
        let takes_time = !steps.is_empty();
        if takes_time {
            let tools = Arc::clone(&self.tools);
            let until = since + tools.limits.pass_time_max;
            let pass = Pass { tools, until, object: Arc::clone(&object), key: key.clone() };
            self.tasks.spawn(pass.run(steps));
        }
        self.running.insert(key.clone(), Running { object, since, ticket });
        takes_time
    }

    /// Forgets a pass that is over, if it was one.
    pub(crate) fn end(&mut self, key: &K::Key) -> Option<Running> {
        while self.tasks.try_join_next().is_some() {}
        let running = self.running.remove(key)?;
        K::queue(&self.tools.metrics).finished(running.ticket);
        Some(running)
    }

    /// Tells users something about an object that a pass is over.
    pub(crate) fn record(&self, key: &K::Key, event: Event) {
        if let Some(running) = self.running.get(key) {
            self.tools.recorder.record(note(&running.object, event));
        }
    }
}

/// One pass: what its steps need.
pub(crate) struct Pass<K: Kind> {
    tools: Arc<Tools<K>>,
    /// From then on no request is begun.
    until: Instant,
    object: Arc<ObjectReference>,
    /// What it is over.
    pub(crate) key: K::Key,
}

impl<K: Kind> Pass<K> {
    /// Carries out the steps in order, up to the first that fails, and says when it is over,
    /// whatever happens: nothing is in two passes at the same time.
    async fn run(self, steps: Vec<K::Step>) {
        if AssertUnwindSafe(self.carry_out(steps)).catch_unwind().await.is_err() {
            error!(kind = K::NAME, key = %self.key, "pass panicked");
        }
        self.tools.teller.tell(News::Done(self.key).into()).await;
    }

    async fn carry_out(&self, steps: Vec<K::Step>) {
        for step in steps {
            if !K::only_tells(&step) && self.is_late() || !K::carry_out(self, step).await {
                break;
            }
        }
    }

    /// The uid of the object.
    pub(crate) fn uid(&self) -> &str {
        self.object.uid.as_deref().unwrap_or_default()
    }

    /// A client of the API.
    pub(crate) fn client(&self) -> &Client {
        &self.tools.client
    }

    /// What steps of this kind need beside what all do.
    pub(crate) fn shared(&self) -> &K::Shared {
        &self.tools.shared
    }

    /// The counters of the process.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.tools.metrics
    }

    /// Whether no more requests may be begun.
    pub(crate) fn is_late(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Tells users something about the object.
    pub(crate) fn record(&self, event: Event) {
        self.tools.recorder.record(note(&self.object, event));
    }

    /// Tells the controller what became of a request; whether the pass may go on.
    pub(crate) async fn tell(&self, answer: K::Answer) -> bool {
        let is_fine = K::is_fine(&answer);
        let news = News::Answer(self.key.clone(), Box::new(answer));
        self.tools.teller.tell(news.into()).await;
        is_fine
    }

    /// Makes requests for each of `items`, many at the same time, and tells what became of each.
    /// One that is refused does not keep the others back.
    pub(crate) async fn for_each<T, F>(&self, items: Vec<T>, requests: impl Fn(T) -> F) -> bool
    where
        F: Future<Output = Vec<K::Answer>> + Send + 'static,
    {
        let limits = (self.tools.limits.requests_max, self.until);
        let mut answers = std::pin::pin!(concurrently(items, limits, requests));
        let mut is_fine = true;
        while let Some(told) = answers.next().await {
            for answer in told.unwrap_or_else(|lost| vec![K::failed(lost)]) {
                is_fine &= self.tell(answer).await;
            }
        }
        is_fine
    }
}

fn note(object: &ObjectReference, event: Event) -> Note {
    let Event { is_warning, reason, message } = event;
    Note { regarding: object.clone(), is_warning, reason, message }
}
