//! What Kueue's webhooks do to Jobs and JobSets.

use lockstep_api::{
    field::ErrorList,
    json::{self, text},
    kueue::{
        self,
        jobs::{self, JobKind, JobPolicy, JobSurroundings, Owner},
    },
    labels::kueue::DEFAULT_NAME,
    selector::LabelSelector,
    strategy::Json,
};
use lockstep_operator::config::Queueing;
use lockstep_store::{Object, object, rest::Scene};
use serde_json::Value;

/// How many owners are followed: more are no owners but a mistake.
const OWNERS_MAX: usize = 10;

/// What is decided about jobs that are written.
#[derive(Clone, Debug)]
pub struct QueueingPolicy {
    /// What holds for all jobs.
    pub jobs: JobPolicy,
    /// Jobs of which namespaces are managed.
    pub namespaces: LabelSelector,
    /// Which kinds of jobs are managed.
    pub kinds: Vec<JobKind>,
}

impl Default for QueueingPolicy {
    fn default() -> Self {
        Self::of(&Queueing::default(), None)
    }
}

impl QueueingPolicy {
    /// What a configuration decides; `queue_for_all` is the queue of jobs that name none.
    pub fn of(queueing: &Queueing, queue_for_all: Option<String>) -> Self {
        let integrations = queueing.integrations;
        let kinds = [(JobKind::Job, integrations.job), (JobKind::JobSet, integrations.jobset)];
        Self {
            jobs: JobPolicy {
                manages_without_queue: queueing.manage_jobs_without_queue_name,
                queue_for_all,
                defaults_class: queueing.defaults_priority_class,
            },
            // What is wrong with it was said when the configuration was read.
            namespaces: LabelSelector::from_meta(Some(&queueing.managed_namespaces))
                .unwrap_or_else(|_| LabelSelector::everything()),
            kinds: kinds.into_iter().filter(|(_, is_managed)| *is_managed).map(|it| it.0).collect(),
        }
    }

    /// Fills in a new job.
    pub(super) fn fill_new(&self, scene: &Scene<'_>, object: &mut Json) {
        if self.kind(scene).is_none() {
            return;
        }
        let owner = text_of_owner(object);
        let around = Around { policy: self, scene, owner };
        jobs::fill_new(object, &self.jobs, &around);
    }

    /// Says what is wrong with a job, or with a change of one.
    pub(super) fn validate(
        &self,
        scene: &Scene<'_>,
        object: &Json,
        old: Option<&Json>,
    ) -> ErrorList {
        let Some(kind) = self.kind(scene) else { return ErrorList::new() };
        match old {
            None => jobs::validate_create(kind, object),
            Some(old) => {
                let around = Around { policy: self, scene, owner: None };
                jobs::validate_update(kind, object, old, || around.has_default_queue())
            }
        }
    }

    fn kind(&self, scene: &Scene<'_>) -> Option<JobKind> {
        let kind = JobKind::of(&scene.resource.group, &scene.resource.kind)?;
        self.kinds.contains(&kind).then_some(kind)
    }
}

/// The controller of an object: group, kind, name and uid.
type Controller = (String, String, String, String);

fn text_of_owner(object: &Json) -> Option<Controller> {
    let owners = json::list(object, &["metadata", "ownerReferences"]).iter();
    let owner = owners.filter_map(Value::as_object).find(|one| json::flag(one, &["controller"]))?;
    let version = text(owner, &["apiVersion"]);
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let member = |name| text(owner, &[name]).to_owned();
    Some((group.to_owned(), member("kind"), member("name"), member("uid")))
}

struct Around<'a> {
    policy: &'a QueueingPolicy,
    scene: &'a Scene<'a>,
    owner: Option<Controller>,
}

impl Around<'_> {
    fn find(&self, group: &str, kind: &str, key: &str) -> Option<&Object> {
        let registry = self.scene.catalog.registry();
        let resource = registry.iter().find(|one| one.group == group && one.kind == kind)?;
        Some(self.scene.view.get(&resource.table, key)?)
    }

    fn of_namespace(&self, name: &str) -> String {
        object::key(self.scene.namespace, name)
    }
}

impl JobSurroundings for Around<'_> {
    fn has_default_queue(&self) -> bool {
        let key = self.of_namespace(DEFAULT_NAME);
        self.find(kueue::GROUP, kueue::LOCAL_QUEUE.name, &key).is_some()
    }

    fn has_default_class(&self) -> bool {
        self.find(kueue::GROUP, kueue::PRIORITY_CLASS.name, DEFAULT_NAME).is_some()
    }

    fn is_namespace_managed(&self) -> bool {
        let namespace = self.find("", "Namespace", self.scene.namespace);
        self.policy
            .namespaces
            .matches(|key| namespace.and_then(|namespace| namespace.meta.label(key)))
    }

    fn owner(&self) -> Owner {
        let mut owner = self.owner.clone();
        let mut found = Owner::Nobody;
        for _ in 0..OWNERS_MAX {
            let Some((group, kind, name, uid)) = owner else { return found };
            let is_known =
                JobKind::of(&group, &kind).is_some_and(|kind| self.policy.kinds.contains(&kind));
            if !is_known {
                return found;
            }
            found = Owner::Unmanaged;
            let Some(object) = self.find(&group, &kind, &self.of_namespace(&name)) else {
                return found;
            };
            if *object.meta.uid != *uid {
                return found;
            }
            let object = object.json();
            if !jobs::queue_name(&object).is_empty() || self.policy.jobs.manages_without_queue {
                return Owner::Managed;
            }
            owner = text_of_owner(&object);
        }
        found
    }
}
