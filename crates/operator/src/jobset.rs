//! The JobSet controller: hears of JobSets, their Jobs and Services, asks the driver of
//! `lockstep-control` what to do, and has it done. All that is decided is decided there.

mod carry_out;
mod in_place;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::Client;
use lockstep_api::jobset::JobSet;
use lockstep_control::plan::Key;
use lockstep_control::plan::jobset::in_place::Gang;
use lockstep_control::plan::jobset::{CONTROLLER, Ended, Event, JobSets, Options, View};
use tokio::task::JoinHandle;
use tracing::{debug, warn};

use crate::config::FeatureGates;
use crate::lease::Leadership;
use crate::metrics::Metrics;
use crate::observe::{Change, Feed, Inbox, ObjectKey};
use crate::passes::{Limits, News, Passes, Tools};
use crate::recorder::{Recorder, Reporter, reference};

use carry_out::{Answer, OfJobSets};
use in_place::Gangs;

pub use in_place::{InPlace, Keys};

/// How the JobSet controller works.
#[derive(Clone, Debug)]
pub struct JobSetOptions {
    /// What may be set about JobSets.
    pub jobsets: Options,
    /// Where it runs, for events.
    pub instance: String,
    /// Whether anything may be done. Without it everything is followed all the same.
    pub leadership: Leadership,
    /// How many passes, and how much of each.
    pub limits: Limits,
    /// What restarts in place need; without it nobody restarts there.
    pub in_place: Option<InPlace>,
}

impl Default for JobSetOptions {
    fn default() -> Self {
        let pass_time_max = Duration::from_secs(5);
        Self {
            jobsets: Options::default(),
            instance: CONTROLLER.to_owned(),
            leadership: Leadership::alone(),
            limits: Limits { passes_max: 16, requests_max: 50, pass_time_max },
            in_place: None,
        }
    }
}

impl JobSetOptions {
    /// The same, with these features.
    #[must_use]
    pub fn with_gates(mut self, gates: FeatureGates) -> Self {
        self.jobsets.gates = gates;
        self
    }
}

/// What the controller follows.
#[derive(Clone)]
pub struct Feeds {
    /// All JobSets.
    pub jobsets: Feed<JobSet>,
    /// All Jobs.
    pub jobs: Feed<Job>,
    /// All Services.
    pub services: Feed<Service>,
}

/// Starts the JobSet controller.
pub fn spawn(
    client: &Client,
    feeds: &Feeds,
    metrics: &Arc<Metrics>,
    options: JobSetOptions,
) -> JoinHandle<()> {
    let mut inbox = Inbox::new();
    inbox.listen(&feeds.jobsets, |_| true, Message::JobSet);
    inbox.listen(&feeds.jobs, |_| true, Message::Job);
    inbox.listen(&feeds.services, |_| true, Message::Service);
    let mut settings = options.jobsets;
    let gangs = options.in_place.as_ref().map(|wanted| {
        inbox.listen(&wanted.pods, in_place::is_worker, Message::Pod);
        settings.in_place = Some(wanted.wiring.clone());
        Gangs::new(client, wanted, inbox.teller(), metrics)
    });
    let reporter = Reporter {
        component: CONTROLLER.to_owned(),
        instance: options.instance.clone(),
        action: Some("Reconciling"),
    };
    let tools = Tools {
        client: client.clone(),
        recorder: Recorder::spawn_as(client.clone(), reporter),
        metrics: Arc::clone(metrics),
        teller: inbox.teller(),
        limits: options.limits,
        shared: options.in_place.map(|wanted| wanted.keys),
    };
    let controller = Controller {
        metrics: Arc::clone(metrics),
        jobsets: JobSets::new(settings),
        gangs,
        leadership: options.leadership,
        passes: Passes::new(tools),
        not_created: BTreeMap::new(),
    };
    tokio::spawn(controller.run(inbox))
}

enum Message {
    JobSet(Change<JobSet>),
    Job(Change<Job>),
    Service(Change<Service>),
    Pod(Change<Pod>),
    /// What is known of the workers of a set that restarts in place.
    Gang {
        key: Key,
        uid: String,
        seen: Arc<Gang>,
    },
    Pass(News<OfJobSets>),
}

impl From<News<OfJobSets>> for Message {
    fn from(news: News<OfJobSets>) -> Self {
        Self::Pass(news)
    }
}

struct Controller {
    metrics: Arc<Metrics>,
    jobsets: JobSets,
    gangs: Option<Gangs>,
    leadership: Leadership,
    passes: Passes<OfJobSets>,
    /// Jobs that could not be created so far in the pass over a set, and why: told together.
    not_created: BTreeMap<Key, Vec<(String, String)>>,
}

impl Controller {
    async fn run(mut self, mut inbox: Inbox<Message>) {
        loop {
            // What nobody has a hand free for is not waited for: an answer frees one. And whoever
            // does not lead has nothing to do.
            let may_begin = self.passes.has_room() && self.leadership.may_send();
            let due = self.jobsets.next_due().filter(|_| may_begin);
            let messages = tokio::select! {
                messages = inbox.next(due) => messages,
                () = self.leadership.changed() => Vec::new(),
            };
            for message in messages {
                self.hear(message);
            }
            let leads = self.leadership.may_send();
            if let Some(gangs) = &mut self.gangs
                && gangs.leads(leads)
            {
                self.jobsets.gangs_lost();
            }
            if leads {
                self.begin_passes();
            }
            self.metrics.jobset_queue.depth(self.jobsets.queue_len());
        }
    }

    fn hear(&mut self, message: Message) {
        let now = Timestamp::now();
        let jobsets = &mut self.jobsets;
        match message {
            Message::JobSet(Change::Listing) => {}
            Message::JobSet(Change::Put(jobset)) => {
                let jobset = filled_in(JobSet::clone(&jobset));
                jobsets.jobset_seen(&jobset, now);
                self.tell_gang(&jobset);
            }
            Message::JobSet(Change::Gone(object)) => {
                let (key, uid) = parts(object);
                jobsets.jobset_gone(&key, &uid);
                if let Some(gangs) = &mut self.gangs {
                    gangs.jobset_gone(&uid);
                }
            }
            Message::JobSet(Change::Synced) => jobsets.jobsets_listed(),
            Message::Job(Change::Listing) => jobsets.jobs_listing(),
            Message::Job(Change::Put(job)) => jobsets.job_seen(&job, now),
            Message::Job(Change::Gone(object)) => {
                let (key, uid) = parts(object);
                jobsets.job_gone(&key, &uid, now);
            }
            Message::Job(Change::Synced) => jobsets.jobs_listed(now),
            Message::Service(Change::Listing) => jobsets.services_listing(),
            Message::Service(Change::Put(service)) => jobsets.service_seen(&service.metadata),
            Message::Service(Change::Gone(object)) => {
                let (key, uid) = parts(object);
                jobsets.service_gone(&key, &uid, now);
            }
            Message::Service(Change::Synced) => jobsets.services_listed(now),
            Message::Pod(change) => {
                if let Some(gangs) = &mut self.gangs {
                    gangs.pod_changed(change);
                }
            }
            Message::Gang { key, uid, seen } => jobsets.gang_seen(&key, &uid, seen, now),
            Message::Pass(News::Answer(key, answer)) => self.take_in(&key, *answer, now),
            Message::Pass(News::Done(key)) => self.end_pass(&key, now),
        }
    }

    /// Tells the leader of a set's gang what is known of the set now, before it is acted on. What
    /// comes late is older than what it was told.
    fn tell_gang(&mut self, jobset: &JobSet) {
        let known = self.jobsets.view(&Key::of(&jobset.metadata)).map(View::jobset);
        if let (Some(gangs), Some(known)) = (&mut self.gangs, known)
            && known.metadata.resource_version == jobset.metadata.resource_version
        {
            gangs.jobset_seen(jobset);
        }
    }

    /// Tells the driver what became of a request, and users what they should know.
    fn take_in(&mut self, key: &Key, answer: Answer, now: Timestamp) {
        let jobsets = &mut self.jobsets;
        let event = match answer {
            Answer::StatusWritten(jobset) => {
                let jobset = filled_in(*jobset);
                let event = jobsets.status_written(key, &jobset);
                self.tell_gang(&jobset);
                event
            }
            Answer::Annotated(jobset) => {
                let jobset = filled_in(*jobset);
                jobsets.annotated(key, &jobset);
                self.tell_gang(&jobset);
                None
            }
            Answer::JobWritten(job) => {
                jobsets.job_written(key, job, now);
                None
            }
            Answer::JobDeleted(job) => {
                jobsets.job_deleted(&job, now);
                None
            }
            Answer::JobNotCreated { name, refusal, found } => {
                debug!(jobset = %key, job = %name, error = %refusal, "Job not created");
                if jobsets.job_not_created(key, &refusal, found, now) {
                    let told = self.not_created.entry(key.clone()).or_default();
                    told.push((name, refusal.message));
                }
                None
            }
            Answer::JobNotWritten(job, refusal) => {
                debug!(jobset = %key, job = %job.name, error = %refusal, "Job not changed");
                jobsets.job_not_written(key, &job, &refusal, now)
            }
            Answer::ServiceCreated(service) => {
                jobsets.service_created(key, &service);
                None
            }
            Answer::ServiceNotCreated(refusal, found) => {
                jobsets.service_not_created(key, &refusal, found.as_deref())
            }
            Answer::ClaimCreated(name) => {
                jobsets.claim_created(key, &name);
                None
            }
            Answer::ClaimsNotCreated(refusals) => jobsets.claims_not_created(key, &refusals),
            Answer::Failed(refusal) => {
                debug!(jobset = %key, error = %refusal, "step failed");
                jobsets.failed(key, &refusal, now)
            }
        };
        if let Some(event) = event {
            self.passes.record(key, event);
        }
    }

    /// Starts passes over what is due, as many as may run at the same time.
    fn begin_passes(&mut self) {
        while self.passes.has_room() {
            let now = Timestamp::now();
            let due = self.jobsets.next_due();
            let Some((key, plan)) = self.jobsets.next(now) else { return };
            let Some(view) = self.jobsets.view(&key) else { continue };
            if let Some(waiting) = &plan.waiting {
                debug!(jobset = %key, %waiting, "nothing to do");
            }
            if !self.passes.begin(&key, reference(view.jobset()), due, plan.steps) {
                self.end_pass(&key, now);
            }
        }
    }

    fn end_pass(&mut self, key: &Key, now: Timestamp) {
        if let Some(not_created) = self.not_created.remove(key) {
            let event = Event::jobs_not_created(&not_created);
            warn!(jobset = %key, error = %event.message, "Jobs not created, trying again");
            self.passes.record(key, event);
        }
        let ended = self.jobsets.done(key, now);
        let Some(running) = self.passes.end(key) else { return };
        if let Some(ended) = ended {
            if ended == Ended::Error {
                self.metrics.jobset_queue.retried();
            }
            self.metrics.jobsets.reconciled(ended, running.took());
        }
    }
}

/// A set as a webhook would have made it: where there is none, nobody has filled it in.
fn filled_in(mut jobset: JobSet) -> JobSet {
    jobset.fill_in();
    jobset
}

fn parts(object: ObjectKey) -> (Key, String) {
    let ObjectKey { namespace, name, uid } = object;
    (Key { namespace, name }, uid)
}
