//! What the attempts of a JobSet came to: which Job failed, why, and which rule answered.

use std::collections::{BTreeMap, VecDeque};

use lockstep_api::{
    jobset::{InPlaceWorkers, RestartRecord, names},
    reasons::jobset::{FAILURE_POLICY_PREFIX, IN_PLACE_RESTART_FAILED, RESTARTING},
};

use super::JobSet;
use crate::run::{job::Why, member::Member};

/// How many restarts are remembered. A JobSet may restart for ever.
const REMEMBERED: usize = 100;

/// How many failures are remembered: those of the last restarts, and some more.
const FAILURES_MAX: usize = 20 * REMEMBERED;

/// A Job that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The replicated job it is of.
    pub(crate) group: String,
    /// What it failed of.
    pub(crate) why: Why,
}

/// A restart, and what led to it as far as that was told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Restart {
    /// The attempt that was ended by it: `0`.
    pub(crate) attempt: i32,
    /// The Job that failed; empty when nobody said.
    pub(crate) job: String,
    /// The name of the rule that matched, if one did.
    pub(crate) rule: Option<String>,
    /// What is done.
    pub(crate) action: String,
    /// The Jobs that start again; nothing when all do.
    pub(crate) jobs: Vec<String>,
    /// Why the Job failed, if whoever decided wrote it down.
    pub(crate) reason: String,
    /// What had happened to the worker that could not be restarted in place.
    pub(crate) message: String,
}

impl Restart {
    /// A restart of the whole set, or of Jobs that are still to be said.
    fn of(record: &RestartRecord) -> Self {
        Self {
            attempt: record.attempt,
            job: record.job.clone(),
            rule: Some(record.rule.clone()).filter(|rule| !rule.is_empty()),
            action: record.action.clone(),
            jobs: Vec::new(),
            reason: record.reason.clone(),
            message: record.message.clone(),
        }
    }

    /// Whether all Jobs are made anew because the workers could not be restarted in place.
    fn is_recreation(&self) -> bool {
        self.reason == IN_PLACE_RESTART_FAILED
    }
}

/// What is remembered of earlier attempts.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// The last restarts, in order.
    pub(crate) restarts: VecDeque<Restart>,
    /// How many came before those.
    pub(crate) forgotten: usize,
    /// Which Jobs failed, by name and attempt.
    failures: BTreeMap<(String, String), Failure>,
    /// The same names and attempts, in the order in which they were heard of.
    heard: VecDeque<(String, String)>,
    /// What was told last of what its workers wait for.
    pub(crate) wait_told: String,
    /// What was said of its workers when they were in another phase: nobody may have looked since.
    pub(super) workers_before: Vec<InPlaceWorkers>,
    /// How many restarts of the set's own are in its count of all, if that was followed.
    pub(super) own_in_count: Option<i64>,
}

impl History {
    /// Takes note of a Job that failed.
    pub(crate) fn failed(&mut self, job: &str, member: &Member, why: &Why) {
        let failure = Failure { group: member.group.clone(), why: why.clone() };
        let key = (job.to_owned(), member.attempt_words());
        if self.failures.insert(key.clone(), failure).is_none() {
            self.heard.push_back(key);
        }
        // Of those before the last restarts nobody asks any more.
        while self.failures.len() > FAILURES_MAX
            && let Some(oldest) = self.heard.pop_front()
        {
            self.failures.remove(&oldest);
        }
    }

    /// What a Job failed of, the last time.
    pub(crate) fn failure(&self, job: &str) -> Option<&Failure> {
        let first = (job.to_owned(), String::new());
        let of_job = self.failures.range(first..).take_while(|((name, _), _)| name == job);
        of_job.max_by_key(|((_, attempt), _)| numbers(attempt)).map(|(_, failure)| failure)
    }

    /// What a Job failed of in an attempt.
    fn failure_in(&self, job: &str, attempt: i32) -> Option<&Failure> {
        let is_in = |words: &str| numbers(words).0 == i64::from(attempt);
        let first = (job.to_owned(), String::new());
        let of_job = self.failures.range(first..).take_while(|((name, _), _)| name == job);
        of_job
            .filter(|((_, words), _)| is_in(words))
            .max_by_key(|((_, attempt), _)| numbers(attempt))
            .map(|(_, failure)| failure)
    }

    fn add(&mut self, restart: Restart) {
        self.restarts.push_back(restart);
        if self.restarts.len() > REMEMBERED {
            self.restarts.pop_front();
            self.forgotten += 1;
        }
    }
}

/// `2.1` as numbers, which sort as attempts do.
fn numbers(attempt: &str) -> (i64, i64) {
    let (whole, alone) = attempt.split_once('.').unwrap_or((attempt, "0"));
    (whole.parse().unwrap_or_default(), alone.parse().unwrap_or_default())
}

impl JobSet {
    /// Goes on from what was known before: what has been restarted since, in order.
    pub(crate) fn go_on_from(&mut self, before: &Self) -> Vec<Restart> {
        self.history = before.history.clone();
        self.note_own_in_count(before);
        if let Some((now, before)) = self.in_place().zip(before.in_place())
            && (now.epoch, &now.phase) != (before.epoch, &before.phase)
        {
            self.history.workers_before = before.workers.clone();
        }
        let mut new = self.whole_restarts(before);
        new.extend(self.single_restarts(before));
        new.iter().for_each(|restart| self.history.add(restart.clone()));
        new
    }

    fn whole_restarts(&self, before: &Self) -> Vec<Restart> {
        let (from, to) = (before.status.restarts, self.status.restarts);
        let restart = |attempt: i32| {
            let of_all = |record: &&RestartRecord| {
                record.action.starts_with("RestartJobSet")
                    || record.reason == IN_PLACE_RESTART_FAILED
            };
            let record = self.records(attempt).find(of_all);
            record.map_or_else(|| Restart { attempt, ..Restart::default() }, Restart::of)
        };
        let mut restarts: Vec<Restart> = (from..to).map(restart).collect();
        // A controller that keeps no records tells of the last one only.
        if let (Some(last), Some(condition)) = (restarts.last_mut(), self.condition(RESTARTING)) {
            let rule = condition.reason.strip_prefix(FAILURE_POLICY_PREFIX);
            if let Some((action, job)) = told(&condition.message).filter(|_| last.job.is_empty()) {
                last.rule = rule.map(ToOwned::to_owned);
                last.action = action.to_owned();
                last.job = job.to_owned();
            }
        }
        restarts
    }

    /// Restarts of single Jobs, which no condition tells of.
    fn single_restarts(&self, before: &Self) -> Vec<Restart> {
        let mut restarts = Vec::new();
        for entry in &self.status.replicated_jobs_status {
            let old = before.counts(&entry.name).map(|old| old.job_restarts.as_slice());
            let old = old.unwrap_or_default();
            let grown = entry.job_restarts.iter().enumerate().filter_map(|(index, count)| {
                let has_grown = *count > old.get(index).copied().unwrap_or_default();
                let index = i64::try_from(index).unwrap_or_default();
                has_grown.then(|| names::job(&self.name, &entry.name, index))
            });
            let jobs: Vec<String> = grown.collect();
            let attempt = self.status.restarts;
            let failed = jobs.iter().find(|job| self.history.failure_in(job, attempt).is_some());
            let Some(job) = failed.or_else(|| jobs.first()).cloned() else { continue };
            let record = self.records(attempt).filter(|record| jobs.contains(&record.job)).last();
            if let Some(record) = record {
                restarts.push(Restart { jobs, ..Restart::of(record) });
                continue;
            }
            let rule = self.rule_for(&job).map(|(_, rule)| rule);
            restarts.push(Restart {
                attempt,
                rule: rule.map(|rule| rule.name.clone()),
                action: rule.map(|rule| rule.action.as_str()).unwrap_or_default().to_owned(),
                job,
                jobs,
                ..Restart::default()
            });
        }
        restarts
    }

    /// What was written down about restarts of an attempt.
    fn records(&self, attempt: i32) -> impl Iterator<Item = &RestartRecord> {
        let records = self.status.lockstep.iter().flat_map(|own| &own.last_restarts);
        records.filter(move |record| record.attempt == attempt)
    }

    /// The Job that a message of the controller names, if it names one.
    pub(crate) fn first_failed(message: &str) -> Option<&str> {
        message.rsplit_once("(first failed job: ")?.1.strip_suffix(')')
    }

    /// A restart in one line: `job/j failed (BackoffLimitExceeded): rule r says RestartJobSet`.
    pub(crate) fn restart_words(&self, restart: &Restart) -> String {
        if restart.is_recreation() {
            return recreation_words(&restart.message);
        }
        if restart.job.is_empty() {
            return "a Job failed".to_owned();
        }
        let known = self.history.failure_in(&restart.job, restart.attempt);
        let why = match known.map_or(&restart.reason, |failure| &failure.why.reason).as_str() {
            "" => String::new(),
            reason => format!(" ({reason})"),
        };
        let rule = match &restart.rule {
            Some(rule) => format!("rule {rule} says {}", restart.action),
            None if restart.action.is_empty() => "it starts again".to_owned(),
            None => format!("no rule matches, so {}", restart.action),
        };
        format!("job/{} failed{why}: {rule}", restart.job)
    }
}

/// Why all Jobs are made anew: `w-0-3 exited with code 1, and not all workers came back in place`.
pub(crate) fn recreation_words(message: &str) -> String {
    let why = "not all workers came back in place";
    // What happened to its pod is no sentence about the worker.
    let message = message.replacen(" its ", ": its ", 1);
    if message.is_empty() { why.to_owned() } else { format!("{message}, and {why}") }
}

/// Action and Job of `applying A failure policy action (first failed job: J)`.
fn told(message: &str) -> Option<(&str, &str)> {
    let (action, _) = message.strip_prefix("applying ")?.split_once(' ')?;
    Some((action, JobSet::first_failed(message)?))
}
