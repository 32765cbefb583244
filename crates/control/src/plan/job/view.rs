//! One Job and its pods as they were seen last, kept up to date per event.

mod failures;
mod slots;
mod tally;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use lockstep_api::selector::LabelSelector;

pub(crate) use failures::Failures;
pub(crate) use slots::Slots;
pub(crate) use tally::{Place, Tally};

use crate::plan::job::{
    PodRef,
    failure_policy::{self, Verdict},
    name::NameBook,
    rules::Rules,
    seen::{self, Seen},
    success_policy::SuccessRules,
};

/// One Job and its pods: not a list that is walked again for every pass, but the sums and sets that
/// planning needs, changed by what each event changes.
///
/// What is seen may be old. Versions older than the one known are ignored, so that the answers to
/// our own writes can be noted at once, before the watch brings them.
#[derive(Clone, Debug)]
pub struct View {
    job: Box<Job>,
    version: u64,
    rules: Rules,
    selector: LabelSelector,
    /// Pods whose controller the Job is, by name.
    pods: BTreeMap<Arc<str>, Seen>,
    names_by_uid: BTreeMap<String, Arc<str>>,
    /// Pods without a controller that the Job selects and may adopt.
    orphans: BTreeMap<Arc<str>, PodRef>,
    /// Pods of the Job that it does not select.
    strays: BTreeSet<Arc<str>>,
    uncounted_ok: BTreeSet<String>,
    uncounted_bad: BTreeSet<String>,
    /// Pods the status lists that are known to be gone.
    gone: BTreeSet<String>,
    success_rules: SuccessRules,
    tally: Tally,
    failures: Failures,
    names: NameBook,
    revision: u64,
    work: Work,
}

/// How much has been done to keep a view up to date.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// How often a pod was added to, or taken out of, the sums.
    pub pods_tallied: u64,
    /// How often everything was added up anew, because the Job had changed.
    pub rebuilds: u64,
}

impl View {
    /// The view of a Job of which no pods are known.
    pub fn new(job: Job) -> Self {
        let selector = selector_of(&job);
        let rules = Rules::of(&job);
        let mut view = Self {
            version: seen::version(&job.metadata),
            names: NameBook::new(&job),
            job: Box::new(job),
            tally: Tally::new(&rules),
            rules,
            selector,
            pods: BTreeMap::new(),
            names_by_uid: BTreeMap::new(),
            orphans: BTreeMap::new(),
            strays: BTreeSet::new(),
            uncounted_ok: BTreeSet::new(),
            uncounted_bad: BTreeSet::new(),
            gone: BTreeSet::new(),
            success_rules: SuccessRules::default(),
            failures: Failures::default(),
            revision: 0,
            work: Work::default(),
        };
        view.read_uncounted();
        view.rebuild();
        view
    }

    /// Notes a version of the Job; whether it is news.
    pub fn observe_job(&mut self, job: &Job) -> bool {
        let version = seen::version(&job.metadata);
        if version <= self.version && version != 0 {
            return false;
        }
        let has_moved = job.status != self.job.status;
        let rules = Rules::of(job);
        self.version = version;
        *self.job = job.clone();
        self.revision += 1;
        if rules != self.rules {
            self.rules = rules;
            self.read_uncounted();
            self.rebuild();
        } else if has_moved {
            self.status_moved();
        }
        true
    }

    /// Notes a version of a pod that may belong to the Job; whether it is news.
    pub fn observe_pod(&mut self, pod: &Pod) -> bool {
        let name: Arc<str> = pod.metadata.name.as_deref().unwrap_or_default().into();
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let version = seen::version(&pod.metadata);
        if self.known_version(&name).is_some_and(|known| version <= known && version != 0) {
            return false;
        }
        let before = self.remove(&name);
        if let Some(before) = before.as_ref().filter(|before| before.uid != uid) {
            self.note_gone(&before.uid);
        }
        self.revision += 1;
        let is_selected = self.is_selected(pod);
        match seen::controller(&pod.metadata) {
            Some(owner) if self.is_owner(owner) => {
                let mut seen = Seen::of(pod, is_selected, self.judge(pod));
                seen.is_noted = before.is_some_and(|old| old.is_noted && old.uid == seen.uid);
                self.insert(name, seen);
            }
            None if is_selected && pod.metadata.deletion_timestamp.is_none() => {
                let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
                let version = pod.metadata.resource_version.clone();
                let pod = PodRef { version, ..PodRef::new(namespace, &name, &uid) };
                self.orphans.insert(name, pod);
            }
            _ => {}
        }
        true
    }

    /// Notes that a pod is gone; whether it was known.
    pub fn forget_pod(&mut self, name: &str, uid: &str) -> bool {
        let is_known = self.pods.get(name).is_some_and(|pod| pod.uid == uid)
            || self.orphans.get(name).is_some_and(|pod| pod.uid == uid);
        if is_known {
            self.retire(name);
            self.note_gone(uid);
            self.revision += 1;
        }
        is_known
    }

    /// Notes that a pod was asked to end.
    pub fn mark_deleted(&mut self, name: &str, uid: &str) {
        if !self.pods.get(name).is_some_and(|pod| pod.uid == uid && !pod.is_deleting) {
            return;
        }
        let Some((name, mut pod)) = self.pods.remove_entry(name) else { return };
        self.take_from_tally(&name, &pod);
        pod.is_deleting = true;
        self.pods.insert(name.clone(), pod.clone());
        self.add_to_tally(&name, &pod);
        self.revision += 1;
    }

    /// Notes that something about the Job changed that no object shows.
    pub(crate) fn touch(&mut self) {
        self.revision += 1;
    }

    /// The pods that carry the tracking finalizer.
    pub(crate) fn tracked(&self) -> impl Iterator<Item = PodRef> + '_ {
        self.tally.tracked.iter().filter_map(|(_, name)| self.pod_ref(name))
    }

    /// Notes that of these pods only those in `listed` are in the API. Of those, the ones that are
    /// not known here are not the Job's any more.
    pub(crate) fn confirm_gone(&mut self, uids: &[String], listed: &BTreeSet<&str>) {
        for uid in uids {
            let name = self.names_by_uid.get(uid).cloned();
            if name.is_some() && listed.contains(uid.as_str()) {
                continue;
            }
            if let Some(name) = name {
                self.retire(&name);
            }
            self.note_gone(uid);
        }
        self.revision += 1;
    }

    /// The uids of the pods that are known and that the Job selects.
    pub(crate) fn uids(&self) -> Vec<String> {
        let selected = self.pods.values().filter(|pod| pod.is_selected);
        selected.map(|pod| pod.uid.clone()).collect()
    }

    /// The Job.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// The uid of the Job.
    pub fn uid(&self) -> &str {
        self.job.metadata.uid.as_deref().unwrap_or_default()
    }

    /// How many pods of the Job are known.
    pub fn pod_count(&self) -> usize {
        self.pods.len()
    }

    /// How many pods have not ended and are not asked to.
    pub fn active(&self) -> usize {
        self.tally.active.len()
    }

    /// How many active pods are ready.
    pub fn ready(&self) -> usize {
        self.tally.ready
    }

    /// How many pods are asked to end and have not.
    pub fn terminating(&self) -> usize {
        self.tally.terminating.len()
    }

    /// What keeping this view up to date has taken so far.
    pub fn work(&self) -> Work {
        self.work
    }

    /// Moves with every change of the view.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Why nothing can be done for the Job, if that is so.
    pub(crate) fn problem(&self) -> Option<String> {
        let spec = self.job.spec.as_ref()?;
        if let Err(why) = LabelSelector::from_meta(spec.selector.as_ref()) {
            return Some(format!("spec.selector: {why}"));
        }
        let is_short = self.rules.is_indexed && self.rules.completions.is_none();
        is_short.then(|| "spec.completions is required when completion mode is Indexed".to_owned())
    }

    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    pub(crate) fn failures(&self) -> &Failures {
        &self.failures
    }

    pub(crate) fn names(&self) -> &NameBook {
        &self.names
    }

    pub(crate) fn selector(&self) -> &LabelSelector {
        &self.selector
    }

    pub(crate) fn pod(&self, name: &str) -> Option<&Seen> {
        self.pods.get(name)
    }

    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.pods.contains_key(name) || self.orphans.contains_key(name)
    }

    /// The pod with this uid, if it is known.
    pub(crate) fn pod_with_uid(&self, uid: &str) -> Option<&Seen> {
        self.names_by_uid.get(uid).and_then(|name| self.pods.get(name))
    }

    /// How to name the pod with this uid, if it is known.
    pub(crate) fn reference_of(&self, uid: &str) -> Option<PodRef> {
        self.names_by_uid.get(uid).and_then(|name| self.pod_ref(name))
    }

    pub(crate) fn is_uncounted(&self, uid: &str) -> bool {
        self.uncounted_ok.contains(uid) || self.uncounted_bad.contains(uid)
    }

    pub(crate) fn is_uncounted_failure(&self, uid: &str) -> bool {
        self.uncounted_bad.contains(uid)
    }

    pub(crate) fn is_gone(&self, uid: &str) -> bool {
        self.gone.contains(uid)
    }

    pub(crate) fn success_rules(&self) -> &SuccessRules {
        &self.success_rules
    }

    pub(crate) fn orphans(&self) -> impl Iterator<Item = &PodRef> {
        self.orphans.values()
    }

    pub(crate) fn strays(&self) -> impl Iterator<Item = PodRef> + '_ {
        self.strays.iter().filter_map(|name| self.pod_ref(name))
    }

    pub(crate) fn pod_ref(&self, name: &str) -> Option<PodRef> {
        let pod = self.pods.get(name)?;
        let namespace = self.job.metadata.namespace.as_deref().unwrap_or_default();
        let version = (!pod.has_ended()).then(|| pod.version.to_string());
        Some(PodRef { version, ..PodRef::new(namespace, name, &pod.uid) })
    }

    fn known_version(&self, name: &str) -> Option<u64> {
        self.pods.get(name).map(|pod| pod.version)
    }

    fn is_owner(&self, owner: &OwnerReference) -> bool {
        owner.kind == "Job" && owner.uid == self.uid()
    }

    /// Whether a pod is the Job's, or could become it.
    pub(crate) fn may_take(&self, pod: &Pod) -> bool {
        let owner = seen::controller(&pod.metadata);
        owner.map_or_else(|| self.is_selected(pod), |owner| self.is_owner(owner))
    }

    /// Whether the Job selects the pod.
    pub(crate) fn is_selected(&self, pod: &Pod) -> bool {
        let labels = pod.metadata.labels.as_ref();
        self.selector.matches(|key| labels.and_then(|all| all.get(key)).map(String::as_str))
    }

    fn judge(&self, pod: &Pod) -> Verdict {
        let policy = self.job.spec.as_ref().and_then(|spec| spec.pod_failure_policy.as_ref());
        policy.map(|policy| failure_policy::judge(policy, pod)).unwrap_or_default()
    }

    fn insert(&mut self, name: Arc<str>, mut seen: Seen) {
        self.names_by_uid.insert(seen.uid.clone(), name.clone());
        self.names.known(&name, |name| self.pods.contains_key(name));
        if !seen.is_selected {
            self.strays.insert(name.clone());
        }
        self.failures.note(&mut seen, &self.rules);
        self.pods.insert(name.clone(), seen.clone());
        self.add_to_tally(&name, &seen);
    }

    /// Takes out a pod that is gone; its name stays its own.
    fn retire(&mut self, name: &str) {
        if let Some(seen) = self.remove(name) {
            self.names.gone(name, seen.index, |name| self.pods.contains_key(name));
        }
    }

    fn remove(&mut self, name: &str) -> Option<Seen> {
        self.orphans.remove(name);
        let (name, seen) = self.pods.remove_entry(name)?;
        self.strays.remove(&name);
        self.names_by_uid.remove(&seen.uid);
        self.take_from_tally(&name, &seen);
        Some(seen)
    }

    fn add_to_tally(&mut self, name: &Arc<str>, seen: &Seen) {
        self.work.pods_tallied += 1;
        let place = self.place(seen);
        self.tally.add(&self.rules, name, seen, place);
        self.refresh_index(seen.index);
    }

    fn take_from_tally(&mut self, name: &Arc<str>, seen: &Seen) {
        self.work.pods_tallied += 1;
        let place = self.place(seen);
        self.tally.take(&self.rules, name, seen, place);
        self.refresh_index(seen.index);
    }

    fn place(&self, seen: &Seen) -> Place {
        if self.uncounted_bad.contains(&seen.uid) {
            Place::UncountedFailure
        } else if self.uncounted_ok.contains(&seen.uid) {
            Place::UncountedSuccess
        } else {
            Place::Nowhere
        }
    }

    fn refresh_index(&mut self, index: Option<i32>) {
        if let Some(index) = index {
            self.tally.slots.refresh(index, &self.rules, &self.pods);
            self.hold_delayed();
        }
    }

    /// Keeps the failed pods whose index waits for a new one out of what is to be counted.
    fn hold_delayed(&mut self) {
        for (index, before, after) in self.tally.slots.take_moves() {
            if let Some(name) = before.filter(|name| self.pods.contains_key(name)) {
                self.tally.ended.insert((index, name));
            }
            if let Some(name) = after {
                self.tally.ended.remove(&(index, name));
            }
        }
    }

    fn note_gone(&mut self, uid: &str) {
        if self.is_uncounted(uid) {
            self.gone.insert(uid.to_owned());
        }
    }

    /// The status has changed, most often by our own hand: move what it moved, no more.
    fn status_moved(&mut self) {
        let before: BTreeSet<String> =
            self.uncounted_ok.iter().chain(&self.uncounted_bad).cloned().collect();
        let (ok, bad) = uncounted(&self.job);
        let changed: Vec<Arc<str>> = before
            .iter()
            .chain(&ok)
            .chain(&bad)
            .filter(|uid| {
                self.uncounted_ok.contains(*uid) != ok.contains(*uid)
                    || self.uncounted_bad.contains(*uid) != bad.contains(*uid)
            })
            .filter_map(|uid| self.names_by_uid.get(uid).cloned())
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        let taken: Vec<(Arc<str>, Seen)> =
            changed.into_iter().filter_map(|name| self.pods.remove_entry(&name)).collect();
        for (name, seen) in &taken {
            self.take_from_tally(name, seen);
        }
        (self.uncounted_ok, self.uncounted_bad) = (ok, bad);
        for (name, seen) in taken {
            self.pods.insert(name.clone(), seen.clone());
            self.add_to_tally(&name, &seen);
        }
        self.forget_counted();
        self.tally.slots.persisted(&self.job, &self.rules, &self.pods);
        self.hold_delayed();
    }

    fn read_uncounted(&mut self) {
        (self.uncounted_ok, self.uncounted_bad) = uncounted(&self.job);
        self.forget_counted();
    }

    fn forget_counted(&mut self) {
        let (ok, bad) = (&self.uncounted_ok, &self.uncounted_bad);
        self.gone.retain(|uid| ok.contains(uid) || bad.contains(uid));
    }

    /// Adds everything up anew: the Job itself has changed.
    fn rebuild(&mut self) {
        self.work.rebuilds += 1;
        self.success_rules = SuccessRules::of(&self.job, self.rules.index_count());
        self.tally = Tally::new(&self.rules);
        self.tally.slots.persisted(&self.job, &self.rules, &self.pods);
        let pods = std::mem::take(&mut self.pods);
        for (name, mut seen) in pods {
            self.failures.note(&mut seen, &self.rules);
            self.pods.insert(name.clone(), seen.clone());
            self.add_to_tally(&name, &seen);
        }
    }
}

fn selector_of(job: &Job) -> LabelSelector {
    let selector = job.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    LabelSelector::from_meta(selector).unwrap_or_else(|_| LabelSelector::nothing())
}

fn uncounted(job: &Job) -> (BTreeSet<String>, BTreeSet<String>) {
    let pods = job.status.as_ref().and_then(|status| status.uncounted_terminated_pods.as_ref());
    let set = |uids: Option<&Vec<String>>| uids.into_iter().flatten().cloned().collect();
    let ok = set(pods.and_then(|pods| pods.succeeded.as_ref()));
    (ok, set(pods.and_then(|pods| pods.failed.as_ref())))
}
