//! Jobs that have ended go after their time to live.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;

use std::collections::BTreeMap;

use crate::engine::{Backoff, WorkQueue};
use crate::plan::job::{Key, Options, conditions};

/// When a Job goes by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// Never: it has not ended, has no time to live, or is going already.
    Never,
    /// At this moment.
    At(Timestamp),
    /// Nobody knows: it has ended, but does not say when.
    Unknown,
}

/// Says when a Job goes by itself. Who manages it does not matter.
pub fn expiry(job: &Job) -> Expiry {
    let seconds = job.spec.as_ref().and_then(|spec| spec.ttl_seconds_after_finished);
    let (Some(seconds), None) = (seconds, &job.metadata.deletion_timestamp) else {
        return Expiry::Never;
    };
    let Some(condition) = conditions::finished(job) else { return Expiry::Never };
    let Some(finished) = &condition.last_transition_time else { return Expiry::Unknown };
    let ttl = SignedDuration::from_secs(i64::from(seconds));
    finished.0.saturating_add(ttl).map_or(Expiry::Unknown, Expiry::At)
}

/// The driver of the clean-up: which Jobs are to be deleted now.
///
/// The shell tells it of Jobs as they are seen and asks [`Ttls::next`]. What that hands out it
/// reads from the API itself, asks [`expiry`] again, and if the time has come deletes the Job with
/// foreground propagation and its uid; then it says [`Ttls::done`] or [`Ttls::failed`].
#[derive(Clone, Debug)]
pub struct Ttls {
    due: BTreeMap<Key, Timestamp>,
    queue: WorkQueue<Key>,
    backoff: Backoff<Key>,
}

impl Ttls {
    /// A clean-up that knows of no Jobs.
    pub fn new(options: &Options) -> Self {
        Self {
            due: BTreeMap::new(),
            queue: WorkQueue::new(),
            backoff: Backoff::new(options.api_backoff_base, options.api_backoff_max),
        }
    }

    /// Notes a version of a Job.
    pub fn job_seen(&mut self, job: &Job, now: Timestamp) {
        let meta = &job.metadata;
        let (namespace, name) = (meta.namespace.clone(), meta.name.clone());
        let key = Key { namespace: namespace.unwrap_or_default(), name: name.unwrap_or_default() };
        self.queue.remove(&key);
        let at = match expiry(job) {
            Expiry::Never => {
                self.due.remove(&key);
                return;
            }
            Expiry::At(at) => at,
            Expiry::Unknown => now,
        };
        self.due.insert(key.clone(), at);
        self.queue.add(key, at);
    }

    /// Notes that a Job is gone.
    pub fn job_gone(&mut self, key: &Key) {
        self.due.remove(key);
        self.queue.remove(key);
        self.backoff.succeeded(key);
    }

    /// A Job whose time has come, and when it came.
    pub fn next(&mut self, now: Timestamp) -> Option<(Key, Timestamp)> {
        loop {
            let key = self.queue.take_due(now)?;
            let due = self.due.get(&key).copied();
            if let Some(at) = due.filter(|at| *at <= now) {
                return Some((key, at));
            }
            self.queue.done(&key);
            // Its time was put off while it was looked at.
            if let Some(at) = due {
                self.queue.add(key, at);
            }
        }
    }

    /// The Job was deleted, or is not to be deleted after all; its next version tells when it is.
    pub fn done(&mut self, key: &Key) {
        self.queue.done(key);
        self.backoff.succeeded(key);
    }

    /// The Job could not be read or deleted, or does not say when it ended.
    pub fn failed(&mut self, key: &Key, now: Timestamp) {
        self.queue.done(key);
        let delay = SignedDuration::try_from(self.backoff.failed(key)).unwrap_or_default();
        if self.due.contains_key(key) {
            self.queue.add(key.clone(), now.saturating_add(delay).unwrap_or(Timestamp::MAX));
        }
    }

    /// When the shell should ask again.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.queue.next_due()
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn job(ttl: Option<i32>, conditions: &Value) -> Job {
        Job::deserialize(json!({"metadata": {"name": "j", "namespace": "ns"},
            "spec": {"ttlSecondsAfterFinished": ttl, "template": {}},
            "status": {"conditions": conditions}}))
        .unwrap()
    }

    fn ended(kind: &str) -> Value {
        let time = at(1000).to_string();
        json!([{"type": "Suspended", "status": "True", "lastTransitionTime": at(1).to_string()},
            {"type": kind, "status": "True", "lastTransitionTime": time}])
    }

    // rule: job 1.8
    #[test]
    fn jobs_expire_after_they_ended() {
        let timeless = json!([{"type": "Failed", "status": "True"}]);
        let cases = [
            ("no time to live", job(None, &ended("Complete")), Expiry::Never),
            ("not ended", job(Some(5), &ended("SuccessCriteriaMet")), Expiry::Never),
            ("complete", job(Some(5), &ended("Complete")), Expiry::At(at(1005))),
            ("failed", job(Some(0), &ended("Failed")), Expiry::At(at(1000))),
            ("no time known", job(Some(5), &timeless), Expiry::Unknown),
        ];
        for (name, job, want) in cases {
            assert_eq!(expiry(&job), want, "{name}");
        }
        let mut going = job(Some(5), &ended("Failed"));
        going.metadata.deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(2)));
        assert_eq!(expiry(&going), Expiry::Never);
        let mut external = job(Some(5), &ended("Complete"));
        external.spec.as_mut().unwrap().managed_by = Some("example.com/other".into());
        assert_eq!(expiry(&external), Expiry::At(at(1005)), "whoever manages it");
    }

    // rule: job 1.8
    #[test]
    fn the_time_to_live_may_change_and_failures_are_tried_again() {
        let mut ttls = Ttls::new(&Options::default());
        ttls.job_seen(&job(Some(50), &ended("Complete")), at(1000));
        assert_eq!(ttls.next_due(), Some(at(1050)));
        ttls.job_seen(&job(Some(500), &ended("Complete")), at(1001));
        assert_eq!(ttls.next(at(1100)), None, "put off");
        ttls.job_seen(&job(Some(20), &ended("Complete")), at(1002));
        let (key, due) = ttls.next(at(1100)).unwrap();
        assert_eq!((key.name.as_str(), due), ("j", at(1020)));
        ttls.failed(&key, at(1100));
        assert_eq!(ttls.next_due(), Some(at(1101)));
        assert_eq!(ttls.next(at(1101)), Some((key.clone(), at(1020))));
        // Looked at, it is put off twice: first for a moment, then for long.
        ttls.job_seen(&job(Some(1), &ended("Complete")), at(1101));
        ttls.job_seen(&job(Some(500), &ended("Complete")), at(1101));
        ttls.done(&key);
        assert_eq!(ttls.next(at(1102)), None, "not yet");
        assert_eq!(ttls.next_due(), Some(at(1500)), "and not forgotten");
        assert_eq!(ttls.next(at(1500)), Some((key.clone(), at(1500))));
        ttls.done(&key);
        assert_eq!(ttls.next_due(), None);
        ttls.job_seen(&job(Some(1), &ended("Failed")), at(1002));
        ttls.job_gone(&key);
        assert_eq!(ttls.next(at(2000)), None);
    }
}
