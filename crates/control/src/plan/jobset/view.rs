//! One JobSet and its Jobs as they were seen last.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use k8s_openapi::{api::batch::v1::Job, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use lockstep_api::{
    Gates,
    jobset::{EndedJobs, FailurePolicyRule, JobSet, JobSetStatus, MessagePatterns},
};

use super::{
    Bucket, Child, Outcome, beyond,
    in_place::{self, Gang},
};

/// One JobSet and its Jobs. Jobs are counted when they or the attempt change, so that a pass costs
/// what changed.
#[derive(Clone, Debug)]
pub struct View {
    jobset: JobSet,
    status: JobSetStatus,
    gates: Gates,
    children: BTreeMap<String, Child>,
    buckets: BTreeMap<Bucket, BTreeSet<String>>,
    /// Of this attempt, by replicated job.
    counts: BTreeMap<String, Counts>,
    /// How many Jobs of any attempt there are, by replicated job.
    known: BTreeMap<String, i32>,
    /// Jobs that have ended and go away by themselves.
    fleeting: BTreeSet<String>,
    /// Jobs that belong nowhere, and why.
    odd: BTreeMap<String, String>,
    has_service: bool,
    claims: BTreeSet<String>,
    /// What is known of the workers, if they restart in place.
    gang: Option<Arc<Gang>>,
    /// Those of each rule of the failure policy. Most sets never ask for them.
    patterns: OnceLock<Vec<MessagePatterns>>,
    /// Whether the API keeps what JobSet does not have.
    keeps_beyond: bool,
    /// Moves with everything that is news.
    revision: u64,
}

/// How many Jobs of a replicated job there are, of this attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) ready: i32,
    pub(super) succeeded: i32,
    pub(super) failed: i32,
    pub(super) active: i32,
    pub(super) suspended: i32,
    /// Those of the ready ones that are suspended: their pods are about to end.
    pub(super) halted: i32,
}

impl View {
    /// A set of which no Job was seen yet.
    pub fn new(jobset: JobSet, gates: Gates) -> Self {
        let status = jobset.status.clone().unwrap_or_default();
        let ended = beyond::ended(&jobset, &status);
        let mut view = Self {
            jobset,
            status,
            gates,
            children: BTreeMap::new(),
            buckets: BTreeMap::new(),
            counts: BTreeMap::new(),
            known: BTreeMap::new(),
            fleeting: BTreeSet::new(),
            odd: BTreeMap::new(),
            has_service: false,
            claims: BTreeSet::new(),
            gang: None,
            patterns: OnceLock::new(),
            keeps_beyond: true,
            revision: 0,
        };
        ended.into_iter().for_each(|child| view.count_in(child));
        view
    }

    /// Takes a version of the set; older ones than known, and the known one, are ignored. Says
    /// whether it was news.
    pub fn jobset_seen(&mut self, jobset: JobSet) -> bool {
        if !is_newer(&jobset.metadata, &self.jobset.metadata) {
            return false;
        }
        self.revision += 1;
        let status = jobset.status.clone().unwrap_or_default();
        let is_same = is_same_attempt(&self.jobset, &self.status, &jobset, &status);
        let has_more_ended = ended_jobs(&self.status) != ended_jobs(&status);
        if self.jobset.spec.failure_policy != jobset.spec.failure_policy {
            self.patterns = OnceLock::new();
        }
        self.status = status;
        self.jobset = jobset;
        if is_same {
            if has_more_ended {
                self.take_ended();
            }
            return true;
        }
        // A claim that somebody has taken away is looked for with each attempt.
        self.claims.clear();
        self.buckets.clear();
        self.counts.clear();
        self.known.clear();
        self.fleeting.clear();
        self.odd.clear();
        let children = std::mem::take(&mut self.children);
        children.into_values().for_each(|child| self.count_in(child));
        self.take_ended();
        true
    }

    /// Counts Jobs that somebody else has seen end, and that are gone before they were seen here.
    fn take_ended(&mut self) {
        for child in beyond::ended(&self.jobset, &self.status) {
            if !self.children.contains_key(child.name()) {
                self.count_in(child);
            }
        }
    }

    /// Takes a version of a Job of the set; older ones than known, and the known one, are ignored.
    /// Says whether it was news.
    pub fn job_seen(&mut self, job: Arc<Job>) -> bool {
        let child = Child::of(job);
        let name = child.name().to_owned();
        let known = self.children.get(&name);
        if known.is_some_and(|known| !is_newer(&child.job.metadata, &known.job.metadata)) {
            return false;
        }
        self.revision += 1;
        self.count_out(&name);
        self.count_in(child);
        true
    }

    /// The Job of this name and uid is gone. One that has ended, and that its own time to live has
    /// taken away, still counts. Says whether it was news.
    pub fn job_gone(&mut self, name: &str, uid: &str, now: Timestamp) -> bool {
        let known = self.children.get(name).and_then(|child| child.job.metadata.uid.as_deref());
        if known != Some(uid) {
            return false;
        }
        self.revision += 1;
        let Some(mut child) = self.count_out(name) else { return true };
        if child.outcome == Outcome::Running {
            // Its end may be known from whoever led before, who saw what was not told here.
            let mut ended = beyond::ended(&self.jobset, &self.status).into_iter();
            if let Some(known) = ended.find(|known| known.name() == name) {
                self.count_in(known);
            }
        } else if child.is_fleeting() && child.is_expired(now) {
            child.is_gone = true;
            self.count_in(child);
        }
        true
    }

    /// Whether there is a Service of the set's subdomain.
    pub fn service_seen(&mut self, is_there: bool) {
        self.revision += u64::from(self.has_service != is_there);
        self.has_service = is_there;
    }

    /// There is a volume claim of this name.
    pub fn claim_seen(&mut self, name: &str) {
        self.revision += u64::from(self.claims.insert(name.to_owned()));
    }

    /// What is known of the workers of a set that restarts in place. Says whether it was news.
    pub fn gang_seen(&mut self, gang: Arc<Gang>) -> bool {
        let is_news = self.gang.as_ref() != Some(&gang);
        self.revision += u64::from(is_news);
        self.gang = Some(gang);
        is_news
    }

    /// What was known of its workers may be old by now.
    pub fn gang_lost(&mut self) {
        self.revision += u64::from(self.gang.take().is_some());
    }

    /// What is known of its workers, if they restart in place.
    pub(super) fn gang(&self) -> Option<&Gang> {
        self.gang.as_deref()
    }

    /// Whether it has Jobs, of any attempt.
    pub(super) fn has_children(&self) -> bool {
        !self.children.is_empty()
    }

    /// Whether there are agents around workers of its Jobs.
    pub(super) fn has_agents(&self) -> bool {
        let specs = self.children.values().filter_map(|child| child.job.spec.as_ref());
        specs.into_iter().any(in_place::has_agent)
    }

    /// The set.
    pub fn jobset(&self) -> &JobSet {
        &self.jobset
    }

    /// Its uid.
    pub fn uid(&self) -> &str {
        self.jobset.metadata.uid.as_deref().unwrap_or_default()
    }

    /// Moves with everything that is news.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    /// The rules of its failure policy, each with its message patterns. These are compiled when
    /// they are first asked for, and again only when the policy changes.
    pub(super) fn rules(&self) -> impl Iterator<Item = (&FailurePolicyRule, &MessagePatterns)> {
        let policy = self.jobset.spec.failure_policy.iter();
        let rules = policy.flat_map(|policy| &policy.rules);
        let patterns =
            self.patterns.get_or_init(|| rules.clone().map(MessagePatterns::of).collect());
        rules.zip(patterns)
    }

    /// Its status, as it is stored.
    pub(super) fn status(&self) -> &JobSetStatus {
        &self.status
    }

    pub(super) fn has_service(&self) -> bool {
        self.has_service
    }

    pub(super) fn has_claim(&self, name: &str) -> bool {
        self.claims.contains(name)
    }

    /// The Job of this name, whatever attempt it belongs to.
    pub(super) fn child(&self, name: &str) -> Option<&Child> {
        self.children.get(name)
    }

    /// The Jobs in a bucket, by name.
    pub(super) fn bucket(&self, bucket: Bucket) -> impl Iterator<Item = &Child> {
        let names = self.buckets.get(&bucket).into_iter().flatten();
        names.filter_map(|name| self.children.get(name))
    }

    /// How many Jobs are in a bucket.
    pub(super) fn size(&self, bucket: Bucket) -> usize {
        self.buckets.get(&bucket).map_or(0, BTreeSet::len)
    }

    /// The Jobs that have ended and go away by themselves, of any attempt.
    pub(super) fn fleeting(&self) -> impl Iterator<Item = &Child> {
        self.fleeting.iter().filter_map(|name| self.children.get(name))
    }

    /// The API drops what JobSet does not have: nothing of it can be kept.
    pub(super) fn drop_beyond(&mut self) {
        self.keeps_beyond = false;
    }

    pub(super) fn keeps_beyond(&self) -> bool {
        self.keeps_beyond
    }

    /// How far a replicated job is.
    pub(super) fn counts(&self, name: &str) -> Counts {
        self.counts.get(name).copied().unwrap_or_default()
    }

    /// How many Jobs of a replicated job there are, of any attempt.
    pub(super) fn known(&self, name: &str) -> i32 {
        self.known.get(name).copied().unwrap_or_default()
    }

    /// Why the set cannot be worked on.
    pub(super) fn problem(&self) -> Option<String> {
        self.odd.values().next().cloned()
    }

    fn count_in(&mut self, child: Child) {
        let name = child.name().to_owned();
        match child.bucket(&self.jobset, &self.status, self.gates) {
            // Of an attempt that is over, what is gone is gone.
            Ok(Bucket::Previous) if child.is_gone => return,
            Ok(bucket) => {
                self.buckets.entry(bucket).or_default().insert(name.clone());
                self.add(&child, bucket, 1);
            }
            Err(why) => drop(self.odd.insert(name.clone(), why)),
        }
        if child.is_fleeting() {
            self.fleeting.insert(name.clone());
        }
        self.children.insert(name, child);
    }

    /// Forgets a Job.
    fn count_out(&mut self, name: &str) -> Option<Child> {
        let child = self.children.remove(name)?;
        self.odd.remove(name);
        self.fleeting.remove(name);
        let mut buckets = self.buckets.iter_mut();
        let found = buckets.find_map(|(bucket, names)| names.remove(name).then_some(*bucket));
        if let Some(bucket) = found {
            self.add(&child, bucket, -1);
        }
        Some(child)
    }

    fn add(&mut self, child: &Child, bucket: Bucket, one: i32) {
        let Some(group) = child.group().map(str::to_owned) else { return };
        *self.known.entry(group.clone()).or_default() += one;
        let counts = self.counts.entry(group).or_default();
        match bucket {
            Bucket::Previous => {}
            Bucket::Failed => counts.failed += one,
            Bucket::Successful => counts.succeeded += one,
            Bucket::Active => {
                counts.ready += one * i32::from(child.is_ready);
                counts.active += one * i32::from(child.is_active());
                counts.suspended += one * i32::from(child.is_suspended());
                counts.halted += one * i32::from(child.is_ready && child.is_suspended());
            }
        }
    }
}

/// Whether all Jobs belong where they did: no restart was counted since, and no size has changed.
fn is_same_attempt(
    old: &JobSet,
    old_status: &JobSetStatus,
    new: &JobSet,
    status: &JobSetStatus,
) -> bool {
    let restarts = |status: &JobSetStatus| {
        let entries = status.replicated_jobs_status.iter();
        let entries = entries.filter(|entry| !entry.job_restarts.is_empty());
        let entries = entries.map(|entry| (entry.name.clone(), entry.job_restarts.clone()));
        (status.restarts, entries.collect::<BTreeMap<_, _>>())
    };
    let sizes = |jobset: &JobSet| -> Vec<(String, i32)> {
        let jobs = jobset.spec.replicated_jobs.iter();
        jobs.map(|job| (job.name.clone(), job.replicas)).collect()
    };
    restarts(old_status) == restarts(status) && sizes(old) == sizes(new)
}

/// Whether an object is newer than the known one of its name. Where versions are no numbers
/// everything is.
fn is_newer(new: &ObjectMeta, known: &ObjectMeta) -> bool {
    let number = |meta: &ObjectMeta| meta.resource_version.as_deref()?.parse::<u64>().ok();
    match (number(new), number(known)) {
        (Some(new), Some(known)) => new > known,
        _ => true,
    }
}

fn ended_jobs(status: &JobSetStatus) -> &[EndedJobs] {
    status.lockstep.as_ref().map(|kept| kept.ended_jobs.as_slice()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ruled(version: u32, pattern: &str, restarts: u32) -> JobSet {
        serde_json::from_value(json!({
            "metadata": {"name": "js", "uid": "u", "resourceVersion": version.to_string()},
            "spec": {"replicatedJobs": [], "failurePolicy": {"rules": [
                {"name": "r", "action": "FailJobSet", "onJobFailureMessagePatterns": [pattern]},
            ]}},
            "status": {"restarts": restarts},
        }))
        .unwrap()
    }

    #[test]
    fn patterns_are_compiled_once_for_a_policy() {
        let mut view = View::new(ruled(1, "a", 0), Gates::default());
        assert!(view.patterns.get().is_none(), "most sets never ask");
        let compiled = |view: &View| view.rules().map(|(_, patterns)| patterns as *const _).next();
        let first = compiled(&view);
        assert!(first.is_some());
        assert!(view.jobset_seen(ruled(2, "a", 1)));
        assert_eq!(compiled(&view), first, "a new status says nothing of patterns");
        assert!(view.jobset_seen(ruled(3, "b", 1)));
        assert!(view.patterns.get().is_none(), "those of the policy before are gone");
        let (rule, patterns) = view.rules().next().unwrap();
        assert!(rule.matches_with(patterns, "w", "", "b"));
        assert!(!rule.matches_with(patterns, "w", "", "a"));
    }
}
