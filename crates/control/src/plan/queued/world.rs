//! A cluster small enough for a test: jobs, their Workloads, and an API that keeps versions and
//! refuses what a real one would.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockstep_api::Gates;
use lockstep_api::job::JobStrategy;
use lockstep_api::jobset::JobSetStrategy;
use lockstep_api::kueue::{ResourceFlavor, Workload, WorkloadPriorityClass};
use lockstep_api::strategy::{Strategy, WriteContext};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{JobKey, Kind, Patch, Plan, QueuedJobs, Settings, Step, Waiting, WorkloadRef};
use crate::plan::{Event, Key, Refusal, RefusalKind};

pub(super) const NS: &str = "ns";

pub(super) struct World {
    pub(super) now: Timestamp,
    pub(super) driver: QueuedJobs,
    version: u64,
    uids: u64,
    jobs: BTreeMap<JobKey, Value>,
    workloads: BTreeMap<String, Value>,
    others: Vec<Other>,
    events: Vec<Event>,
    /// What was asked of the API, in short.
    log: Vec<String>,
    /// Jobs that have changed without the driver having heard of it.
    unheard: BTreeSet<JobKey>,
}

const CONFLICT: Refusal = Refusal { kind: RefusalKind::Conflict, message: String::new() };

/// What else the driver is told.
#[derive(Clone)]
enum Other {
    Namespace(String, BTreeMap<String, String>),
    Flavor(ResourceFlavor),
    Class(WorkloadPriorityClass),
    PodClass(PriorityClass),
}

pub(super) fn job_key(name: &str) -> JobKey {
    JobKey::new(Kind::Job, key(name))
}

pub(super) fn set_key(name: &str) -> JobKey {
    JobKey::new(Kind::JobSet, key(name))
}

pub(super) fn key(name: &str) -> Key {
    Key { namespace: NS.to_owned(), name: name.to_owned() }
}

/// A value as the type that has its shape.
pub(super) fn typed<T: DeserializeOwned>(value: &Value) -> T {
    T::deserialize(value).unwrap()
}

impl World {
    pub(super) fn new(settings: Settings) -> Self {
        let mut world = Self {
            now: "2026-11-17T12:00:00Z".parse().unwrap(),
            driver: QueuedJobs::new(settings),
            version: 1,
            uids: 0,
            jobs: BTreeMap::new(),
            workloads: BTreeMap::new(),
            others: Vec::new(),
            events: Vec::new(),
            log: Vec::new(),
            unheard: BTreeSet::new(),
        };
        world.tell(Other::Namespace(NS.to_owned(), BTreeMap::new()));
        world.list();
        world
    }

    fn list(&mut self) {
        let driver = &mut self.driver;
        driver.jobs_listed();
        driver.jobsets_listed();
        assert_eq!(driver.workloads_listed(self.now), [], "none was made before");
        driver.flavors_listed();
        driver.priority_classes_listed();
        driver.pod_priority_classes_listed();
        driver.namespaces_listed();
    }

    /// The driver is another one, that knows nothing but what there is.
    pub(super) fn crash(&mut self) {
        self.driver = QueuedJobs::new(self.driver.settings().clone());
        for other in std::mem::take(&mut self.others) {
            self.tell(other);
        }
        self.list();
        for key in self.jobs.keys().cloned().collect::<Vec<_>>() {
            self.tell_job(&key);
        }
        for name in self.workloads.keys().cloned().collect::<Vec<_>>() {
            self.tell_workload(&name);
        }
    }

    fn tell(&mut self, other: Other) {
        let (driver, now) = (&mut self.driver, self.now);
        match &other {
            Other::Namespace(name, labels) => driver.namespace_seen(name, labels, now),
            Other::Flavor(flavor) => driver.flavor_seen(flavor, now),
            Other::Class(class) => driver.priority_class_seen(class, now),
            Other::PodClass(class) => driver.pod_priority_class_seen(class, now),
        }
        self.others.push(other);
    }

    pub(super) fn namespace(&mut self, name: &str, labels: Value) {
        self.tell(Other::Namespace(name.to_owned(), typed(&labels)));
    }

    pub(super) fn flavor(&mut self, name: &str, spec: Value) {
        let flavor = typed(&json!({"metadata": {"name": name}, "spec": spec}));
        self.tell(Other::Flavor(flavor));
    }

    pub(super) fn class(&mut self, name: &str, value: i32) {
        let class = typed(&json!({"metadata": {"name": name}, "value": value}));
        self.tell(Other::Class(class));
    }

    pub(super) fn pod_class(&mut self, name: &str, value: i32, is_default: bool) {
        let class = typed(&json!({
            "metadata": {"name": name}, "value": value, "globalDefault": is_default,
        }));
        self.tell(Other::PodClass(class));
    }

    /// Creates a job as the API does it.
    pub(super) fn create(&mut self, kind: Kind, name: &str, meta: Value, spec: Value) {
        let mut meta = meta;
        meta["name"] = name.into();
        meta["namespace"] = NS.into();
        let mut object = as_object(json!({"metadata": meta, "spec": spec}));
        let strategy = strategy(kind);
        let context = self.context();
        object["metadata"]["uid"] = context.uid.clone().into();
        strategy.fill_defaults(&mut object);
        strategy.prepare_create(&mut object, &context);
        let errors = strategy.validate_create(&object);
        assert!(errors.is_empty(), "{errors:?}");
        object["metadata"]["creationTimestamp"] = self.now.to_string().into();
        self.put_job(JobKey::new(kind, key(name)), Value::Object(object));
    }

    /// Puts a job there as it is, whatever the API would say.
    pub(super) fn put_job(&mut self, key: JobKey, mut job: Value) {
        self.version += 1;
        job["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.jobs.insert(key.clone(), job);
        self.tell_job(&key);
    }

    pub(super) fn tell_job(&mut self, key: &JobKey) {
        self.unheard.remove(key);
        let (job, now) = (&self.jobs[key], self.now);
        match key.kind {
            Kind::Job => self.driver.job_seen(&Arc::new(typed(job)), now),
            Kind::JobSet => self.driver.jobset_seen(&Arc::new(typed(job)), now),
            Kind::Orphan => unreachable!(),
        }
    }

    fn tell_workload(&mut self, name: &str) {
        let workload: Workload = typed(&self.workloads[name]);
        self.driver.workload_seen(&Arc::new(workload), self.now);
    }

    pub(super) fn job(&self, key: &JobKey) -> &Value {
        &self.jobs[key]
    }

    /// Somebody changes a job.
    pub(super) fn edit_job(&mut self, key: &JobKey, change: impl FnOnce(&mut Value)) {
        let mut job = self.jobs[key].clone();
        change(&mut job);
        self.put_job(key.clone(), job);
    }

    pub(super) fn delete_job(&mut self, key: &JobKey) {
        let job = self.jobs.remove(key).unwrap();
        let uid = job["metadata"]["uid"].as_str().unwrap();
        match key.kind {
            Kind::Job => self.driver.job_gone(&key.key, uid, self.now),
            Kind::JobSet => self.driver.jobset_gone(&key.key, uid, self.now),
            Kind::Orphan => unreachable!(),
        }
    }

    pub(super) fn workload_names(&self) -> Vec<String> {
        self.workloads.keys().cloned().collect()
    }

    /// The only workload that there is.
    pub(super) fn workload(&self) -> &Value {
        assert_eq!(self.workloads.len(), 1, "{:?}", self.workloads.keys());
        self.workloads.values().next().unwrap()
    }

    /// Puts a workload there, whoever made it.
    pub(super) fn put_workload(&mut self, mut workload: Value) {
        let name = workload["metadata"]["name"].as_str().unwrap().to_owned();
        workload["metadata"]["namespace"] = NS.into();
        if workload["metadata"]["uid"].is_null() {
            workload["metadata"]["uid"] = self.context().uid.into();
        }
        self.version += 1;
        workload["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.workloads.insert(name.clone(), workload);
        self.tell_workload(&name);
    }

    /// Somebody changes the only workload.
    pub(super) fn edit_workload(&mut self, change: impl FnOnce(&mut Value)) {
        let mut workload = self.workload().clone();
        change(&mut workload);
        self.put_workload(workload);
        self.collect();
    }

    /// Says something of the only workload.
    pub(super) fn say(&mut self, kind: &str, is_true: bool, reason: &str, message: &str) {
        let condition = json!({
            "type": kind, "status": if is_true { "True" } else { "False" }, "reason": reason,
            "message": message, "lastTransitionTime": self.now.to_string(),
        });
        self.edit_workload(|workload| {
            let known = workload["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let others = known.into_iter().filter(|one| one["type"] != condition["type"]);
            let all: Vec<Value> = others.chain([condition.clone()]).collect();
            workload["status"]["conditions"] = all.into();
        });
    }

    /// Admits the only workload, with these flavors for all of its pods.
    pub(super) fn admit(&mut self, flavors: Value) {
        let sets = self.workload()["spec"]["podSets"].as_array().cloned().unwrap_or_default();
        let assignments: Vec<Value> = sets
            .iter()
            .map(|set| json!({"name": set["name"], "flavors": flavors, "count": set["count"]}))
            .collect();
        self.edit_workload(|workload| {
            workload["status"]["admission"] =
                json!({"clusterQueue": "cq", "podSetAssignments": assignments});
        });
        self.say("QuotaReserved", true, "QuotaReserved", "Quota reserved in ClusterQueue cq");
        self.say("Admitted", true, "Admitted", "The workload is admitted");
        self.say("Evicted", false, "QuotaReserved", "Previously: ...");
    }

    /// Runs passes until nothing is left to do now, and looks whether that is true.
    pub(super) fn settle(&mut self) {
        for _ in 0..40 {
            if !self.pass() {
                self.assert_settled();
                return;
            }
        }
        panic!("there is always something to do: {:?}", self.log);
    }

    /// Runs one pass, if one is due.
    pub(super) fn pass(&mut self) -> bool {
        let Some((key, plan)) = self.driver.next(self.now) else { return false };
        assert!(!plan.steps.is_empty() || plan.waiting.is_some(), "a plan without steps says why");
        for step in plan.steps {
            if !self.is_known(&key, &step) {
                self.driver.refused(&key, &CONFLICT, self.now);
                break;
            }
            self.carry_out(&key, step);
        }
        self.driver.done(&key, self.now);
        true
    }

    /// Runs one pass whose patch of the job is carried out, though the answer says otherwise.
    /// Nobody hears of it for now.
    pub(super) fn pass_unheard(&mut self) {
        let (key, plan) = self.driver.next(self.now).unwrap();
        let mut patches = plan.steps.iter();
        let Some(Step::PatchJob { patch: Patch::Merge(patch), .. }) = patches.next() else {
            panic!("{plan:?}");
        };
        let mut job = self.jobs[&key].clone();
        merge(&mut job, patch);
        self.version += 1;
        job["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.jobs.insert(key.clone(), job);
        self.unheard.insert(key.clone());
        self.driver.refused(&key, &CONFLICT, self.now);
        self.driver.done(&key, self.now);
    }

    /// Whether a job that a step is about is what the driver knows.
    fn is_known(&self, job: &JobKey, step: &Step) -> bool {
        !matches!(step, Step::PatchJob { .. }) || !self.unheard.contains(job)
    }

    /// A carried-out plan leaves nothing to do, for whoever comes anew too.
    fn assert_settled(&self) {
        let keys: Vec<JobKey> = self.driver.keys().cloned().collect();
        for key in keys {
            let Plan { steps, .. } = self.driver.replan(&key, self.now);
            assert_eq!(steps, [], "{key}");
        }
    }

    fn carry_out(&mut self, job: &JobKey, step: Step) {
        let now = self.now;
        match step {
            Step::CreateWorkload(workload) => {
                self.log.push("create workload".to_owned());
                let mut value = serde_json::to_value(*workload).unwrap();
                let name = value["metadata"]["name"].as_str().unwrap().to_owned();
                assert!(!self.workloads.contains_key(&name), "{name} is there already");
                self.version += 1;
                value["metadata"]["uid"] = self.context().uid.into();
                value["metadata"]["generation"] = 1.into();
                value["metadata"]["resourceVersion"] = self.version.to_string().into();
                value["metadata"]["creationTimestamp"] = now.to_string().into();
                self.workloads.insert(name, value.clone());
                self.driver.workload_written(job, typed(&value), now);
            }
            Step::WriteWorkloadStatus { workload, status } => {
                self.log.push("write status".to_owned());
                self.write_workload(job, &workload, |value| {
                    value["status"] = serde_json::to_value(*status).unwrap();
                });
            }
            Step::PatchWorkload { workload, patch } if is_question(&patch) => {
                self.log.push("ask workload".to_owned());
                let value = &self.workloads[&workload.key.name];
                assert_eq!(value["metadata"]["resourceVersion"], workload.version);
                self.driver.workload_written(job, typed(value), now);
            }
            Step::PatchWorkload { workload, patch } => {
                self.log.push("patch workload".to_owned());
                self.write_workload(job, &workload, |value| merge(value, &patch));
                self.collect();
            }
            Step::DeleteWorkload { workload } => {
                self.log.push("delete workload".to_owned());
                self.delete_workload(&workload.key.name);
            }
            Step::PatchJob { uid, patch } => {
                let word = if asks(&patch) { "ask" } else { "patch" };
                self.log.push(format!("{word} {}", job.key.name));
                assert_eq!(self.jobs[job]["metadata"]["uid"], uid);
                self.patch_job(job, &patch, false);
            }
            Step::ClearStartTime { uid, patch } => {
                self.log.push(format!("clear {}", job.key.name));
                assert_eq!(self.jobs[job]["metadata"]["uid"], uid);
                self.patch_job(job, &Patch::Merge(patch), true);
            }
            Step::DeleteJob { uid } => {
                self.log.push(format!("delete {}", job.key.name));
                assert_eq!(self.jobs[job]["metadata"]["uid"], uid);
                self.delete_job(job);
            }
            Step::Emit(event) => self.events.push(event),
        }
    }

    fn write_workload(
        &mut self,
        job: &JobKey,
        workload: &WorkloadRef,
        change: impl FnOnce(&mut Value),
    ) {
        let mut value = self.workloads[&workload.key.name].clone();
        assert_eq!(value["metadata"]["uid"], workload.uid);
        assert_eq!(value["metadata"]["resourceVersion"], workload.version);
        let before = value.clone();
        change(&mut value);
        assert_eq!(value["metadata"]["resourceVersion"], workload.version);
        assert_ne!(value, before, "nothing is written for nothing");
        self.version += 1;
        value["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.workloads.insert(workload.key.name.clone(), value.clone());
        self.driver.workload_written(job, typed(&value), self.now);
    }

    /// Somebody deletes a workload: it is gone when nobody holds it back.
    pub(super) fn delete_workload(&mut self, name: &str) {
        let mut workload = self.workloads[name].clone();
        workload["metadata"]["deletionTimestamp"] = self.now.to_string().into();
        self.put_workload(workload);
        self.collect();
    }

    fn collect(&mut self) {
        let is_gone = |workload: &Value| {
            let meta = &workload["metadata"];
            let held = meta["finalizers"].as_array().is_some_and(|all| !all.is_empty());
            !meta["deletionTimestamp"].is_null() && !held
        };
        let gone = self.workloads.iter().filter(|(_, workload)| is_gone(workload));
        let gone: Vec<(String, Value)> =
            gone.map(|(name, one)| (name.clone(), one.clone())).collect();
        for (name, workload) in gone {
            self.workloads.remove(&name);
            let uid = workload["metadata"]["uid"].as_str().unwrap();
            self.driver.workload_gone(&key(&name), uid, self.now);
        }
    }

    fn patch_job(&mut self, job: &JobKey, patch: &Patch, is_status: bool) {
        let old = self.jobs[job].clone();
        let mut new = old.clone();
        match patch {
            Patch::Merge(patch) => merge(&mut new, patch),
            Patch::Json(patch) => apply(&mut new, patch),
        }
        let version = &old["metadata"]["resourceVersion"];
        assert_eq!(&new["metadata"]["resourceVersion"], version, "{patch:?}");
        if new == old {
            assert!(asks(patch), "nothing is written for nothing");
            return;
        }
        let (strategy, old) = (strategy(job.kind), as_object(old));
        let mut object = as_object(new);
        let errors = if is_status {
            strategy.validate_status_update(&object, &old)
        } else {
            strategy.prepare_update(&mut object, &old, &self.context());
            strategy.validate_update(&object, &old)
        };
        assert!(errors.is_empty(), "{errors:?}");
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        let value = Value::Object(object);
        self.jobs.insert(job.clone(), value.clone());
        match job.kind {
            Kind::Job => self.driver.job_written(job, typed(&value), self.now),
            Kind::JobSet => self.driver.jobset_written(job, typed(&value), self.now),
            Kind::Orphan => unreachable!(),
        }
    }

    fn context(&mut self) -> WriteContext {
        self.uids += 1;
        WriteContext { now: self.now, uid: format!("uid-{}", self.uids), user: "me".into() }
    }

    pub(super) fn tick(&mut self, seconds: i64) {
        self.now = self.now.checked_add(SignedDuration::from_secs(seconds)).unwrap();
    }

    pub(super) fn waiting(&self, key: &JobKey) -> Option<Waiting> {
        self.driver.waiting(key).cloned()
    }

    /// `type=status reason: message` of a condition of the only workload.
    pub(super) fn condition(&self, kind: &str) -> String {
        let conditions = self.workload()["status"]["conditions"].as_array().cloned();
        let found = conditions.into_iter().flatten().find(|one| one["type"] == kind);
        found.map_or_else(String::new, |one| {
            let text = |field: &str| one[field].as_str().unwrap_or_default().to_owned();
            format!("{} {}: {}", text("status"), text("reason"), text("message"))
        })
    }

    /// `reason message` of the events since the last time, warnings with an exclamation mark.
    pub(super) fn events(&mut self) -> Vec<String> {
        let mark = |is_warning| if is_warning { "!" } else { "" };
        let events = std::mem::take(&mut self.events).into_iter();
        events
            .map(|one| format!("{}{} {}", mark(one.is_warning), one.reason, one.message))
            .collect()
    }

    /// What was asked of the API since the last time.
    pub(super) fn asked(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }
}

/// Whether a patch only asks whether a job is what it was seen as.
fn is_question(patch: &Value) -> bool {
    let keys = |value: &Value| value.as_object().map_or(0, Map::len);
    (keys(patch), keys(&patch["metadata"])) == (1, 2)
}

fn asks(patch: &Patch) -> bool {
    matches!(patch, Patch::Merge(patch) if is_question(patch))
}

fn strategy(kind: Kind) -> Box<dyn Strategy> {
    match kind {
        Kind::Job => Box::new(JobStrategy::new(Gates::ALL)),
        Kind::JobSet => Box::new(JobSetStrategy::new(Gates::ALL)),
        Kind::Orphan => unreachable!(),
    }
}

fn as_object(value: Value) -> Map<String, Value> {
    let Value::Object(object) = value else { unreachable!() };
    object
}

fn merge(value: &mut Value, patch: &Value) {
    let Some(members) = patch.as_object() else {
        *value = patch.clone();
        return;
    };
    for (key, patch) in members {
        if patch.is_null() {
            value.as_object_mut().into_iter().for_each(|object| drop(object.remove(key)));
        } else {
            merge(&mut value[key.as_str()], patch);
        }
    }
}

/// RFC 6902, as far as it is used.
fn apply(value: &mut Value, patch: &Value) {
    for operation in patch.as_array().unwrap() {
        let path = operation["path"].as_str().unwrap();
        let (parent, last) = path.rsplit_once('/').unwrap();
        let parent = value.pointer_mut(parent).unwrap_or_else(|| panic!("nothing at {path}"));
        let members = parent.as_object_mut().unwrap();
        match operation["op"].as_str() {
            Some("add") => drop(members.insert(last.to_owned(), operation["value"].clone())),
            Some("replace") => {
                assert_eq!(members[last], operation["value"], "only what has to be so is replaced");
            }
            Some("remove") => assert!(members.remove(last).is_some(), "nothing at {path}"),
            other => panic!("{other:?}"),
        }
    }
}
