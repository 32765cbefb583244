//! A cluster small enough for a test: one Job, its pods, an API that keeps versions, watches that
//! may lag, requests that may fail or be answered into the void.

use std::collections::{BTreeMap, VecDeque};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{
    batch::v1::{Job, JobStatus},
    core::v1::{ContainerStatus, Pod, PodCondition},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use lockstep_api::{
    gates::Gates,
    job::JobStrategy,
    labels::JOB_TRACKING_FINALIZER,
    strategy::{Json, Strategy, WriteContext},
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::plan::job::{
    Event, Fact, Jobs, Key, Memory, NewPod, Options, Orphan, Plan, PodRef, Refusal, RefusalKind,
    StatusWrite, Step, Waiting, plan, slow_start,
};

const STRATEGY: JobStrategy = JobStrategy::new(Gates::ALL);

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Luck {
    Fine,
    /// It is refused.
    Refused,
    /// It is carried out, and the answer is lost.
    Unanswered,
}

enum News {
    Job(Box<Job>),
    JobGone(String),
    Pod(Box<Pod>),
    PodGone(PodRef),
}

pub(crate) struct World {
    pub(crate) now: Timestamp,
    version: u64,
    uids: u64,
    pub(crate) job: Option<Job>,
    pub(crate) pods: BTreeMap<String, Pod>,
    news: VecDeque<News>,
    pub(crate) driver: Jobs,
    options: Options,
    pub(crate) events: Vec<Event>,
    pub(crate) facts: Vec<Fact>,
    /// What happens to the requests to come, in order; then all is fine.
    pub(crate) lucks: VecDeque<Luck>,
    /// What was asked of the API, in short.
    pub(crate) log: Vec<String>,
    /// Every pod there ever was, as it was last.
    pub(crate) all: BTreeMap<String, Pod>,
    /// The most pods the Job has ever been allowed to have at once.
    parallelism_max: usize,
    pub(crate) waiting: Option<Waiting>,
    /// Uids the status has ever listed, and whether as failures.
    pub(crate) listed: BTreeMap<String, bool>,
    /// Pods that ended while they were tracked, and whether well.
    pub(crate) ended: BTreeMap<String, bool>,
}

impl World {
    pub(crate) fn new(spec: Value) -> Self {
        Self::with(Options::default(), spec)
    }

    /// A world with one Job, of which the driver knows.
    pub(crate) fn with(options: Options, spec: Value) -> Self {
        let mut world = Self {
            now: "2026-11-15T12:00:00Z".parse().unwrap(),
            version: 100,
            uids: 0,
            job: None,
            pods: BTreeMap::new(),
            news: VecDeque::new(),
            driver: Jobs::new(options.clone()),
            options,
            events: Vec::new(),
            facts: Vec::new(),
            lucks: VecDeque::new(),
            log: Vec::new(),
            all: BTreeMap::new(),
            parallelism_max: 0,
            waiting: None,
            listed: BTreeMap::new(),
            ended: BTreeMap::new(),
        };
        world.create_job(spec);
        world.restart();
        world
    }

    pub(crate) fn create_job(&mut self, spec: Value) {
        let mut object = json!({"metadata": {"name": "j", "namespace": "ns", "generation": 1},
            "spec": {"template": {"spec": {"restartPolicy": "Never",
                "containers": [{"name": "c", "image": "i"}]}}}});
        let Value::Object(fields) = spec else { panic!("not an object") };
        for (field, value) in fields {
            object["spec"][field] = value;
        }
        self.uids += 1;
        let uid = format!("job-{}", self.uids);
        object["metadata"]["uid"] = json!(uid);
        let Value::Object(mut object) = object else { unreachable!() };
        STRATEGY.fill_defaults(&mut object);
        let context = WriteContext { now: self.now, uid, user: "me".into() };
        STRATEGY.prepare_create(&mut object, &context);
        let errors = STRATEGY.validate_create(&object);
        assert!(errors.is_empty(), "{errors:?}");
        let job = Job::deserialize(Value::Object(object)).unwrap();
        self.put_job(job);
    }

    pub(crate) fn key(&self) -> Key {
        Key { namespace: "ns".into(), name: "j".into() }
    }

    pub(crate) fn status(&self) -> JobStatus {
        self.job.as_ref().and_then(|job| job.status.clone()).unwrap_or_default()
    }

    /// `type/reason` of the conditions that are true.
    pub(crate) fn conditions(&self) -> Vec<String> {
        let status = self.status();
        let conditions = status.conditions.iter().flatten().filter(|one| one.status == "True");
        conditions
            .map(|one| format!("{}/{}", one.type_, one.reason.as_deref().unwrap_or_default()))
            .collect()
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.conditions()
            .iter()
            .any(|one| one.starts_with("Complete/") || one.starts_with("Failed/"))
    }

    /// Changes the spec, as a user would.
    pub(crate) fn change(&mut self, spec: Value) {
        let mut job = serde_json::to_value(self.job.as_ref().unwrap()).unwrap();
        let Value::Object(fields) = spec else { panic!("not an object") };
        for (field, value) in fields {
            job["spec"][field] = value;
        }
        let mut job = Job::deserialize(job).unwrap();
        job.metadata.generation = job.metadata.generation.map(|generation| generation + 1);
        self.put_job(job);
    }

    pub(crate) fn put_job(&mut self, mut job: Job) {
        self.version += 1;
        job.metadata.resource_version = Some(self.version.to_string());
        let parallelism = job.spec.as_ref().and_then(|spec| spec.parallelism).unwrap_or(1);
        self.parallelism_max = self.parallelism_max.max(usize::try_from(parallelism).unwrap());
        self.news.push_back(News::Job(Box::new(job.clone())));
        self.job = Some(job);
    }

    pub(crate) fn delete_job(&mut self) {
        let mut job = self.job.clone().unwrap();
        job.metadata.deletion_timestamp = Some(Time(self.now));
        self.put_job(job);
    }

    pub(crate) fn remove_job(&mut self) {
        let uid = self.job.take().unwrap().metadata.uid.unwrap();
        self.version += 1;
        self.news.push_back(News::JobGone(uid));
    }

    pub(crate) fn put_pod(&mut self, mut pod: Pod) {
        self.version += 1;
        pod.metadata.resource_version = Some(self.version.to_string());
        let name = pod.metadata.name.clone().unwrap();
        let uid = pod.metadata.uid.clone().unwrap();
        let was_running = self.pods.get(&name).is_none_or(|before| !has_ended(before));
        if has_ended(&pod) && was_running && is_tracked(&pod) {
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            self.ended.insert(uid.clone(), phase == Some("Succeeded"));
        }
        self.all.insert(uid.clone(), pod.clone());
        let has_finalizers = pod.metadata.finalizers.iter().flatten().next().is_some();
        let is_over = pod.metadata.deletion_timestamp.is_some() && has_ended(&pod);
        if is_over && !has_finalizers {
            self.pods.remove(&name);
            let pod = PodRef::new("ns", &name, &uid);
            self.news.push_back(News::PodGone(pod));
        } else {
            self.news.push_back(News::Pod(Box::new(pod.clone())));
            self.pods.insert(name, pod);
        }
    }

    /// Names of active pods, in the order of their indexes.
    pub(crate) fn active(&self) -> Vec<String> {
        let mut pods: Vec<&Pod> = self.pods.values().filter(|pod| is_active(pod)).collect();
        pods.sort_by_key(|pod| index_of(pod));
        pods.iter().map(|pod| pod.metadata.name.clone().unwrap()).collect()
    }

    /// The indexes of active pods.
    pub(crate) fn active_indexes(&self) -> Vec<i32> {
        let mut indexes: Vec<i32> =
            self.pods.values().filter(|pod| is_active(pod)).map(index_of).collect();
        indexes.sort_unstable();
        indexes
    }

    /// The newest pod of an index.
    pub(crate) fn of_index(&self, index: i32) -> String {
        let pods = self.pods.values().filter(|pod| index_of(pod) == index && is_active(pod));
        let pod = pods.max_by_key(|pod| pod.metadata.resource_version.clone());
        pod.unwrap_or_else(|| panic!("no active pod of index {index}"))
            .metadata
            .name
            .clone()
            .unwrap()
    }

    pub(crate) fn pod(&self, name: &str) -> &Pod {
        &self.pods[name]
    }

    /// A pod runs and is ready.
    pub(crate) fn run(&mut self, name: &str) {
        let mut pod = self.pods[name].clone();
        let status = pod.status.get_or_insert_default();
        status.phase = Some("Running".into());
        status.conditions = Some(vec![PodCondition {
            type_: "Ready".into(),
            status: "True".into(),
            last_transition_time: Some(Time(self.now)),
            ..PodCondition::default()
        }]);
        pod.spec.get_or_insert_default().node_name = Some("node".into());
        self.put_pod(pod);
    }

    /// A pod ends by itself.
    pub(crate) fn end(&mut self, name: &str, exit_code: i32) {
        let mut pod = self.pods[name].clone();
        let status = pod.status.get_or_insert_default();
        status.phase = Some(if exit_code == 0 { "Succeeded" } else { "Failed" }.into());
        status.conditions = None;
        let container = json!({"name": "c", "image": "i", "imageID": "", "ready": false,
            "restartCount": 0, "state": {"terminated":
                {"exitCode": exit_code, "finishedAt": Time(self.now)}}});
        status.container_statuses = Some(vec![ContainerStatus::deserialize(container).unwrap()]);
        self.put_pod(pod);
    }

    pub(crate) fn fail_all(&mut self) {
        for name in self.active() {
            self.end(&name, 1);
        }
    }

    pub(crate) fn succeed_all(&mut self) {
        for name in self.active() {
            self.end(&name, 0);
        }
    }

    /// Somebody deletes a pod.
    pub(crate) fn delete_pod(&mut self, name: &str) -> bool {
        let Some(mut pod) = self.pods.get(name).cloned() else { return false };
        if pod.metadata.deletion_timestamp.is_none() {
            pod.metadata.deletion_timestamp = Some(Time(self.now));
            pod.metadata.deletion_grace_period_seconds = Some(0);
            let is_assigned = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
            if !is_assigned && pod.metadata.finalizers.iter().flatten().next().is_none() {
                pod.status.get_or_insert_default().phase = Some("Failed".into());
            }
            self.put_pod(pod);
        }
        true
    }

    /// Ends all pods that are asked to.
    pub(crate) fn end_terminating(&mut self) {
        let names: Vec<String> = self
            .pods
            .iter()
            .filter(|(_, pod)| pod.metadata.deletion_timestamp.is_some() && !has_ended(pod))
            .map(|(name, _)| name.clone())
            .collect();
        for name in names {
            self.end(&name, 143);
        }
    }

    /// A pod that no Job has made.
    pub(crate) fn add_pod(&mut self, name: &str, change: impl FnOnce(&mut Pod)) {
        self.uids += 1;
        let mut pod = Pod::default();
        pod.metadata.name = Some(name.into());
        pod.metadata.namespace = Some("ns".into());
        pod.metadata.uid = Some(format!("pod-{}", self.uids));
        pod.metadata.creation_timestamp = Some(Time(self.now));
        change(&mut pod);
        self.put_pod(pod);
    }

    pub(crate) fn tick(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    /// The driver starts anew and knows only what the API has.
    pub(crate) fn restart(&mut self) {
        self.driver = Jobs::new(self.options.clone());
        self.news.clear();
        self.list();
    }

    /// The driver starts anew, set up in another way.
    pub(crate) fn restart_with(&mut self, options: Options) {
        self.options = options;
        self.restart();
    }

    /// Both watches begin anew.
    pub(crate) fn list(&mut self) {
        self.news.clear();
        self.driver.pods_listing();
        for pod in self.pods.values() {
            self.driver.pod_seen(pod, self.now);
        }
        self.driver.pods_listed(self.now);
        self.driver.jobs_listing();
        if let Some(job) = &self.job {
            self.driver.job_seen(job, self.now);
        }
        self.driver.jobs_listed(self.now);
    }

    /// Brings the next `count` changes to the driver.
    pub(crate) fn deliver(&mut self, count: usize) {
        for _ in 0..count {
            match self.news.pop_front() {
                None => return,
                Some(News::Job(job)) => self.driver.job_seen(&job, self.now),
                Some(News::JobGone(uid)) => {
                    let key = self.key();
                    self.driver.job_gone(&key, &uid, self.now);
                }
                Some(News::Pod(pod)) => self.driver.pod_seen(&pod, self.now),
                Some(News::PodGone(pod)) => self.driver.pod_gone(&pod, self.now),
            }
        }
    }

    /// Brings all changes and runs all passes until nothing is due.
    pub(crate) fn settle(&mut self) {
        for _ in 0..500 {
            self.deliver(usize::MAX);
            if self.pass().is_none() && self.news.is_empty() {
                self.check_nothing_left();
                return;
            }
        }
        panic!("does not settle: {:#?}", self.log.iter().rev().take(20).collect::<Vec<_>>());
    }

    /// A plan that was carried out leaves nothing to do, unless something was refused.
    fn check_nothing_left(&self) {
        let Some(view) = self.driver.view(&self.key()) else { return };
        if self.driver.next_due().is_some_and(|due| self.is_retry(due)) {
            return;
        }
        let plan = plan(view, &Memory::default(), &self.options, self.now);
        let left = plan.steps.iter().find(|step| !matches!(step, Step::Emit(_)));
        assert_eq!(left, None, "{:?}", self.waiting);
        assert!(plan.waiting.is_some());
    }

    /// Whether the driver wants to be woken for another reason than the plan does.
    fn is_retry(&self, due: Timestamp) -> bool {
        let back_off = match &self.waiting {
            Some(Waiting::BackOff { until, .. }) => Some(*until),
            Some(Waiting::Running { deadline, .. }) => *deadline,
            _ => None,
        };
        back_off != Some(due)
    }

    /// Settles, then goes on to each moment the driver wants to be woken at.
    pub(crate) fn settle_until(&mut self, limit: Timestamp) {
        self.settle();
        while let Some(due) = self.driver.next_due().filter(|due| *due <= limit) {
            self.now = self.now.max(due);
            self.settle();
        }
        self.now = self.now.max(limit);
    }

    /// Runs the next pass, and the next orphan, if there are any.
    pub(crate) fn pass(&mut self) -> Option<Plan> {
        while let Some(Orphan { pod, unseen }) = self.driver.next_orphan(self.now) {
            let job = self.job.as_ref().and_then(|job| job.metadata.uid.as_ref());
            let refusal = if unseen.is_some_and(|(_, uid)| job == Some(&uid)) {
                Some(refusal(RefusalKind::Conflict))
            } else {
                self.log.push(format!("free {}", pod.name));
                self.strip(&pod).err()
            };
            self.driver.orphan_done(&pod, refusal.as_ref(), self.now);
        }
        let (key, plan) = self.driver.next(self.now)?;
        assert!(!plan.steps.is_empty() || plan.waiting.is_some(), "nothing to do, and no reason");
        self.carry_out(&key, &plan, usize::MAX);
        self.driver.done(&key, self.now);
        self.facts.extend(self.driver.take_facts());
        Some(plan)
    }

    /// Carries out the first `count` steps of a plan, as a shell does.
    pub(crate) fn carry_out(&mut self, key: &Key, plan: &Plan, count: usize) {
        self.waiting.clone_from(&plan.waiting);
        for step in plan.steps.iter().take(count) {
            if !self.step(key, step) {
                break;
            }
        }
    }

    /// Carries out one step; whether it worked.
    pub(crate) fn step(&mut self, key: &Key, step: &Step) -> bool {
        match step {
            Step::WriteStatus(write) => match self.write_status(write) {
                Ok(job) => self.driver.status_written(key, &job),
                Err(refusal) => {
                    self.driver.failed(key, &refusal, self.now);
                    return false;
                }
            },
            Step::Adopt { job_uid, pods } => {
                let live = self.job.as_ref().filter(|job| {
                    job.metadata.uid.as_ref() == Some(job_uid)
                        && job.metadata.deletion_timestamp.is_none()
                });
                if live.is_none() {
                    self.driver.failed(key, &refusal(RefusalKind::NotFound), self.now);
                    return false;
                }
                return self.patch(key, pods, "adopt", |pod| adopt(pod, job_uid));
            }
            Step::Release { job_uid, pods } => {
                return self.patch(key, pods, "release", |pod| release(pod, job_uid));
            }
            Step::Relist { uids } => {
                self.log.push("relist".into());
                let pods: Vec<Pod> = self.pods.values().cloned().collect();
                self.driver.relisted(key, uids, &pods);
            }
            Step::Create(pods) => return self.create(key, pods),
            Step::Delete { pods, strip_finalizer_first } => {
                return self.delete(key, pods, *strip_finalizer_first);
            }
            Step::RemoveFinalizers(pods) => return self.patch(key, pods, "strip", strip),
            Step::Emit(event) => self.events.push(event.clone()),
            Step::Note(fact) => self.facts.push(fact.clone()),
        }
        true
    }

    fn write_status(&mut self, write: &StatusWrite) -> Result<Job, Refusal> {
        let luck = self.lucks.pop_front().unwrap_or(Luck::Fine);
        if luck == Luck::Refused {
            return Err(refusal(RefusalKind::Other));
        }
        let Some(old) =
            self.job.clone().filter(|job| job.metadata.uid.as_ref() == Some(&write.uid))
        else {
            return Err(refusal(RefusalKind::NotFound));
        };
        if old.metadata.resource_version.as_ref() != Some(&write.resource_version) {
            return Err(refusal(RefusalKind::Conflict));
        }
        let mut job = old.clone();
        job.status = Some(write.status.clone());
        let (new_json, old_json) = (to_json(&job), to_json(&old));
        let errors = STRATEGY.validate_status_update(&new_json, &old_json);
        assert!(errors.is_empty(), "{errors:?}\nfrom {:#?}\nto {:#?}", old.status, job.status);
        let job = Job::deserialize(Value::Object(new_json)).unwrap();
        assert_eq!(job.status.as_ref(), Some(&write.status), "what is written is what is read");
        self.log.push("status".into());
        self.check_ledger(&old, &job);
        self.put_job(job);
        match luck {
            Luck::Unanswered => Err(refusal(RefusalKind::Other)),
            Luck::Fine | Luck::Refused => Ok(self.job.clone().unwrap()),
        }
    }

    /// A pod is listed once, and each that leaves a list moves a counter by one.
    fn check_ledger(&mut self, old: &Job, new: &Job) {
        let lists = |job: &Job| {
            let status = job.status.clone().unwrap_or_default();
            let pods = status.uncounted_terminated_pods.unwrap_or_default();
            let counts = [status.succeeded.unwrap_or(0), status.failed.unwrap_or(0)];
            ([pods.succeeded.unwrap_or_default(), pods.failed.unwrap_or_default()], counts)
        };
        let ((old_lists, old_counts), (new_lists, new_counts)) = (lists(old), lists(new));
        let is_indexed = new.spec.as_ref().unwrap().completion_mode.as_deref() == Some("Indexed");
        for at in [0, 1] {
            let is_failure = at == 1;
            for uid in new_lists[at].iter().filter(|uid| !old_lists[at].contains(uid)) {
                let before = self.listed.insert(uid.clone(), is_failure);
                assert_eq!(before, None, "{uid} is counted twice");
            }
            let left = old_lists[at].iter().filter(|uid| !new_lists[at].contains(uid));
            for uid in left.clone() {
                let is_held = self
                    .pods
                    .values()
                    .any(|pod| pod.metadata.uid.as_ref() == Some(uid) && is_tracked(pod));
                assert!(!is_held, "{uid} is counted with its finalizer on");
            }
            if is_failure || !is_indexed {
                let moved = i32::try_from(left.count()).unwrap();
                assert_eq!(new_counts[at] - old_counts[at], moved, "what left the list is counted");
            }
        }
    }

    fn create(&mut self, key: &Key, pods: &[NewPod]) -> bool {
        for batch in slow_start(pods.len()) {
            let mut is_fine = true;
            for pod in &pods[batch] {
                is_fine &= self.create_one(key, pod);
            }
            if !is_fine {
                return false;
            }
        }
        true
    }

    fn create_one(&mut self, key: &Key, new: &NewPod) -> bool {
        let luck = self.lucks.pop_front().unwrap_or(Luck::Fine);
        if luck == Luck::Refused {
            let refusal = refusal(RefusalKind::Refused);
            self.events.extend(self.driver.create_failed(key, new, &refusal, None));
            return false;
        }
        if let Some(found) = self.pods.get(&new.name).cloned() {
            self.log.push(format!("exists {}", new.name));
            let refusal = refusal(RefusalKind::AlreadyExists);
            self.events.extend(self.driver.create_failed(key, new, &refusal, Some(&found)));
            return true;
        }
        let mut pod = (*new.pod).clone();
        self.uids += 1;
        pod.metadata.uid = Some(format!("pod-{}", self.uids));
        pod.metadata.creation_timestamp = Some(Time(self.now));
        pod.status.get_or_insert_default().phase = Some("Pending".into());
        self.log.push(format!("create {}", new.name));
        let has_twin =
            self.pods.values().any(|other| is_active(other) && index_of(other) == index_of(&pod));
        assert!(new.index.is_none() || !has_twin, "two pods of index {:?}", new.index);
        self.put_pod(pod);
        let spec = self.job.as_ref().and_then(|job| job.spec.as_ref());
        let is_patient =
            spec.is_some_and(|spec| spec.pod_replacement_policy.as_deref() == Some("Failed"));
        let owners = new.pod.metadata.owner_references.clone();
        let held = |pod: &&Pod| {
            pod.metadata.owner_references == owners
                && !has_ended(pod)
                && (is_patient || is_active(pod))
        };
        let count = self.pods.values().filter(held).count();
        assert!(count <= self.parallelism_max, "{count} pods at once");
        let pod = self.pods[&new.name].clone();
        if luck == Luck::Unanswered {
            let refusal = refusal(RefusalKind::Other);
            self.events.extend(self.driver.create_failed(key, new, &refusal, None));
            return false;
        }
        self.events.push(self.driver.created(key, &pod));
        true
    }

    fn delete(&mut self, key: &Key, pods: &[PodRef], strips: bool) -> bool {
        let mut is_fine = true;
        for pod in pods {
            if strips && !self.patch(key, std::slice::from_ref(pod), "strip", strip) {
                is_fine = false;
                continue;
            }
            let luck = self.lucks.pop_front().unwrap_or(Luck::Fine);
            let is_there = self
                .pods
                .get(&pod.name)
                .is_some_and(|it| it.metadata.uid.as_ref() == Some(&pod.uid));
            if luck == Luck::Refused || !is_there {
                let kind = if is_there { RefusalKind::Other } else { RefusalKind::NotFound };
                is_fine &= !is_there;
                self.events.extend(self.driver.delete_failed(key, pod, &refusal(kind)));
                continue;
            }
            self.log.push(format!("delete {}", pod.name));
            self.delete_pod(&pod.name);
            if luck == Luck::Unanswered {
                let refusal = refusal(RefusalKind::Other);
                self.events.extend(self.driver.delete_failed(key, pod, &refusal));
                is_fine = false;
            } else {
                let answer = self.pods.get(&pod.name).cloned();
                self.events.push(self.driver.deleted(key, pod, answer.as_ref()));
            }
        }
        is_fine
    }

    fn patch(&mut self, key: &Key, pods: &[PodRef], what: &str, change: impl Fn(&mut Pod)) -> bool {
        let mut is_fine = true;
        for pod in pods {
            match self.patch_one(pod, what, &change) {
                Ok(pod) => self.driver.patched(key, &pod),
                Err(refusal) => {
                    is_fine &= refusal.kind == RefusalKind::NotFound;
                    self.events.extend(self.driver.patch_failed(key, pod, &refusal));
                }
            }
        }
        is_fine
    }

    fn strip(&mut self, pod: &PodRef) -> Result<Pod, Refusal> {
        self.patch_one(pod, "strip", &strip)
    }

    fn patch_one(
        &mut self,
        target: &PodRef,
        what: &str,
        change: &dyn Fn(&mut Pod),
    ) -> Result<Pod, Refusal> {
        let luck = self.lucks.pop_front().unwrap_or(Luck::Fine);
        let pod = self.pods.get(&target.name).cloned();
        let Some(mut pod) = pod.filter(|pod| pod.metadata.uid.as_ref() == Some(&target.uid)) else {
            return Err(refusal(RefusalKind::NotFound));
        };
        if luck == Luck::Refused {
            return Err(refusal(RefusalKind::Other));
        }
        let is_bound = what == "strip" && target.version.is_some();
        if is_bound && pod.metadata.resource_version != target.version {
            return Err(refusal(RefusalKind::Conflict));
        }
        let before = pod.clone();
        change(&mut pod);
        if pod != before {
            self.log.push(format!("{what} {}", target.name));
            self.put_pod(pod);
        }
        let uid = &target.uid;
        match luck {
            Luck::Unanswered => Err(refusal(RefusalKind::Other)),
            Luck::Fine | Luck::Refused => Ok(self.all[uid].clone()),
        }
    }
}

pub(crate) fn index_of(pod: &Pod) -> i32 {
    let annotations = pod.metadata.annotations.as_ref();
    let index = annotations.and_then(|all| all.get("batch.kubernetes.io/job-completion-index"));
    index.and_then(|index| index.parse().ok()).unwrap_or(-1)
}

pub(crate) fn is_tracked(pod: &Pod) -> bool {
    pod.metadata.finalizers.iter().flatten().any(|name| name == JOB_TRACKING_FINALIZER)
}

pub(crate) fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

pub(crate) fn is_active(pod: &Pod) -> bool {
    !has_ended(pod) && pod.metadata.deletion_timestamp.is_none()
}

fn strip(pod: &mut Pod) {
    let finalizers = pod.metadata.finalizers.get_or_insert_default();
    finalizers.retain(|name| name != JOB_TRACKING_FINALIZER);
}

fn adopt(pod: &mut Pod, job_uid: &str) {
    strip(pod);
    pod.metadata.finalizers.get_or_insert_default().push(JOB_TRACKING_FINALIZER.into());
    let owners = pod.metadata.owner_references.get_or_insert_default();
    owners.retain(|owner| owner.uid != job_uid);
    owners.push(OwnerReference {
        api_version: "batch/v1".into(),
        kind: "Job".into(),
        name: "j".into(),
        uid: job_uid.into(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    });
}

fn release(pod: &mut Pod, job_uid: &str) {
    strip(pod);
    let owners = pod.metadata.owner_references.get_or_insert_default();
    owners.retain(|owner| owner.uid != job_uid);
}

fn refusal(kind: RefusalKind) -> Refusal {
    Refusal { kind, message: "no luck".into() }
}

fn to_json(job: &Job) -> Json {
    let Value::Object(job) = serde_json::to_value(job).unwrap() else { unreachable!() };
    job
}
