//! Writes: planned on a snapshot, staged, made safe, seen; planned again when somebody was faster.

use std::{fmt, sync::Arc};

use lockstep_api::{
    Resource, Status,
    decode::FieldValidation,
    strategy::{Json, WriteContext},
};
use lockstep_store::{
    Object,
    patch::Patch,
    rest::{self, Answer, Configuration, DeleteOptions, Plan, Scaling, Scene},
};

use super::{
    Cluster,
    commit::{CommitError, Head},
    now,
};

/// How often a write is planned again before the writer is told to try later.
const ATTEMPTS_MAX: usize = 1_000;

/// Has the last word about what a write would come to.
#[derive(Clone)]
pub struct Guard(Arc<Check>);

/// Looks at an object of a resource as it would be, and as it is unless it would be new.
type Check = dyn Fn(&Resource, &Object, Option<&Object>) -> Result<(), Status> + Send + Sync;

impl Guard {
    /// A guard that asks `check` about every object to be written, and shows what it is now.
    pub fn new<F>(check: F) -> Self
    where
        F: Fn(&Resource, &Object, Option<&Object>) -> Result<(), Status> + Send + Sync + 'static,
    {
        Self(Arc::new(check))
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Guard")
    }
}

/// Who writes, and how.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// Whether to go through everything but the write itself.
    pub dry_run: bool,
    /// The name of the user.
    pub user: String,
    /// Who manages the fields written.
    pub field_manager: String,
    /// What happens to unknown fields a patch brings in.
    pub field_validation: FieldValidation,
    /// Whom to ask before anything is written.
    pub guard: Option<Guard>,
}

/// What a write came to.
#[derive(Clone, Debug)]
pub struct Written {
    /// The object, as it is now.
    pub object: Arc<Object>,
    /// Whether it is new.
    pub is_created: bool,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// What a deletion came to.
#[derive(Clone, Debug)]
pub struct Deleted {
    /// The object: its last state when it is gone, else as it is now.
    pub object: Arc<Object>,
    /// Whether it is gone.
    pub is_gone: bool,
    /// What the user should know.
    pub warnings: Vec<String>,
}

impl Deleted {
    fn of((written, is_gone): (Written, bool)) -> Self {
        Self { object: written.object, is_gone, warnings: written.warnings }
    }
}

impl Cluster {
    /// Creates an object that was checked against its schema.
    ///
    /// # Errors
    /// The Status a real API server gives.
    pub async fn create(
        &self,
        resource: &Resource,
        namespace: &str,
        object: Json,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        self.wait_for_account(resource, namespace, &object).await;
        let plan = |scene: &Scene<'_>| rest::create(scene, object.clone());
        Ok(self.write(resource, namespace, options, plan).await?.0)
    }

    /// Replaces an object, or the part of it that the subresource `sub` stands for.
    ///
    /// # Errors
    /// The Status a real API server gives.
    pub async fn update(
        &self,
        resource: &Resource,
        sub: Option<&str>,
        (namespace, name): (&str, &str),
        object: Json,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        let plan = |scene: &Scene<'_>| rest::update(scene, sub, name, object.clone());
        Ok(self.write(resource, namespace, options, plan).await?.0)
    }

    /// Changes an object, or the part of it that the subresource `sub` stands for, by a patch. When
    /// somebody else writes in between, the patch is applied again.
    ///
    /// # Errors
    /// The Status a real API server gives.
    pub async fn patch(
        &self,
        resource: &Resource,
        sub: Option<&str>,
        (namespace, name): (&str, &str),
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        let validation = options.field_validation;
        let plan = |scene: &Scene<'_>| rest::patch(scene, sub, name, patch, validation);
        Ok(self.write(resource, namespace, options, plan).await?.0)
    }

    /// Makes a configuration true of an object, or of the part of it that the subresource `sub`
    /// stands for; creates the object if need be.
    ///
    /// # Errors
    /// The Status a real API server gives.
    pub async fn apply(
        &self,
        resource: &Resource,
        sub: Option<&str>,
        (namespace, name): (&str, &str),
        config: &Configuration,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        if sub.is_none() && self.get(resource, namespace, name).is_err() {
            self.wait_for_account(resource, namespace, &config.object).await;
        }
        let validation = options.field_validation;
        let plan = |scene: &Scene<'_>| rest::apply(scene, sub, name, config, validation);
        Ok(self.write(resource, namespace, options, plan).await?.0)
    }

    /// Changes how many replicas an object wants.
    ///
    /// # Errors
    /// The Status a real API server gives.
    pub async fn scale(
        &self,
        resource: &Resource,
        (namespace, name): (&str, &str),
        scaling: Scaling<'_>,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        let validation = options.field_validation;
        let plan = |scene: &Scene<'_>| rest::scale(scene, name, scaling, validation);
        Ok(self.write(resource, namespace, options, plan).await?.0)
    }

    /// Deletes an object, or begins to.
    ///
    /// # Errors
    /// The Status a real API server gives.
    pub async fn delete(
        &self,
        resource: &Resource,
        (namespace, name): (&str, &str),
        delete: &DeleteOptions,
        options: &WriteOptions,
    ) -> Result<Deleted, Status> {
        let plan = |scene: &Scene<'_>| rest::delete(scene, name, delete);
        self.write(resource, namespace, options, plan).await.map(Deleted::of)
    }

    /// Gives a pod its node.
    ///
    /// # Errors
    /// The Status a real API server gives.
    pub async fn bind(
        &self,
        resource: &Resource,
        (namespace, name): (&str, &str),
        binding: &Json,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        let plan = |scene: &Scene<'_>| rest::bind(scene, name, binding);
        Ok(self.write(resource, namespace, options, plan).await?.0)
    }

    /// Deletes a pod, noting that it was evicted.
    ///
    /// # Errors
    /// The Status a real API server gives.
    pub async fn evict(
        &self,
        resource: &Resource,
        (namespace, name): (&str, &str),
        delete: &DeleteOptions,
        options: &WriteOptions,
    ) -> Result<Deleted, Status> {
        let plan = |scene: &Scene<'_>| rest::evict(scene, name, delete);
        self.write(resource, namespace, options, plan).await.map(Deleted::of)
    }

    /// Plans and carries out one write.
    async fn write(
        &self,
        resource: &Resource,
        namespace: &str,
        options: &WriteOptions,
        plan: impl Fn(&Scene<'_>) -> Result<Plan, Status>,
    ) -> Result<(Written, bool), Status> {
        let context = WriteContext {
            now: now(),
            uid: uuid::Uuid::new_v4().to_string(),
            user: options.user.clone(),
        };
        let namespace = if resource.is_namespaced() { namespace } else { "" };
        for _ in 0..ATTEMPTS_MAX {
            let head = self.head();
            let catalog = &*self.catalog();
            let (view, context) = (&head.snapshot, &context);
            let manager = Some(options.field_manager.as_str());
            let scene = Scene { view, catalog, resource, namespace, context, manager };
            let planned = plan(&scene).and_then(|plan| match &options.guard {
                Some(Guard(check)) if !plan.change.ops.is_empty() && !plan.is_removal() => {
                    let object = plan.preview(view);
                    let key = lockstep_store::object::key(namespace, &object.meta.name);
                    let old = (!plan.is_created).then(|| view.get(&resource.table, &key)).flatten();
                    check(resource, &object, old.map(|old| &**old)).map(|()| plan)
                }
                _ => Ok(plan),
            });
            match self.attempt(&head, planned, options.dry_run).await {
                Attempt::Done(outcome) => return outcome,
                Attempt::Again => {}
            }
        }
        Err(Status::too_many_requests("the object is being written too often", 1))
    }

    async fn attempt(&self, head: &Head, plan: Result<Plan, Status>, is_dry_run: bool) -> Attempt {
        let plan = match plan {
            Ok(plan) => plan,
            // What stands in the way may be staged only: nobody may hear of it before it is safe.
            Err(status) => {
                return match self.settle(head, head.snapshot.revision()).await {
                    true => Attempt::Done(Err(status)),
                    false => Attempt::Again,
                };
            }
        };
        let is_removal = plan.is_removal();
        let done = |object, plan: Plan| {
            let Plan { is_created, warnings, .. } = plan;
            Attempt::Done(Ok((Written { object, is_created, warnings }, is_removal)))
        };
        if is_dry_run {
            return match self.settle(head, head.snapshot.revision()).await {
                true => done(plan.preview(&head.snapshot), plan),
                false => Attempt::Again,
            };
        }
        if plan.change.ops.is_empty() {
            let Answer::Object(object) = &plan.answer else {
                return Attempt::Again;
            };
            let object = Arc::clone(object);
            return if self.settle(head, object.revision()).await {
                done(object, plan)
            } else {
                Attempt::Again
            };
        }
        let Plan { change, answer, is_created, warnings } = plan;
        match self.0.core.commit(change).await {
            Ok(objects) => {
                let object = match answer {
                    Answer::Op(at) => Arc::clone(&objects[at]),
                    Answer::Object(object) => object,
                };
                Attempt::Done(Ok((Written { object, is_created, warnings }, is_removal)))
            }
            Err(CommitError::Changed) => Attempt::Again,
            Err(CommitError::Lost(status)) => Attempt::Done(Err(status)),
        }
    }
}

/// Whether to plan again.
enum Attempt {
    Done(Result<(Written, bool), Status>),
    Again,
}
