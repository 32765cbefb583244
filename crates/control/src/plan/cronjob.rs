//! CronJobs: which Jobs they start when, and which ones they clean up.
//!
//! One pass looks at one CronJob and the Jobs it controls. Names of Jobs are made from the time
//! they stand for, so a start that is carried out twice comes to one Job.

mod due;
mod job;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{CronJob, CronJobSpec, CronJobStatus, Job};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use lockstep_api::cron::{self, Schedule};

use super::Event;
use due::{Due, Missed};
use job::{end_of, is_own, name_at, scheduled_at};

pub use job::reference;

/// How long after its time a CronJob is looked at: clocks differ a little.
const AFTER: SignedDuration = SignedDuration::from_millis(100);

/// What is there.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The CronJob.
    pub cron: &'a CronJob,
    /// All Jobs that it controls.
    pub jobs: &'a [&'a Job],
}

/// One thing for a shell to carry out. Carrying it out twice is harmless.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Deletes a Job with its pods.
    Delete {
        /// Its name.
        name: String,
        /// Its uid.
        uid: String,
        /// What to tell when it is done.
        done: Event,
    },
    /// Creates a Job, then writes the status with a reference to it.
    Start {
        /// The Job.
        job: Box<Job>,
        /// The status, without the Job.
        status: Box<CronJobStatus>,
        /// What to tell when it is created.
        done: Event,
    },
    /// Writes the status.
    Record(Box<CronJobStatus>),
}

/// Why nothing is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// It is being deleted.
    Deleted,
    /// It is suspended.
    Suspended,
    /// Its schedule or its time zone says nothing.
    NoSchedule,
    /// Its next time has not come.
    Time,
    /// Its last time was too long ago.
    Missed,
    /// Its last Job still runs, and may not be joined.
    Active,
}

/// The outcome of one planning pass.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "a plan does nothing until a shell applies it"]
pub struct Plan {
    /// What to do, in this order; what follows a step that failed is left for the next pass.
    pub steps: Vec<Step>,
    /// What to tell about the CronJob.
    pub events: Vec<Event>,
    /// When to plan again, whatever happens.
    pub wake_at: Option<Timestamp>,
    /// Why no Job is started.
    pub waiting: Option<Waiting>,
}

/// Plans one pass over a CronJob.
pub fn plan(view: View<'_>, now: Timestamp) -> Plan {
    let spec = &view.cron.spec;
    let before = view.cron.status.clone().unwrap_or_default();
    let mut pass = Pass { view, spec, status: before.clone(), plan: Plan::default() };
    pass.clean_up();
    pass.follow_jobs();
    pass.forget_missing();
    let started = match pass.schedule() {
        Ok(schedule) => pass.start(&schedule, now),
        Err(waiting) => Err(waiting),
    };
    let Pass { mut plan, status, .. } = pass;
    match started {
        Ok(start) => plan.steps.push(start(status)),
        Err(waiting) => {
            plan.waiting = Some(waiting);
            if status != before {
                plan.steps.push(Step::Record(Box::new(status)));
            }
        }
    }
    plan
}

struct Pass<'a> {
    view: View<'a>,
    spec: &'a CronJobSpec,
    status: CronJobStatus,
    plan: Plan,
}

impl Pass<'_> {
    /// Deletes the oldest of the Jobs that have ended, beyond those that are to be kept.
    fn clean_up(&mut self) {
        let limits = [
            ("Complete", self.spec.successful_jobs_history_limit),
            ("Failed", self.spec.failed_jobs_history_limit),
        ];
        for (end, limit) in limits {
            let Some(limit) = limit else { continue };
            let limit = usize::try_from(limit).unwrap_or_default();
            let is_old =
                |job: &&&Job| job.metadata.deletion_timestamp.is_none() && end_of(job) == Some(end);
            let mut ended: Vec<&Job> = self.view.jobs.iter().filter(is_old).copied().collect();
            ended.sort_by_key(|job| {
                let start = job.status.as_ref().and_then(|status| status.start_time.as_ref());
                // Those that never started come last.
                (start.is_none(), start.map(|start| start.0), job.metadata.name.clone())
            });
            for job in ended.iter().take(ended.len().saturating_sub(limit)) {
                self.delete(job);
            }
        }
    }

    fn delete(&mut self, job: &Job) {
        let name = job.metadata.name.clone().unwrap_or_default();
        let uid = job.metadata.uid.clone().unwrap_or_default();
        self.forget(&uid);
        let done = Event::normal("SuccessfulDelete", format!("Deleted job {name}"));
        self.plan.steps.push(Step::Delete { name, uid, done });
    }

    /// Notes which Jobs have ended, and when the last one succeeded.
    fn follow_jobs(&mut self) {
        for job in self.view.jobs {
            let uid = job.metadata.uid.as_deref().unwrap_or_default();
            let name = job.metadata.name.as_deref().unwrap_or_default();
            match end_of(job) {
                // A Job that has met its success criteria may still have pods: only the end counts.
                Some(end) => {
                    if self.forget(uid) {
                        let text = format!("Saw completed job: {name}, condition: {end}");
                        self.plan.events.push(Event::normal("SawCompletedJob", text));
                    }
                    if end == "Complete" {
                        self.note_success(job);
                    }
                }
                None if self.is_active(uid) => {}
                None if is_own(self.view.cron, job) => self.adopt(job),
                None => {
                    let text =
                        format!("Saw a job that the controller did not create or forgot: {name}");
                    self.plan.events.push(Event::warning("UnexpectedJob", text));
                }
            }
        }
    }

    fn note_success(&mut self, job: &Job) {
        let completed = job.status.as_ref().and_then(|status| status.completion_time.clone());
        let last = &mut self.status.last_successful_time;
        if completed.as_ref().map(|time| time.0) > last.as_ref().map(|time| time.0) {
            *last = completed;
        }
    }

    /// Takes in a Job that was started just before somebody failed to write that down.
    fn adopt(&mut self, job: &Job) {
        self.status.active.get_or_insert_default().push(reference(job));
        let at = scheduled_at(job);
        let last = self.status.last_schedule_time.as_ref().map(|time| time.0);
        if at > last {
            self.status.last_schedule_time = at.map(Time);
        }
    }

    /// Forgets Jobs that are gone.
    fn forget_missing(&mut self) {
        let is_there =
            |uid: &str| self.view.jobs.iter().any(|job| job.metadata.uid.as_deref() == Some(uid));
        let missing: Vec<(String, String)> = self
            .active()
            .filter(|(_, uid)| !is_there(uid))
            .map(|(name, uid)| (name.to_owned(), uid.to_owned()))
            .collect();
        for (name, uid) in missing {
            self.forget(&uid);
            let text = format!("Active job went missing: {name}");
            self.plan.events.push(Event::normal("MissingJob", text));
        }
    }

    /// The schedule, if there is one to go by.
    fn schedule(&mut self) -> Result<Schedule, Waiting> {
        if self.view.cron.metadata.deletion_timestamp.is_some() {
            return Err(Waiting::Deleted);
        }
        let text = self.spec.schedule.as_str();
        let zone = self.spec.time_zone.as_deref();
        if let Some(zone) = zone.filter(|zone| cron::zone(zone).is_none()) {
            let text = format!("invalid timeZone: {zone:?}: unknown time zone {zone}");
            self.plan.events.push(Event::warning("UnknownTimeZone", text));
            return Err(Waiting::NoSchedule);
        }
        if self.spec.suspend == Some(true) {
            return Err(Waiting::Suspended);
        }
        let has_own_zone = text.contains("TZ");
        if has_own_zone {
            let text = format!(
                "CRON_TZ or TZ used in schedule {text:?} is not officially supported, see \
                 https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more \
                 details"
            );
            self.plan.events.push(Event::warning("UnsupportedSchedule", text));
        }
        Schedule::parse(text, zone.filter(|_| !has_own_zone)).map_err(|error| {
            let text = format!("unparseable schedule: {text:?} : {error}");
            self.plan.events.push(Event::warning("UnparseableSchedule", text));
            Waiting::NoSchedule
        })
    }

    /// The Job of the last time that has come, unless something is in its way.
    fn start(
        &mut self,
        schedule: &Schedule,
        now: Timestamp,
    ) -> Result<impl FnOnce(CronJobStatus) -> Step + use<>, Waiting> {
        let due = Due::of(self.view.cron, &self.status, now, schedule);
        let Due { at, missed } = due.map_err(|error| self.invalid(error))?;
        self.plan.wake_at = self.next(schedule, now);
        let Some(at) = at else { return Err(Waiting::Time) };
        if missed == Missed::Many {
            let text = "too many missed start times. Set or decrease \
                        .spec.startingDeadlineSeconds or check clock skew";
            self.plan.events.push(Event::warning("TooManyMissedTimes", text));
        }
        if let Some(limit) = self.spec.starting_deadline_seconds
            && at.saturating_add(SignedDuration::from_secs(limit)).unwrap_or(Timestamp::MAX) < now
        {
            let time = at.strftime("%a, %d %b %Y %H:%M:%S +0000");
            let text = format!("Missed scheduled time to start a job: {time}");
            self.plan.events.push(Event::warning("MissSchedule", text));
            return Err(Waiting::Missed);
        }
        let name = name_at(self.view.cron, at);
        let is_done = self.status.last_schedule_time.as_ref().is_some_and(|last| last.0 == at);
        if is_done || self.active().any(|(active, _)| active == name) {
            return Err(Waiting::Time);
        }
        let is_running = self.active().next().is_some();
        match self.spec.concurrency_policy.as_deref() {
            Some("Forbid") if is_running => {
                let text = "Not starting job because prior execution is running and concurrency \
                            policy is Forbid";
                self.plan.events.push(Event::normal("JobAlreadyActive", text));
                return Err(Waiting::Active);
            }
            Some("Replace") => self.replace_active(),
            _ => {}
        }
        self.status.last_schedule_time = Some(Time(at));
        // From now on the next time counts from this one.
        self.plan.wake_at = self.next(schedule, now);
        let job = Box::new(job::of_template(self.view.cron, self.spec, at));
        let done = Event::normal("SuccessfulCreate", format!("Created job {name}"));
        Ok(move |status| Step::Start { job, status: Box::new(status), done })
    }

    /// Deletes the Jobs that still run.
    fn replace_active(&mut self) {
        let is_active =
            |job: &&&Job| self.is_active(job.metadata.uid.as_deref().unwrap_or_default());
        let running: Vec<&Job> = self.view.jobs.iter().filter(is_active).copied().collect();
        for job in running {
            self.delete(job);
        }
    }

    fn next(&self, schedule: &Schedule, now: Timestamp) -> Option<Timestamp> {
        due::next(self.view.cron, &self.status, now, schedule)?.checked_add(AFTER).ok()
    }

    fn invalid(&mut self, error: &'static str) -> Waiting {
        let text = format!("invalid schedule: {} : {error}", self.spec.schedule);
        self.plan.events.push(Event::warning("InvalidSchedule", text));
        Waiting::NoSchedule
    }

    /// Names and uids of the Jobs that run, as far as is known.
    fn active(&self) -> impl Iterator<Item = (&str, &str)> {
        let active = self.status.active.iter().flatten();
        active.map(|it| {
            (it.name.as_deref().unwrap_or_default(), it.uid.as_deref().unwrap_or_default())
        })
    }

    fn is_active(&self, uid: &str) -> bool {
        self.active().any(|(_, active)| active == uid)
    }

    /// Takes a Job off the list of those that run; whether it was on it.
    fn forget(&mut self, uid: &str) -> bool {
        let Some(active) = &mut self.status.active else { return false };
        let before = active.len();
        active.retain(|it| it.uid.as_deref() != Some(uid));
        let was_there = active.len() < before;
        if active.is_empty() {
            self.status.active = None;
        }
        was_there
    }
}

#[cfg(test)]
mod tests;
