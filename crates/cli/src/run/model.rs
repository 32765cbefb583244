//! What is known of a run, and when it is over. Changes go in, notes and a verdict come out.

mod fates;
mod queued;
mod sets;
mod sources;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use self::fates::Going;
pub(crate) use self::{
    fates::State,
    sources::{ContainerId, LogSource, Run, locate, log_of},
};
use super::{
    ends::one_line,
    job::{self, Job},
    jobset::JobSet,
    pod::{Hope, Phase, Pod, Waits},
};
use crate::queueing::workload::Workload;

/// Namespace and name.
pub(crate) type Name = (String, String);

/// How many pods of one Job that fail are told one by one.
const FAILURES_TOLD: usize = 20;

/// Events that say why a pod does not start. Whatever else goes wrong shows in its status.
const TROUBLES: [&str; 6] = [
    "FailedMount",
    "FailedAttachVolume",
    "FailedMapVolume",
    "FailedCreatePodSandBox",
    "FailedCreatePodContainer",
    "NetworkNotReady",
];

/// Something to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// Whether it is told even to those who want to hear of errors only.
    pub(crate) is_error: bool,
    /// What.
    pub(crate) text: String,
}

/// What one change means.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// What to tell.
    pub(crate) notes: Vec<Note>,
    /// Logs that began.
    pub(crate) logs: Vec<LogSource>,
}

impl Seen {
    fn tell(&mut self, is_error: bool, text: String) {
        self.notes.push(Note { is_error, text });
    }
}

/// The Jobs and pods of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    /// Whether the cluster is there for this run only, so that nobody else comes to help.
    is_private: bool,
    /// Whether a line of a log must say whose it is.
    has_prefixes: bool,
    /// Whether everything is being ended on purpose.
    is_stopping: bool,
    /// The JobSets that were applied.
    pub(crate) sets: BTreeMap<Name, JobSet>,
    /// The Jobs that were applied, and those of the JobSets.
    pub(crate) jobs: BTreeMap<Name, Job>,
    /// The pods that were applied, and those of the Jobs.
    pub(crate) pods: BTreeMap<Name, Pod>,
    /// Which pods were applied themselves.
    bare: BTreeSet<Name>,
    /// Why pods do not start, by what events say.
    troubles: BTreeMap<Name, String>,
    /// Why Jobs have no pods, by what events say.
    refusals: BTreeMap<Name, String>,
    /// Why JobSets have no Jobs, by what events say.
    refusals_of_sets: BTreeMap<Name, String>,
    /// The Workloads of the Jobs and JobSets, by what they are of.
    workloads: BTreeMap<queued::Of, Workload>,
    /// What they and those before them are called.
    workload_names: BTreeSet<Name>,
    /// Why they were told to wait last, in a word and in full.
    told_of_queues: BTreeMap<queued::Of, (String, String)>,
    told: BTreeMap<Name, String>,
    told_of_jobs: BTreeMap<Name, BTreeSet<String>>,
    failures: BTreeMap<Name, usize>,
    stops: BTreeMap<Name, usize>,
    /// Of each Job, how its pods stand that have not ended.
    going: BTreeMap<Name, Going>,
    sources: sources::Sources,
}

impl Model {
    /// A run of nothing yet.
    pub(crate) fn new(is_private: bool) -> Self {
        Self { is_private, ..Self::default() }
    }

    /// Adds something that was applied: a Pod, a Job or a JobSet; anything else is not followed.
    pub(crate) fn add(&mut self, object: &Value) {
        match object["kind"].as_str() {
            Some("JobSet") => {
                let set = JobSet::read(object);
                self.sets.insert((set.namespace.clone(), set.name.clone()), set);
            }
            Some("Job") => {
                let job = Job::read(object);
                self.jobs.insert((job.namespace.clone(), job.name.clone()), job);
            }
            Some("Pod") => {
                let pod = Pod::read(object);
                let name = (pod.namespace.clone(), pod.name.clone());
                self.bare.insert(name.clone());
                self.put_pod(name, pod);
            }
            _ => {}
        }
    }

    /// Whether the cluster is there for this run only.
    pub(crate) fn is_private(&self) -> bool {
        self.is_private
    }

    /// Says whether lines of logs are told apart: when more than one container may write.
    pub(crate) fn set_prefixes(&mut self, has_prefixes: bool) {
        self.has_prefixes = has_prefixes;
    }

    /// Takes note that everything is being ended on purpose: that is no trouble to tell of.
    pub(crate) fn begin_stop(&mut self) {
        self.is_stopping = true;
    }

    /// Takes note of a Job as it is now.
    pub(crate) fn see_job(&mut self, object: &Value) -> Seen {
        let mut seen = Seen::default();
        let job = Job::read(object);
        let name = (job.namespace.clone(), job.name.clone());
        let known = self.jobs.get(&name).filter(|known| is_same(&known.uid, &job.uid));
        if job.member.as_ref().is_some_and(|member| self.has_member(&name.0, member)) {
            return self.see_child(name, job);
        }
        let Some(known) = known else { return seen };
        if job.active > 0 || job.has_ended() {
            self.refusals.remove(&name);
        }
        let words = phase_words(&job);
        if known.phase != job.phase && !words.is_empty() {
            seen.tell(false, format!("job/{} {words}", job.name));
        }
        if let Some(hindrance) = self.hindrance_of_job(&job)
            && !self.is_stopping
            && self.told.get(&name) != Some(&hindrance)
        {
            seen.tell(true, format!("job/{} {hindrance}", job.name));
            self.told.insert(name.clone(), hindrance);
        }
        self.jobs.insert(name, job);
        seen
    }

    /// Takes note of a Job that no longer exists.
    pub(crate) fn job_gone(&mut self, namespace: &str, name: &str, uid: &str) {
        let key = (namespace.to_owned(), name.to_owned());
        let Some(job) = self.jobs.get_mut(&key).filter(|job| is_same(&job.uid, uid)) else {
            return;
        };
        job.is_gone = true;
        if !job.has_ended() {
            job.phase = job::Phase::Gone;
        }
    }

    /// Takes note of a pod as it is now.
    pub(crate) fn see_pod(&mut self, object: &Value) -> Seen {
        let mut seen = Seen::default();
        let mut pod = Pod::read(object);
        let name = (pod.namespace.clone(), pod.name.clone());
        if !self.is_ours(&name, &pod) {
            return seen;
        }
        if self.pods.get(&name).is_some_and(|known| !is_same(&known.uid, &pod.uid)) {
            // What was said of the pod that had the name before does not hold for this one.
            self.told.remove(&name);
            self.troubles.remove(&name);
        }
        if pod.phase != Phase::Pending || pod.is_deleting {
            self.troubles.remove(&name);
        }
        self.add_trouble(&name, &mut pod);
        pod.was_stopped = self.pods.get(&name).is_some_and(|known| known.is_stopped_as(&pod));
        let label = self.label(&name, &pod);
        seen.logs = self.sources.begun(&label, object);
        self.tell_of(&name, &pod, &mut seen);
        self.put_pod(name, pod);
        seen
    }

    /// Takes note of a pod that no longer exists.
    pub(crate) fn pod_gone(&mut self, namespace: &str, name: &str, uid: &str) {
        let key = (namespace.to_owned(), name.to_owned());
        let Some(pod) = self.pods.get(&key).filter(|pod| is_same(&pod.uid, uid)) else { return };
        self.troubles.remove(&key);
        if !pod.has_ended() {
            let gone = Pod { phase: Phase::Gone, waits: None, ..pod.clone() };
            self.put_pod(key, gone);
        }
    }

    /// Takes note of an event: some reasons are told nowhere else.
    pub(crate) fn see_event(&mut self, event: &Value) -> Seen {
        let mut seen = Seen::default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let about = &event["involvedObject"];
        let (reason, whole) = (text(&event["reason"]), text(&event["message"]));
        let message = one_line(&whole);
        let name = (text(&about["namespace"]), text(&about["name"]));
        let uid = text(&about["uid"]);
        match about["kind"].as_str() {
            Some("Job") if reason == "FailedCreate" => {
                let Some(job) = self.jobs.get(&name).filter(|job| job.uid == uid) else {
                    return seen;
                };
                let words = format!("cannot create its pods: {message}");
                if job.active == 0 && !job.has_ended() && self.refusals.get(&name) != Some(&words) {
                    seen.tell(true, format!("job/{} {words}", name.1));
                    self.refusals.insert(name, words);
                }
            }
            Some("JobSet") if reason.ends_with("CreationFailed") => {
                let words = format!("{reason}: {}", sets::refusal(&whole));
                self.see_refusal_of_set(name, &uid, &words, &mut seen);
            }
            Some("Pod") if TROUBLES.contains(&reason.as_str()) => {
                let known = self.pods.get(&name).cloned();
                if known.as_ref().is_some_and(|pod| pod.uid != uid) {
                    return seen;
                }
                let words = format!("waits: {reason}: {message}");
                let before = self.troubles.insert(name.clone(), words);
                let Some(mut pod) = known else { return seen };
                // What an earlier event said is no longer so.
                pod.waits = pod.waits.filter(|waits| Some(&waits.words) != before.as_ref());
                self.add_trouble(&name, &mut pod);
                self.tell_of(&name, &pod, &mut seen);
                self.put_pod(name, pod);
            }
            _ => {}
        }
        seen
    }

    /// Whether nothing of it runs any more, and nothing will be started.
    pub(crate) fn has_stopped(&self) -> bool {
        let has_pods = self.running().next().is_some();
        let is_quiet = |job: &Job| {
            let has_none = job.active == 0 && job.terminating == 0;
            job.has_ended() || (job.phase == job::Phase::Suspended && has_none)
        };
        let are_jobs_quiet = self.jobs.values().all(|job| is_quiet(job) || job.manager.is_some());
        !has_pods && are_jobs_quiet && self.have_sets_stopped()
    }

    /// The pods that have not ended.
    pub(crate) fn running(&self) -> impl Iterator<Item = &Pod> {
        self.pods.values().filter(|pod| !pod.has_ended())
    }

    /// Pods that were applied themselves.
    pub(crate) fn bare_pods(&self) -> impl Iterator<Item = &Pod> {
        self.bare.iter().filter_map(|name| self.pods.get(name))
    }

    /// The pods of a Job.
    pub(crate) fn pods_of(&self, job: &Job) -> impl Iterator<Item = &Pod> {
        let is_its = |pod: &&Pod| {
            pod.namespace == job.namespace
                && pod.job.as_ref().is_some_and(|(name, uid)| is_owner(job, name, uid))
        };
        self.pods.values().filter(is_its)
    }

    /// What a Job waits for: what it says itself, or what most of its pods wait for.
    pub(crate) fn why_waits(&self, job: &Job) -> Option<String> {
        let pods = || self.why_pods_wait(job).or_else(|| why_ending(job));
        self.why_job_waits(job).or_else(pods).or_else(|| self.why_idle(job))
    }

    /// Why a Job that has failed pods and no others does nothing. Failures that a policy ignores
    /// are waited after as well, though the Job does not count them.
    pub(crate) fn why_idle(&self, job: &Job) -> Option<String> {
        let name = (job.namespace.clone(), job.name.clone());
        let has_failed = job.failed > 0 || self.failures.contains_key(&name);
        let is_idle = job.active == 0 && job.terminating == 0 && has_failed;
        (is_idle && job.phase == job::Phase::Running)
            .then(|| "waits before it tries again (back-off)".to_owned())
    }

    /// What a Job waits for, as far as that is no matter of single pods.
    pub(crate) fn why_job_waits(&self, job: &Job) -> Option<String> {
        let name = (job.namespace.clone(), job.name.clone());
        let hindrance = self.hindrance_of_job(job).filter(|_| !self.is_stopping);
        let queued = || self.why_job_queued(job);
        hindrance.or_else(queued).or_else(|| self.refusals.get(&name).cloned())
    }

    /// The pods of a Job that wait for something.
    pub(crate) fn waiting_of(&self, job: &Job) -> impl Iterator<Item = (&Pod, &Waits)> {
        let going = self.pods_of(job).filter(|pod| !pod.has_ended());
        going.filter_map(|pod| Some((pod, pod.waits.as_ref()?)))
    }

    /// What most of the pods of a Job wait for that wait, and how many do.
    fn why_pods_wait(&self, job: &Job) -> Option<String> {
        let mut counts: BTreeMap<&str, (usize, &Pod)> = BTreeMap::new();
        for (pod, waits) in self.waiting_of(job) {
            counts.entry(&waits.words).or_insert((0, pod)).0 += 1;
        }
        // Of reasons that are as common, the first in the alphabet: it must not jump.
        let common = counts.into_iter().max_by(|a, b| a.1.0.cmp(&b.1.0).then(b.0.cmp(a.0)));
        common.map(|(words, (count, pod))| match count {
            1 => format!("pod/{} {words}", pod.name),
            _ => format!("pod/{} and {} more: {words}", pod.name, count - 1),
        })
    }

    /// What has not finished and why, a line for each.
    pub(crate) fn unfinished(&self) -> Vec<String> {
        let mut lines = self.unfinished_sets();
        for job in self.lone_jobs().filter(|job| !job.has_ended()) {
            let why = self.why_waits(job).map(|why| format!("; {why}")).unwrap_or_default();
            let (name, progress) = (&job.name, job.progress());
            lines.push(format!("job/{name}: {progress}, {} active{why}", job.active));
        }
        let bare = self.bare_pods().filter(|pod| !pod.has_ended());
        lines.extend(bare.map(|pod| format!("pod/{} {}", pod.name, pod.words())));
        lines
    }

    /// What goes on without this run, and how to see it.
    pub(crate) fn what_stays(&self) -> Vec<String> {
        if self.is_private {
            return Vec::new();
        }
        let sets = self.sets.values().filter(|set| !set.has_ended());
        let sets = sets.map(|set| ("jobset", &set.name, &set.namespace));
        let jobs = self.lone_jobs().filter(|job| !job.has_ended());
        let jobs = jobs.map(|job| ("job", &job.name, &job.namespace));
        let pods = self.bare_pods().filter(|pod| !pod.has_ended());
        let pods = pods.map(|pod| ("pod", &pod.name, &pod.namespace));
        let line = |(kind, name, space): (&str, &String, &String)| {
            format!(
                "{kind}/{name} is not ended by that and may go on; see it with: lockstep get \
                 {kind} {name} -n {space}"
            )
        };
        sets.chain(jobs).chain(pods).map(line).collect()
    }

    fn is_ours(&self, name: &Name, pod: &Pod) -> bool {
        let known = self.pods.get(name);
        if known.is_some_and(|known| is_same(&known.uid, &pod.uid)) {
            return true;
        }
        if self.bare.contains(name) {
            return false;
        }
        if pod.member.as_ref().is_some_and(|member| self.has_member(&name.0, member)) {
            return true;
        }
        let Some((owner, uid)) = &pod.job else { return false };
        let job = self.jobs.get(&(pod.namespace.clone(), owner.clone()));
        job.is_some_and(|job| is_owner(job, owner, uid))
    }

    /// What events said about a pod whose status says nothing.
    fn add_trouble(&self, name: &Name, pod: &mut Pod) {
        if pod.phase == Phase::Pending
            && pod.waits.is_none()
            && let Some(words) = self.troubles.get(name)
        {
            pod.waits = Some(Waits { words: words.clone(), hope: Hope::Maybe });
        }
    }

    /// Tells what changed about a pod. Of the pods of a Job only what is wrong is told, once for
    /// all that have the same trouble.
    fn tell_of(&mut self, name: &Name, pod: &Pod, seen: &mut Seen) {
        let words = pod.words();
        if self.told.get(name) == Some(&words) {
            return;
        }
        self.told.insert(name.clone(), words.clone());
        if self.is_stopping && pod.phase == Phase::Failed && pod.ends.is_empty() {
            // It was asked to end before it began: that is no failure to tell of.
            return;
        }
        let is_wrong = pod.waits.is_some();
        let Some((job, _)) = pod.job.as_ref().filter(|_| !self.bare.contains(name)) else {
            seen.tell(is_wrong, format!("pod/{} {words}", name.1));
            return;
        };
        let job = (name.0.clone(), job.clone());
        if is_wrong {
            if self.told_of_jobs.entry(job).or_default().insert(words.clone()) {
                seen.tell(true, format!("pod/{} {words}", name.1));
            }
        } else if pod.phase == Phase::Failed {
            // Many that are stopped must not hide the one that fails.
            let is_stop = pod.was_stopped;
            let counts = if is_stop { &mut self.stops } else { &mut self.failures };
            let count = counts.entry(job.clone()).or_default();
            *count += 1;
            if *count <= FAILURES_TOLD {
                seen.tell(false, format!("pod/{} {words}", name.1));
            } else if *count == FAILURES_TOLD + 1 {
                let end = if is_stop { "are stopped" } else { "fail" };
                seen.tell(false, format!("job/{}: more pods {end}; they are counted only", job.1));
            }
        }
    }
}

/// How many pods a Job still has to wait for.
fn why_ending(job: &Job) -> Option<String> {
    match job.terminating {
        1 => Some("waits for 1 pod to end".to_owned()),
        2.. => Some(format!("waits for {} pods to end", job.terminating)),
        _ => None,
    }
}

/// Whether two uids are of one object; one that is not known yet may be any.
fn is_same(known: &str, uid: &str) -> bool {
    known.is_empty() || known == uid
}

fn is_owner(job: &Job, name: &str, uid: &str) -> bool {
    job.name == name && (job.uid.is_empty() || job.uid == uid)
}

/// What a new phase of a Job is called; nothing for what is no news.
fn phase_words(job: &Job) -> String {
    let job::Why { reason, message } = &job.why;
    match job.phase {
        job::Phase::Pending | job::Phase::Suspended | job::Phase::Gone => String::new(),
        job::Phase::Running => "is running".to_owned(),
        job::Phase::Succeeding if job.active + job.terminating > 0 && reason.is_empty() => {
            "will succeed; its other pods are ended".to_owned()
        }
        job::Phase::Succeeding if job.active + job.terminating > 0 => {
            format!("will succeed ({reason}: {message}); its other pods are ended")
        }
        job::Phase::Failing if job.active + job.terminating > 0 => {
            format!("will fail ({reason}: {message}); its other pods are ended")
        }
        job::Phase::Succeeding | job::Phase::Failing => String::new(),
        // Where success policies are off there is one way to succeed, and no reason.
        job::Phase::Complete if reason.is_empty() => "succeeded".to_owned(),
        job::Phase::Complete => format!("succeeded ({reason}: {message})"),
        job::Phase::Failed => format!("failed ({reason}: {message})"),
    }
}
