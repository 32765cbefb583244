//! A cluster small enough for a test: one JobSet, its Jobs, and an API that keeps versions.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::{
        batch::v1::Job,
        core::v1::{PersistentVolumeClaim, Service},
    },
    apimachinery::pkg::apis::meta::v1::Time,
};
use lockstep_api::{
    Gates,
    job::JobStrategy,
    jobset::{JobSet, JobSetStatus, JobSetStrategy},
    strategy::{Json, Strategy, WriteContext},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Annotation, Event, Fact, JobRef, Options, Plan, Step, View, Waiting, in_place::Gang, plan,
};

pub(crate) struct World {
    pub(crate) now: Timestamp,
    version: u64,
    uids: u64,
    pub(crate) jobset: JobSet,
    pub(crate) jobs: BTreeMap<String, Job>,
    pub(crate) service: Option<Service>,
    pub(crate) claims: Vec<PersistentVolumeClaim>,
    pub(crate) gang: Option<Gang>,
    pub(crate) is_deleted: bool,
    pub(crate) options: Options,
    pub(crate) events: Vec<Event>,
    pub(crate) facts: Vec<Fact>,
    /// What was asked of the API, in short.
    pub(crate) log: Vec<String>,
    pub(crate) waiting: Option<Waiting>,
}

impl World {
    /// A world with a JobSet of this spec, filled in as the API does it.
    pub(crate) fn new(spec: Value) -> Self {
        Self::with(Options::default(), json!({}), spec)
    }

    pub(crate) fn with(options: Options, annotations: Value, spec: Value) -> Self {
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        let object = json!({
            "metadata": {"name": "js", "namespace": "ns", "uid": "set", "resourceVersion": "1",
                         "annotations": annotations},
            "spec": spec,
        });
        let mut object = object.as_object().unwrap().clone();
        let strategy = JobSetStrategy::new(options.gates);
        let context = WriteContext { now, uid: "set".into(), user: "me".into() };
        strategy.fill_defaults(&mut object);
        strategy.prepare_create(&mut object, &context);
        let errors = strategy.validate_create(&object);
        assert!(errors.is_empty(), "{errors:?}");
        Self {
            now,
            version: 1,
            uids: 0,
            jobset: JobSet::deserialize(Value::Object(object)).unwrap(),
            jobs: BTreeMap::new(),
            service: None,
            claims: Vec::new(),
            gang: None,
            is_deleted: false,
            options,
            events: Vec::new(),
            facts: Vec::new(),
            log: Vec::new(),
            waiting: None,
        }
    }

    pub(crate) fn view(&self) -> View {
        let mut view = View::new(self.jobset.clone(), self.options.gates);
        for job in self.jobs.values() {
            view.job_seen(Arc::new(job.clone()));
        }
        view.service_seen(self.service.is_some());
        for claim in &self.claims {
            view.claim_seen(claim.metadata.name.as_deref().unwrap());
        }
        if let Some(gang) = &self.gang {
            view.gang_seen(Arc::new(gang.clone()));
        }
        view
    }

    pub(crate) fn plan(&self) -> Plan {
        plan(&self.view(), &self.options, self.now)
    }

    /// Plans and carries out until nothing is left to do.
    pub(crate) fn settle(&mut self) {
        for _ in 0..20 {
            let plan = self.plan();
            self.waiting = plan.waiting;
            if plan.steps.is_empty() {
                assert!(self.waiting.is_some(), "a plan without steps says why");
                return;
            }
            plan.steps.into_iter().for_each(|step| self.carry_out(step));
            if self.is_deleted {
                return;
            }
        }
        panic!("there is always something to do: {:?}", self.log);
    }

    pub(crate) fn carry_out(&mut self, step: Step) {
        match step {
            Step::WriteStatus(write) => {
                assert_eq!(write.uid, "set");
                let known = self.jobset.metadata.resource_version.as_deref();
                assert_eq!(known, Some(write.resource_version.as_str()));
                self.write_status(write.status);
            }
            Step::DeleteJobs(jobs) => jobs.iter().for_each(|job| self.delete(job)),
            Step::DeleteJobSet { uid } => {
                assert_eq!(uid, "set");
                self.is_deleted = true;
            }
            Step::CreateService(service) => {
                self.log.push("service".to_owned());
                self.service = Some(*service);
            }
            Step::CreateJobs(jobs) => jobs.into_iter().for_each(|job| self.create(job)),
            Step::CreateClaims(claims) => {
                self.log.push("claims".to_owned());
                self.claims.extend(claims.into_iter().flatten());
            }
            Step::ResizeJobs(jobs) => {
                for one in jobs {
                    let sizes = json!({"parallelism": one.size, "completions": one.size});
                    self.patch(&one.job, &json!({"spec": sizes}), "resize");
                }
            }
            Step::SuspendJobs(jobs) => {
                for job in jobs {
                    self.patch(&job, &json!({"spec": {"suspend": true}}), "suspend");
                }
            }
            Step::ClearStartTimes(jobs) => {
                for job in jobs {
                    self.patch(&job, &json!({"status": {"startTime": null}}), "clear");
                }
            }
            Step::ResumeJobs(jobs) => {
                for one in jobs {
                    self.patch(&one.job, &one.patch, "resume");
                }
            }
            Step::Annotate(Annotation { uid, resource_version, key, value }) => {
                let meta = &self.jobset.metadata;
                assert_eq!(meta.uid.as_ref(), Some(&uid));
                assert_eq!(meta.resource_version.as_ref(), Some(&resource_version));
                self.log.push(format!("annotate {value}"));
                self.edit(|jobset| {
                    jobset.metadata.annotations.get_or_insert_default().insert(key, value);
                });
            }
            Step::PutTicket(ticket) => self.log.push(format!("ticket {}", ticket.generation)),
            Step::Emit(event) => self.events.push(event),
            Step::Note(fact) => self.facts.push(fact),
        }
    }

    fn write_status(&mut self, status: JobSetStatus) {
        self.log.push("status".to_owned());
        let value = json!({"metadata": {"name": "js"}, "status": status});
        let object = value.as_object().unwrap().clone();
        let strategy = JobSetStrategy::new(self.options.gates);
        let errors = strategy.validate_status_update(&object, &Json::new());
        assert!(errors.is_empty(), "{errors:?}");
        self.jobset.status = Some(status);
        self.version += 1;
        self.jobset.metadata.resource_version = Some(self.version.to_string());
    }

    /// A Job as the API takes it.
    fn create(&mut self, job: Job) {
        let name = job.metadata.name.clone().unwrap();
        assert!(!self.jobs.contains_key(&name), "{name} is there already");
        self.log.push(format!("create {name}"));
        self.uids += 1;
        let uid = format!("job-{}", self.uids);
        let Value::Object(mut object) = serde_json::to_value(job).unwrap() else { unreachable!() };
        object["metadata"]["uid"] = uid.clone().into();
        let strategy = JobStrategy::new(Gates::ALL);
        let context = WriteContext { now: self.now, uid, user: "me".into() };
        strategy.fill_defaults(&mut object);
        strategy.prepare_create(&mut object, &context);
        let errors = strategy.validate_create(&object);
        assert!(errors.is_empty(), "{errors:?}");
        self.put(Job::deserialize(Value::Object(object)).unwrap());
    }

    /// Deletes a Job: it is gone when its pods are, see [`World::collect`].
    fn delete(&mut self, job: &JobRef) {
        self.log.push(format!("delete {}", job.name));
        let mut known = self.jobs[&job.name].clone();
        assert_eq!(known.metadata.uid.as_deref(), Some(job.uid.as_str()));
        known.metadata.deletion_timestamp = Some(Time(self.now));
        self.put(known);
    }

    fn patch(&mut self, job: &JobRef, patch: &Value, what: &str) {
        self.log.push(format!("{what} {}", job.name));
        let mut value = serde_json::to_value(&self.jobs[&job.name]).unwrap();
        let known = value["metadata"]["resourceVersion"].clone();
        let wanted = &patch["metadata"]["resourceVersion"];
        assert!(wanted.is_null() || *wanted == known, "{wanted} is not {known}");
        merge(&mut value, patch);
        self.put(Job::deserialize(value).unwrap());
    }

    fn put(&mut self, mut job: Job) {
        self.version += 1;
        job.metadata.resource_version = Some(self.version.to_string());
        self.jobs.insert(job.metadata.name.clone().unwrap(), job);
    }

    /// Takes away Jobs that are being deleted.
    pub(crate) fn collect(&mut self) {
        self.jobs.retain(|_, job| job.metadata.deletion_timestamp.is_none());
    }

    pub(crate) fn tick(&mut self, seconds: i64) {
        self.now = self.now.checked_add(SignedDuration::from_secs(seconds)).unwrap();
    }

    /// All pods of these Jobs are ready.
    pub(crate) fn ready(&mut self, names: &[&str]) {
        for name in names {
            let mut job = self.jobs[*name].clone();
            let pods = job.spec.as_ref().and_then(|spec| spec.parallelism);
            let status = job.status.get_or_insert_default();
            (status.ready, status.active, status.start_time) = (pods, pods, Some(Time(self.now)));
            self.put(job);
        }
    }

    pub(crate) fn complete(&mut self, name: &str) {
        self.end(name, "Complete", "CompletionsReached", "");
    }

    pub(crate) fn fail(&mut self, name: &str, reason: &str, message: &str) {
        self.end(name, "Failed", reason, message);
    }

    fn end(&mut self, name: &str, kind: &str, reason: &str, message: &str) {
        let mut value = serde_json::to_value(&self.jobs[name]).unwrap();
        value["status"] = json!({"conditions": [
            {"type": "FailureTarget", "status": "False"},
            {"type": kind, "status": "True", "reason": reason, "message": message,
             "lastTransitionTime": self.now.to_string()},
        ]});
        self.put(Job::deserialize(value).unwrap());
    }

    pub(crate) fn status(&self) -> JobSetStatus {
        self.jobset.status.clone().unwrap_or_default()
    }

    pub(crate) fn edit(&mut self, change: impl FnOnce(&mut JobSet)) {
        change(&mut self.jobset);
        self.version += 1;
        self.jobset.metadata.resource_version = Some(self.version.to_string());
    }

    /// `type=status reason: message` of every condition.
    pub(crate) fn conditions(&self) -> Vec<String> {
        let conditions = self.status().conditions;
        conditions
            .iter()
            .map(|one| format!("{}={} {}: {}", one.type_, one.status, one.reason, one.message))
            .collect()
    }

    /// `reason message` of the events since the last time, warnings with an exclamation mark.
    pub(crate) fn events(&mut self) -> Vec<String> {
        let mark = |is_warning| if is_warning { "!" } else { "" };
        let events = std::mem::take(&mut self.events).into_iter();
        events
            .map(|one| format!("{}{} {}", mark(one.is_warning), one.reason, one.message))
            .collect()
    }

    /// What was asked of the API since the last time.
    pub(crate) fn asked(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }
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
